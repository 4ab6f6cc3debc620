"""The command ``bench motion``: actions of random bases, beside other software's laws of motion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tests.benchmarks.report import JsonFile, Row, report

if TYPE_CHECKING:
    from tests.benchmarks.motion.measurement import Actions, BaseResult


def motion(
    bases: Annotated[int, typer.Option(min=1, help="Random bases.")] = 200,
    actions: Annotated[int, typer.Option(min=4, help="Actions of each base under each law.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bases.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    picture: Annotated[
        Path | None, typer.Option(help="Instead: draw a step of 0.25 m on five bases to this PNG.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Measure steps of 0.25 m and turns of 30 degrees on random bases, on simulated time.

    Bases have a lag and a dead time of 0 to 0.25 s, thresholds of 0 to 0.12 m/s, gains within 5 %, a battery that takes
    up to 10 % of them, reports that are 20 to 100 ms late, and in a quarter each speeds in steps of 28.5 mm/s or a
    firmware that limits acceleration. Each is identified first, as by 'calibrate motors'. As many others have motors
    that the controller's model does not contain: of second order, with breakaway friction, and delays that jitter.
    """
    from robot_runtime.common.console import console, progress_bar
    from robot_runtime.parallel.map import Workers, map_in_order
    from tests.benchmarks.motion.measurement import Plan

    if picture is not None:
        from tests.benchmarks.motion.figure import draw

        draw(picture)
        console.print(f"figure: {picture}", soft_wrap=True)
        return
    results: tuple[list[BaseResult], list[BaseResult]] = ([], [])
    with progress_bar() as progress:
        task = progress.add_task("bases", total=2 * bases, note="")
        for second_order, family in enumerate(results):
            plan = Plan(seed, actions, bool(second_order))
            for result in map_in_order(plan, list(range(bases)), Workers(workers), _lost):
                family.append(result)
                progress.advance(task)
    first, second = results
    report("motion", [*motion_rows(first), *second_order_rows(second), *contact_rows(seed)], json, console)
    refuse_faults([*first, *second])


def refuse_faults(results: Sequence[BaseResult]) -> None:
    """Raise ``RuntimeFault`` if an action of this project's controller ended as a fault."""
    from robot_runtime.errors import RuntimeFault

    details = [detail for result in results for done in result.laws.values() for detail in done.details]
    faults = [detail for detail in details if detail.startswith("fault")]
    if faults:
        raise RuntimeFault(
            f"{len(faults)} actions ended as a fault, the first one: {faults[0]}", "find out why, with this --seed"
        )


def _lost(number: int, loss: object) -> BaseResult:
    from robot_runtime.errors import RuntimeFault

    raise RuntimeFault(f"base {number}: its worker was lost ({loss})", "repeat with fewer --workers")


def motion_rows(results: Sequence[BaseResult]) -> list[Row]:
    """All rows of the benchmark."""
    import numpy as np

    from tests.benchmarks.motion.measurement import Actions

    laws = {name: Actions() for name in results[0].laws}
    for result in results:
        for name, done in result.laws.items():
            laws[name].add(done)
    about = f"{len(results)} bases, {len(laws['calibrated'].reached)} actions"
    rows = [*_rows_of(laws, "calibrated", 0.995, 5, 0.5, about)]
    ours, theirs = laws["calibrated"], laws["proportional"]
    low, ratio, high = np.percentile(ours.over_bound, (5, 50, 95)).tolist()
    label = "median time over the shortest possible one of that base, from command to reported rest"
    rows.append(
        Row("time_over_bound", label, ratio, "x", 1.3, "<=", low=low, high=high, note="5th and 95th percentile")
    )
    rows += _rows_of(laws, "uncalibrated", 0.95, 10, 1, f"{about}; every base is taken for a Kobuki or Create 2")
    return [*rows, *_identified(results), _faster(ours, theirs, laws["threshold"])]


