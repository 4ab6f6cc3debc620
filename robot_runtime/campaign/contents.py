"""Contents of what a plan names: hashes of files, and resolved values, at the time at which a campaign begins.

A name says nothing about what stands behind it on the day of a run. The ledger's first line holds these contents, they
are printed for publication, and the verification compares each log's header with them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_runtime.campaign.counting import digest
from robot_runtime.campaign.plan import Plan, load_plan, parse_plan
from robot_runtime.campaign.schedule import EpisodeName
from robot_runtime.common import config
from robot_runtime.common.provenance import software
from robot_runtime.errors import ConfigError
from robot_runtime.policies import source_digest
from robot_runtime.recording.log_files import sha256_of
from robot_runtime.robots.calibration_file import calibrations_in
from robot_runtime.robots.loader import DeviceOverrides, read_robot_file
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from robot_runtime.tasks.task import Task

FIELD = "contents"
"""Field of a published plan, beside the plan's own."""


@dataclass(frozen=True)
class RobotContents(config.Strict):
    """Contents of a robot of the plan.

    Attributes:
        planned: the robot's entry in the plan.
        name: name in its file, as logs have it.
        file: its file, with camera, localizer and referee resolved, and the hashes of its calibrations.
    """

    planned: dict[str, Any]
    name: str
    file: dict[str, Any]


@dataclass(frozen=True)
class Contents(config.Strict):
    """Contents of all that a plan names.

    Attributes:
        episodes: SHA-256 of the file of episodes.
        starts: SHA-256 of the episodes' ids, scenes and keys, in order.
        task: task with the plan's limits.
        scenes: SHA-256 of each scene's content, by the episodes' scene name; see :func:`scene_sha256`.
        robots: robots in the plan's order.
        policies: SHA-256 of each policy's files, where it names any and is not sealed.
        software: versions of this program and of its libraries.
    """

    episodes: str
    starts: str
    task: dict[str, Any]
    scenes: dict[str, str]
    robots: tuple[RobotContents, ...]
    policies: dict[str, str]
    software: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """As JSON; :func:`parse_contents` is the inverse."""
        document: dict[str, Any] = config.unparse(self)
        return document

    def parsed_task(self) -> Task:
        """The task. Raises ``ConfigError``."""
        return config.parse(self.task, Task, "the task in the contents", recorded=True)


def parse_contents(document: Any, where: str) -> Contents:
    """Contents from JSON. Raises ``ConfigError``."""
    return config.parse(document, Contents, where, recorded=True)


def contents_of(plan: Plan, names: Iterable[EpisodeName]) -> Contents:
    """Contents of a plan's files as they are now. Raises ``RuntimeFault``: a file is missing or malformed."""
    listed = [[name.id, name.scene, name.key] for name in names]
    scenes = {str(scene): plan.scene(str(scene)) for _, scene, _ in listed}
    loaded = {folder: scene_sha256(load_scene(find_scene(folder))) for folder in set(scenes.values())}
    return Contents(
        episodes=episodes_sha256(plan),
        starts=digest(listed),
        task=config.unparse(plan.limited_task()),
        scenes={scene: loaded[folder] for scene, folder in sorted(scenes.items())},
        robots=tuple(_robot(plan, number) for number in range(len(plan.robots))),
        policies={
            name: sha256
            for name, planned in sorted(plan.policies.items())
            if not planned.commitment and (sha256 := source_digest(planned.source)) is not None
        },
        software=software(),
    )


def scene_sha256(scene: Scene) -> str:
    """SHA-256 of what a scene holds: the same for its folder and for a log that it was attached to."""
    area, points = scene.map, {name: config.unparse(list(poses)) for name, poses in scene.view_points.items()}
    layout = [area.digest.hex(), area.resolution_m, area.origin_x_m, area.origin_y_m]
    return digest([config.unparse(scene.file), layout, points])


def episodes_sha256(plan: Plan) -> str:
    """SHA-256 of the plan's file of episodes. Raises ``ConfigError``."""
    try:
        return sha256_of(Path(plan.episodes))
    except OSError as error:
        raise ConfigError(f"{plan.episodes}: cannot be read: {error.strerror}", "restore that file") from error


def _robot(plan: Plan, number: int) -> RobotContents:
    planned = plan.robots[number]
    _, file = read_robot_file(planned.robot, DeviceOverrides(planned.camera, planned.localizer, planned.referee))
    resolved = config.unparse(file)
    if calibrations := calibrations_in(resolved):
        resolved["calibrations"] = calibrations
    return RobotContents(config.unparse(planned), file.name, resolved)


def read_published(path: Path) -> tuple[Plan, Contents | None]:
    """A plan, and the contents with it where it is one that was written for publication. Raises ``ConfigError``."""
    document = config.read_yaml(path)
    if not (isinstance(document, dict) and FIELD in document):
        return load_plan(path), None
    stated = {name: value for name, value in document.items() if name != FIELD}
    return parse_plan(stated, str(path)), parse_contents(document[FIELD], str(path))


def published(plan: Plan, contents: Contents) -> dict[str, Any]:
    """The document to publish before a campaign; :func:`read_published` reads it."""
    return {**plan.document(), FIELD: contents.document()}
