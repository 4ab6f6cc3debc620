"""Results come in order from any number of processes, also when some of them are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from robot_runtime.scoring.pool import cores, map_in_order

DEADLY = (5, 21)


def square(numbers: Sequence[int]) -> list[int]:
    return [number * number for number in numbers]


def square_or_die(numbers: Sequence[int]) -> list[int]:
    if set(numbers) & set(DEADLY):
        os.kill(os.getpid(), signal.SIGKILL)
    return square(numbers)


def refuse(numbers: Sequence[int]) -> list[int]:
    raise ValueError(f"not these: {list(numbers)}")


def minus(number: int) -> int:
    return -number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_order(workers: int) -> None:
    assert list(map_in_order(square, range(25), workers, minus, chunk=4)) == [n * n for n in range(25)]


def test_an_item_that_kills_its_process_is_told_and_the_others_are_done() -> None:
    results = list(map_in_order(square_or_die, range(25), 2, minus, chunk=4))
    assert results == [-n if n in DEADLY else n * n for n in range(25)]


def test_an_error_of_the_function_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="not these"):
        list(map_in_order(refuse, range(25), 2, minus, chunk=4))


def test_one_may_stop_asking() -> None:
    results = map_in_order(square, range(100), 2, minus, chunk=4)
    assert next(results) == 0
    results.close()


def test_nothing_to_do() -> None:
    assert list(map_in_order(square, [], 4, minus)) == []
    assert cores() >= 1
