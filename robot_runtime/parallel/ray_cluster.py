"""Workers on a Ray cluster, or on a Ray of our own on this machine.

A worker is an actor, which lives in a process of its own on some node. Ray says which actor died and why, and starts
actors as soon as there is a free CPU, on nodes too that join later; who does what is decided here, so that an item
that cost its worker is known, and results come in order.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import signal
import socket
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.common.provenance import software
from robot_runtime.errors import ConfigError, DriverMissing, RecordingError
from robot_runtime.parallel.engine import (
    Done,
    Engine,
    Failed,
    Function,
    R,
    Ready,
    T,
    Worker,
    WorkerDied,
    WorkerTraceback,
    answers,
    cores,
)

LOCAL = "local"
"""The address that stands for a Ray of our own."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # a worker that died is told by us, and not on stdout
}
_CONNECT_S = 10.0
_END_S, _POLL_S = 30.0, 0.05
_STORE_BYTES = 80 * 2**20  # Ray's least is 75 MiB; what passes through are paths and figures


class RayCluster(Engine[T, R]):
    """Actors with a CPU each, spread over the nodes.

    Args:
        address: see :class:`robot_runtime.parallel.map.Workers`. count: of workers; None for one per CPU.
        reads: the files and folders that an item needs, which its node must see.

    Raises:
        DriverMissing: Ray is not installed.
        ConfigError: no cluster answers there, it runs another Ray or Python, or this process has another already.
    """

    def __init__(
        self, function: Function[T, R], address: str, count: int | None, reads: Callable[[T], Iterable[Path]] | None
    ) -> None:
        self._open = ExitStack()
        try:
            self._ray = self._open.enter_context(connected(address, count))
            self.size = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            hand = self._ray.remote(Hand)
            self._actors = hand.options(num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0)
            self._task = self._ray.put(Task(pickle.dumps((function, reads)), os.getcwd(), sys.path, software()))
        except BaseException:
            self._open.close()
            raise

    def hire(self) -> Worker[T, R]:
        return _Actor(self._ray, self._actors.remote(), self._task)

    def wait(self, workers: Sequence[Worker[T, R]], timeout_s: float) -> Sequence[Worker[T, R]]:
        next_words = {worker.asked: worker for worker in workers if isinstance(worker, _Actor)}
        for count, limit_s in ((len(next_words), 0.0), (1, timeout_s)):  # all that is there; else the first to come
            said, _ = self._ray.wait(list(next_words), num_returns=count, timeout=limit_s)
            if said:
                break
        return [next_words[ref] for ref in said]

    def close(self) -> None:
        self._open.close()


@dataclass(frozen=True)
class Task:
    """What every worker is to do.

    Attributes:
        function: with what its items read, pickled: a node can only know it once it looks where we look.
        folder: where the command was given. path: where modules are looked for. software: that the node must have.
    """

    function: bytes
    folder: str
    path: list[str]
    software: dict[str, Any]


class _Actor(Worker[T, R]):
    """It gets one item at a time: of several, those done last before it died would seem undone.

    Attributes:
        asked: what it was asked last.
    """

    def __init__(self, ray: Any, actor: Any, task: Any) -> None:
        self._ray, self._actor = ray, actor
        self._next: deque[T] = deque()
        self.asked = actor.start.remote(task)

    def give(self, items: Sequence[T]) -> None:
        self._next = deque(items)
        self._ask()

    def take(self) -> Ready | Done[R] | Failed:
        exceptions = self._ray.exceptions
        try:
            said: Ready | Done[R] | Failed = self._ray.get(self.asked)
        except exceptions.RayTaskError as error:  # not the function's: an item or a result cannot travel
            raise error.cause from WorkerTraceback(str(error))
        except exceptions.RayError as error:  # the process, its node or the memory that held the result is gone
            raise WorkerDied(str(error)) from error
        self._ask()
        return said

    def _ask(self) -> None:
        if self._next:
            self.asked = self._actor.work.remote(self._next.popleft())

    def end(self) -> None:
        self._ray.kill(self._actor)


class Hand:
    """What runs in a worker's process: an actor, or, without Ray, an object like any other."""

    def start(self, task: Task) -> Ready | Failed:
        """Before the first item: is this node fit for the task?"""
        node = platform.node()
        try:
            _check_software(task.software, node)
            _enter(task.folder, node)
            function, reads = _unpacked(task, node)
        except ConfigError as error:
            return Failed(error, f"on node {node}")
        self._given: deque[Any] = deque()
        self._answers = answers(function, _seen(self._items(), reads, node))
        return Ready()

    def work(self, item: Any) -> Done[Any] | Failed:
        """Do the next item."""
        self._given.append(item)
        return next(self._answers)

    def _items(self) -> Iterator[Any]:
        while True:
            yield self._given.popleft()


