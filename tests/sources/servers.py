"""Redis and Mosquitto in processes of their own, on free ports of this machine; stopped by their ids."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest


def find_program(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if found is None:
        pytest.skip(f"needs {name}; install it with: make servers, or apt-get install {package}")
    return found


class Server:
    """A program that listens on `port`."""

    def __init__(self, command: list[str], port: int):
        self.command, self.port = command, port
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def start_redis(folder: Path) -> Server:
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), "--daemonize", "no"]
    return Server([find_program("redis-server", "redis-server"), *options], port)


def start_mosquitto(folder: Path) -> Server:
    port = free_port()
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nuser root\n")
    return Server([find_program("mosquitto", "mosquitto"), "-c", str(settings)], port)
