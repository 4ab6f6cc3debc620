"""Ordered results from any number of processes, also when some of them are killed or hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import work_functions
from raising import raises_naming
from work_functions import (
    DEADLY,
    ENDLESS,
    ExitsOnUnpickling,
    FakePool,
    HangsOnUnpickling,
    count_on,
    meet,
    minus,
    never_called,
    raise_unpicklable,
    refuse_from_3,
    square,
    square_or_die,
    square_or_die_once,
    square_or_hang,
)

from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.parallel import scheduler
from robot_runtime.parallel.map import ONE, Workers, map_in_order
from robot_runtime.parallel.scheduler import Scheduler
from robot_runtime.parallel.workers import WorkerLoss, WorkerTraceback, available_cores
from robot_runtime.scoring.summary import lost_score, score_log

pytestmark = pytest.mark.usefixtures("many_processes")

TWO = Workers(2)


@pytest.mark.parametrize("count", [1, 2])
def test_results_are_in_order(count: int) -> None:
    assert list(map_in_order(square, range(25), Workers(count), minus, batch_size=4)) == [n * n for n in range(25)]


def test_an_item_that_always_kills_its_process_is_reported_and_the_others_are_done() -> None:
    again: list[tuple[int, WorkerLoss]] = []
    results = map_in_order(
        square_or_die, range(25), TWO, minus, batch_size=4, on_retry=lambda *said: again.append(said)
    )
    assert list(results) == [-n if n in DEADLY else n * n for n in range(25)]
    assert sorted(again) == [(n, "died") for n in DEADLY]


def test_an_item_whose_process_is_killed_once_is_done_by_another(tmp_path: Path) -> None:
    results = map_in_order(partial(square_or_die_once, folder=tmp_path), range(25), TWO, minus, batch_size=4)
    assert list(results) == [n * n for n in range(25)]


@pytest.mark.slow
def test_an_item_that_hangs_is_reported_and_the_others_are_done() -> None:
    # The limit is far above what any other item takes on a computer that is busy.
    results = list(map_in_order(square_or_hang, range(25), TWO, minus, batch_size=4, limit_s=3.0, retries=0))
    assert results == [-1000 - n if n in ENDLESS else n * n for n in range(25)]


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_error_in_order_ends_the_work(count: int) -> None:
    results = map_in_order(refuse_from_3, range(25), Workers(count), minus, batch_size=1)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="not 3") as raised:
        next(results)
    if count > 1:
        assert isinstance(raised.value.__cause__, WorkerTraceback)
        assert "in refuse_from_3" in str(raised.value.__cause__)


def test_an_exception_that_cannot_be_pickled_is_reported_as_text() -> None:
    with raises_naming(RuntimeFault, "Unpicklable: not 0"):
        list(map_in_order(raise_unpicklable, range(25), TWO, minus, batch_size=4))


def test_a_worker_keeps_what_it_made() -> None:
    counts: dict[int, list[int]] = {}
    for process, count in map_in_order(count_on, range(24), TWO, lambda *_: (0, 0), batch_size=2):
        counts.setdefault(process, []).append(count)
    assert sum(map(len, counts.values())) == 24
    assert [sorted(seen) for seen in counts.values()] == [list(range(len(seen))) for seen in counts.values()]


def test_few_items_are_distributed_too(tmp_path: Path) -> None:
    met = list(map_in_order(partial(meet, folder=tmp_path), range(2), TWO, lambda *_: False, batch_size=16))
    assert met == [True, True], "processed at the same time, although one batch could hold 16"


def test_results_may_be_abandoned() -> None:
    results = map_in_order(square, range(100), TWO, minus, batch_size=4)
    assert next(results) == 0
    results.close()


def test_nothing_to_do_and_little_to_do_need_no_process() -> None:
    assert list(map_in_order(never_called, [], Workers(4), minus)) == []
    assert {pid for pid, _ in map_in_order(count_on, range(3), TWO, lambda *_: (0, 0), serial_up_to=3)} == {os.getpid()}
    assert available_cores() >= 1


def test_workers_that_do_not_start_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "START_LIMIT_S", 0.0)
    with raises_naming(RuntimeFault, "worker", "0 s") as raised:
        list(map_in_order(HangsOnUnpickling(), range(25), TWO, minus, batch_size=4))
    assert "--workers 1" in raised.value.remedy


def test_a_function_that_no_process_can_unpickle_is_reported() -> None:
    with raises_naming(RuntimeFault, "3 workers"):
        list(map_in_order(ExitsOnUnpickling(), range(25), TWO, minus, batch_size=4))


def scheduler_of(pool: FakePool, count: int) -> Scheduler[int, int]:
    return Scheduler(pool, range(count), minus, batch_size=2, limit_s=60.0, retries=1, on_retry=None)


def test_workers_that_die_at_their_start_are_reported_with_the_reason() -> None:
    with raises_naming(RuntimeFault, "3 workers", "No module named 'x'"):
        list(scheduler_of(FakePool(*["Traceback\nNo module named 'x'"] * 4), 20).results())


def test_a_worker_that_waits_for_a_free_processor_delays_no_other() -> None:
    assert list(scheduler_of(FakePool("absent", "fine"), 20).results()) == [n * n for n in range(20)]


def test_a_worker_that_dies_at_its_start_is_replaced() -> None:
    assert list(scheduler_of(FakePool("lost power", "fine", "fine"), 20).results()) == [n * n for n in range(20)]


def test_the_number_of_workers_is_positive() -> None:
    with raises_naming(ConfigError, "--workers 0"):
        Workers(0)
    assert Workers(1, None) == ONE


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
from robot_runtime.parallel.map import Workers, map_in_order
import work_functions
from raising import raises_naming
from work_functions import minus, slow_square
if __name__ == "__main__":
    for result in map_in_order(slow_square, range(1000), Workers(2), minus, batch_size=1):
        print(result, flush=True)
"""


def test_ctrl_c_ends_all_processes_with_one_message(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED, encoding="utf-8")
    command = [sys.executable, str(script), str(Path(work_functions.__file__).parent)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        assert parent.stdout.readline() == "0\n"
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to all of them
        printed = parent.stderr.read()  # ends when the last process that holds the pipe has ended
    assert printed.count("Traceback") == printed.count("KeyboardInterrupt") == 1


def test_a_lost_log_has_the_reason() -> None:
    reasons = [lost_score(Path("x.mcap"), how).reason for how in ("died", "hung")]
    assert ["was killed" in reasons[0], "longer than the limit" in reasons[1]] == [True, True]


def test_a_pipe_is_not_read_as_a_log(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.mcap")
    assert "is not a file" in score_log(tmp_path / "x.mcap").reason
