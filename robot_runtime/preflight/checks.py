"""Preflight checks: one finding per property of the robot, with the expected cost of a difference.

Published costs of a wrongly mounted camera (``rpartsey/pointgoal-navigation``, ``Sim2real_Debug.md`` at 186c2b2): a
PointNav checkpoint, trained with its camera at 0.88 m and -20 degrees, evaluated on Gibson's val_mini with true
localization:

=========  ========  =====  ========
height     tilt      SPL    success
=========  ========  =====  ========
0.88 m     -20°      0.75   0.98
0.61 m     -20°      0.67   0.88
0.88 m     0°        0.10   0.24
0.61 m     0°        0.17   0.37
=========  ========  =====  ========

and 0.01 at 0.88 m and -20° for one trained at 1.25 m. Proportions between these points are guesses, and marked as such.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import DeviceFault, PolicyMismatch
from robot_runtime.hal import CameraInfo, Robot
from robot_runtime.imaging.camera import SourceCamera
from robot_runtime.policies.package.compatibility import TILT_TOLERANCE_DEG
from robot_runtime.preflight.observe import StartView
from robot_runtime.robots.action_errors import MOVES, ActuationModel
from robot_runtime.tasks.task import HEIGHT_TOLERANCE_M, HFOV_TOLERANCE_DEG, Task, TrainingCamera

Status = Literal["ok", "note", "refused"]

FLOOR_HEIGHT_TOLERANCE_M = 0.03
FLOOR_ANGLE_TOLERANCE_DEG = 1.5
"""Wider than for calibrated values, because the floor is measured with the sensor's errors, and may slope."""

RADIUS_TOLERANCE_M = 0.02

STEP_TOLERANCE = 0.1
"""Largest relative error of a step's mean: a larger odometry error affects every point goal."""

SHORT_CONTACT_MM = 5.0
"""A simulator's robot rests where it touches; the travel of a base with hardly any delay."""

TILT_DEG, TILT_POINTS = 20.0, 74
HEIGHT_M, HEIGHT_POINTS = 0.27, 10
HIGH_M, HIGH_POINTS = 0.37, 97
"""A camera that is lower than in training by this much, with another checkpoint."""

MOST_POINTS = 97

COMPUTED, UNKNOWN = "computed", "not known"
PUBLISHED = "rpartsey/pointgoal-navigation, Sim2real_Debug.md at 186c2b2"

