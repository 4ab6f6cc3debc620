"""A sweep over the logs of a robot with hidden settings: its results, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from raising import raises_naming
from rich.console import Console

from robot_runtime.cli.main import run_command
from robot_runtime.errors import InvalidStart, PolicyError, RecordingError, SceneError
from robot_runtime.policy import PolicySource
from robot_runtime.recording.reader import LogReader
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.options import SceneSource
from sim_bridge.tuning.policy_runs import policy_source, rerun
from sim_bridge.tuning.settings import UNCHANGED, SweepOptions, make_grid
from sim_bridge.tuning.sweep import Tuning, sweep
from sim_bridge.tuning.table import table, verdict

pytestmark = pytest.mark.slow  # what they share takes far longer than each test

Run = Callable[..., str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs ``robot-runtime gap`` and returns its output or its error."""

    def run(*arguments: object, code: int = 0) -> str:
        assert run_command(["gap", *map(str, arguments)]) == code
        captured = capsys.readouterr()
        return " ".join((captured.out + captured.err).split())

    return run


@pytest.fixture(scope="session")
def tuned(real_logs: list[Path], robot_file: Path) -> Tuning:
    """Sliding or not, and the hidden robot itself, with policies."""
    return sweep(real_logs, make_grid("sim", ["contact.behaviour=slide"], [str(robot_file)]))


def test_the_hidden_robot_is_the_most_likely(tuned: Tuning) -> None:
    ranked = tuned.ranked()
    assert [one.name for one in ranked] == ["fitted: hidden", UNCHANGED, "contact slide"]
    assert ranked[0].behind is None
    for other in ranked[1:]:
        assert other.behind is not None
        assert other.behind.low <= other.behind.mean <= other.behind.high < 0
        assert other.behind.mean == pytest.approx(other.parts.total - ranked[0].parts.total)
    assert ranked[1].parts.contacts == ranked[2].parts.contacts, "both touch; only the way tells them apart"
    assert ranked[1].parts.motions > ranked[2].parts.motions
    assert ranked[0].parts.camera > ranked[1].parts.camera
    assert ranked[0].parts.delays > ranked[1].parts.delays
    assert verdict(tuned)[0] == "Most likely: fitted: hidden."


def test_the_same_policies_ran_the_same_episodes_under_each(tuned: Tuning) -> None:
    assert (tuned.logs, tuned.episodes, tuned.delays) == (6, 2, 6)
    assert tuned.images >= 4
    assert tuned.policies == ("goal-follower", "near", "forward-only")
    for one in tuned.settings:
        assert one.gap is not None
        assert not one.failed
        assert {policy.agent: policy.episodes for policy in one.gap.policies} == dict.fromkeys(tuned.policies, 2)
        assert not one.gap.unpaired


