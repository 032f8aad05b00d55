"""The HTTP interface: paths, and what each of them does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route

from redescend import __version__
from redescend.errors import quote
from redescend.serve import replies
from redescend.serve.calls import SMALL, Calls, describe_model
from redescend.serve.folder import ModelFolder
from redescend.serve.journal import Fsync
from redescend.serve.live import PAGE, PAGE_HEADERS, Events
from redescend.serve.openapi import make_document
from redescend.serve.records import load_json
from redescend.serve.settings import Limits
from redescend.serve.statistics import CONTENT_TYPE, render_metrics

BINARY = "application/octet-stream"
FILES = (BINARY, "application/x-safetensors")

PATIENCE = 8  # how many times the largest body is read, and dropped, so that a client can read why it is refused

Handler = Callable[[Request], Awaitable[Response]]


def answer(content: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return respond(replies.Reply(replies.encode(content), status))


def respond(reply: replies.Reply) -> Response:
    """A reply as a response of the application."""
    headers = dict(reply.headers) | ({"Connection": "close"} if reply.close else {})
    return Response(reply.content, reply.status, headers, "application/json")


class Service:
    """The handlers of all paths, for the models of a folder."""

    def __init__(self, calls: Calls) -> None:
        self.calls, self.folder, self.limits, self.metrics = calls, calls.folder, calls.limits, calls.metrics
        self.events = Events(self.folder)

    def guard(self, handler: Handler, *, public: bool = False) -> Handler:
        """A handler behind the token, unless it is public, and the limit of open requests; errors are sentences."""
        metrics, operation = self.metrics, handler.__name__

        async def run(request: Request) -> Response:
            began, opened = time.perf_counter(), 0
            try:
                if not public:
                    self.calls.check(request.headers.get("authorization", ""))
                opened = 1
                metrics.open += opened
                response = await handler(request)
            except Exception as error:
                response = respond(replies.error_reply(error))
            finally:
                metrics.open -= opened
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
        writer, size = self._find(request), request.headers.get("inference-header-content-length", "")
        body = await read_body(request, self.limits)
        return await self._off_loop(body, lambda: self.calls.infer(writer, body, size))

    # --- learning ---

    async def learn(self, request: Request) -> Response:
        writer, kind = self._find(request), request.headers.get("content-type", "")
        body, key = await read_body(request, self.limits), request.headers.get("idempotency-key")
        learning = await asyncio.to_thread(self.calls.begin_learning, writer, body, kind, key)
        future = learning.submit()
        with suppress(Exception):
            # A client that leaves does not undo what it sent.
            await asyncio.shield(future)
        return await self._off_loop(body, lambda: replies.encode_in_parts(learning.end(future)))

    async def score(self, request: Request) -> Response:
        writer, kind = self._find(request), request.headers.get("content-type", "")
        body = await read_body(request, self.limits)
        return await self._off_loop(body, lambda: self.calls.score(writer, body, kind))

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
        writers = list(self.folder.writers.items())
        listed = [{"name": name, "ready": writer.model.schema is not None} for name, writer in writers]
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
            raise replies.UnsupportedMediaType(
                f"A model cannot be created from {quote(kind)}: set Content-Type to application/json for settings, or "
                f"to {FILES[0]} for a model file."
            )
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

    def _find(self, request: Request) -> Any:
        version = request.path_params.get("version", "1")
        if version != "1":
            raise replies.NotFound(f"There is no version {version!r} of a model here, only '1'.")
        return self.folder.writer(request.path_params["name"])

    async def _off_loop(self, body: bytes, run: Callable[[], bytes]) -> Response:
        """Run here if the body is small; else in a thread, so that other clients are served meanwhile."""
        return respond(replies.Reply(run() if len(body) <= SMALL else await asyncio.to_thread(run)))

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


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body; raises if it is too large or too slow."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise replies.HTTPException("The body is compressed; send it as it is.")
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(limits.seconds):
            while more and size <= PATIENCE * limits.body:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise replies.HTTPException("The connection was closed before the body was complete.")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size <= limits.body:
                    parts.append(part)
    except TimeoutError:
        raise replies.RequestTimeout(f"The body did not come within {limits.seconds:g} seconds.") from None
    if size > limits.body:
        raise replies.ContentTooLarge(f"The body has more than {limits.body} bytes, which is what the server takes.")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def refuse_path(request: Request, error: Exception) -> Response:
    """A path or a method that does not exist."""
    methods: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods
    if not methods:
        missing = replies.NotFound(f"There is no path {request.url.path!r}; /openapi.json lists all.")
        return respond(replies.error_reply(missing))
    wrong = replies.MethodNotAllowed(f"{request.method} cannot be used here; /openapi.json lists what can.")
    response = respond(replies.error_reply(wrong))
    response.headers["Allow"] = ", ".join(sorted(methods))
    return response


def make_app(calls: Calls) -> Starlette:
    """The application for the models of a folder, which are open already."""
    service, folder = Service(calls), calls.folder

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
    return app


async def _sync(folder: ModelFolder) -> None:
    while True:
        await asyncio.sleep(1.0)
        await folder.sync()
