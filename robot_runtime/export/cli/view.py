"""``robot-runtime view``: a log, or an episode that is being recorded, in Rerun or Foxglove."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.common.clock import SystemClock
from robot_runtime.common.console import progress_bar, say
from robot_runtime.common.signals import interruptible
from robot_runtime.errors import ConfigError

POLL_S = 0.25
"""Between two looks at a log that is being written."""


@dataclass(frozen=True)
class FoxgloveOptions:
    """Server for Foxglove in place of Rerun."""

    foxglove: Annotated[bool, typer.Option("--foxglove", help="Serve the log to Foxglove in place of Rerun.")] = False
    host: Annotated[str, typer.Option(help="Address on which Foxglove's server listens.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0 for any free one.")] = 8765


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("view")(view)


@grouped_options
def view(
    log: Annotated[Path, typer.Argument(help="A log; or a folder, of which the newest log is shown.")],
    *,
    live: Annotated[bool, typer.Option("--live", help="Follow the log while it is written.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write NAME.rrd in place of opening Rerun's viewer.")] = None,
    server: FoxgloveOptions,
) -> None:
    """Show images in 3-D, poses, map, plots and events of an episode.

    Examples:
        robot-runtime view logs/run/0000_apartment_0.mcap
        robot-runtime view logs/run --live
        robot-runtime view logs/run --out episode.rrd
        robot-runtime view logs/run --foxglove
    """
    if server.foxglove:
        interruptible(lambda: _serve_foxglove(_newest(log), live, server))
    else:
        interruptible(lambda: _show_rerun(_newest(log), live, out))


def _newest(log: Path) -> Path:
    from robot_runtime.recording.log_files import find_logs

    return max(find_logs([log]), key=lambda path: (path.stat().st_mtime_ns, path.name))


def _show_rerun(path: Path, live: bool, out: Path | None) -> None:
    from robot_runtime.export.rerun_stream import RerunEpisode, open_stream
    from robot_runtime.recording.reader import LogReader

    if out is not None and out.suffix != ".rrd":
        raise ConfigError(f"--out {out} is not a recording of Rerun", "name a file that ends in .rrd")
    clock = SystemClock()
    with open_stream(path.stem, out) as stream, progress_bar() as progress:
        bar, episode, ended = progress.add_task(path.stem, total=None, note="steps"), None, False
        while not ended:
            with LogReader(path) as log:
                episode = episode or RerunEpisode(stream, log.header)
                ended = episode.add_new(log, lambda: progress.advance(bar)) or not live
            if not ended:
                clock.sleep(POLL_S)
    if out is not None:
        say(str(out))


def _serve_foxglove(path: Path, live: bool, options: FoxgloveOptions) -> None:
    from robot_runtime.export.foxglove_stream import TICK_S, FoxgloveServer

    clock = SystemClock()
    with FoxgloveServer(path, options.host, options.port, live) as server:
        address = f"ws://{options.host}:{server.port}"
        say(f"serving {path} at {address}")
        say(f"open {server.url}, or connect to it in Foxglove; Ctrl-C ends")
        while True:
            server.update()
            clock.sleep(TICK_S)
