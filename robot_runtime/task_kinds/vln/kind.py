"""The kind of task ``vln``: follow a route in words."""

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.vln import task as vln
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor, goal_of, text_sensor, token_sensor
from robot_runtime.tasks.task import Task


def _in_habitat(seen: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The dictionary of ``InstructionSensor`` (habitat-lab ``tasks/vln/vln.py``); the path's id is not shown."""
    tokens = seen.get("instruction_tokens")
    return {"instruction": {"text": str(seen["instruction"]), "tokens": None if tokens is None else tokens.tolist()}}


class Vln(TaskKind):
    """Vision-and-language navigation."""

    details_type: ClassVar[type] = vln.Route
    sensors: ClassVar[Mapping[str, Sensor]] = {
        "instruction": text_sensor(
            "the route in words", lambda moment: goal_of(moment, vln.Instruction).text, vln.Instruction, _in_habitat
        ),
        # R2R-CE pads with 0.
        "instruction_tokens": token_sensor(
            "instruction", 0, lambda moment: goal_of(moment, vln.Instruction).tokens, vln.Instruction
        ),
    }

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        return vln.resolve_goals(task, scene, episode)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return vln.Route.of(episode).instruction


KIND = Vln()
