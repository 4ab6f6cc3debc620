"""The simulated LoCoBot with all its topics, as ``python -m sim_bridge.ros`` runs it."""

import concurrent.futures
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import rospy
from ca_msgs.msg import Bumper, ChargingState, Mode
from diagnostic_msgs.msg import DiagnosticStatus
from robot_runtime_simulation.srv import Place, PlaceResponse, SetFault, SetFaultResponse
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Empty, Float32, Int16
from tf2_msgs.msg import TFMessage

from drivers.ros.protocol import Diagnosis, create_safety_diagnosis
from drivers.ros.safety_fields import CREATE_SAFETY_STATUS
from robot_runtime.common.clock import MAX_CATCH_UP_S, SimulatedClock, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, DeviceFault, InvalidStart, RuntimeFault
from robot_runtime.hal import Intrinsics, Zone
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.scenes.scene import Scene
from sim_bridge.noise.drift import Drift
from sim_bridge.physics.scene_model import build_model
from sim_bridge.physics.world import World
from sim_bridge.robot.battery import Battery
from sim_bridge.robot.camera_misalignment import apply_mount_error
from sim_bridge.robot.chassis import Chassis
from sim_bridge.robot.driver import DEFAULT_INTRINSICS, SimOptions
from sim_bridge.robot.head import SimHead
from sim_bridge.robot.wheel_slip import make_slip
from sim_bridge.ros.base_topics import BaseTopics, VariantTopics, battery_diagnosis
from sim_bridge.ros.camera_topics import CameraTopics
from sim_bridge.ros.context import PhysicsExecutor, SimContext
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.head_topics import HeadTopics
from sim_bridge.ros.kobuki_topics import KobukiTopics
from sim_bridge.ros.localizer_topics import LOCALIZERS, LocalizerTopics
from sim_bridge.ros.lockstep_barrier import LockstepBarrier
from sim_bridge.ros.messages import messages
from sim_bridge.ros.publisher import Publisher
from sim_bridge.ros.robot_variants import RobotVariant
from sim_bridge.ros.timing import MAX_LAG_S, RatePacer, StampClock
from sim_bridge.ros.velocity_commands import VelocityCommandModel

PLACE_SERVICE = "/simulation/place"
FAULT_SERVICE = "/simulation/fault"

RESPONSE_LIMIT_S = 10.0
"""Time limit of the physics thread; it takes a few milliseconds unless an image is being rendered."""


class SimulationServices:
    """The two services.

    Args:
        executor: Of the physics thread.
        faults: Changed by ``/simulation/fault``.
        place: Places the robot, in the physics thread; raises ``InvalidStart``.
    """

    def __init__(self, executor: PhysicsExecutor, faults: Faults, place: Callable[[SE2, float], None]) -> None:
        self._executor, self._faults, self._place = executor, faults, place
        self._services = [
            rospy.Service(PLACE_SERVICE, Place, self._on_place),
            rospy.Service(FAULT_SERVICE, SetFault, self._on_fault),
        ]

    def close(self) -> None:
        """Withdraw both services."""
        for service in self._services:
            service.shutdown()

    def _on_place(self, request: Any) -> Any:
        pose = request.pose

        def work() -> None:
            if not all(map(math.isfinite, (pose.x, pose.y, pose.theta, request.tilt))):
                raise InvalidStart(
                    f"pose ({pose.x}, {pose.y}, {pose.theta}) with tilt {request.tilt} is not finite",
                    "check what computed it",
                )
            self._place(SE2(pose.x, pose.y, pose.theta), request.tilt)

        return PlaceResponse(*self._response(work))

    def _on_fault(self, request: Any) -> Any:
        return SetFaultResponse(*self._response(lambda: self._faults.set(request.name, request.value)))

    def _response(self, work: Callable[[], None]) -> tuple[bool, str, str]:
        """Execute ``work`` in the physics thread and return success, message and remedy."""
        try:
            try:
                self._executor.submit(work).result(RESPONSE_LIMIT_S)
            except concurrent.futures.TimeoutError:
                raise DeviceFault(
                    f"the simulated robot did not respond within {RESPONSE_LIMIT_S:g} s", "restart it"
                ) from None
        except RuntimeFault as fault:
            return False, fault.message, fault.remedy
        return True, "", ""


