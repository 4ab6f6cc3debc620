"""Placement between runs: by the robot itself where it can, by a person where it must.

The person sees the live image with a picture of the start of the run before in it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from typing_extensions import Self, override

from robot_runtime.campaign.ledger import OVERLAY, START
from robot_runtime.campaign.plan import PlannedRobot
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, PlacementFailed
from robot_runtime.hal import Placer, Robot
from robot_runtime.placement.driving import DrivingPlacer
from robot_runtime.placement.guide import Guide, Guided
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.placement.placer import OperatorPlacer
from robot_runtime.records import StepRecord, Subscriber
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Scene

_EVERY_NS = NS_PER_S // 2
_CAPTURE_S = 1.0

Say = Callable[..., Any]


class AskingPlacer(Placer):
    """A placer, and a second one, with a person's help, for where the first does not get to.

    Args:
        first: tried first; None where a person places the robot anyway.
        second: placer that asks a person.
        say: gets ``"asks"`` with a text, and ``"answered"`` when the robot stands.
    """

    def __init__(self, first: Placer | None, second: Placer, say: Say) -> None:
        self._first, self._second, self._say = first, second, say
        self.way = second.way

    @property
    def guide(self) -> Guide:
        """Messages to the person who helps; none where no person can."""
        return self._second.guide if isinstance(self._second, Guided) else Guide()

    @guide.setter
    def guide(self, guide: Guide) -> None:
        for placer in (self._first, self._second):
            if isinstance(placer, Guided):
                placer.guide = guide

    @override
    def fitted(self, robot: Robot) -> Self:
        first = None if self._first is None else self._first.fitted(robot)
        return type(self)(first, self._second.fitted(robot), self._say)

    @override
    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        self._second.place_objects(poses)

    @override
    def place(self, pose: SE2, tilt_rad: float) -> None:
        why = "Bring the robot to its start"
        if self._first is not None:
            try:
                self._first.place(pose, tilt_rad)
            except PlacementFailed as error:
                why = f"Bring the robot to its start, because it did not get there itself: {error.message}"
            else:
                self.way = self._first.way
                return
        self.way = self._second.way
        self._say("asks", text=f"{why}: x {pose.x_m:.2f} m, y {pose.y_m:.2f} m")
        self._second.place(pose, tilt_rad)
        self._say("answered")


def placer_of(
    planned: PlannedRobot, robot: Robot, scene: Scene, tolerance: Tolerance, guide: Guide, say: Say, steered: bool
) -> Placer:
    """The placer that a plan wants for a connected robot.

    In simulation a person cannot push the robot: it is set down at the start instead, unless the person can steer it. A
    simulated robot that drives or is driven begins where the scene has most room.
    """
    if planned.placing == "own":
        return robot.placer
    steered = steered and planned.placing == "person"
    parts = (robot.clock, robot.base, robot.head, robot.localizer, robot.referee, tolerance, guide)
    person: Placer = OperatorPlacer(*parts) if steered or robot.placer.way != "teleport" else robot.placer
    if robot.placer.way == "teleport" and (steered or planned.placing == "drive"):
        robot.placer.place(SE2(*scene.map.most_open_point(), 0.0), 0.0)
        robot.clock.sleep(1.0)
    if planned.placing == "person":
        return AskingPlacer(None, person, say)
    return AskingPlacer(DrivingPlacer(*parts, scene.map, robot.motion), person, say)


def blend(first: NDArray[np.uint8], live: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Both pictures, half each; the first is scaled to the size of the second.

    Args:
        first: uint8 (H, W, 3).
        live: uint8 image of any size.
    """
    size = (live.shape[1], live.shape[0])
    fitted = np.asarray(Image.fromarray(first).resize(size)) if first.shape != live.shape else first
    return ((fitted.astype(np.uint16) + live) // 2).astype(np.uint8)


class StartPicture(Guide, Subscriber):
    """Writer of ``start.png`` at each run's first observation, and of ``overlay.png`` while a robot is placed.

    Args:
        robot: connected when pictures are taken.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__()
        self._robot = robot
        self._folder = Path()
        self._first: NDArray[np.uint8] | None = None
        self._due_ns = 0

    def write_to(self, folder: Path, reference: Path | None) -> None:
        """Write the next pictures to this folder, over the picture of the run before, if there is one."""
        self._folder, self._first = folder, None
        if reference is not None and reference.is_file():
            with Image.open(reference) as image:
                self._first = np.asarray(image.convert("RGB"))

    @override
    def show(self, now_ns: int, offset: Offset | None, note: str) -> None:
        super().show(now_ns, offset, note)
        if self._first is None or now_ns < self._due_ns:
            return
        self._due_ns = now_ns + _EVERY_NS
        try:
            live = self._robot.camera.capture(now_ns, _CAPTURE_S).rgb
        except DeviceFault:  # the placement continues without a picture; the episode will say what is wrong
            return
        part = self._folder / f"{OVERLAY}.part"
        Image.fromarray(blend(self._first, live)).save(part, format="PNG")
        part.replace(self._folder / OVERLAY)

    @override
    def on_step(self, record: StepRecord) -> None:
        if record.index == 0:
            Image.fromarray(record.frame.rgb).save(self._folder / START, format="PNG", compress_level=1)
