"""The contract between the runtime and a robot, real or simulated.

Small interfaces and the frozen data that crosses them. Nothing here knows ROS, a serial port or a simulator.
``robot_runtime.conformance`` is this contract as a test suite; a driver is done when it passes.

Rules that hold for every method:

* Properties (``info``, ``limits``) may be read while disconnected; everything else raises ``NotConnected`` then.
* Reading has an age. ``max_age_s`` is what the caller allows; older data raises ``StaleData`` naming stream and age.
  Nothing returns an old value silently.
* Waiting has a limit. ``timeout_s`` is never infinite.
* Stamps are ``Clock`` nanoseconds: when the thing was measured, not when it arrived.
* ``close()`` never raises, may be called twice, and leaves the wheels at zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from robot_runtime.clock import Clock
from robot_runtime.errors import DeviceFault, InvalidCommand
from robot_runtime.events import Event
from robot_runtime.geometry import SE2
from robot_runtime.objects import Grab, ObjectPose, ObjectSource, TrackedObjects

if TYPE_CHECKING:
    from robot_runtime.simulation import Simulation


class Zone(Flag):
    """Which of the base's three sensors: bumpers span +90..+30, +30..-30 and -30..-90 degrees (Kobuki)."""

    NONE = 0
    LEFT = 1
    CENTER = 2
    RIGHT = 4


class Halt(str, Enum):
    """Why the Guard refuses motion, in order of precedence; ``NONE`` when it does not."""

    NONE = "none"
    E_STOP = "e_stop"
    NO_FEEDBACK = "no_feedback"
    WHEEL_DROP = "wheel_drop"
    CLIFF = "cliff"
    CONTACT = "contact"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Velocity:
    """A planar velocity in base_link: forward m/s, counter-clockwise rad/s."""

    linear_m_s: float = 0.0
    angular_rad_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BaseInfo:
    """What a base can do. ``rate_hz`` is how often it reports state and accepts commands."""

    name: str
    radius_m: float
    max_linear_m_s: float
    max_angular_rad_s: float
    max_linear_accel_m_s2: float
    max_angular_accel_rad_s2: float
    rate_hz: float


@dataclass(frozen=True, slots=True)
class BaseState:
    """The base at one instant. Contact, cliff and wheel drop are levels, not events.

    Attributes:
        stamp_ns: when measured.
        odom: wheel odometry, pose of base_link in ``odom``.
        velocity: measured.
        bumper: zones pressed now.
        cliff: zones that see no floor now.
        wheel_drop: wheels hanging now (LEFT, RIGHT).
        halt: what the Guard is holding the wheels for now.
        battery_v: volts.
        battery_fraction: 0 empty .. 1 full.
    """

    stamp_ns: int
    odom: SE2
    velocity: Velocity
    bumper: Zone
    cliff: Zone
    wheel_drop: Zone
    halt: Halt
    battery_v: float
    battery_fraction: float


