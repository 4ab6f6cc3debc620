"""Findings about instructions, and the presence of ground truth."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from typing_extensions import override

from robot_runtime.datasets.findings import Findings, Problem
from robot_runtime.datasets.habitat_common import from_habitat
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.vln.format_r2r_ce import begins_elsewhere_m, ground_truth_path
from robot_runtime.task_kinds.vln.kind import Route
from robot_runtime.tasks.episode import Episode


class RouteFindings(Findings):
    """Findings about episodes with instructions."""

    checks: ClassVar[Mapping[str, str]] = {
        "empty instruction": "has an instruction without words",
        "no ground truth": "has no follower's positions: nDTW is measured against the nodes of its reference path",
        "ground truth elsewhere": "has the follower's positions of another place: nDTW says nothing",
        "reference path elsewhere": "has a reference path that begins in another place",
    }
    rank = 10

    @override
    def of_episode(self, episode: Episode) -> Iterator[Problem]:
        instruction = Route.of(episode).instruction
        if instruction is None:
            return
        if not instruction.text.strip():
            yield "empty instruction", repr(instruction.text)
        nodes, truth = Route.of(episode).reference_path, ground_truth_path(episode)
        if nodes and not truth and from_habitat(episode):
            where = "is empty in the _gt file" if "ground_truth" in episode.info else "is not in the _gt file"
            yield "no ground truth", f"{where}; its reference path has {len(nodes)} nodes"
        for name, points in (("ground truth elsewhere", truth), ("reference path elsewhere", nodes)):
            apart_m = begins_elsewhere_m(episode, points)
            if apart_m is not None:
                yield name, f"begins {apart_m:.1f} m from the start"

    @override
    def targets(self, episode: Episode, scene: Scene) -> list[tuple[float, float]] | None:
        path = Route.of(episode).reference_path
        return None if episode.goals else [point[:2] for point in path[-1:]] or None
