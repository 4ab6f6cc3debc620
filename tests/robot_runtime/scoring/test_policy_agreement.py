"""A policy over the observations of a log: what it decides again, how far off, and whether it repeats itself."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import synthetic
import tiny_package as tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming
from scipy.special import rel_entr, softmax

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision
from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.errors import PolicyError, PolicyMismatch
from robot_runtime.policies import load_source
from robot_runtime.policies.package.rollout import prepare
from robot_runtime.policies.remote.client import RemotePolicy
from robot_runtime.policy import Observation, Policy, PolicySource, World
from robot_runtime.recording import json_output
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import ANSWER, EpisodeHeader, StepRecord
from robot_runtime.scoring.policy_agreement import OpenLoop, open_loop
from robot_runtime.servers.policy import PolicyServer
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.task import Task

F, L, R, STOP = synthetic.FORWARD, synthetic.LEFT, synthetic.RIGHT, synthetic.STOP
ACTIONS = (F, L, F, R, F)
SAMPLED = {"selection": "sample", "temperature": "9"}


def loaded(path: Path, **arguments: str) -> Policy:
    return load_source(PolicySource(str(path), arguments))


def again(log: Path, policy: Policy) -> OpenLoop:
    try:
        with LogReader(log) as reader:
            return open_loop(reader, policy)
    finally:
        policy.close()


# --- a package ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A package, and one of the same architecture with other weights."""
    folder = tmp_path_factory.mktemp("packages")
    return tiny.write_tiny(folder / "first.zip"), tiny.write_tiny(folder / "second.zip", seed=1)


