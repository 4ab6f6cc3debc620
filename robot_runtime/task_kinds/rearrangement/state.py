"""State that a step of a rearrangement episode logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from robot_runtime.scenes.objects import Grab, ObjectPose
from robot_runtime.tasks.state import StateFormat, StepState

WALKTHROUGH = "walkthrough"
"""Phase in which the agent sees the goal state and moves nothing."""

UNSHUFFLE = "unshuffle"
"""Phase in which the agent moves objects."""


@dataclass(frozen=True, slots=True)
class RearrangementState(StepState):
    """State of the objects after an action.

    Attributes:
        poses: poses (map) of the tracked objects, without those that are held; in the log, in ``/objects``.
        held: ids of the carried objects, in the order of grasping.
        grab: result of the action ``grab_release``; None after any other.
        phase: phase of the episode, see :attr:`StepState.phase`.
    """

    poses: Mapping[str, ObjectPose] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    grab: Grab | None = None
    phase: str = ""

    @property
    @override
    def scored(self) -> bool:
        return self.phase != WALKTHROUGH


STATE_FORMAT = StateFormat(RearrangementState, shared="poses")
