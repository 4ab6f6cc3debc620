"""A Create 3 on the network: topics by Cyclone DDS, services and parameters by rclpy in a process of their own."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from typing import Any

from tests.ros2.emulators import dds
from tests.ros2.emulators.create3_base import BACKUP_LIMIT, Create3
from tests.ros2.emulators.program import ODOM_S, Program, arguments
from tests.ros2.emulators.world import Pose

HAZARD_PERIOD_S = 0.016
WHEEL_PERIOD_S = 0.025
WHEEL_RADIUS_M = 0.03575


class Create3Program(Program):
    """The base, its topics, and its services' process."""

    base: Create3

    def __init__(self, base: Create3, args: argparse.Namespace) -> None:
        super().__init__(base, args, "base_footprint")
        self._services: subprocess.Popen[str] | None = None
        self._told: frozenset[tuple[int, str]] = frozenset()

    def connect(self) -> None:
        self._told = frozenset()
        super().connect()
        if not self.args.no_services:
            self._start_services()

    def offer(self) -> None:
        super().offer()
        irobot = {name: f"irobot_create_msgs/msg/{name}" for name in ("StopStatus", "KidnapStatus", "SlipStatus")}
        self.publish_every(1.0, self._stop_status, stop_status=irobot["StopStatus"])
        self.publish_every(1.0, self._kidnap_status, kidnap_status=irobot["KidnapStatus"])
        self.publish_every(ODOM_S, self._slip_status, slip_status=irobot["SlipStatus"])
        self.publish_every(
            WHEEL_PERIOD_S,
            self._wheels,
            wheel_status="irobot_create_msgs/msg/WheelStatus",
            wheel_vels="irobot_create_msgs/msg/WheelVels",
        )
        self.publish_every(1.0, self._battery, battery_state="sensor_msgs/msg/BatteryState")
        if self.args.hazards != "off":
            self._kinds["hazard_detection"] = "irobot_create_msgs/msg/HazardDetectionVector"
        if self.args.hazards == "periodic":
            self.publish_every(HAZARD_PERIOD_S, self._hazards)
        self.listen("cmd_vel", "geometry_msgs/msg/Twist", self.drive)
        self.listen("cmd_vel_stamped", "geometry_msgs/msg/TwistStamped", lambda message: self.drive(message.twist))

    def command(self, name: str, value: Any) -> None:
        """Also ``hazards_period_ms``, of its parameter."""
        if name != "hazards_period_ms":
            super().command(name, value)
        elif value > 0 and self.args.hazards == "change":
            self.args.hazards = "periodic"
            self.publish_every(value / 1000, self._hazards)

    def disconnect(self) -> None:
        super().disconnect()
        if self._services:
            self._services.kill()
            self._services.communicate()
            self._services = None

    def stepped(self) -> None:
        hazards = frozenset(self.base.hazards())
        if self.args.hazards == "change" and hazards != self._told:
            self._hazards()

    def _hazards(self) -> None:
        hazards = self.base.hazards()
        header = self.header("base_link")
        found = [dds.HazardDetection(dds.Header(header.stamp, frame), kind) for kind, frame in hazards]
        if self.publish("hazard_detection", dds.HazardDetectionVector(header, found)):
            if any(kind != BACKUP_LIMIT for kind, _ in frozenset(hazards) - self._told):
                self.base.published_hazard()
            self._told = frozenset(hazards)

    def _stop_status(self) -> None:
        self.publish("stop_status", dds.StopStatus(self.header("base_link"), self.base.wheels.at_rest))

    def _kidnap_status(self) -> None:
        self.publish("kidnap_status", dds.KidnapStatus(self.header("base_link"), self.base.is_kidnapped))

    def _slip_status(self) -> None:
        self.publish("slip_status", dds.SlipStatus(self.header("base_link"), self.base.is_held))

    def _wheels(self) -> None:
        header, wheels = self.header("base_link"), self.base.wheels
        on = not self.base.e_stop
        self.publish("wheel_status", dds.WheelStatus(header=header, wheels_enabled=on))
        speeds = (wheels.left_mps / WHEEL_RADIUS_M, wheels.right_mps / WHEEL_RADIUS_M)
        self.publish("wheel_vels", dds.WheelVels(header, *speeds))

    def _battery(self) -> None:
        self.publish("battery_state", dds.BatteryState(self.header("base_link"), voltage=14.4, percentage=0.8))

    def _start_services(self) -> None:
        asked = ["--domain", str(self.args.domain), "--namespace", self.args.namespace]
        parameters = json.dumps({"motion_control": self.base.parameters, "robot_state": self._robot_state()})
        self._services = process = subprocess.Popen(
            [sys.executable, "-m", "tests.ros2.emulators.create3_services", *asked, "--parameters", parameters]
            + ["--fixed-hazards"] * self.args.fixed_hazards,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        process.stdout.readline()
        threading.Thread(target=self._follow, args=(process,), daemon=True).start()

    def _follow(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.commands.put((json.loads(line), False))

    def _robot_state(self) -> dict[str, Any]:
        return {
            "hazards_pub_fixed_period_ms": 16 if self.args.hazards == "periodic" else -1,
            "publish_hazard_msgs": self.args.hazards != "off",
            "publish_odom_tfs": not self.args.without_tf,
        }


def main() -> None:
    """Run a Create 3."""
    parser = arguments("an emulated Create 3")
    parser.add_argument("--hazards", choices=("change", "periodic", "off"), default="change")
    parser.add_argument("--fixed-hazards", action="store_true", help="refuse to repeat hazards on request")
    parser.add_argument("--reflexes-off", action="store_true", help="reflexes_enabled: false from the start")
    parser.add_argument("--safety-override", choices=("none", "backup_only", "full"), default="none")
    parser.add_argument("--no-services", action="store_true", help="leave out services and parameters")
    args = parser.parse_args()
    parameters = {"reflexes_enabled": not args.reflexes_off, "safety_override": args.safety_override}
    Create3Program(Create3.made(args.wall, Pose(*args.pose), parameters), args).run()


if __name__ == "__main__":
    main()
