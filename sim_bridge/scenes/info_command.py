"""``robot-runtime scene info``."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from robot_runtime.cli_options import completion


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["scene"].command("info")(info)


def info(
    scene: Annotated[
        str, typer.Argument(help="Scene folder, or the name of a bundled scene.", autocompletion=completion.scenes)
    ] = "apartment",
    radius_m: Annotated[float, typer.Option(help="Robot radius for the navigable area.")] = 0.18,
) -> None:
    """Check a scene and say what is in it.

    Examples:
        robot-runtime scene info
        robot-runtime scene info scenes/house --radius-m 0.2
    """
    from rich.table import Table

    from robot_runtime.common.console import console
    from robot_runtime.scenes.occupancy_map import Cell
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.scenes.scene_notes import scene_notes
    from sim_bridge.scenes.collider_excess import collider_excess_m, excess_sentence

    loaded = load_scene(find_scene(scene))
    width_m, depth_m = loaded.map.size_m
    free_m2, occupied_m2, unknown_m2 = map(loaded.map.area_m2, (Cell.FREE, Cell.OCCUPIED, Cell.UNKNOWN))
    navigable_m2 = int(loaded.map.navigable(radius_m).sum()) * loaded.map.resolution_m**2
    seen = sum(1 for item in loaded.objects if loaded.view_points.get(item.id))
    counts = Counter(item.category for item in loaded.objects)

    table = Table(show_header=False, box=None)
    table.add_row("name", loaded.name)
    table.add_row("folder", str(loaded.folder))
    table.add_row("digest", loaded.digest[:16])
    table.add_row("source", ", ".join(f"{key} {value}" for key, value in loaded.file.source.items()) or "-")
    table.add_row("map", f"{width_m:.1f} x {depth_m:.1f} m at {loaded.map.resolution_m * 100:g} cm")
    table.add_row("free", f"{free_m2:.1f} m², of which a robot of radius {radius_m:g} m reaches {navigable_m2:.1f} m²")
    table.add_row("occupied", f"{occupied_m2:.1f} m²")
    table.add_row("unknown", f"{unknown_m2:.1f} m²")
    table.add_row("rooms", ", ".join(room.id for room in loaded.rooms) or "-")
    table.add_row("objects", f"{len(loaded.objects)}, {seen} with view points")
    table.add_row("categories", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "-")
    table.add_row("meshes", f"{len(loaded.file.assets)} assets" if loaded.file.assets else "none: cannot be simulated")
    if loaded.file.assets:
        table.add_row("colliders", excess_sentence(collider_excess_m(loaded)))
    console.print(table)
    if not unknown_m2:
        console.print("[yellow]warning:[/] nothing in the map is unknown: space that no robot has seen counts as free")
    for note in scene_notes(loaded):
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
