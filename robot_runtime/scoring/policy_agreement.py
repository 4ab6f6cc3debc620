"""Whether a policy still decides as it did: over a log's observations, or beside another package's network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.continuous import VelocityCommand, WaypointCommand
from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.provenance import provenance
from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies import AGENTS
from robot_runtime.policies.package import golden
from robot_runtime.policies.package.files import PackageFiles
from robot_runtime.policies.package.policy import Package
from robot_runtime.policies.stepping import check_policy, decide, reset_policy
from robot_runtime.policy import Policy
from robot_runtime.recording import json_records
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ANSWER, EpisodeHeader

Floats = NDArray[np.float64]

_VERSION = ("robot_runtime", "commit")
"""Of provenance: what says which agents ship."""


@dataclass(frozen=True)
class LogitDistance:
    """How far the logits of one decision are from the logged ones.

    Attributes:
        max_abs, l2: of their difference. kl_nats: Kullback-Leibler divergence of the present action probabilities from
            the logged ones, at temperature 1: what the difference means for a policy that samples.
    """

    max_abs: float
    l2: float
    kl_nats: float


@dataclass(frozen=True)
class DecidedStep:
    """One decision made again.

    Attributes:
        index: of the logged step that the decision led to. logged, now: what was decided.
        logits: None where one of the two tells none, or they are of different actions.
    """

    index: int
    logged: Action | VelocityCommand | WaypointCommand
    now: Action | VelocityCommand | WaypointCommand
    logits: LogitDistance | None

    @property
    def same(self) -> bool:
        """Whether the decision is the logged one."""
        return self.logged == self.now


@dataclass(frozen=True)
class OpenLoop:
    """A policy's decisions over the observations of a log.

    The robot does what the log says, whatever is decided: after a difference the policy sees, and takes for its own
    previous action, what came of the logged one.

    Attributes:
        agent: that decided in the log. policy: that decided now. seed: of both.
        source_logged, source_now: what they were loaded from, in words; None where nobody said.
        same_source: whether that is the same, in the same version and with the same arguments; None if unknown.
        follows: whether the policy could be told of logged actions that it would not have taken; what follows the
            first difference means less where it could not.
        deterministic: whether it decides the same, to the last bit of its logits, when it is asked again with the same
            seed; repeating the log exactly counts. None where nothing was decided.
        answer_same: whether it answers the episode's question as it did; None of a task that asks none.
        steps: in order.
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
        """The steps at which it decided otherwise."""
        return tuple(step for step in self.steps if not step.same)

    @property
    def first_difference(self) -> int | None:
        """Index of the first step at which it decided otherwise."""
        return next((step.index for step in self.steps if not step.same), None)

    @property
    def agreement(self) -> float | None:
        """Share of equal decisions; None where nothing was decided."""
        return sum(step.same for step in self.steps) / len(self.steps) if self.steps else None

    @property
    def logit_difference(self) -> float | None:
        """The largest of a logit; None where no step has logits to compare."""
        return max((step.logits.max_abs for step in self.steps if step.logits is not None), default=None)


def open_loop(log: LogReader, policy: Policy) -> OpenLoop:
    """Show a policy what the log says was seen, step by step, with the log's seed.

    A policy that does not repeat the log exactly is asked a second time, to tell whether it repeats itself.

    Raises:
        RecordingError: images of the log are missing or others than the policy saw.
        PolicyError: the policy cannot run in the log's task, needs the world itself, or fails.
    """
    header = log.header
    check_policy(policy, header.task)
    if policy.privileged:
        raise PolicyMismatch(
            f"agent {policy.name!r} looks at the world, of which a log holds too little", "replay another agent"
        )
    asked = _Asked(log, policy)
    deterministic = asked.repeats_log or _Asked(log, policy).said == asked.said
    return OpenLoop(
        agent=header.agent,
        policy=policy.name,
        seed=header.seed,
        source_logged=None if header.policy is None else str(header.policy),
        source_now=None if policy.source is None else str(policy.source),
        same_source=_same_source(header, policy),
        follows=policy.follows,
        deterministic=deterministic if asked.steps else None,
        answer_same=asked.answer_same,
        steps=tuple(asked.steps),
    )


