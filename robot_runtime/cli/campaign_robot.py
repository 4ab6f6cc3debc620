"""Process of a campaign's robot with a console: ``python -m robot_runtime.cli.campaign_robot [HOST:]PORT``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from robot_runtime.campaign import robot_process
from robot_runtime.campaign.status import read_status
from robot_runtime.cli.operator import Operation, OperatorOptions
from robot_runtime.hal import Robot
from robot_runtime.recording.writer import Recorder


@contextmanager
def operated(robot: Robot, recorder: Recorder, number: int, tell: Callable[[str], None]) -> Iterator[Operation]:
    """The console of a robot, at the port of the command line and two further for each robot before it."""
    host, colon, port = sys.argv[1].rpartition(":")
    options = OperatorOptions(f"{host}{colon}{int(port) + 2 * number}")

    def status() -> dict[str, Any]:
        return read_status(recorder.folder.parent.parent).to_json()  # of an attempt in the campaign's logs

    with options.operated(robot, None, recorder, status) as operation:
        if operation.console is not None:
            tell(f"console: {operation.console.url}")
        yield operation


if __name__ == "__main__":
    sys.exit(robot_process.main(operated))
