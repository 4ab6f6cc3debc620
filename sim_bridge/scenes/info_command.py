"""``robot-runtime scene info`` and ``scene from-map``."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options import completion, options


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["scene"].command("info")(info)
    groups["scene"].command("from-map")(from_map)


def from_map(
    map_file: Annotated[Path, typer.Argument(metavar="MAP", help="map.yaml, as map_saver writes it.")],
    out: Annotated[Path, typer.Option(help="Folder of the scene.")],
) -> None:
    """Make a scene of a robot's map, on which real runs are scored; it cannot be simulated.

    Example:
        robot-runtime scene from-map map.yaml --out lab
    """
    from robot_runtime.common.console import say
    from robot_runtime.common.creating import creating
    from robot_runtime.common.yaml_text import dump_yaml
    from robot_runtime.errors import ConfigError
    from robot_runtime.scenes.occupancy_map import OccupancyMap
    from robot_runtime.scenes.scene import load_scene

    if (out / "scene.yaml").exists():
        raise ConfigError(f"{out}: is a scene already", "choose another folder with --out")
    known = OccupancyMap.load(map_file)
    document = {"schema": 1, "name": out.resolve().name, "rooms": [], "objects": [], "source": {"map": map_file.name}}
    with creating(out) as draft:
        draft.mkdir(exist_ok=True)
        known.save(draft / "map.yaml")
        (draft / "scene.yaml").write_text(dump_yaml(document), encoding="utf-8")
    width_m, depth_m = load_scene(out).map.size_m
    say(f"{out}: {width_m:.1f} x {depth_m:.1f} m, without rooms and objects")
    say(f"next: robot-runtime scene info {out}")


def info(
    scene: Annotated[
        str, typer.Argument(help="Scene folder, or the name of a bundled scene.", autocompletion=completion.scenes)
    ] = "apartment",
    radius_m: Annotated[float, typer.Option(help="Robot radius for the navigable area.")] = 0.18,
    json: options.Json = None,
) -> None:
    """Check a scene and say what is in it.

    Examples:
        robot-runtime scene info
        robot-runtime scene info scenes/house --radius-m 0.2
    """
    from robot_runtime.common.console import console
    from robot_runtime.common.tables import facts_table
    from robot_runtime.recording.json_output import write_json
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

    facts: dict[str, object] = {
        "name": loaded.name,
        "folder": str(loaded.folder),
        "digest": loaded.digest[:16],
        "source": loaded.file.source,
        "map": f"{width_m:.1f} x {depth_m:.1f} m at {loaded.map.resolution_m * 100:g} cm",
        "free": f"{free_m2:.1f} m², of which a robot of radius {radius_m:g} m reaches {navigable_m2:.1f} m²",
        "occupied": f"{occupied_m2:.1f} m²",
        "unknown": f"{unknown_m2:.1f} m²",
        "rooms": [room.id for room in loaded.rooms],
        "objects": f"{len(loaded.objects)}, {seen} with view points",
        "categories": dict(sorted(counts.items())),
        "meshes": f"{len(loaded.file.assets)} assets" if loaded.file.assets else "none: cannot be simulated",
    }
    if loaded.file.assets:
        facts["colliders"] = excess_sentence(collider_excess_m(loaded))
    console.print(facts_table(facts))
    if json is not None:
        areas = {"free_m2": free_m2, "navigable_m2": navigable_m2, "occupied_m2": occupied_m2, "unknown_m2": unknown_m2}
        write_json(json, {**facts, **areas})
    if not unknown_m2:
        console.print("[yellow]warning:[/] nothing in the map is unknown: space that no robot has seen counts as free")
    for note in scene_notes(loaded):
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
