"""Errors at the command line: one message, the exit code, no traceback, and a readable log."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.core import TyperCommand, TyperGroup

from robot_runtime.cli.main import OLD_SPELLINGS, build_app, run_command
from robot_runtime.common import host_checks
from robot_runtime.common.config import find_preset
from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.hal import Velocity
from robot_runtime.recording.reader import LogReader
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import find_scene, load_scene


def fails(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, *parts: str) -> str:
    """Run a command that must fail, and check its exit code and message."""
    assert run_command(arguments) == code
    captured = capsys.readouterr()
    message = " ".join(captured.err.split())
    assert "Traceback" not in captured.out + captured.err
    assert message.count("error:") == 1, message
    assert message.count("remedy:") == 1, message
    for part in parts:
        assert part in message, message
    return message


def commands(group: TyperGroup, path: str = "robot-runtime") -> Iterator[tuple[str, TyperCommand]]:
    """Path and every command."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            assert isinstance(command, TyperCommand)
            yield f"{path} {name}", command


def write_yaml(path: Path, document: object) -> Path:
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[bold]"


def test_no_escape_sequence_of_a_policy_reaches_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "hostile.py"
    agent.write_text(
        "class Agent:\n"
        "    def reset(self):\n"
        f"        raise ValueError({HOSTILE!r})\n"
        "    def act(self, observations):\n"
        "        pass\n"
    )
    options = ["--robot", "fake", "--count", "1", "--out", str(tmp_path / "logs")]
    for debug in ([], ["--debug"]):
        assert run_command(["run", "--agent", f"{agent}:Agent", *options, "--overwrite", *debug]) == 9
        shown = "".join(capsys.readouterr())
        assert not set("\x1b\x07\x9b\u202e") & set(shown)
        assert "\\x1b]0;owned\\x1b[2J\\x9b31m\\u202e[bold]" in shown


def test_a_run_whose_log_disappears_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent, logs = tmp_path / "tidy.py", tmp_path / "logs"
    agent.write_text(
        "from pathlib import Path\n"
        "class Agent:\n"
        "    def reset(self):\n"
        f"        for log in sorted(Path({str(logs)!r}).glob('*.mcap'))[:-1]:\n"
        "            log.unlink()\n"
        "    def act(self, observations):\n"
        "        return 'stop'\n"
    )
    options = ["--agent", f"{agent}:Agent", "--robot", "fake", "--count", "2", "--out", str(logs)]
    fails(capsys, ["run", *options], 8, str(logs), "2 episodes were run, and 1 logs are there")


@pytest.fixture
def empty_room(tmp_path: Path) -> Path:
    """A scene without meshes: a free rectangle of 6 x 4 m with a wall across x = 4, and one object."""
    import numpy as np

    folder = tmp_path / "room"
    folder.mkdir()
    cells = np.full((160, 240), Cell.FREE, np.uint8)
    cells[[0, -1], :] = Cell.OCCUPIED
    cells[:, [0, 160, -1]] = Cell.OCCUPIED
    OccupancyMap(cells, 0.025, 0.0, 0.0).save(folder / "map.yaml")
    document = {"schema": 1, "name": "room", "rooms": [], "objects": []}
    write_yaml(folder / "scene.yaml", document)
    return folder


def pointnav_file(path: Path, start: tuple[float, float], goal: tuple[float, float]) -> Path:
    """One episode in Habitat's format; start and goal in the ROS map frame."""
    episode = {
        "episode_id": "only",
        "scene_id": "room",
        "start_position": [-start[1], 0.0, -start[0]],
        "start_rotation": [0.0, 0.0, 0.0, 1.0],
        "info": {"geodesic_distance": 1.0},
        "goals": [{"position": [-goal[1], 0.0, -goal[0]], "radius": None}],
        "shortest_paths": None,
        "start_room": None,
    }
    path.write_bytes(gzip.compress(json.dumps({"episodes": [episode]}).encode()))
    return path


def run_fake(room: Path, out: Path, *more: str) -> list[str]:
    return ["run", "--robot", "fake", "--scene", str(room), "--out", str(out), *more]


