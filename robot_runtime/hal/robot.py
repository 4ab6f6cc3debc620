"""The complete robot, and who brings it to its start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import Self

from robot_runtime.common.clock import Clock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, LowBattery
from robot_runtime.hal.base import Base, BaseState
from robot_runtime.hal.camera import Camera
from robot_runtime.hal.device import Device
from robot_runtime.hal.head import Head, HeadState
from robot_runtime.hal.localizer import Localizer
from robot_runtime.hal.manipulation import Manipulator, ObjectTracker
from robot_runtime.hal.motion_profile import DEFAULT_PROFILE, MotionProfile
from robot_runtime.hal.stop_inputs import NO_STOP_INPUTS, StopInputs
from robot_runtime.hal.streams import STREAMS, across_gap
from robot_runtime.hal.wheels import Halt
from robot_runtime.scenes.objects import ObjectPose

if TYPE_CHECKING:
    from robot_runtime.hal.simulation import Simulation


FIRST_STATE_S = 1.0
"""Longest time from connecting a base to its first state."""


class Placer(ABC):
    """Brings the robot to an episode's start: a teleport in simulation, an operator or a drive in reality."""

    way: str = "teleport"
    """Method, for logs: ``teleport``, ``operator``, ``drive``."""

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
            DeviceFault: this robot's site has no way to move objects.
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
        manipulator, tracker: devices for tasks in which objects are moved; None on a robot that has none.
        simulation: what emulated devices plug into; None on a robot that is not simulated in this process.
        motion: speeds, tolerances and time limits of its motions.
        stop_inputs: emergency stops that are wired to its computer.
        min_battery_fraction: charge below which no episode begins; a base that does not know its charge is not refused.
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
    min_battery_fraction: float = 0.1
    motion: MotionProfile = DEFAULT_PROFILE
    stop_inputs: StopInputs = NO_STOP_INPUTS

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

    def base_state(self) -> BaseState:
        """Return the base's state; a base that was just connected, or whose link has a gap, has some time to report.

        Raises:
            DeviceFault: the base is silent.
        """
        return across_gap(self.clock, lambda: self.base.state(STREAMS["base"].max_age_s), self.patience_s)

    def head_state(self) -> HeadState:
        """Return the head's state, in the same way. Raises ``DeviceFault``."""
        return across_gap(self.clock, lambda: self.head.state(STREAMS["head"].max_age_s), self.patience_s)

    @property
    def patience_s(self) -> float:
        """Longest silence of a device that is waited out."""
        return max(FIRST_STATE_S, self.motion.patience_s)

    def check_ready(self) -> None:
        """Check that an episode may begin; while connected.

        Raises:
            LowBattery: the charge is below ``min_battery_fraction``.
            DeviceFault: the emergency stop is engaged, or the base is silent.
        """
        state = self.base_state()
        if state.halt is Halt.E_STOP:
            raise DeviceFault(
                f"{self.name}: the emergency stop is engaged",
                "release it where it was engaged, or with `robot-runtime stop --release` while the robot runs",
            )
        if state.battery_fraction < self.min_battery_fraction:
            raise LowBattery(
                f"{self.name}: the battery is at {state.battery}, {100 * self.min_battery_fraction:.0f} % is needed",
                "charge it, or lower min_battery_fraction in the robot's file",
            )

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

    def __exit__(self, *_: object) -> None:
        self.close()


def _leaves(localizer: Localizer) -> tuple[str, ...]:
    made_of = localizer.sources
    names = [name for source in made_of for name in _leaves(source)] if made_of else [localizer.info.name]
    return tuple(dict.fromkeys(names))
