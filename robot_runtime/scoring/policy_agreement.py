"""Agreement of a policy with its logged decisions, and of two policy packages' networks."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.timed import Decision, TimedAction, stamped
from robot_runtime.common import config
from robot_runtime.common.differences import differences
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import PolicyMismatch, RecordingError
from robot_runtime.policies import AGENTS
from robot_runtime.policies.package import golden
from robot_runtime.policies.package.files import PackageFiles
from robot_runtime.policies.package.manifest import Selection
from robot_runtime.policies.package.policy import Package
from robot_runtime.policies.stepping import check_policy, decide, reset_policy
from robot_runtime.policy import Policy
from robot_runtime.recording import json_output
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ANSWER, EpisodeHeader

Floats = NDArray[np.float64]

_VERSION = ("robot_runtime", "commit")
"""Fields of the provenance that identify the version of the shipped agents."""


@dataclass(frozen=True)
class LogitDistance:
    """Distance between the logits of a decision and the logged ones.

    Attributes:
        max_abs: maximum norm of the difference.
        l2: Euclidean norm of the difference.
        kl_nats: Kullback-Leibler divergence of the new action probabilities from the logged ones, at temperature 1.
    """

    max_abs: float
    l2: float
    kl_nats: float


@dataclass(frozen=True)
class DecidedStep:
    """One decision that was made again.

    Attributes:
        index: index of the logged step that the decision led to.
        logged: logged decision.
        now: new decision.
        logits: their distance; None where either has none, or their numbers differ.
    """

    index: int
    logged: Decision
    now: Decision
    logits: LogitDistance | None

    @property
    def same(self) -> bool:
        """Whether the decision is the logged one."""
        return self.logged == self.now


@dataclass(frozen=True)
class OpenLoop:
    """Decisions of a policy over the observations of a log.

    After a difference the policy gets the observation that the logged action led to, and is told that action.

    Attributes:
        agent: agent that decided in the log.
        policy: policy that decided now.
        seed: seed of both.
        source_logged: source of the logged policy, as text; None if unknown.
        source_now: source of the new policy, as text; None if unknown.
        same_source: whether version and arguments of both are equal; None if unknown.
        follows: whether the policy accepts logged actions that it would not have taken; if not, results after the
            first difference mean less.
        deterministic: whether it repeats the log, or itself with the same seed, to the last bit of its logits; None
            where nothing was decided.
        answer_same: whether it gives the logged answer to the episode's question; None without a question.
        steps: decisions in order.
    """

    agent: str
    policy: str
    seed: int
    source_logged: str | None
    source_now: str | None
    same_source: bool | None
    follows: bool
    deterministic: bool | None
    answer_same: bool | None
    steps: tuple[DecidedStep, ...]

    @property
    def differences(self) -> tuple[DecidedStep, ...]:
        """The steps with another decision."""
        return tuple(step for step in self.steps if not step.same)

    @property
    def first_difference(self) -> int | None:
        """Index of the first step with another decision."""
        return next((step.index for step in self.steps if not step.same), None)

    @property
    def agreement(self) -> float | None:
        """Share of equal decisions; None where nothing was decided."""
        return sum(step.same for step in self.steps) / len(self.steps) if self.steps else None

    @property
    def logit_difference(self) -> float | None:
        """The largest difference of a logit; None where no step has logits to compare."""
        return max((step.logits.max_abs for step in self.steps if step.logits is not None), default=None)


def open_loop(log: LogReader, policy: Policy) -> OpenLoop:
    """Run a policy over the observations of a log, with the log's seed.

    A policy that does not repeat the log exactly is run a second time, to find out whether it repeats itself.

    Raises:
        RecordingError: images of the log are missing, or are not those that the policy saw.
        PolicyError: the policy cannot run in the log's task, needs ground truth, or fails.
    """
    header = log.header
    check_policy(policy, header.task)
    if policy.privileged:
        raise PolicyMismatch(
            f"agent {policy.name!r} needs ground truth, which a log does not have", "replay another agent"
        )
    run = _OpenLoopRun(log, policy)
    deterministic = run.repeats_log or _OpenLoopRun(log, policy).outputs == run.outputs
    return OpenLoop(
        agent=header.agent,
        policy=policy.name,
        seed=header.seed,
        source_logged=None if header.policy is None else str(header.policy),
        source_now=None if policy.source is None else str(policy.source),
        same_source=_same_source(header, policy),
        follows=policy.follows,
        deterministic=deterministic if run.steps else None,
        answer_same=run.answer_same,
        steps=tuple(run.steps),
    )


def logged_selection(log: LogReader) -> Selection | None:
    """The selection with which a policy package decided in a log; None if another kind of policy did.

    Raises:
        RecordingError: the log's record of it is damaged.
    """
    for record in log.steps(images=False):
        found = record.policy_info.get("selection")
        try:
            if found is not None:
                return Selection(found["mode"], found["temperature"], found["seed"][0])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise RecordingError(
                f"{log.path}: its record of the policy's selection is damaged: {error!r}", "leave it out"
            ) from error
        if record.index > 0:
            break
    return None


def logit_distance(logged: Floats, now: Floats) -> LogitDistance:
    """Distance between the logits of two decisions, float64 (actions,), finite."""
    difference = now - logged
    log_p, log_q = (logits - np.logaddexp.reduce(logits) for logits in (logged, now))
    divergence = float(np.sum(np.exp(log_p) * (log_p - log_q)))
    return LogitDistance(float(np.abs(difference).max()), float(np.linalg.norm(difference)), max(divergence, 0.0))


class _OpenLoopRun:
    """One pass over a log.

    Attributes:
        steps: decisions and their comparison with the log.
        outputs: decision, logits and answer of each step.
        answer_same: whether the last answer is the logged one; None without answers.
        repeats_log: whether decisions, logits and answer are the logged ones.
    """

    def __init__(self, log: LogReader, policy: Policy) -> None:
        task = log.header.task
        self.steps: list[DecidedStep] = []
        self.outputs: list[tuple[object, list[float] | None, object]] = []
        self.answer_same: bool | None = None
        reset_policy(policy, task, log.header.seed)
        observation, exposed_ns = None, 0
        for record in log.steps():
            if record.action is not None and observation is not None:
                then = record.command or record.action
                now, info = decide(policy, observation, record.index, task)
                now = stamped(now, exposed_ns) if isinstance(now, TimedAction) else now
                if now != then:
                    policy.overruled(then)
                logged, own = logged_logits(record.policy_info), logged_logits(info)
                distance = None
                if logged is not None and own is not None and len(logged) == len(own):
                    distance = logit_distance(logged, own)
                self.steps.append(DecidedStep(record.index, then, now, distance))
                answers = [json_output.plain(one.get(ANSWER)) for one in (record.policy_info, info)]
                if ANSWER in record.policy_info or ANSWER in info:
                    self.answer_same = answers[0] == answers[1]
                self.outputs.append((now, None if own is None else own.tolist(), answers[1]))
            observation, exposed_ns = record.observation, record.times.exposed_ns
        exact = all(step.logits is None or step.logits.max_abs == 0.0 for step in self.steps)
        self.repeats_log = exact and self.answer_same is not False and all(step.same for step in self.steps)


def logged_logits(info: dict[str, Any]) -> Floats | None:
    """The logits of a decision, float64 (actions,), by its ``policy_info``; None if it has none that are finite."""
    logits = info.get("logits")
    if not isinstance(logits, list) or not all(isinstance(value, int | float) for value in logits):
        return None
    found = np.array(logits, np.float64)
    return found if found.size and np.isfinite(found).all() else None


def _same_source(header: EpisodeHeader, policy: Policy) -> bool | None:
    then, now = header.policy, policy.source
    if then is None or now is None:
        return None
    if dataclasses.replace(then, timeout_s=None) != dataclasses.replace(now, timeout_s=None):
        return False
    if now.digest is not None:
        return True
    # A source without a file is part of the runtime, of a server or of a package; only the runtime's version is logged.
    shipped = AGENTS.is_own(now.spec) and not str(header.provenance.get("commit")).endswith("-dirty")
    current = provenance()
    return True if shipped and all(header.provenance.get(key) == current[key] for key in _VERSION) else None


def manifest_differences(a: PackageFiles, b: PackageFiles) -> Iterator[tuple[str, Any, Any]]:
    """The differences of two manifests as (dotted field, value of a, value of b)."""
    return differences(config.unparse(a.manifest), config.unparse(b.manifest))


def network_difference(a: PackageFiles, b: Package) -> golden.Agreement:
    """Agreement of ``b``'s network with the golden rollout of ``a``.

    Raises:
        PolicyMismatch: their tensors have different names, types or shapes.
        PolicyError: ``b`` failed.
    """
    fields = ("inputs", "outputs")
    if any(getattr(a.manifest, name) != getattr(b.manifest, name) for name in fields):
        raise PolicyMismatch(
            f"{a.path} and {b.path} have different inputs or outputs", "compare packages of the same architecture"
        )
    manifest = dataclasses.replace(b.manifest, golden=a.manifest.golden)
    return golden.replay(manifest, golden.read(manifest, a.golden), b.network)
