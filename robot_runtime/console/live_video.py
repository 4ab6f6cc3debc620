"""Pictures between the steps, for people: from the robot's camera, or from the simulation's ground truth."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robot_runtime.common.clock import SimulatedClock, Stopwatch
from robot_runtime.common.threads import background
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import Intrinsics, RgbdFrame, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Simulation

RATE_HZ = 5.0
TIMEOUT_S = 0.5
SIMULATED_WIDTH = 320
"""Width of a picture that is drawn in the loop of a simulated robot."""


@contextmanager
def live_video(robot: Robot, show: Callable[[RgbdFrame], None], is_watched: Callable[[], bool]) -> Iterator[None]:
    """Show pictures of a connected robot at ``RATE_HZ`` while the context lasts and somebody watches.

    A real camera is read in a thread of its own. A simulated one is drawn without its noise in the thread of the
    clock, where the simulation belongs, and no simulated time passes. A robot whose clock is simulated without ground
    truth has the pictures of its steps only.
    """
    if robot.simulation is not None:
        simulation = robot.simulation
        subscription = simulation.every(RATE_HZ, _Drawing(robot, simulation, show, is_watched).draw)
        try:
            yield
        finally:
            subscription.close()
        return
    if isinstance(robot.clock, SimulatedClock):
        yield
        return
    with background(lambda ended: _capture(robot, show, is_watched, ended), "live video"):
        yield


class _Drawing:
    """Views of a simulation, at most ``RATE_HZ`` in host time."""

    def __init__(
        self, robot: Robot, simulation: Simulation, show: Callable[[RgbdFrame], None], is_watched: Callable[[], bool]
    ) -> None:
        self._simulation, self._show, self._is_watched = simulation, show, is_watched
        own = robot.camera.info.intrinsics
        width = min(own.width, SIMULATED_WIDTH)
        scale = width / own.width
        small = Intrinsics.from_hfov(width, round(own.height * scale), own.hfov_deg)
        self._lens = Lens.of(small)
        self._since = Stopwatch()

    def draw(self, now_ns: int) -> None:
        if self._is_watched() and self._since.elapsed_s() >= 1 / RATE_HZ:
            self._since.restart()
            self._show(RgbdFrame(now_ns, *self._simulation.render(self._lens, self._simulation.camera_pose())))


def _capture(
    robot: Robot, show: Callable[[RgbdFrame], None], is_watched: Callable[[], bool], ended: threading.Event
) -> None:
    while not ended.wait(1 / RATE_HZ):
        if not is_watched():
            continue
        try:
            show(robot.camera.capture(robot.clock.now_ns(), TIMEOUT_S))
        except RuntimeFault:  # the page shows how old its picture is; the loop reports the camera's faults itself
            continue
