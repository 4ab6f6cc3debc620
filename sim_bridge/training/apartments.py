"""Generated apartments for training, and those held out for evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from robot_runtime.parallel.map import Workers
from sim_bridge.training.jobs import done

HELD_OUT = 12

SIZES = ("robothor", "medium", "large")


def make_apartments(folders: Sequence[Path], workers: Workers) -> None:
    """Generate the missing apartments, whose seeds are the folders' names, without view points."""
    for _ in done(_make_apartment, folders, workers):
        pass


def _make_apartment(folder: Path) -> None:
    from sim_bridge.scenes.generate import flats

    if folder.exists():
        return
    seed = int(folder.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    next(flats(seed, SIZES[seed % len(SIZES)])).write(draft)
    draft.replace(folder)