CAPACITY_AH = 2.7
CURRENT_A = -1.0
LOW_V = 14.0
TEMPERATURE_C = 25

BATTERY_TOPICS = ("voltage", "current", "charge", "capacity", "charge_ratio")


class CreateTopics(VariantTopics):
    """A Create 2; add it to :class:`BaseTopics`."""

    def __init__(self, base: BaseTopics) -> None:
        topics = base.variant.names.topics
        self._bumper = Publisher(topics["bumper"], Bumper)
        self._wheel_drop = Publisher(topics["wheel_drop"], Empty)
        self._mode = Publisher("/mode", Mode)
        self._charging = Publisher("/battery/charging_state", ChargingState)
        self._battery = [Publisher(f"/battery/{name}", Float32) for name in BATTERY_TOPICS]
        self._temperature = Publisher("/battery/temperature", Int16)

    def publish(self, base: BaseTopics, now_ns: int) -> None:
        header = messages.header(base.stamp_ns(now_ns), base.variant.names.frames.base)
        # Both switches together mean the middle of the bumper.
        left, right = (bool(base.bumper & (zone | Zone.CENTER).value) for zone in (Zone.LEFT, Zone.RIGHT))
        if "core_silent" not in base.faults:
            pressed = {"is_left_pressed": left, "is_right_pressed": right}
            base.send(now_ns, self._bumper, lambda: Bumper(header=header, **pressed))
        # The driver repeats this message while the level is active; no message reports its end.
        if base.wheel_drop:
            base.send(now_ns, self._wheel_drop, Empty)
        base.send(now_ns, self._mode, lambda: Mode(header, Mode.MODE_FULL))
        base.send(now_ns, self._charging, lambda: ChargingState(header, ChargingState.CHARGE_NONE))
        battery = base.chassis.battery
        charge_ah = battery.fraction * CAPACITY_AH
        values = (battery.voltage_v, CURRENT_A, charge_ah, CAPACITY_AH, battery.fraction)
        for publisher, value in zip(self._battery, values, strict=True):
            base.send(now_ns, publisher, partial(Float32, value))
        base.send(now_ns, self._temperature, lambda: Int16(TEMPERATURE_C))

    def diagnose(self, base: BaseTopics) -> dict[str, Diagnosis]:
        return {
            "ca_driver: Battery Status": battery_diagnosis(base.chassis, LOW_V),
            f"ca_driver: {CREATE_SAFETY_STATUS}": create_safety_diagnosis(bool(base.cliff), bool(base.wheel_drop)),
            "ca_driver: Base Mode": (DiagnosticStatus.OK, "Mode is set to FULL", {}),
        }


PAUSE_S = 0.02
"""Host seconds between two checks whether a stopped clock runs again."""


@dataclass(frozen=True)
class RosRobotOptions:
    """Options of the simulation.

    Attributes:
        variant: The simulated LoCoBot.
        mount: Of the camera.
        sim: Noise, limits and body: the options of a simulated robot's YAML file.
        intrinsics: Of the camera.
        localizer: One of ``localizer_topics.LOCALIZERS``.
        simulated_clock: Whether time comes from ``/clock``; else it is real.
        rate: Simulated seconds per second of the host; 1 in real time.
        seed: Of every error.
    """

    variant: RobotVariant
    mount: CameraMount
    sim: SimOptions = field(default_factory=SimOptions)
    intrinsics: Intrinsics = DEFAULT_INTRINSICS
    localizer: str = "amcl"
    simulated_clock: bool = True
    rate: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.localizer not in LOCALIZERS:
            raise ConfigError(f"there is no localizer {self.localizer!r}", f"use one of: {', '.join(LOCALIZERS)}")
        if self.sim.localizer.source == "odometry":
            raise ConfigError("option localizer.source: odometry has its own topic", "run with `--localizer none`")
        if not 0 < self.rate < float("inf"):
            raise ConfigError(f"rate {self.rate} is not a positive number", "give how many times faster than real time")
        if not self.simulated_clock and self.rate != 1:
            raise ConfigError(f"rate {self.rate} in real time", "use `--clock sim`, or leave the rate at 1")