def second_order_rows(results: Sequence[BaseResult]) -> list[Row]:
    """Rows of the bases whose motors the controller's model does not contain."""
    import numpy as np

    from tests.benchmarks.motion.measurement import Actions

    rows = []
    for law, row_id, reached in (("calibrated", "second_order", 0.995), ("uncalibrated", "second_order_unknown", 0.95)):
        done = Actions()
        for result in results:
            done.add(result.laws[law])
        note = (
            f"{len(results)} bases, {len(done.reached)} actions, {law}; {np.median(done.seconds):.2f} s to rest, median"
        )
        what = "wheels of second order, breakaway, jitter"
        forward_mm, turn_deg = (float(np.percentile(values, 95)) for values in (done.forward_mm, done.turn_deg))
        rows += [
            Row(f"reached_{row_id}", f"{what}: share reached", float(np.mean(done.reached)), "", reached, note=note),
            Row(f"forward_p95_mm_{row_id}", f"{what}: error of 0.25 m, 95th percentile", forward_mm, "mm", 10, "<="),
            Row(f"turn_p95_deg_{row_id}", f"{what}: error of 30 degrees, 95th percentile", turn_deg, "deg", 1.5, "<="),
        ]
    return rows


def contact_rows(seed: int) -> list[Row]:
    """Travel after contact, by the delay of the motors."""
    import numpy as np

    from tests.benchmarks.motion.measurement import CONTACTS, contacts

    rows = []
    for delay_s in (0.0, 0.1, 0.2, 0.3, 0.5):
        way_mm = float(np.percentile(contacts(delay_s, seed), 99))
        label = f"way from contact to rest, 99th percentile, motors {delay_s:g} s late (half dead time, half lag)"
        note = f"{CONTACTS} contacts at the profile's speed"
        rows.append(Row(f"after_contact_mm_p99_{1000 * delay_s:.0f}ms", label, way_mm, "mm", note=note))
    return rows


def _rows_of(
    laws: dict[str, Actions], name: str, reached: float, forward_mm: float, turn_deg: float, about: str
) -> list[Row]:
    import numpy as np

    done, rival, other = laws[name], laws["proportional"], laws["threshold"]

    def p95(values: Sequence[float]) -> float:
        return float(np.percentile(values, 95))

    def beside(values: Sequence[float], unit: str) -> str:
        return f"threshold law: {p95(values):.1f} {unit}"

    law = "PyRobot's proportional law"
    return [
        Row(
            f"reached_{name}",
            "share of actions that end as reached",
            float(np.mean(done.reached)),
            "",
            reached,
            rival=law,
            rival_value=float(np.mean(rival.reached)),
            note=about,
        ),
        Row(
            f"forward_p95_mm_{name}",
            "0.25 m: error of the distance, 95th percentile",
            p95(done.forward_mm),
            "mm",
            forward_mm,
            "<=",
            law,
            p95(rival.forward_mm),
            note=beside(other.forward_mm, "mm"),
        ),
        Row(
            f"turn_p95_deg_{name}",
            "30 degrees: error of the turn, 95th percentile",
            p95(done.turn_deg),
            "deg",
            turn_deg,
            "<=",
            law,
            p95(rival.turn_deg),
            note=beside(other.turn_deg, "deg"),
        ),
    ]


def _identified(results: Sequence[BaseResult]) -> list[Row]:
    import numpy as np

    found = [(result, result.found) for result in results if result.found is not None]
    lag_ms = [1000 * abs(model.lag_s - result.base.true.lag_s) for result, model in found]
    dead_ms = [1000 * abs(model.dead_time_s - result.base.true.dead_time_s) for result, model in found]
    thresholds_mm_s = [
        1000 * abs(one - other)
        for result, model in found
        for one, other in zip(model.threshold_m_s, result.base.true.threshold_m_s, strict=True)
    ]
    drive_s, extent_m = max(result.drive_s for result in results), max(result.extent_m for result in results)
    note = (
        f"{len(found)} of {len(results)} bases identified; drives of at most {drive_s:.0f} s, {extent_m:.2f} m from "
        f"the start; dead time within {np.percentile(dead_ms, 95):.1f} ms"
    )
    what = "identified, error, 95th percentile"
    return [
        Row("identified_lag_ms", f"lag {what}", float(np.percentile(lag_ms, 95)), "ms", 10, "<=", note=note),
        Row(
            "identified_threshold_mm_s",
            f"thresholds {what}",
            float(np.percentile(thresholds_mm_s, 95)),
            "mm/s",
            5,
            "<=",
        ),
    ]


def _faster(ours: Actions, theirs: Actions, other: Actions) -> Row:
    import numpy as np

    seconds, their_s, other_s = (float(np.median(law.seconds)) for law in (ours, theirs, other))
    note = f"{seconds:.2f} s, {their_s:.2f} s, and {other_s:.2f} s of the threshold law"
    label = "median time over that of PyRobot's proportional law, to rest"
    return Row("time_vs_proportional", label, seconds / their_s, "x", 0.7, "<=", note=note)
