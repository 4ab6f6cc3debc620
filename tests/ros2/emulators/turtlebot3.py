"""A TurtleBot 3: it keeps its last velocity for ever, and no bumper feels a wall.

``turtlebot3_node`` (ROBOTIS, jazzy, turtlebot3.cpp) writes velocities in whole cm/s to the board, whose time limit
is fed by the node's own heartbeat, whoever commands. With ``--bumper`` it is another base with a driver of its own.
"""

from __future__ import annotations

import argparse
import math

from tests.ros2.emulators import dds
from tests.ros2.emulators.base import Base
from tests.ros2.emulators.program import ODOM_S, Program, arguments
from tests.ros2.emulators.world import Pose, Wheels, World

RADIUS_M, TRACK_M, WHEEL_RADIUS_M = 0.105, 0.16, 0.033
MAX_SPEED_MPS, MAX_TURN_RADPS = 0.22, 2.84


class TurtleBot3(Base):
    """The base."""

    def target(self, now_s: float) -> tuple[float, float]:
        v, w = (math.trunc(value * 100) / 100 for value in self.commanded)
        return min(max(v, -MAX_SPEED_MPS), MAX_SPEED_MPS), min(max(w, -MAX_TURN_RADPS), MAX_TURN_RADPS)


class TurtleBot3Program(Program):
    """The base and its topics."""

    def __init__(self, base: TurtleBot3, args: argparse.Namespace) -> None:
        super().__init__(base, args, "base_footprint")
        self._turned_rad = [0.0, 0.0]
        self._was_pressed = False

    def offer(self) -> None:
        super().offer()
        self.publish_every(ODOM_S, self._joints, joint_states="sensor_msgs/msg/JointState")
        self.publish_every(1.0, self._battery, battery_state="sensor_msgs/msg/BatteryState")
        if self.args.bumper:
            self.publish_every(ODOM_S, self._bumper, **{self.args.bumper: "std_msgs/msg/Bool"})
        quality = {"reliability": dds.RELIABLE, "depth": 10}
        if self.args.stamped:
            self.listen("cmd_vel", "geometry_msgs/msg/TwistStamped", lambda sent: self.drive(sent.twist), **quality)
        else:
            self.listen("cmd_vel", "geometry_msgs/msg/Twist", self.drive, **quality)

    def stepped(self) -> None:
        if self.args.bumper and self._is_pressed != self._was_pressed:
            self._bumper()

    @property
    def _is_pressed(self) -> bool:
        return bool(self.base.world.contacts_rad(self.base.pose))

    def _bumper(self) -> None:
        if self.publish(self.args.bumper, dds.Bool(self._is_pressed)):
            if self._is_pressed and not self._was_pressed:
                self.base.published_hazard()
            self._was_pressed = self._is_pressed

    def _joints(self) -> None:
        speeds = [speed / WHEEL_RADIUS_M for speed in (self.base.wheels.left_mps, self.base.wheels.right_mps)]
        self._turned_rad = [turned + speed * ODOM_S for turned, speed in zip(self._turned_rad, speeds, strict=True)]
        names = ["wheel_left_joint", "wheel_right_joint"]
        self.publish("joint_states", dds.JointState(self.header("base_link"), names, self._turned_rad, speeds))

    def _battery(self) -> None:
        self.publish("battery_state", dds.BatteryState(self.header(""), voltage=11.8, percentage=0.8))


def main() -> None:
    """Run a TurtleBot 3."""
    parser = arguments("an emulated TurtleBot 3")
    parser.add_argument("--stamped", action="store_true", help="cmd_vel is a TwistStamped, as with Nav2 since Jazzy")
    parser.add_argument("--bumper", metavar="TOPIC", help="publish contacts as a std_msgs/Bool")
    args = parser.parse_args()
    base = TurtleBot3(World(args.wall, RADIUS_M), Wheels(TRACK_M, 2.0), Pose(*args.pose))
    TurtleBot3Program(base, args).run()


if __name__ == "__main__":
    main()
