"""The command ``bench control``: reactions, motion and decoding of bases on serial ports."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tests.benchmarks.report import JsonFile, report


def control(
    contacts: Annotated[int, typer.Option(min=20, help="Contacts, half of them under load.")] = 1000,
    minutes: Annotated[float, typer.Option(min=0.02, help="Duration of the 50 Hz loop under load.")] = 1.0,
    trials: Annotated[int, typer.Option(min=1, help="Lost commands, killed runtimes, and motions of each kind.")] = 20,
    load: Annotated[int, typer.Option(min=0, help="Processes that burn a core each where a row says so.")] = 2,
    json: JsonFile = None,
) -> None:
    """Measure bases on serial ports: stops of the guard process, its loop, motion by bytes, and decoding.

    Base, guard process and runtime are processes of this computer, joined by a pty at the base's pace. Reactions are
    measured in real time, motion in the emulated robot's.
    """
    from robot_runtime.common.console import console, progress_bar
    from tests.benchmarks.locobot.decoding import decoding_rows
    from tests.benchmarks.locobot.motion import motion_rows
    from tests.benchmarks.locobot.reactions import contact_rows, loop_rows, loss_rows

    rows = []
    with progress_bar() as progress:
        for name, total, measure in (
            ("contacts", contacts, partial(contact_rows, contacts, load)),
            ("losses", 3 * trials, partial(loss_rows, trials)),
            ("loop", 1, partial(loop_rows, minutes, load)),
            ("motion", 4 * trials, partial(motion_rows, trials)),
            ("decoding", 1, decoding_rows),
        ):
            rows += measure(partial(progress.advance, progress.add_task(name, total=total, note="")))
    report("control", rows, json, console)