@pytest.mark.parametrize("group", [[], ["scene"], ["episodes"]])
def test_lists_of_commands_break_off_nowhere(capsys: pytest.CaptureFixture[str], group: list[str]) -> None:
    assert run_command([*group, "--help"]) == 0
    listed = capsys.readouterr().out.partition("--help")[2].partition(":\n")[2]
    assert listed.strip()
    assert "..." not in listed


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["fly"]) == 2
    assert "fly" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "new"),
    [
        (["place", "--within-cm", "3"], "--within-m, in meters"),
        (["place", "--timeout", "3"], "--timeout-s"),
        (["run", "--agent-timeout", "3"], "--agent-timeout-s"),
        (["run", "--localization-patience", "3"], "--localization-patience-s"),
        (["serve", "robothor", "--client-timeout", "3"], "--client-timeout-s"),
        (["score", "--limit-s", "3"], "--timeout-s"),
        (["gap", "a", "b", "--plot", "x.png"], "--picture"),
        (["gap", "tune", "a", "--episodes", "3"], "--count"),
        (["policy", "export", "a", "--out", "b", "--licence", "MIT"], "--license"),
        (["calibrate", "depth", "--out", "b", "--tag-mm", "160"], "--tag-m, in meters"),
        (["calibrate", "intrinsics", "--out", "b", "--time-limit-s", "1"], "--timeout-s"),
        (["tags", "make", "--size", "0.16"], "--tag-m"),
        (["export", "bag", "a", "--rosbag", "b.bag"], "--out"),
        (["logs", "import", "--rosbag", "b.bag", "--min-rest", "1"], "--min-rest-s"),
        (["logs", "recover", "a.mcap", "b.mcap"], "--out"),
        (["scene", "generate", "flat"], "--out"),
        (["scene", "import", "a.glb", "b"], "--out"),
        (["scene", "noise", "a.png"], "--out"),
        (["episodes", "generate", "a.json.gz"], "--out"),
        (["episodes", "validate", "a.json", "--json"], "--json"),
        (["verdict", "judge", "logs", "--detector", "d.yaml", "--by", "judge.yaml"], "write --judge"),
        (["verdict", "judge", "logs", "--detector", "d.yaml", "--judge", "judge.yaml", "--calibrate"], "write --out"),
        (["campaign", "report", "plan.yaml", "--to", "report"], "write --out"),
    ],
)
def test_an_old_spelling_is_an_error_that_names_the_new_one(
    capsys: pytest.CaptureFixture[str], arguments: list[str], new: str
) -> None:
    fails(capsys, arguments, 2, new)


def test_an_option_that_never_was_is_no_old_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    message = fails(capsys, ["doctor", "--episodes", "3"], 2, "--episodes", "--help")
    assert "--count" not in message


def test_every_option_with_a_unit_is_in_meters_degrees_or_seconds() -> None:
    """Also: a file for results is --out, never an argument, and JSON goes to a file."""
    for path, command in commands(build_app()):
        for parameter in command.params:
            names = [name for name in parameter.opts if name.startswith("--")]
            assert not [name for name in names if name in OLD_SPELLINGS and not _has_present_meaning(path, name)], path
            assert not [name for name in names if name.endswith(("-cm", "-mm", "-ms", "-rad"))], path
            assert names or parameter.name not in ("out", "folder", "picture") or path.endswith("view-points"), path
            assert "--json" not in names or not getattr(parameter, "is_flag", False), path


def _has_present_meaning(path: str, name: str) -> bool:
    """Whether the option is not the old spelling: names that other commands still have."""
    return name in ("--by", "--episodes", "--count") or (path, name) in (
        ("robot-runtime scene generate", "--size"),
        ("robot-runtime calibrate import", "--size"),  # of images, in pixels
        ("robot-runtime logs import", "--rosbag"),
    )


def test_unknown_preset_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    fails(capsys, ["run", "--task", "objectnav_habitat2002"], 2, "objectnav_habitat2002", "objectnav_habitat2020")


def test_malformed_yaml_names_file_line_and_column(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text("name: x\n  kind: [\n", encoding="utf-8")
    fails(capsys, ["run", "--task", str(path)], 2, "task.yaml", "line 2")


@pytest.mark.slow
def test_malformed_yaml_of_a_robot_and_of_a_scene_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, empty_room: Path
) -> None:
    robot = tmp_path / "robot.yaml"
    robot.write_text("name: mine\ndriver: [drivers\n", encoding="utf-8")
    run_it = ["run", "--count", "1", "--out", str(tmp_path / "logs"), "--scene", str(empty_room), "--robot", str(robot)]
    fails(capsys, run_it, 2, "robot.yaml", "line 3", "correct")
    robot.write_text("name: mine\ndriver: drivers.fake.driver.make_robot\noptions: {rate_hz: .nan}\n", encoding="utf-8")
    fails(capsys, run_it, 2, "robot.yaml", "'rate_hz'", "nan")
    (empty_room / "scene.yaml").write_text("schema: 1\nname: [\n", encoding="utf-8")
    fails(capsys, run_it, 2, "scene.yaml", "line 3", "correct")
    assert not (tmp_path / "logs").exists()


