"""Requests to stop and release a robot, whichever way they come; the answer to a stop is the base's state."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from robot_runtime.common.clock import Stopwatch, SystemClock, wait_for
from robot_runtime.errors import DeviceFault, RuntimeFault
from robot_runtime.hal import STREAMS, BaseState, Halt, Robot

Request = Literal["stop", "release"]

RELEASE_LIMIT_S = 600.0
"""Longest wait for the release of an emergency stop before an episode."""

_POLL_S = 0.1
_REMEMBERED = 256

CONFIRM_S = 0.2
"""Time in which the base reports that it is held."""

_CONFIRM_POLL_S = 0.002


def carry_out(request: Request, robot: Robot) -> str:
    """Engage or release the emergency stop of a connected robot, and return what was done; for any thread.

    Raises:
        RuntimeFault: the robot is not connected, or its base refuses.
    """
    if request == "stop":
        robot.base.emergency_stop()
        return f"{robot.name}: emergency stop, the wheels are held; r or `robot-runtime stop --release` releases them"
    robot.base.release_emergency_stop()
    return f"{robot.name}: the emergency stop is released"


def wait_for_release(robot: Robot, tell: Callable[[str], None]) -> None:
    """Return once no emergency stop holds the robot's wheels; for the thread that runs the episodes.

    Raises:
        DeviceFault: it was not released in ``RELEASE_LIMIT_S``, or the base is silent.
    """

    def released() -> bool | None:
        return None if robot.base.state(STREAMS["base"].max_age_s).halt is Halt.E_STOP else True

    if robot.base_state().halt is not Halt.E_STOP:
        return
    tell(f"{robot.name}: waiting for the release of the emergency stop")
    if wait_for(SystemClock(), released, RELEASE_LIMIT_S, _POLL_S) is None:
        raise DeviceFault(
            f"{robot.name}: the emergency stop was not released in {RELEASE_LIMIT_S:g} s",
            "release it, and start again with the episodes that are left",
        )


def state_of(robot: Robot) -> BaseState | None:
    """The base's state, or None while it is silent."""
    try:
        return robot.base.state(STREAMS["base"].max_age_s)
    except RuntimeFault:
        return None


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """Outcome of a stop.

    Attributes:
        done: whether the base says that it is held.
        text: description for people.
        took_ms: time from the request's arrival to the base's acceptance.
    """

    done: bool
    text: str
    took_ms: float


class Stops:
    """Emergency stop of a robot for a console; for any thread.

    Every request stops the robot, whatever its id. A page sends each press on two ways; while the stop holds, the one
    that comes second is not told again.

    Args:
        robot: the connected robot.
        tell: callback that gets a line about every stop that was carried out.

    Attributes:
        reason: who or what engaged the newest stop that came this way, for people; empty before.
    """

    def __init__(self, robot: Robot, tell: Callable[[str], None]) -> None:
        self.reason = ""
        self._robot, self._tell = robot, tell
        self._lock = threading.Lock()
        self._told: deque[str] = deque(maxlen=_REMEMBERED)

    def stop(self, id: str, reason: str) -> StopAnswer:
        """Stop the robot.

        Args:
            id: id of the press; empty for a press of its own.
            reason: who or what stops it, for people.
        """
        timer = Stopwatch()
        with self._lock:
            held = self.engaged() is True
            try:
                text = f"{carry_out('stop', self._robot)} ({reason})"
            except RuntimeFault as error:
                return StopAnswer(False, error.message, 1000 * timer.elapsed_s())
            took_ms = 1000 * timer.elapsed_s()
            if not held:
                self.reason = reason
                self._told.clear()  # it was released, here or elsewhere
            is_new = not id or id not in self._told
            self._told.append(id)
        if is_new:
            self._tell(text)
        return self._confirmed(text, took_ms)

    def _confirmed(self, text: str, took_ms: float) -> StopAnswer:
        """The answer by the base's own report, which follows within a period or two."""
        if wait_for(SystemClock(), lambda: self.engaged() or None, CONFIRM_S, _CONFIRM_POLL_S):
            return StopAnswer(True, text, took_ms)
        silent = self.engaged() is None
        what = "is silent" if silent else "does not say that it is held"
        return StopAnswer(False, f"{self._robot.name}: the stop was sent, but the base {what}", took_ms)

    def release(self) -> str:
        """Release the emergency stop, and return what was done. Raises ``RuntimeFault``."""
        text = carry_out("release", self._robot)
        self.reason = ""
        self._tell(text)
        return text

    def state(self) -> BaseState | None:
        """The base's state, or None while it is silent."""
        return state_of(self._robot)

    def engaged(self) -> bool | None:
        """Whether an emergency stop holds the wheels now, by the base's own report; None while it is silent."""
        state = self.state()
        return None if state is None else state.halt is Halt.E_STOP
