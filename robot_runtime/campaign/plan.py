"""Plan of a campaign: what is run, how it is compared and counted, and when it ends."""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from robot_runtime.campaign.counting import Counting, digest
from robot_runtime.common import config
from robot_runtime.common.quantities import SmallMove, Timeout
from robot_runtime.errors import ConfigError
from robot_runtime.placement.offset import Tolerance
from robot_runtime.policy import PolicySource
from robot_runtime.tasks.task import Task, load_task

SECRETS = ("token",)
PRESETS = "campaigns"
ANY_SCENE = "*"
Metric = Literal["success", "spl", "soft_spl"]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]

JUDGES = 2
"""People who may judge the success of a run."""


@dataclass(frozen=True)
class PlannedPolicy(config.Strict):
    """A policy by its source, or a sealed one by its commitment and the server that runs it.

    Attributes:
        spec: source that ``run`` takes as ``--policy`` or ``--agent``.
        arguments: arguments of the agent.
        python: interpreter of an agent in a process of its own.
        timeout_s: longest time that such an agent may take to answer.
        commitment: SHA-256 of a sealed policy's salted source, see :mod:`robot_runtime.campaign.sealing`.
        server: URL of the server that runs a sealed policy.
    """

    spec: str = ""
    arguments: dict[str, str | int | float | bool] = field(default_factory=dict)
    python: str | None = None
    timeout_s: Timeout | None = None
    commitment: str = ""
    server: str = ""

    def __post_init__(self) -> None:
        if bool(self.spec) == bool(self.commitment):
            raise ValueError("a policy has either a spec, or a commitment and a server")
        if bool(self.commitment) != bool(self.server):
            raise ValueError("a sealed policy has a commitment and a server")
        if set(SECRETS) & set(self.arguments):
            raise ValueError("a plan is public: give the token in the environment as ROBOT_RUNTIME_TOKEN")

    @property
    def source(self) -> PolicySource:
        """The source to load it from; of a sealed policy, its server."""
        if self.commitment:
            return PolicySource(self.server)
        arguments = {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in self.arguments.items()
        }
        return PolicySource(self.spec, arguments, self.python, self.timeout_s)


@dataclass(frozen=True)
class PlannedRobot(config.Strict):
    """A robot, as on the command line of ``run``, and its way to the next start.

    Attributes:
        placing: ``own``: the robot's own way (a simulator sets it down, else a person); ``drive``: it drives there, and
            a person is asked where it cannot; ``person``: a person brings it.
    """

    robot: str
    camera: str | None = None
    localizer: str | None = None
    referee: str | None = None
    placing: Literal["own", "drive", "person"] = "own"
    real_time: bool = False


@dataclass(frozen=True)
class Limits(config.Strict):
    """Limits of a run; None for the task's own.

    Attributes:
        steps: actions.
        minutes: time since the start, on the robot's clock.
        contacts: number of contacts that ends the run as ``contact_limit``; None for any number.
        tries: number of tries of a policy from a start, repetitions by rule included.
    """

    steps: Count | None = None
    minutes: config.Positive | None = None
    contacts: Count | None = None
    tries: Count = 3


@dataclass(frozen=True)
class Order(config.Strict):
    """Random order, as a function of the seed.

    Attributes:
        block: starts within which each policy goes first equally often.
        by_scene: whether all starts of a scene follow each other.
        policies_per_start: how many of the policies run from each start, drawn at random; None for all.
    """

    seed: Annotated[int, Field(ge=0)]
    block: Count = 10
    by_scene: bool = False
    policies_per_start: Count | None = None


@dataclass(frozen=True)
class Test(config.Strict):
    """Question and rule of its answer.

    Attributes:
        metric: metric that is compared, between 0 and 1.
        alpha: probability of a wrong answer.
        sided: ``two``: whether the policies differ; ``one``: whether the second is better than the first.
        counts: the result that is tested, see :class:`~robot_runtime.campaign.counting.Counting`.
        largest: starts after which the campaign ends without an answer.
        least: starts before which it does not end.
    """

    largest: Count
    metric: Metric = "success"
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    sided: Literal["one", "two"] = "two"
    counts: Literal["strict", "lenient"] = "strict"
    least: Count = 1
    __test__ = False


