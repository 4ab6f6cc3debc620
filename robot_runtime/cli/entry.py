"""Program ``robot-runtime``: ``stop`` at once, with the standard library alone; everything else by ``cli.main``."""

import sys
from collections.abc import Sequence

from robot_runtime.errors import RuntimeFault


def main() -> None:
    """Run the command line and exit with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["stop"] and (wanted := stop_arguments(arguments[1:])) is not None:
        sys.exit(_stop(*wanted))
    from robot_runtime.cli.main import main as run

    run()


def stop_arguments(words: Sequence[str]) -> tuple[bool, list[int]] | None:
    """Whether to release, and the processes, of a plain command line of ``stop``; None for any other one."""
    release, processes = False, list[int]()
    rest = iter(words)
    for word in rest:
        option, given, value = word.partition("=")
        if word == "--release":
            release = True
        elif option == "--process" and (number := value if given else next(rest, "")).isdecimal():
            processes.append(int(number))
        else:
            return None
    return release, processes


def _stop(release: bool, processes: Sequence[int]) -> int:
    from robot_runtime.estop.server import stop_everywhere

    try:
        stop_everywhere(release, processes, lambda line: print(_plain(line)))
    except RuntimeFault as error:
        print(f"error: {_plain(error.message)}\nremedy: {error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


def _plain(line: str) -> str:
    """A line of unknown origin without what would control the terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)
