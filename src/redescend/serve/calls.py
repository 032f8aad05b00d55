"""What requests to predict and to learn do, from the bytes of a body to those of a reply."""

from __future__ import annotations

import hmac
import time

from redescend.errors import DataError
from redescend.serve.folder import ModelFolder
from redescend.serve.inference import infer
from redescend.serve.learning import Learning
from redescend.serve.metrics import RequestMetrics
from redescend.serve.records import read_records
from redescend.serve.refusals import Busy, Unauthorized
from redescend.serve.replies import encode, encode_in_parts
from redescend.serve.writer import Writer

MAX_KEY = 200


class Calls:
    """The calls of a server, for the models of a folder."""

    def __init__(self, folder: ModelFolder, token: str | None = None) -> None:
        self.folder, self.limits, self._token = folder, folder.limits, token
        self.metrics = RequestMetrics()

    def check(self, authorization: str) -> None:
        """Raise unless a request, which is not counted as open yet, carries the token, and not too many are open."""
        check_token(authorization, self._token)
        if self.metrics.open >= self.limits.requests:
            raise Busy(f"The server has {self.limits.requests:,} open requests; try again in a second.")

    def infer(self, writer: Writer, body: bytes, size: str) -> bytes:
        """Predict; `size` is that of the JSON if raw tensors follow it, or empty."""
        split = int(size) if size.isascii() and size.isdigit() and len(size) < 12 else len(body)
        self.folder.read_at = time.monotonic()
        head, raw = (body, b"") if split >= len(body) else (body[:split], body[split:])
        answer, count = infer(writer.model, head, raw)
        self.metrics.add_predicted(writer.model.name, count)
        return encode(answer)

    def score(self, writer: Writer, body: bytes, content_type: str) -> bytes:
        """Say what would be said of records, without learning from them."""
        self.folder.read_at = time.monotonic()
        model, records = writer.model, read_records(body, content_type, limits=self.limits)
        return encode_in_parts({"model_name": model.name, "records": model.score(records.split())})

    def begin_learning(self, writer: Writer, body: bytes, content_type: str, key: str | None) -> Learning:
        """Read the records of a request to learn, with its idempotency key."""
        if key is not None and not 1 <= len(key) <= MAX_KEY:
            raise DataError(f"An idempotency key has 1 to {MAX_KEY} characters. Got {len(key)}.")
        return Learning(writer, read_records(body, content_type, writer.model.numeric, self.limits), key, body)


def check_token(authorization: str, token: str | None) -> None:
    """Raise unless the header of a request carries the token of the server."""
    if token is None:
        return
    kind, _, given = authorization.partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise Unauthorized("The server needs a token: send it as 'Authorization: Bearer TOKEN'.")
