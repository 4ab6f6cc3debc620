"""Time slices that a thread asks for."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from robot_runtime.common import time_slices
from robot_runtime.common.time_slices import SHORT_NS, ask_for_slices

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
T = TypeVar("T")


def apart(work: Callable[[], T]) -> T:
    """Run in a thread of its own, which keeps what it changes."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def attributes() -> tuple[int, int, int]:
    """Policy, nice and slice in nanoseconds of this thread."""
    buffer = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(SCHED_GETATTR[platform.machine()], 0, buffer, 48, 0) == 0
    _, policy, _, nice, _, slice_ns, _, _ = struct.unpack("<IIQiIQQQ", buffer.raw)
    return policy, nice, slice_ns


def test_threads_inherit_the_slice_and_everything_else_stays() -> None:
    def work() -> tuple[list[tuple[int, int, int]], int]:
        before = attributes()
        assert ask_for_slices(SHORT_NS)
        found = []
        thread = threading.Thread(target=lambda: found.append(attributes()))
        thread.start()
        thread.join()
        short = attributes()
        assert ask_for_slices(0)
        return [before, attributes(), short, *found], os.getpriority(os.PRIO_PROCESS, 0)

    (before, after, short, of_thread), nice = apart(work)
    assert before == after
    assert short == of_thread
    assert short[:2] == (os.SCHED_OTHER, nice)
    assert short[2] in (SHORT_NS, before[2])  # an old Linux ignores the request


def test_another_policy_is_left_alone() -> None:
    def work() -> tuple[bool, int]:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        return ask_for_slices(SHORT_NS), os.sched_getscheduler(0)

    assert apart(work) == (False, os.SCHED_BATCH)


def test_a_machine_without_a_known_number_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices.platform, "machine", lambda: "riscv64")
    assert not apart(lambda: ask_for_slices(SHORT_NS))
