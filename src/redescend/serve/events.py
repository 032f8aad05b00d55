"""Server-sent events for the live page: once a second, what has changed."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import orjson

from redescend.serve.folder import ModelFolder
from redescend.serve.live import Rates, describe_live, list_model
from redescend.serve.refusals import Busy

SECONDS = 1.0
"""Between two events."""

HISTORY = 120
"""Rates that a page shows."""

MAX_PAGES = 50


class Events:
    """The open pages of a server."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder, self._stopping, self._pages = folder, asyncio.Event(), 0

    def stop(self) -> None:
        """End all streams, so that the server can stop."""
        self._stopping.set()

    def watch(self, chosen: str | None) -> AsyncIterator[bytes]:
        """The events of a page that shows one model, the first by name unless one is chosen."""
        if self._pages >= MAX_PAGES:
            raise Busy(f"{MAX_PAGES} live pages are open already; close one.")
        return self._watch(chosen)

    async def _watch(self, chosen: str | None) -> AsyncIterator[bytes]:
        page = Page(self._folder, chosen)
        self._pages += 1
        try:
            while not self._stopping.is_set():
                event = orjson.dumps(await asyncio.to_thread(page.update))
                yield b"data: " + event + b"\n\n"
                try:
                    await asyncio.wait_for(self._stopping.wait(), SECONDS)
                except TimeoutError:
                    continue
        finally:
            self._pages -= 1


class Page:
    """What one page shows already, so that only changes are sent."""

    def __init__(self, folder: ModelFolder, chosen: str | None) -> None:
        self._folder, self._chosen = folder, chosen
        self._began = self._last = time.monotonic()
        self._records: dict[str, int] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        self._rates: Rates = deque(maxlen=HISTORY)

    def update(self) -> dict[str, Any]:
        """The next event: the models whose line has changed, those that are gone, and the chosen model."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        models = {name: writer.model for name, writer in list(self._folder.writers.items())}
        shown = self._chosen if self._chosen is not None else min(models, default=None)
        changed = []
        for name, model in models.items():
            count = model.counts.records + len(model.pending)
            rate = max(0, count - self._records.get(name, count)) / passed if passed > 0.0 else 0.0
            before = self._records.get(name)
            self._records[name] = count
            if name == shown:
                self._rates.append((now - self._began, rate))
            if count == before and self._sent[name]["rate"] == "0":
                continue
            line = list_model(model, rate)
            if line != self._sent.get(name):
                self._sent[name] = line
                changed.append(line)
        gone = [name for name in self._sent if name not in models]
        for name in gone:
            del self._sent[name], self._records[name]
        event: dict[str, Any] = {"models": changed, "gone": gone, "broken": self._folder.broken}
        if shown in models:
            event["model"] = describe_live(models[shown], self._rates)
        return event
