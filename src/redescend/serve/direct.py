"""Requests to predict and to learn, which are nearly all, go to their handlers without a router in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

PREFIX = "/v2/models/"

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class DirectRequest:
    """What handlers use of a request: its headers, the parameters of its path, and its messages."""

    __slots__ = ("headers", "path_params", "receive")

    def __init__(self, name: str, scope: Mapping[str, Any], receive: Receive) -> None:
        self.path_params, self.receive = {"name": name}, receive
        self.headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}


class DirectApp:
    """An application whose requests of ``POST /v2/models/{name}/{operation}`` have handlers; `app` gets the others."""

    def __init__(self, app: Any, handlers: Mapping[str, Callable[[Any], Awaitable[Any]]]) -> None:
        self.state, self._app, self._handlers = app.state, app, handlers

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(PREFIX):
            name, _, operation = scope["path"][len(PREFIX) :].partition("/")
            handler = self._handlers.get(operation)
            if handler is not None and name:
                response = await handler(DirectRequest(name, scope, receive))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