def test_misspelt_field_is_named_with_the_right_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = yaml.safe_load(find_preset("tasks", "pointnav_gps_compass").read_text(encoding="utf-8"))
    document["max_step"] = document.pop("max_steps")
    path = write_yaml(tmp_path / "task.yaml", document)
    fails(capsys, ["run", "--task", str(path)], 2, "task.yaml", "max_step")


def test_missing_driver_module_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path, empty_room: Path) -> None:
    path = write_yaml(tmp_path / "robot.yaml", {"name": "mine", "driver": "drivers.warp_drive.make_robot"})
    arguments = ["run", "--robot", str(path), "--scene", str(empty_room), "--out", str(tmp_path / "logs")]
    fails(capsys, arguments, 2, "robot.yaml", "warp_drive")


def test_scene_without_a_map(capsys: pytest.CaptureFixture[str], empty_room: Path) -> None:
    (empty_room / "map.yaml").unlink()
    fails(capsys, ["run", "--scene", str(empty_room)], 4, "scene.yaml", "'map'", "map.yaml")


def test_scene_that_does_not_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fails(capsys, ["run", "--scene", str(tmp_path / "nowhere")], 4, "nowhere", "apartment")


def test_scene_without_meshes_cannot_be_simulated(
    capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path
) -> None:
    fails(capsys, ["run", "--scene", str(empty_room), "--out", str(tmp_path / "logs")], 4, "room", "scene")


def test_start_inside_a_wall(capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path) -> None:
    file = pointnav_file(tmp_path / "e.json.gz", start=(4.0, 2.0), goal=(1.0, 1.0))
    fails(capsys, run_fake(empty_room, tmp_path / "logs", "--episodes", str(file)), 5, "only", "start")


def test_unreachable_goal(capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path) -> None:
    file = pointnav_file(tmp_path / "e.json.gz", start=(1.0, 1.0), goal=(5.0, 2.0))
    fails(capsys, run_fake(empty_room, tmp_path / "logs", "--episodes", str(file)), 5, "only", "goal")


def test_truncated_episode_file(capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path) -> None:
    file = pointnav_file(tmp_path / "e.json.gz", start=(1.0, 1.0), goal=(2.0, 2.0))
    file.write_bytes(file.read_bytes()[:-20])
    fails(capsys, run_fake(empty_room, tmp_path / "logs", "--episodes", str(file)), 5, "e.json.gz")


def test_episode_file_of_an_unknown_schema(
    capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path
) -> None:
    file = tmp_path / "e.json"
    file.write_text('{"levels": [1, 2]}', encoding="utf-8")
    fails(capsys, run_fake(empty_room, tmp_path / "logs", "--episodes", str(file)), 5, "e.json")


AGENTS_THAT_FAIL = """
import numpy as np
class Flies:
    def reset(self): ...
    def act(self, observations): return "fly"
class Raises:
    def reset(self): ...
    def act(self, observations): return 1 / 0
class ComputesNaN:
    def reset(self): ...
    def act(self, observations): return float("nan")
class WishesVelocity:
    def reset(self): ...
    def act(self, observations): return {"action": "velocity_control", "linear_velocity": float("nan")}
"""


