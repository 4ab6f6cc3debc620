"""Placer of the fake robot."""

from collections.abc import Mapping, Sequence

from drivers.fake.base import FakeBase
from drivers.fake.camera import FakeCamera
from drivers.fake.ground_truth import GroundTruth
from drivers.fake.head import FakeHead
from drivers.fake.localizer import FakeLocalizer
from drivers.fake.manipulator import FakeObjects
from robot_runtime.common.clock import SimulatedClock, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart
from robot_runtime.hal import Placer
from robot_runtime.scenes.objects import ObjectPose

HEAD_TIMEOUT_S = 10.0
PAUSE_S = 0.2
"""Pause for all sensors to measure at the new place."""


class FakePlacer(Placer):
    """Placer that teleports: odometry continues; poses and frames of the old place are dropped."""

    def __init__(
        self,
        clock: SimulatedClock,
        truth: GroundTruth,
        base: FakeBase,
        head: FakeHead,
        camera: FakeCamera,
        localizers: Sequence[FakeLocalizer],
        fake_objects: FakeObjects | None = None,
    ) -> None:
        self._clock = clock
        self._truth = truth
        self._base = base
        self._head = head
        self._camera = camera
        self._localizers = tuple(localizers)
        self._objects = fake_objects

    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        if self._objects is None:
            super().place_objects(poses)
        else:
            self._objects.put(poses)

    def place(self, pose: SE2, tilt_rad: float) -> None:
        if not pose.x_m <= self._truth.max_x_m:
            raise InvalidStart(
                f"the robot does not fit at x = {pose.x_m:.3f} m: the wall allows up to {self._truth.max_x_m:.3f} m",
                "start elsewhere, or move 'wall_x_m' in the robot's YAML",
            )
        self._head.limits.check_start(tilt_rad)
        self._base.stop()
        self._head.command(0.0, tilt_rad)
        self._truth.pose = pose
        self._camera.clear()
        for localizer in self._localizers:
            localizer.clear()
        settled = wait_for(self._clock, self._settled, HEAD_TIMEOUT_S, poll_s=1 / 1000)
        if settled is None:
            raise DeviceFault(
                f"fake head: has not reached tilt {tilt_rad:.3f} rad in {HEAD_TIMEOUT_S:g} s",
                "check the script for 'stuck_head'",
            )
        self._clock.sleep(PAUSE_S)

    def _settled(self) -> bool | None:
        return None if self._head.state(max_age_s=1.0).moving else True
