"""The action that a person asks for, between the thread that reads a device and the thread of the robot.

Nothing is queued: what is pressed while the robot still moves is dropped, so that a robot never moves on after the last
key. A device that reports releases (a page, a gamepad) holds an action instead, which is repeated until it is released.
"""

import threading
from dataclasses import dataclass

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import EpisodeAborted


@dataclass(frozen=True, slots=True)
class Choice:
    """An action that a person asks for.

    Attributes:
        action: discrete; ``velocity_control`` with a ``stick``.
        device: ``keyboard``, ``gamepad`` or ``console``.
        stick: shares of the largest forward and turning velocity, -1 to 1, left positive; None for a key.
    """

    action: Action
    device: str
    stick: tuple[float, float] | None = None


class ActionInbox:
    """Place for one action. ``take`` is for the robot's thread, the other methods for any.

    Attributes:
        waits: whether the robot waits for an action now.
        held: the action that is held until :meth:`release`, for loops that do not wait; None for none.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.waits = False
        self._pressed: Choice | None = None
        self.held: Choice | None = None
        self._aborted: str | None = None

    def press(self, choice: Choice) -> bool:
        """Ask for an action once; return whether the robot waits for one and takes it."""
        with self._changed:
            if not self.waits or self._pressed is not None:
                return False
            self._pressed = choice
            self._changed.notify_all()
            return True

    def hold(self, choice: Choice) -> None:
        """Ask for an action again and again until :meth:`release`; a short tap asks once if the robot waits."""
        with self._changed:
            self.held = choice
            if self.waits:
                self._pressed = choice
            self._changed.notify_all()

    def release(self) -> None:
        """Ask for nothing any more."""
        with self._changed:
            self.held = None

    def abort(self, reason: str) -> None:
        """Let the next or present :meth:`take` raise ``EpisodeAborted``."""
        with self._changed:
            self._aborted = reason
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget everything, for a new episode."""
        with self._changed:
            self._pressed = self.held = self._aborted = None

    def take(self, timeout_s: float) -> Choice | None:
        """Wait for an action; None after ``timeout_s`` without one. Raises ``EpisodeAborted`` after :meth:`abort`."""
        with self._changed:
            self.waits = True
            try:
                self._changed.wait_for(lambda: self._pressed or self.held or self._aborted is not None, timeout_s)
                if self._aborted is not None:
                    raise EpisodeAborted(self._aborted, "go on with the next episode, or run this one again")
                return self._pressed or self.held
            finally:
                self.waits, self._pressed = False, None
