"""The commands that need the simulator: ``scene generate``, ``import``, ``view-points`` and pictures of noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim_bridge.scenes.progress import Progress

if TYPE_CHECKING:
    from sim_bridge.scenes.importer import ImportOptions


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands to the groups of ``robot-runtime``."""
    groups["scene"].command("generate")(generate)
    groups["scene"].command("import")(import_)
    groups["scene"].command("view-points")(view_points)
    groups["scene"].command("export")(export)
    groups["scene"].command("noise")(noise)
    groups["scene"].command("action-noise")(action_noise)


def generate(
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same flat.")] = 0,
    size: Annotated[
        str, typer.Option(help="robothor (8.8 x 3.9 m), medium (10 x 6.4) or large (12 x 9).")
    ] = "robothor",
) -> None:
    """Make a furnished, textured apartment.

    Examples:
        robot-runtime scene generate --out scenes/flat --seed 7
        robot-runtime scene generate --out scenes/big --seed 7 --size large
    """
    from robot_runtime.common.console import say
    from sim_bridge.scenes.generate import generate_scene

    with shown_progress() as progress:
        generate_scene(out, seed, size, progress)
    say(f"{out}: apartment of seed {seed}")
    next_steps(out)


def import_(
    source: Annotated[
        Path, typer.Argument(help="Gazebo .world or .sdf, MuJoCo .xml, or a .glb, .gltf, .obj, .dae, .stl, .ply.")
    ],
    out: Annotated[Path, typer.Option(help="Scene folder to write.")],
    models: Annotated[
        list[Path] | None, typer.Option(help="Folder with Gazebo models, or one that holds `models`.")
    ] = None,
    skip_missing: Annotated[bool, typer.Option(help="Leave out models that are not there.")] = False,
    up: Annotated[
        str | None, typer.Option(help="Upward axis of a mesh: x, y, z, -x, ... [default: y for glTF, else z].")
    ] = None,
    scale: Annotated[float, typer.Option(help="Meters per unit of a mesh.")] = 1.0,
    floor_z_m: Annotated[
        float | None, typer.Option(help="Height of the floor in the source. [default: the lowest large level]")
    ] = None,
    tolerance_m: Annotated[float, typer.Option(help="Hollows shallower than this may be filled for contact.")] = 0.02,
    texture_px: Annotated[int, typer.Option(min=16, help="Longest edge of a texture.")] = 512,
    view_points: Annotated[bool, typer.Option(help="Compute the view points that ObjectNav needs.")] = True,
    bulk: Annotated[bool, typer.Option("--bulk", help="Import every house of the folder SOURCE; resumes.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes of --bulk.")] = 1,
) -> None:
    """Turn a Gazebo world, a MuJoCo house or a mesh into a scene: textures, contact shapes, map, rooms, objects.

    Examples:
        robot-runtime scene import aws_small_house/worlds/small_house.world --out scenes/house
        robot-runtime scene import hospital.world --out scenes/hospital --models ~/models --skip-missing
        robot-runtime scene import scan.glb --out scenes/office --up z
        robot-runtime scene import --bulk procthor-10k --out scenes/procthor --workers 4
    """
    from robot_runtime.common.console import say
    from robot_runtime.errors import ConfigError
    from sim_bridge.scenes.decompose import DecompositionSettings
    from sim_bridge.scenes.importer import ImportOptions, import_scene
    from sim_bridge.scenes.pieces import UPRIGHT

    if up is not None and up not in UPRIGHT:
        raise ConfigError(f"--up {up!r} is not an axis", f"use one of {', '.join(UPRIGHT)}")
    if not tolerance_m > 0:
        raise ConfigError(f"--tolerance-m {tolerance_m} is not positive", "give meters, such as 0.02")
    options = ImportOptions(
        models=tuple(models or ()),
        skip_missing=skip_missing,
        up=up,
        scale=scale,
        floor_z_m=floor_z_m,
        texture_px=texture_px,
        settings=DecompositionSettings(tolerance_m=tolerance_m),
        view_points=view_points,
    )
    if bulk:
        _import_bulk(source, out, options, workers)
        return
    with shown_progress() as progress:
        notes = import_scene(source, out, options, progress)
    for note in notes:
        say(f"note: {note}")
    say(f"{out}: imported from {source}")
    next_steps(out)


