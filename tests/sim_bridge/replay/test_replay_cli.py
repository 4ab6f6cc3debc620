"""``robot-runtime replay``: what it writes and says of good logs, bad ones, and many."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from scripted import TASK, F, L, R, record

from robot_runtime.cli.main import run_command
from robot_runtime.parallel.map import Workers
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.batch import named, replay_logs
from sim_bridge.replay.options import ReplayOptions
from sim_bridge.replay.results import read_replay

SCRIPTS = [[F, L], [R, F]]
SEEING = replace(TASK, sensors=(*TASK.sensors, "pointgoal", "gps"), max_steps=20)
"""The sensors that the shipped agents need."""


@pytest.fixture(scope="module")
def logs(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two short ones of an exact robot, whose policy cannot be loaded again."""
    return record(tmp_path_factory.mktemp("cli") / "logs", room, SCRIPTS, task=SEEING)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command into ``tmp_path / "out"``: exit code, and everything that it said, in one line."""

    def run_it(*arguments: object) -> tuple[int, str]:
        code = run_command(["replay", *map(str, arguments), "--out", str(tmp_path / "out")])
        said = capsys.readouterr()
        return code, " ".join((said.out + said.err).split())

    return run_it


def test_one_log_is_a_table_a_page_and_a_file(logs: list[Path], run, tmp_path: Path) -> None:
    code, said = run(logs[0], "--into", "sim")
    assert code == 0
    for expected in ("room/", "script → sim", "depth error 0.0 mm", "nDTW 1.000", "paths part no", "page: "):
        assert expected in said, expected
    assert "its policy 'script'" in said
    replay = read_replay(tmp_path / "out" / f"{logs[0].stem}.json")
    assert replay.pose is not None
    assert replay.action is not None
    assert (replay.open_loop, replay.closed_loop) == (None, None)
    assert (tmp_path / "out" / f"{logs[0].stem}.html").is_file()


def test_only_what_is_asked_for_is_done(logs: list[Path], run, tmp_path: Path) -> None:
    for arguments, parts in ((["--actions"], (False, True)), (["--no-actions", "--no-pages"], (True, False))):
        assert run(logs[0], *arguments)[0] == 0
        replay = read_replay(tmp_path / "out" / f"{logs[0].stem}.json")
        assert (replay.pose is not None, replay.action is not None) == parts


def test_a_named_policy_is_asked_and_run(logs: list[Path], run, tmp_path: Path) -> None:
    code, said = run(logs[0], "--agent", "random", "--open-loop", "--closed-loop", "--no-pages")
    assert code == 0
    assert "open loop agreement" in said
    replay = read_replay(tmp_path / "out" / f"{logs[0].stem}.json")
    assert replay.open_loop is not None
    assert len(replay.open_loop.steps) == 3
    assert replay.closed_loop is not None
    assert Path(replay.closed_loop.log).is_file()


def test_a_policy_that_cannot_be_loaded_costs_only_its_parts(logs: list[Path], run) -> None:
    code, said = run(logs[0], "--policy", "gone.zip", "--no-poses", "--no-pages")
    assert code == 0
    assert "nDTW 1.000" in said
    assert "gone.zip" in said


def test_many_are_a_line_each_and_go_on_where_they_were_ended(logs: list[Path], run, tmp_path: Path) -> None:
    folder, out = tmp_path / "logs", tmp_path / "out"
    shutil.copytree(logs[0].parent, folder)
    (folder / "broken.mcap").write_bytes(b"x")
    arguments = (folder, "--no-poses", "--json", tmp_path / "lines.json")
    code, said = run(*arguments)
    assert code == 0
    assert "broken.mcap: is not a log" in said
    assert "median of 2" in said
    lines = json.loads((tmp_path / "lines.json").read_text())["replays"]
    assert [line["ndtw"] for line in lines] == pytest.approx([1, 1, None])
    index = (out / "index.html").read_text()
    assert all(f'href="{log.stem}.html"' in index for log in logs)
    assert "is not a log" in index
    assert all(f"logs/{log.stem}" in page for log in logs for page in (said, index)), "named by folder and log"
    written = {file.name: file.stat().st_mtime_ns for file in out.glob("0*")}
    shutil.copyfile(logs[1], folder / "broken.mcap")  # mended
    assert run(*arguments)[0] == 0
    assert {name: (out / name).stat().st_mtime_ns for name in written} == written
    assert read_replay(out / "broken.json").action is not None
    code, said = run(folder, "--no-poses", "--within-m", 0.5)
    assert code == 2
    assert "holds results of other settings" in said
    assert run(folder, "--no-poses", "--within-m", 0.5, "--overwrite")[0] == 0


def test_nothing_but_broken_logs_is_a_failure(tmp_path: Path, run) -> None:
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"x")
    code, said = run(broken)
    assert code == 1
    assert said.count("is not a log") == 1


def test_a_torn_log_is_replayed_as_far_as_it_goes(logs: list[Path], tmp_path: Path, run) -> None:
    torn = tmp_path / "torn.mcap"
    torn.write_bytes(logs[0].read_bytes()[:-2000])
    code, said = run(torn, "--no-pages")
    assert code == 0
    assert "the complete part is replayed" in said
    replay = read_replay(tmp_path / "out" / "torn.json")
    assert not replay.complete


def test_without_its_scene_a_log_still_has_its_policy_replayed(make_room, tmp_path: Path, run) -> None:
    scene = make_room()
    (log,) = record(tmp_path / "logs", scene, [[F]], task=SEEING)
    shutil.rmtree(scene.folder)
    code, said = run(log)
    assert code == 1
    assert f"scene 'own_room' is not at {scene.folder}" in said
    assert "name its folder with --scene" in said
    code, said = run(log, "--agent", "random")
    assert code == 0
    assert "open loop agreement" in said
    assert f"scene 'own_room' is not at {scene.folder}" in said


@pytest.mark.slow
def test_another_version_of_the_scene_is_refused_unless_it_will_do(make_room, tmp_path: Path, run) -> None:
    scene = make_room()
    (log,) = record(tmp_path / "logs", scene, [[F]])
    document = yaml.safe_load((scene.folder / "scene.yaml").read_text())
    document["objects"][1]["center"][0] += 0.1
    (scene.folder / "scene.yaml").write_text(yaml.safe_dump(document))
    code, said = run(log)
    assert code == 1
    assert f"recorded {scene.digest[:12]}" in said
    code, said = run(log, "--any-scene-version")
    assert code == 0
    assert "another version than was recorded in" in said


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--into", "nosuch"], 2, "nosuch"),
        (["--into", "sim", "--twin-arg", "nosuch=1"], 1, "nosuch"),
        (["--scene", "nosuch"], 4, "nosuch"),
        (["--policy", "a.zip", "--agent", "random"], 2, "exclude each other"),
        (["--agent-arg", "a=1"], 2, "name it with --policy or --agent"),
        (["--no-poses", "--no-actions", "--no-open-loop", "--no-closed-loop"], 2, "every part"),
        (["--within-m", "0"], 2, "--within-m"),
    ],
)
def test_wrong_options_name_themselves(logs: list[Path], run, arguments: list[str], code: int, expected: str) -> None:
    found, said = run(logs[0], "--no-pages", *arguments)
    assert expected in said
    assert found == code


def test_logs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a/run/0.mcap", "b/run/0.mcap", "b/run/1.mcap")]
    assert [job.name for job in named(paths)] == ["a-run-0", "b-run-0", "1"]


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(room: Scene, tmp_path: Path) -> None:
    logs = record(tmp_path / "logs", room, [[F, L], [R], [L], [F], [R, F]])

    def documents(count: int) -> list[object]:
        out = tmp_path / str(count)
        options = ReplayOptions(parts=("pose", "action"), out=out)
        lines = replay_logs(named(logs), options, Workers(count), pages=False)
        return [lines, *(json.loads((out / f"{log.stem}.json").read_text()) for log in logs)]

    assert documents(1) == documents(2)
