"""Rows of ``bench eqa`` about the learned answerers: what frames add to the question, and many to the last one."""

from __future__ import annotations

from collections.abc import Sequence

from robot_runtime.benchmarks.report import Row
from robot_runtime.policies.eqa.attention import MODES, LearnedAnswerer
from robot_runtime.scenes.scene import Scene
from sim_bridge.training.eqa_views import approach_views


def answerer_rows(scenes: Sequence[Scene], seed: int) -> list[Row]:
    """Accuracy on approaches to the objects of flats that nothing was trained on, and paired differences.

    Every approach ends before an object, as a shortest path does, and asks all questions about it; intervals are over
    approaches.
    """
    from robot_runtime.scoring.statistics.intervals import bootstrap_mean

    answerers = {mode: LearnedAnswerer(mode) for mode in MODES}
    right: dict[str, list[float]] = {mode: [] for mode in MODES}
    approaches: list[int] = []
    for scene in scenes:
        views = approach_views(scene, seed)
        for frames, asked in zip(views.frames, views.asked, strict=True):
            number = approaches[-1] + 1 if approaches else 0
            approaches += [number] * len(asked)
            for mode, answerer in answerers.items():
                answerer.reset()
                for frame in frames:
                    answerer.observe(frame)
                for text, answer, _ in asked:
                    scores = answerer.scores(text)
                    right[mode].append(float(max(scores, key=lambda word: scores[word]) == answer))
    about = f"{len(approaches)} questions at the end of {approaches[-1] + 1} approaches in {len(scenes)} flats"
    found = bootstrap_mean(right["attention"], clusters=approaches)
    rows = [Row("learned_accuracy", f"attention, {about}", found.mean, "", low=found.low, high=found.high)]
    for name, mode in (("learned_over_blind", "blind"), ("learned_over_last_frame", "last")):
        gains = [own - other for own, other in zip(right["attention"], right[mode], strict=True)]
        found = bootstrap_mean(gains, clusters=approaches)
        label = f"accuracy of attention minus {mode}"
        rows.append(Row(name, label, found.mean, "", low=found.low, high=found.high, note="interval without 0 wanted"))
    return rows
