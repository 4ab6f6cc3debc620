"""The kind of task ``vln``: follow a route in words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray
from typing_extensions import Self, override

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, EpisodeDetails, Goal
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor, goal_of, text_sensor, token_sensor
from robot_runtime.tasks.task import Task


@dataclass(frozen=True)
class Instruction(config.Strict):
    """A route in words (R2R, RxR).

    Attributes:
        text: the route in words.
        tokens: the dataset's own tokens, without padding; empty if it has none.
        language: language tag as the dataset writes it, e.g. ``en-US``; None if it states none.
        trajectory_id: identifier of the reference path that it describes; several instructions may share one.
    """

    text: str
    tokens: tuple[int, ...] = ()
    language: str | None = None
    trajectory_id: str | None = None


@dataclass(frozen=True)
class Route(EpisodeDetails, config.Strict):
    """What episodes of instruction following have besides the common fields.

    Attributes:
        instruction: the route in words.
        reference_path: the route as (x, y, z) points in map; empty if the dataset withholds it.
    """

    instruction: Instruction | None = None
    reference_path: tuple[tuple[float, float, float], ...] = ()

    @classmethod
    @override
    def from_yaml(cls, fields: Mapping[str, Any], path: Path, where: str) -> Self:
        points = fields.get("reference_path", [])
        if isinstance(points, list):  # points without height are on the floor
            points = [[*point, 0.0] if isinstance(point, list) and len(point) == 2 else point for point in points]
        return super().from_yaml({**fields, "reference_path": points}, path, where)

    @override
    def to_yaml(self) -> dict[str, Any]:
        record = super().to_yaml()
        points = [list(point if point[2] else point[:2]) for point in self.reference_path]
        return {**record, "reference_path": points} if points else record

    @property
    @override
    def words(self) -> str:
        return self.instruction.text if self.instruction else ""

    @property
    @override
    def has_end(self) -> bool:
        return bool(self.reference_path)

    @property
    @override
    def trajectory(self) -> str:
        return (self.instruction.trajectory_id or "") if self.instruction else ""

    @property
    @override
    def path_end(self) -> tuple[float, float, float] | None:
        return self.reference_path[-1] if self.reference_path else None

    @override
    def at_height(self, height_m: float) -> Self:
        return replace(self, reference_path=tuple((x_m, y_m, height_m) for x_m, y_m, _ in self.reference_path))


def instruction(episode: Episode) -> Instruction:
    """The instruction of the episode. Raises ``EpisodeError``: the episode has no instruction."""
    asked = Route.of(episode).instruction
    if asked is None or not asked.text.strip():
        raise EpisodeError(f"episode {episode.id!r}: has no instruction", "use episodes in R2R-CE's or RxR-CE's schema")
    return asked


def _in_habitat(seen: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The dictionary of ``InstructionSensor`` (habitat-lab ``tasks/vln/py``); the path's id is not shown."""
    tokens = seen.get("instruction_tokens")
    return {"instruction": {"text": str(seen["instruction"]), "tokens": None if tokens is None else tokens.tolist()}}


class Vln(TaskKind):
    """Vision-and-language navigation."""

    details_type: ClassVar[type] = Route
    sensors: ClassVar[Mapping[str, Sensor]] = {
        "instruction": text_sensor(
            "the route in words", lambda moment: goal_of(moment, Instruction).text, Instruction, _in_habitat
        ),
        # R2R-CE pads with 0.
        "instruction_tokens": token_sensor(
            "instruction", 0, lambda moment: goal_of(moment, Instruction).tokens, Instruction
        ),
    }

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        """The episode with the end of its reference path as goal, where its file states none.

        Raises:
            EpisodeError: it has no instruction, or neither goal nor reference path (the test splits have none).
        """
        instruction(episode)
        if episode.goals:
            return episode
        path = Route.of(episode).reference_path
        if not path:
            raise EpisodeError(
                f"episode {episode.id!r}: has neither goals nor a reference path, so nothing can be measured",
                "use a split that has them: R2R-CE and RxR-CE withhold those of 'test' and 'test_challenge'",
            )
        return replace(episode, goals=(Goal(*path[-1]),))

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return Route.of(episode).instruction


KIND = Vln()
