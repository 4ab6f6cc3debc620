"""Messages of a page to a robot's console, sent by a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.common.threads import background

TOKEN = "a" * 16
PATIENCE_S = 60.0


class Page:
    """An operator's or viewer's connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def ask(self, **message: Any) -> dict[str, Any]:
        """Send a message and return the answer."""
        self.connection.send(json.dumps(message))
        answer: dict[str, Any] = json.loads(self.connection.recv(PATIENCE_S))
        return answer


@contextmanager
def page(port: int, token: str = TOKEN) -> Iterator[Page]:
    """A page that has shown a token."""
    with connect(f"ws://127.0.0.1:{port}/", proxy=None, close_timeout=1) as connection:
        opened = Page(connection)
        opened.ask(do="hello", token=token)
        yield opened


@contextmanager
def beating(opened: Page) -> Iterator[None]:
    """Send heartbeats meanwhile, whose answers are thrown away."""

    def beat(ended: threading.Event) -> None:
        while not ended.wait(0.05):
            opened.ask(do="beat")

    with background(beat, "heartbeats"):
        yield


def eventually(found: Callable[[], object]) -> None:
    """Wait until something is true."""
    assert wait_for(SystemClock(), lambda: found() or None, PATIENCE_S, 0.005), "it never came true"
