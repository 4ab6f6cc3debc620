"""Results come in order from any number of processes, also when some of them are killed or never answer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from robot_runtime.scoring.summary import lost_score, score_log
from robot_runtime.workers.mapping import Workers, map_in_order
from robot_runtime.workers.worker import Lost, cores

DEADLY = (5, 21)
ENDLESS = (6, 23)


def square(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        yield number * number


def square_or_die(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if number in DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        yield number * number


def square_or_hang(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if number in ENDLESS:
            while True:
                time.sleep(3600)
        yield number * number


def refuse(numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        raise ValueError(f"not this: {number}")
        yield 0


def minus(number: int, how: Lost) -> int:
    return -number if how == "died" else -1000 - number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_order(workers: int) -> None:
    assert list(map_in_order(square, range(25), Workers(workers), minus, chunk=4)) == [n * n for n in range(25)]


def test_an_item_that_kills_its_process_is_told_and_the_others_are_done() -> None:
    results = list(map_in_order(square_or_die, range(25), Workers(2), minus, chunk=4))
    assert results == [-n if n in DEADLY else n * n for n in range(25)]


def test_an_item_that_never_ends_is_told_and_the_others_are_done() -> None:
    results = list(map_in_order(square_or_hang, range(25), Workers(2), minus, chunk=4, limit_s=0.5))
    assert results == [-1000 - n if n in ENDLESS else n * n for n in range(25)]


def test_an_error_of_the_function_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="not this"):
        list(map_in_order(refuse, range(25), Workers(2), minus, chunk=4))


def test_one_may_stop_asking() -> None:
    results = map_in_order(square, range(100), Workers(2), minus, chunk=4)
    assert next(results) == 0
    results.close()


def test_nothing_to_do() -> None:
    assert list(map_in_order(square, [], Workers(4), minus)) == []
    assert cores() >= 1


def test_a_log_that_is_lost_says_how() -> None:
    reasons = [lost_score(Path("x.mcap"), how).reason for how in ("died", "hung")]
    assert ["was killed" in reasons[0], "longer than the limit" in reasons[1]] == [True, True]


def test_a_pipe_is_no_log_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.mcap")
    assert "is not a file" in score_log(tmp_path / "x.mcap").reason
