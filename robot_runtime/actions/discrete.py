"""The discrete actions, their magnitudes, and the dialects in which other software spells them.

Logs and files hold names, never ids: the ids of the published simulators changed between versions
(habitat-lab v0.1.0: ``move_forward`` 0; later ``stop`` 0) and an id in habitat-lab is an index into a config.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Integral

from robot_runtime.common import config
from robot_runtime.common.quantities import StepLength, TurnAngle
from robot_runtime.errors import UnknownAction


class Action(str, Enum):
    """One action, by the name under which it is logged (habitat-lab's names).

    Those that end in ``_control`` are continuous: ``robot_runtime.actions.timed.TimedAction`` has what they ask for.
    """

    STOP = "stop"
    MOVE_FORWARD = "move_forward"
    TURN_LEFT = "turn_left"
    TURN_RIGHT = "turn_right"
    LOOK_UP = "look_up"
    LOOK_DOWN = "look_down"
    GRAB_RELEASE = "grab_release"
    VELOCITY_CONTROL = "velocity_control"
    WAYPOINT_CONTROL = "waypoint_control"
    TRAJECTORY_CONTROL = "trajectory_control"

    def __str__(self) -> str:
        return self.value


CONTINUOUS = (Action.VELOCITY_CONTROL, Action.WAYPOINT_CONTROL, Action.TRAJECTORY_CONTROL)


@dataclass(frozen=True, slots=True)
class Displacement:
    """Motion that an action asks for, in the robot's own frame.

    Attributes:
        forward_m: along base_link's x axis.
        turn_rad: about base_link's z axis, counter-clockwise (left) positive.
        tilt_rad: camera pitch, **up positive** (Habitat's sense; LoCoBot servos count down as positive).
    """

    forward_m: StepLength = 0.0
    turn_rad: float = 0.0
    tilt_rad: float = 0.0


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """Amounts of the actions. They belong to the task a policy was trained on, so there are no defaults.

    Attributes:
        forward_m: length of ``move_forward`` in meters, > 0.
        turn_deg: angle of ``turn_left`` and ``turn_right`` in degrees, > 0.
        tilt_deg: angle of ``look_up`` and ``look_down`` in degrees, > 0.
    """

    forward_m: StepLength
    turn_deg: TurnAngle
    tilt_deg: TurnAngle

    def __post_init__(self) -> None:
        config.check_positive(self, "forward_m", "turn_deg", "tilt_deg")

    def displacement(self, action: Action) -> Displacement:
        """The motion that ``action`` asks for; zero for ``stop``, ``grab_release`` and the continuous actions."""
        turn_rad, tilt_rad = math.radians(self.turn_deg), math.radians(self.tilt_deg)
        return {
            Action.MOVE_FORWARD: Displacement(forward_m=self.forward_m),
            Action.TURN_LEFT: Displacement(turn_rad=turn_rad),
            Action.TURN_RIGHT: Displacement(turn_rad=-turn_rad),
            Action.LOOK_UP: Displacement(tilt_rad=tilt_rad),
            Action.LOOK_DOWN: Displacement(tilt_rad=-tilt_rad),
        }.get(action, Displacement())


@dataclass(frozen=True)
class Dialect:
    """Names and numbers that one piece of software gives to the actions.

    Attributes:
        name: e.g. ``habitat-lab``.
        actions: actions in the order of their ids; an action's index is its id.
        spellings: this dialect's word for each action, in the same order.
    """

    name: str
    actions: tuple[Action, ...]
    spellings: tuple[str, ...]

    def parse(self, value: object) -> Action:
        """The action meant by this dialect's id or word.

        Args:
            value: an integer of any kind (Python's, numpy's) or a word.

        Raises:
            UnknownAction: for an id out of range, a negative id, a word that the dialect does not have, or anything
                that is neither (``True`` and ``1.0`` are not ids).
        """
        if isinstance(value, str):
            if value in self.spellings:
                return self.actions[self.spellings.index(value)]
        elif isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < len(self.actions):
            return self.actions[int(value)]
        known = ", ".join(f"{i} {word}" for i, word in enumerate(self.spellings))
        raise UnknownAction(f"action {value!r} is not one of {self.name}'s", f"use one of: {known}")

    def encode(self, action: Action) -> tuple[int, str]:
        """This dialect's ``(id, word)`` for an action. Raises ``UnknownAction`` if the dialect lacks the action."""
        if action not in self.actions:
            raise UnknownAction(f"{self.name} has no action {action}", "choose a dialect that has it")
        position = self.actions.index(action)
        return position, self.spellings[position]


_HABITAT_ORDER = (
    Action.STOP,
    Action.MOVE_FORWARD,
    Action.TURN_LEFT,
    Action.TURN_RIGHT,
    Action.LOOK_UP,
    Action.LOOK_DOWN,
)

HABITAT = Dialect("habitat-lab", _HABITAT_ORDER, tuple(a.value for a in _HABITAT_ORDER))
"""habitat-lab from v0.1.2 to HEAD (``sims/habitat_simulator/actions.py``)."""

HABITAT_2020 = Dialect("habitat-challenge 2020", _HABITAT_ORDER, tuple(a.name for a in _HABITAT_ORDER))
"""The challenges of 2020 to 2022: ``TASK.POSSIBLE_ACTIONS`` in their configuration files, which agents choose from."""

HABITAT_2023 = Dialect(
    "habitat-challenge 2023",
    _HABITAT_ORDER,
    (
        "stop",
        "move_forward_waypoint",
        "turn_left_waypoint",
        "turn_right_waypoint",
        "look_up_discrete_to_velocity",
        "look_down_discrete_to_velocity",
    ),
)
"""The discrete waypoint controller: habitat-lab, tag challenge-2023, ``task/actions/discrete_waypoint_controller``."""

HABITAT_2019 = Dialect(
    "habitat-lab v0.1.0",
    (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, Action.STOP),
    ("move_forward", "turn_left", "turn_right", "stop"),
)
"""habitat-lab v0.1.0 (``habitat_simulator.py:127-130`` at that tag); MP3D-EQA shortest paths still use it."""

ROBOTHOR = Dialect(
    "robothor-challenge",
    (Action.MOVE_FORWARD, Action.TURN_RIGHT, Action.TURN_LEFT, Action.LOOK_UP, Action.LOOK_DOWN, Action.STOP),
    ("MoveAhead", "RotateRight", "RotateLeft", "LookUp", "LookDown", "Stop"),
)
"""robothor-challenge 2021 (``ALLOWED_ACTIONS`` in ``robothor_challenge/challenge.py``)."""

ALLENACT_ROBOTHOR = Dialect(
    "allenact",
    (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, Action.STOP, Action.LOOK_UP, Action.LOOK_DOWN),
    ("MoveAhead", "RotateLeft", "RotateRight", "End", "LookUp", "LookDown"),
)
"""AllenAct's RoboTHOR ObjectNav task (``robothor_tasks.py:208``)."""

DIALECTS = {d.name: d for d in (HABITAT, HABITAT_2020, HABITAT_2023, HABITAT_2019, ROBOTHOR, ALLENACT_ROBOTHOR)}


def parse_action(name: object, allowed: Sequence[Action]) -> Action:
    """The action of that name, if the task has it.

    Args:
        name: an :class:`Action` or its logged name.
        allowed: the task's actions.

    Raises:
        UnknownAction: if ``name`` is anything else.
    """
    for action in allowed:
        if isinstance(name, str) and name == action.value:
            return action
    known = ", ".join(a.value for a in allowed)
    raise UnknownAction(f"the policy asked for action {name!r}, which this task does not have", f"use one of: {known}")
