"""Training of question answerers on a handful of noise: every stage runs, and what is exported answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import yaml
from question_flat import flat

from robot_runtime.policies.detector import Detector
from robot_runtime.task_kinds.eqa.agents.object_memory import ColorNames, histogram
from robot_runtime.tasks.task import load_task
from sim_bridge.training import eqa
from sim_bridge.training.eqa import write_color_names
from sim_bridge.training.eqa_navigator import STATE_NUMBERS, Agent, Walk, plans, train_navigator
from sim_bridge.training.eqa_network import MODES, WORDS
from sim_bridge.training.eqa_views import FRAMES, SIDE, Views


def noise(views: int = 6) -> eqa.Data:
    random = np.random.default_rng(0)
    classes = (*load_task("eqa_embodied").categories, "")
    tokens = np.zeros((views, WORDS), np.int64)
    tokens[:, :3] = random.integers(1, 4, (views, 3))
    return eqa.Data(
        random.integers(0, 256, (views, FRAMES, SIDE, SIDE, 3), np.uint8),
        random.integers(0, len(classes), (views, 14, 14)),
        classes,
        ("color", "is", "what"),
        ("blue", "red"),
        np.repeat([0, 1, 2], views // 3),
        2,
        np.arange(views),
        tokens,
        random.integers(0, 2, views),
    )


@pytest.mark.slow  # imports torch, and exports four networks
def test_all_stages_end_in_networks_that_run(tmp_path: Path) -> None:
    data = noise()
    encoder, head = eqa.train_encoder(data, 1, seed=0)
    eqa.export_detector(encoder, head, tmp_path)
    found = Detector(tmp_path / "detector.yaml").detect(data.frames[0, -1])
    assert found.labels.shape == (SIDE, SIDE)
    features = eqa.pooled_features(encoder, data.frames)
    scale = eqa.statistics_of(features)
    for mode in MODES:
        answerer = eqa.train_answerer(data, features, scale, mode, epochs=1, seed=0)
        eqa.export_answerer(encoder, answerer, scale, data, tmp_path)
        session = onnxruntime.InferenceSession(str(tmp_path / f"{mode}.onnx"), providers=["CPUExecutionProvider"])
        frames = data.frames[0] if mode == "attention" else data.frames[0, -1:]
        inputs = {"question": data.tokens[:1], "frames": frames}
        (scores,) = session.run(["answer"], {one.name: inputs[one.name] for one in session.get_inputs()})
        assert scores.shape == (1, 2)
        assert scores.sum() == pytest.approx(1, abs=1e-5)
    walks = [Walk(features[0].repeat(3, 0), np.array([0] * 7 + [1] * 7 + [3]), data.tokens[:1])] * 2
    navigator = train_navigator(walks, walks[:1], len(data.words), epochs=1, seed=0)
    agent = Agent(encoder, navigator, answerer, *scale).eval()
    state, before = torch.zeros(1, STATE_NUMBERS), torch.full((1, 1), 4)
    for number in range(3):
        logits, scores, state = agent(
            torch.tensor(data.frames[:1, number]), torch.tensor(data.tokens[:1]), before, state
        )
        before = logits.argmax(1)[None]
    assert logits.shape == (1, 4)
    assert scores.detach().sum() == pytest.approx(1, abs=1e-5)
    vocabulary = yaml.safe_load((tmp_path / "vocabulary.yaml").read_text())
    assert vocabulary == {"words": ["color", "is", "what"], "answers": ["blue", "red"]}


def test_questions_are_asked_again_at_ends_of_their_flat_only_and_never_in_held_out_flats() -> None:
    data = noise(views=150)
    data.tokens[:, 3] = data.flat + 1
    more = eqa.with_questions_elsewhere(data, seed=0)
    added = slice(len(data.view), None)
    assert len(more.view) - len(data.view) == pytest.approx(eqa.ELSEWHERE * 100, abs=20)
    assert set(more.flat[more.view[added]]) == {0, 1}
    assert (more.tokens[added, 3] - 1 == more.flat[more.view[added]]).all()
    assert not np.array_equal(more.tokens[added], data.tokens[more.view[added]])


def test_the_planner_decides_when_the_action_changes_or_was_repeated_five_times() -> None:
    assert plans(np.array([0] * 7 + [1, 1, 3])) == ([0, 5, 7, 9], [0, 0, 0, 0, 0, 1, 1, 2, 2, 3])


@pytest.mark.slow  # imports torch
def test_colors_are_named_by_the_pixels_of_objects(tmp_path: Path) -> None:
    frames = np.zeros((20, FRAMES, SIDE, SIDE, 3), np.uint8)
    frames[:10, -1], frames[10:, -1] = (140, 31, 29), (37, 66, 116)
    semantic = np.full((20, SIDE, SIDE), 3, np.int8)
    asked = [[("What color is the sofa?", name, "color")] for name in ["red"] * 10 + ["blue"] * 10]
    views = Views(frames, semantic, np.full(20, 3, np.int8), asked)
    write_color_names([views], [flat()], tmp_path / "colors.npz", seed=0)
    with np.load(tmp_path / "colors.npz") as data:
        fields = ("names", "bins", "weights", "bias", "categories", "priors")
        names = ColorNames(*(tuple(data[key]) if key in ("names", "categories") else data[key] for key in fields))
    red, blue = (histogram(frames[index, -1].reshape(-1, 3)) for index in (0, -1))
    assert names.probabilities(red, "sofa")["red"] > 0.9
    assert names.probabilities(blue, "sofa")["blue"] > 0.9
    assert names.probabilities(blue, "apple")["red"] > names.probabilities(blue, "sofa")["red"]
