"""Panels of ObjectNav: its four criteria, and the submission of the RoboTHOR challenge."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from robot_runtime.scoring.report.panels import Criterion, ReportPanels
from robot_runtime.scoring.report.submission import SubmissionFormat
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.task_kinds.objectnav.submission import write_robothor

_CRITERIA = {
    "criterion_intentionality": ("stopped", "did not stop"),
    "criterion_validity": ("in a valid place", "not in a valid place"),
    "criterion_proximity": ("near the object", "not near"),
    "criterion_visibility": ("sees the object", "object not seen"),
}


class ObjectPanels(ReportPanels):
    """The category, and which criteria an episode meets."""

    submissions: ClassVar[Mapping[str, SubmissionFormat]] = {
        "robothor": SubmissionFormat("metrics.json.gz", write_robothor)
    }

    @classmethod
    @override
    def failure(cls, score: EpisodeScore) -> str:
        return ", ".join(text for name, (_, text) in _CRITERIA.items() if score.metrics.get(name) is False)

    @override
    def subject(self) -> str:
        return self.data.header.episode.category or ""

    @override
    def criteria(self) -> Sequence[Criterion]:
        """The four criteria, each with its explanation; none without a score."""
        data, score = self.data, self.data.score
        if not score.scorable:
            return ()
        near, place = score.choices["criterion_proximity"], score.choices["criterion_validity"]
        instances = {goal.object_id for goal in data.header.episode.goals}
        end = data.poses[-1]
        distances = [o.distance_m(end.x_m, end.y_m) for o in data.header.scene.objects if o.id in instances]
        measured = f"{min(distances):.2f} m to its box, " if distances else ""
        names = [verdict.who for verdict in score.verdicts if verdict.visible is not None]
        seen = str(score.choices["criterion_visibility"]) + (f", {names[-1]}'s" if names else "")
        details = ("", place, f"{measured}limit {near['distance_m']:g} m", seen)
        criteria = []
        for (name, (yes, no)), detail in zip(_CRITERIA.items(), details, strict=True):
            met = score.metrics[name]
            label = f"{yes}?" if met is None else yes if met else no
            criteria.append(Criterion(label, None if met is None else bool(met), detail))
        return criteria
