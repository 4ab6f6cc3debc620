"""The ``options`` of a ROS LoCoBot's YAML file. What a family has by default is in ``families.py``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from pydantic import Field

from robot_runtime.common import config
from robot_runtime.placement.offset import Tolerance

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

VariantName = Literal["pyrobot-kobuki", "pyrobot-create", "interbotix"]

RAMPING = ("smoother", "raw_cmd_vel", "mux", "yocs", "safety_controller", "teleop")
"""Parts of the names of topics behind which a stop is ramped, delayed or outvoted."""

RAW_DEPTH = ("/depth/image_raw", "/depth/image_rect_raw")
"""How topics end that show what the depth sensor sees, which is not what the colour sensor sees."""


@dataclass(frozen=True)
class MasterOptions:
    """The ROS master and how long anything may take.

    Attributes:
        uri: None means ``ROS_MASTER_URI``, and without that this computer.
        timeout_s: of each answer of the master or a node.
        connect_timeout_s: for a topic to be published, a subscriber to connect, a first message to come.
        monitor_period_s: how often the master and the publishers of the velocity topic are looked at.
    """

    uri: str | None = None
    timeout_s: Positive = 2.0
    connect_timeout_s: Positive = 5.0
    monitor_period_s: Positive = 0.5

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.uri is not None and not self.uri.startswith("http://"):
            raise ValueError(f"uri must look like http://locobot:11311, got {self.uri!r}")


@dataclass(frozen=True)
class ClockOptions:
    """How far the robot's stamps and this computer's time may disagree.

    Attributes:
        max_skew_s: of a stamp ahead of this computer, and of the oldest stamp of a stream that keeps arriving.
        stall_s: host seconds that simulated time may stand still while somebody waits for it: on a busy computer longer
            than the simulator's own patience with its readers.
    """

    max_skew_s: Annotated[float, Field(gt=0, le=1.0, allow_inf_nan=False)] = 0.05
    stall_s: Positive = 5.0

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class Topics:
    """Full names; an empty one is the family's (``families.py``, where the types are, too).

    Attributes:
        velocity: the base's own command topic.
        core, bumper, cliff, wheel_drop, odom: of the base. voltage, charge_ratio: of a Create 2.
        guard: namespace of the guard node; used with ``base.guard``.
        joints: with the head's joints. pan, tilt, joint_group: commands of the head.
        color, color_info, depth: of the camera; depth must be registered to colour.
        diagnostics: what every driver says of itself.
    """

    velocity: str = ""
    core: str = ""
    bumper: str = ""
    cliff: str = ""
    wheel_drop: str = ""
    odom: str = ""
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
    diagnostics: str = "/diagnostics"

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        for item in fields(self):
            name = getattr(self, item.name)
            if name and (not name.startswith("/") or name.endswith("/") or " " in name):
                raise ValueError(f"{item.name} must be a full topic name such as /odom, got {name!r}")
        if self.depth.endswith(RAW_DEPTH):
            raise ValueError(
                f"depth must be registered to colour, {self.depth!r} is the depth sensor's own view: "
                "launch the camera with align_depth:=true and name aligned_depth_to_color/image_raw"
            )
        if any(part in self.velocity for part in RAMPING):
            raise ValueError(
                f"velocity must be the base's own topic, not {self.velocity!r}: what stands between would ramp a stop"
            )


@dataclass(frozen=True)
class BaseOptions:
    """The base. Limits that are None are the family's.

    Attributes:
        guard: whether the robot runs the guard node, which then owns the velocity topic.
        silent_publishers: nodes that advertise the velocity topic and are known never to use it; a message of theirs
            still ends the run.
        empty_v: below this the base refuses to drive.
    """

    guard: bool = False
    silent_publishers: tuple[str, ...] = ()
    rate_hz: Annotated[float, Field(ge=20, le=1000, allow_inf_nan=False)] | None = None
    max_linear_m_s: Positive | None = None
    max_angular_rad_s: Positive | None = None
    max_linear_accel_m_s2: Positive | None = None
    max_angular_accel_rad_s2: Positive | None = None
    empty_v: NotNegative | None = None

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class HeadOptions:
    """The pan-tilt. None means the family's; angles as in ``hal``: left and up positive.

    Attributes:
        tolerance_deg: from the goal at which it has arrived.
        settle_s: how long it must stay there before it counts as still.
    """

    min_pan_rad: float | None = None
    max_pan_rad: float | None = None
    min_tilt_rad: float | None = None
    max_tilt_rad: float | None = None
    max_speed_rad_s: Positive | None = None
    tolerance_deg: Positive = 0.8
    settle_s: NotNegative = 0.2

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class CameraOptions:
    """The camera.

    Attributes:
        mount: where it sits: a preset of ``launch/mounts`` or a YAML file (``robot_runtime.robots.camera_mount``).
        rectified: whether the colour topic carries rectified images, so that the projection matrix P holds.
        max_distortion_px: how far lens distortion may shift a pixel of an unrectified image.
        depth_min_m, depth_max_m: the sensor's range (RealSense D435 at 640x480).
        rate_hz: nominal.
    """

    mount: str
    rectified: bool = False
    max_distortion_px: NotNegative = 1.0
    depth_min_m: NotNegative = 0.28
    depth_max_m: Positive = 10.0
    rate_hz: Positive = 30.0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not self.depth_min_m < self.depth_max_m:
            raise ValueError(f"need depth_min_m < depth_max_m, got {self.depth_min_m} and {self.depth_max_m}")


@dataclass(frozen=True)
class LocalizerOptions:
    """A source of poses.

    Attributes:
        source: ``odometry`` (the base's topic), ``tf`` (``map_frame`` to ``base_frame``), ``pose`` (PoseStamped),
            ``pose_with_covariance`` (PoseWithCovarianceStamped, e.g. AMCL).
        topic: of ``pose`` and ``pose_with_covariance``.
        alignment: for ``pose`` and ``pose_with_covariance``, the file of `robot-runtime calibrate localization` that
            takes the source's frame to the scene's map, and its marker to base_link; empty where they are the same.
        map_frame, base_frame: names of the frames on this robot; an empty base_frame is the family's.
        rate_hz: nominal; how often an episode's origin is sampled.
        max_gap_s: longest time between two poses across which one is interpolated. A source that publishes only after
            motion (AMCL's topic) is better read through tf.
        max_std_m, max_std_deg: standard deviation beyond which the robot counts as lost.
        max_jump_m, max_jump_deg: how far a pose may lie from where odometry carries the one before.
        recover_s: how long poses after a jump must agree with odometry until they are believed. Longer than any
            action takes, so that no jump passes between two looks.
    """

    source: Literal["odometry", "tf", "pose", "pose_with_covariance"]
    topic: str = ""
    alignment: str = ""
    map_frame: str = "map"
    base_frame: str = ""
    rate_hz: Positive = 30.0
    max_gap_s: Positive = 0.5
    max_std_m: Positive = 0.5
    max_std_deg: Positive = 20.0
    max_jump_m: Positive = 0.3
    max_jump_deg: Positive = 20.0
    recover_s: Positive = 5.0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.source.startswith("pose") != bool(self.topic):
            raise ValueError(f"topic goes with the sources pose and pose_with_covariance, got {self.source}")
        if self.alignment and not self.topic:
            raise ValueError(f"alignment goes with the sources pose and pose_with_covariance, got {self.source}")


@dataclass(frozen=True)
class PlacerOptions:
    """How the robot gets to an episode's start.

    Attributes:
        by: ``operator``: a person drives or carries it, and is told how far off it is; ``drive``: it drives itself, and
            stops at a contact; ``simulation``: the simulated robot's service.
        service: of ``simulation``.
        within_m, within_deg: how near is near enough, but for ``simulation``.
        timeout_s: how long placing may take.
    """

    by: Literal["operator", "drive", "simulation"] = "operator"
    service: str = "/simulation/place"
    within_m: Positive = Tolerance.within_m
    within_deg: Positive = Tolerance.within_deg
    timeout_s: Positive = Tolerance.timeout_s

    __pydantic_config__ = config.STRICT

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance(self.within_m, self.within_deg, self.timeout_s)


_TF = LocalizerOptions("tf")


@dataclass(frozen=True)
class RosOptions:
    """All of it.

    Attributes:
        robot_name: namespace of an Interbotix robot.
        localizer: the pose that the policy is given. referee: the pose that scores are computed from.
    """

    family: VariantName
    camera: CameraOptions
    robot_name: str = "locobot"
    master: MasterOptions = field(default_factory=MasterOptions)
    clock: ClockOptions = field(default_factory=ClockOptions)
    topics: Topics = field(default_factory=Topics)
    base: BaseOptions = field(default_factory=BaseOptions)
    head: HeadOptions = field(default_factory=HeadOptions)
    localizer: LocalizerOptions = _TF
    referee: LocalizerOptions = _TF
    placer: PlacerOptions = field(default_factory=PlacerOptions)

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.referee.source == "odometry":
            raise ValueError("referee must know the map: odometry does not")
        if not self.robot_name.replace("_", "").isalnum():
            raise ValueError(f"robot_name must be a plain ROS name, got {self.robot_name!r}")
