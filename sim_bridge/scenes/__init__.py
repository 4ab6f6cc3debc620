"""Scenes: made, imported and built into physics."""

from pathlib import Path


def apartment() -> Path:
    """The folder of the bundled default scene."""
    return Path(__file__).parent / "apartment"


def arena() -> Path:
    """The folder of the bundled room with boxes, in which an episode takes a fraction of a second."""
    return Path(__file__).parent / "arena"
