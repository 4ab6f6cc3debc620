"""The agent ``human``: a person decides each action, as in the "humans as agents" rows of simulators' papers.

The record of a step says who decided, with which device, what the person saw, and the reaction time. Habitat's human
baseline saw the robot's camera alone; a person who sees the robot or the map is not comparable with it, so the view
that was offered is written next to each action.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, velocity
from robot_runtime.common.clock import Stopwatch
from robot_runtime.errors import EpisodeAborted, PolicyError
from robot_runtime.policies.human.inbox import ActionInbox, Choice
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task

View = Literal["camera", "camera+depth", "all", "in-sight"]
"""View that a person is offered while deciding."""

PATIENCE_S = 600.0
"""Longest wait for one action."""

PERIOD_S = 0.3
"""Duration of a continuous command: what a robot still drives after the key is released, without its ramp."""

_POLL_S = 0.1
_SHARES: dict[Action, tuple[float, float, float]] = {
    Action.MOVE_FORWARD: (1.0, 0.0, 0.0),
    Action.TURN_LEFT: (0.0, 1.0, 0.0),
    Action.TURN_RIGHT: (0.0, -1.0, 0.0),
    Action.LOOK_UP: (0.0, 0.0, 1.0),
    Action.LOOK_DOWN: (0.0, 0.0, -1.0),
}


class Human(Policy):
    """A person as agent.

    Args:
        operator: pseudonym of the person, for the log.
        view: what the person sees: ``camera`` (the robot's color image), ``camera+depth``, ``all`` (also map and pose),
            ``in-sight`` (the robot itself).
        continuous: whether keys and sticks become velocities, in a task that has them; otherwise discrete actions.

    Attributes:
        inbox: where devices put what the person asks for.
    """

    name = "human"
    follows = True

    def __init__(self, operator: str = "", view: View = "in-sight", continuous: bool = False) -> None:
        if view not in get_args(View):
            raise PolicyError(f"agent 'human': view is {view!r}", f"use one of {', '.join(get_args(View))}")
        self.inbox = ActionInbox()
        self.operator, self.view, self.continuous = str(operator), view, continuous
        self._task: Task | None = None
        self._info: dict[str, Any] = {}

    @override
    def check(self, task: Task) -> None:
        if self.continuous and (task.control is None or task.control.velocity is None):
            raise PolicyError(
                f"task {task.name!r} has no velocities", "leave out continuous, or use objectnav_hm3d2023"
            )

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._task, self._info = task, {}
        self.inbox.clear()

    @override
    def act(self, observation: Observation) -> Decision:
        """Wait for the person.

        Raises:
            EpisodeAborted: nothing was asked for in ``PATIENCE_S``, or the operator ended the episode.
        """
        assert self._task is not None
        task = self._task
        choice, reaction_s = await_choice(self.inbox, lambda one: decision_of(one, task, self.continuous) is not None)
        assert choice is not None
        decision = decision_of(choice, task, self.continuous)
        assert decision is not None
        mode = "discrete" if isinstance(decision, Action) else "continuous"
        self._info = choice_record(choice, reaction_s, self.operator, self.view) | {"mode": mode}
        return decision

    @override
    def info(self) -> dict[str, Any]:
        return {"operator": self._info}


def decision_of(choice: Choice, task: Task, continuous: bool) -> Decision | None:
    """The decision that a choice is in a task, with ``continuous`` a velocity; None if the task has no such action."""
    if choice.stick is None and not (continuous and choice.action in _SHARES):
        return choice.action if choice.action in task.actions else None
    ranges = None if task.control is None else task.control.velocity
    if not continuous or ranges is None:
        return None
    linear, angular, tilt = _SHARES[choice.action] if choice.stick is None else (*choice.stick, 0.0)
    return velocity(
        _share(linear, ranges.linear_m_s),
        _share(angular, ranges.angular_rad_s),
        _share(tilt, ranges.tilt_rad_s),
        PERIOD_S,
    )


def await_choice(
    inbox: ActionInbox, is_known: Callable[[Choice], bool], is_over: Callable[[], bool] = lambda: False
) -> tuple[Choice | None, float]:
    """Wait for a choice that a task has.

    Args:
        inbox: inbox of the person.
        is_known: whether a choice is one of the task's; others are dropped.
        is_over: whether the person is no longer asked.

    Returns:
        The choice, or None once ``is_over``; and the seconds that it took.

    Raises:
        EpisodeAborted: none came in ``PATIENCE_S``, or the operator ended the episode.
    """
    timer = Stopwatch()
    while timer.elapsed_s() < PATIENCE_S:
        if is_over():
            return None, timer.elapsed_s()
        choice = inbox.take(_POLL_S)
        if choice is None:
            continue
        if is_known(choice):
            return choice, timer.elapsed_s()
        inbox.release()
    raise EpisodeAborted(f"the operator asked for no action in {PATIENCE_S:g} s", "run the episode again")


def choice_record(choice: Choice, reaction_s: float, operator: str, view: str) -> dict[str, Any]:
    """Record of a person's action in the log."""
    return {"by": operator, "device": choice.device, "view": view, "reaction_s": round(reaction_s, 4)}


def _share(share: float, limits: tuple[float, float]) -> float:
    return share * limits[1] if share >= 0 else -share * limits[0]