@pytest.fixture(scope="module")
def log(packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An episode in which the first package sampled its actions."""
    folder = tmp_path_factory.mktemp("logs")
    sampled = [f"--agent-arg={key}={value}" for key, value in SAMPLED.items()]
    run = ["run", "--policy", str(packages[0]), "--robot", "fake", "--count", "1", "--seed", "5", *sampled]
    assert run_command([*run, "--out", str(folder)]) == 0
    return min(folder.glob("*.mcap"))


def test_the_package_that_decided_decides_so_again(log: Path, packages: tuple[Path, Path]):
    found = again(log, loaded(packages[0], **SAMPLED))
    assert len(found.steps) > 3
    assert found.agreement == 1.0
    assert found.first_difference is None
    assert found.deterministic is True
    assert found.same_source is True
    assert found.seed == 5
    assert {step.logits.max_abs for step in found.steps if step.logits} == {0.0}
    assert {step.logits.kl_nats for step in found.steps if step.logits} == {0.0}


def teacher_forced_logits(log: Path, seed: int) -> list[np.ndarray]:
    """Output of the network of that seed, computed in numpy: its previous action is the logged one."""
    network = tiny.NumpyNetwork(seed)
    state, previous, logits = np.zeros((1, tiny.HIDDEN), np.float32), 0, []
    with LogReader(log) as reader:
        records = list(reader.steps())
    for before, record in itertools.pairwise(records):
        memory = {"state": state, "previous": np.array([[previous]], np.int64), "mask": np.array([[record.index > 1]])}
        outputs = network.run({**prepare(tiny.MANIFEST, before.observation), **memory})
        state = outputs["state_out"]
        logits.append(outputs["logits"][0])
        assert record.action is not None
        previous = tiny.TASK.actions.index(record.action)
    return logits


def test_after_a_difference_its_previous_action_is_the_logged_one(log: Path, packages: tuple[Path, Path]):
    found = again(log, loaded(packages[1]))
    first = found.first_difference
    assert first is not None
    assert first < len(found.steps), "the difference must be followed by something"
    with LogReader(log) as reader:
        logged = [step.policy_info["logits"] for step in reader.steps(images=False) if step.action]
    for step, then, now in zip(found.steps, logged, teacher_forced_logits(log, 1), strict=True):
        assert step.logits is not None
        difference = now - np.array(then)
        assert step.logits.max_abs == pytest.approx(np.abs(difference).max(), abs=1e-4)
        assert step.logits.l2 == pytest.approx(np.linalg.norm(difference), abs=1e-4)
        divergence = rel_entr(softmax(then), softmax(now.astype(np.float64))).sum()
        assert step.logits.kl_nats == pytest.approx(divergence, abs=1e-3)


def test_a_new_version_and_other_arguments_are_said(log: Path, packages: tuple[Path, Path]):
    newer = again(log, loaded(packages[1], **SAMPLED))
    assert (newer.same_source, newer.deterministic) == (False, True)
    assert newer.source_logged is not None
    assert newer.source_now is not None
    assert "first.zip" in newer.source_logged
    assert "second.zip selection=sample temperature=9 (SHA-256 " in newer.source_now
    greedy = again(log, loaded(packages[0]))
    assert greedy.same_source is False
    assert greedy.agreement is not None
    assert greedy.agreement < 1
    assert greedy.logit_difference is not None


def test_a_policy_server_is_told_what_the_log_did_too(log: Path, packages: tuple[Path, Path]):
    local = again(log, loaded(packages[1], **SAMPLED))
    served = loaded(packages[1], **SAMPLED)
    with PolicyServer(served, tiny.TASK, ("127.0.0.1", 0)) as server:
        found = again(log, RemotePolicy(f"ws://127.0.0.1:{server.port}"))
    served.close()
    assert found.steps == local.steps
    assert (found.follows, found.deterministic, found.same_source) == (True, True, None)


def test_what_was_found_survives_json(log: Path, packages: tuple[Path, Path]):
    found = again(log, loaded(packages[1]))
    document = json.loads(json.dumps(json_output.plain(found), allow_nan=False))
    assert config.parse(document, OpenLoop, "replay.json") == found


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.floats(-20, 20),
)
def test_divergence_is_that_of_the_probabilities(logged: list[float], now: list[float], shift: float):
    from robot_runtime.scoring.policy_agreement import logit_distance

    distance = logit_distance(np.array(logged), np.array(now))
    assert distance.kl_nats == pytest.approx(rel_entr(softmax(logged), softmax(now)).sum(), abs=1e-6)
    shifted = logit_distance(np.array(logged), np.array(logged) + shift)
    assert shifted.kl_nats == pytest.approx(0, abs=1e-9)
    assert shifted.max_abs == pytest.approx(abs(shift))


# --- other policies -------------------------------------------------------------------------------------------------


class Scripted(Policy):
    """Decides what it is told to, and remembers what it was told that the robot did."""

    name = "scripted"

    def __init__(self, actions: Sequence[Action] = ACTIONS) -> None:
        self.actions = actions
        self.overrulings: list[Decision] = []
        self.answered: str | None = None

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.coming = iter(self.actions)

    def act(self, observation: Observation) -> Decision:
        return next(self.coming)

    def overruled(self, decision: Decision) -> None:
        self.overrulings.append(decision)

    def answer(self, observation: Observation) -> str | None:
        return self.answered


class Leaking(Scripted):
    """Policy whose decision depends on how often it was ever asked."""

    count: ClassVar[Iterator[int]] = itertools.count()

    def act(self, observation: Observation) -> Decision:
        return (F, L, R)[next(self.count) % 3]


class Failing(Scripted):
    def act(self, observation: Observation) -> Decision:
        raise ZeroDivisionError("no luck")


class Sampling(Scripted):
    """Draws from the seed of its reset."""

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self.random = np.random.default_rng(seed)

    def act(self, observation: Observation) -> Decision:
        return (F, L, R)[self.random.integers(3)]


class Seeing(Scripted):
    privileged = True


def write(folder: Path, header: EpisodeHeader | None = None, last: dict[str, Any] | None = None) -> Path:
    """A log of :data:`ACTIONS` in the synthetic flat; ``last`` is the last step's ``policy_info``."""
    header = header or synthetic.header()
    records: list[StepRecord] = synthetic.drive(header, ACTIONS)
    if last is not None:
        records[-1] = replace(records[-1], policy_info=last)
    recorder = Recorder(folder)
    synthetic.play(recorder, header, records)
    recorder.close()
    return min(folder.glob("*.mcap"))


def test_decisions_are_compared_one_by_one(tmp_path: Path):
    policy = Scripted((F, F, F, R, STOP))
    found = again(write(tmp_path), policy)
    assert [(step.index, step.logged, step.now) for step in found.differences] == [(2, L, F), (5, F, STOP)]
    assert (found.first_difference, found.agreement) == (2, 0.6)
    assert policy.overrulings == [L, F] * 2  # asked twice, since it differs
    assert found.logit_difference is None
    assert found.deterministic is True
    assert (found.same_source, found.follows) == (None, False)


def test_one_that_does_not_repeat_itself_is_found_out(tmp_path: Path):
    assert again(write(tmp_path), Leaking()).deterministic is False


def test_a_seed_makes_sampling_repeatable(tmp_path: Path):
    assert again(write(tmp_path), Sampling()).deterministic is True


def test_an_error_of_the_policy_names_policy_and_step(tmp_path: Path):
    with raises_naming(PolicyError, "'scripted'", "ZeroDivisionError", "step 1", "no luck"):
        again(write(tmp_path), Failing())


def test_one_that_sees_the_world_is_refused(tmp_path: Path):
    with raises_naming(PolicyMismatch, "agent"):
        again(write(tmp_path), Seeing())


@pytest.mark.parametrize(("answer", "same"), [("brown", True), ("red", False), (None, False)])
def test_answers_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None, same: bool):
    monkeypatch.setattr(TaskKind, "answer_due", lambda _, task, action, step: step >= task.max_steps)
    task = synthetic.pointnav_task(max_steps=len(ACTIONS))
    policy = Scripted()
    policy.answered = answer
    found = again(write(tmp_path, synthetic.header(task, synthetic.pointnav_episode()), {ANSWER: "brown"}), policy)
    assert found.answer_same is same
    assert found.first_difference is None


