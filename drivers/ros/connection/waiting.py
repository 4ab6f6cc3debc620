"""Waiting that something else can end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def wait_until(poll: Callable[[], bool], pause: Callable[[float], Any], timeout_s: float, poll_s: float) -> bool:
    """Return whether ``poll`` became true within about ``timeout_s``, pausing with e.g. ``Event.wait``."""
    for _ in range(max(1, round(timeout_s / poll_s))):
        if poll():
            return True
        pause(poll_s)
    return poll()
