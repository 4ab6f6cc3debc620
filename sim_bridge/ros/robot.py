"""The simulated LoCoBot with all its topics, as ``python -m sim_bridge.ros`` runs it."""

import concurrent.futures
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from robot_runtime.common.clock import MAX_CATCH_UP_S, SimulatedClock, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, DeviceFault, InvalidStart, RuntimeFault
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.scenes.scene import Scene
from sim_bridge.noise.drift import Drift
from sim_bridge.physics.scene_model import build_model
from sim_bridge.physics.world import World
from sim_bridge.robot.camera import apply_mount_error
from sim_bridge.robot.chassis import Battery, Chassis
from sim_bridge.robot.driver import DEFAULT_INTRINSICS, SimOptions
from sim_bridge.robot.head import SimHead
from sim_bridge.robot.wheel_slip import make_slip
from sim_bridge.ros.base_topics import BaseTopics, VariantTopics
from sim_bridge.ros.camera_topics import CameraTopics
from sim_bridge.ros.context import PhysicsExecutor, SimContext
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.head_topics import HeadTopics
from sim_bridge.ros.localizer_topics import LOCALIZERS, LocalizerTopics
from sim_bridge.ros.lockstep_barrier import AHEAD_S, LockstepBarrier
from sim_bridge.ros.network import Network
from sim_bridge.ros.robot_variants import RobotVariant
from sim_bridge.ros.timing import MAX_LAG_S, RatePacer, StampClock
from sim_bridge.ros.velocity_commands import VelocityCommandModel

PLACE_SERVICE = "/simulation/place"
FAULT_SERVICE = "/simulation/fault"

RESPONSE_LIMIT_S = 10.0
"""Time limit of the physics thread; it takes a few milliseconds unless an image is being rendered."""


def respond(executor: PhysicsExecutor, work: Callable[[], None]) -> tuple[bool, str, str]:
    """Execute ``work`` in the physics thread and return success, message and remedy."""
    try:
        try:
            executor.submit(work).result(RESPONSE_LIMIT_S)
        except concurrent.futures.TimeoutError:
            raise DeviceFault(
                f"the simulated robot did not respond within {RESPONSE_LIMIT_S:g} s", "restart it"
            ) from None
    except RuntimeFault as fault:
        return False, fault.message, fault.remedy
    return True, "", ""


def place_at(place: Callable[[SE2, float], None], x_m: float, y_m: float, yaw_rad: float, tilt_rad: float) -> None:
    """Call ``place`` with finite numbers. Raises ``InvalidStart``."""
    if not all(map(math.isfinite, (x_m, y_m, yaw_rad, tilt_rad))):
        raise InvalidStart(
            f"pose ({x_m}, {y_m}, {yaw_rad}) with tilt {tilt_rad} is not finite", "check what computed it"
        )
    place(SE2(x_m, y_m, yaw_rad), tilt_rad)


CLOCK = "rosgraph_msgs/Clock"

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


class Services(Protocol):
    """The services that place the robot and inject faults."""

    def close(self) -> None:
        """Withdraw them."""


class RosRobot:
    """A robot in a scene, as a ROS node.

    Physics and publishing happen in the thread that calls :meth:`run`, rendering in another. Messages received by
    the network's threads are passed to the first by a :class:`PhysicsExecutor`.

    ``extend`` makes the topics that only this kind of base has, ``offer`` the services.
    """

    def __init__(
        self,
        scene: Scene,
        options: RosRobotOptions,
        network: Network,
        extend: Callable[[BaseTopics], VariantTopics] | None,
        offer: Callable[[PhysicsExecutor, Faults, Callable[[SE2, float], None]], Services],
    ) -> None:
        sim, variant = options.sim, options.variant
        world = World(build_model(scene, sim.step_s, sim.body))
        self._clock = clock = SimulatedClock(seconds_to_ns(sim.step_s))
        stamps = StampClock(wall=not options.simulated_clock)
        self._context = context = SimContext(clock, stamps, PhysicsExecutor(), Faults(), world, variant, network)
        pacer = RatePacer(options.rate, MAX_LAG_S if options.simulated_clock else MAX_CATCH_UP_S)
        self._seed, self._placements = options.seed, 0
        self._clock_publisher = network.publisher("/clock", CLOCK) if options.simulated_clock else None
        tf = network.publisher("/tf", "tf2_msgs/TFMessage")
        slip, battery = make_slip(sim.action_noise, world), Battery(sim.battery)
        motors = SimulatedMotors(sim.motors or MotorOptions(variant.motors))
        self._chassis = Chassis(world, Drift(sim.odometry), Drift(sim.actuation), battery, slip, sim.contact, motors)
        commands = VelocityCommandModel(variant.timing, sim.base.max_linear_m_s, sim.base.max_angular_rad_s)
        self._head = SimHead(clock, sim.head)
        self._head.connect()
        self._base = base = BaseTopics(context, self._chassis, commands, tf)
        if extend is not None:
            base.add(extend(base))
        self._head_topics = HeadTopics(context, self._head, base) if variant.names.head_joints else None
        true_mount = apply_mount_error(options.mount, sim.camera.mount_error)
        camera = options.intrinsics, sim.camera, options.simulated_clock
        self._camera = CameraTopics(context, self._head, options.mount, true_mount, *camera)
        self._localizer = LocalizerTopics(context, sim.localizer, base, options.localizer, tf)
        self._restart()
        head = () if self._head_topics is None else (self._head_topics.on_step,)
        steps = (base.on_step, *head, self._localizer.on_step, self._camera.on_step, pacer.wait)
        for listener in (self._begin_step, *steps):
            clock.add_listener(listener)
        if options.simulated_clock:
            ahead_s = max(AHEAD_S, 2 / variant.timing.report_hz)
            clock.add_listener(LockstepBarrier(context.faults, network, ahead_s).wait)
        self._services = offer(context.executor, context.faults, self.place)

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
            while not context.network.is_shutdown():
                if self._clock_publisher is not None and "clock_stopped" in context.faults:
                    threading.Event().wait(PAUSE_S)
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
            messages = self._context.network.messages
            self._clock_publisher.publish(messages.make(CLOCK, clock=messages.time(now_ns)))
        self._context.executor.run_pending()

    def _restart(self) -> None:
        # The random streams of the in-process robot, so that the same seed draws the same errors.
        streams = np.random.SeedSequence((self._seed, self._placements)).spawn(3)
        self._chassis.restart(np.random.default_rng(streams[0]))
        self._base.restart()
        if self._head_topics is not None:
            self._head_topics.restart()
        self._localizer.restart(np.random.default_rng(streams[1]))
        self._camera.restart(np.random.default_rng(streams[2]))
