"""Pilot runs as input of a forecast: paired differences of a metric, and times and charge of episodes."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.recording.reader import LogReader
from robot_runtime.scoring.groups import episode_means
from robot_runtime.scoring.statistics.planner import WorkTimes
from robot_runtime.scoring.summary import EpisodeScore


def paired_differences(a: Iterable[EpisodeScore], b: Iterable[EpisodeScore], metric: str) -> list[float]:
    """Differences B - A of a metric on the episodes that both have, several runs of an episode averaged.

    Raises:
        RecordingError: there is no pair.
    """
    means_a, means_b = episode_means(metric, a), episode_means(metric, b)
    found = [means_b[key] - means_a[key] for key in means_a if key in means_b]
    if not found:
        raise RecordingError(
            f"the pilot has no pair with {metric}: {len(means_a)} episodes of A and {len(means_b)} of B have it",
            "run both policies on the same episode file, or choose another metric",
        )
    return found


def work_times(logs: Sequence[Path], placing_s: float, judging_s: float, usable: float, charging_s: float) -> WorkTimes:
    """Durations of a pilot's episodes, the battery that they took, and the share that has to be repeated.

    Args:
        logs: logs of the pilot, on the robot or a robot whose simulation keeps its speed.
        placing_s: seconds between two episodes, as in :class:`WorkTimes`.
        judging_s: seconds of judging an episode.
        usable: share of the battery between two charges.
        charging_s: seconds of a charge by that share.

    Raises:
        ConfigError: no log has an end.
    """
    durations: list[float] = []
    used = known_s = 0.0
    aborted = 0
    for path in logs:
        try:
            with LogReader(path) as log:
                if log.end is None or (log.end.reason.aborted and not log.end.of_policy):
                    aborted += 1
                    continue
                duration_s = (log.end.stamp_ns - log.header.start_ns) / NS_PER_S
                charges = [record.base.battery_fraction for record in log.steps(images=False)]
        except RuntimeFault:  # an unreadable log has to be run again
            aborted += 1
            continue
        durations.append(duration_s)
        if charges and math.isfinite(charges[0]) and math.isfinite(charges[-1]):
            used += charges[0] - charges[-1]
            known_s += duration_s
    per_h = max(0.0, used) / known_s * 3600 if known_s > 0 else 0.0
    share = aborted / len(logs) if durations else 0.0
    return WorkTimes(tuple(durations), placing_s, judging_s, per_h, usable, charging_s, share)
