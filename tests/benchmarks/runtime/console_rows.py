"""Rows of ``bench console``: time from STOP to resting wheels, a lost page, and the cost of pages."""

from __future__ import annotations

import multiprocessing
import os
import resource
import secrets
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_runtime.common.clock import SystemClock, seconds_to_ns
from robot_runtime.common.threads import background
from robot_runtime.hal import RgbdFrame, Robot, Velocity
from robot_runtime.policy import random_generator
from tests.benchmarks.report import Row, cpu_s, process_s

if TYPE_CHECKING:
    from robot_runtime.console.console import Console
    from tests.benchmarks.runtime.console_pages import Address

DRIVE = Velocity(0.2, 0.3)
REST_M_S, REST_RAD_S = 0.001, 0.001
VIEWERS, MANY_VIEWERS = 4, 20
VIDEO_HZ = 5.0
WIDTH, HEIGHT = 640, 480
LOST = 10
ROUND_S = 5.0
ROUNDS = 3


class Loop:
    """The loop of a robot in real time: commands at the base's rate while it lasts; a context.

    Attributes:
        stopped_ns: host times at which the base first reported rest after motion, in order.
        late_ms: how much later than a period after the one before each tick was.
    """

    def __init__(self, robot: Robot) -> None:
        self.stopped_ns: list[int] = []
        self.late_ms: list[float] = []
        self._robot = robot

    def run(self, is_over: Callable[[], bool]) -> None:
        """Drive until it is over; in the thread that connected the robot."""
        robot, clock = self._robot, SystemClock()
        period_ns = seconds_to_ns(1 / robot.base.info.rate_hz)
        moves, last_ns = False, clock.now_ns()
        while not is_over():
            robot.base.command(DRIVE)
            robot.clock.sleep_until(robot.clock.now_ns() + period_ns)
            state, now_ns = robot.base.state(1.0), clock.now_ns()
            self.late_ms.append((now_ns - last_ns - period_ns) / 1e6)
            last_ns = now_ns
            rests = abs(state.velocity.linear_m_s) < REST_M_S and abs(state.velocity.angular_rad_s) < REST_RAD_S
            if moves and rests:
                self.stopped_ns.append(now_ns)
            moves = not rests
        robot.base.stop()


def stop_rows(presses: int, seed: int) -> list[Row]:
    """Rows of STOP and of lost pages, with four viewers and all cores busy."""
    from tests.benchmarks.runtime import console_pages as pages

    pauses_s = random_generator(seed).uniform(0.1, 0.3, presses).tolist()
    with bench_robot() as robot, bench_console(robot) as (watched, address), ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            stack.enter_context(process(pages.burn))
        floor_ms = _sleep_lateness_ms()
        stack.enter_context(process(pages.watch, address, VIEWERS))
        stack.enter_context(_video(watched))
        loop = Loop(robot)
        pressed: list[tuple[int, float]] = while_driving(loop, pages.press_stops, address, pauses_s, pages.BEAT_S)
        stops_ms = np.array([until_rest_ms(loop.stopped_ns, at_ns) for at_ns, _ in pressed])
        answers_ms = np.array([answer_ms for _, answer_ms in pressed])
        lost_ms = [
            until_rest_ms(loop.stopped_ns, while_driving(loop, pages.be_lost, address, 0.3, "silent", linger_s=1.0))
            for _ in range(min(LOST, presses))
        ]
    load = f"{VIEWERS} viewers at {VIDEO_HZ:g} Hz video of {WIDTH}x{HEIGHT}, all cores busy"
    note = f"{presses} presses; median {np.median(stops_ms):.1f} ms, answer to the page p99 {p99(answers_ms):.1f} ms"
    return [
        Row(
            "stop_p99_ms", f"press to zero at wheels without inertia, {load}", p99(stops_ms), "ms", 25, "<=", note=note
        ),
        Row("stop_max_ms", "the slowest of them", float(stops_ms.max()), "ms", 60, "<="),
        Row(
            "machine_p99_ms",
            "lateness of a sleep of 10 ms beside the same busy cores, without any console",
            p99(floor_ms),
            "ms",
            note=f"the slowest {max(floor_ms):.1f} ms: what this machine adds to each of the threads on the way",
        ),
        Row(
            "page_lost_to_zero_ms",
            "last sign of the operator's page to zero at wheels without inertia, the slowest",
            max(lost_ms),
            "ms",
            600,
            "<=",
            low=min(lost_ms),
            high=max(lost_ms),
            note=f"{len(lost_ms)} pages that fell silent without closing their connection",
        ),
    ]