@dataclass(frozen=True)
class PairLimits(config.Strict):
    """Conditions under which runs from one start are comparable; otherwise all of them are repeated.

    Attributes:
        placement: largest error of each start; what is above it counts as ``start``.
        battery: largest difference of the charges at the start, parts of 1.
        light: largest ratio of the mean brightness of the first images, less 1.
        apart_m: largest distance between the starts.
        rounds: how often a start is tried with all policies before it is given up.
    """

    placement: Tolerance = field(default_factory=lambda: Tolerance(0.1, 10.0))
    battery: Fraction = 0.3
    light: config.Positive = 0.5
    apart_m: SmallMove = 0.15
    rounds: Count = 2


@dataclass(frozen=True)
class Judging(config.Strict):
    """People who judge each run's success, without knowing the policy.

    Attributes:
        judges: how many must; none: the metric's own rule holds. Where two disagree, the strict result is failure and
            the lenient one success.
    """

    judges: Annotated[int, Field(ge=0, le=JUDGES)] = 0


@dataclass(frozen=True)
class Battery(config.Strict):
    """Charges between which robots work; a robot that does not know its charge is not paused.

    Attributes:
        least: charge below which no run may end, by the consumption of the runs so far.
        resume: charge at which a paused robot resumes.
        first_run: consumption that is assumed before any run has been measured.
    """

    least: Fraction = 0.15
    resume: Fraction = 0.8
    first_run: Fraction = 0.1

    def expected(self, taken: Sequence[float]) -> float:
        """Charge that a run takes at most, with a probability of about 0.98: mean and two standard deviations."""
        if len(taken) < 2:
            return max([self.first_run, *taken])
        return statistics.fmean(taken) + 2 * statistics.stdev(taken)

    def must_charge(self, charge: float | None, runs: int, taken: Sequence[float]) -> bool:
        """Whether a robot must charge before it begins; one that is charged enough to resume never must.

        Args:
            charge: present charge, 0 to 1; None if unknown, and then it never must.
            runs: number of runs that follow each other from the next start.
            taken: charge that each run has taken so far.
        """
        return charge is not None and not self.is_charged(charge) and charge - runs * self.expected(taken) < self.least

    def is_charged(self, charge: float | None) -> bool:
        """Whether a robot that was paused resumes."""
        return charge is None or charge >= self.resume


@dataclass(frozen=True)
class Help(config.Strict):
    """Ways of asking for a person, besides the terminal and the console.

    Attributes:
        desktop: whether a desktop notification is sent (``notify-send``).
        hook: URL to which each question, and each new head of the ledger, is posted as JSON.
        patience_minutes: time after which the campaign stops for want of an answer.
    """

    desktop: bool = False
    hook: str | None = None
    patience_minutes: config.Positive = 600.0

    def __post_init__(self) -> None:
        if self.hook is not None and not self.hook.startswith(("http://", "https://")):
            raise ValueError("the hook is not an http:// or https:// address")


