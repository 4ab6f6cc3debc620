"""Site with AprilTags on the floor and upright, viewed by a robot from several stations.

A person lays out the tags on a real site; this module places them in a simulated one.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from calibration import start_poses
from calibration.camera import figures
from calibration.camera.mount_fit import TagView
from calibration.camera.raw_images import View, point_head, rig_of, take_view
from calibration.camera.tag_corners import TagCornerDetector
from calibration.operator_guide import LIVE, Guide
from calibration.procedure import execute_motion
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import rotation_rpy, transform
from robot_runtime.hal import Robot
from robot_runtime.hal.printed_targets import Sheet
from robot_runtime.hal.simulation import Simulation
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.motion.controller import MotionController
from robot_runtime.scenes.tag_map import CELLS, tag_image

FLOOR_IDS = tuple(range(10))
"""Of tags that lie on the floor."""

FLOOR_M = ((0.45, 0.0), (0.6, 0.28), (0.7, -0.3), (0.95, 0.1), (1.25, -0.25), (1.3, 0.3), (1.65, 0.0))
"""Positions of tags 0, 1, ... on a simulated floor, relative to the robot: x ahead, y left."""

UPRIGHT_M = (
    (2.1, 0.35, 0.25),
    (2.2, -0.3, 0.55),
    (2.1, 0.1, 0.95),
    (2.2, -0.35, 1.3),
    (2.1, 0.3, 1.65),
    (2.2, -0.1, 2.0),
)
"""Positions of tags 10, 11, ... in a simulated room, turned towards the robot."""

TILTS_DEG = (-50.0, -38.0, -26.0, -14.0, -2.0, 10.0, 20.0)

MOVES = (
    Displacement(turn_rad=math.radians(30)),
    Displacement(turn_rad=math.radians(-60)),
    Displacement(turn_rad=math.radians(30)),
    Displacement(forward_m=0.25),
)
"""From one station to the next; the third ends where the first began."""

CELL_PX = 24
"""Pixels per cell of a simulated tag's image."""

STATE_AGE_S = 0.2


@dataclass(frozen=True, eq=False)
class SiteView:
    """One image of the site, with its detected tags."""

    tags: TagView
    view: View


def visit(
    robot: Robot, guide: Guide, size_m: float, tilts_deg: Sequence[float], moves: Sequence[Displacement] = MOVES
) -> Iterator[SiteView]:
    """Drive from station to station and yield the images at all tilts; images without tags are skipped.

    Raises:
        CalibrationFailed: a move was not completed.
        RuntimeFault: a device failed.
    """
    rig, detector = rig_of(robot.camera), TagCornerDetector()
    motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
    total, done = len(tilts_deg) * (len(moves) + 1), 0
    with _tags_in_place(robot, guide, size_m, moves):
        for station, move in enumerate((None, *moves)):
            if move is not None:
                _move(motion, move)
            for tilt_deg in tilts_deg if station % 2 == 0 else reversed(tilts_deg):
                done += 1
                seen = _take_site_view(robot, rig, detector, station, math.radians(tilt_deg))
                if seen is not None:
                    note = f"station {station}, tilt {tilt_deg:+.0f}°: {len(seen.tags.corners)} tags"
                    guide.picture(LIVE, figures.tags(seen.view.rgb, dict(seen.tags.corners), note))
                    guide.progress(done, total, note)
                    yield seen


def _take_site_view(
    robot: Robot, rig: RgbdCalibration, detector: TagCornerDetector, station: int, tilt_rad: float
) -> SiteView | None:
    limits = robot.head.limits
    if not limits.min_tilt_rad <= tilt_rad <= limits.max_tilt_rad:
        return None
    point_head(robot, 0.0, tilt_rad)
    view = take_view(robot, rig)
    corners = detector.detect(view.rgb, rig.color)
    if not corners:
        return None
    odom = robot.base.state(STATE_AGE_S).odom
    return SiteView(TagView(station, odom, view.head.pan_rad, view.head.tilt_rad, corners), view)


def _move(motion: MotionController, move: Displacement) -> None:
    remedy = "give the robot half a meter of free floor ahead and around it, and start again"
    execute_motion(motion, move, "a move of the calibration", remedy)


def describe_moves(moves: Sequence[Displacement]) -> str:
    """Describe moves in words for the operator."""
    words = []
    for move in moves:
        if move.turn_rad:
            words.append(f"turn {'left' if move.turn_rad > 0 else 'right'} by {abs(math.degrees(move.turn_rad)):.0f}°")
        else:
            words.append(f"drive {move.forward_m:g} m")
    return ", ".join(words)


@contextmanager
def _tags_in_place(robot: Robot, guide: Guide, size_m: float, moves: Sequence[Displacement]) -> Iterator[None]:
    if robot.simulation is None:
        guide.ask(
            f"Lay tags 0 to {len(FLOOR_M) - 1} flat on the floor, 0.4 to 1.7 m ahead of the robot, and put up some "
            f"of 10 and above 2 m ahead, up to 2 m high. The robot will {describe_moves(moves)}: clear its way"
        )
        yield
        return
    simulation = robot.simulation
    start = start_poses.open_start_pose(robot, simulation)
    names = hang_tags(simulation, start, size_m)
    try:
        yield
    finally:
        for name in names:
            simulation.sheets.pop(name, None)


def hang_tags(simulation: Simulation, start: SE2, size_m: float) -> list[str]:
    """Show the site's tags around a robot at ``start`` in ``map``, and return the sheets' names."""
    origin = transform((start.x_m, start.y_m, 0.0), rotation_rpy(0.0, 0.0, start.yaw_rad))
    poses = {}
    for number, (x_m, y_m) in enumerate(FLOOR_M):
        poses[number] = transform((x_m, y_m, 0.0), rotation_rpy(0.0, -math.pi / 2, 0.3 * number))
    for number, place in enumerate(UPRIGHT_M, start=10):
        poses[number] = transform(place, rotation_rpy(0.0, 0.0, math.pi + 0.25 * (-1) ** number))
    edge_m = size_m * (CELLS + 2) / CELLS
    for number, pose in poses.items():
        simulation.sheets[f"tag {number}"] = Sheet(tag_image(number, CELL_PX), edge_m, edge_m, origin @ pose)
    return [f"tag {number}" for number in poses]