def _check_software(wanted: Mapping[str, Any], node: str) -> None:
    here, there = _flat(software()), _flat(wanted)
    differing = [f"{name} {here.get(name)} instead of {there[name]}" for name in there if here.get(name) != there[name]]
    if differing:
        raise ConfigError(
            f"node {node} of the Ray cluster has {', '.join(differing)}, and its results might differ",
            "install the same versions on every node and where the command is given",
        )


def _flat(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in versions.items() if name != "libraries"}, **versions["libraries"]}


def _enter(folder: str, node: str) -> None:
    """Go where the command was given, so that relative paths mean the same."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(
            f"node {node} of the Ray cluster cannot enter {folder}, where the command was given: {error.strerror}",
            "give the command in a folder that all nodes mount at the same place",
        ) from error


def _unpacked(task: Task, node: str) -> tuple[Function[Any, Any], Callable[[Any], Iterable[Path]] | None]:
    sys.path += [folder for folder in task.path if folder not in sys.path]
    try:
        unpacked: tuple[Function[Any, Any], Callable[[Any], Iterable[Path]] | None] = pickle.loads(task.function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"node {node} of the Ray cluster cannot import what it is to do: {error}",
            "install the same packages on every node, or keep the module in a folder that all nodes mount",
        ) from error
    return unpacked


def _seen(items: Iterable[T], reads: Callable[[T], Iterable[Path]] | None, node: str) -> Iterator[T]:
    """The items, once it is sure that this node has what they need."""
    for item in items:
        for path in reads(item) if reads is not None else ():
            if not path.exists():
                raise RecordingError(
                    f"{path}: node {node} of the Ray cluster does not see it",
                    "put it on storage that all nodes mount at the same place, and name it there",
                )
        yield item


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise DriverMissing(
            "--ray needs Ray, which is not installed", "install the extra: pip install 'robot-runtime[cluster]'"
        ) from error
    return ray


@contextmanager
def connected(address: str, count: int | None) -> Iterator[Any]:
    """Ray, connected as long as this lasts; of one of our own, nothing is left. Who is connected already, stays so.

    Args, Raises: see :class:`RayCluster`.
    """
    with _quiet():
        ray = _import_ray()
        if ray.is_initialized():
            _check_same(ray, address)
            yield ray
            return
        with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
            own = {"num_cpus": count or cores(), "include_dashboard": False, "object_store_memory": _STORE_BYTES}
            try:
                _connect(ray, address, {**own, "_temp_dir": folder} if address == LOCAL else {})
                yield ray
            finally:
                ray.shutdown()
                # It does not wait for its processes, which go on writing into the folder.
                wait_for(SystemClock(), lambda: None if _used(folder) else True, _END_S, _POLL_S)


def _used(folder: str) -> bool:
    """Whether a process lives whose command line names the folder; no where the system does not tell."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            if os.fsencode(folder) in command.read_bytes():
                return True
    return False


def _check_same(ray: Any, address: str) -> None:
    now = ray.get_runtime_context().gcs_address
    if address not in (LOCAL, "auto", now):
        raise ConfigError(f"--ray {address}: this process is connected to {now} already", "call ray.shutdown() before")


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    if address not in (LOCAL, "auto"):
        _check_address(address)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:  # each for some way to fail
        raise ConfigError(
            f"--ray {address}: {str(error).strip().splitlines()[0]}",
            "give the command on a node of a running cluster: `ray start --head`, or `--ray local` for this machine",
        ) from error


def _check_address(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise ConfigError(
            f"--ray {address}: is no address of a Ray cluster", "give HOST:PORT as `ray start` prints it, auto or local"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"--ray {address}: nothing answers there: {error}", "start the cluster: `ray start --head --port PORT`"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray reports to nobody and prints nothing; what it changes in this process is undone in the end."""
    environment, on_sigterm = dict(os.environ), signal.getsignal(signal.SIGTERM)
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        if threading.current_thread() is threading.main_thread():  # Ray, too, sets it in this one only
            signal.signal(signal.SIGTERM, on_sigterm)
