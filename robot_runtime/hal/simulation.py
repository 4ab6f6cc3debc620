"""Ground truth of a simulated robot for emulated devices: views from anywhere, at any rate.

A driver that finds ``Robot.simulation`` plugs its own emulator, the device on the other end of the wire, onto it, so
that everything from the wire on is the code that runs on a real robot. Policies do not get it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import Clock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Device, Velocity, Zone

if TYPE_CHECKING:
    from robot_runtime.hal.lens import Lens
    from robot_runtime.hal.printed_targets import Sheet
    from robot_runtime.scenes.scene import Scene

Floats = NDArray[np.float32]
Image = NDArray[np.uint8]

Pose3 = NDArray[np.float64]
"""float64 (4, 4): takes points of a camera's optical frame (x right, y down, z forward) to ``map``."""


@dataclass(frozen=True, slots=True)
class CameraMotion:
    """Velocity of a camera in its own optical frame: meters and radians per second about its x, y and z axes."""

    linear_m_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular_rad_s: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def still(self) -> bool:
        """Whether it does not move at all."""
        return not any((*self.linear_m_s, *self.angular_rad_s))


class DepthNoise(ABC):
    """Noise model of a depth sensor."""

    @abstractmethod
    def measure(self, depth_m: Floats, lens: Lens, random: np.random.Generator) -> Floats:
        """Return the measurement of exact depth.

        Args:
            depth_m: float32 (H, W), exact, along the optical axis; 0 where there is nothing. Not changed.
            lens: lens of the sensor.
            random: source of the noise.

        Returns:
            float32 (H, W); 0 where it measures nothing.
        """


class ColorNoise(ABC):
    """Noise model of a color sensor."""

    @abstractmethod
    def expose(
        self, rgb: Image, depth_m: Floats | None, lens: Lens, motion: CameraMotion, random: np.random.Generator
    ) -> Image:
        """Return the image of an exact view, uint8 (H, W, 3).

        Args:
            rgb: the view in the middle of the exposure. Not changed.
            depth_m: float32 (H, W) through the same lens, 0 where there is nothing; None takes all for far away.
            lens: lens of the sensor.
            motion: motion of the camera during the exposure.
            random: source of the noise.
        """


class Subscription:
    """A registration that lasts until it is closed.

    Args:
        end: called once, by the first :meth:`close`.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end

    def close(self) -> None:
        """End it; safe to call twice."""
        end, self._end = self._end, None
        if end is not None:
            end()


class WheelSensors(NamedTuple):
    """Readings of the sensors of a simulated base at one instant.

    Attributes:
        wheels_m: ways that the left and the right wheel have turned so far; no placement resets them.
        heading_rad: true heading, not wrapped; only its changes mean anything.
        battery_v: volts.
        bumper: zones that are pressed.
        cliff: zones without a floor below them.
        wheel_drop: wheels that hang.
    """

    wheels_m: tuple[float, float]
    heading_rad: float
    battery_v: float
    bumper: Zone = Zone.NONE
    cliff: Zone = Zone.NONE
    wheel_drop: Zone = Zone.NONE


class SimulatedChassis(ABC):
    """Wheels and sensors of a simulated robot, for the emulated firmware of a base."""

    @abstractmethod
    def sensors(self) -> WheelSensors:
        """Read all sensors now."""

    @abstractmethod
    def attach(self, firmware: Callable[[int], Velocity]) -> Subscription:
        """Drive the wheels by a firmware instead of the robot's own base. That one must not be connected.

        Args:
            firmware: called with the present time after every step of the physics; returns the velocity that it
                commands the motors until the next.
        """


class Simulation(Device):
    """Ground truth about a simulated robot and its surroundings, at the clock's present instant.

    Belongs to the thread in which the clock is slept on: time passes, callbacks are called and views are drawn there.
    Needs no connection; :meth:`close` releases what drawing needs.

    Attributes:
        clock: the robot's clock, whose steps move the world.
        scene: the scene around the robot.
        sheets: printed sheets that :meth:`render` shows besides the scene, by name: hang, move and remove them at will.
    """

    clock: Clock
    scene: Scene
    sheets: dict[str, Sheet]

    @abstractmethod
    def pose(self) -> SE2:
        """base_link in ``map``."""

    @abstractmethod
    def velocity(self) -> Velocity:
        """Velocity of base_link, in base_link."""

    @property
    def chassis(self) -> SimulatedChassis:
        """Wheels and sensors for an emulated base. Raises ``DeviceFault`` where there are none."""
        raise DeviceFault(
            f"{type(self).__name__} has no wheels for an emulated base", "use the robot's own base, or another robot"
        )

    @abstractmethod
    def head_angles(self) -> tuple[float, float]:
        """Pan (left positive) and tilt (up positive), radians."""

    @abstractmethod
    def camera_pose(self) -> Pose3:
        """The optical frame of the camera, where the robot's description has it; a device may be mounted wrongly."""

    @abstractmethod
    def render(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return the view through a lens, without noise and without time passing.

        Returns:
            Color, uint8 (H, W, 3), and depth along the optical axis, float32 (H, W), meters. Both are 0 where the lens
            images nothing; depth is 0 where there is no surface, and exact in the middle of each pixel on planes.

        Raises:
            DeviceFault: outside the thread that drew first, where the OpenGL context lives.
            RenderingUnavailable: if no OpenGL context can be made.
        """

    @abstractmethod
    def render_color(self, lens: Lens, map_from_camera: Pose3) -> NDArray[np.uint8]:
        """The color of :meth:`render` alone, faster."""

    @abstractmethod
    def render_depth(self, lens: Lens, map_from_camera: Pose3) -> NDArray[np.float32]:
        """The depth of :meth:`render` alone, faster."""

    @abstractmethod
    def camera_motion(self) -> CameraMotion:
        """Velocity of the camera of :meth:`camera_pose`."""

    @abstractmethod
    def depth_noise(self, options: Mapping[str, Any], where: str) -> DepthNoise:
        """A noise model: ``model`` names it, the rest are its options; empty for none. Raises ``ConfigError``."""

    @abstractmethod
    def color_noise(self, options: Mapping[str, Any], where: str) -> ColorNoise:
        """Likewise, of color."""

    @abstractmethod
    def every(self, rate_hz: float, callback: Callable[[int], None]) -> Subscription:
        """Have ``callback(now_ns)`` called at the first step at or after each multiple of the period.

        The multiples count from the clock's start, so that equal rates coincide. The world has moved to ``now_ns`` when
        the callback is called; it must not sleep on the clock.

        Raises:
            ValueError: if the rate is not positive, or above the clock's own.
        """

    @abstractmethod
    def on_placed(self, callback: Callable[[], None]) -> Subscription:
        """Have ``callback()`` called whenever the robot has been put somewhere else."""

    @abstractmethod
    def random(self, name: str) -> np.random.Generator:
        """Return a device's own random stream, the same for the same seed, name and number of placements.

        Draw it once per placement and keep it.
        """
