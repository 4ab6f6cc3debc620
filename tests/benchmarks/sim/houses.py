"""Rows on other people's houses: generated in MolmoSpaces' layout, imported one by one and as a folder."""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.report import Row
from tests.support.mjcf_house import write_house

LARGE = (8, 150)
"""Rooms and objects of the large house."""


def house_rows(houses: int, seed: int) -> list[Row]:
    """The rows, measured.

    Args:
        houses: number of houses that are imported as a folder.
        seed: seed of the houses.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [_large(Path(folder), seed), *_bulk(Path(folder), houses, seed)]


def _large(folder: Path, seed: int) -> Row:
    from robot_runtime.common.clock import Stopwatch
    from sim_bridge.scenes.importer import ImportOptions, import_scene

    rooms, objects = LARGE
    house = write_house(folder / "large", rooms, objects, "train_0", seed)
    times_s = []
    for _ in range(3):
        timer = Stopwatch()
        import_scene(house, folder / "large-scene", ImportOptions(view_points=False))
        times_s.append(timer.elapsed_s())
    label = f"import of a house of {rooms} rooms and {objects} objects, without view points, the median of 3"
    return Row("mjcf_import_s", label, statistics.median(times_s), "s", 5.0, "<=", low=min(times_s), high=max(times_s))


def _bulk(folder: Path, houses: int, seed: int) -> list[Row]:
    from robot_runtime.common.clock import Stopwatch
    from robot_runtime.parallel.map import Workers
    from robot_runtime.scenes.scene import load_scene
    from sim_bridge.scenes.bulk import import_all
    from sim_bridge.scenes.importer import ImportOptions
    from sim_bridge.scenes.progress import silent

    source, out = folder / "houses", folder / "scenes"
    for number in range(houses):
        rooms, objects = 1 + number % 6, 5 + (7 * number) % 40
        write_house(source / f"h{number}", rooms, objects, f"train_{number}", seed + number)
    timer = Stopwatch()
    results = list(import_all(source, out, ImportOptions(view_points=False), Workers(2), silent))
    per_minute = 60 * houses / timer.elapsed_s()
    lost = 0
    for result in results:
        house = Path(result.house)
        named = json.loads(house.with_name(f"{house.stem}_metadata.json").read_text())["objects"]
        present = set() if result.problem else {item.id for item in load_scene(Path(result.scene)).objects}
        told = " ".join((*result.notes, result.problem))
        lost += sum(name not in present and name not in told for name in named)
    failed = sum(bool(result.problem) for result in results)
    return [
        Row("bulk_houses_per_min", f"houses a minute, of {houses}, by two workers", per_minute, "/min", 20.0),
        Row(
            "bulk_silent",
            f"objects of {houses} houses that are neither in the scene nor in the list",
            lost,
            "",
            0,
            "<=",
            note=f"{failed} houses were refused",
        ),
    ]
