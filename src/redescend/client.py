r"""A client of `redescend serve`, in one file and without dependencies.

client = Client("http://127.0.0.1:8080")
client.create("price", target="price")
client.learn("price", [{"area": 70, "town": "Rome", "price": 210_000}])
client.predict("price", [{"area": 80, "town": "Rome"}])
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from redescend.errors import DataError, RedescendError

Record = Mapping[str, Any]

TYPES = {bool: "BOOL", int: "INT64", float: "FP64", str: "BYTES"}


class ServerError(RedescendError):
    """The server refused a request: its sentence, and the `status` of the answer.

    Parameters
    ----------
    status : int
        The HTTP status; 0 if there was no answer.
    sentence : str
        The message of the server.

    Examples
    --------
    >>> ServerError(404, "There is no model 'a'.")
    ServerError(404, "There is no model 'a'.")
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status, self.sentence = status, sentence

    def __str__(self) -> str:
        return self.sentence


class Client:
    """A connection to a server; each thread needs its own.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8080``.
    token : str or None
        The token of the server, if it needs one.
    timeout : float
        Seconds to wait for an answer.
    attempts : int
        How often a request is sent if the server is busy or the connection is lost. Records are learned from once all
        the same: each request to learn has an idempotency key.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8080", attempts=1)
    >>> client.address
    'http://127.0.0.1:8080'
    """

    def __init__(self, address: str, token: str | None = None, *, timeout: float = 60.0, attempts: int = 5) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DataError(f"The address of a server looks like http://127.0.0.1:8080. Got {address!r}.")
        self.address, self._attempts = address, attempts
        make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = make(parts.hostname, parts.port, timeout=timeout)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def models(self) -> list[dict[str, Any]]:
        """The models of the server, and whether they are ready."""
        return list(self._ask("GET", "/v2/models")["models"])

    def create(self, model: str, file: bytes | None = None, **settings: Any) -> dict[str, Any]:
        """Create a `model` from `settings` such as ``target="price"``, or from the bytes of a model `file`."""
        if file is not None:
            return self._ask("POST", _path(model), file, {"Content-Type": "application/octet-stream"})
        return self._ask("POST", _path(model), settings)

    def delete(self, model: str) -> None:
        """Delete a `model` with its journal."""
        self._ask("DELETE", _path(model))

    def learn(self, model: str, records: Sequence[Record] | Record, key: str | None = None) -> dict[str, Any]:
        """Let a `model` learn from `records`, or from ``{"id": ..., "target": ...}`` of records predicted before.

        `key` is the idempotency key; None makes a new one. In the answer, ``records`` has a list for each of its
        columns, such as ``status``, ``prediction`` and ``suspect``.
        """
        headers = {"Idempotency-Key": secrets.token_hex(16) if key is None else key}
        return self._ask("POST", _path(model, "learn"), records, headers)

    def score(self, model: str, records: Sequence[Record] | Record) -> dict[str, list[Any]]:
        """Score `records` with their targets by a `model`, without learning from them; returns columns."""
        return dict(self._ask("POST", _path(model, "score"), records)["records"])

    def predict(self, model: str, records: Sequence[Record] | Record) -> dict[str, list[Any]]:
        """The outputs of a `model` for `records`: predictions, ids for late labels, and the ends of intervals of
        numbers or the probabilities of labels.
        """
        records = [records] if isinstance(records, Mapping) else list(records)
        for record in records:
            if not isinstance(record, Mapping):
                raise _refuse(record)
        names = [each["name"] for each in self._ask("GET", _path(model))["inputs"]]
        inputs = [_make_tensor(name, [record.get(name) for record in records]) for name in names]
        outputs = self._ask("POST", _path(model, "infer"), {"inputs": inputs})["outputs"]
        return {output["name"]: output["data"] for output in outputs}

    def schema(self, model: str) -> dict[str, Any]:
        """Return the schema of a `model`, or the number of records that it still waits for."""
        return self._ask("GET", _path(model, "schema"))

    def summary(self, model: str) -> dict[str, Any]:
        """Counts and statistics of the records of a `model`."""
        return self._ask("GET", _path(model, "summary"))

    def suspects(self, model: str) -> list[dict[str, Any]]:
        """The newest suspects of a `model` with their values."""
        return list(self._ask("GET", _path(model, "suspects"))["suspects"])

    def download(self, model: str) -> bytes:
        """The file of a `model`, for `redescend.load`."""
        return bytes(self._ask("GET", _path(model, "model")))

    def _ask(self, method: str, path: str, content: Any = None, headers: Mapping[str, str] = {}) -> Any:
        body = (
            content
            if content is None or isinstance(content, bytes)
            else json.dumps(content, default=_to_plain).encode()
        )
        sent = {"Content-Type": "application/json", **self._headers, **headers}
        repeatable = method == "GET" or path.endswith(("/learn", "/score", "/infer"))
        if not repeatable:
            # If the server has closed an old connection, one cannot tell whether it has handled the request.
            self._connection.close()
        for attempt in range(self._attempts):
            last = attempt == self._attempts - 1
            try:
                self._connection.request(method, path, body, sent)
                response = self._connection.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if last or not repeatable:
                    raise ServerError(0, f"{self.address} does not answer: {error}.") from None
            else:
                if response.status < 300:
                    return json.loads(data) if response.headers.get_content_type() == "application/json" else data
                if response.status != 429 or last:
                    raise ServerError(response.status, _read_sentence(data))
            time.sleep(0.1 * 2**attempt)
        raise ServerError(0, "The number of attempts must be at least 1.")


def _path(model: str, what: str = "") -> str:
    return f"/v2/models/{quote(model, safe='')}" + (f"/{what}" if what else "")


def _make_tensor(name: str, values: list[Any]) -> dict[str, Any]:
    values = [value if value is None or type(value) in TYPES else _to_plain(value) for value in values]
    kinds = {type(value) for value in values if value is not None} or {float}
    datatype = TYPES.get(kinds.pop(), "BYTES") if len(kinds) == 1 else "FP64"
    return {"name": name, "shape": [len(values)], "datatype": datatype, "data": values}


def _to_plain(value: Any) -> Any:
    """A scalar of NumPy as one of Python, and a date as text; one that is missing, NaT, is None."""
    kind = "" if getattr(value, "ndim", 0) else getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "M" or hasattr(value, "isoformat"):
        text = str(value.astype("datetime64[us]")) if kind == "M" else value.isoformat()
        return None if text == "NaT" else text
    if kind not in tuple("biufU"):
        raise _refuse(value)
    return value.item()


def _refuse(value: Any) -> DataError:
    return DataError(
        "Records are dicts of numbers, texts, dates, booleans and None, or lists of such dicts. "
        f"Got a value of the type {type(value).__name__}."
    )


def _read_sentence(data: bytes) -> str:
    try:
        return str(json.loads(data)["error"])
    except (ValueError, KeyError, TypeError):
        return data[:200].decode(errors="replace")
