"""Rows of ``bench eqa`` about judges: agreement of a detector with simulated truth, coverage of intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import HeadState
from robot_runtime.metrics.visibility import points_in_map, visible_pixels
from robot_runtime.policies.detector import Detector
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.statistics.intervals import Interval, wilson
from robot_runtime.scoring.statistics.judge import calibrate, corrected_share
from robot_runtime.task_kinds.eqa.agents.attention import FOLDER
from robot_runtime.task_kinds.objectnav.visibility_judge import Facts, fit_judge
from robot_runtime.tasks.task import load_task
from robot_runtime.verdicts import Judge
from sim_bridge.physics.scene_model import build_model
from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation
from tests.benchmarks.report import Row

PIXELS = 400
"""An object of so many pixels, 0.8 % of the image, is in view; one without any is not. Judges are asked about these."""

_KNOWN = 6
"""Greatest number of flats that a judge is calibrated on; the others test it."""

_VIEWS = 60
_RUNS = 1000
_EPISODES = 100


def judged_views(scenes: Sequence[Scene], task: str, seed: int) -> list[tuple[Facts, bool]]:
    """The facts and the truth, of one category in view and one not, for views from random view points.

    The pose that the judge is told has the errors of a localizer: 2 cm and 1 degree.
    """
    settings, detector = load_task(task), Detector(FOLDER / "detector.yaml")
    label_of = {name: index for index, name in enumerate(detector.file.labels) if name}
    names = {match: key for key, one in settings.categories.items() for match in one.matches if key in label_of}
    random, found = np.random.default_rng(seed), list[tuple[Facts, bool]]()
    for scene in scenes:
        here = sorted({names[item.category] for item in scene.objects if item.category in names})
        camera, views = settings.camera, sorted(scene.view_points)
        renderer = SceneRenderer(build_model(scene), camera.intrinsics)
        for _ in range(_VIEWS):
            item = scene.object(views[random.integers(len(views))])
            place = scene.view_points[item.id][random.integers(len(scene.view_points[item.id]))]
            yaw_rad = np.arctan2(item.center[1] - place.y_m, item.center[0] - place.x_m) + random.normal(0, 0.2)
            position = np.array([place.x_m, place.y_m, camera.height_m])
            rotation = camera_rotation(float(yaw_rad), camera.tilt_rad)
            shown = np.bincount(renderer.segment(position, rotation).ravel() + 1, minlength=len(scene.objects) + 1)[1:]
            pixels = dict.fromkeys(here, 0)
            for index, other in enumerate(scene.objects):
                if other.category in names:
                    pixels[names[other.category]] += int(shown[index])
            rgb, depth_m = renderer.render(position, rotation)
            detection = detector.detect(rgb)
            x_m, y_m, error_rad = random.normal(0, [0.02, 0.02, math.radians(1.0)]).tolist()
            told = SE2(place.x_m + x_m, place.y_m + y_m, float(yaw_rad) + error_rad)
            head, mount = HeadState(0, 0.0, camera.tilt_rad, False), (0.0, 0.0, camera.height_m)
            points = points_in_map(depth_m.astype(np.float32), camera.intrinsics, mount, head, told)
            inside, outside = [n for n in here if pixels[n] >= PIXELS], [n for n in here if not pixels[n]]
            for truth, group in ((True, inside), (False, outside)):
                if group:
                    name = group[random.integers(len(group))]
                    items = [other for other in scene.objects if names.get(other.category) == name]
                    counts = (visible_pixels(points, item, told, math.inf) for item in items)
                    found.append((Facts(detection.presence(label_of[name]), max(counts)), truth))
        renderer.close()
    return found


def judge_rows(scenes: Sequence[Scene], task: str, seed: int) -> list[Row]:
    """Agreement and abstention on flats that the judge was not calibrated on; coverage over simulated campaigns."""
    first = max(1, min(_KNOWN, len(scenes) // 2))
    known, fresh = judged_views(scenes[:first], task, seed), judged_views(scenes[first:] or scenes, task, seed + 1)
    made = fit_judge([facts for facts, _ in known], [truth for _, truth in known], "")
    alone = calibrate([facts.presence for facts, _ in known], [truth for _, truth in known])
    share, missed = _agreement([(made.judge.verdict(made.score(facts)), truth) for facts, truth in fresh])
    weak, left_open = _agreement([(alone.verdict(facts.presence), truth) for facts, truth in fresh])
    judge = made.judge
    sensitivity, specificity = judge.true_positives / judge.positives, judge.true_negatives / judge.negatives
    covered = _coverage(sensitivity, specificity, seed)
    fresh_flats = f"{len(fresh)} views in {len(scenes[first:] or scenes)} flats"
    about = f"detector, depth and object list on {fresh_flats}; it abstained in {missed:.1%}"
    alone_about = f"the detector alone; it abstained in {left_open:.1%}"
    rates = f"sensitivity {sensitivity:.2f}, specificity {specificity:.2f}"
    simulated = f"{_RUNS} simulated campaigns of {_EPISODES} episodes, {rates}"
    return [
        Row("judge_agreement", about, share.mean, "", 0.98, low=share.low, high=share.high),
        Row("judge_agreement_detector", alone_about, weak.mean, "", low=weak.low, high=weak.high),
        Row("judge_abstention", "views that the judge did not decide", missed, "", 0.1, "<="),
        Row(
            "judge_coverage", f"corrected intervals that hold the truth, {simulated}", covered, "", note="0.95 ± 0.014"
        ),
    ]


def _agreement(verdicts: Sequence[tuple[bool | None, bool]]) -> tuple[Interval, float]:
    """Share of verdicts that are right, and of views without one."""
    decided = [verdict == truth for verdict, truth in verdicts if verdict is not None]
    return wilson(sum(decided), len(decided)), 1 - len(decided) / len(verdicts)


def _coverage(sensitivity: float, specificity: float, seed: int) -> float:
    """Share of campaigns whose corrected 95 % interval holds the true success rate, which is drawn for each."""
    random, held = np.random.default_rng(seed), 0
    for _ in range(_RUNS):
        truth = random.uniform(0.1, 0.9)
        counts = (150, random.binomial(150, sensitivity), 150, random.binomial(150, specificity))
        yes = random.binomial(_EPISODES, truth * sensitivity + (1 - truth) * (1 - specificity))
        found = corrected_share(int(yes), _EPISODES, Judge(0.5, 0.5, *map(int, counts)))
        held += found.low <= truth <= found.high
    return held / _RUNS