class Device(ABC):
    """Something that is connected, used and closed."""

    @abstractmethod
    def connect(self) -> None:
        """Open the device. Raises ``DeviceFault`` naming port or topic and remedy; then nothing is left half open."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; safe in any state, twice, and after an error."""

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class Base(Device):
    """A differential-drive base behind its Guard (``robot_runtime.safety``), which runs in the driver."""

    @property
    @abstractmethod
    def info(self) -> BaseInfo: ...

    @abstractmethod
    def state(self, max_age_s: float) -> BaseState:
        """The newest state. Raises ``StaleData`` if it is older than ``max_age_s``."""

    @abstractmethod
    def command(self, velocity: Velocity) -> Velocity:
        """Ask for a velocity and return what the Guard let through.

        It expires after the Guard's ``command_timeout_s`` (0.2 s): repeat it to keep moving.

        Raises:
            InvalidCommand: for NaN or infinity; the wheels are stopped first.
        """

    @abstractmethod
    def stop(self) -> None:
        """Wheels to zero now, past every ramp. Never raises for a connected base."""

    @abstractmethod
    def emergency_stop(self) -> None:
        """As :meth:`stop`, and refuse every motion until :meth:`release_emergency_stop`."""

    @abstractmethod
    def release_emergency_stop(self) -> None:
        """Allow motion again; the robot stays still until a new command."""


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Reach and speed of the pan-tilt. Tilt is up positive; pan is left positive."""

    min_pan_rad: float
    max_pan_rad: float
    min_tilt_rad: float
    max_tilt_rad: float
    max_speed_rad_s: float
    settle_s: float

    def clip(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        """The nearest angles within reach. Raises ``InvalidCommand`` for NaN or infinity."""
        if not (math.isfinite(pan_rad) and math.isfinite(tilt_rad)):
            raise InvalidCommand(
                f"head angles ({pan_rad}, {tilt_rad}) rad are not finite",
                "check the controller or policy that computed them; the head was left as it is",
            )
        return (
            min(max(pan_rad, self.min_pan_rad), self.max_pan_rad),
            min(max(tilt_rad, self.min_tilt_rad), self.max_tilt_rad),
        )


@dataclass(frozen=True, slots=True)
class HeadState:
    """The pan-tilt at one instant. ``moving`` is true until it has come to rest at its goal."""

    stamp_ns: int
    pan_rad: float
    tilt_rad: float
    moving: bool


class Head(Device):
    """A pan-tilt unit."""

    @property
    @abstractmethod
    def limits(self) -> HeadLimits: ...

    @abstractmethod
    def state(self, max_age_s: float) -> HeadState:
        """The newest state. Raises ``StaleData``."""

    @abstractmethod
    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        """Move to these angles and return at once with the angles actually commanded, clipped to ``limits``.

        Raises:
            InvalidCommand: for NaN or infinity; the head stays where it is.
        """


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """An ideal pinhole. Pixel (0, 0) is the centre of the top-left pixel."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @classmethod
    def from_hfov(cls, width: int, height: int, hfov_deg: float) -> Intrinsics:
        """Square pixels, principal point in the middle, ``hfov_deg`` across the full width."""
        f = width / 2 / math.tan(math.radians(hfov_deg) / 2)
        return cls(width, height, f, f, (width - 1) / 2, (height - 1) / 2)

    @property
    def hfov_deg(self) -> float:
        """Horizontal field of view across the full width, in degrees."""
        return math.degrees(2 * math.atan(self.width / 2 / self.fx))


@dataclass(frozen=True, slots=True)
class Mount:
    """Where the camera sits in base_link at pan = tilt = 0; pan and tilt turn it about its optical centre."""

    x_m: float
    y_m: float
    z_m: float


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """What a camera delivers.

    Attributes:
        depth_unit_m: the lattice on which depth values lie (0.001 for sensors that report uint16 millimetres);
            0 for continuous depth. The recorder stores millimetre depth as 16-bit integers without loss.
        depth_min_m, depth_max_m: the sensor's own range; outside it depth is a hole.
        has_semantic: whether :meth:`Camera.capture` can deliver object ids.
        has_depth: False for a camera of colour alone, whose depth is all holes.
    """

    intrinsics: Intrinsics
    mount: Mount
    rate_hz: float
    depth_min_m: float
    depth_max_m: float
    depth_unit_m: float
    has_semantic: bool
    has_depth: bool = True


@dataclass(frozen=True, slots=True)
class RgbdFrame:
    """One exposure: colour and depth of the same instant and the same pinhole.

    Attributes:
        stamp_ns: middle of the exposure.
        rgb: uint8 (H, W, 3).
        depth_m: float32 (H, W), distance along the optical axis in metres; 0 where there is no measurement.
        semantic: int32 (H, W) index into the scene's objects, -1 for none; None unless asked for.
    """

    stamp_ns: int
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    semantic: NDArray[np.int32] | None = None


class Camera(Device):
    """An RGB-D camera."""

    @property
    @abstractmethod
    def info(self) -> CameraInfo: ...

    @abstractmethod
    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        """The first pair exposed at or after ``exposed_after_ns``.

        Raises:
            StaleData: if none arrives within ``timeout_s``.
            DeviceFault: if ``semantic`` is asked of a camera that has none.
        """


