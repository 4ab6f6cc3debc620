"""Scenes: made, imported and built into physics."""

from __future__ import annotations

from pathlib import Path


def apartment() -> Path:
    """The folder of the bundled default scene."""
    return Path(__file__).parent / "apartment"


def arena() -> Path:
    """The folder of the bundled room with boxes, where episodes are quick: :mod:`sim_bridge.scenes.make_arena`."""
    return Path(__file__).parent / "arena"
