"""Between the threads that read requests and the one thread that owns the robot: one request at a time, each once.

* A request while another one is carried out is refused, not queued: a client in lock step never sends one.
* While an episode runs, the robot belongs to the client that began it.
* Numbered requests (``sequence`` > 0) can be repeated: the same number with the same content gets the same answer and
  moves nothing; while it is still carried out, the repeat waits for it. A lower number is refused. Numbers begin anew
  with an episode.
* A connection that is lost while its request is carried out: a request without a number is cut short, because nobody
  can ask for its answer any more; a numbered one is finished, and its answer kept for the repeat.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from robot_runtime.errors import RuntimeFault

_POLL_S = 0.05
"""How often a waiting thread looks whether its client is still there: five periods of a 100 Hz base."""


class Refused(RuntimeFault):
    """A request that is not carried out; nothing has changed.

    Args:
        status: of the HTTP answer.
    """

    def __init__(self, message: str, remedy: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message, remedy)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over the wire."""

    status: HTTPStatus
    body: bytes


@dataclass(eq=False)
class Call:
    """One request on its way to the robot and back.

    Attributes:
        client: who asks. sequence: its number, 0 for none. content: the request as it came, to know a repeat by.
        request: the same, understood. begins: whether it begins an episode.
        cut: set when nobody waits for the answer any more and the robot is to stop.
        done: set when there is an answer.
    """

    client: str
    sequence: int
    content: bytes
    request: Any
    begins: bool
    cut: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None

    def repeats(self, other: Call) -> bool:
        """Whether this is the other request once more."""
        same = (self.client, self.sequence, self.content) == (other.client, other.sequence, other.content)
        return self.sequence > 0 and same


class RequestQueue:
    """See the module. ``ask`` and ``stop`` are for any thread, everything else for the robot's."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._present: Call | None = None
        self._last: Call | None = None
        self._owner: str | None = None
        self._closed = False

    def ask(self, call: Call, is_gone: Callable[[], bool]) -> Answer | None:
        """The answer, once there is one; None if the client is gone.

        Raises:
            Refused: as the module says, or after :meth:`stop`.
        """
        with self._changed:
            waits_for = self._admit(call)
            self._changed.notify_all()
        while not waits_for.done.wait(_POLL_S):
            if is_gone():
                if not call.sequence:
                    call.cut.set()
                return None
        return waits_for.answer

    def next(self, timeout_s: float) -> Call | None:
        """The next request, or None after ``timeout_s`` without one, and at once after :meth:`stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self._present is not None or self._closed, timeout_s)
            return self._present

    def reply(self, call: Call, answer: Answer, owns: bool) -> None:
        """Answer the request; ``owns``: whether an episode runs that its client now has."""
        with self._changed:
            call.answer = answer
            self._present, self._last = None, call
            self._owner = call.client if owns else None
        call.done.set()

    def release(self) -> None:
        """The episode was ended without a request: anybody may begin the next one, numbers begin anew."""
        with self._changed:
            self._owner = self._last = None

    @property
    def stopped(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._closed

    def stop(self) -> None:
        """Refuse what comes from now on; for any thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self, answer: Answer) -> None:
        """As :meth:`stop`, and give what still waits this answer."""
        self.stop()
        with self._changed:
            waiting, self._present = self._present, None
        if waiting is not None:
            waiting.answer = answer
            waiting.done.set()

    def _admit(self, call: Call) -> Call:
        """The call whose answer this one gets: itself, or the one that it repeats."""
        if self._closed:
            raise Refused("the server ends", "start it again", HTTPStatus.SERVICE_UNAVAILABLE)
        for known in (self._present, self._last):
            if known is not None and call.repeats(known):
                return known
        if self._owner is not None and self._owner != call.client:
            raise Refused(
                f"the robot is in an episode of another client, {self._owner}",
                "wait until that episode is over, or its client silent for the time limit",
                HTTPStatus.CONFLICT,
            )
        if self._present is not None:
            raise Refused(
                "the robot is carrying out another request", "wait for its answer, one at a time", HTTPStatus.CONFLICT
            )
        last = self._last
        if last is not None and last.client == call.client and not call.begins and 0 < call.sequence <= last.sequence:
            raise Refused(
                f"sequenceId {call.sequence} is not above {last.sequence}, the last one that was carried out",
                "count up by one per request; repeat a request only unchanged",
                HTTPStatus.CONFLICT,
            )
        self._present = call
        return call
