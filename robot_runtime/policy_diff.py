"""Whether a policy still decides as it did: over a log's observations, or beside another package's network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_runtime import config
from robot_runtime.commands import Decision
from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies.package import golden
from robot_runtime.policies.package.files import PackageFiles
from robot_runtime.policies.package.policy import Package
from robot_runtime.policies.policy import Policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.runtime import check_policy


@dataclass(frozen=True)
class Difference:
    """A step at which the policy decided otherwise."""

    step: int
    logged: Decision
    now: Decision


@dataclass(frozen=True)
class LogReplay:
    """A policy's decisions over a log.

    Attributes:
        steps: decisions compared. logit_difference: largest, where both have logits; else None.
    """

    agent: str
    steps: int
    differences: tuple[Difference, ...]
    logit_difference: float | None


def replay_log(log: LogReader, policy: Policy) -> LogReplay:
    """Show a policy what the log says was seen, step by step, with the log's seed.

    What it does not decide again is what came of its actions: after a difference the log goes on as it went.

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
    policy.reset(header.task, header.seed)
    differences, steps, logit_difference = [], 0, None
    observation = None
    for record in log.steps():
        if record.action is not None and observation is not None:
            now = policy.act(observation)
            steps += 1
            then = record.command or record.action
            if now != then:
                differences.append(Difference(record.index, then, now))
            logged, own = record.policy_info.get("logits"), policy.info().get("logits")
            if logged and own and len(logged) == len(own):
                logit_difference = max(logit_difference or 0.0, float(np.abs(np.subtract(logged, own)).max()))
        observation = record.observation
    return LogReplay(header.agent, steps, tuple(differences), logit_difference)


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
