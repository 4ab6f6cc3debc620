"""State of an episode that a kind of task logs with each step, such as where the movable objects are.

The core knows no more of it than :class:`StepState`. A kind that logs a state gives a subclass and its place in the log
(:class:`StateFormat`); the log's JSON and its schema derive from the subclass's type hints.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from robot_runtime.scenes.objects import Grab, ObjectPose


@dataclass(frozen=True, slots=True)
class StepState:
    """State of a task that has one phase and moves nothing; a subclass adds fields and overrides the properties."""

    @property
    def phase(self) -> str:
        """The phase of the episode to which the step's observation belongs; empty where a task has one only.

        After the action that ends a phase, robot and objects are brought to the start of the next before the
        observation: poses jump there.
        """
        return ""

    @property
    def scored(self) -> bool:
        """Whether the step counts for scores."""
        return True

    @property
    def poses(self) -> Mapping[str, ObjectPose]:
        """Poses (map) of the tracked objects when the action had ended, without those that are :attr:`held`."""
        return {}

    @property
    def held(self) -> tuple[str, ...]:
        """Ids of the carried objects, in the order of grasping."""
        return ()

    @property
    def grab(self) -> Grab | None:
        """Result of the action ``grab_release``; None after any other."""
        return None


NO_STATE = StepState()


@dataclass(frozen=True, slots=True)
class StateFormat:
    """Place of a kind's states in a log.

    Attributes:
        payload: dataclass of the states; those of its fields that have a default may be missing in a log.
        field: name of the state in a step's JSON, where it is null without a state.
        about: description of that field.
        shared: name of the payload's field that maps names to values and is large: it has a channel of its own,
            ``/objects``, and is written there when it has changed only. Empty without such a field.
    """

    payload: type[StepState] = StepState
    field: str = "objects"
    about: str = "null in a task that moves none"
    shared: str = ""