class PoseStatus(str, Enum):
    """How far an estimate can be trusted."""

    OK = "ok"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PoseEstimate:
    """base_link in ``frame`` at one instant.

    Attributes:
        covariance: float64 (3, 3) of (x, y, yaw) in m², m·rad, rad². Where the yaw's variance is infinite, the source
            knows the position only, and ``pose.yaw_rad`` means nothing.
    """

    stamp_ns: int
    pose: SE2
    frame: str
    covariance: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))
    status: PoseStatus = PoseStatus.OK


@dataclass(frozen=True, slots=True)
class LocalizerInfo:
    """A source of poses.

    Attributes:
        name: for messages and logs.
        frame: that it reports in: ``map``, ``odom``, or one of its own, which is good for calibrating it only.
        rate_hz: nominal.
        mark_m: of a source that knows positions only, the point of base_link (forward, left) whose positions it
            reports: without a heading, it cannot tell where the robot's centre is.
    """

    name: str
    frame: str
    rate_hz: float
    mark_m: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What arrived from a source of poses since an earlier look at it.

    Attributes:
        mark: to ask from, the next time.
        estimates: in the order in which they arrived, which need not be that of their stamps.
        events: what the source noticed about itself, likewise.
        restarted: the source forgot everything since that look (it was connected, or the robot was put somewhere
            else); ``estimates`` are of the time after.
    """

    mark: int
    estimates: tuple[PoseEstimate, ...] = ()
    events: tuple[Event, ...] = ()
    restarted: bool = False


class Localizer(Device):
    """Says where the robot is."""

    @property
    @abstractmethod
    def info(self) -> LocalizerInfo: ...

    @abstractmethod
    def latest(self, max_age_s: float) -> PoseEstimate:
        """The newest estimate. Raises ``StaleData``."""

    @abstractmethod
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        """The pose at ``stamp_ns``, interpolated between the measurements around it; waits for the later one.

        Raises:
            StaleData: if that takes longer than ``timeout_s``, or ``stamp_ns`` lies before the kept history.
        """

    @abstractmethod
    def arrivals(self, after: int = 0) -> Arrivals:
        """Everything that arrived after a mark, without waiting; at least the last 10 s are kept.

        Args:
            after: ``Arrivals.mark`` of an earlier look; 0 for all that is kept. Every reader has marks of its own.
        """

    def expect(self, pose: SE2, std_m: float, std_rad: float) -> None:
        """The robot was put at ``pose`` (map), give or take, and stands there: what a heading may begin with.

        A source that measures poses has no use for it.
        """

    @property
    def sources(self) -> tuple[Localizer, ...]:
        """The localizers that this one is made of, whose poses are logged beside its own."""
        return ()


class Manipulator(Device):
    """A hand without fingers: the "magic pointer" (Batra et al. 2020, 3.2.1 and A.5), or an arm that acts like one.

    What it takes goes into a backpack: out of the world, neither seen nor touched, until it is let go.
    """

    @property
    @abstractmethod
    def held(self) -> tuple[str, ...]:
        """Ids of what is in the backpack, in the order in which it was taken."""

    @abstractmethod
    def grab_release(self, crosshair: tuple[float, float], reach_m: float, capacity: int) -> Grab:
        """Take what is under the crosshair, or let go what was taken last.

        If the backpack has room, a ray goes from the camera's optical centre through the crosshair; if the first thing
        that it meets within ``reach_m`` is a movable object, that is taken. Otherwise what was taken last is released
        with the pose relative to base_link that it had then. A release where something stands in the way, or where
        nothing could carry the object, does not happen and says so.

        Args:
            crosshair: fractions of the image's width from the left and of its height from the top; (0.5, 0.5) is the
                middle.
            reach_m: from the optical centre, along the ray.
            capacity: how many objects the backpack holds.

        Raises:
            InvalidCommand: a crosshair outside the image, a reach or capacity that is not positive.
            DeviceFault: the hand failed.
        """


@dataclass(frozen=True, slots=True)
class TrackerInfo:
    """A source of object poses: its name, what kind of source it is, and its nominal rate."""

    name: str
    source: ObjectSource
    rate_hz: float


class ObjectTracker(Device):
    """Says where the movable objects are, in ``map``."""

    @property
    @abstractmethod
    def info(self) -> TrackerInfo: ...

    @abstractmethod
    def objects(self, max_age_s: float) -> TrackedObjects:
        """All objects that an episode is about. Raises ``StaleData`` naming one whose pose is older."""


class Placer(ABC):
    """Brings the robot to an episode's start: a teleport in simulation, an operator or a drive in reality."""

    way: str = "teleport"
    """How, for logs: ``teleport``, ``operator``, ``drive``."""

    @abstractmethod
    def place(self, pose: SE2, tilt_rad: float) -> None:
        """Put the robot at ``pose`` (``map``) with the camera at ``tilt_rad`` (up positive), standing still.

        Raises:
            InvalidStart: if the robot does not fit there. PlacementFailed: if it did not get there.
        """

    def fitted(self, robot: Robot) -> Placer:
        """This placer for ``robot``, some of whose parts have taken the place of its driver's own."""
        return self

    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        """Put objects at these poses, at rest, empty the backpack, and put every other object where the scene has it.

        Call it before :meth:`place`: where the robot fits depends on it.

        Raises:
            EpisodeError: an object that is unknown, not movable, or whose pose is not finite; nothing was moved.
            DeviceFault: this robot's site has nobody who moves objects.
        """
        raise DeviceFault(
            f"{type(self).__name__} brings the robot to its start but no objects to theirs",
            "run this task on a robot whose placer does, for instance the simulated one",
        )


