"""The ``options`` of a robot's YAML file, but those of the network. Variants' defaults are in ``robot_variants.py``."""

import math
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from pydantic import Field

from drivers.ros.topics import BaseTopicNames, check_topic
from robot_runtime.common import config, quantities
from robot_runtime.hal.pose_limits import PoseLimits
from robot_runtime.placement.offset import Tolerance

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

RAW_DEPTH = ("/depth/image_raw", "/depth/image_rect_raw")
"""Endings of topics with the depth sensor's own view, not registered to color."""


@dataclass(frozen=True)
class ClockOptions(config.Strict):
    """Limits of the difference between the robot's stamps and this computer's time.

    Attributes:
        max_skew_s: How far a stamp may be ahead of this computer's time, or behind it on arrival.
        stall_s: Host seconds that simulated time may stand still during a wait: longer than the simulator waits for its
            subscribers on a busy computer.
    """

    max_skew_s: quantities.Latency = 0.05
    stall_s: quantities.Timeout = 5.0


@dataclass(frozen=True)
class Topics(BaseTopicNames, config.Strict):
    """Full names of topics, the base's included; an empty one means the variant's (``topics.py``).

    Attributes:
        voltage: A Create 2's battery.
        charge_ratio: A Create 2's battery.
        guard: Namespace of the guard node; used with ``base.guard``.
        joints: Joint states with the head's joints.
        pan: Command of the pan joint.
        tilt: Command of the tilt joint.
        joint_group: Command of Interbotix' joint group.
        color: Images; ``.../compressed`` of image_transport, too.
        color_info: Calibration of the color camera.
        depth: Images, registered to color; ``.../compressed`` (PNG) and ``.../compressedDepth``, too.
    """

    voltage: str = ""
    charge_ratio: str = ""
    guard: str = "/robot_runtime_guard"
    joints: str = ""
    pan: str = ""
    tilt: str = ""
    joint_group: str = ""
    color: str = ""
    color_info: str = ""
    depth: str = ""

    def __post_init__(self) -> None:
        for item in fields(self):
            check_topic(item.name, getattr(self, item.name))
        if self.depth.removesuffix("/compressedDepth").removesuffix("/compressed").endswith(RAW_DEPTH):
            raise ValueError(
                f"depth must be registered to color, {self.depth!r} is the depth sensor's own view: "
                "launch the camera with align_depth:=true and name aligned_depth_to_color/image_raw"
            )


@dataclass(frozen=True)
class BaseOptions(config.Strict):
    """The base. Limits that are None are the variant's.

    Attributes:
        guard: Whether the robot runs the guard node; it then owns the velocity topic.
        silent_publishers: Nodes that advertise the velocity topic but never use it; a message of theirs ends the run.
        rate_hz: Rate of the base's measurements.
        max_linear_m_s: Limit of the velocity.
        max_angular_rad_s: Limit of the velocity.
        max_linear_accel_m_s2: Limit of the acceleration.
        max_angular_accel_rad_s2: Limit of the acceleration.
        empty_v: Voltage below which the robot refuses to drive.
    """

    guard: bool = False
    silent_publishers: tuple[str, ...] = ()
    rate_hz: Annotated[quantities.Rate, Field(ge=20)] | None = None
    max_linear_m_s: Positive | None = None
    max_angular_rad_s: Positive | None = None
    max_linear_accel_m_s2: Positive | None = None
    max_angular_accel_rad_s2: Positive | None = None
    empty_v: NotNegative | None = None


@dataclass(frozen=True)
class HeadOptions(config.Strict):
    """The pan-tilt. None means the variant's; angles as in ``hal``: left and up positive.

    Attributes:
        min_pan_rad: Limit.
        max_pan_rad: Limit.
        min_tilt_rad: Limit.
        max_tilt_rad: Limit.
        max_speed_rad_s: Limit.
        tolerance_deg: Distance from the goal at which the head has arrived.
        settle_s: Time that it must stay there before it counts as still.
    """

    min_pan_rad: float | None = None
    max_pan_rad: float | None = None
    min_tilt_rad: float | None = None
    max_tilt_rad: float | None = None
    max_speed_rad_s: Positive | None = None
    tolerance_deg: quantities.AngleTolerance = 0.8
    settle_s: quantities.ShortTime = 0.2


@dataclass(frozen=True)
class CameraOptions(config.Strict):
    """The camera.

    Attributes:
        mount: A preset of ``launch/mounts`` or a YAML file (``robot_runtime.robots.camera_mount``).
        rectified: Whether the color images are rectified, so that the projection matrix P applies.
        max_distortion_px: How far lens distortion may shift a pixel of an unrectified image.
        depth_min_m: Shortest range (RealSense D435 at 640x480).
        depth_max_m: Longest range.
        rate_hz: Nominal.
    """

    mount: str
    rectified: bool = False
    max_distortion_px: NotNegative = 1.0
    depth_min_m: NotNegative = 0.28
    depth_max_m: quantities.FarDepth = 10.0
    rate_hz: quantities.Rate = 30.0

    def __post_init__(self) -> None:
        if not self.depth_min_m < self.depth_max_m:
            raise ValueError(f"need depth_min_m < depth_max_m, got {self.depth_min_m} and {self.depth_max_m}")


