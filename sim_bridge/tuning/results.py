"""Results of a sweep, as data and as JSON."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.recording.json_records import write_json
from robot_runtime.scoring.sim_to_real.gap import Correlation, Gap
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, SEED, Interval
from sim_bridge.tuning.likelihood import Parts

FORMAT = 1


@dataclass(frozen=True)
class Candidate:
    """One setting and its results.

    Attributes:
        name: name of the setting.
        changes: (key, value) over the robot's file.
        robot: path of the robot's file.
        options: all options of the simulated robot.
        parts: logarithms of the likelihood, sums over all logs.
        behind: the likelihood's logarithm less that of the best setting, with its bootstrap interval over episodes;
            None of the best itself. If the entire interval is below 0, the setting explains the logs less well.
        gap: the policies in both worlds; None where none ran.
        reason: why there is no gap.
        failed: numbers of runs without a score, by reason.
    """

    name: str
    changes: tuple[tuple[str, str], ...]
    robot: str
    options: dict[str, Any]
    parts: Parts
    behind: Interval | None
    gap: Gap | None
    reason: str
    failed: dict[str, int]

    def correlation(self, metric: str) -> Correlation | None:
        """The correlation of ``success`` or ``spl`` over the policies."""
        return next((each for each in self.gap.correlations if each.metric == metric), None) if self.gap else None


@dataclass(frozen=True)
class Tuning:
    """A sweep.

    Attributes:
        settings: results of the settings in the order given; :meth:`ranked` sorts them by likelihood.
        logs: number of real logs.
        episodes: number of different real episodes.
        policies: names of the logs' agents.
        motions: number of real motions.
        images: number of logs that show the camera's mount.
        delays: number of logs that show delays.
        notes: what could not be done, and why.
    """

    settings: tuple[Candidate, ...]
    logs: int
    episodes: int
    policies: tuple[str, ...]
    motions: int
    images: int
    delays: int
    notes: tuple[str, ...] = ()

    def ranked(self) -> list[Candidate]:
        """The settings, most likely first."""
        return sorted(self.settings, key=lambda candidate: -candidate.parts.total)

    def best_predictor(self, metric: str = "spl") -> Candidate | None:
        """The setting with the highest correlation; None where there is none."""
        predictors = [
            (correlation.interval.mean, setting)
            for setting in self.settings
            if (correlation := setting.correlation(metric)) is not None and correlation.interval is not None
        ]
        return max(predictors, key=lambda item: item[0])[1] if predictors else None


def write_tuning(path: Path, tuning: Tuning) -> None:
    """Write a sweep as JSON. Raises ``RecordingError`` if the file cannot be written."""
    document = {
        "format": FORMAT,
        "scorer": SCORER_VERSION,
        "likelihood": "natural logarithm, sums over logs; sim_bridge/tuning/likelihood.py has the parts",
        "behind": f"less the best setting's; {CONFIDENCE:.0%} percentile bootstrap over episodes, seed {SEED}",
        **asdict(tuning),
        "ranked": [candidate.name for candidate in tuning.ranked()],
    }
    write_json(path, document)
