"""Memory of an agent that maps: map, contacts, pose and the camera's tilt."""

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2, gps_to_start_frame
from robot_runtime.policies.baselines.classical.grid import Grid
from robot_runtime.policies.baselines.classical.mapping import Mapper
from robot_runtime.policies.planning.contact_memory import ContactMemory
from robot_runtime.policy import Observation
from robot_runtime.tasks.task import Task

RESOLUTION_M = 0.05
_HALF_M = 8.0


class Survey:
    """The map of an episode, from depth, GPS and compass, and the camera's tilt, from the actions.

    Call :meth:`observe` with each observation and :meth:`acted` with each action that is decided on.

    Attributes:
        grid: map in the start frame.
        contacts: contacts, inferred from moves that ended short.
        pose: pose of the last observation in the start frame.
        tilt_rad: tilt of the camera, up positive.
    """

    def __init__(self, task: Task) -> None:
        self.grid = Grid(RESOLUTION_M, _HALF_M)
        self.contacts = ContactMemory(task.magnitudes.forward_m)
        self.pose = SE2()
        self.tilt_rad = self._tilt_before_rad = task.camera.tilt_rad
        self._magnitudes, self._radius_m = task.magnitudes, task.robot_radius_m
        self._mapper = Mapper(task.camera, self.grid)

    def observe(self, observation: Observation, goal_mask: NDArray[np.bool_] | None = None) -> None:
        """Add an observation.

        Args:
            observation: observation with ``depth``, ``gps`` and ``compass``.
            goal_mask: bool (H, W), pixels that show the goal object; None if there is none.
        """
        pose = pose_in_start_frame(observation)
        blocked = self.contacts.observe(pose)
        self._mapper.integrate(pose, self.tilt_rad, observation["depth"], goal_mask)
        self.grid.sweep(self.pose, pose, self._radius_m)
        self.pose = pose
        if blocked:
            self.grid.touch(pose, self._radius_m)

    def acted(self, decision: Decision) -> None:
        """Take note of what the robot carries out next."""
        moves = self._magnitudes.displacement(decision) if isinstance(decision, Action) else decision.displacement
        self.contacts.acted(decision)
        self._tilt_before_rad = self.tilt_rad
        self.tilt_rad += moves.tilt_rad

    def overruled(self, decision: Decision) -> None:
        """Take note of what the robot carries out in place of the last decision."""
        self.tilt_rad = self._tilt_before_rad
        self.acted(decision)


def pose_in_start_frame(observation: Observation) -> SE2:
    """GPS and compass (left positive) as a pose: x forward, y left, yaw counter-clockwise."""
    return SE2(*gps_to_start_frame(observation["gps"]), float(observation["compass"][0]))
