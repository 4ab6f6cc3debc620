"""Facts of a run, computed from its log alone: how it ended, under which conditions it began, and its metrics."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_runtime.campaign.counting import Kind, kind_of
from robot_runtime.campaign.plan import Plan
from robot_runtime.common import config
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.metrics.measures import definitions
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.reader import LogReader
from robot_runtime.scoring.summary import Maps, score_log

RULES = Rules(policy_faults="failure", verdicts="ignore")
"""Rules of scoring: verdicts are counted afterwards, by judge, see :mod:`robot_runtime.campaign.outcomes`."""


@dataclass(frozen=True)
class Facts(config.Strict):
    """Facts of a run.

    Attributes:
        end: reason of the end; None for a log without an end.
        detail: description of the end.
        kind: kind of the intervention or fault that ended it or precluded it; None for none.
        metrics: metrics by name, those of a single episode; empty if the log cannot be scored. None where not finite.
        placement_m: error of the start; None if no source measured it.
        placement_deg: error of the start's heading; None if no source measured it.
        x_m, y_m: position of the start in ``map``, where it was measured.
        battery: charge at the start, 0 to 1; None if unknown.
        battery_end: charge at the end, 0 to 1; None if unknown.
        light: mean brightness of the first image, 0 to 1; None without color.
        map: digest of the scene.
        duration_s: duration from the first step to the end, on the robot's clock.
        taken_over: steps whose action a person chose.
    """

    end: str | None
    detail: str
    kind: Kind | None
    metrics: dict[str, float | None] = field(default_factory=dict)
    placement_m: float | None = None
    placement_deg: float | None = None
    x_m: float | None = None
    y_m: float | None = None
    battery: float | None = None
    battery_end: float | None = None
    light: float | None = None
    map: str = ""
    duration_s: float = 0.0
    taken_over: tuple[int, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"taken_over": list(self.taken_over)}

    @classmethod
    def of(cls, document: Any, where: str) -> "Facts":
        """The inverse of :meth:`document`. Raises ``ConfigError``."""
        return config.parse(document, cls, where, recorded=True)


def facts_of(
    plan: Plan, path: Path, maps: Maps | None = None, on_impossible: Callable[[str], None] | None = None
) -> Facts:
    """The facts of a log; one that cannot be read is ``damaged``.

    Args:
        plan: plan whose limits hold.
        path: path of the log.
        maps: cache of the scenes' maps.
        on_impossible: callback, called with each note on poses that cannot be, see ``EpisodeScore.impossible``.
    """
    try:
        with LogReader(path) as log:
            facts = _read(plan, log)
    except RecordingError as error:
        return Facts(None, error.message.replace(str(path), path.name), "damaged")
    if facts.kind in ("killed", "damaged"):
        return facts
    score = score_log(path, RULES, maps)
    if score.scorable:
        if on_impossible is not None:
            for note in score.impossible:
                on_impossible(note)
        defined = definitions(score.metrics).values()
        metrics = {one.name: finite(score.metrics[one.name]) for one in defined if not one.summary_only}
        limit, count = plan.limits.contacts, metrics["collisions"]
        over = facts.kind is None and limit is not None and count is not None and count >= limit
        return replace(facts, kind="contact_limit" if over else facts.kind, metrics=metrics)
    if facts.kind is not None:
        return facts
    return replace(facts, kind="damaged", detail=score.reason.replace(str(path), path.name))


def finite(value: float | None) -> float | None:
    """A number for JSON: None for what is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def _read(plan: Plan, log: LogReader) -> Facts:
    header, placed = log.header, log.header.placement
    first = last = None
    taken: list[int] = []
    for record in log.steps(images=False, verify=True):
        first = first or record
        last = record
        operator = record.policy_info.get("operator")
        if isinstance(operator, dict) and operator.get("intervention"):
            taken.append(record.index)
    if first is None or last is None:
        return Facts(None, "the log has no steps", "killed", map=header.scene.digest)
    end = log.end
    kind = "killed" if end is None else kind_of(end)
    degrees = None if placed is None or placed.error_rad is None else abs(math.degrees(placed.error_rad))
    limits = plan.pairs.placement
    if (
        kind is None
        and placed is not None
        and (placed.error_m > limits.within_m or (degrees or 0.0) > limits.within_deg)
    ):
        kind = "start"
    if kind is None and taken:
        kind = "takeover"
    return Facts(
        end=None if end is None else end.reason.value,
        detail="" if end is None else end.detail,
        kind=kind,
        placement_m=None if placed is None else placed.error_m,
        placement_deg=degrees,
        x_m=None if placed is None else placed.pose.x_m,
        y_m=None if placed is None else placed.pose.y_m,
        battery=finite(first.base.battery_fraction),
        battery_end=finite(last.base.battery_fraction),
        light=_light(log),
        map=header.scene.digest,
        duration_s=round(((end.stamp_ns if end else last.times.observed_ns) - first.times.observed_ns) / 1e9, 6),
        taken_over=tuple(taken),
    )


def _light(log: LogReader) -> float | None:
    try:
        for record in log.steps():
            rgb = record.frame.rgb
            return None if rgb is None or rgb.size == 0 else round(float(rgb.mean()) / 255, 6)
    except RuntimeFault:
        return None
    return None