@dataclass(frozen=True)
class Robot:
    """One robot: its parts and their clock.

    Attributes:
        localizer: the pose that the policy is given.
        referee: the pose that scores are computed from; may be the same object.
        odometry: the base's dead reckoning at the base's own rate, in ``odom``, for what is fused with it; may be the
            same object as ``localizer``. None on a robot that reports none.
        manipulator, tracker: for tasks in which objects are moved; None on a robot that has none.
        simulation: what emulated devices plug into; None on a robot that is not simulated in this process.
    """

    name: str
    clock: Clock
    base: Base
    head: Head
    camera: Camera
    localizer: Localizer
    referee: Localizer
    placer: Placer
    manipulator: Manipulator | None = None
    tracker: ObjectTracker | None = None
    simulation: Simulation | None = None
    odometry: Localizer | None = None

    @property
    def devices(self) -> tuple[Device, ...]:
        """The distinct devices, in the order in which they are connected."""
        always = (self.base, self.head, self.camera, self.localizer, self.referee)
        perhaps = (self.odometry, self.manipulator, self.tracker, self.simulation)
        present = [device for device in perhaps if device is not None]
        return tuple(dict.fromkeys((*always, *present)))

    @property
    def pose_sources(self) -> dict[str, tuple[str, ...]]:
        """Names of the sources that ``policy``, ``referee`` and ``odometry`` are made of in the end."""
        roles = {"policy": self.localizer, "referee": self.referee, "odometry": self.odometry}
        return {role: _leaves(localizer) for role, localizer in roles.items() if localizer is not None}

    def connect(self) -> None:
        """Connect every device, or none: a failure closes those already open and is raised again."""
        opened: list[Device] = []
        try:
            for device in self.devices:
                device.connect()
                opened.append(device)
        except BaseException:
            for device in reversed(opened):
                device.close()
            raise

    def close(self) -> None:
        """Stop and release every device, the base first."""
        for device in self.devices:
            device.close()

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _leaves(localizer: Localizer) -> tuple[str, ...]:
    made_of = localizer.sources
    names = [name for source in made_of for name in _leaves(source)] if made_of else [localizer.info.name]
    return tuple(dict.fromkeys(names))
