"""The paper's baselines with shortest-path navigation: the object memory, or the last frame alone, answers."""

from typing import ClassVar

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.policies.baselines.oracle import Oracle
from robot_runtime.policy import Observation, World
from robot_runtime.task_kinds.eqa.agents.memory_agent import EqaMemory
from robot_runtime.task_kinds.eqa.agents.object_memory import ObjectMemory
from robot_runtime.task_kinds.eqa.agents.reasoning import Conclusion
from robot_runtime.tasks.task import Task


class EqaShortestPath(EqaMemory):
    """Follows the shortest path to the target, and answers as :class:`EqaMemory` does.

    Args:
        last_frame: whether it remembers nothing but the last frame.
        answer_confidence: below this it abstains.
    """

    name = "eqa-shortest-path"
    privileged: ClassVar[bool] = True
    follows = False

    def __init__(self, last_frame: bool = False, answer_confidence: float = 0.5) -> None:
        super().__init__(1.0, answer_confidence)
        self._last_frame = last_frame
        self._oracle = Oracle()

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        super().reset(task, seed, world)
        self._oracle.reset(task, seed, world)

    @override
    def act(self, observation: Observation) -> Decision:
        if self._last_frame:
            self._memory = ObjectMemory(self._task.camera)
            self._conclusion = Conclusion(reason="the last frame shows nothing")
        self._observed = observation
        return super().act(observation)

    @override
    def _decide(self) -> Decision:
        return self._oracle.act(self._observed)