def _import_bulk(folder: Path, out: Path, options: ImportOptions, workers: int) -> None:
    """Import a folder of houses, and print the causes of failures. Raises ``SceneError`` if there are some."""
    from rich.markup import escape
    from rich.table import Table

    from robot_runtime.common.console import console, say
    from robot_runtime.errors import SceneError
    from robot_runtime.parallel.map import Workers
    from sim_bridge.scenes.bulk import JOURNAL, causes, import_all

    with shown_progress() as progress:
        results = list(import_all(folder, out, options, Workers(workers), progress))
    failed = [result for result in results if result.problem]
    noted = sum(bool(result.notes) for result in results)
    done = f"{len(results) - len(failed)} of {len(results)} houses, {noted} with notes"
    say(f"{out}: {done}: {out / JOURNAL}")
    if not failed:
        return
    table = Table(box=None, pad_edge=False)
    for name in ("houses", "cause", "first", "remedy"):
        table.add_column(name)
    for cause, count, first in causes(results):
        table.add_row(str(count), escape(cause), escape(Path(first.house).name), escape(first.remedy))
    console.print(table)
    raise SceneError(f"{len(failed)} of {len(results)} houses were not imported", "see the causes; then repeat it")


def view_points(folder: Annotated[Path, typer.Argument(help="Scene folder with meshes.")]) -> None:
    """Recompute from where each object is seen within 1 m; do so after editing a scene's map or objects.

    Example:
        robot-runtime scene view-points scenes/house
    """
    from robot_runtime.common.console import say
    from sim_bridge.scenes.view_points import write_view_points

    with shown_progress() as progress:
        found = write_view_points(folder, progress)
    points = sum(map(len, found.values()))
    say(f"{folder / 'view_points.json'}: {points} view points of {len(found)} objects")


def export(
    scene: Annotated[str, typer.Argument(help="Scene folder, or the name of a bundled scene.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    episodes: Annotated[Path | None, typer.Option(help="Episode file of the scene, to be exported with it.")] = None,
    task: Annotated[str, typer.Option(help="Task of the episodes.")] = "pointnav_gps_compass",
    cell_height_m: Annotated[
        float, typer.Option(min=0.001, help="Cell height of the navigation mesh that starts and goals stand on.")
    ] = 0.2,
) -> None:
    """Export a scene and its episodes for habitat-sim: GLB, stage configuration, starts and goals on its floor.

    Example:
        robot-runtime scene export apartment --out habitat --episodes val.json.gz
    """
    from robot_runtime.common.console import say
    from robot_runtime.common.creating import creating
    from robot_runtime.datasets.files import load_episodes, save_episodes
    from robot_runtime.errors import EpisodeError
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task
    from sim_bridge.scenes.habitat_export import at_height, export_scene, navmesh_height_m

    loaded = load_scene(find_scene(scene))
    with creating(out) as draft:
        stages = export_scene(loaded, draft)
        height_m, chosen = navmesh_height_m(loaded, cell_height_m), load_task(task)
        raised = at_height(load_episodes(episodes), height_m, f"{loaded.name}.glb") if episodes else []
        foreign = next((one.category for one in raised if one.category not in (None, *chosen.categories)), None)
        if foreign is not None:
            raise EpisodeError(
                f"{episodes}: task {task!r} has no category {foreign!r}", "name the task of the episodes with --task"
            )
        if episodes is not None:
            save_episodes(draft / "episodes.json.gz", raised, chosen)
    for stage in stages:
        say(f"stage: {out / stage.name}")
    if raised:
        say(f"{len(raised)} episodes at a height of {height_m:.2f} m: {out / 'episodes.json.gz'}")


def next_steps(folder: Path) -> None:
    """Print the commands that show a new scene and run in it."""
    from robot_runtime.common.console import say

    say(f"look at it:  robot-runtime scene info {folder}")
    say(f"run in it:   robot-runtime run --scene {folder}")


def noise(
    out: Annotated[Path, typer.Option(help="PNG file to write.")],
    scene: Annotated[str, typer.Option(help="Scene to look at.")] = "apartment",
    seed: Annotated[int, typer.Option(min=0, help="Of the noise.")] = 0,
) -> None:
    """Show what the noise models of cameras do to a view of a scene.

    Example:
        robot-runtime scene noise --out noise.png
    """
    from robot_runtime.common.console import say
    from robot_runtime.scenes.scene import find_scene, load_scene
    from sim_bridge.figures.camera_noise import draw

    draw(out, load_scene(find_scene(scene)), seed)
    say(f"{out}: noise models")


def action_noise(
    out: Annotated[Path, typer.Option(help="PNG file to write.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the errors.")] = 0,
) -> None:
    """Show where actions end under the published models of their errors.

    Example:
        robot-runtime scene action-noise --out action-noise.png
    """
    from robot_runtime.common.console import say
    from sim_bridge.figures.action_noise import draw

    draw(out, seed)
    say(f"{out}: errors of actions")


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """A progress bar per stage with the time that is left; where stderr is not a terminal, a line now and then."""
    from robot_runtime.common.console import progress_bar

    with progress_bar() as bar:
        tasks = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total, note="")
            bar.update(tasks[what], completed=done)

        yield report
