"""Detectors: test networks of one convolution or of constants, good descriptions and bad ones, and garbage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detector_files import boxes, masks, write
from onnx import helper
from raising import raises_naming
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import ConfigError, PolicyError, PolicyOutputError
from robot_runtime.policies.detector import NOTHING, Detecting, Detector
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task, load_task

RED, BLUE, GRAY = (200, 20, 20), (20, 20, 200), (90, 90, 90)


def image(left: tuple[int, int, int], right: tuple[int, int, int]) -> np.ndarray:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:, :8], pixels[:, 8:] = left, right
    return pixels


def test_masks_are_pixels_of_the_classes(tmp_path: Path) -> None:
    found = Detector(masks(tmp_path)).detect(image(RED, GRAY))
    assert (found.labels[:, :8] == 1).all()
    assert (found.labels[:, 8:] == NOTHING).all()
    assert found.scores.min() >= 0.5


def test_channels_may_be_swapped_and_normalized(tmp_path: Path) -> None:
    swapped = Detector(masks(tmp_path, colors="bgr")).detect(image(RED, BLUE))
    assert (swapped.labels[:, :8] == 2).all()
    assert (swapped.labels[:, 8:] == 1).all()


def test_uncertain_pixels_are_nothing(tmp_path: Path) -> None:
    assert (Detector(masks(tmp_path, gain=0.1, min_score=0.9)).detect(image(RED, RED)).labels == NOTHING).all()


def test_the_surer_box_lies_on_top_and_depth_cuts_off_the_background(tmp_path: Path) -> None:
    file = boxes(
        tmp_path, [([0, 0, 8, 8], 0.6, 1), ([4, 0, 9, 4], 0.9, 2), ([6, 6, 2, 2], 0.9, 2), ([0, 0, 9, 9], 0.4, 2)]
    )
    whole = Detector(file).detect(image(RED, RED))
    assert (whole.labels[:8, 8:] == 2).all()
    assert (whole.labels[8:] == 1).all()
    depth_m = np.full((16, 16), 1.0, np.float32)
    depth_m[:, :4] = 3.0
    cut = Detector(file).detect(image(RED, RED), depth_m)
    assert (cut.labels[:, :4] == NOTHING).all()
    assert (cut.labels[8:, 4:] == 1).all()


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([([0, 0, 1, 1], 0.9, 7)], "label 7"),
        ([([0, 0, 1, 1], 3.0, 1)], "scores"),
        ([([0, 0, float("nan"), 1], 0.9, 1)], "not finite"),
    ],
)
def test_garbage_is_named(tmp_path: Path, found: list[tuple[list[float], float, int]], problem: str) -> None:
    with raises_naming(ConfigError, problem):
        Detector(boxes(tmp_path, found))


def test_garbage_on_an_image_ends_the_episode_as_the_policys_fault(tmp_path: Path) -> None:
    nodes = [helper.make_node("Log", ["image"], ["logits"])]  # of red pixels' zeros: -inf
    file = write(tmp_path, nodes, {"logits": [1, 3, 8, 8]}, kind="masks", mean=[-1.0, -1.0, -1.0])
    detector = Detector(file)
    detector._session.run(["logits"], {"image": np.ones((1, 3, 8, 8), np.float32)})
    detector.file = replace(detector.file, mean=(0.0, 0.0, 0.0))
    with raises_naming(PolicyOutputError, "detector.yaml", "not finite"):
        detector.detect(image((0, 0, 0), RED))


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"outputs": ["heat"]}, "no output heat"), ({"labels": ["a"]}, "1 labels"), ({"model": "none.onnx"}, "none.onnx")],
)
def test_descriptions_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    with raises_naming(ConfigError, problem):
        Detector(masks(tmp_path, **change))


class Witness(Policy):
    name = "witness"
    needs = ("semantic", "objectgoal")

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        pass

    @override
    def act(self, observation: Observation) -> Action:
        self.semantic = observation["semantic"]
        return Action.STOP


def test_a_policy_sees_the_tasks_categories(tmp_path: Path) -> None:
    task, witness = load_task("objectnav_habitat2020"), Witness()
    policy = Detecting(witness, Detector(masks(tmp_path)))
    assert policy.needs == ("objectgoal", "rgb")
    policy.check(task)
    policy.reset(task, 0)
    policy.act({"rgb": image(RED, BLUE), "objectgoal": np.array([5])})
    assert witness.semantic.shape == (16, 16, 1)
    assert set(np.unique(witness.semantic)) == {task.categories["sofa"].id, task.categories["bed"].id}
    assert policy.info()["detector"]["labels"] == ["sofa", "bed"]


def test_a_detector_of_other_things_is_refused(tmp_path: Path) -> None:
    policy = Detecting(Witness(), Detector(masks(tmp_path, labels=["", "cat", "dog"])))
    with raises_naming(PolicyError, "none of the categories"):
        policy.check(load_task("objectnav_habitat2020"))