def cost_rows() -> list[Row]:
    """Rows of the processor time of one viewer, and of the loop's lateness with many; both in turns with none."""
    from tests.benchmarks.runtime import console_pages as pages

    clock = SystemClock()
    late_ms: dict[int, list[float]] = {0: [], MANY_VIEWERS: []}
    used: dict[int, list[float]] = {0: [], 1: []}
    served: list[int] = []
    with bench_robot() as robot:
        for viewers in (0, 1, MANY_VIEWERS) * ROUNDS:
            loop = Loop(robot)
            with ExitStack() as stack:
                server = os.getpid()
                if viewers:
                    watched, address = stack.enter_context(bench_console(robot))
                    server = (
                        next(child.pid for child in multiprocessing.active_children() if child.name == "console") or 0
                    )
                    pictured = stack.enter_context(process(pages.watch, address, viewers))
                    stack.enter_context(_video(watched))
                    until_ns = clock.now_ns() + seconds_to_ns(2.0)  # until all of them are connected
                    Loop(robot).run(lambda: clock.now_ns() >= until_ns)  # noqa: B023 (called at once)
                before_s = cpu_s(resource.RUSAGE_SELF) + (process_s(server) if viewers else 0.0)
                end_ns = clock.now_ns() + seconds_to_ns(ROUND_S)
                loop.run(lambda: clock.now_ns() >= end_ns)  # noqa: B023 (called at once)
                if viewers == MANY_VIEWERS:
                    served.append(sum(1 for _ in _received(pictured)))
                after_s = cpu_s(resource.RUSAGE_SELF) + (process_s(server) if viewers else 0.0)
            if viewers in used:
                used[viewers].append(100 * (after_s - before_s) / ROUND_S)
            if viewers in late_ms:
                late_ms[viewers] += loop.late_ms
    growth_ms = p99(late_ms[MANY_VIEWERS]) - p99(late_ms[0])
    alone_pct = float(np.median(used[0]))
    return [
        Row(
            "console_cpu_pct",
            f"of one core, one viewer at {VIDEO_HZ:g} Hz video, beyond the same loop without a console",
            float(np.median(used[1])) - alone_pct,
            "%",
            10,
            "<=",
            note=f"medians of {ROUNDS} rounds of {ROUND_S:g} s in turns; the loop alone uses {alone_pct:.1f} %",
        ),
        Row(
            "viewers",
            f"viewers at once that got live pictures, of {MANY_VIEWERS}",
            min(served),
            "",
            MANY_VIEWERS,
            note="fewest of the rounds; the next row says what they cost the robot's loop",
        ),
        Row(
            "viewers_p99_growth_ms",
            f"growth of the p99 lateness of the loop's ticks with {MANY_VIEWERS} viewers",
            growth_ms,
            "ms",
            1,
            "<=",
            note=f"p99 {p99(late_ms[0]):.2f} ms without a console, {p99(late_ms[MANY_VIEWERS]):.2f} ms with",
        ),
    ]


def while_driving(loop: Loop, work: Callable[..., None], *arguments: Any, linger_s: float = 0.2) -> Any:
    """Drive while a process works, and a little longer; return what it sends."""
    clock = SystemClock()
    received: list[Any] = []
    over_ns: list[int] = []
    with process(work, *arguments) as results:

        def is_over() -> bool:
            if not received and results.poll():
                received.append(results.recv())
                over_ns.append(clock.now_ns() + seconds_to_ns(linger_s))
            return bool(over_ns) and clock.now_ns() >= over_ns[0]

        loop.run(is_over)
    return received[0]


def _sleep_lateness_ms() -> list[float]:
    """Lateness of sleeps of 10 ms, in milliseconds; for ``ROUND_S``."""
    clock, late_ms = SystemClock(), list[float]()
    end_ns = clock.now_ns() + seconds_to_ns(ROUND_S)
    while (due_ns := clock.now_ns() + seconds_to_ns(0.01)) < end_ns:
        clock.sleep_until(due_ns)
        late_ms.append((clock.now_ns() - due_ns) / 1e6)
    return late_ms


def until_rest_ms(stopped_ns: Sequence[int], pressed_ns: int) -> float:
    """Milliseconds from a press to the next time at rest; infinite if there is none."""
    found = bisect_left(stopped_ns, pressed_ns)
    return float("inf") if found == len(stopped_ns) else (stopped_ns[found] - pressed_ns) / 1e6


@contextmanager
def bench_robot(ideal: bool = True) -> Iterator[Robot]:
    """The fake robot in real time, with a Kobuki's motors or wheels that follow at once."""
    from robot_runtime.robots.loader import RobotContext, build_robot, read_robot_file
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    task, scene = load_task("pointnav_gps_compass"), load_scene(find_scene("apartment"))
    path, file = read_robot_file("fake")
    if ideal:  # so that the console's delay alone is measured
        file = replace(file, options={"motors": {"type": "ideal"}})
    with build_robot(file, str(path), RobotContext.of(task, scene, [], 0, True)) as robot:
        yield robot


@contextmanager
def bench_console(robot: Robot, log: Callable[[], Path | None] = lambda: None) -> Iterator[tuple[Console, Address]]:
    """A console of the robot on any ports, and its address."""
    from robot_runtime.console.console import Console, ConsoleSettings
    from tests.benchmarks.runtime.console_pages import Address

    settings = ConsoleSettings(port=0, token=secrets.token_urlsafe(16))
    with Console(robot, settings, lambda _: None, log=log) as watched:
        yield watched, Address(watched.url.split("/#")[0], watched.control_port, settings.token)


@contextmanager
def _video(watched: Console) -> Iterator[None]:
    """Show pictures as a camera's thread would."""
    random = random_generator(0)
    ramp = np.linspace(0, 255, WIDTH, dtype=np.uint8)
    rgb = np.ascontiguousarray(np.broadcast_to(ramp[None, :, None], (HEIGHT, WIDTH, 3)))
    rgb = rgb ^ random.integers(0, 16, rgb.shape, np.uint8)
    depth_m = random.uniform(0.5, 5.0, (HEIGHT, WIDTH)).astype(np.float32)

    def show(ended: threading.Event) -> None:
        while not ended.wait(1 / VIDEO_HZ):
            watched.show(RgbdFrame(0, rgb, depth_m))

    with background(show, "video"):
        yield


@contextmanager
def process(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Run ``work`` in a process, with the end of a pipe as its last argument, until the context ends."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=True)
    process = context.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.kill()
        process.join()


def _received(connection: Connection) -> Iterator[Any]:
    """Messages that have arrived."""
    while connection.poll():
        yield connection.recv()


def p99(values: Sequence[float] | np.ndarray) -> float:
    """99th percentile."""
    return float(np.percentile(values, 99))
