"""What a simulator must be able to do to stand in for the robot and the place of a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from robot_runtime.actions.continuous import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import RgbdFrame
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.scenes.objects import GrabOutcome, ObjectPose
from robot_runtime.scenes.scene import Scene


class ReplayError(RuntimeFault):
    """A log cannot be replayed, or one part of its replay cannot be done."""

    exit_code = 8


class TwinUnable(ReplayError):
    """The simulator cannot do what the log's episode needs: an action, a task, a view."""


@dataclass(frozen=True, slots=True)
class TwinStep:
    """Where the twin stands after an action, at rest.

    Attributes:
        pose: base_link in ``map``. tilt_rad: of the head, up positive.
        contact: whether something stopped the action.
        outcome: how the action ended, in the runtime's words; None of a simulator that does not say, and at the start.
        frame: what the twin's camera sees there; None where no images were wanted.
        duration_s: that the action took in simulated time; None of a simulator whose actions take none.
        objects: poses (``map``) of the objects that can be moved, without those that are held; empty where none can.
        grab: what ``grab_release`` came to; None after any other action.
    """

    pose: SE2
    tilt_rad: float
    contact: bool
    outcome: Outcome | None
    frame: RgbdFrame | None
    duration_s: float | None
    objects: Mapping[str, ObjectPose] = field(default_factory=dict)
    grab: GrabOutcome | None = None


class Twin(ABC):
    """A simulator that stands in for the robot and the place of one log, or of several from one place.

    Poses are in the log's ``map``: a twin whose simulator has other axes converts them.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Simulator and robot, for people and results: ``sim``."""

    @abstractmethod
    def begin(self, header: EpisodeHeader, start: SE2, tilt_rad: float) -> TwinStep:
        """Bring the robot to ``start`` (``map``) with its camera at ``tilt_rad`` (up positive), and objects to theirs.

        What an earlier episode left is gone. If the simulator cannot put the robot exactly there, the step's pose says
        where it stands.

        Raises:
            TwinUnable: for a task or an episode that needs more than the simulator has.
            InvalidStart: the robot does not fit there, nor near there.
        """

    def next_phase_at(self, start: SE2) -> None:
        """Where the recorded robot stood when the episode's second phase began; called after :meth:`begin`.

        The action that ends the first phase takes the robot there. Twins of one-phase tasks have no use for it.
        """
        raise TwinUnable(
            f"{self.name}: the log's episode has two phases, which this twin does not know", "replay it into sim"
        )

    @abstractmethod
    def act(self, decision: Decision) -> TwinStep:
        """Carry out one action as the task defines it, and say where that led.

        Raises:
            TwinUnable: the simulator has no such action, or the episode is over: something holds the robot.
        """

    def act_from(self, before: StepRecord, decision: Decision) -> tuple[SE2, TwinStep] | None:
        """Carry out one action from where the recorded robot stood, apart from the episode that :meth:`begin` began.

        It is called after the last :meth:`act`.

        Args:
            before: the recorded step that the action followed.

        Returns:
            Where the twin began, near there or there itself, and where it ended. None if that cannot be done: by this
            twin, where the robot does not fit, or for an action that moves objects.
        """
        return None

    @abstractmethod
    def view(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """What is seen through a lens from a pose of its optical frame (x right, y down, z forward) in ``map``.

        Returns:
            Colour, uint8 (H, W, 3), and depth along the optical axis, float32 (H, W), metres, exact; 0 for nothing.

        Raises:
            TwinUnable: the simulator cannot see through such a lens, or from there.
        """

    def put_objects(self, poses: Mapping[str, ObjectPose], held: Collection[str]) -> None:
        """Objects that move stand where a step of the log has them, for :meth:`view`; those ``held`` are nowhere."""
        raise TwinUnable(
            f"{self.name}: the log's objects move, which this twin cannot show", "replay its poses into sim"
        )

    @abstractmethod
    def close(self) -> None:
        """Release the simulator; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class TwinFactory(Protocol):
    """Makes twins of one kind."""

    def __call__(
        self, header: EpisodeHeader, scene: Scene | None, images: bool, options: Mapping[str, Any], where: str
    ) -> Twin:
        """The twin for a log, ready.

        Args:
            header: of the log. scene: with meshes; None if there is none for it.
            images: whether anybody looks at the frames of :class:`TwinStep`.
            options: of this kind of twin, ``--twin-arg KEY=VALUE`` with the values read as YAML.
            where: that they come from, to begin error messages with.

        Raises:
            ConfigError: a bad option. DriverMissing: naming what to install. SceneError: it needs a scene.
            TwinUnable: it cannot stand in for this robot.
        """
        ...
