"""A connected robot whose episodes are recorded, for commands that run episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from robot_runtime.cli_options.options import RobotOptions
from robot_runtime.estop.cli import stop_keys

if TYPE_CHECKING:
    from robot_runtime.hal import Robot
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots.loader import RobotContext


@contextmanager
def recorded_robot(
    robot: RobotOptions, context: RobotContext, folder: Path, on_key: Callable[[str], object] | None = None
) -> Iterator[tuple[Robot, Recorder]]:
    """Connect a robot and record to a folder, whose name is printed at the end if a log is in it."""
    from robot_runtime.common.console import tell
    from robot_runtime.recording.writer import Recorder

    with ExitStack() as stack:
        connected = stack.enter_context(robot.load(context))
        stack.enter_context(stop_keys(connected, on_key))
        recorder = Recorder(folder)
        stack.callback(recorder.close)
        try:
            yield connected, recorder
        finally:
            if recorder.path is not None:
                tell(f"logs: {folder}")
