"""The objects that all topics of the simulated robot share."""

from __future__ import annotations

from dataclasses import dataclass

from robot_runtime.common.clock import Clock, seconds_to_ns
from sim_bridge.physics.world import World
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.physics_executor import PhysicsExecutor
from sim_bridge.ros.robot_variants import RobotVariant
from sim_bridge.ros.timing import StampClock


@dataclass(frozen=True)
class SimContext:
    """The shared parts of a simulated robot.

    Attributes:
        clock: Simulated time.
        stamps: Converts simulated time to stamps.
        executor: Runs work of rospy's threads in the physics thread.
        faults: The injected faults.
        world: The physics.
        variant: Names and timing of the robot.
    """

    clock: Clock
    stamps: StampClock
    executor: PhysicsExecutor
    faults: Faults
    world: World
    variant: RobotVariant

    def stamp_ns(self, now_ns: int) -> int:
        """Return the stamp of simulated time ``now_ns``, with the injected clock skew."""
        return self.stamps.stamp_ns(now_ns) + seconds_to_ns(self.faults.value("clock_skew_s"))
