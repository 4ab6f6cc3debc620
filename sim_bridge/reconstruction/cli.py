"""``robot-runtime scene from-log``, ``scene align`` and ``scene diff``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from robot_runtime.cli_options import completion, options
from robot_runtime.errors import ConfigError
from sim_bridge.cli import next_steps, shown_progress

if TYPE_CHECKING:
    from robot_runtime.common.geometry import SE2

MaxDepth = Annotated[float, typer.Option(min=0.5, max=20, help="Leave out depth measured farther away.")]
MinObservations = Annotated[int, typer.Option(min=1, help="Frames that must agree.")]
Poses = Annotated[
    Literal["logged", "smoothed"], typer.Option(help="The referee's, or its trajectory smoothed (extra smoother).")
]


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["scene"].command("from-log")(from_log)
    groups["scene"].command("align")(align)
    groups["scene"].command("diff")(diff)


def from_log(
    logs: Annotated[list[Path], typer.Argument(help="Logs, or folders of logs, of the same place.")],
    out: Annotated[Path, typer.Option(help="Scene folder to write.")],
    voxel_m: Annotated[float, typer.Option(help="Edge of the mesh's voxels.")] = 0.04,
    resolution_m: Annotated[float, typer.Option(help="Edge of the map's cells.")] = 0.025,
    max_depth_m: MaxDepth = 4.0,
    min_observations: MinObservations = 2,
    poses: Poses = "logged",
    mesh: Annotated[bool, typer.Option(help="Fuse a mesh for simulation (extra mesh, Open3D).")] = True,
    view_points: Annotated[bool, typer.Option(help="Compute the view points that ObjectNav needs.")] = True,
) -> None:
    """Make a scene of what logged episodes saw: map, colored mesh, and the known objects that are still there.

    Examples:
        robot-runtime scene from-log logs/lab --out scenes/lab
        robot-runtime scene from-log monday/ tuesday/0003.mcap --out scenes/lab --voxel-m 0.03 --poses smoothed
    """
    from robot_runtime.common.console import say
    from robot_runtime.recording.log_files import find_logs
    from sim_bridge.reconstruction.build import FusionOptions, build_scene
    from sim_bridge.reconstruction.logged_frames import FrameSequence
    from sim_bridge.reconstruction.occupancy_mapping import MappingOptions

    frames = FrameSequence(find_logs(logs), poses, max_depth_m)
    mapping = MappingOptions(resolution_m=resolution_m, observations=min_observations)
    with shown_progress() as progress:
        made = build_scene(frames, out, FusionOptions(mapping, voxel_m if mesh else None, view_points), progress)
    for note in made.notes:
        say(f"note: {note}")
    say(
        f"{out}: {made.frames} frames of {len(frames.paths)} logs: {made.free_m2:.1f} m² free, "
        f"{made.occupied_m2:.1f} m² occupied, {made.triangles:,} triangles"
    )
    if mesh and (made.objects or made.unseen):
        missing = f"; not seen there: {', '.join(made.unseen)}" if made.unseen else ""
        total = len(made.objects) + len(made.unseen)
        say(f"objects of {frames.scene.name}: {len(made.objects)} of {total}{missing}")
    if mesh:
        next_steps(out)


def align(
    scan: Annotated[Path, typer.Argument(help="A .glb, .gltf, .obj, .dae, .stl, .ply, or a Gazebo world.")],
    map_: Annotated[
        str, typer.Option("--map", help="The robot's map: a scene, or a map.yaml.", autocompletion=completion.scenes)
    ],
    out: Annotated[Path | None, typer.Option(help="Scene folder to write, in the map's frame.")] = None,
    up: Annotated[str | None, typer.Option(help="Upward axis: x, y, z, -x, -y, -z [default: found].")] = None,
    scale: Annotated[float, typer.Option(help="Meters per unit of the scan.")] = 1.0,
    initial: Annotated[str | None, typer.Option(metavar="X,Y,DEG", help="Approximate pose of the scan.")] = None,
    picture: Annotated[Path | None, typer.Option(help="PNG of the scan over the map.")] = None,
    view_points: Annotated[bool, typer.Option(help="Compute the view points that ObjectNav needs.")] = True,
) -> None:
    """Find where a scan lies in the robot's map, and import it there.

    Examples:
        robot-runtime scene align scan.glb --map scenes/lab_map --out scenes/lab
        robot-runtime scene align scan.ply --map map.yaml --initial 1.5,0,180 --picture aligned.png
    """
    from robot_runtime.common.console import console, say
    from sim_bridge.reconstruction.figures import draw_registration
    from sim_bridge.reconstruction.scan_import import align_scan, import_aligned, load_map
    from sim_bridge.scenes.importer import ImportOptions
    from sim_bridge.scenes.pieces import UPRIGHT

    if up is not None and up not in UPRIGHT:
        raise ConfigError(f"--up {up!r} is not an axis", f"use one of {', '.join(UPRIGHT)}")
    occupancy, known = load_map(map_)
    notes: list[str] = []
    with shown_progress() as progress:
        result = align_scan(scan, occupancy, map_, up, scale, _pose(initial), progress)
        if out is not None:
            notes = import_aligned(result, known, out, ImportOptions(scale=scale, view_points=view_points), progress)
    for note in notes:
        say(f"note: {note}")
    best, pose = result.best, result.best.map_from_scan
    tilted = f", {result.scan.tilt_deg:.1f}° out of level" if result.scan.tilt_deg > 0.05 else ""
    say(f"{scan}: axis {result.scan.up} up{tilted}")
    console.print(
        f"  pose in map        x {pose.x_m:.3f} m   y {pose.y_m:.3f} m   yaw {math.degrees(pose.yaw_rad):.2f}°"
    )
    console.print(f"  border explained   {best.inlier_share:.0%}, to {1000 * best.rms_m:.0f} mm rms")
    console.print(f"  on free floor      {best.contradicted_share:.1%} of the scan")
    console.print(f"  next best answer   {result.ambiguity:.0%} of the score")
    if picture is not None:
        draw_registration(picture, result)
        say(f"{picture}: the scan over the map")
    if out is not None:
        say(f"{out}: imported in the frame of {map_}")
        next_steps(out)


def diff(
    scene: Annotated[str, typer.Argument(help="Scene with meshes.", autocompletion=completion.scenes)],
    logs: Annotated[list[Path], typer.Argument(help="Logs, or folders of logs, of the same place.")],
    json: options.Json = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as one page.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Write the map of the changes as PNG.")] = None,
    min_size_m: Annotated[float, typer.Option(min=0.05, help="Longest edge of the smallest change.")] = 0.15,
    max_depth_m: MaxDepth = 4.0,
    min_observations: MinObservations = 2,
    poses: Poses = "logged",
) -> None:
    """List what has changed in a place since its scene was made: gone, new, possibly moved and how far.

    Examples:
        robot-runtime scene diff scenes/lab logs/today
        robot-runtime scene diff scenes/lab logs/today --html changes.html --json changes.json
    """
    from rich.table import Table

    from robot_runtime.common.console import console, say
    from robot_runtime.recording.json_output import write_json
    from robot_runtime.recording.log_files import find_logs
    from robot_runtime.scenes.scene import find_scene, load_scene
    from sim_bridge.reconstruction.change_detection import find_changes
    from sim_bridge.reconstruction.figures import COLUMNS, change_rows, draw_changes, write_changes_page
    from sim_bridge.reconstruction.logged_frames import FrameSequence

    known = load_scene(find_scene(scene))
    frames = FrameSequence(find_logs(logs), poses, max_depth_m)
    with shown_progress() as progress:
        found = find_changes(known, frames, min_size_m, min_observations, progress)
    for note in found.notes:
        say(f"note: {note}")
    say(
        f"{known.name}: {found.frames} frames of {len(found.logs)} logs agree in {found.equal_share:.1%} of the pixels "
        f"and show {found.seen_share:.0%} of the free floor"
    )
    if found.changes:
        table = Table(*COLUMNS, box=None)
        for row in change_rows(found):
            table.add_row(*row)
        console.print(table)
    else:
        console.print("nothing has changed in what was seen")
    if found.unseen:
        say(f"not seen, so not known: {', '.join(found.unseen)}")
    write_json(json, found.to_json())
    if html is not None:
        write_changes_page(html, known, found)
        say(f"{html}: the page")
    if picture is not None:
        draw_changes(picture, known, found)
        say(f"{picture}: the map of the changes")


def _pose(text: str | None) -> SE2 | None:
    from robot_runtime.common.geometry import SE2

    if text is None:
        return None
    try:
        x_m, y_m, yaw_deg = (float(word) for word in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--initial {text!r} is not X,Y,DEG", "write meters and degrees, such as 1.5,0,180"
        ) from error
    return SE2(x_m, y_m, math.radians(yaw_deg))