IMAGES = frozenset({"rgb", "depth", "semantic", "imagegoal"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table.

    Attributes:
        what: the property.
        trained: value in training, with unit.
        found: value of the robot, with unit.
        status: status of the comparison.
        effect: expected cost of the difference; empty where there is none.
        remedy: one imperative sentence.
        source: origin of the cost.
    """

    what: str
    trained: str
    found: str
    status: Status = "ok"
    effect: str = ""
    remedy: str = ""
    source: str = COMPUTED


def findings(
    needs: Sequence[str],
    trained: Task,
    task: Task,
    robot: Robot,
    view: StartView | None,
    measured: ActuationModel | None = None,
) -> list[Finding]:
    """Compare a robot with a policy's training.

    Args:
        needs: the policy's sensors.
        trained: the task of the training.
        task: the task to run.
        robot: connected, if ``view`` is given.
        view: view with the head as at an episode's start; None for a policy without images.
        measured: calibrated errors of the robot's actions.
    """
    rows = list(_actions(trained, task, robot))
    if measured is not None:
        rows += _measured_steps(trained, measured)
    if view is not None and IMAGES & set(needs):
        camera, info = trained.camera, robot.camera.info
        rows += _pinhole(camera, info)
        rows += _camera_pose(camera, robot, view)
        if "depth" in needs:
            rows += _depth(camera, info)
        rows += _sensors(robot, needs, camera)
    return rows


def battery(robot: Robot) -> Finding:
    """The battery of a connected robot, against what an episode needs. Raises ``StaleData``."""
    state = robot.base_state()
    needed = f"at least {100 * robot.min_battery_fraction:.0f} %"
    low = state.battery_fraction < robot.min_battery_fraction
    return Finding("battery", needed, state.battery, "refused" if low else "ok", "no episode begins" if low else "")


def after_contact(robot: Robot) -> Finding:
    """Distance that the robot still drives after a contact, by the delays of its motors and reports."""
    known, info = robot.base.motors, robot.base.info
    speed_m_s = robot.motion.forward_m_s(info, known.model)
    travel_mm = 1000 * known.model.travel_m(speed_m_s, 1 / info.rate_hz)
    found = f"{travel_mm:.0f} mm at {speed_m_s:.2f} m/s{'' if known.calibrated else ', assumed'}"
    far = travel_mm > SHORT_CONTACT_MM
    effect = "it pushes what it touches" if far else ""
    remedy = "set `motion: {contact_travel_m: 0.005}` in the robot's file for slow steps that do not" if far else ""
    return Finding("after contact", f"{SHORT_CONTACT_MM:g} mm", found, "note" if far else "ok", effect, remedy)


def faulty(fault: DeviceFault) -> Finding:
    """What keeps the robot from being connected or read."""
    return Finding("connection", "", fault.message, "refused", "no episode begins", fault.remedy)


def check_findings(policy: str, rows: Sequence[Finding]) -> None:
    """Raise ``PolicyMismatch`` naming every refused finding, with the remedies."""
    refused = [finding for finding in rows if finding.status == "refused"]
    if refused:
        what = "; ".join(f"{row.what}: trained with {row.trained}, found {row.found}" for row in refused)
        raise PolicyMismatch(
            f"policy {policy!r} was not trained on this robot: {what}",
            "; ".join(dict.fromkeys(row.remedy for row in refused)),
        )


def _finding(
    what: str, trained: str, found: str, differs: bool, effect: str, remedy: str, source: str = COMPUTED
) -> Finding:
    return Finding(what, trained, found, *(("refused", effect, remedy, source) if differs else ()))


def _actions(trained: Task, task: Task, robot: Robot) -> Iterator[Finding]:
    for what, unit, field, actions in (
        ("forward step", "m", "forward_m", (Action.MOVE_FORWARD,)),
        ("turn", "°", "turn_deg", (Action.TURN_LEFT, Action.TURN_RIGHT)),
        ("tilt step", "°", "tilt_deg", (Action.LOOK_UP, Action.LOOK_DOWN)),
    ):
        if not any(action in trained.actions for action in actions):
            continue
        before, now = getattr(trained.magnitudes, field), getattr(task.magnitudes, field)
        space = "" if unit == "°" else " "
        yield _finding(
            what,
            f"{before:g}{space}{unit}",
            f"{now:g}{space}{unit}",
            before != now,
            f"every such step leads {100 * abs(now / before - 1):.0f} % {'farther' if now > before else 'less far'}"
            if before
            else "",
            "run the policy in its own task, without --task",
        )
    radius_m, own_m = robot.base.info.radius_m, trained.robot_radius_m
    differs = abs(radius_m - own_m) > RADIUS_TOLERANCE_M
    effect = "it touches obstacles that it passed in training" if radius_m > own_m else "gaps count as too narrow"
    yield Finding(
        "robot's radius", f"{own_m:.2f} m", f"{radius_m:.2f} m", "note" if differs else "ok", effect if differs else ""
    )


def _measured_steps(trained: Task, measured: ActuationModel) -> Iterator[Finding]:
    """Means and standard deviations of the robot's actions."""
    step_m, turn_deg = trained.magnitudes.forward_m, trained.magnitudes.turn_deg
    for action in MOVES:
        if action not in trained.actions:
            continue
        error = measured.actions[action.name.lower()]
        deviations = np.sqrt(np.diag(error.matrix))
        what, remedy = f"{action.value}, as measured", "`robot-runtime calibrate odometry`, then `calibrate actuation`"
        if action is Action.MOVE_FORWARD:
            off = measured.forward_m + error.mean[0] - step_m
            found = f"{step_m + off:.3f} m ± {1000 * deviations[0]:.0f} mm"
            share, trained_text = abs(off) / step_m, f"{step_m:g} m"
            effect = f"after 10 m the robot is {10 * abs(off) / step_m:.1f} m from where its steps say"
        else:
            sign = 1 if action is Action.TURN_LEFT else -1
            off = measured.turn_deg + sign * math.degrees(error.mean[2]) - turn_deg
            found = f"{turn_deg + off:.2f}° ± {math.degrees(deviations[2]):.2f}°"
            share, trained_text = abs(off) / turn_deg, f"{turn_deg:g}°"
            effect = f"after a full turn the robot looks {abs(off) * 360 / turn_deg:.0f}° past where its steps say"
        differs = share > STEP_TOLERANCE
        yield _finding(what, trained_text, found, differs, f"{effect}; no published measurement", remedy)


def _pinhole(camera: TrainingCamera, info: CameraInfo) -> Iterator[Finding]:
    k = info.intrinsics
    yield _finding(
        "image",
        f"{camera.width}x{camera.height}",
        f"{k.width}x{k.height}",
        (k.width, k.height) != (camera.width, camera.height),
        "the network takes no other size",
        "choose that mode in the robot's YAML, or a camera of launch/cameras: those make any size",
    )
    yield _finding(
        "horizontal field of view",
        f"{camera.hfov_deg:.1f}°",
        f"{k.hfov_deg:.1f}°",
        abs(k.hfov_deg - camera.hfov_deg) > HFOV_TOLERANCE_DEG,
        cost_of_hfov(camera.hfov_deg, k.hfov_deg),
        "choose a camera of launch/cameras: those make any field of view that the sensor covers",
    )


def _camera_pose(camera: TrainingCamera, robot: Robot, view: StartView) -> Iterator[Finding]:
    """Height and tilt: as calibrated and commanded, and as the floor shows them."""

    def height(by: str, height_m: float, tolerance_m: float) -> Finding:
        off_m = height_m - camera.height_m
        trained, effect = f"{camera.height_m:.2f} m", cost_of_height(off_m)
        remedy = "mount the camera at that height, then `robot-runtime calibrate extrinsics`"
        differs, what = abs(off_m) > tolerance_m, f"camera height, {by}"
        return _finding(what, trained, f"{height_m:.2f} m", differs, effect, remedy, PUBLISHED)

    def tilt(by: str, tilt_deg: float, tolerance_deg: float, remedy: str) -> Finding:
        off_deg = tilt_deg - camera.tilt_deg
        trained, found, effect = f"{camera.tilt_deg:+.1f}°", f"{tilt_deg:+.1f}°", cost_of_tilt(off_deg)
        differs = abs(off_deg) > tolerance_deg
        return _finding(f"camera tilt, {by}", trained, found, differs, effect, remedy, PUBLISHED)

    servo_remedy = "`robot-runtime calibrate tilt-servo`, and check that the head reaches that tilt"
    yield height("as calibrated", robot.camera.info.mount.z_m, HEIGHT_TOLERANCE_M)
    yield tilt("as the head says", math.degrees(view.tilt_rad), TILT_TOLERANCE_DEG, servo_remedy)
    floor = view.floor
    if floor is None:
        yield Finding(
            "camera's place, as the floor says",
            "",
            "no floor in sight",
            "note",
            "height and tilt are what the calibration says, unchecked",
            "move the robot to where it sees two meters of free floor",
        )
        return
    mount_remedy = "`robot-runtime calibrate extrinsics`, and name the file it writes under 'mount'"
    yield height("as the floor says", floor.height_m, FLOOR_HEIGHT_TOLERANCE_M)
    yield tilt("as the floor says", math.degrees(floor.tilt_rad), FLOOR_ANGLE_TOLERANCE_DEG, mount_remedy)
    roll_deg = math.degrees(floor.roll_rad)
    differs, effect = abs(roll_deg) > FLOOR_ANGLE_TOLERANCE_DEG, "the horizon is not level; no published measurement"
    yield _finding(
        "camera roll, as the floor says", "+0.0°", f"{roll_deg:+.1f}°", differs, effect, mount_remedy, UNKNOWN
    )


def _depth(camera: TrainingCamera, info: CameraInfo) -> Iterator[Finding]:
    trained = f"{camera.depth_min_m:g} to {camera.depth_max_m:g} m"
    if not info.has_depth:
        yield Finding("depth", trained, "none", "refused", "the policy sees nothing", "use an RGB-D camera")
        return
    found = f"{info.depth_min_m:g} to {info.depth_max_m:g} m"
    holes_near = camera.depth_holes == "zero"
    # The sensor has holes outside its range; the policy's rule decides whether they are near or far.
    if info.depth_max_m < camera.depth_max_m and holes_near:
        yield Finding(
            "depth range",
            trained,
            found,
            "refused",
            f"beyond {info.depth_max_m:g} m are holes. Holes have the smallest depth, like a wall",
            "set 'depth_holes: max' in the policy's task, or use a sensor with a longer range",
        )
    elif info.depth_min_m > camera.depth_min_m and not holes_near:
        yield Finding(
            "depth range",
            trained,
            found,
            "note",
            f"nearer than {info.depth_min_m:g} m are holes. Holes have the largest depth: it may drive into a wall",
            "use a sensor with a shorter minimum range",
        )
    else:
        yield Finding("depth range", trained, found)


def _sensors(robot: Robot, needs: Sequence[str], trained: TrainingCamera) -> Iterator[Finding]:
    """Coverage of the image by each sensor, and the origin of the lenses' calibration."""
    camera = robot.camera
    if not isinstance(camera, SourceCamera):
        return
    for part in camera.coverage():
        name = "rgb" if part.mode.sensor == "color" else "depth"
        if name in needs:
            effect = "" if part.fraction > 0.995 else _uncovered_effect(name, trained)
            yield Finding(
                f"{part.mode.sensor} fills the image ({part.mode.name})",
                "100 %",
                f"{100 * part.fraction:.0f} %",
                "note" if effect else "ok",
                effect,
            )
    source = camera.calibration.source
    unknown = source == "nominal"
    yield Finding(
        "lenses calibrated by",
        "",
        source,
        "note" if unknown else "ok",
        "the datasheet's field of view can be off by degrees" if unknown else "",
        "`robot-runtime calibrate intrinsics`, and name the file it writes under 'imaging.calibration'"
        if unknown
        else "",
    )


def _uncovered_effect(sensor: str, trained: TrainingCamera) -> str:
    if sensor == "rgb":
        return "the rest is black"
    return f"the rest is holes, with the {'smallest' if trained.depth_holes == 'zero' else 'largest'} depth"


def cost_of_tilt(difference_deg: float) -> str:
    """Expected effect of a tilt error."""
    points = min(MOST_POINTS, TILT_POINTS * abs(difference_deg) / TILT_DEG)
    return f"20° cost a policy {TILT_POINTS} points of success (98 to 24 %); in proportion {points:.0f}"


def cost_of_height(difference_m: float) -> str:
    """Expected effect of a height error."""
    off_m = abs(difference_m)
    least, most = HEIGHT_POINTS * off_m / HEIGHT_M, HIGH_POINTS * off_m / HIGH_M
    return (
        f"0.27 m cost one policy {HEIGHT_POINTS} points of success, 0.37 m another {HIGH_POINTS}; in proportion "
        f"{min(MOST_POINTS, least):.0f} to {min(MOST_POINTS, most):.0f}"
    )


def cost_of_hfov(trained_deg: float, measured_deg: float) -> str:
    """Effect of another field of view; no measurement of it is published."""
    scale = math.tan(math.radians(trained_deg) / 2) / math.tan(math.radians(measured_deg) / 2)
    change = f"{100 * abs(scale - 1):.0f} % {'larger' if scale > 1 else 'smaller'}"
    return f"everything appears {change}, so distances by color are wrong by as much; no published measurement"
