"""Entry point of ``robot-runtime``: collects the commands, and turns errors into messages and exit codes."""

import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command_name

from robot_runtime.cli.groups import DEFAULT_COMMANDS, GROUPS, MOVED, HeadedGroup, make_groups
from robot_runtime.common.console import console, error_console
from robot_runtime.common.plugins import Registry
from robot_runtime.common.signals import exit_within, interrupted_by_signals
from robot_runtime.common.version import VERSION
from robot_runtime.errors import ConfigError, PluginError, RuntimeFault

# The rules of the present ones: ``--out`` is what a command writes, ``--json FILE`` and ``--picture FILE`` are further
# results, ``--count`` is how many, and an option that is a length, an angle or a time ends with its unit: ``-m``,
# ``-deg``, ``-s``.
OLD_SPELLINGS: dict[str, tuple[str, ...]] = {
    "--agent-timeout": ("--agent-timeout-s",),
    "--backbone-licence": ("--backbone-license",),
    "--by": ("--judge",),
    "--calibrate": ("--out",),
    "--client-timeout": ("--client-timeout-s",),
    "--count": ("--workers",),
    "--episodes": ("--count", "--episodes-out"),
    "--forward": ("--forward-m",),
    "--lever": ("--lever-m",),
    "--licence": ("--license",),
    "--limit-s": ("--timeout-s",),
    "--localization-patience": ("--localization-patience-s",),
    "--marker-mm": ("--marker-m",),
    "--min-rest": ("--min-rest-s",),
    "--plot": ("--picture",),
    "--rosbag": ("--out",),
    "--size": ("--tag-m",),
    "--square-mm": ("--square-m",),
    "--tag-mm": ("--tag-m",),
    "--time-limit-s": ("--timeout-s",),
    "--timeout": ("--timeout-s",),
    "--to": ("--out",),
    "--turn": ("--turn-deg",),
    "--wheel-radius-mm": ("--wheel-radius-m",),
    "--wheel-separation-mm": ("--wheel-separation-m",),
    "--within-cm": ("--within-m",),
}
"""Old option -> present ones, of which a command has at most one."""


def remedy(old: str, new: str) -> str:
    """The spelling that replaces an old one."""
    return f"write {new}, in meters" if old.endswith(("-mm", "-cm")) else f"write {new}"


COMMANDS: Registry[Callable[[dict[str, typer.Typer]], None]] = Registry("robot_runtime.commands", "command")
"""Functions that add commands to the groups, by name; the first word is the command or the group that they add to."""

INTERRUPTED_EXIT_CODE = 130
EXIT_S = 1.0

_HELP = """Run policies trained in simulation on a LoCoBot, real or simulated; log, score and replay every episode.

\b
Start here:
  robot-runtime run            three PointNav episodes in the bundled apartment
  robot-runtime score logs/    success, SPL, ... with intervals, from logs alone
  robot-runtime compare A B    test whether two policies differ
  robot-runtime report logs/   one HTML page

\b
Exit codes:
  0 done            3 no OpenGL     6 action or command    9 policy
  1 failure         4 scene         7 device             130 interrupted
  2 configuration   5 episode       8 log
"""


def build_app(arguments: Sequence[str] = ()) -> TyperGroup:
    """Build the application with all commands, also those of other packages.

    A package that cannot be used is named at the end of ``--help``, and stops no other command.

    Args:
        arguments: words of the command line. Once the command that they name is registered, no further package is
            loaded, so that a command does not import a simulator, calibration and drivers that it does not use.

    Raises:
        PluginError: the package of the command that the arguments name cannot be used.
    """
    groups = make_groups()
    app = typer.Typer(
        cls=HeadedGroup,
        help=_HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        suggest_commands=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_global_options)
    failures = _register_commands({**groups, "root": app}, arguments)
    for name, group in groups.items():
        app.add_typer(group, name=name)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    if failures:
        lines = (f"{name}: {error.message}" for name, error in failures.items())
        command.epilog = "\n\n".join(["Commands that cannot be used:", *lines])
    _fix_help(command)
    return command


def _register_commands(groups: dict[str, typer.Typer], arguments: Sequence[str]) -> Mapping[str, PluginError]:
    """Register commands until the one that the arguments name is there; return the errors of those that failed."""
    word = arguments[0] if arguments else ""
    failures: dict[str, PluginError] = {}
    for named in (True, False):
        for name in COMMANDS:
            if (name.partition("-")[0] == word) is named:
                try:
                    _register(name, groups)
                except PluginError as error:
                    failures[name] = error
        if _is_registered(groups, arguments):
            return {}
    for name, failure in failures.items():
        if name.partition("-")[0] == word:
            raise failure
    return failures


def _register(name: str, groups: dict[str, typer.Typer]) -> None:
    register = COMMANDS.load(name)
    try:
        register(groups)
    except Exception as error:  # a stranger's function may raise anything
        raise PluginError(
            f"the command {name!r} cannot be added: {type(error).__name__}: {error}",
            "correct its package, install it again, or uninstall it",
        ) from error


def _is_registered(groups: dict[str, typer.Typer], arguments: Sequence[str]) -> bool:
    """Whether the groups have the command that a command line names."""
    group, words = groups["root"], list(arguments[:2])
    default = None
    if words and words[0] in GROUPS:
        default = DEFAULT_COMMANDS.get(words[0])
        group = groups[words.pop(0)]
    names = {
        known.name or get_command_name(known.callback.__name__) for known in group.registered_commands if known.callback
    }
    return bool(words) and (words[0] in names or default in names)