class RosRobot:
    """A robot in a scene, as a ROS node; ``rospy.init_node`` must have been called.

    Physics and publishing happen in the thread that calls :meth:`run`, rendering in another. Messages received by
    rospy's threads are passed to the first by a :class:`PhysicsExecutor`.
    """

    def __init__(self, scene: Scene, options: RosRobotOptions) -> None:
        sim, variant = options.sim, options.variant
        world = World(build_model(scene, sim.step_s, sim.body))
        self._clock = clock = SimulatedClock(seconds_to_ns(sim.step_s))
        stamps = StampClock(wall=not options.simulated_clock)
        self._context = context = SimContext(clock, stamps, PhysicsExecutor(), Faults(), world, variant)
        pacer = RatePacer(options.rate, MAX_LAG_S if options.simulated_clock else MAX_CATCH_UP_S)
        self._seed, self._placements = options.seed, 0
        self._clock_publisher = Publisher("/clock", ClockMessage) if options.simulated_clock else None
        tf = Publisher("/tf", TFMessage)
        slip, battery = make_slip(sim.action_noise, world), Battery(sim.battery)
        motors = SimulatedMotors(sim.motors or MotorOptions(variant.motors))
        self._chassis = Chassis(world, Drift(sim.odometry), Drift(sim.actuation), battery, slip, sim.contact, motors)
        commands = VelocityCommandModel(variant.timing, sim.base.max_linear_m_s, sim.base.max_angular_rad_s)
        self._head = SimHead(clock, sim.head)
        self._head.connect()
        self._base = base = BaseTopics(context, self._chassis, commands, tf)
        base.add(KobukiTopics(base) if variant.names.base else CreateTopics(base))
        self._head_topics = HeadTopics(context, self._head, base)
        true_mount = apply_mount_error(options.mount, sim.camera.mount_error)
        camera = options.intrinsics, sim.camera, options.simulated_clock
        self._camera = CameraTopics(context, self._head, options.mount, true_mount, *camera)
        self._localizer = LocalizerTopics(context, sim.localizer, base, options.localizer, tf)
        self._localizer.connect()
        self._restart()
        for listener in (
            self._begin_step,
            base.on_step,
            self._head_topics.on_step,
            self._localizer.on_step,
            self._camera.on_step,
            pacer.wait,
        ):
            clock.add_listener(listener)
        if options.simulated_clock:
            clock.add_listener(LockstepBarrier(context.faults).wait)
        self._services = SimulationServices(context.executor, context.faults, self.place)

    def place(self, pose: SE2, tilt_rad: float) -> None:
        """Place the robot at rest, odometry at zero, with errors of its own.

        Raises:
            InvalidStart: The pose is not free; the robot stays where it is.
        """
        self._head.require_reach(tilt_rad)
        self._context.world.place(pose)
        self._head.place(tilt_rad)
        self._placements += 1
        self._restart()

    def run(self) -> None:
        """Simulate until ROS shuts down."""
        context = self._context
        try:
            while not rospy.is_shutdown():
                if self._clock_publisher is not None and "clock_stopped" in context.faults:
                    rospy.rostime.wallsleep(PAUSE_S)
                    context.executor.run_pending()
                    continue
                self._clock.sleep_until(self._clock.now_ns() + context.world.step_ns)
        finally:
            self._services.close()
            self._camera.close()

    def _begin_step(self, now_ns: int) -> None:
        """Publish the time and execute the work received since the last step, before all other listeners."""
        self._context.stamps.update(now_ns)
        if self._clock_publisher is not None:
            self._clock_publisher.publish(ClockMessage(messages.time(now_ns)))
        self._context.executor.run_pending()

    def _restart(self) -> None:
        # The random streams of the in-process robot, so that the same seed draws the same errors.
        streams = np.random.SeedSequence((self._seed, self._placements)).spawn(3)
        self._chassis.restart(np.random.default_rng(streams[0]))
        self._base.restart()
        self._head_topics.restart()
        self._localizer.restart(np.random.default_rng(streams[1]))
        self._camera.restart(np.random.default_rng(streams[2]))