def test_an_agent_in_its_own_process_decides_again(tmp_path: Path):
    (tmp_path / "turning.py").write_text(
        textwrap.dedent(
            """
            class Turning:
                def reset(self):
                    pass
                def act(self, observations):
                    assert observations["depth"].shape == (48, 64, 1)
                    return "turn_left"
            """
        )
    )
    source = PolicySource(f"habitat:{tmp_path / 'turning.py'}:Turning")
    header = synthetic.header(policy=replace(source, digest="0" * 64))
    found = again(write(tmp_path / "log", header), load_source(source))
    assert [step.now for step in found.steps] == [L] * 5
    assert (found.same_source, found.follows, found.deterministic) == (False, False, True)


def test_agents_that_ship_are_the_same_in_the_same_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = PolicySource("forward-only")
    written_by = {"robot_runtime": "1.0", "commit": "0123456789ab"}
    task = synthetic.pointnav_task(sensors=("rgb", "depth", "gps", "pointgoal"))
    header = synthetic.header(task, policy=source, provenance=written_by)
    log = write(tmp_path, header)
    for now, same in ((written_by, True), ({**written_by, "commit": "ba9876543210"}, None)):
        monkeypatch.setattr("robot_runtime.scoring.policy_agreement.provenance", lambda now=now: now)
        found = again(log, load_source(source))
        assert (found.same_source, found.follows) == (same, True)


def test_diff_prints_how_far_it_is_off(log: Path, packages: tuple[Path, Path], capsys: pytest.CaptureFixture[str]):
    assert run_command(["policy", "diff", str(packages[1]), str(log), "--agent-arg", "selection=argmax"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    for words in ("decided by", "second.zip selection=argmax (SHA-256 ", "nats apart", "logits differ by up to"):
        assert words in said


@pytest.mark.parametrize("told", [True, False])
def test_an_agent_that_was_overruled_does_not_take_standing_still_for_contact(told: bool):
    bug = load_source(PolicySource("bug"))
    bug.reset(synthetic.pointnav_task(sensors=("gps", "compass", "pointgoal")), 0)
    here = {"gps": np.zeros(2), "compass": np.zeros(1), "pointgoal": np.array([3.0, 0.0])}
    assert bug.act(here) is F
    if told:
        bug.overruled(L)
    bug.act(here)
    assert bug.info()["follows"] == ("" if told else "left")
