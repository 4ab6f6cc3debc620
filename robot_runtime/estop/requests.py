"""Requests to stop and release a robot, each carried out once whichever way it comes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from robot_runtime.common.clock import Stopwatch, SystemClock, wait_for
from robot_runtime.errors import DeviceFault, RuntimeFault
from robot_runtime.hal import BaseState, Halt, Robot
from robot_runtime.hal.streams import STREAMS

Request = Literal["stop", "release"]

RELEASE_LIMIT_S = 600.0
"""Longest wait for the release of an emergency stop before an episode."""

_POLL_S = 0.1
_REMEMBERED = 256


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


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """Outcome of a stop.

    Attributes:
        done: whether the base accepted it.
        text: description for people.
        took_ms: time from the request's arrival to the base's acceptance.
    """

    done: bool
    text: str
    took_ms: float


class Stops:
    """Emergency stop of a robot for a console; for any thread.

    A page sends each press on two ways. The second one to arrive gets the first one's answer, and stops nothing: it may
    come after the operator has released the robot.

    Args:
        robot: the connected robot.
        tell: callback that gets a line about every stop that was carried out.
    """

    def __init__(self, robot: Robot, tell: Callable[[str], None]) -> None:
        self._robot, self._tell = robot, tell
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, StopAnswer] = OrderedDict()

    def stop(self, id: str, reason: str) -> StopAnswer:
        """Stop the robot.

        Args:
            id: id of the press.
            reason: who or what stops it, for people.
        """
        timer = Stopwatch()
        with self._lock:
            known = self._answers.get(id)
            if known is not None:
                return known
            try:
                answer = StopAnswer(True, f"{carry_out('stop', self._robot)} ({reason})", 1000 * timer.elapsed_s())
            except RuntimeFault as error:
                # Not remembered, so that the other way tries again.
                return StopAnswer(False, error.message, 1000 * timer.elapsed_s())
            self._answers[id] = answer
            if len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)
        self._tell(answer.text)
        return answer

    def release(self) -> str:
        """Release the emergency stop, and return what was done. Raises ``RuntimeFault``."""
        text = carry_out("release", self._robot)
        self._tell(text)
        return text

    def state(self) -> BaseState | None:
        """The base's state, or None while it is silent."""
        try:
            return self._robot.base.state(STREAMS["base"].max_age_s)
        except RuntimeFault:
            return None

    def engaged(self) -> bool | None:
        """Whether an emergency stop holds the wheels now, by the base's own report; None while it is silent."""
        state = self.state()
        return None if state is None else state.halt is Halt.E_STOP
