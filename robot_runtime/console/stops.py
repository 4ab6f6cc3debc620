"""Emergency stops of a console, each carried out once whichever way it comes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import BaseState, Halt, Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.servers.emergency_stop import carry_out

_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """Outcome of a stop.

    Attributes:
        done: whether the base accepted it.
        text: for people.
        took_ms: from the request's arrival to the base's acceptance.
    """

    done: bool
    text: str
    took_ms: float


class Stops:
    """Emergency stop of one robot; for any thread.

    A page sends each press on two ways. The second one to arrive gets the first one's answer, and stops nothing: it may
    come after the operator has released the robot.

    Args:
        robot: connected.
        tell: gets a line about every stop that was carried out.
    """

    def __init__(self, robot: Robot, tell: Callable[[str], None]) -> None:
        self._robot, self._tell = robot, tell
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, StopAnswer] = OrderedDict()

    def stop(self, id: str, reason: str) -> StopAnswer:
        """Stop the robot.

        Args:
            id: of the press.
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
