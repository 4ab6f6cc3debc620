"""Fixtures and options of all tests."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Wall-clock deadlines would make property tests depend on the machine's load.
settings.register_profile("runtime", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI judges one commit, so the same commit must give the same verdict; everybody else's runs go on searching.
settings.register_profile("ci", settings.get_profile("runtime"), derandomize=True)
settings.load_profile(_profile := "ci" if os.environ.get("CI") else "runtime")
settings.register_profile("fast", settings.get_profile(_profile), max_examples=30)

# A shell starts the background jobs of a script with SIGINT ignored, and so do these tests the programs that they stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW_CPU_S = 2.0
"""CPU seconds of a test's own call, in its own process, above which it is marked ``slow``: the one definition."""


def pytest_configure(config: pytest.Config) -> None:
    """Search less where the slow tests are left out: unless a test says how many examples it needs."""
    if "not slow" in config.option.markexpr:
        settings.load_profile("fast")


@pytest.fixture(scope="session", autouse=True)
def _warm_up() -> None:
    """Load what the first test to use it would pay for: compiled kernels and the libraries of most tests."""
    import small_flat

    from robot_runtime.hal import Intrinsics
    from robot_runtime.hal.lens import Lens
    from robot_runtime.imaging.reproject import Reprojector
    from robot_runtime.imaging.rig import RgbdCalibration
    from robot_runtime.metrics.functional.distances import Euclidean
    from robot_runtime.metrics.functional.dtw import dtw_alignment
    from robot_runtime.scenes.geodesic import GeodesicMap

    field = GeodesicMap(small_flat.flat().map, 0.18).field([(1.0, 2.0)])
    field.path(5.0, 2.0)
    assert np.isfinite(field.values).any()
    dtw_alignment([(0.0, 0.0), (1.0, 0.0)], [(0.0, 0.0), (1.0, 1.0)], Euclidean((0, 1)))
    lens = Lens(8, 6, 6.0, 6.0, 3.5, 2.5)
    rig = RgbdCalibration(lens, lens, np.eye(4), 0.001, "warm-up", "simulation")
    Reprojector(rig, Intrinsics.from_hfov(8, 6, 60.0)).warm_up()


@pytest.fixture(autouse=True)
def _leaves_its_process_as_it_was() -> Iterator[None]:
    """Fail a test that changes what later tests in the same process depend on."""
    before = _process()
    yield
    assert _process() == before, "the test left its process changed"


def _process() -> dict[str, object]:
    signals = {number.name: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    return {"scheduler": os.sched_getscheduler(0), "folder": os.getcwd(), "nice": os.nice(0), **signals}


REPEATED = 2
"""How often a failed test that is ``in_real_time`` is repeated: another program may have had the computer."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Repeat tests in real time that fail; one that fails each time is broken."""
    for item in items:
        if "in_real_time" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=REPEATED))


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of collections of garbage: each takes a second of CPU otherwise."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes more CPU time than :data:`SLOW_CPU_S` where the slow ones are left out."""
    began_s = _cpu_s()
    yield
    used_s = _cpu_s() - began_s
    if used_s > SLOW_CPU_S and "not slow" in item.config.option.markexpr:
        pytest.fail(f"took {used_s:.1f} s of CPU: shorten it, or mark it slow (above {SLOW_CPU_S:g} s)", pytrace=False)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)  # a child counts where it is reaped, perhaps in a later test
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of third-party data beside the checkout; tests that need it skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"third-party data is not at {folder}")
    return folder


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``once(name, make)``: the folder that ``make(folder)`` has made, for all test processes; do not write into it."""
    base = tmp_path_factory.getbasetemp()
    # Each process has its own folder in one that is this run's.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, ready = shared / name, shared / f"{name}.ready"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ready.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process that failed halfway
                make(folder)
                ready.touch()
        return folder

    return made


@pytest.fixture
def in_real_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For tests with programs that must answer in time: none with ``many_processes`` runs meanwhile."""
    with _turn(tmp_path_factory.getbasetemp().parent, fcntl.LOCK_SH):
        yield


@pytest.fixture
def many_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For tests that start many at once, which would starve those that are ``in_real_time``."""
    with _turn(tmp_path_factory.getbasetemp().parent, fcntl.LOCK_EX):
        yield


@contextmanager
def _turn(folder: Path, kind: int) -> Iterator[None]:
    """Hold the machine, shared or alone. Whoever came first goes first, so that nobody waits for ever."""
    with (folder / "queue.lock").open("w") as queue, (folder / "machine.lock").open("w") as machine:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(machine, kind)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield
