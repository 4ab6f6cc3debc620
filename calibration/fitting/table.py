"""Tables of a fit in the terminal."""

import math

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from calibration.fitting.fit import RAW_LOGS, RobotFit
from calibration.fitting.misfit import NAMES
from calibration.fitting.simulator_options import Setting, text
from robot_runtime.scoring.statistics.intervals import Interval

AXES = ("ahead, mm", "left, mm", "heading, °")


def show(fit: RobotFit, settings: list[Setting], console: Console) -> None:
    """Print the results, the options that they set, and the comparison with published models."""
    console.print(_actions(fit))
    for line in notes(fit):
        console.print(line, style="dim", soft_wrap=True, markup=False)
    console.print()
    console.print(_settings(settings))
    console.print()
    console.print(_rivals(fit))


def notes(fit: RobotFit) -> list[str]:
    """Return what does not fit, and what was excluded and why, line by line."""
    lines = [f"does not fit: {misfit}" for misfit in fit.misfits]
    if fit.replays:
        lines.append(f"replays: {fit.replays}")
    for name, reasons in fit.selection.left_out.items():
        if reasons:
            listed = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
            lines.append(f"{NAMES[name]}: left out {listed}")
    if fit.continuous:
        lines.append(f"{fit.continuous} continuous commands: no discrete actions")
    if len(fit.episodes) > RAW_LOGS:
        lines.append(f"latencies and travel after touch: of the first {RAW_LOGS} of {len(fit.episodes)} logs")
    lines += [f"not used: {path}: {reason}" for path, reason in fit.unused]
    return lines + [f"in part: {truncated}" for truncated in fit.truncated]


def _actions(fit: RobotFit) -> Table:
    shown = Table(title=f"{fit.robot}: errors of actions", title_justify="left", box=None)
    for heading, justify in (("", "left"), ("actions", "right"), ("", "left"), ("mean [95 %]", "right")):
        shown.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    shown.add_column("deviation", justify="right", no_wrap=True)
    for name, count, *cells in rows(fit):
        for axis, cell in zip(AXES, cells, strict=True):
            first = axis == AXES[0]
            mean, _, deviation = cell.partition(" ± ")
            shown.add_row(name if first else "", count if first else "", axis, mean, deviation)
    return shown


def rows(fit: RobotFit) -> list[list[str]]:
    """Return per action its name, count, and errors ahead, to the left and of the heading."""
    table = []
    for name, action in fit.actions.items():
        deviation = [math.sqrt(action.error.covariance[axis][axis]) for axis in range(3)]
        cells = [
            _cell(bias, std, scale, digits)
            for bias, std, scale, digits in zip(
                action.bias, deviation, (1e3, 1e3, 180 / math.pi), (1, 1, 2), strict=True
            )
        ]
        table.append([NAMES[name], str(action.error.count), *cells])
    return table


def _cell(bias: Interval, std: float, scale: float, digits: int) -> str:
    mean, low, high, wide = (f"{scale * value:.{digits}f}" for value in (bias.mean, bias.low, bias.high, std))
    return f"{mean} [{low}, {high}] ± {wide}"


def _settings(settings: list[Setting]) -> Table:
    shown = Table(title="what else was found, and what it sets", title_justify="left", box=None)
    shown.add_column("", no_wrap=True)
    for heading in ("found", "option"):
        shown.add_column(heading, overflow="fold")
    for setting in settings[1:]:
        shown.add_row(setting.name, setting.found, says(setting))
    return shown


def says(setting: Setting) -> str:
    """Return the effect of a setting in words."""
    if setting.value is None:
        return setting.note
    value = setting.value.get("model", "") if isinstance(setting.value, dict) else f"{setting.value}"
    return f"{setting.option} {value}".rstrip()


def _rivals(fit: RobotFit) -> RenderableType:
    validation = fit.validation
    if validation.nats is None:
        return Text(f"fitted and published models compared: {validation.reason}")
    title = f"fitted model, {validation.actions} held-out actions: log likelihood {validation.nats:.2f} each"
    shown = Table(title=title, title_justify="left", box=None)
    shown.add_column("published", no_wrap=True)
    for heading in ("likelihood", "fitted gains"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("the fitted model is", no_wrap=True)
    for rival in validation.rivals:
        digits = 2 if abs(rival.gain.mean) < 10 else 1
        gain = text(rival.gain, digits=digits)
        shown.add_row(rival.name, f"{rival.nats:.2f}", gain, rival.verdict)
    return shown
