"""``robot-runtime jog``: one small motion of the robot for each key, without a task or a log."""

from __future__ import annotations

import math
import queue
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from typing_extensions import override

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from robot_runtime.actions.discrete import Displacement, Magnitudes
    from robot_runtime.hal import Robot
    from robot_runtime.records import ActionResult
    from robot_runtime.robots.loader import DeviceOverrides

BACKWARD = ("s", "down")
END = "f"
HELP = "w/↑ forward · s/↓ back · a/← d/→ turn · z up · c down · f end; one motion for each key"


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("jog")(jog)


@dataclass(frozen=True)
class JoggedRobot(options.RobotOption):
    """A robot of which only base and head are connected."""

    @property
    @override
    def parts(self) -> DeviceOverrides:
        return replace(super().parts, base_and_head=True)


@grouped_options
def jog(
    *,
    robot: JoggedRobot,
    scene: options.Scene = "apartment",
    step_m: Annotated[float, typer.Option(min=0.01, max=0.5, help="Length of a step.")] = 0.1,
    turn_deg: Annotated[float, typer.Option(min=1, max=90, help="Angle of a turn.")] = 15.0,
    tilt_deg: Annotated[float, typer.Option(min=1, max=45, help="Angle of a look.")] = 10.0,
    keys: Annotated[
        str | None, typer.Option(help="Keys to carry out, then end, for instance wwad. Default: the keyboard's.")
    ] = None,
) -> None:
    """Move the robot by keys: one press, one motion, within its limits and stopped by contact.

    Keys that are pressed during a motion do nothing, so the robot never moves after the hand has left the keyboard.
    The space bar is the emergency stop. No camera is needed, and no localizer.

    Examples:
        robot-runtime jog --robot my_robot.yaml
        robot-runtime jog --robot my_robot.yaml --keys wasd
    """
    from robot_runtime.actions.discrete import Magnitudes
    from robot_runtime.common.console import tell
    from robot_runtime.common.geometry import SE2
    from robot_runtime.estop.cli import stop_keys
    from robot_runtime.estop.requests import wait_for_release
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.scenes.scene import find_scene, load_scene

    if keys is None and not sys.stdin.isatty():
        raise ConfigError("jog: there is no keyboard", "run it in a terminal, or give the keys with --keys")
    magnitudes = Magnitudes(step_m, turn_deg, tilt_deg)
    if keys is not None and not any(displacement_of(key, magnitudes) for key in keys):
        raise ConfigError(f"jog: no key of --keys {keys!r} is a motion", "give keys of motions: --keys wasd")
    place = load_scene(find_scene(scene))
    with robot.load(RobotContext(place, None, seed=0, real_time=keys is None)) as connected:
        connected.clock.sleep(1.0)  # until every source has reported
        if connected.simulation is not None:
            connected.placer.place(SE2(*place.map.most_open_point(), 0.0), 0.0)
            connected.clock.sleep(0.5)  # until its bumper is reported from there
        if keys is not None:
            connected.check_ready()
            carry_out(connected, magnitudes, iter(keys))
            return
        pressed: queue.SimpleQueue[str] = queue.SimpleQueue()
        with stop_keys(connected, pressed.put):
            wait_for_release(connected, tell)
            connected.check_ready()
            tell(HELP)
            carry_out(connected, magnitudes, presses(pressed, connected))


def presses(pressed: queue.SimpleQueue[str], robot: Robot) -> Iterator[str]:
    """Yield the keys that are pressed while the robot rests; keeps its devices going meanwhile."""
    while True:
        while pressed.empty():
            robot.clock.sleep(0.02)
        yield pressed.get()
        while not pressed.empty():  # pressed during the motion
            pressed.get()


def carry_out(robot: Robot, magnitudes: Magnitudes, keys: Iterator[str]) -> None:
    """Carry out one motion for each key, and print its result, until the key ``f``.

    Raises:
        DeviceFault: the first error of a device in a motion, after the last key.
    """
    from robot_runtime.common.console import console
    from robot_runtime.motion.controller import MotionController

    motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
    fault = None
    for key in keys:
        if key == END:
            break
        asked = displacement_of(key, magnitudes)
        if asked is None:
            continue
        console.print(f"{key}: {_described(motion.execute(asked))}", soft_wrap=True, markup=False, highlight=False)
        fault = fault or motion.fault
    if fault is not None:
        raise fault


def displacement_of(key: str, magnitudes: Magnitudes) -> Displacement | None:
    """The motion of a key; None for other keys."""
    from robot_runtime.actions.discrete import Displacement
    from robot_runtime.policies.human.keys import KEYS

    if key in BACKWARD:
        return Displacement(forward_m=-magnitudes.forward_m)
    return magnitudes.displacement(KEYS[key]) if key in KEYS else None


def _described(result: ActionResult) -> str:
    """The measured motion and how it ended."""
    asked, measured = result.commanded, result.measured
    if asked.forward_m:
        moved = f"{measured.forward_m:+.3f} m"
    elif asked.turn_rad:
        moved = f"turn {math.degrees(measured.turn_rad):+.1f}°"
    else:
        moved = f"tilt {math.degrees(measured.tilt_rad):+.1f}°"
    return ", ".join(filter(None, (moved, result.outcome.value, result.detail)))
