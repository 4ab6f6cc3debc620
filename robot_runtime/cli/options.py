"""Options that several commands have, declared once: a command names the type and gives a default.

::

    def run(robot: Robot = "sim", camera: Camera = None, ...) -> None:
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from robot_runtime.cli import completion

if TYPE_CHECKING:
    from robot_runtime.parallel import result_journal as ledgers
    from robot_runtime.parallel.map import Workers as WorkerPool

T = TypeVar("T")

Robot = Annotated[
    str, typer.Option(help="Robot preset (launch/robots) or YAML file.", autocompletion=completion.robots)
]

Scene = Annotated[
    str, typer.Option(help="Scene folder, or the name of a bundled scene.", autocompletion=completion.scenes)
]

Camera = Annotated[
    str | None,
    typer.Option(
        help="Camera preset (launch/cameras) or YAML file. Default: the robot's own.",
        autocompletion=completion.cameras,
    ),
]

CameraArg = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Option over those in the camera's file; repeatable; imaging.mount=..."),
]

Localizer = Annotated[
    str | None,
    typer.Option(
        help="Localizer preset (launch/localizers) or YAML file, for the policy. Default: the robot's own.",
        autocompletion=completion.localizers,
    ),
]

Referee = Annotated[
    str | None,
    typer.Option(
        help="Localizer preset or YAML file, for the scores. Default: the robot's own.",
        autocompletion=completion.localizers,
    ),
]

LocalizationPatience = Annotated[
    float,
    typer.Option("--localization-patience", min=0, max=3600, help="Seconds that the robot waits where it is lost."),
]

RealTime = Annotated[bool, typer.Option("--real-time", help="Simulate at the speed of real time.")]

Episodes = Annotated[
    Path | None, typer.Option(help="Episode file (Habitat or RoboTHOR). Without it, episodes are generated.")
]

Count = Annotated[int | None, typer.Option(min=1, help="How many episodes: of the file all by default, generated 3.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the logs in --out.")]

AgentArg = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Argument of agent or policy; repeatable.")
]

AgentPython = Annotated[
    Path | None,
    typer.Option(help="Interpreter of an unmodified agent: venv/bin/python or venv. Default: the runtime's."),
]

AgentTimeout = Annotated[
    float | None, typer.Option(help="Seconds that an unmodified agent has for each action. Default: 30.")
]

Host = Annotated[str, typer.Option(help="Address to listen on.")]

Port = Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")]

Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes. Default: one; to score and draw, one per core; with --ray, one per CPU."),
]

Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on this Ray cluster: HOST:PORT or auto; or local. Needs [cluster].",
    ),
]

Ledger = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep each result here as it is made; the same command goes on from it."),
]

NewLedger = Annotated[bool, typer.Option("--overwrite", help="Begin --ledger anew.")]


def resumed(ledger: ledgers.ResultJournal[T, Any], items: Sequence[T]) -> str:
    """What a command says of the ledger that it goes on from."""
    return f"{ledger.path}: {sum(map(ledger.has, items))} of {len(items)} are done already"


def workers_from(count: int | None, ray: str | None, default: int | None = 1) -> WorkerPool:
    """Who does the work, by the options of that name.

    Args:
        default: where neither is given; None for one per core.
    """
    from robot_runtime.parallel.map import Workers

    return Workers(default if count is None and ray is None else count, ray)
