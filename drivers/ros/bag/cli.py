"""The commands ``robot-runtime export bag`` and ``robot-runtime logs import``: logs to bags, and bags to logs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from drivers.ros.topics import Ros1Family, Ros2Robot
from robot_runtime.cli_options import completion
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError, DriverMissing, EpisodeError, RecordingError
from robot_runtime.export.cli.formats import write_each

if TYPE_CHECKING:
    from drivers.ros.bag.episode_header import ImportOptions
    from drivers.ros.bag.reader import BagReader
    from drivers.ros.options import RobotOptions
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots.loader import RobotFile
    from robot_runtime.tasks.episode import Episode

Family = Literal[Ros1Family, Ros2Robot]
PRESETS: dict[Family, str] = {
    "pyrobot-kobuki": "locobot-ros-pyrobot",
    "pyrobot-create": "locobot-ros-create",
    "interbotix": "locobot-ros-interbotix",
    **{family: family for family in get_args(Ros2Robot)},
}
"""Robots of ``launch/robots`` by family."""


class Storage(str, Enum):
    """Format of a bag of ROS 2."""

    MCAP = "mcap"
    SQLITE3 = "sqlite3"


class PoseSource(str, Enum):
    """Source of the robot's poses."""

    ROBOT = "robot"
    ODOMETRY = "odometry"


class OptionalData(str, Enum):
    """Part of a log that a bag may lack."""

    DEPTH = "depth"
    HEAD = "head"
    CONTACT = "contact"


def register(groups: dict[str, typer.Typer]) -> None:
    """Add ``export bag``."""
    groups["export"].command("bag")(export_bag)


def register_import(groups: dict[str, typer.Typer]) -> None:
    """Add ``logs import``."""
    groups["logs"].command("import")(import_)


def export_bag(
    logs: Annotated[list[Path], typer.Argument(help="Log files, or folders of them.")],
    out: Annotated[
        Path, typer.Option(help="The bag to write, NAME.bag (ROS 1); else a folder, with one bag for each log.")
    ],
    family: Annotated[Family, typer.Option(help="Robot whose topics, and whose ROS, are written.")] = "pyrobot-kobuki",
    robot_name: Annotated[str, typer.Option(help="Namespace of an Interbotix robot.")] = "locobot",
    storage: Annotated[Storage, typer.Option(help="Format of a bag of ROS 2.")] = Storage.MCAP,
) -> None:
    """Write logs as bags of ROS 1 or 2, for rviz, rqt, Foxglove and other tools.

    Examples:
        robot-runtime export bag logs/run/0000_apartment_0.mcap --out drive.bag
        robot-runtime export bag logs/run --out bags --family interbotix
        robot-runtime export bag logs/run --out bags --family turtlebot4-jazzy --storage sqlite3
    """
    _require_rosbags()
    from drivers.ros.bag.export import export_log
    from drivers.ros.bag.topic_layout import layout

    where = layout(family, robot_name)
    suffix = ".bag" if where.ros == 1 else ""
    write_each(logs, out, suffix, lambda log, bag, on_step: export_log(log, bag, where, on_step, storage.value))


@dataclass(frozen=True)
class DriveOptions:
    """The task, scene and episode that were driven."""

    task: Annotated[
        str | None,
        typer.Option(
            help="Task whose actions were driven, one between any two pauses. Default: none; steps are then waypoints.",
            autocompletion=completion.tasks,
        ),
    ] = None
    scene: Annotated[
        str | None, typer.Option(help="Scene folder, or the name of a bundled scene.", autocompletion=completion.scenes)
    ] = None
    episodes: Annotated[Path | None, typer.Option(help="Episode file with the episode that was driven.")] = None
    episode: Annotated[str | None, typer.Option(help="Its id; not needed if the file has one.", metavar="ID")] = None
    agent: Annotated[str, typer.Option(help="Name of the driver, for the log.")] = "drive"


@dataclass(frozen=True)
class StepOptions:
    """Division of a drive into steps."""

    tolerance: Annotated[
        float, typer.Option(min=0.01, max=0.5, help="Share of its size by which an action may be missed.")
    ] = 0.2
    min_rest_s: Annotated[float, typer.Option(min=0.02, help="Seconds: the shortest pause between two actions.")] = 0.15
    every_m: Annotated[float, typer.Option(min=0.01, help="Without a task: meters between two steps.")] = 0.25
    every_deg: Annotated[float, typer.Option(min=1.0, help="Without a task: degrees between two steps.")] = 30.0
    stop: Annotated[bool, typer.Option("--stop", help="The driver called stop at the end.")] = False


@dataclass(frozen=True)
class BagOptions:
    """Content of the bag."""

    robot: Annotated[
        str | None,
        typer.Option(
            help="Robot preset or YAML file: topics, camera mount, localizers. Default: by the topics of the bag.",
            autocompletion=completion.robots,
        ),
    ] = None
    poses: Annotated[
        PoseSource, typer.Option(help="Source of poses: the localizers of the robot's YAML, or odometry alone.")
    ] = PoseSource.ROBOT
    without: Annotated[list[OptionalData] | None, typer.Option(help="Data that bag and log lack; repeatable.")] = None
    any_camera: Annotated[
        bool,
        typer.Option("--any-camera", help="Replace the task's camera by the bag's, and add that to the task's name."),
    ] = False


