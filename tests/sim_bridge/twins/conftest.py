"""The room, looked round in once."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_room import survey

from robot_runtime.scene import Scene


@pytest.fixture(scope="session")
def room_logs(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three episodes in the room; do not write into their folder."""
    return survey(tmp_path_factory.mktemp("survey"), room)
