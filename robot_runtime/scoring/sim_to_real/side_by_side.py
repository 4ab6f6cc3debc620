"""The same policies on the same episodes in several worlds, side by side: how each ended, and where they first part."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from robot_runtime.errors import RecordingError
from robot_runtime.metrics.measures import definition
from robot_runtime.recording.reader import LogReader, before_damage
from robot_runtime.records import StepRecord
from robot_runtime.scoring.report.terminal_table import cell
from robot_runtime.scoring.sim_to_real.parting import Parting, find_parting
from robot_runtime.scoring.summary import EpisodeScore


@dataclass(frozen=True)
class Run:
    """An episode in one world; None for what is unknown.

    Attributes:
        success: whether it succeeded.
        steps: number of its actions; None where recorded actions were repeated.
        spl: SPL.
        parting: first difference from the run in the last world; None there, and where they do not part.
    """

    success: bool | None
    steps: int | None
    spl: float | None
    parting: Parting | None = None

    def __str__(self) -> str:
        if self.steps is None:
            return "its actions"
        won = {True: "won", False: "lost", None: "not scored"}[self.success]
        return f"{won}, {self.steps} steps" + (f", SPL {cell('spl', self.spl)}" if self.success and self.spl else "")


@dataclass(frozen=True)
class Row:
    """An episode of a policy in all worlds, the reference last; None for a world in which it did not run."""

    name: str
    agent: str
    runs: tuple[Run | None, ...]

    def cells(self) -> list[list[str]]:
        """For each world lines of text: the result and, but for the reference, where it first parts."""
        return [
            ["not run"] if run is None else [str(run)] if run is self.runs[-1] else [str(run), f"{run.parting or '='}"]
            for run in self.runs
        ]


def row_name(log: Path) -> str:
    """Folder and name of a log, by which rows are named: names alone repeat."""
    whole = log.resolve()
    return f"{whole.parent.name}/{whole.stem}"


@dataclass(frozen=True)
class Worlds:
    """Episodes in several worlds.

    Attributes:
        names: names of the worlds, the reference last.
        rows: the episodes.
        more: further totals, a text per world by label.
    """

    names: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def totals(self) -> dict[str, Sequence[str]]:
        """Means of each policy over the episodes of all worlds that have any, and where runs part, by label."""
        found: dict[str, Sequence[str]] = {}
        worlds = {index for row in self.rows for index, run in enumerate(row.runs) if run is not None}
        for agent in dict.fromkeys(row.agent for row in self.rows):
            runs = [row.runs for row in self.rows if row.agent == agent]
            whole = [each for each in runs if all(each[index] is not None for index in worlds)]
            for name in ("success", "spl") if whole else ():
                known = [
                    [value for run in column if run is not None and (value := getattr(run, name)) is not None]
                    for column in zip(*whole, strict=True)
                ]
                if any(known):
                    texts = [cell(name, sum(values) / len(values)) if values else "–" for values in known]
                    found[f"{agent}: {definition(name).title}"] = texts
        partings = [_partings(row.runs[index] for row in self.rows) for index in range(len(self.names) - 1)]
        return {**found, "first parted by": [*partings, ""], **self.more}


def compare_worlds(names: Sequence[str], worlds: Sequence[Sequence[EpisodeScore]]) -> Worlds:
    """The rows of every scored log of the last world, to which those of the others are compared.

    Runs are paired by policy, task and ``Episode.key``; a closed loop, which begins where the recorded episode did, by
    scene, id and seed in place of the key. Several runs of an episode are paired in their order.

    Raises:
        RecordingError: a log cannot be read.
    """
    *others, references = worlds
    pools = [[score for score in scores if score.scorable] for scores in others]
    rows = []
    for reference in references:
        if reference.scorable:
            found = [_taken(pool, reference) for pool in pools]
            steps = _steps(reference.path) if any(found) else []
            runs = [None if score is None else _run(score, find_parting(steps, _steps(score.path))) for score in found]
            rows.append(Row(row_name(reference.path), reference.agent, (*runs, _run(reference, None))))
    return Worlds(tuple(names), tuple(rows))


def _taken(pool: list[EpisodeScore], wanted: EpisodeScore) -> EpisodeScore | None:
    """The first score of the wanted episode, removed from the pool; None without any."""

    def closed(score: EpisodeScore) -> tuple[object, ...]:
        return score.scene, score.episode, score.seed

    same = [score for score in pool if (score.agent, score.task) == (wanted.agent, wanted.task)]
    found = next((score for score in same if score.key == wanted.key), None)
    found = found or next((score for score in same if closed(score) == closed(wanted)), None)
    if found is not None:
        pool.remove(found)
    return found


def _run(score: EpisodeScore, parting: Parting | None) -> Run:
    steps, spl = score.metrics.get("steps"), score.metrics.get("spl")
    success = score.metrics.get("success")
    return Run(
        None if success is None else bool(success),
        None if steps is None else int(steps),
        None if spl is None else float(spl),
        parting,
    )


def _steps(path: Path) -> list[StepRecord]:
    with LogReader(path) as log:
        steps, damage = before_damage(log.steps(images=False))
    if not steps:
        raise RecordingError(f"{path}: has no step to compare", "leave it out") from damage
    return steps


def _partings(runs: Iterable[Run | None]) -> str:
    kinds = Counter(
        "no parting" if run.parting is None else "near tie" if run.parting.near_tie else run.parting.quantity
        for run in runs
        if run is not None
    )
    return ", ".join(f"{name} {count}" for name, count in kinds.most_common())


def table(worlds: Worlds) -> Table:
    """A column per world, a row per episode, then totals."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("log", no_wrap=True, style="bold")
    for name in worlds.names:
        shown.add_column(name, overflow="fold")
    for row in worlds.rows:
        shown.add_row(row.name, *map("\n".join, row.cells()))
    shown.add_section()
    for label, texts in worlds.totals().items():
        shown.add_row(label, *texts)
    return shown
