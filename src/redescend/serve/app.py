"""The HTTP interface: paths, and what each of them does."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from redescend import __version__
from redescend.errors import RedescendError, quote
from redescend.serve.direct import DirectApp
from redescend.serve.events import Events
from redescend.serve.folder import ModelFolder
from redescend.serve.inference import describe_model, infer
from redescend.serve.journal import Fsync
from redescend.serve.learning import check_key, learn
from redescend.serve.metrics import CONTENT_TYPE, RequestMetrics, render_metrics
from redescend.serve.openapi import make_document
from redescend.serve.page import PAGE, PAGE_HEADERS
from redescend.serve.records import Records, has_booleans, load_json, read_records
from redescend.serve.refusals import Busy, NotFound, Refusal, TooLarge, Unsupported, WrongMethod
from redescend.serve.requests import check_token, read_body

LOGGER = logging.getLogger("redescend.serve")

SMALL = 1 << 16
"""Bytes of a body that are worth no thread: they are parsed in half a millisecond."""

BINARY = "application/octet-stream"
FILES = (BINARY, "application/x-safetensors")
RAW_AFTER = "inference-header-content-length"

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def answer(content: Any, status: int = 200, **headers: str) -> Response:
    """A JSON answer."""
    try:
        text = orjson.dumps(content)
    except TypeError:
        # An integer of more than 64 bits, or half of a surrogate pair.
        text = json.dumps(_to_json(content)).encode()
    return Response(text, status, headers, "application/json")


def _to_json(value: Any) -> Any:
    """A value with null in place of NaN."""
    if isinstance(value, dict):
        return {name: _to_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_to_json(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def refuse(error: Exception) -> Response:
    """An error as its status and one sentence."""
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        status = error.status
        if status == Busy.status:
            headers["Retry-After"] = "1"
        if status in (408, 413):
            headers["Connection"] = "close"
    elif isinstance(error, RedescendError):
        status = 400
    elif isinstance(error, OSError | MemoryError):
        LOGGER.error("%s: %s", type(error).__name__, error)
        text = getattr(error, "strerror", None) or str(error) or "not enough memory"
        return answer({"error": f"Nothing was learned: {text}."}, 503)
    else:
        LOGGER.error("Unexpected error", exc_info=error)
        return answer({"error": "Unexpected error; the log of the server has more."}, 500)
    return answer({"error": " ".join(str(error).split())}, status, **headers)


class Service:
    """The handlers of all paths, for the models of a folder."""

    def __init__(self, folder: ModelFolder, token: str | None = None) -> None:
        self.folder, self.limits, self._token = folder, folder.limits, token
        self.metrics, self.events = RequestMetrics(), Events(folder)

    def guard(self, handler: Handler, *, public: bool = False) -> Handler:
        """A handler behind the token, unless it is public, and the limit of open requests; errors are sentences."""
        metrics, operation = self.metrics, handler.__name__

        async def run(request: Request) -> Response:
            began = time.perf_counter()
            metrics.open += 1
            try:
                if not public:
                    check_token(request, self._token)
                    if metrics.open > self.limits.requests:
                        raise Busy(f"The server has {self.limits.requests:,} open requests; try again in a second.")
                response = await handler(request)
            except Exception as error:
                response = refuse(error)
            finally:
                metrics.open -= 1
            name = request.path_params.get("name", "")
            known = name if name in self.folder.writers else ""
            metrics.observe(known, operation, response.status_code, time.perf_counter() - began)
            return response

        return run

    # --- the Open Inference Protocol ---

    async def live(self, request: Request) -> Response:
        return answer({"live": True})

    async def ready(self, request: Request) -> Response:
        return answer({"ready": True})

    async def server(self, request: Request) -> Response:
        extensions = ["binary_tensor_data", "learn", "score", "suspects", "summary", "schema", "model"]
        return answer({"name": "redescend", "version": __version__, "extensions": extensions})

    async def metadata(self, request: Request) -> Response:
        return answer(describe_model(self._find(request).model))

    async def model_ready(self, request: Request) -> Response:
        ready = self._find(request).model.schema is not None
        return answer({"name": request.path_params["name"], "ready": ready}, 200 if ready else 409)

    async def infer(self, request: Request) -> Response:
        model = self._find(request).model
        body, size = await read_body(request, self.limits), request.headers.get(RAW_AFTER, "")
        split = int(size) if size.isascii() and size.isdigit() and len(size) < 12 else len(body)

        def run() -> tuple[Response, int]:
            head = body[:split]
            outcome = infer(model, load_json(head), body[split:], booleans=has_booleans(head))
            return answer(outcome), outcome["outputs"][0]["shape"][0]

        response, count = await self._off_loop(body, run)
        self.metrics.predicted[model.name] = self.metrics.predicted.get(model.name, 0) + count
        return response

    # --- learning ---

    async def learn(self, request: Request) -> Response:
        writer, key = self._find(request), check_key(request.headers.get("idempotency-key"))
        body = await read_body(request, self.limits)
        records = await self._off_loop(body, lambda: self._read_records(request, body))
        outcome = await learn(writer, records, key, body)
        return await self._off_loop(body, lambda: answer(outcome))

    async def score(self, request: Request) -> Response:
        model = self._find(request).model
        body = await read_body(request, self.limits)

        def run() -> Response:
            return answer({"model_name": model.name, "records": model.score(self._read_records(request, body).lines)})

        return await self._off_loop(body, run)

    def _read_records(self, request: Request, body: bytes) -> Records:
        records = read_records(body, request.headers.get("content-type", ""))
        if len(records.lines) > self.limits.records:
            most = self.limits.records
            raise TooLarge(f"The request has {len(records.lines):,} records, and the server takes {most:,} at a time.")
        return records

    # --- what a model knows ---

    async def schema(self, request: Request) -> Response:
        model = self._find(request).model
        known = model.schema
        if known is None:
            waiting = {"records": len(model.pending), "first": model.settings.first, "reason": model.failure}
            return answer({"decided": False, **waiting})
        return answer({"decided": True, "schema": known.to_dict()})

    async def summary(self, request: Request) -> Response:
        writer = self._find(request)
        facts = await asyncio.to_thread(writer.model.summarize)
        return answer({"model_name": writer.model.name, **facts, "queued": writer.queued})

    async def suspects(self, request: Request) -> Response:
        model = self._find(request).model
        return answer({"model_name": model.name, "suspects": await asyncio.to_thread(model.list_suspects)})

    async def file(self, request: Request) -> Response:
        model = self._find(request).model
        content = await asyncio.to_thread(model.dump)
        name = f'attachment; filename="{model.name}.safetensors"'
        return Response(content, headers={"Content-Disposition": name}, media_type=BINARY)

    # --- the models of the server ---

    async def models(self, request: Request) -> Response:
        listed = [{"name": name, "ready": writer.model.schema is not None} for name, writer in self._writers()]
        broken = [{"name": name, "ready": False, "reason": reason} for name, reason in self.folder.broken.items()]
        return answer({"models": sorted(listed + broken, key=lambda each: str(each["name"]))})

    async def create(self, request: Request) -> Response:
        name, body = request.path_params["name"], await read_body(request, self.limits)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in FILES:
            model = await asyncio.to_thread(self.folder.create, name, start=body)
        elif kind in ("", "application/json"):
            model = await asyncio.to_thread(self.folder.create, name, load_json(body))
        else:
            # A browser sends other types from any page, without asking the server before.
            raise Unsupported(f"The content type {quote(kind)} is none of application/json, {', '.join(FILES)}.")
        return answer(describe_model(model), 201)

    async def delete(self, request: Request) -> Response:
        await self.folder.delete(request.path_params["name"])
        self.metrics.forget(request.path_params["name"])
        return answer({"deleted": request.path_params["name"]})

    async def show_metrics(self, request: Request) -> Response:
        text = await asyncio.to_thread(render_metrics, self.metrics, self.folder)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def document(self, request: Request) -> Response:
        return answer(make_document())

    def _writers(self) -> Any:
        return list(self.folder.writers.items())

    def _find(self, request: Request) -> Any:
        version = request.path_params.get("version", "1")
        if version != "1":
            raise NotFound(f"There is no version {version!r} of a model here, only '1'.")
        return self.folder.writer(request.path_params["name"])

    async def _off_loop(self, body: bytes, run: Callable[[], T]) -> T:
        """Run here if the body is small; else in a thread, so that other clients are served meanwhile."""
        return run() if len(body) <= SMALL else await asyncio.to_thread(run)

    # --- routes ---

    # --- the live page ---

    async def page(self, request: Request) -> Response:
        return Response(PAGE["index.html"], headers=PAGE_HEADERS, media_type="text/html")

    async def style(self, request: Request) -> Response:
        return Response(PAGE["live.css"], headers=PAGE_HEADERS, media_type="text/css")

    async def script(self, request: Request) -> Response:
        return Response(PAGE["live.js"], headers=PAGE_HEADERS, media_type="text/javascript")

    async def watch(self, request: Request) -> Response:
        stream = self.events.watch(request.query_params.get("model"))
        return StreamingResponse(stream, headers={"Cache-Control": "no-store"}, media_type="text/event-stream")

    def routes(self) -> list[Route]:
        model = "/v2/models/{name}"
        # Routes are tried in their order.
        table: list[tuple[str, str, Handler]] = [
            ("POST", f"{model}/infer", self.infer),
            ("POST", f"{model}/learn", self.learn),
            ("POST", f"{model}/score", self.score),
            ("GET", "/v2", self.server),
            ("GET", "/v2/models", self.models),
            ("GET", model, self.metadata),
            ("POST", model, self.create),
            ("DELETE", model, self.delete),
            ("GET", f"{model}/ready", self.model_ready),
            ("GET", f"{model}/schema", self.schema),
            ("GET", f"{model}/summary", self.summary),
            ("GET", f"{model}/suspects", self.suspects),
            ("GET", f"{model}/model", self.file),
            ("GET", f"{model}/versions/{{version}}", self.metadata),
            ("GET", f"{model}/versions/{{version}}/ready", self.model_ready),
            ("POST", f"{model}/versions/{{version}}/infer", self.infer),
            ("GET", "/openapi.json", self.document),
            ("GET", "/metrics", self.show_metrics),
            ("GET", "/events", self.watch),
        ]
        public = {"/": self.page, "/live.css": self.style, "/live.js": self.script}
        public |= {"/v2/health/live": self.live, "/v2/health/ready": self.ready}
        return [
            *(Route(path, self.guard(handler), methods=[method]) for method, path, handler in table),
            *(Route(path, self.guard(handler, public=True), methods=["GET"]) for path, handler in public.items()),
        ]


async def refuse_path(request: Request, error: Exception) -> Response:
    """A path or a method that does not exist."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return refuse(WrongMethod(f"{request.method} cannot be used here; /openapi.json lists what can."))
    return refuse(NotFound(f"There is no path {request.url.path!r}; /openapi.json lists all."))


def make_app(folder: ModelFolder, token: str | None = None) -> DirectApp:
    """The application for the models of a folder, which are open already."""
    service = Service(folder, token)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(_sync(folder)) if folder.fsync is Fsync.INTERVAL else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await folder.close()

    handlers: Any = {HTTPException: refuse_path}
    app = Starlette(routes=service.routes(), lifespan=lifespan, exception_handlers=handlers)
    app.state.stop = service.events.stop
    return DirectApp(
        app, {each.__name__: service.guard(each) for each in (service.infer, service.learn, service.score)}
    )


async def _sync(folder: ModelFolder) -> None:
    while True:
        await asyncio.sleep(1.0)
        await folder.sync()
