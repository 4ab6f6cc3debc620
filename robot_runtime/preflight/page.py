"""Page of a deployment: what differs between the simulator that trained a policy and a robot, and what it costs."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from robot_runtime.errors import writing
from robot_runtime.hal import Robot
from robot_runtime.imaging.camera import SourceCamera
from robot_runtime.preflight.checks import UNKNOWN, Finding, Status
from robot_runtime.tasks.kind import has_sensor
from robot_runtime.tasks.task import Success, Task

_POSES = ("gps", "compass", "pointgoal_with_gps_compass")
_HEADINGS = ("", "trained", "this robot", "", "expected cost", "source of the cost", "remedy")
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:80em;margin:2em auto;padding:0 1em;color-scheme:light dark}"
    "table{border-collapse:collapse}td,th{padding:.3em .8em .3em 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid #8884}.note td:nth-child(4){color:#b26a00}.refused td:nth-child(4){color:#d32f2f}"
)


def deployment(needs: Sequence[str], trained: Task, task: Task, robot: Robot) -> Iterator[Finding]:
    """What no check refuses and a deployment changes: rates, latency, the rule of success, sensors."""
    camera, motion = robot.camera.info, task.control.trajectory if task.control else None
    period = f"one per {motion.period_s:g} s" if motion else "one per step, at rest"
    slow = motion is not None and camera.rate_hz * motion.period_s < 1
    effect = f"decisions come every {1 / camera.rate_hz:.2f} s" if slow else ""
    yield Finding("images", period, f"{camera.rate_hz:g} Hz", "note" if slow else "ok", effect)
    latency_s = robot.camera.latency_s if isinstance(robot.camera, SourceCamera) else 0.0
    found = f"{1000 * latency_s:.0f} ms of the camera; the policy's own not measured"
    effect, remedy = "the robot stands still until it has decided", ""
    if motion is not None:
        effect = f"the robot is {motion.linear_m_s[1]:g} m farther for each second; decisions are placed at their image"
        remedy = "drive an episode; `robot-runtime score` shows the latency"
    yield Finding("latency", "0 s", found, "note" if motion else "ok", effect, remedy)
    before, now = _rule(trained.success), _rule(task.success)
    differs = before != now
    effect = "scores do not compare with those of the training" if differs else ""
    yield Finding("success", before, now, "note" if differs else "ok", effect)
    poses = [name for name in needs if name in _POSES]
    if poses and not robot.localizer.info.is_truth:
        effect, remedy = "poses are noisy and late", "train with this noise: docs/how-to/noise-models.md"
        found = f"by {robot.localizer.info.name}, {robot.localizer.info.rate_hz:g} Hz"
        yield Finding(", ".join(poses), "exact", found, "note", effect, remedy, UNKNOWN)
    for name in needs:
        if name not in task.sensors:
            shows, remedy = has_sensor(task, name), "choose another task"
            effect = "`run` adds it; scores do not compare with the task's" if shows else "the policy cannot decide"
            status: Status = "note" if shows else "refused"
            yield Finding(f"sensor {name}", "yes", "not in the task", status, effect, "" if shows else remedy)


def _rule(success: Success) -> str:
    near = f" {'<=' if success.inclusive else '<'} {success.distance_m:g} m" if success.distance_m else ""
    return f"{success.rule}{near} of the {success.target}, {success.when}"


def write_page(path: Path, policy: str, trained: str, robot: str, rows: Sequence[Finding]) -> None:
    """Write the page (HTML, self-contained), what differs first. Raises ``RecordingError``."""
    order = ("refused", "note", "ok")
    lines = []
    for row in sorted(rows, key=lambda row: order.index(row.status)):
        source = row.source if row.effect else ""
        texts = (row.what, row.trained, row.found, row.status, row.effect, source, row.remedy)
        lines.append(f"<tr class={row.status}>{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>")
    counts = ", ".join(f"{sum(row.status == status for row in rows)} {status}" for status in order)
    title = f"{escape(policy)} on {escape(robot)}"
    head = "".join(f"<th>{text}</th>" for text in _HEADINGS)
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>Trained in {escape(trained)}. {counts}.</p>"
        f"<table><tr>{head}</tr>{''.join(lines)}</table></html>"
    )
    with writing(path):
        path.write_text(page, encoding="utf-8")
