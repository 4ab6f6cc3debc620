"""The memory agent: it explores, remembers objects, and runs the question's program on what it remembers.

It needs no learned navigator and no network: depth becomes the classical agent's map, semantic pixels become objects
(:mod:`~robot_runtime.task_kinds.eqa.agents.object_memory`), and the question's functional program runs on them
(:mod:`~robot_runtime.task_kinds.eqa.agents.reasoning`). It is GraphEQA (Saxena et al. 2024) without the language model.
"""

from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.classical.navigation import Navigator
from robot_runtime.policies.baselines.classical.survey import Survey
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.records import EVIDENCE
from robot_runtime.task_kinds.eqa.agents.exploration import Explorer
from robot_runtime.task_kinds.eqa.agents.floor_plan import FloorPlan
from robot_runtime.task_kinds.eqa.agents.object_memory import ObjectMemory
from robot_runtime.task_kinds.eqa.agents.reasoning import Conclusion, Reasoner
from robot_runtime.tasks.task import Task


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
        self._survey, self._memory = Survey(task), ObjectMemory(task.camera)
        self._last = False
        self._reasoner: Reasoner | None = None
        self._conclusion = Conclusion(reason="nothing was seen")

    @override
    def act(self, observation: Observation) -> Decision:
        survey = self._survey
        if self._reasoner is None:
            plan = FloorPlan.read(str(observation["floor_plan"]))
            self._reasoner = Reasoner(str(observation["question"]), self._task, plan)
            navigator = Navigator(self._task, survey.grid, survey.contacts)
            self._explorer = Explorer(self._task, survey.grid, navigator, plan)
        survey.observe(observation)
        images = (observation["rgb"], observation["depth"], observation["semantic"])
        before = self._memory.version
        self._memory.update(self._step, survey.pose, survey.tilt_rad, *images)
        explored = self._explorer.explored(self._reasoner.rooms)
        if self._memory.version != before or self._step % 5 == 0:
            self._conclusion = self._reasoner.conclude(self._memory, explored)
        action = self._decide()
        self._last = action is Action.STOP or self._step + 1 >= self._task.max_steps
        survey.acted(action)
        self._step += 1
        return action

    def _decide(self) -> Decision:
        reasoner = self._reasoner
        assert reasoner is not None
        if reasoner.problem or self._conclusion.confidence >= self._stop_confidence:
            self._explorer.doing = "stops"
            return Action.STOP
        return self._explorer.next(self._survey.pose, reasoner.rooms, reasoner.expected, self._conclusion.about)

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
        self._survey.overruled(decision)
