"""Headless Chromium, driven by its own driver over the WebDriver protocol, which is JSON over HTTP."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest


class Browser:
    """A browser in a process of its own; `close` ends it and its driver."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 900):
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            pytest.skip("needs Chromium and its driver; install them with: apt-get install chromium chromium-driver")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._address, self._process = (
            f"http://127.0.0.1:{port}",
            subprocess.Popen(
                [driver, f"--port={port}", f"--log-path={folder / 'driver.log'}"], stdout=subprocess.DEVNULL
            ),
        )
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        options += [f"--window-size={width},{height}", f"--user-data-dir={folder / 'profile'}", "--no-first-run"]
        capabilities = {
            "goog:chromeOptions": {"binary": chromium, "args": options},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        wait_until(lambda: self._ask("GET", "/status")["ready"])
        self._session = ""
        created = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{created['sessionId']}"

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ask("DELETE", self._session)
        finally:
            self._process.terminate()
            self._process.wait(30)

    def _ask(self, method: str, path: str, content: object = None):
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            self._address + path, body, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, address: str) -> None:
        self._ask("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: object):
        """The value of a script, such as ``return document.title``."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": arguments})

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def is_wider_than_window(self) -> bool:
        return self.run("return document.documentElement.scrollWidth > window.innerWidth")

    def resize(self, width: int, height: int) -> None:
        """Make the page as narrow as a phone, which a window cannot be."""
        command = {"cmd": "Emulation.setDeviceMetricsOverride"}
        command["params"] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self._ask("POST", f"{self._session}/goog/cdp/execute", command)

    def problems(self) -> list[str]:
        """Messages in the console since the last call."""
        return [entry["message"] for entry in self._ask("POST", f"{self._session}/se/log", {"type": "browser"})]

    def shoot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self._session}/screenshot")))


def wait_until(condition, seconds: float = 30.0):
    """The first value of `condition` that is true; connections that fail meanwhile are tried again."""
    end = time.monotonic() + seconds
    while True:
        try:
            if value := condition():
                return value
        except OSError:
            pass
        assert time.monotonic() < end
        time.sleep(0.1)