@pytest.mark.parametrize(
    ("name", "code", "part"),
    [
        ("Flies", 6, "fly"),
        ("Raises", 9, "division"),
        ("ComputesNaN", 9, "returned nan"),
        ("WishesVelocity", 6, "velocity_control"),
    ],
)
def test_agent_that_fails_leaves_a_log_that_opens(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    empty_room: Path,
    tmp_path: Path,
    name: str,
    code: int,
    part: str,
) -> None:
    (tmp_path / f"failing_agents_{name.lower()}.py").write_text(AGENTS_THAT_FAIL, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = pointnav_file(tmp_path / "e.json.gz", start=(1.0, 1.0), goal=(2.0, 2.0))
    out = tmp_path / "logs"
    agent = f"failing_agents_{name.lower()}:{name}"
    fails(capsys, run_fake(empty_room, out, "--episodes", str(file), "--agent", agent), code, part)
    (log,) = out.glob("*.mcap")
    with LogReader(log) as reader:
        assert reader.complete
        assert reader.end is not None
        assert reader.end.reason.value == "fault"
        (step,) = reader.steps(images=False)
        assert step.base.velocity == Velocity()


def test_logs_are_not_overwritten_by_accident(
    capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path
) -> None:
    out = tmp_path / "logs"
    out.mkdir()
    (out / "0000_room_1.mcap").write_bytes(b"x")
    fails(capsys, run_fake(empty_room, out, "--count", "1"), 2, "--overwrite")


def test_a_negative_seed_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for command in (
        ["run", "--out", str(tmp_path / "logs")],
        ["episodes", "generate", "--out", str(tmp_path / "e.json.gz")],
        ["scene", "generate", "--out", str(tmp_path / "flat")],
    ):
        fails(capsys, [*command, "--seed", "-1"], 2, "--seed", "greater than or equal to 0")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["run", "--robot", "fake", "--count", "1", "--out"], 8), (["scene", "generate", "--out"], 1)],
)
def test_a_place_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int
) -> None:
    (tmp_path / "file").write_bytes(b"")
    fails(capsys, [*arguments, str(tmp_path / "file" / "below")], code, "file")


def test_overwrite_replaces_the_logs_and_nothing_else(empty_room: Path, tmp_path: Path) -> None:
    out = tmp_path / "logs"
    out.mkdir()
    (out / "0007_room_1.mcap").write_bytes(b"x")
    (out / "notes.txt").write_text("keep me", encoding="utf-8")
    file = pointnav_file(tmp_path / "e.json.gz", start=(1.0, 1.0), goal=(2.0, 2.0))
    arguments = run_fake(empty_room, out, "--episodes", str(file), "--agent", "goal-follower", "--overwrite")
    assert run_command(arguments) == 0
    assert sorted(path.name for path in out.iterdir()) == ["0000_room_only.mcap", "ledger.jsonl", "notes.txt"]


def test_scoring_something_that_is_no_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fails(capsys, ["score", str(tmp_path / "none")], 8, "none")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "--task", "nonsense", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_bundled_scene_is_found_by_name() -> None:
    scene = load_scene(find_scene("apartment"))
    assert scene.file.assets


@pytest.mark.slow
def test_one_episode_of_a_file_is_run_by_its_number_or_id(
    capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path
) -> None:
    file = pointnav_file(tmp_path / "e.json.gz", start=(1.0, 1.0), goal=(2.0, 2.0))
    for which in ("0", "only"):
        arguments = run_fake(empty_room, tmp_path / which, "--episodes", str(file), "--agent", "goal-follower")
        assert run_command([*arguments, "--episode", which]) == 0
        assert sorted(log.name for log in (tmp_path / which).iterdir()) == ["0000_room_only.mcap", "ledger.jsonl"]
    fails(capsys, [*run_fake(empty_room, tmp_path / "x"), "--episodes", str(file), "--episode", "7"], 5, "'7'", "1")
    fails(capsys, run_fake(empty_room, tmp_path / "x", "--episode", "7", "--count", "2"), 2, "--count", "--episode")


def test_remedies_of_the_doctor_keep_the_extra_that_they_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Finding("mujoco [3]", Status.FAIL, "no module [/]", "pip install 'robot-runtime[sim]'")
    monkeypatch.setattr(host_checks, "examine", lambda names: {"sim": [found]})
    assert run_command(["doctor"]) == 0
    assert "mujoco [3]: no module [/]" in (printed := capsys.readouterr().out)
    assert "remedy: pip install 'robot-runtime[sim]'" in printed


def test_a_package_that_is_not_there_is_no_agent(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for missing in ("nothing.zip", str(tmp_path / "folder")):
        message = fails(capsys, ["preflight", "--policy", missing], 9, missing, "package")
        assert "agent" not in message


def test_no_folder_of_logs_is_named_before_there_is_one(
    capsys: pytest.CaptureFixture[str], empty_room: Path, tmp_path: Path
) -> None:
    robot = write_yaml(
        tmp_path / "robot.yaml",
        {"name": "mine", "driver": "drivers.fake.driver.make_robot", "options": {"hfov_deg": 60.0}},
    )
    message = fails(capsys, [*run_fake(empty_room, tmp_path / "logs"), "--robot", str(robot)], 2, "60")
    assert "logs:" not in message
