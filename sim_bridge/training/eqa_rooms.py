"""Rooms in which objects of a category stand, counted in generated flats: the shares of ``FloorPlan.expected``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.task_kinds.eqa.questions.names import category_name
from sim_bridge.scenes.generate import flats
from sim_bridge.training.eqa_views import SIZES, category_words

_FIRST_SEED = 400_000


def write_room_shares(out: Path, count: int) -> None:
    """Write the share of each category's objects in each kind of room; the flats are planned, but not built.

    Args:
        out: YAML file.
        count: number of flats.
    """
    words, counts = category_words(), dict[str, Counter[str]]()
    for seed in range(_FIRST_SEED, _FIRST_SEED + count):
        flat = next(flats(seed, SIZES[seed % len(SIZES)])).file
        rooms = {room.id: category_name(room.category, {}) for room in flat.rooms}
        for item in flat.objects:
            if item.room in rooms and item.category in words:
                counts.setdefault(words[item.category], Counter())[rooms[item.room]] += 1
    shares = {
        name: {room: round(number / found.total(), 2) for room, number in sorted(found.items())}
        for name, found in sorted(counts.items())
    }
    out.write_text(dump_yaml(shares, sort_keys=True, width=116), encoding="utf-8")


if __name__ == "__main__":
    typer.run(write_room_shares)