def logit_distance(logged: Floats, now: Floats) -> LogitDistance:
    """Between the logits of one decision and those of another, float64 (actions,) each, finite."""
    difference = now - logged
    log_p, log_q = (logits - np.logaddexp.reduce(logits) for logits in (logged, now))
    divergence = float(np.sum(np.exp(log_p) * (log_p - log_q)))
    return LogitDistance(float(np.abs(difference).max()), float(np.linalg.norm(difference)), max(divergence, 0.0))


class _Asked:
    """One pass over a log.

    Attributes:
        said: everything that the policy decided, with its logits and its answer.
        repeats_log: whether that is what the log says, as far as the log says it.
    """

    def __init__(self, log: LogReader, policy: Policy) -> None:
        task = log.header.task
        self.steps: list[DecidedStep] = []
        self.said: list[tuple[object, list[float] | None, object]] = []
        self.answer_same: bool | None = None
        reset_policy(policy, task, log.header.seed)
        observation = None
        for record in log.steps():
            if record.action is not None and observation is not None:
                then = record.command or record.action
                now, info = decide(policy, observation, record.index, task)
                if now != then:
                    policy.overruled(then)
                logged, own = _logits(record.policy_info), _logits(info)
                distance = None
                if logged is not None and own is not None and len(logged) == len(own):
                    distance = logit_distance(logged, own)
                self.steps.append(DecidedStep(record.index, then, now, distance))
                answers = [json_records.plain(said.get(ANSWER)) for said in (record.policy_info, info)]
                if ANSWER in record.policy_info or ANSWER in info:
                    self.answer_same = answers[0] == answers[1]
                self.said.append((now, None if own is None else own.tolist(), answers[1]))
            observation = record.observation
        exact = all(step.logits is None or step.logits.max_abs == 0.0 for step in self.steps)
        self.repeats_log = exact and self.answer_same is not False and all(step.same for step in self.steps)


def _logits(info: dict[str, Any]) -> Floats | None:
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
    # What is no file is part of the runtime, of a server or of an installed package: only of the first, more is known.
    ships = now.spec in AGENTS and not str(header.provenance.get("commit")).endswith("-dirty")
    present = provenance()
    return True if ships and all(header.provenance.get(key) == present[key] for key in _VERSION) else None


def manifest_differences(a: PackageFiles, b: PackageFiles) -> Iterator[tuple[str, Any, Any]]:
    """(field, a's, b's) of everything in which two manifests differ, dotted down to the value."""
    left, right = _flat(config.unparse(a.manifest)), _flat(config.unparse(b.manifest))
    for name in [*left, *(name for name in right if name not in left)]:
        if left.get(name) != right.get(name):
            yield name, left.get(name), right.get(name)


def network_difference(a: PackageFiles, b: Package) -> golden.Agreement:
    """How ``b``'s network does on the golden rollout of ``a``.

    Raises:
        PolicyMismatch: their tensors or preprocessing have different names, types or shapes.
        PolicyError: ``b`` failed.
    """
    fields = ("inputs", "outputs")
    if any(getattr(a.manifest, name) != getattr(b.manifest, name) for name in fields):
        raise PolicyMismatch(
            f"{a.path} and {b.path} have different inputs or outputs", "compare packages of one architecture"
        )
    manifest = dataclasses.replace(b.manifest, golden=a.manifest.golden)
    return golden.replay(manifest, golden.read(manifest, a.golden), b.network)


def _flat(document: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(document, dict):
        items = [(f"{prefix}.{key}" if prefix else str(key), value) for key, value in document.items()]
    elif isinstance(document, list) and any(isinstance(item, dict) for item in document):
        items = [(f"{prefix}[{position}]", value) for position, value in enumerate(document)]
    else:
        return {prefix: document}
    return {name: value for key, item in items for name, value in _flat(item, key).items()}
