"""Headings of help texts, old spellings of commands, and packages that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import outside_packages
import pytest

from robot_runtime.cli.groups import HEADINGS, MOVED
from robot_runtime.cli.main import build_app, run_command
from robot_runtime.cli.run import HEADINGS as RUN_HEADINGS
from robot_runtime.common.host_checks import Status, examine
from robot_runtime.errors import PluginError
from robot_runtime.scenes.scene import find_scene

GROUP = "robot_runtime.commands"


def help_of(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, str]:
    """Text under each heading."""
    assert run_command([*command, "--help"]) == 0
    _, *parts = re.split(r"^(\S.*):$", capsys.readouterr().out, flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_all_commands_are_listed_once_under_their_headings(capsys: pytest.CaptureFixture[str]) -> None:
    sections = help_of(capsys)
    assert [heading for heading in sections if heading != "Options"] == list(HEADINGS)
    listed = [name for heading in HEADINGS for name in re.findall(r"^  (\S+) ", sections[heading], flags=re.M)]
    assert listed == [name for names in HEADINGS.values() for name in names]
    assert sorted(listed) == sorted(build_app().commands)


def test_all_options_of_run_have_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    command = build_app(["run"]).commands["run"]
    named = [name for names in RUN_HEADINGS.values() for name in names]
    assert sorted(named) == sorted(str(parameter.name) for parameter in command.params)
    assert list(help_of(capsys, "run")) == list(RUN_HEADINGS)


@pytest.mark.parametrize("old", MOVED)
def test_an_old_spelling_runs_and_names_the_new_one(capsys: pytest.CaptureFixture[str], old: str) -> None:
    assert run_command([*MOVED[old], "--help"]) == 0
    expected = capsys.readouterr()
    assert run_command([old, "--help"]) == 0
    got = capsys.readouterr()
    assert got.out == expected.out
    assert expected.err == ""
    assert " ".join(MOVED[old]) in got.err
    assert len(got.err.splitlines()) == 1


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_command_of_a_further_package_is_under_the_last_heading(
    capsys: pytest.CaptureFixture[str], site: Path
) -> None:
    source = "def fly():\n    print('flown')\ndef register(groups):\n    groups['root'].command('fly')(fly)\n"
    outside_packages.install(site, "commands_fly", {GROUP: {"fly": "commands_fly:register"}}, source)
    assert "fly" in help_of(capsys)[list(HEADINGS)[-1]]
    assert run_command(["fly"]) == 0
    assert capsys.readouterr().out == "flown\n"


@pytest.mark.parametrize("source", ["import no_such_module_here", "def register(groups): raise KeyError('x')"])
def test_a_broken_package_stops_its_own_command_alone(
    capsys: pytest.CaptureFixture[str], site: Path, source: str
) -> None:
    outside_packages.install(site, "commands_broken", {GROUP: {"fall": "commands_broken:register"}}, source)
    assert run_command(["info"]) == 0
    assert "fall" not in capsys.readouterr().err
    assert run_command(["fall"]) == 2
    assert "fall" in capsys.readouterr().err
    assert run_command(["--help"]) == 0
    assert "'fall'" in capsys.readouterr().out


def test_info_lists_what_the_help_of_options_points_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["info"]) == 0
    listed = capsys.readouterr().out.split()
    assert {"oracle,", "habitat:,", "habitat_pointnav,"} <= set(listed)


def test_a_broken_check_is_a_finding_on_its_subject_alone(site: Path) -> None:
    offers = {"robot_runtime.doctor": {"wings": "checks_broken:check"}}
    outside_packages.install(site, "checks_broken", offers, "import no_such_module_here")
    (finding,) = examine(["wings"])["wings"]
    assert finding.status is Status.FAIL
    assert "checks_broken" in finding.detail
    assert all(found.what != finding.what for found in examine(["hardware"])["hardware"])


def test_a_scene_of_a_broken_package_is_an_error_where_it_is_asked_for(site: Path) -> None:
    offers = {"robot_runtime.scenes": {"cloud": "scenes_broken:cloud"}}
    outside_packages.install(site, "scenes_broken", offers, "import no_such_module_here")
    assert find_scene("apartment").is_dir()
    with pytest.raises(PluginError, match="scenes_broken"):
        find_scene("cloud")
