"""The memory agent: it explores, remembers objects, and runs the question's program on what it remembers.

It needs no learned navigator and no network: depth becomes the classical agent's map, semantic pixels become objects
(:mod:`~robot_runtime.task_kinds.eqa.agents.object_memory`), and the question's functional program runs on them
(:mod:`~robot_runtime.task_kinds.eqa.agents.reasoning`). It is GraphEQA (Saxena et al. 2024) without the language model.
"""

from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.classical.agent import RESOLUTION_M, pose_in_start_frame
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.mapping import Mapper
from robot_runtime.policies.baselines.classical.navigation import Navigator
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.records import EVIDENCE
from robot_runtime.task_kinds.eqa.agents.exploration import Explorer
from robot_runtime.task_kinds.eqa.agents.floor_plan import FloorPlan
from robot_runtime.task_kinds.eqa.agents.object_memory import ObjectMemory
from robot_runtime.task_kinds.eqa.agents.reasoning import Conclusion, Reasoner
from robot_runtime.tasks.task import Task

_HALF_M = 8.0


class EqaMemory(Policy):
    """Answers questions from an object memory, or abstains.

    Args:
        stop_confidence: it stops as soon as the answer is right with this probability.
        answer_confidence: below this it abstains in the end.
    """

    name = "eqa-memory"
    kinds: ClassVar[tuple[str, ...]] = ("eqa",)
    needs: ClassVar[tuple[str, ...]] = ("rgb", "depth", "gps", "compass", "semantic", "question", "floor_plan")
    follows = True

    def __init__(self, stop_confidence: float = 0.9, answer_confidence: float = 0.5) -> None:
        if not 0 <= answer_confidence <= stop_confidence <= 1:
            raise PolicyError(
                f"agent 'eqa-memory': answer_confidence {answer_confidence} and stop_confidence {stop_confidence}",
                "give probabilities, the first at most the second",
            )
        self._stop_confidence, self._answer_confidence = stop_confidence, answer_confidence

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode with an empty memory."""
        self._task, self._step = task, 0
        self._grid = Grid(RESOLUTION_M, _HALF_M)
        self._mapper = Mapper(task.camera, self._grid)
        self._contacts = ContactMemory(task.magnitudes.forward_m)
        self._memory = ObjectMemory(task.camera)
        self._tilt_rad = self._tilt_before_rad = task.camera.tilt_rad
        self._pose, self._last = SE2(), False
        self._reasoner: Reasoner | None = None
        self._conclusion = Conclusion(reason="nothing was seen")

    @override
    def act(self, observation: Observation) -> Decision:
        pose = pose_in_start_frame(observation)
        if self._reasoner is None:
            plan = FloorPlan.read(str(observation["floor_plan"]))
            self._reasoner = Reasoner(str(observation["question"]), self._task, plan)
            navigator = Navigator(self._task, self._grid, self._contacts)
            self._explorer = Explorer(self._task, self._grid, navigator, plan)
            self._pose = pose
        blocked = self._contacts.observe(pose)
        self._mapper.integrate(pose, self._tilt_rad, observation["depth"])
        self._grid.sweep(self._pose, pose, self._task.robot_radius_m)
        self._pose = pose
        if blocked:
            self._grid.touch(pose, self._task.robot_radius_m)
        images = (observation["rgb"], observation["depth"], observation["semantic"])
        before = self._memory.version
        self._memory.update(self._step, pose, self._tilt_rad, *images)
        explored = self._explorer.explored(self._reasoner.rooms)
        if self._memory.version != before or self._step % 5 == 0:
            self._conclusion = self._reasoner.conclude(self._memory, explored)
        action = self._decide()
        self._last = action is Action.STOP or self._step + 1 >= self._task.max_steps
        self._record_action(action)
        self._step += 1
        return action

    def _decide(self) -> Decision:
        reasoner = self._reasoner
        assert reasoner is not None
        if reasoner.problem or self._conclusion.confidence >= self._stop_confidence:
            self._explorer.doing = "stops"
            return Action.STOP
        return self._explorer.next(self._pose, reasoner.rooms, reasoner.expected, self._conclusion.about)

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return None if self._abstains else dict(self._conclusion.scores)

    @property
    def _abstains(self) -> bool:
        return self._conclusion.answer is None or self._conclusion.confidence < self._answer_confidence

    @override
    def info(self) -> dict[str, Any]:
        found = {
            "doing": self._explorer.doing,
            "objects": len(self._memory.objects),
            "confidence": round(self._conclusion.confidence, 4),
            "strength": round(self._conclusion.strength, 3),
        }
        return {**found, EVIDENCE: self._evidence()} if self._last else found

    def _evidence(self) -> list[str]:
        assert self._reasoner is not None
        conclusion = self._conclusion
        seen = [self._reasoner.describe(item) for item in conclusion.about]
        if conclusion.answer is None:
            return [f"abstains: {conclusion.reason}", *seen]
        said = f"{conclusion.answer!r} with confidence {conclusion.confidence:.2f}"
        return [f"abstains: {said} is too uncertain" if self._abstains else f"answers {said}", *seen]

    @override
    def overruled(self, decision: Decision) -> None:
        self._tilt_rad = self._tilt_before_rad
        self._record_action(decision)

    def _record_action(self, decision: Decision) -> None:
        moves = self._task.magnitudes.displacement(decision) if isinstance(decision, Action) else decision.displacement
        self._contacts.acted(decision)
        self._tilt_before_rad = self._tilt_rad
        self._tilt_rad += moves.tilt_rad
