"""Results come in order from any number of processes, also when some of them are killed or never answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import work_functions
from work_functions import (
    DEADLY,
    ENDLESS,
    Endless,
    Imagined,
    Vanishing,
    count_on,
    end_at_birth,
    meet,
    minus,
    refuse_from_3,
    refuse_thornily,
    square,
    square_or_die,
    square_or_die_once,
    square_or_hang,
)

from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.parallel import scheduler
from robot_runtime.parallel.engine import Lost, WorkerTraceback, cores
from robot_runtime.parallel.map import ONE, Workers, map_in_order
from robot_runtime.parallel.scheduler import Shift
from robot_runtime.scoring.summary import lost_score, score_log

pytestmark = pytest.mark.usefixtures("many_processes")

TWO = Workers(2)


@pytest.mark.parametrize("count", [1, 2])
def test_results_are_in_order(count: int) -> None:
    assert list(map_in_order(square, range(25), Workers(count), minus, chunk=4)) == [n * n for n in range(25)]


def test_an_item_that_kills_its_process_each_time_is_told_and_the_others_are_done() -> None:
    again: list[tuple[int, Lost]] = []
    results = map_in_order(square_or_die, range(25), TWO, minus, chunk=4, on_retry=lambda *said: again.append(said))
    assert list(results) == [-n if n in DEADLY else n * n for n in range(25)]
    assert sorted(again) == [(n, "died") for n in DEADLY]


def test_an_item_whose_process_is_killed_once_is_done_by_another(tmp_path: Path) -> None:
    results = map_in_order(partial(square_or_die_once, folder=tmp_path), range(25), TWO, minus, chunk=4)
    assert list(results) == [n * n for n in range(25)]


def test_an_item_that_never_ends_is_told_and_the_others_are_done() -> None:
    # The limit is far above what any other item takes on a computer that is busy.
    results = list(map_in_order(square_or_hang, range(25), TWO, minus, chunk=4, limit_s=3.0, retries=0))
    assert results == [-1000 - n if n in ENDLESS else n * n for n in range(25)]


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_error_in_order_ends_the_work(count: int) -> None:
    results = map_in_order(refuse_from_3, range(25), Workers(count), minus, chunk=1)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="not 3") as raised:
        next(results)
    if count > 1:
        assert isinstance(raised.value.__cause__, WorkerTraceback)
        assert "in refuse_from_3" in str(raised.value.__cause__)


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    with pytest.raises(RuntimeFault, match="Thorny: not 0"):
        list(map_in_order(refuse_thornily, range(25), TWO, minus, chunk=4))


def test_a_worker_keeps_what_it_made() -> None:
    counts: dict[int, list[int]] = {}
    for process, count in map_in_order(count_on, range(24), TWO, lambda *_: (0, 0), chunk=2):
        counts.setdefault(process, []).append(count)
    assert sum(map(len, counts.values())) == 24
    assert [sorted(seen) for seen in counts.values()] == [list(range(len(seen))) for seen in counts.values()]


def test_few_items_are_shared_too(tmp_path: Path) -> None:
    met = list(map_in_order(partial(meet, folder=tmp_path), range(2), TWO, lambda *_: False, chunk=16))
    assert met == [True, True], "at work at the same time, though one worker could take 16"


def test_one_may_stop_asking() -> None:
    results = map_in_order(square, range(100), TWO, minus, chunk=4)
    assert next(results) == 0
    results.close()


def test_nothing_to_do_and_little_to_do_need_no_process() -> None:
    assert list(map_in_order(end_at_birth, [], Workers(4), minus)) == []
    assert {pid for pid, _ in map_in_order(count_on, range(3), TWO, lambda *_: (0, 0), alone=3)} == {os.getpid()}
    assert cores() >= 1


def test_workers_that_cannot_start_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "START_LIMIT_S", 0.0)
    with pytest.raises(RuntimeFault, match="no worker started within 0 s") as raised:
        list(map_in_order(Endless(), range(25), TWO, minus, chunk=4))
    assert "--workers 1" in raised.value.remedy


def test_a_function_that_no_process_can_find_is_told() -> None:
    with pytest.raises(RuntimeFault, match="died while they started"):
        list(map_in_order(Vanishing(), range(25), TWO, minus, chunk=4))


def shift_of(engine: Imagined, count: int) -> Shift[int, int]:
    return Shift(engine, range(count), minus, chunk=2, limit_s=60.0, retries=1, on_retry=None)


def test_workers_that_die_at_birth_are_told_with_their_last_words() -> None:
    with pytest.raises(RuntimeFault, match="died while they started: No module named 'x'"):
        list(shift_of(Imagined(*["Traceback\nNo module named 'x'"] * 4), 20).results())


def test_a_worker_that_waits_for_a_free_processor_holds_nobody_up() -> None:
    assert list(shift_of(Imagined("absent", "fine"), 20).results()) == [n * n for n in range(20)]


def test_one_that_dies_at_birth_is_replaced() -> None:
    assert list(shift_of(Imagined("lost power", "fine", "fine"), 20).results()) == [n * n for n in range(20)]


def test_workers_are_some() -> None:
    with pytest.raises(ConfigError, match="--workers 0"):
        Workers(0)
    assert Workers(1, None) == ONE


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
from robot_runtime.parallel.map import Workers, map_in_order
import work_functions
from work_functions import minus, slow_square
if __name__ == "__main__":
    for result in map_in_order(slow_square, range(1000), Workers(2), minus, chunk=1):
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
        said = parent.stderr.read()  # ends when the last process that holds it has
    assert said.count("Traceback") == said.count("KeyboardInterrupt") == 1


def test_a_log_that_is_lost_says_how() -> None:
    reasons = [lost_score(Path("x.mcap"), how).reason for how in ("died", "hung")]
    assert ["was killed" in reasons[0], "longer than the limit" in reasons[1]] == [True, True]


def test_a_pipe_is_no_log_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.mcap")
    assert "is not a file" in score_log(tmp_path / "x.mcap").reason