@dataclass(frozen=True)
class LocalizerOptions(config.Strict):
    """A source of poses.

    Attributes:
        source: ``odometry`` (the base's topic), ``tf`` (``map_frame`` to ``base_frame``), ``pose`` (PoseStamped),
            ``pose_with_covariance`` (PoseWithCovarianceStamped, e.g. AMCL).
        topic: Of ``pose`` and ``pose_with_covariance``.
        alignment: For ``pose`` and ``pose_with_covariance``, the file of `robot-runtime calibrate localization` with
            the transforms of the source's frame to the scene's map and of its marker to base_link; empty if both are
            identities.
        map_frame: Name of the map's frame on this robot.
        base_frame: Name of the base's frame; empty means the variant's.
        rate_hz: Nominal; how often an episode's origin is sampled.
        max_gap_s: Longest time between two poses across which poses are interpolated. A source that publishes only
            after motion (AMCL's topic) is better read through tf.
        max_std_m: Standard deviation beyond which the robot counts as lost.
        max_std_deg: As ``max_std_m``.
        max_jump_m: How far a pose may be from each one of the last meter, propagated by odometry.
        max_jump_deg: As ``max_jump_m``.
        recover_s: How long poses after a jump must be consistent with odometry until they are accepted: longer than any
            action, so that no jump is missed between two reads.
    """

    source: Literal["odometry", "tf", "pose", "pose_with_covariance"]
    topic: str = ""
    alignment: str = ""
    map_frame: str = "map"
    base_frame: str = ""
    rate_hz: quantities.Rate = 30.0
    max_gap_s: quantities.Period = 0.5
    max_std_m: quantities.Spread = 0.5
    max_std_deg: Positive = 20.0
    max_jump_m: Positive = 0.3
    max_jump_deg: Positive = 20.0
    recover_s: quantities.Timeout = 5.0

    @property
    def limits(self) -> PoseLimits:
        """The limits beyond which the robot counts as lost."""
        max_std_rad, max_jump_rad = math.radians(self.max_std_deg), math.radians(self.max_jump_deg)
        return PoseLimits(self.max_std_m, max_std_rad, self.max_jump_m, max_jump_rad, self.recover_s)

    def __post_init__(self) -> None:
        if self.source.startswith("pose") != bool(self.topic):
            raise ValueError(f"topic goes with the sources pose and pose_with_covariance, got {self.source}")
        if self.alignment and not self.topic:
            raise ValueError(f"alignment goes with the sources pose and pose_with_covariance, got {self.source}")


@dataclass(frozen=True)
class PlacerOptions(config.Strict):
    """Placement of the robot at an episode's start.

    Attributes:
        by: ``operator``: a person moves the robot, and sees the distance to the start; ``drive``: it drives itself, and
            stops at a contact; ``simulation``: the simulated robot's service.
        service: Of ``simulation``.
        within_m: Tolerance, except for ``simulation``.
        within_deg: As ``within_m``.
        timeout_s: Time limit.
    """

    by: Literal["operator", "drive", "simulation"] = "operator"
    service: str = "/simulation/place"
    within_m: quantities.SmallMove = Tolerance.within_m
    within_deg: Positive = Tolerance.within_deg
    timeout_s: quantities.Timeout = Tolerance.timeout_s

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance of a placement by a person or by driving."""
        return Tolerance(self.within_m, self.within_deg, self.timeout_s)


_TF = LocalizerOptions("tf")


@dataclass(frozen=True)
class RobotOptions(config.Strict):
    """The options of a robot on any network.

    Attributes:
        family: Variant of the robot.
        camera: The camera.
        robot_name: Namespace of an Interbotix robot.
        clock: Limits of clock differences.
        topics: Names of topics that differ from the variant's.
        base: The base.
        head: The pan-tilt.
        localizer: Source of the policy's pose.
        referee: Source of the pose that scores are computed from.
        placer: Placement at an episode's start.
    """

    family: str
    camera: CameraOptions
    robot_name: str = "locobot"
    clock: ClockOptions = field(default_factory=ClockOptions)
    topics: Topics = field(default_factory=Topics)
    base: BaseOptions = field(default_factory=BaseOptions)
    head: HeadOptions = field(default_factory=HeadOptions)
    localizer: LocalizerOptions = _TF
    referee: LocalizerOptions = _TF
    placer: PlacerOptions = field(default_factory=PlacerOptions)

    def __post_init__(self) -> None:
        if self.referee.source == "odometry":
            raise ValueError("referee must be a source in the map; odometry is not")
        if not self.robot_name.replace("_", "").isalnum():
            raise ValueError(f"robot_name must be a plain ROS name, got {self.robot_name!r}")
