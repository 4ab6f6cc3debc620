"""Outcome of each start: the value of every policy's run, strict and lenient, and the answer of the sequential test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from robot_runtime.campaign.plan import Plan
from robot_runtime.campaign.state import Attempt, State
from robot_runtime.scoring.statistics.sequential import SequentialPairedTest

View = Literal["strict", "lenient"]
VIEWS: tuple[View, ...] = ("strict", "lenient")


def value(state: State, counted: Attempt, view: View) -> float:
    """The metric of a policy's runs from a start, between 0 and 1.

    Args:
        state: state of the campaign.
        counted: the run that was not repeated.
        view: where a kind counts as a failure, the value is 0, also if the run with it was repeated.
    """
    plan = state.plan
    attempts = [attempt for attempt in state.by_start[counted.start] if attempt.policy == counted.policy]
    if any(plan.counting.rule(kind, view) == "failure" for attempt in attempts for kind in attempt.kinds):
        return 0.0
    facts = counted.facts
    metrics = {} if facts is None else facts.metrics
    said = [verdict.success for verdict in counted.judges.values() if verdict.success is not None]
    stated = metrics.get(plan.test.metric)
    if not said or plan.test.metric == "soft_spl":
        return float(stated or 0.0)
    if not (all(said) if view == "strict" else any(said)):
        return 0.0
    if plan.test.metric == "success":
        return 1.0
    shortest, length = metrics.get("shortest_path_m"), metrics.get("path_length_m")
    if shortest is None or length is None:
        return float(stated or 0.0)
    longest = max(shortest, length)
    return shortest / longest if longest > 0 else 1.0


def values(state: State, view: View) -> list[dict[str, float]]:
    """The values of every finished start by policy, in the order in which the starts were finished."""
    return [
        {policy: value(state, counted, view) for policy, counted in sorted(progress.valid.items())}
        for _, progress in state.finished
    ]


def values_with_given_up(state: State, view: View, missing: float) -> list[dict[str, float]]:
    """The same, and after them the starts that were given up, where a run that is missing has the value ``missing``."""
    given_up = [
        {
            policy: value(state, left[policy], view) if policy in left else missing
            for policy in sorted(state.starts[number].policies)
        }
        for number in state.given_up
        for left in [state.progress(number).left]
    ]
    return values(state, view) + given_up


@dataclass(frozen=True)
class Answer:
    """The answer so far.

    Attributes:
        decision: ``continue``, ``undecided``, or the name of the better policy; ``single`` or ``several`` where not two
            policies are compared.
        pairs: starts that count.
        p_value: p-value that is valid at any time; None where nothing is tested.
        low, mean, high: difference second less first and its bounds, valid at any time; None where nothing
            is tested.
        means: mean of each policy.
    """

    decision: str
    pairs: int
    p_value: float | None
    low: float | None
    mean: float | None
    high: float | None
    means: dict[str, float]

    @property
    def ends(self) -> bool:
        """Whether the campaign ends with it."""
        return self.decision not in ("continue", "single", "several")

    def document(self) -> dict[str, Any]:
        """As JSON, numbers rounded to twelve digits, so that it is the same on every computer."""
        return {name: rounded(part) for name, part in vars(self).items()}


class RunningAnswer:
    """The answer of the plan's test after each finished start."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._begin()

    def _begin(self) -> None:
        rule = self._plan.test
        self._test = SequentialPairedTest(rule.metric, alpha=rule.alpha, sides=rule.sided, max_pairs=rule.largest)
        self._starts: list[Mapping[str, float]] = []
        self._totals: dict[str, tuple[float, int]] = {}
        self._decision = "continue"
        self._pairs = 0

    def add(self, start: Mapping[str, float]) -> Answer:
        """Add the values of the next finished start, by policy, and return the answer."""
        self._starts.append(start)
        for policy, metric in start.items():
            total, count = self._totals.get(policy, (0.0, 0))
            self._totals[policy] = total + metric, count + 1
        if self._plan.compared is None:
            self._pairs += 1
        elif self._decision == "continue" or self._pairs < self._plan.test.least:
            first, second = self._plan.compared
            self._decision = self._test.add(start[first], start[second])
            self._pairs += 1
        return self.answer

    def after(self, starts: Sequence[Mapping[str, float]]) -> Answer:
        """The answer after these starts; quick if they begin with those of the last call."""
        if starts[: len(self._starts)] != self._starts:
            self._begin()
        for start in starts[len(self._starts) :]:
            self.add(start)
        return self.answer

    @property
    def answer(self) -> Answer:
        """The answer so far."""
        plan, test, pairs = self._plan, self._test, self._pairs
        means = {policy: total / count for policy, (total, count) in sorted(self._totals.items())}
        if plan.compared is None:
            return Answer("single" if len(plan.policies) == 1 else "several", pairs, None, None, None, None, means)
        early = pairs < plan.test.least and self._decision != "undecided"
        decision = "continue" if early else self._decision
        named = dict(zip("AB", plan.compared, strict=True)).get(decision, decision)
        if not pairs:
            return Answer(named, 0, None, None, None, None, means)
        interval = test.interval
        return Answer(named, pairs, test.p_value, interval.low, interval.mean, interval.high, means)


