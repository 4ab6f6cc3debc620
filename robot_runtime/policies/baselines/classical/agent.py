"""The classical agent: the Habitat paper's SLAM row with GPS and compass in place of SLAM."""

from typing import Any, ClassVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2, gps_to_start_frame
from robot_runtime.errors import PolicyError
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.mapping import Mapper
from robot_runtime.policies.baselines.classical.navigation import Navigator
from robot_runtime.policies.baselines.classical.objectgoal import ObjectGoal
from robot_runtime.policies.baselines.classical.pointgoal import PointGoal
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Task

RESOLUTION_M = 0.05
_HALF_M = 8.0
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
        self._task = task
        self._tilt_rad = task.camera.tilt_rad
        self._pose = SE2()
        self._grid = Grid(RESOLUTION_M, _HALF_M)
        self._mapper = Mapper(task.camera, self._grid)
        self._contacts = ContactMemory(task.magnitudes.forward_m)
        navigator = Navigator(task, self._grid, self._contacts)
        self._mission: PointGoal | ObjectGoal = (
            PointGoal(task, navigator) if self._seeks_point else ObjectGoal(task, self._grid, navigator)
        )

    @override
    def act(self, observation: Observation) -> Action:
        pose = pose_in_start_frame(observation)
        blocked = self._contacts.observe(pose)
        self._mapper.integrate(pose, self._tilt_rad, observation["depth"], self._goal_mask(observation))
        self._grid.sweep(self._pose, pose, self._task.robot_radius_m)
        self._pose = pose
        if blocked:
            self._grid.touch(pose, self._task.robot_radius_m)
        action = self._mission.decide(pose, observation)
        self._record_action(action)
        return action

    @override
    def overruled(self, decision: Decision) -> None:
        self._tilt_rad = self._tilt_before_rad
        self._record_action(decision)

    def _record_action(self, decision: Decision) -> None:
        moves = self._task.magnitudes.displacement(decision) if isinstance(decision, Action) else decision.displacement
        self._contacts.acted(decision)
        self._tilt_before_rad = self._tilt_rad
        self._tilt_rad += moves.tilt_rad

    @override
    def info(self) -> dict[str, Any]:
        return self._mission.info()

    def _goal_mask(self, observation: Observation) -> Any:
        if self._seeks_point or "semantic" not in observation:
            return None
        return observation["semantic"][..., 0] == observation[_OBJECT][0]


def pose_in_start_frame(observation: Observation) -> SE2:
    """GPS and compass (left positive) as a pose: x forward, y left, yaw counter-clockwise."""
    return SE2(*gps_to_start_frame(observation["gps"]), float(observation["compass"][0]))
