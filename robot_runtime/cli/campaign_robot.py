"""Process of a campaign's robot with a console; its argument is JSON of the console's options, and of all robots."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.campaign import robot_process
from robot_runtime.campaign.messages import submit
from robot_runtime.campaign.status import read_status
from robot_runtime.cli.operator import TOKEN_VARIABLE, ConsoleOptions, Operation, shown
from robot_runtime.console.console import Console
from robot_runtime.console.web import Neighbor
from robot_runtime.hal import Robot
from robot_runtime.recording.writer import Recorder

PORTS = 2
"""Of each robot: the page's and the operator's."""


def command(options: ConsoleOptions, robots: Sequence[str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Command line and environment of the processes; the token is in the environment, which other users cannot read."""
    host, port = options.address
    document = {
        "console": [host, port],
        "certificate": None if options.console_certificate is None else str(options.console_certificate.resolve()),
        "key": None if options.console_key is None else str(options.console_key.resolve()),
        "attended": options.attended,
        "silence_s": options.console_silence_s,
        "robots": list(robots),
    }
    environment = {TOKEN_VARIABLE: options.console_token or ""}
    return (sys.executable, "-m", "robot_runtime.cli.campaign_robot", json.dumps(document)), environment


@contextmanager
def operated(robot: Robot, recorder: Recorder, number: int, tell: Callable[[str], None]) -> Iterator[Operation]:
    """The console of a robot, two ports on from the one of the robot before."""
    given = json.loads(sys.argv[1])
    host, port = given["console"]
    options = ConsoleOptions(
        f"{host}:{port + PORTS * number if port else 0}",
        os.environ[TOKEN_VARIABLE],
        None if given["certificate"] is None else Path(given["certificate"]),
        None if given["key"] is None else Path(given["key"]),
        given["attended"],
        given["silence_s"],
    )
    others = tuple(
        Neighbor(name, port + PORTS * other, port + PORTS * other + 1)
        for other, name in enumerate(given["robots"])
        if other != number
    )

    def status() -> dict[str, Any]:
        return read_status(_folder(recorder)).to_json()

    def answer(ask: int, by: str) -> str:
        return submit(_folder(recorder), {"kind": "answer", "ask": ask, "by": by})

    settings = replace(options.settings(), name=given["robots"][number], others=others)
    with Console(robot, settings, tell, None, lambda: recorder.path, status, answer) as console:
        tell(f"console: {shown(console)}")
        yield Operation(console)


def _folder(recorder: Recorder) -> Path:
    """The campaign's folder: the recorder's is that of an attempt in its logs."""
    return recorder.folder.parent.parent


if __name__ == "__main__":
    sys.exit(robot_process.main(operated))