def answer(plan: Plan, starts: Sequence[Mapping[str, float]]) -> Answer:
    """The answer of the plan's test to the values of finished starts, in order."""
    return RunningAnswer(plan).after(starts)


def closing(state: State, result: Answer) -> tuple[str | None, Answer]:
    """How a campaign ended, by its runs, and its last answer, whatever the ledger states of them.

    Returns:
        ``decided``, ``undecided``, ``all_run``, or None for a campaign that has not ended or has runs left; and the
        answer, ``undecided`` where all has been run without one.
    """
    if state.closed is None:
        return None, result
    if result.ends:
        return "undecided" if result.decision == "undecided" else "decided", result
    if any(state.next_run(robot) is not None for robot in range(len(state.plan.robots))):
        return None, result
    return "all_run", replace(result, decision="undecided") if state.plan.compared else result


def rounded(part: Any) -> Any:
    """A JSON value with numbers of at most twelve digits."""
    if isinstance(part, float):
        return float(f"{part:.12g}")
    if isinstance(part, Mapping):
        return {key: rounded(value) for key, value in part.items()}
    return [rounded(item) for item in part] if isinstance(part, (list, tuple)) else part


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal, numbers to nine digits: another computer may round differently."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(left, right) for left, right in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
        return numbers and abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))
    return bool(a == b)


def sentence(plan: Plan, result: Answer) -> str:
    """The answer in words."""
    means = ", ".join(f"{name} {mean:.3f}" for name, mean in result.means.items())
    what = f"{plan.test.metric} after {result.pairs} starts: {means}" if result.means else "no start is finished"
    if result.decision == "continue":
        return f"not yet; {what}"
    if result.decision in ("single", "several"):
        return what
    tail = "" if result.p_value is None else f" (p = {result.p_value:.2g}, valid at any time)"
    if result.decision == "undecided":
        return f"no answer; {what}{tail}"
    return f"{result.decision} is better; {what}{tail}"


def closing_lines(state: State, result: Answer) -> list[str]:
    """What the end of a campaign says, in words: the answer, the other count where it differs, what people did."""
    plan, counts = state.plan, state.plan.test.counts
    lines = [f"{sentence(plan, result)} ({counts} count)"]
    other: View = "lenient" if counts == "strict" else "strict"
    differing = answer(plan, values(state, other))
    if differing.means != result.means:
        means = ", ".join(f"{name} {mean:.3f}" for name, mean in differing.means.items())
        lines.append(f"by the {other} count: {plan.test.metric} {means}")
    attempts = state.attempts.values()
    disputed = [
        attempt.name
        for attempt in attempts
        if len({said.success for said in attempt.judges.values() if said.success is not None}) > 1
    ]
    if disputed:
        lines.append(f"the judges disagree on {', '.join(disputed)}")
    helped = [attempt.name for attempt in attempts if attempt.facts is not None and attempt.facts.taken_over]
    if helped:
        lines.append(f"a person took over in {', '.join(helped)}")
    return lines
