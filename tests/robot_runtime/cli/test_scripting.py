"""What scripts rely on: JSON on standard output, short help, harmless suggestions, tables without cut numbers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.table import Table
from typer.core import TyperGroup

from robot_runtime.cli.groups import moves
from robot_runtime.cli.main import build_app, run_command
from robot_runtime.common import host_checks
from robot_runtime.common.console import PlainTextConsole, console
from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.common.tables import facts_table
from robot_runtime.errors import DeviceFault

WITHOUT_RESULTS = {
    # what they make is a file, or a robot in another place
    *("fit", "jog", "place", "report", "stop", "view", "serve robothor", "serve policy"),
    *("tags make", "tags survey", "episodes generate", "episodes convert", "episodes questions", "policy export"),
    *("scene generate", "scene import", "scene view-points", "scene export", "scene noise", "scene action-noise"),
    *(
        "scene from-log",
        "scene from-map",
        "scene align",
        "export steps",
        "export video",
        "export lerobot",
        "export bag",
    ),
    *("logs recover", "logs import", "hardware find-port", "hardware echo", "hardware udev"),
    *("campaign run", "campaign judge", "campaign event", "campaign note", "campaign answer", "campaign seal"),
    *("campaign serve", "campaign unblind", "campaign key", "campaign report", "campaign rehearse", "policy package"),
    *("verdict add", "verdict judge", "guard"),
}


def commands(group: TyperGroup, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path}{name} ")
        else:
            yield path + name, command


def test_every_command_that_prints_results_prints_them_as_json_too() -> None:
    for path, command in commands(build_app()):
        (option,) = [p for p in command.params if p.name == "json"] or [None]
        assert (option is None) == (path in WITHOUT_RESULTS or path.startswith("calibrate ")), path
        assert option is None or (option.metavar == "FILE" and "standard error" in option.help), path


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (["info"], "robots"),
        (["doctor", "computer"], "computer"),
        (["scene", "info"], "free_m2"),
        (["episodes", "info", "EPISODES"], "shortest_paths_m"),
        (["episodes", "info", "EPISODES"], "ratios"),
        (["episodes", "validate", "EPISODES"], "episodes"),
        pytest.param(
            ["run", "--robot", "fake", "--policy", "oracle", "--count", "1", "--out", "LOGS"],
            "episodes",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_json_is_all_that_standard_output_gets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str], key: str
) -> None:
    episodes = tmp_path / "e.json.gz"
    if "EPISODES" in command:
        assert run_command(["episodes", "generate", "--count", "2", "--out", str(episodes)]) == 0
    capsys.readouterr()
    places = {"EPISODES": str(episodes), "LOGS": str(tmp_path / "logs")}
    assert run_command([*(places.get(word, word) for word in command), "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert key in json.loads(printed.out)
    assert printed.err.strip()
    assert not console.stderr
    assert run_command(["info"]) == 0
    assert capsys.readouterr().out.strip()


def test_an_error_after_the_option_leaves_the_next_command_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["score", "nothing", "--json", "-"]) != 0
    assert capsys.readouterr().out == ""
    assert run_command(["info"]) == 0
    assert "robots" in capsys.readouterr().out


def test_the_short_option_shows_the_same_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["run"], ["gap"], ["gap", "tune"], ["verdict"], ["scene"], ["scene", "info"], ["stop"]):
        assert run_command([*words, "--help"]) == 0
        whole = capsys.readouterr().out
        assert run_command([*words, "-h"]) == 0
        assert capsys.readouterr().out == whole
    assert "-h, --help" in whole


@pytest.mark.slow
def test_a_misspelt_command_suggests_none_that_moves_the_robot(capsys: pytest.CaptureFixture[str]) -> None:
    everything = dict(commands(build_app()))
    moving = {path for path, command in everything.items() if moves(command)}
    assert {"run", "teleop", "place", "jog", "campaign run", "preflight", "serve robothor", "stop"} - moving == {"stop"}
    unmoving = {"doctor", "fit", "gap tune", "logs import", "calibrate import"}
    assert not moving & unmoving
    for path in ("rn", "teleo", "plac", "jo", "preflite", "help", "campaign ru", "calibrate odometr"):
        assert run_command(path.split()) == 2
        message = capsys.readouterr().err
        assert "--help" in message
        for other in moving:
            assert f"'{other.split()[-1]}'" not in message.partition("Did you mean")[2], path
    assert run_command(["docter"]) == 2
    assert "'doctor'" in capsys.readouterr().err


def test_doctor_begins_with_simulation_and_fails_no_device_that_was_not_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Finding("device", Status.WARN, "none is connected", "plug it in", absent=True)
    broken = Finding("depth engine", Status.FAIL, "no OpenGL", "set DISPLAY")
    subjects = {"computer": [], "kinect": [broken, absent], "lidar": [broken], "sim": []}
    monkeypatch.setattr(host_checks, "CHECKS", dict.fromkeys(subjects))
    monkeypatch.setattr(host_checks, "_findings", lambda name: subjects[name])
    assert run_command(["doctor", "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert [line for line in printed.err.splitlines() if not line.startswith(" ")] == [
        *("sim", "computer", "lidar", "not here")
    ]
    assert "fail" not in printed.err
    assert json.loads(printed.out)["not here"] == ["kinect"]
    assert run_command(["doctor", "kinect"]) == DeviceFault.exit_code
    assert "fail" in capsys.readouterr().out


@pytest.mark.parametrize("width", [15, 25, 40, 60, 80])
def test_a_narrow_terminal_cuts_no_number(width: int) -> None:
    table = Table("metric", "a", "b", "95% interval", "p95", "p99", title="host")
    rows = [(f"phase{n}", *(f"{n}{k}.{k}{n}7" for k in range(3)), f"[0.{n}1, 0.{n}9]", f"{n}99.5") for n in range(9)]
    for row in rows:
        table.add_row(*row)
    table.columns[0].no_wrap = table.columns[2].no_wrap = True
    printed = io.StringIO()
    PlainTextConsole(file=printed, width=width).print(table)
    shown = printed.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    words = {word for row in rows for cell in row for word in cell.split()} | {"p95", "p99"}
    assert words <= set(shown.replace("│", " ").replace("┃", " ").split())


def test_a_name_that_is_too_long_for_a_narrow_terminal_is_folded() -> None:
    printed = io.StringIO()
    narrow = PlainTextConsole(file=printed, width=20)
    narrow.print(facts_table({"folder": "/a/very/long/path/of/a/scene", "counts": {"mug": 2, "bowl": 1}, "none": []}))
    shown = "".join(printed.getvalue().split())
    assert "…" not in shown
    assert "/a/very/l" in shown
    assert "mug2,bowl1" in shown


@pytest.mark.parametrize("option", ["--policy", "--agent"])
def test_a_policy_that_ships_is_named_by_either_option(capsys: pytest.CaptureFixture[str], option: str) -> None:
    command = ["run", "--robot", "fake", option, "goal-follower", "--count", "1", "--print-config"]
    assert run_command(command) == 0
    assert yaml.safe_load(capsys.readouterr().out)["policy"][0] == "goal-follower"


def test_the_printed_configuration_has_what_was_changed_and_nothing_is_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["run", "--robot", "fake", "--policy", "oracle", "--count", "2", "--out", str(tmp_path / "logs")]
    assert run_command([*command, "--robot-arg", "hfov_deg=60", "--print-config"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed["robot"]["options"]["hfov_deg"] == 60
    assert printed["task"]["name"] == "pointnav_gps_compass"
    assert len(printed["episodes"]) == 2
    assert not (tmp_path / "logs").exists()


def test_an_option_of_the_robot_that_is_wrong_is_named_as_it_was_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["run", "--robot", "fake", "--policy", "oracle", "--count", "1", "--out", str(tmp_path / "logs")]
    assert run_command([*command, "--robot-arg", "hfov_dag=60"]) == 2
    message = capsys.readouterr().err
    assert "--robot-arg hfov_dag=60" in message
    assert "hfov_deg" in message


def test_a_splits_distances_and_ratios_are_shown_as_quartiles(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """ObjectNav Revisited, figure 3."""
    episodes = tmp_path / "e.json.gz"
    assert run_command(["episodes", "generate", "--count", "9", "--out", str(episodes)]) == 0
    capsys.readouterr()
    assert run_command(["episodes", "info", str(episodes), "--json", str(tmp_path / "info.json")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    document = json.loads((tmp_path / "info.json").read_text())
    for values in (document["shortest_paths_m"], document["ratios"]):
        assert len(values) == 9
        assert min(document["ratios"]) >= 1.0 - 1e-6
        assert " .. ".join(f"{values[place]:.2f}" for place in (0, 2, 4, 6, 8)) in printed
