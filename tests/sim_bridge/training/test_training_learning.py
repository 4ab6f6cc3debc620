"""Demonstrations, what is learned from them, and the network's ONNX file, on one room and one episode or two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from robot_runtime.scenes.scene import Scene
from sim_bridge.training.collect import Job, collect, small_task
from sim_bridge.training.learn import PIECE, STREAMS, Dataset, batches, learn
from sim_bridge.training.network import ACTIONS, STATE_NUMBERS, Head, PointNavPolicy
from sim_bridge.training.package import INPUTS, OUTPUTS, example_inputs, export_learner, shipped

STOP, FORWARD, LEFT, RIGHT = range(ACTIONS)

pytestmark = pytest.mark.slow  # exporting the network takes seconds


@pytest.fixture(scope="module")
def head() -> Head:
    torch.manual_seed(3)
    return Head()


@pytest.fixture(scope="module")
def learner(head: Head, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("learner") / "learner.onnx"
    export_learner(head, small_task(), path)
    return path


@pytest.fixture(scope="module")
def shown(learner: Path, room: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two episodes of the teacher alone."""
    file = tmp_path_factory.mktemp("shown") / "room.npz"
    collect(Job(room.folder, file, learner, episodes=2, seed=5, learner_share=0.0))
    return file


def test_the_file_computes_what_the_network_does(head: Head, learner: Path) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(learner), providers=["CPUExecutionProvider"])
    policy = PointNavPolicy(small_task(), head).eval()
    inputs = list(example_inputs())
    random = np.random.default_rng(0)
    for step in range(4):
        inputs[0] = torch.tensor(random.uniform(0.1, 0.6, inputs[0].shape).astype(np.float32))
        inputs[2] += 0.21
        inputs[3] += 0.5
        inputs[6] = torch.tensor([[step > 0]])
        with torch.no_grad():
            expected = policy(*inputs)
        got = session.run(OUTPUTS, {name: value.numpy() for name, value in zip(INPUTS, inputs, strict=True)})
        np.testing.assert_allclose(got[0], expected[0].numpy(), atol=1e-4)
        assert (
            np.abs(got[1] - expected[1].numpy()) > 1e-3
        ).mean() < 1e-3  # a point on a cell's border may fall either way
        inputs[4] = expected[1]
    assert inputs[4].shape == (1, 1, STATE_NUMBERS)


@pytest.mark.parametrize(("distance_m", "stops"), [(0.32, True), (0.34, False), (5.0, False)])
def test_what_ships_stops_by_the_teachers_rule(head: Head, distance_m: float, stops: bool) -> None:
    inputs = list(example_inputs())
    inputs[1] = torch.tensor([[distance_m, 1.0]])
    with torch.no_grad():
        logits, _ = shipped(head, small_task())(*inputs)
        learned, _ = PointNavPolicy(small_task(), head)(*inputs)
    assert torch.softmax(logits / 0.5, 1)[0, STOP] == pytest.approx(1.0 if stops else 0.0, abs=1e-9)
    assert torch.equal(logits[:, FORWARD:], learned[:, FORWARD:])


def test_the_teacher_arrives_and_says_so_at_every_step(shown: Path) -> None:
    with np.load(shown) as data:
        assert data["first"].sum() == data["arrived"].sum() == 2
        assert (data["label"] == data["action"]).all()
        assert data["label"][-1] == STOP
        assert (data["label"][:12] == LEFT).all(), "it looks round first"
        assert data["fine"].max() > 0 > data["fine"].min()


def test_where_the_policy_drives_the_teacher_still_labels(learner: Path, room: Scene, tmp_path: Path) -> None:
    job = Job(room.folder, tmp_path / "driven.npz", learner, episodes=1, seed=5, learner_share=1.0, sampled=True)
    steps, _ = collect(job)
    with np.load(job.out) as data:
        assert (data["label"] != data["action"]).any()
        assert not ((data["action"] == STOP) & (data["label"] != STOP)).any(), "a wrong stop is not carried out"
    before = job.out.stat().st_mtime_ns
    assert collect(job)[0] == steps
    assert job.out.stat().st_mtime_ns == before


def test_half_of_the_streams_are_mirrored(shown: Path) -> None:
    batch = next(batches(Dataset.load([shown]), np.random.default_rng(0)))
    assert batch.fine.shape[:2] == (PIECE, STREAMS)
    first = batch.label[0]
    assert {LEFT, RIGHT} == set(first.tolist())
    assert (batch.previous[0] == ACTIONS).all()
    left, right = int((first == LEFT).nonzero()[0]), int((first == RIGHT).nonzero()[0])
    starts = {round(float(goal), 4) for goal in batch.goal[0, :, 1].abs()}
    assert len(starts) == 2, "two episodes, and their mirror images"
    assert not torch.equal(batch.fine[0, left], batch.fine[0, right])


def test_learning_lowers_the_loss_and_repeats_with_the_seed(shown: Path) -> None:
    data = Dataset.load([shown])

    def losses() -> list[float]:
        torch.manual_seed(0)
        found: list[float] = []
        learn(Head(), data, 4, 4e-3, 1, lambda _, loss, __: found.append(loss))
        return found

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        first = losses()
        assert first[-1] < 0.95 * first[0]
        assert losses() == first
    finally:
        torch.set_num_threads(threads)
