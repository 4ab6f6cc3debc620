"""Rows of ``bench eqa`` about the learned answerers: what frames add to the question, and many to the last one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.policy import Policy
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.statistics.intervals import bootstrap_mean
from robot_runtime.task_kinds.eqa.agents.attention import MODES, LearnedAnswerer
from robot_runtime.task_kinds.eqa.questions.starts import PathFinder
from robot_runtime.tasks.categories import object_goal
from sim_bridge.training.eqa_views import FRAMES, approach_views, questions_by_object
from sim_bridge.training.eqa_walks import Walker, frames_of, shortest_walks
from tests.benchmarks.report import Row

BEFORE_END = (10, 30)
_MOST_BEYOND, _MOST_NAVIGATED = 24, 16
"""Objects of a flat."""

Asked = list[tuple[str, str, str]]
Graded = dict[str, list[float]]
"""By mode, 1 for each right answer at one end and 0 for each wrong one."""


@dataclass(frozen=True, eq=False)
class End:
    """The end of an approach to an object.

    Attributes:
        frames: (H, W, 3) each, the last ones, at most :data:`FRAMES`.
        asked: text, answer and template of the questions about the object.
    """

    frames: Sequence[NDArray[np.uint8]]
    asked: Asked


def answerer_rows(scenes: Sequence[Scene], navigator: Policy, seed: int, on_scene: Callable[[], None]) -> list[Row]:
    """Accuracy in flats that nothing was trained on, and paired differences; intervals are over approaches.

    ``exact_*`` are asked at the end of shortest paths, whose last frame shows the object; ``beyond_*`` after four more
    turns, of an agent that stopped too late; ``learned_*`` at both; ``navigated_*`` where the learned navigator ends
    its own episodes.
    """
    answerers = {mode: LearnedAnswerer(mode) for mode in MODES}
    exact, beyond, navigated = list[Graded](), list[Graded](), list[Graded]()
    for scene in scenes:
        views, walks = approach_views(scene, seed), shortest_walks(scene, seed, _MOST_BEYOND)
        ends = [End(list(frames), asked) for frames, asked in zip(views.frames, views.asked, strict=True)]
        exact += [graded(end, answerers) for end in ends]
        parts = zip(frames_of(walks.actions), walks.asked, strict=True)
        beyond += [graded(End(list(walks.frames[part][-FRAMES:]), asked), answerers) for part, asked in parts]
        navigated += [graded(end, answerers) for end in navigated_ends(scene, navigator, seed)]
        on_scene()
    return [
        *rows("learned", f"ends at the object and four turns beyond in {len(scenes)} flats", exact + beyond),
        *rows("exact", f"ends of shortest paths in {len(scenes)} flats", exact),
        *rows("beyond", f"ends four turns beyond in {len(scenes)} flats", beyond),
        *rows("navigated", f"the learned navigator's ends in {len(scenes)} flats", navigated),
    ]


def graded(end: End, answerers: Mapping[str, LearnedAnswerer]) -> Graded:
    """Whether each answerer's answer to each question at an end is right, by mode."""
    right: Graded = {}
    for mode, answerer in answerers.items():
        answerer.reset()
        for frame in end.frames:
            answerer.observe(frame)
        scored = ((answerer.scores(text), answer) for text, answer, _ in end.asked)
        right[mode] = [float(max(scores, key=scores.__getitem__) == answer) for scores, answer in scored]
    return right


def rows(name: str, where: str, ends: Sequence[Graded]) -> list[Row]:
    """The rows about some ends; their ids begin with ``name``."""
    right = {mode: [value for end in ends for value in end[mode]] for mode in MODES}
    approaches = [number for number, end in enumerate(ends) for _ in end["attention"]]
    found = bootstrap_mean(right["attention"], clusters=approaches)
    about = f"attention, {len(approaches)} questions at {len(ends)} {where}"
    made = [Row(f"{name}_accuracy", about, found.mean, "", low=found.low, high=found.high)]
    for row, mode in ((f"{name}_over_blind", "blind"), (f"{name}_over_last_frame", "last")):
        gains = [own - other for own, other in zip(right["attention"], right[mode], strict=True)]
        found = bootstrap_mean(gains, clusters=approaches)
        label = f"accuracy of attention minus {mode}"
        made.append(Row(row, label, found.mean, "", low=found.low, high=found.high))
    return made


def navigated_ends(scene: Scene, navigator: Policy, seed: int) -> Iterator[End]:
    """Ends of the navigator's episodes about a scene, without physics; its question is the first about the object."""
    walker = Walker(scene)
    finder = PathFinder(scene, walker.task.magnitudes, walker.task.robot_radius_m, seed)
    by_object = questions_by_object(scene)
    chosen = np.random.default_rng(seed).permutation(sorted(by_object))[:_MOST_NAVIGATED].tolist()
    try:
        for target in chosen:
            goal = object_goal(scene, scene.object(target))
            path = finder.path([goal], max(BEFORE_END)) if goal.view_points else None
            for before in BEFORE_END if path is not None else ():
                start = path.before_end(before) if path is not None else None
                if start is not None:
                    frames = _walk(walker, navigator, start, by_object[target][0][0], seed)
                    yield End(frames, by_object[target])
    finally:
        walker.close()


def _walk(walker: Walker, navigator: Policy, pose: SE2, question: str, seed: int) -> list[NDArray[np.uint8]]:
    """The last frames of one episode."""
    frames: deque[NDArray[np.uint8]] = deque(maxlen=FRAMES)
    navigator.reset(walker.task, seed)
    for _ in range(walker.task.max_steps + 1):
        frames.append(walker.image(pose))
        action = navigator.act({"rgb": frames[-1], "question": np.array(question)})
        if action is Action.STOP:
            break
        assert isinstance(action, Action)
        pose = walker.moved(pose, action)
    return list(frames)
