"""Logs of the room, shared by the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from changed_room import survey

from robot_runtime.scenes.scene import Scene


@pytest.fixture(scope="session")
def room_logs(room: Scene, once: Callable[..., Path]) -> list[Path]:
    """Three episodes in the room; do not write into their folder."""
    return sorted(once("survey", lambda folder: survey(folder, room)).glob("*.mcap"))
