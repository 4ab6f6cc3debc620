"""Interface of the simulators that logs are replayed in."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import Lens, RgbdFrame
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.scenes.objects import GrabOutcome, ObjectPose
from robot_runtime.scenes.scene import Scene


class ReplayError(RuntimeFault):
    """A log, or one part of its replay, that cannot be replayed."""

    exit_code = 8


class UnsupportedBySimulator(ReplayError):
    """An action, a task or a camera pose that the simulator does not support."""


class SimulatorFailed(ReplayError):
    """A simulator's library raised an exception; names the library, its version and the call."""


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """State of the simulated robot after an action, at rest.

    Attributes:
        pose: base_link in ``map``.
        tilt_rad: head tilt, up positive.
        contact: whether a contact ended the action.
        outcome: how the action ended; None at the start, and from simulators that do not report it.
        frame: camera image; None where images were not requested.
        duration_s: simulated time of the action; None from simulators whose actions take no time.
        objects: poses (``map``) of the movable objects that are not held.
        grab: outcome of ``grab_release``; None after any other action.
    """

    pose: SE2
    tilt_rad: float
    contact: bool
    outcome: Outcome | None
    frame: RgbdFrame | None
    duration_s: float | None
    objects: Mapping[str, ObjectPose] = field(default_factory=dict)
    grab: GrabOutcome | None = None


class SimulatorBackend(ABC):
    """A simulator with the robot and the scene of a log, or of several logs from the same scene.

    Poses are in the log's ``map``; a backend converts to its simulator's axes.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Simulator and robot, for messages and results: ``sim``."""

    def facts(self, header: EpisodeHeader) -> tuple[str, ...]:
        """Sentences on what the simulator does otherwise than asked, for readers of the results."""
        return ()

    @abstractmethod
    def begin(self, header: EpisodeHeader, start: SE2, tilt_rad: float) -> SimulatedStep:
        """Start an episode, discarding the state of earlier ones.

        Args:
            header: header of the log.
            start: pose of the robot in ``map``. The returned step has the pose that the simulator could realize.
            tilt_rad: head tilt, up positive.

        Raises:
            UnsupportedBySimulator: the task or the episode needs more than the simulator has.
            InvalidStart: the robot fits neither there nor nearby.
        """

    def next_phase_at(self, start: SE2) -> None:
        """Set where the episode's second phase starts; called after :meth:`begin`, for tasks with two phases."""
        raise UnsupportedBySimulator(f"{self.name}: does not support episodes with two phases", "replay it into sim")

    @abstractmethod
    def act(self, decision: Decision, infer_s: float = 0.0) -> SimulatedStep:
        """Execute one action as the task defines it.

        Args:
            decision: the action.
            infer_s: host seconds that the decision took, during which a robot may go on with the one before.

        Raises:
            UnsupportedBySimulator: the simulator has no such action, or the episode is over.
        """

    def act_from(self, before: StepRecord, decision: Decision) -> tuple[SE2, SimulatedStep] | None:
        """Execute one action from a recorded pose, outside of the episode; called after the last :meth:`act`.

        Returns:
            The pose that the action started from, and the step that it led to. None if the backend cannot do it, the
            robot does not fit there, or the action moves objects.
        """
        return None

    @abstractmethod
    def render(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Render a view.

        Args:
            lens: camera model.
            map_from_camera: pose of the optical frame (x right, y down, z forward) in ``map``.

        Returns:
            Color, uint8 (H, W, 3), and noise-free depth along the optical axis, float32 (H, W), meters, 0 for nothing.

        Raises:
            UnsupportedBySimulator: the simulator cannot render this lens or pose.
        """

    def put_objects(self, poses: Mapping[str, ObjectPose], held: Collection[str]) -> None:
        """Place the movable objects as in a step of the log, for :meth:`render`; remove those that are ``held``."""
        raise UnsupportedBySimulator(f"{self.name}: cannot show objects that move", "replay its poses into sim")

    @abstractmethod
    def close(self) -> None:
        """Release the simulator; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BackendFactory(Protocol):
    """Constructor of the backends of a simulator."""

    def __call__(
        self, header: EpisodeHeader, scene: Scene | None, images: bool, options: Mapping[str, Any], where: str
    ) -> SimulatorBackend:
        """Return the backend for a log.

        Args:
            header: header of the log.
            scene: scene with meshes; None if there is none.
            images: whether :class:`SimulatedStep` has frames.
            options: options of this simulator, from ``--twin-arg KEY=VALUE`` with the values parsed as YAML.
            where: source of the options, for error messages.

        Raises:
            ConfigError: an option is invalid.
            DriverMissing: the simulator is not installed; names how to install it.
            SceneError: the simulator needs a scene.
            UnsupportedBySimulator: it cannot simulate the log's robot.
        """
        ...
