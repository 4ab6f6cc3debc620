"""One-step predictions: each recorded action simulated from the recorded start."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.clock import SimulatedClock, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import InvalidStart
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.scenes.scene import Scene
from sim_bridge.noise.drift import Drift, DriftOptions
from sim_bridge.physics.scene_model import SceneModel, build_model
from sim_bridge.physics.world import World
from sim_bridge.robot.base import SimBase
from sim_bridge.robot.chassis import Battery, BatteryOptions, Chassis
from sim_bridge.robot.driver import SimOptions
from sim_bridge.robot.head import SimHead
from sim_bridge.robot.odometry import moved_between
from sim_bridge.robot.wheel_slip import Slip
from sim_bridge.tuning.log_statistics import Motion

Floats = NDArray[np.float64]

ENDLESS_BATTERY = BatteryOptions(idle_w=0.0, drive_w=0.0)

DRIFT_TRIALS = 40
"""Executions of each action where wheels or odometry have random errors; they give the covariance to 16 %."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The end of an action of a robot without random errors.

    Attributes:
        moved: float64 (3,), x m, y m, yaw rad of the end in the frame of the start.
        share: share of the commanded displacement that the wheels made; action errors grow with it.
        contact: whether the action ended by contact.
        touching: whether the robot touches anything at its end.
    """

    moved: Floats
    share: float
    contact: bool
    touching: bool


class MotionSimulator:
    """Base and motion control of a simulated robot in a scene, without camera and localizers.

    Args:
        model: the compiled scene.
        options: options of the robot; ``action_noise`` has no effect, because it is added to predictions as a
            distribution.
        exact: whether wheels and odometry have errors of scale only, no random ones.
    """

    def __init__(self, model: SceneModel, options: SimOptions, exact: bool = True) -> None:
        odometry, actuation = options.odometry, options.actuation
        if exact:
            odometry, actuation = _without_noise(odometry), _without_noise(actuation)
        self.world = World(model)
        self._clock = SimulatedClock(seconds_to_ns(options.step_s))
        motors = options.motors or MotorOptions()
        wheels = Drift(odometry), Drift(actuation), Battery(ENDLESS_BATTERY), Slip(None, self.world.step_s)
        chassis = Chassis(self.world, *wheels, options.contact, SimulatedMotors(motors))
        self._base = SimBase(self._clock, chassis, options.base, motors)
        head = SimHead(self._clock, options.head)
        self._clock.add_listener(self._base.on_step)
        self._base.connect()
        head.connect()
        self._motion = MotionController(self._clock, self._base, head)

    def execute(self, start: SE2, commanded: Displacement, random: np.random.Generator) -> Prediction:
        """Execute one action from one pose. Raises ``InvalidStart`` if the robot would intersect the scene there."""
        placed = self.world.place_near(start)
        self._base.restart(random)
        self._motion.forget()
        result = self._motion.execute(commanded)
        moved = moved_between(placed, self.world.pose)
        goal = commanded.forward_m or commanded.turn_rad
        done = result.measured.forward_m if commanded.forward_m else result.measured.turn_rad
        share = min(1.0, max(0.0, done / goal)) if goal else 0.0
        contact = result.outcome is Outcome.CONTACT
        return Prediction(np.array([moved.x_m, moved.y_m, moved.yaw_rad]), share, contact, self.world.touches)


def predict(model: SceneModel, options: SimOptions, motions: Iterable[Motion]) -> Iterator[Prediction | None]:
    """A prediction for each motion; None where the recorded robot intersected the scene."""
    simulator, random = MotionSimulator(model, options), np.random.default_rng(0)
    for motion in motions:
        yield _predict_one(simulator, motion, random)


def _predict_one(simulator: MotionSimulator, motion: Motion, random: np.random.Generator) -> Prediction | None:
    try:
        return simulator.execute(motion.start, motion.commanded, random)
    except InvalidStart:
        return None


def motion_options(options: SimOptions) -> SimOptions:
    """The options that predictions depend on; the others have their default."""
    plain = SimOptions()
    return replace(
        options, action_noise=None, camera=plain.camera, localizer=plain.localizer, battery=plain.battery, tags=None
    )


def scene_model(scene: Scene, options: SimOptions) -> SceneModel:
    """The compiled scene. Raises ``SceneError``: it has no meshes."""
    return build_model(scene, options.step_s, options.body)


def drift_covariances(
    scene: Scene, options: SimOptions, kinds: Iterable[tuple[Action, Displacement]]
) -> dict[Action, Floats]:
    """Covariance (3, 3) of the random errors of wheels and odometry in each action, in free space."""
    if (_without_noise(options.odometry), _without_noise(options.actuation)) == (options.odometry, options.actuation):
        return {action: np.zeros((3, 3)) for action, _ in kinds}
    model = scene_model(scene, options)
    simulator, random = MotionSimulator(model, options, exact=False), np.random.default_rng(0)
    start = SE2(*scene.map.most_open_point())
    covariances = {}
    for action, commanded in kinds:
        ends = [simulator.execute(start, commanded, random).moved for _ in range(DRIFT_TRIALS)]
        covariances[action] = np.asarray(np.cov(np.array(ends), rowvar=False))
    return covariances


def _without_noise(drift: DriftOptions) -> DriftOptions:
    return DriftOptions(linear_scale=drift.linear_scale, angular_scale=drift.angular_scale)
