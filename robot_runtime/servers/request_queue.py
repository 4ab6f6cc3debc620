"""Queue of requests from connection threads to the thread that controls the robot: one at a time, each once.

* A request during another one is refused, not queued; a client in lock step never sends one.
* While an episode runs, the robot belongs to the client that began it. A request that would begin another one is
  refused, even from a client of the same name: it may be another program; with ``takeover`` it is accepted from
  any client.
* Numbered requests (``sequence`` > 0) can be repeated: the same number with the same content gets the same answer and
  moves nothing; a repeat during the request waits for its answer. A lower number is refused. Numbers restart with
  an episode.
* If the connection is lost during a request, a request without a number is cancelled, because its answer cannot be
  retrieved; a numbered one is finished, and its answer is stored for the repeat.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from robot_runtime.errors import RuntimeFault

_POLL_S = 0.05
"""Interval in seconds at which a waiting thread checks its client: five periods of a 100 Hz base."""


class Refused(RuntimeFault):
    """A request that is refused without any effect."""

    def __init__(self, message: str, remedy: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message, remedy)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request."""

    status: HTTPStatus
    body: bytes


@dataclass(eq=False)
class Call:
    """One request and its answer.

    Attributes:
        client: name of the client.
        sequence: number of the request; 0 for none.
        content: the request's bytes, by which a repeat is recognized.
        request: the parsed request.
        begins: whether it begins an episode.
        cut: set when the client is gone and the robot has to stop.
        done: set when there is an answer.
        answer: the answer, once ``done`` is set.
    """

    client: str
    sequence: int
    content: bytes
    request: Any
    begins: bool
    cut: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None

    def repeats(self, other: "Call") -> bool:
        """Whether this request repeats the other one."""
        same = (self.client, self.sequence, self.content) == (other.client, other.sequence, other.content)
        return self.sequence > 0 and same


class RequestQueue:
    """Request queue, see the module. ``ask`` and ``stop`` are for any thread, the other methods for the robot's.

    Args:
        takeover: whether any client may begin an episode while another one runs, and thereby end that one.

    Attributes:
        stopped: whether :meth:`stop` was called.
    """

    def __init__(self, takeover: bool = False) -> None:
        self._takeover = takeover
        self._changed = threading.Condition()
        self._current: Call | None = None
        self._last: Call | None = None
        self._owner: str | None = None
        self.stopped = False

    def ask(self, call: Call, is_gone: Callable[[], bool]) -> Answer | None:
        """Wait for the answer; None if the client is gone.

        Raises:
            Refused: by the rules of the module, or after :meth:`stop`.
        """
        with self._changed:
            answered = self._admit(call)
            self._changed.notify_all()
        while not answered.done.wait(_POLL_S):
            if is_gone():
                if not call.sequence:
                    call.cut.set()
                return None
        return answered.answer

    def next(self, timeout_s: float) -> Call | None:
        """The next request, or None after ``timeout_s`` without one, and at once after :meth:`stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self._current is not None or self.stopped, timeout_s)
            return self._current

    def reply(self, call: Call, answer: Answer, owns: bool) -> None:
        """Answer the request. With ``owns``, the robot belongs to its client from now on."""
        with self._changed:
            call.answer = answer
            self._current, self._last = None, call
            self._owner = call.client if owns else None
        call.done.set()

    def release(self) -> None:
        """Free the robot after an episode that ended without a request; numbers restart."""
        with self._changed:
            self._owner = self._last = None

    def stop(self) -> None:
        """Refuse all further requests; for any thread."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    def close(self, answer: Answer) -> None:
        """Stop, and give the pending request this answer."""
        self.stop()
        with self._changed:
            waiting, self._current = self._current, None
        if waiting is not None:
            waiting.answer = answer
            waiting.done.set()

    def _admit(self, call: Call) -> Call:
        """Return the call that will be answered: this one, or the one that it repeats. Raises ``Refused``."""
        if self.stopped:
            raise Refused("the server is ending", "start it again", HTTPStatus.SERVICE_UNAVAILABLE)
        for known in (self._current, self._last):
            if known is not None and call.repeats(known):
                return known
        self._check_owner(call)
        if self._current is not None:
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
        self._current = call
        return call

    def _check_owner(self, call: Call) -> None:
        if self._owner is None or (call.begins and self._takeover):
            return
        if self._owner != call.client:
            raise Refused(
                f"the robot is in an episode of another client, {self._owner}",
                "wait until that episode is over or its client silent for the time limit, or start the server with "
                "--takeover",
                HTTPStatus.CONFLICT,
            )
        if call.begins:
            raise Refused(
                f"an episode of {self._owner} still runs: of this program, or of another one with the same user name",
                "end it with Stop; give every program a user name of its own, as the server's line does; or start the "
                "server with --takeover",
                HTTPStatus.CONFLICT,
            )