@dataclass(frozen=True)
class Plan(config.Strict):
    """The plan; files are relative to the folder in which the command is given, as on every command line.

    Attributes:
        name: name of the campaign, and of its folder.
        task: preset or YAML file.
        scenes: folder or bundled scene by the episodes' scene name; ``"*"`` for all others.
        episodes: file of the starts.
        policies: policies by their name in logs.
        robots: robots that work at the same time.
        question: question in words, for the report.
        split: split of the dataset, for submissions.
        count: number of the file's episodes that are used, from the first; None for all.
        repetitions: runs of each policy from each start.
        blind: whether policies must be sealed.
        show_scores: whether scores and the present answer are shown while it runs.
        signer: public key (Ed25519, hexadecimal) with which the ledger is signed; empty for none.
    """

    name: str
    task: str
    scenes: dict[str, str]
    episodes: str
    policies: dict[str, PlannedPolicy]
    robots: tuple[PlannedRobot, ...]
    order: Order
    test: Test
    question: str = ""
    split: str = ""
    count: Count | None = None
    repetitions: Count = 1
    limits: Limits = field(default_factory=Limits)
    pairs: PairLimits = field(default_factory=PairLimits)
    judging: Judging = field(default_factory=Judging)
    counting: Counting = field(default_factory=Counting)
    battery: Battery = field(default_factory=Battery)
    help: Help = field(default_factory=Help)
    blind: bool = False
    show_scores: bool = True
    signer: str = ""

    def __post_init__(self) -> None:
        for name in (self.name, *self.policies):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.]*(-[A-Za-z0-9_.]+)*", name):
                raise ValueError(f"the name {name!r} has other characters than letters, digits, _ . and single -")
        if not (self.policies and self.robots and self.scenes):
            raise ValueError("a plan needs a policy, a robot and a scene")
        if self.blind and not all(policy.commitment for policy in self.policies.values()):
            raise ValueError("a blind plan has sealed policies only: make it with `robot-runtime campaign seal`")
        if self.signer and not re.fullmatch(r"[0-9a-f]{64}", self.signer):
            raise ValueError("the signer's public key is not 64 hexadecimal digits")
        if (self.order.policies_per_start or 1) > len(self.policies):
            raise ValueError("there are fewer policies than policies_per_start")
        if self.test.least > self.test.largest:
            raise ValueError("test.least is more than test.largest")

    @property
    def compared(self) -> tuple[str, str] | None:
        """The two policies that are compared; None if there are more or fewer."""
        names = tuple(sorted(self.policies))
        return (names[0], names[1]) if len(names) == 2 else None

    def scene(self, name: str) -> str:
        """The folder of an episode's scene. Raises ``ConfigError``."""
        folder = self.scenes.get(name, self.scenes.get(ANY_SCENE))
        if folder is None:
            raise ConfigError(
                f"plan {self.name!r} has no scene {name!r}", f"add it to 'scenes', or a default as '{ANY_SCENE}'"
            )
        return folder

    def limited_task(self) -> Task:
        """The task with the plan's limits. Raises ``ConfigError``."""
        task, limits = load_task(self.task), self.limits
        try:
            task = task if limits.steps is None else replace(task, max_steps=limits.steps)
            return task if limits.minutes is None else replace(task, max_seconds=60 * limits.minutes)
        except ValueError as error:
            raise ConfigError(f"plan {self.name!r}: limits: {error}", "correct the limits") from error

    def document(self) -> dict[str, Any]:
        """The plan as JSON, every default written out."""
        return cast("dict[str, Any]", config.unparse(self))

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`document`."""
        return digest(self.document())


def load_plan(path: Path) -> Plan:
    """Read a plan, with its preset below it.

    A plan's ``preset`` is the name of a file in ``launch/campaigns`` or a path; what the plan states goes before it.

    Raises:
        ConfigError: the plan, or its preset, is missing or malformed.
    """
    return parse_plan(config.read_yaml(path), str(path))


def parse_plan(stated: Any, where: str) -> Plan:
    """A plan from a document, with its preset below it. Raises ``ConfigError``."""
    if not isinstance(stated, dict):
        raise ConfigError(f"{where}: not a plan", "write it as docs/how-to/campaigns.md shows")
    stated.pop("contents", None)  # of a plan that was published: they are computed again
    preset = stated.pop("preset", None)
    if preset is not None:
        below = config.read_yaml(config.find_preset(PRESETS, str(preset)))
        if not isinstance(below, dict):
            raise ConfigError(f"preset {preset!r} is not a mapping", "write it as those in launch/campaigns")
        stated = merged(below, stated)
    return config.parse(stated, Plan, where)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings, and the mappings in them, where ``above`` goes first."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
