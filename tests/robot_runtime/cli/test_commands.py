"""Functions of all registered commands, and groups of their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from robot_runtime.cli.main import build_app
from robot_runtime.cli_options.option_groups import grouped_options

MAX_LINES = 60

Names = Annotated[list[str], typer.Argument(help="Names.")]


def functions(group: TyperGroup, path: str = "robot-runtime") -> Iterator[tuple[str, Callable[..., Any]]]:
    """Path and function of every command."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from functions(command, f"{path} {name}")
        else:
            assert isinstance(command, TyperCommand)
            assert command.callback is not None
            yield f"{path} {name}", inspect.unwrap(command.callback)


def test_functions_of_commands_are_short() -> None:
    lines = {path: len(inspect.getsourcelines(function)[0]) for path, function in functions(build_app())}
    assert len(lines) > 50, "commands of other packages are included"
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


@dataclass(frozen=True)
class Pace:
    """A group of two options, one of which is required."""

    speed: Annotated[float, typer.Option(min=0, help="Speed.")]
    fast: Annotated[bool, typer.Option("--fast", help="Faster.")] = False


@grouped_options
def walk(*, names: Names, pace: Pace, seed: Annotated[int, typer.Option(help="Seed.")] = 7) -> None:
    """Walk."""
    typer.echo(f"{names} {pace} {seed}")


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(walk)
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_fields_of_a_group_are_options() -> None:
    assert run("a", "b", "--fast", "--speed", "2") == (0, "['a', 'b'] Pace(speed=2.0, fast=True) 7\n")
    assert run("a", "--speed", "1", "--seed", "3") == (0, "['a'] Pace(speed=1.0, fast=False) 3\n")


def test_required_fields_limits_and_help_are_kept() -> None:
    code, output = run("a")
    assert (code, "--speed" in output) == (2, True)
    code, output = run("a", "--speed", "-1")
    assert (code, "--speed" in output) == (2, True)
    code, output = run("--help")
    assert code == 0
    assert all(text in output for text in ("Walk.", "Speed.", "Faster.", "Seed.", "[default: 7]", "[required]"))


def test_an_option_cannot_be_in_two_groups() -> None:
    def clash(*, pace: Pace, speed: Annotated[int, typer.Option(help="Speed.")] = 7) -> None: ...

    with pytest.raises(TypeError, match="speed"):
        grouped_options(clash)
