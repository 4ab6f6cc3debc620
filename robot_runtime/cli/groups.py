"""Groups of commands, headings of the help texts, and present spellings of commands that moved."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer import TyperException
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

HEADINGS: dict[str, tuple[str, ...]] = {
    "Run": ("run", "teleop", "place", "stop"),
    "Score and report": ("score", "compare", "report", "view", "replay", "gap", "verdict", "logs"),
    "Episodes and scenes": ("episodes", "scene"),
    "Policies": ("policy", "preflight"),
    "Set up the robot": ("doctor", "hardware", "jog", "calibrate", "tags", "fit", "info"),
    "Campaigns": ("campaign",),
    "Other programs": ("serve", "export", "guard"),
}
"""Heading of ``--help`` -> its commands in the order of use; further packages' commands follow under the last."""

GROUPS = {
    "scene": "Make, import and inspect scenes.",
    "episodes": "Generate, inspect, validate and convert episodes.",
    "policy": "Inspect, validate, time and compare policies.",
    "export": "Write logs in the formats of other software.",
    "logs": "Recover truncated logs, and make logs of recordings by other software.",
    "serve": "Let other software's clients drive the robot.",
    "campaign": "Run a test plan that stops at its answer, and verify it.",
    "calibrate": "Calibrate the robot and camera; write the result to a file.",
    "hardware": "Set up the devices on the robot's ports, and read them.",
    "gap": "Compare simulation with the robot: `gap SIM REAL`; or find the simulator's settings: `gap tune REAL`.",
    "verdict": "Add a person's verdict to logs: `verdict LOGS`; or let a detector judge them: `verdict judge LOGS`.",
}
"""Name and help of each group."""

DEFAULT_COMMANDS = {"gap": "compare", "verdict": "add"}
"""Command of a group that runs when none is named: ``gap SIM REAL`` is ``gap compare SIM REAL``."""

MOVED = {
    "find-port": ("hardware", "find-port"),
    "import": ("logs", "import"),
    "judge": ("verdict", "judge"),
    "recover": ("logs", "recover"),
}
"""Old spelling -> present one; the old ones still run."""


UNMOVING = ("doctor", "fit", "import", "tune")
"""Commands with a robot that move none."""


class SafeGroup(TyperGroup):
    """A group that suggests, for a misspelt command, none that moves the robot."""

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            near = get_close_matches(args[0], [name for name, command in self.commands.items() if not moves(command)])
            suggestions = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
            error.message = error.format_message() + suggestions
            raise


def moves(command: Any) -> bool:
    """Whether a command may move a robot: it takes one or, as ``campaign run``, its plan names one."""
    has_robot = any(parameter.name == "robot" for parameter in command.params)
    return command.name == "run" or (has_robot and command.name not in UNMOVING)


class HeadedGroup(SafeGroup):
    """The commands of ``robot-runtime``, listed under headings."""

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for heading, names in _under_headings(HEADINGS, self.commands):
            _write_section(formatter, heading, [(f"{name:{width}}", self.commands[name].short_help) for name in names])


class DefaultGroup(SafeGroup):
    """A group with a default command, see :data:`DEFAULT_COMMANDS`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in ("--help", "-h") and args[0] not in self.commands:
            args = [DEFAULT_COMMANDS[str(self.name)], *args]
        return super().parse_args(ctx, args)


def headed_command(headings: Mapping[str, Sequence[str]]) -> type[TyperCommand]:
    """Class of a command of many options, which lists them under headings.

    Args:
        headings: names of the parameters under each heading; others, as ``--help``, follow under the last.
    """

    class HeadedCommand(TyperCommand):
        @override
        def format_options(self, ctx: Any, formatter: Any) -> None:
            parameters = {str(parameter.name): parameter for parameter in self.get_params(ctx)}
            for heading, names in _under_headings(headings, parameters):
                records = (parameters[name].get_help_record(ctx) for name in names)
                _write_section(formatter, heading, [record for record in records if record is not None])

    return HeadedCommand


def make_groups() -> dict[str, typer.Typer]:
    """All groups by name, without commands."""
    return {
        name: typer.Typer(
            name=name,
            cls=DefaultGroup if name in DEFAULT_COMMANDS else SafeGroup,
            suggest_commands=False,
            help=text,
            no_args_is_help=True,
            rich_markup_mode=None,
        )
        for name, text in GROUPS.items()
    }


def _under_headings(
    headings: Mapping[str, Sequence[str]], names: Collection[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Headings with their names, those without a heading under the last."""
    known = {name for listed in headings.values() for name in listed}
    others = [name for name in names if name not in known]
    for number, (heading, listed) in enumerate(headings.items(), start=1):
        yield heading, [name for name in listed if name in names] + (others if number == len(headings) else [])


def _write_section(formatter: Any, heading: str, records: Sequence[tuple[str, str | None]]) -> None:
    rows = [(name, text or "") for name, text in records]
    if rows:
        with formatter.section(heading):
            formatter.write_dl(rows)
