"""Panels of a kind of task: what the report shows of its episodes; the defaults are those of plain navigation.

A package offers the panels of a kind by an entry point of that kind's name, whose object is a subclass of
:class:`ReportPanels`::

    [project.entry-points."robot_runtime.report_panels"]
    gatenav = "gatenav.report:GatePanels"
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from robot_runtime.common.plugins import Registry
from robot_runtime.scoring.report import episode_charts, map_drawing
from robot_runtime.scoring.report.episode_data import EpisodeData
from robot_runtime.scoring.report.submission import SubmissionFormat, write_habitat
from robot_runtime.scoring.summary import EpisodeScore

_NOTHING = Markup("")


@dataclass(frozen=True)
class LegendEntry:
    """Entry of a map's legend.

    Attributes:
        text: explanation of the mark.
        color: CSS color of the mark.
        shape: form of the mark: ``hollow``, ``stroke``, ``dashed``; empty for a filled square.
    """

    text: str
    color: str
    shape: str = ""


@dataclass(frozen=True)
class Layer:
    """Shapes on an episode's map in its coordinates (see :mod:`.map_drawing`), with their entries of the legend."""

    shapes: Markup = _NOTHING
    legend: tuple[LegendEntry, ...] = ()


@dataclass(frozen=True)
class Criterion:
    """Condition of success.

    Attributes:
        label: the condition in words, as it holds or does not hold.
        met: whether it holds; None if that is unknown.
        detail: explanation of the result; empty without one.
    """

    label: str
    met: bool | None
    detail: str = ""


class ReportPanels:
    """Panels of an episode's page.

    Attributes:
        submissions: files of results that challenges of this kind take, by name of the challenge.
    """

    submissions: ClassVar[Mapping[str, SubmissionFormat]] = {"habitat": SubmissionFormat("habitat.json", write_habitat)}

    def __init__(self, data: EpisodeData) -> None:
        self.data = data

    @classmethod
    def failure(cls, score: EpisodeScore) -> str:
        """Words about what a failed episode missed; empty to say how it ended instead."""
        return ""

    def subject(self) -> str:
        """Word for the goal, shown beside the episode's name; empty for none."""
        return ""

    def statements(self) -> Markup:
        """HTML above the map: what the agent was told, and what it answered."""
        return _NOTHING

    def criteria(self) -> Sequence[Criterion]:
        """Conditions of success that are shown one by one."""
        return ()

    def marks(self, unit: float) -> Layer:
        """Shapes of the map below all others.

        Args:
            unit: size in map units (meters) that is a hundredth of the map's longer side.
        """
        return Layer()

    def goals(self, unit: float) -> Layer:
        """Goals on the map, with ``unit`` as in :meth:`marks`."""
        text = "goal" if self.data.header.task.success.target == "goal" else "goal object, its view points"
        return Layer(map_drawing.goal_shapes(self.data, unit), (LegendEntry(text, "var(--goal)", "hollow"),))

    def route(self, unit: float) -> Layer:
        """Path that the robot could have taken, with ``unit`` as in :meth:`marks`."""
        if not len(self.data.shortest):
            return Layer()
        line = map_drawing.polyline("shortest", self.data.shortest.tolist())
        return Layer(line, (LegendEntry("shortest path", "var(--shortest)", "dashed"),))

    def plots(self) -> list[Markup]:
        """Plots over the episode's steps, without the empty ones."""
        return [plot for plot in (episode_charts.distance_plot(self.data),) if plot]

    def tables(self) -> Markup:
        """HTML below the plots."""
        return _NOTHING


PANELS: Registry[type[ReportPanels]] = Registry(
    "robot_runtime.report_panels", "report panels", ReportPanels, classes=True
)


def panels_of(kind: str) -> type[ReportPanels]:
    """The panels of a kind of task; those of plain navigation if the kind has none.

    Raises:
        PluginError: the package that offers them cannot be used.
    """
    return PANELS.find(kind) or ReportPanels


def submission_formats() -> dict[str, SubmissionFormat]:
    """The files of results that challenges take, of all installed kinds of tasks."""
    kinds: list[type[ReportPanels]] = [ReportPanels, *PANELS.usable().values()]
    return {name: form for kind in kinds for name, form in kind.submissions.items()}


def outcome(score: EpisodeScore) -> tuple[str, str]:
    """CSS class (``won``, ``lost`` or none) and text of an episode's outcome."""
    if not score.scorable:
        return "", "not scored"
    if score.metrics["success"]:
        return "won", "success"
    if any(verdict.intervention for verdict in score.verdicts):
        return "lost", "failed: a person helped"
    if any(verdict.judgment == "fail" for verdict in score.verdicts):
        return "lost", "failed: by a person's verdict"
    limits = {"max_steps": "step limit", "max_seconds": "time limit"}
    missed = panels_of(score.kind).failure(score) or limits.get(score.end or "", "stopped elsewhere")
    return "lost", f"failed: {missed}"
