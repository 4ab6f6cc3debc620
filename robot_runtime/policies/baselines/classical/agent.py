"""The classical agent: the Habitat paper's SLAM row with GPS and compass in place of SLAM."""

from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.classical.navigation import Navigator
from robot_runtime.policies.baselines.classical.objectgoal import ObjectGoal
from robot_runtime.policies.baselines.classical.pointgoal import PointGoal
from robot_runtime.policies.baselines.classical.survey import Survey
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task

_POINT, _OBJECT = "pointgoal", "objectgoal"


class Classical(Policy):
    """Depth mapping, planning on the map and frontier exploration.

    PointNav: goes to the ``pointgoal``, with unknown cells taken for passable. ObjectNav: drives to frontiers. If the
    task has the sensor ``semantic`` it goes to the goal category once that is in view, faces it and stops. Without that
    sensor it recognizes nothing: it explores, and stops when no frontier is left.
    """

    name = "classical"
    kinds: ClassVar[tuple[str, ...]] = ("pointnav", "objectnav")
    needs: ClassVar[tuple[str, ...]] = ("depth", "gps", "compass")
    follows = True

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode with an empty map.

        Raises:
            PolicyMismatch: the task is neither PointNav nor ObjectNav.
            PolicyError: it has no sensor for its goal.
        """
        self.check(task)
        self._seeks_point = _POINT in kind_of(task).sensors
        goal_sensor = _POINT if self._seeks_point else _OBJECT
        if goal_sensor not in task.sensors:
            raise PolicyError(
                f"agent 'classical' needs sensor {goal_sensor!r}, which task {task.name!r} does not have",
                f"add {goal_sensor!r} to the task's 'sensors', or choose another task",
            )
        self._survey = Survey(task)
        navigator = Navigator(task, self._survey.grid, self._survey.contacts)
        self._mission: PointGoal | ObjectGoal = (
            PointGoal(task, navigator) if self._seeks_point else ObjectGoal(task, self._survey.grid, navigator)
        )

    @override
    def act(self, observation: Observation) -> Action:
        seen = not self._seeks_point and "semantic" in observation
        self._survey.observe(observation, observation["semantic"][..., 0] == observation[_OBJECT][0] if seen else None)
        action = self._mission.decide(self._survey.pose, observation)
        self._survey.acted(action)
        return action

    @override
    def overruled(self, decision: Decision) -> None:
        self._survey.overruled(decision)

    @override
    def info(self) -> dict[str, Any]:
        return self._mission.info()