@grouped_options
def import_(
    *,
    rosbag: Annotated[Path, typer.Option(help="Bag of a robot's drive: a file of ROS 1, a folder or file of ROS 2.")],
    out: Annotated[Path, typer.Option(help="Folder for the log.")] = Path("logs/imported"),
    content: BagOptions,
    drive: DriveOptions,
    steps: StepOptions,
) -> None:
    """Make an episode log of a bag of ROS 1 or 2: of a teleoperated drive, or of another stack's drive.

    Examples:
        robot-runtime logs import --rosbag drive.bag --out logs/drive
        robot-runtime logs import --rosbag drive.bag --robot my_locobot.yaml --poses odometry
        robot-runtime logs import --rosbag drive.bag --task pointnav_habitat2020 --scene flat --episodes val.json --stop
    """
    _require_rosbags()
    from drivers.ros.bag.import_external import import_drive
    from drivers.ros.bag.reader import BagReader
    from robot_runtime.common.console import progress_bar, say

    with BagReader(rosbag) as bag, progress_bar() as progress:
        bar = progress.add_task(rosbag.name, total=None, note="steps")
        chosen = _import_options(bag, content, drive, steps)
        notes: list[str] = []
        log = _record(
            out, lambda recorder: import_drive(bag, chosen, recorder, lambda: progress.advance(bar), notes.append)
        )
    for note in notes:
        say(f"note: {note}")
    say(f"log: {log}")


def _import_options(bag: BagReader, content: BagOptions, drive: DriveOptions, steps: StepOptions) -> ImportOptions:
    from drivers.ros.bag.episode_header import ImportOptions
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    robot, ros = _robot(bag, content.robot)
    return ImportOptions(
        robot=robot,
        ros=ros,
        agent=drive.agent,
        task=None if drive.task is None else load_task(drive.task),
        scene=None if drive.scene is None else load_scene(find_scene(drive.scene)),
        episode=None if drive.episodes is None else _episode(drive.episodes, drive.episode),
        dataset=str(drive.episodes or ""),
        poses=content.poses.value,
        without=tuple(part.value for part in content.without or ()),
        tolerance=steps.tolerance,
        min_rest_s=steps.min_rest_s,
        every_m=steps.every_m,
        every_deg=steps.every_deg,
        stop=steps.stop,
        any_camera=content.any_camera,
    )


def _record(folder: Path, record: Callable[[Recorder], object]) -> Path:
    """Return the log that ``record`` writes; after an error there is none."""
    from robot_runtime.common.creating import creating
    from robot_runtime.recording.writer import Recorder

    with creating(folder) as draft:
        recorder = Recorder(draft)
        try:
            record(recorder)
            recorder.close()
        except BaseException:
            with suppress(RecordingError):
                recorder.close()
            if recorder.path is not None:
                recorder.path.unlink(missing_ok=True)
            raise
        assert recorder.path is not None
        return folder / recorder.path.name


def _robot(bag: BagReader, name: str | None) -> tuple[RobotFile, RobotOptions]:
    """Read the robot's YAML, by name or by the topics of the bag. Raises ``ConfigError``."""
    from robot_runtime.common import config
    from robot_runtime.robots.loader import read_robot_file

    path, file = read_robot_file(name or _preset(bag))
    if name is None and file.options["referee"].get("topic") not in bag.kinds:
        file = _real(file)
    drivers = {
        "drivers.ros_locobot.driver.make_robot": "drivers.ros_locobot.options.RosOptions",
        "drivers.ros2.driver.make_robot": "drivers.ros2.options.Ros2Options",
    }
    if file.driver not in drivers:
        raise ConfigError(
            f"{path}: field 'driver' is {file.driver!r}, not a robot on ROS",
            f"name one of {', '.join(PRESETS.values())}, or a YAML file with driver {' or '.join(drivers)}",
        )
    kind: type[RobotOptions] = config.resolve(drivers[file.driver], f"{path}: driver")
    return file, config.parse(file.options, kind, f"{path}: options")


def _real(file: RobotFile) -> RobotFile:
    """Return a preset with the lines marked "real": it has a simulated robot's camera mount, referee and placer."""
    options = file.options
    mounts = {"mount": options["family"]} if file.driver.startswith("drivers.ros_locobot") else {}
    real = {"camera": {**options["camera"], **mounts}, "referee": options["localizer"], "placer": {"by": "operator"}}
    return replace(file, options={**options, **real})


def _preset(bag: BagReader) -> str:
    from drivers.ros.bag.topic_layout import layout

    def count(family: Family) -> int:
        where = layout(family)
        names = attrgetter("velocity", "core", "bumper", "hazards", "odom", "color")(where.topics)
        return (where.ros == bag.ros) * sum(name in bag.kinds or name in bag.silent for name in names)

    best = max(PRESETS, key=count)
    if not count(best):
        raise ConfigError(
            f"{bag.path}: has no topic of a known robot's base; its topics: {', '.join(sorted(bag.kinds)) or 'none'}",
            "name its topics in a YAML file and give that with --robot",
        )
    return PRESETS[best]


def _episode(path: Path, wanted: str | None) -> Episode:
    from robot_runtime.datasets.files import load_episodes

    loaded = [episode for episode in load_episodes(path) if wanted in (None, episode.id)]
    if len(loaded) != 1:
        which = "episodes" if wanted is None else f"episodes {wanted!r}"
        raise EpisodeError(f"{path} has {len(loaded)} {which}, one is needed", "select one with --episode ID")
    return loaded[0]


def _require_rosbags() -> None:
    if importlib.util.find_spec("rosbags") is None:
        raise DriverMissing("bags need the package 'rosbags'", "pip install 'robot-runtime[ros]'")
