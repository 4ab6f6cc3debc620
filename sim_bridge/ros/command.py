"""The command ``python -m sim_bridge.ros``: a simulated robot on ROS 1 or ROS 2, as its family says.

On ROS 1 it needs a running master. docs/robots/locobot-ros.md lists its topics, services and faults.
"""

import importlib
import math
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Annotated, Any

import typer

from drivers.ros.topics import ROS_2_FAMILIES
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.common.threads import short_collections
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.hal import Intrinsics
from robot_runtime.robots.camera_mount import load_mount
from robot_runtime.robots.loader import read_robot_file
from robot_runtime.scenes.scene import find_scene, load_scene
from sim_bridge.robot.driver import SimOptions
from sim_bridge.ros.localizer_topics import LOCALIZERS
from sim_bridge.ros.robot import RosRobotOptions
from sim_bridge.ros.robot_variants import VARIANTS, DriverTiming, robot_variant

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def run(
    scene: Annotated[str, typer.Option(help="Scene folder, or the name of a bundled scene.")] = "apartment",
    kind: Annotated[str, typer.Option("--family", help=f"Kind of robot: {', '.join(VARIANTS)}.")] = "pyrobot-kobuki",
    robot_name: Annotated[str, typer.Option(help="Namespace of an Interbotix robot.")] = "locobot",
    robot: Annotated[str, typer.Option(help="Noise and limits: a simulated robot's preset or YAML file.")] = "sim",
    seed: Annotated[int, typer.Option(min=0, help="Of all random errors.")] = 0,
    clock: Annotated[str, typer.Option(help="sim (publishes /clock) or real (the wall clock).")] = "sim",
    rate: Annotated[float, typer.Option(help="Simulated seconds per real second, with --clock sim.")] = 1.0,
    mount: Annotated[str, typer.Option(help="Camera mount: preset of launch/mounts, or YAML file.")] = "habitat",
    camera: Annotated[str, typer.Option(help="WIDTHxHEIGHT@HFOV in pixels and degrees.")] = "640x480@79",
    localizer: Annotated[str, typer.Option(help=f"Localizer: {', '.join(LOCALIZERS)}.")] = "amcl",
    start: Annotated[str, typer.Option(help="X,Y,YAW in map, meters and degrees [default: the roomiest place].")] = "",
    manner: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE of robot_variants.DriverTiming; repeatable.")
    ] = None,
    die_with_stdin: Annotated[bool, typer.Option(help="End when standard input closes.")] = False,
) -> None:
    """Simulate a robot on ROS 1 or ROS 2, as its family says.

    Examples:
        python -m sim_bridge.ros --scene apartment --family pyrobot-kobuki

        python -m sim_bridge.ros --family turtlebot4-jazzy

        python -m sim_bridge.ros --family interbotix --robot sim-noisy --clock real --manner command_timeout_s=0.6
    """
    if clock not in ("sim", "real"):
        raise ConfigError(f"--clock {clock!r} is not a clock", "use sim or real")
    loaded_scene = load_scene(find_scene(scene))
    path, file = read_robot_file(robot)
    variant = robot_variant(kind, robot_name)
    options = RosRobotOptions(
        variant=replace(variant, timing=parse_timing(variant.timing, manner or [])),
        mount=load_mount(config.find_preset("mounts", mount)),
        sim=config.parse(file.options, SimOptions, f"{path}: options"),
        intrinsics=parse_camera(camera),
        localizer=localizer,
        simulated_clock=clock == "sim",
        rate=rate,
        seed=seed,
    )
    pose = parse_start(start) if start else SE2(*loaded_scene.map.most_open_point())
    node = node_module(kind)
    network = node.join(options.simulated_clock)
    if die_with_stdin:
        threading.Thread(target=_end_with_stdin, args=(network.close,), name="stdin", daemon=True).start()
    simulated = node.make_robot(loaded_scene, options, network)
    simulated.place(pose, 0.0)
    print(f"ready: {kind} LoCoBot in {loaded_scene.name!r} at {pose.x_m:.2f}, {pose.y_m:.2f}", flush=True)
    with short_collections():
        simulated.run()


def node_module(family: str) -> Any:
    """Return the module of the family's generation of ROS, with ``join``, ``make_robot`` and ``arguments``."""
    return importlib.import_module("sim_bridge.ros2.node" if family in ROS_2_FAMILIES else "sim_bridge.ros.node")


def parse_timing(timing: DriverTiming, changes: list[str]) -> DriverTiming:
    """Return the timing with changes of the form NAME=VALUE. Raises ``ConfigError``."""
    values: dict[str, Any] = asdict(timing)
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--manner {change!r} is not of the form NAME=VALUE", "write e.g. command_timeout_s=0.6")
        values[name] = config.parse_yaml(value, f"--manner {name}")
    return config.parse(values, DriverTiming, "--manner")


def parse_camera(text: str) -> Intrinsics:
    """Return the ideal pinhole that ``WIDTHxHEIGHT@HFOV`` describes. Raises ``ConfigError``."""
    match = re.fullmatch(r"(\d{2,4})x(\d{2,4})@(\d{1,3}(?:\.\d+)?)", text)
    if not match or not 0 < float(match[3]) < 180:
        raise ConfigError(f"--camera {text!r} is not WIDTHxHEIGHT@HFOV", "write e.g. 640x480@79")
    return Intrinsics.from_hfov(int(match[1]), int(match[2]), float(match[3]))


def parse_start(text: str) -> SE2:
    """Return the pose that ``X,Y,YAW`` describes, yaw in degrees. Raises ``ConfigError``."""
    try:
        x_m, y_m, yaw_deg = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--start {text!r} is not X,Y,YAW", "write e.g. 1.5,-0.2,90") from None
    return SE2(x_m, y_m, math.radians(yaw_deg))


def _end_with_stdin(end: Callable[[], None]) -> None:
    sys.stdin.read()
    end()


def main() -> int:
    """Run the command; print a fault and its remedy, as ``robot-runtime`` does."""
    family = next((b for a, b in pairwise(sys.argv) if a == "--family"), "pyrobot-kobuki")
    try:
        code = app(args=node_module(family).arguments(), standalone_mode=False)
    except RuntimeFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return fault.exit_code
    except typer.TyperException as error:
        print(f"error: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    return code if isinstance(code, int) else 0