@pytest.mark.slow
def test_a_repeated_command_resumes(
    real_logs: list[Path], tmp_path: Path, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One episode, by all three agents.
    arguments = ["tune", *real_logs[::2], "--vary", "contact.behaviour=slide", "--out", tmp_path]
    first = command(*arguments)
    assert "Most likely:" in first
    assert "Correlation of simulation and robot" in first
    found = (tmp_path / "tuning.json").read_bytes()
    assert (tmp_path / "tuning.png").read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr("sim_bridge.tuning.policy_runs.rerun", lambda *_: pytest.fail("ran again"))
    monkeypatch.setattr("sim_bridge.tuning.evaluation.predict", lambda *_: pytest.fail("simulated again"))
    command(*arguments)
    assert (tmp_path / "tuning.json").read_bytes() == found
    document = json.loads(found)
    assert document["ranked"][0] in {one["name"] for one in document["settings"]}


@pytest.mark.slow
def test_two_workers_find_what_one_finds(real_logs: list[Path], tmp_path: Path, command: Run) -> None:
    arguments = ["tune", *real_logs[:5], "--vary", "contact.behaviour=stop", "--likelihood-only"]
    command(*arguments, "--out", tmp_path / "one")
    command(*arguments, "--out", tmp_path / "two", "--workers", 2)
    one, two = ((tmp_path / name / "tuning.json").read_bytes() for name in ("one", "two"))
    assert one == two


def test_numbers_are_found_by_likelihood_alone(
    real_logs: list[Path], tmp_path: Path, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim_bridge.tuning.policy_runs.rerun", lambda *_: pytest.fail("ran a policy"))
    out = command(
        *["tune", *real_logs[::2], "--likelihood-only", "--refine", "camera.mount_error.tilt_deg=-5:5"],
        *["--out", tmp_path / "out"],
    )
    assert "no policy was run" in out
    document = json.loads((tmp_path / "out" / "tuning.json").read_text())
    best = next(one for one in document["settings"] if one["name"] == document["ranked"][0])
    assert best["options"]["camera"]["mount_error"]["tilt_deg"] == pytest.approx(2.0, abs=0.2)


def test_logs_of_runs_are_saved_on_request(real_logs: list[Path], tmp_path: Path, command: Run) -> None:
    command(*["tune", real_logs[0], "--vary", "contact.behaviour=stop", "--keep-logs", "--out", tmp_path / "out"])
    (saved,) = (tmp_path / "out" / "logs").rglob("*.mcap")
    with LogReader(saved) as log, LogReader(real_logs[0]) as real:
        assert log.header.agent == real.header.agent
        assert log.header.episode == real.header.episode
        assert log.header.seed == real.header.seed
        assert next(iter(log.steps())).frame.depth_m.size


def test_settings_that_logs_do_not_distinguish(real_logs: list[Path]) -> None:
    # No part of the likelihood depends on the errors of single pixels.
    found = sweep(real_logs[:3], make_grid("sim", ["camera.depth_noise={model: redwood}"]), SweepOptions(runs=False))
    assert "do not distinguish it from" in verdict(found)[1]


def test_one_episode_leaves_it_open(real_logs: list[Path]) -> None:
    sweep_options = SweepOptions(episodes=1, runs=False)
    found = sweep(real_logs, make_grid("sim", ["contact.behaviour=slide"], study=False), sweep_options)
    assert "One episode does not show" in verdict(found)[1]


class TestWithout:
    """Missing inputs are reported, and the rest is done."""

    def test_a_scene_that_cannot_be_simulated(self, real_logs: list[Path], tmp_path: Path) -> None:
        with raises_naming(SceneError, "nowhere"):
            sweep(
                real_logs[:1], make_grid("sim", [], study=False), SweepOptions(SceneSource(str(tmp_path / "nowhere")))
            )

    def test_another_version_of_the_scene(self, real_logs: list[Path], make_room: Callable[..., Scene]) -> None:
        other = make_room(hole=True).folder
        with raises_naming(SceneError, other, "--any-scene-version"):
            sweep(real_logs[:1], make_grid("sim", [], study=False), SweepOptions(SceneSource(str(other)), runs=False))
        found = sweep(
            real_logs[:1], make_grid("sim", [], study=False), SweepOptions(SceneSource(str(other), True), runs=False)
        )
        assert found.motions

    def test_policies_that_cannot_be_loaded(self, real_logs: list[Path]) -> None:
        gone = {
            "near": PolicySource("gone.py:Agent"),
            "goal-follower": PolicySource("gone"),
            "forward-only": PolicySource("x"),
        }
        found = sweep(real_logs[::2], make_grid("sim", [], study=False), SweepOptions(policy_overrides=gone))
        assert found.settings[0].reason == "no policy can be loaded"
        assert any("gone.py" in note for note in found.notes)
        with raises_naming(PolicyError, "--policy other", "goal-follower"):
            sweep(
                real_logs[:1],
                make_grid("sim", [], study=False),
                SweepOptions(policy_overrides={"other": PolicySource("random")}),
            )

    def test_a_log_that_does_not_name_its_policy(self, real_logs: list[Path]) -> None:
        with LogReader(real_logs[0]) as log:
            header = replace(log.header, policy=None)
        with raises_naming(PolicyError, header.agent, f"--policy {header.agent}=SPEC"):
            policy_source(header, {})

    def test_a_policy_that_changed_runs_again(
        self, real_logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = tmp_path / "agent.py"
        body = "class Agent:\n    def reset(self): pass\n    def act(self, observations): return {'action': %d}\n"
        policy_overrides = {"goal-follower": PolicySource(f"{agent}:Agent")}
        sweep_options = SweepOptions(policy_overrides=policy_overrides, journals=tmp_path / "out")
        ran: list[int] = []

        def counted(*arguments: Any) -> Any:
            ran.append(1)
            return rerun(*arguments)

        monkeypatch.setattr("sim_bridge.tuning.policy_runs.rerun", counted)
        for action in (0, 0, 2):
            agent.write_text(body % action, encoding="utf-8")
            sweep(real_logs[:1], make_grid("sim", [], study=False), sweep_options)
        assert len(ran) == 2

    def test_too_few_policies_for_a_correlation(self, real_logs: list[Path]) -> None:
        found = sweep(real_logs[:1], make_grid("sim", [], study=False))
        correlation = found.settings[0].correlation("success")
        assert correlation is not None
        assert "needs 3" in correlation.reason
        assert found.best_predictor() is None
        console = Console(record=True, file=StringIO(), width=200)
        console.print(table(found))
        assert "no correlation under 1 of 1 settings: 1 policy ran in both worlds" in console.export_text()

    def test_torn_logs_are_left_out(self, real_logs: list[Path], tmp_path: Path) -> None:
        torn = tmp_path / "torn.mcap"
        torn.write_bytes(real_logs[0].read_bytes()[:200])
        found = sweep([torn, real_logs[1]], make_grid("sim", [], study=False), SweepOptions(runs=False))
        assert found.logs == 1
        assert "torn.mcap" in found.notes[0]
        with raises_naming(RecordingError, torn):
            sweep([torn], make_grid("sim", [], study=False))

    def test_a_run_that_fails_is_counted(self, real_logs: list[Path], tmp_path: Path) -> None:
        agent = tmp_path / "fails.py"
        agent.write_text(
            "class Agent:\n    def reset(self): pass\n    def act(self, observations): return 1 // 0\n",
            encoding="utf-8",
        )
        policy_overrides = {"goal-follower": PolicySource(f"{agent}:Agent")}
        (one,) = sweep(
            real_logs[:1], make_grid("sim", [], study=False), SweepOptions(policy_overrides=policy_overrides)
        ).settings
        ((reason, count),) = one.failed.items()
        assert "ZeroDivisionError" in reason
        assert count == 1
        assert "no policy has an episode in both worlds" in one.reason

    def test_a_robot_that_fits_nowhere(self, real_logs: list[Path]) -> None:
        with raises_naming(InvalidStart, "'radius_m 1.5'"):
            sweep(real_logs[:1], make_grid("sim", ["body.radius_m=1.5"]), SweepOptions(runs=False))


def test_the_first_episodes_of_all_policies_are_taken(real_logs: list[Path]) -> None:
    found = sweep(real_logs, make_grid("sim", [], study=False), SweepOptions(episodes=1, runs=False))
    assert (found.episodes, found.logs) == (1, 3)