def _fix_help(group: TyperGroup) -> None:
    """List commands with their complete first sentence, and show examples as they are written.

    By default typer cuts that sentence after 45 characters, and wraps the examples, which then cannot be copied.
    """
    for command in group.commands.values():
        if command.help:
            command.short_help = " ".join(command.help.partition("\n\n")[0].split()).partition(". ")[0]
        if isinstance(command, TyperGroup):
            _fix_help(command)
        elif command.help and "\nExample" in command.help:
            text, _, examples = command.help.partition("\nExample")
            heading, *lines = [line.strip() for line in examples.splitlines() if line.strip()]
            command.help = "\n".join([f"{text}\n\b\nExample{heading}", *(f"  {line}" for line in lines)])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"robot-runtime {VERSION}")
        raise typer.Exit


def _global_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with every error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of every command. ``--debug`` may stand anywhere: :func:`run_command` removes it before parsing."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its exit code. Signals that end it end it as Ctrl-C does."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # The working directory, as with `python -m`, so that module:Class finds an agent there; last, to shadow nothing.
    sys.path.append("")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console without "²" gets "?", not an error after an episode
            stream.reconfigure(errors="replace")
    try:
        with interrupted_by_signals(until_exit=True):
            code = run_command(arguments)
    except KeyboardInterrupt:
        error_console.print("interrupted")
        code = INTERRUPTED_EXIT_CODE
    if code == INTERRUPTED_EXIT_CODE:
        exit_within(EXIT_S, code)  # wheels and logs are done; what remains is foreign code's own clean-up
    gc.freeze()  # at exit, Python would look for cycles in all that the system takes back anyway: up to a second
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code; the only place where errors become text."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if arguments and arguments[0] in MOVED:
        old, new = arguments[0], MOVED[arguments[0]]
        error_console.print(f"`robot-runtime {old}` is now `robot-runtime {' '.join(new)}`", soft_wrap=True)
        arguments = [*new, *arguments[1:]]
    try:
        _check_packages()
        code = build_app(arguments).main(arguments, standalone_mode=False, prog_name="robot-runtime")
        if code == INTERRUPTED_EXIT_CODE:  # typer makes KeyboardInterrupt this
            error_console.print("interrupted")
        return code if isinstance(code, int) else 0
    except RuntimeFault as error:
        if debug:
            error_console.print(traceback.format_exc(), soft_wrap=True, markup=False)
        _print_error(error.message, error.remedy)
        return error.exit_code
    except typer.Exit as error:
        return error.exit_code
    except typer.TyperException as error:
        if not arguments or arguments[-1] in GROUPS:  # a group alone: its message is the list of commands
            error_console.print(_escape(error.format_message()), soft_wrap=True)
            return error.exit_code
        _print_error(error.format_message(), _usage_remedy(error))
        return error.exit_code
    except OSError as error:  # no permission, no folder, no space left
        if debug:
            error_console.print(traceback.format_exc(), soft_wrap=True, markup=False)
        said = (
            f"{error.filename or 'a file'}: {error.strerror or error}",
            "check path, permissions and free disk space",
        )
        if error.errno == errno.EADDRINUSE:
            said = (str(error.strerror or error), "choose another port, or end what listens there")
        if not os.path.isdir(os.readlink("/proc/self/cwd")):
            said = ("the working directory was deleted", "change to a folder that exists: `cd ~`")
        _print_error(*said)
        return RuntimeFault.exit_code
    except (KeyboardInterrupt, typer.Abort):
        error_console.print("interrupted")
        return INTERRUPTED_EXIT_CODE
    finally:
        console.stderr = False  # --json - sets it


def _check_packages() -> None:
    """Raise ``ConfigError`` where a foreign package would be imported in place of one of the runtime's own."""
    home = Path(__file__).resolve().parents[2]
    for name in ("calibration", "drivers", "sim_bridge"):
        spec = find_spec(name)
        folders = [] if spec is None else [Path(folder).resolve() for folder in spec.submodule_search_locations or ()]
        if home / name not in folders[:1]:
            found = ", ".join(map(str, folders)) or (spec and spec.origin) or "nowhere"
            raise ConfigError(
                f"the package {name!r} would be imported from {found} in place of {home / name}",
                "run it in an environment of its own: take that folder out of PYTHONPATH, or uninstall that package",
            )


def _usage_remedy(error: typer.TyperException) -> str:
    """The present spelling of an option that the command had in earlier versions, else where options are listed."""
    # The class of an unknown option is not public.
    old, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if old is not None and context is not None:
        options = {name for parameter in context.command.params for name in parameter.opts}
        for new in OLD_SPELLINGS.get(old, ()):
            if new in options - {old}:
                return remedy(old, new)
    return "`--help` after any command lists its options, with examples"


def _print_error(message: str, remedy: str) -> None:
    error_console.print(f"[bold red]error:[/] {_escape(message)}", soft_wrap=True)
    error_console.print(f"[bold]remedy:[/] {_escape(remedy)}", soft_wrap=True)


def _escape(text: str) -> str:
    return text.replace("[", "\\[")
