"""Workers that are actors on a Ray cluster, or on a local Ray that ends with the work.

An actor is a process on some node. Ray reports which actor died and why, and starts actors as soon as there is a free
CPU, also on nodes that join later. The scheduling stays here, because it has to know which item an actor was
processing when it died, and to return results in order.
"""

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

from typing_extensions import override

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.common.provenance import software
from robot_runtime.errors import ConfigError, DriverMissing, RecordingError
from robot_runtime.parallel.workers import (
    Done,
    Failed,
    Function,
    R,
    Ready,
    T,
    Worker,
    WorkerDied,
    WorkerPool,
    WorkerTraceback,
    available_cores,
    run_items,
)

LOCAL = "local"
"""Address of a Ray that is started for the work and ends with it."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # dead workers are reported by the caller, not on stdout
}
_CONNECT_S = 10.0
_END_S, _POLL_S = 30.0, 0.05
_STORE_BYTES = 80 * 2**20  # Ray's minimum is 75 MiB; only paths and numbers pass through


class RayPool(WorkerPool[T, R]):
    """Actors with a CPU each, spread over the nodes.

    Raises:
        DriverMissing: Ray is not installed.
        ConfigError: no cluster answers there, it runs another Ray or Python, or this process uses another already.
    """

    def __init__(
        self,
        function: Function[T, R],
        address: str,
        count: int | None,
        required_paths: Callable[[T], Iterable[Path]] | None,
    ) -> None:
        self._open = ExitStack()
        try:
            self._ray = self._open.enter_context(connected(address, count))
            self.size = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            actor = self._ray.remote(WorkerActor)
            self._actors = actor.options(num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0)
            packed = pickle.dumps((function, required_paths))
            self._task = self._ray.put(Task(packed, os.getcwd(), sys.path, software()))
        except BaseException:
            self._open.close()
            raise

    @override
    def start_worker(self) -> Worker[T, R]:
        return _RayWorker(self._ray, self._actors.remote(), self._task)

    @override
    def wait(self, workers: Sequence[Worker[T, R]], timeout_s: float) -> Sequence[Worker[T, R]]:
        pending = {worker.pending: worker for worker in workers if isinstance(worker, _RayWorker)}
        for count, limit_s in ((len(pending), 0.0), (1, timeout_s)):  # all that are ready, else the first to be
            ready, _ = self._ray.wait(list(pending), num_returns=count, timeout=limit_s)
            if ready:
                break
        return [pending[ref] for ref in ready]

    @override
    def close(self) -> None:
        self._open.close()


@dataclass(frozen=True)
class Task:
    """The work of all actors.

    Attributes:
        function: pickled function and ``required_paths``; a node can unpickle them once ``path`` is set.
        folder: working directory of the command.
        path: ``sys.path`` of the command.
        software: versions that the node must have.
    """

    function: bytes
    folder: str
    path: list[str]
    software: dict[str, Any]


class _RayWorker(Worker[T, R]):
    """Gives its actor one item at a time: the results of a batch would be lost with an actor that dies."""

    def __init__(self, ray: Any, actor: Any, task: Any) -> None:
        self._ray, self._actor = ray, actor
        self._items: deque[T] = deque()
        self.pending = actor.start.remote(task)

    def submit(self, items: Sequence[T]) -> None:
        self._items = deque(items)
        self._process_next()

    def receive(self) -> Ready | Done[R] | Failed:
        exceptions = self._ray.exceptions
        try:
            message: Ready | Done[R] | Failed = self._ray.get(self.pending)
        except exceptions.RayTaskError as error:  # not from the function: an item or a result cannot be pickled
            raise error.cause from WorkerTraceback(str(error))
        except exceptions.RayError as error:  # the process, its node or the memory with the result is lost
            raise WorkerDied(str(error)) from error
        self._process_next()
        return message

    def _process_next(self) -> None:
        if self._items:
            self.pending = self._actor.process.remote(self._items.popleft())

    def kill(self) -> None:
        self._ray.kill(self._actor)


class WorkerActor:
    """The part of a worker that runs on its node, as a Ray actor."""

    def start(self, task: Task) -> Ready | Failed:
        """Check that this node is fit for the task, and unpickle the function."""
        node = platform.node()
        try:
            _check_software(task.software, node)
            _change_folder(task.folder, node)
            function, required_paths = _unpickle(task, node)
        except ConfigError as error:
            return Failed(error, f"on node {node}")
        self._items: deque[Any] = deque()
        self._messages = run_items(function, _with_paths(self._take_items(), required_paths, node))
        return Ready()

    def process(self, item: Any) -> Done[Any] | Failed:
        """Return the message about one item."""
        self._items.append(item)
        return next(self._messages)

    def _take_items(self) -> Iterator[Any]:
        while True:
            yield self._items.popleft()


def _check_software(wanted: Mapping[str, Any], node: str) -> None:
    here, there = _flat(software()), _flat(wanted)
    differing = [f"{name} {here.get(name)} instead of {there[name]}" for name in there if here.get(name) != there[name]]
    if differing:
        raise ConfigError(
            f"node {node} of the Ray cluster has {', '.join(differing)}, and its results might differ",
            "install the same versions on every node and on the computer that runs the command",
        )


def _flat(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in versions.items() if name != "libraries"}, **versions["libraries"]}


def _change_folder(folder: str, node: str) -> None:
    """Change to the working directory of the command, so that relative paths mean the same."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(
            f"node {node} of the Ray cluster cannot enter the command's folder {folder}: {error.strerror}",
            "run the command in a folder that all nodes mount at the same place",
        ) from error


def _unpickle(task: Task, node: str) -> tuple[Function[Any, Any], Callable[[Any], Iterable[Path]] | None]:
    sys.path += [folder for folder in task.path if folder not in sys.path]
    try:
        unpacked: tuple[Function[Any, Any], Callable[[Any], Iterable[Path]] | None] = pickle.loads(task.function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"node {node} of the Ray cluster cannot import the function of the work: {error}",
            "install the same packages on every node, or keep the module in a folder that all nodes mount",
        ) from error
    return unpacked


def _with_paths(items: Iterable[T], required_paths: Callable[[T], Iterable[Path]] | None, node: str) -> Iterator[T]:
    """Yield the items after checking that this node has the paths that they need."""
    for item in items:
        for path in required_paths(item) if required_paths is not None else ():
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
            "--ray needs Ray; it is not installed", "install the extra: pip install 'robot-runtime[cluster]'"
        ) from error
    return ray


@contextmanager
def connected(address: str, count: int | None) -> Iterator[Any]:
    """Connect to Ray within this context; a connection that exists already is used and stays.

    Args:
        address: see :class:`robot_runtime.parallel.map.Workers`.
        count: CPUs of a local Ray; None for one per core.

    Raises:
        DriverMissing: Ray is not installed.
        ConfigError: no cluster answers there, or this process uses another already.
    """
    with _quiet():
        ray = _import_ray()
        if ray.is_initialized():
            now = ray.get_runtime_context().gcs_address
            if address not in (LOCAL, "auto", now):
                message = f"--ray {address}: this process is connected to {now} already"
                raise ConfigError(message, "call ray.shutdown() before")
            yield ray
            return
        with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
            own = {
                "num_cpus": count or available_cores(),
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
            }
            try:
                _connect(ray, address, {**own, "_temp_dir": folder} if address == LOCAL else {})
                yield ray
            finally:
                ray.shutdown()
                # shutdown() does not wait for its processes: they still write into the folder.
                wait_for(SystemClock(), lambda: None if _used(folder) else True, _END_S, _POLL_S)


def _used(folder: str) -> bool:
    """Whether a process runs whose command line names the folder; False on systems without /proc."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has just ended
            if os.fsencode(folder) in command.read_bytes():
                return True
    return False


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    if address not in (LOCAL, "auto"):
        _check_address(address)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:  # each is raised in some case
        raise ConfigError(
            f"--ray {address}: {str(error).strip().splitlines()[0]}",
            "run the command on a node of a running cluster: `ray start --head`, or `--ray local` for this machine",
        ) from error


def _check_address(address: str) -> None:
    """Raise ``ConfigError`` at once for an address at which Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise ConfigError(
            f"--ray {address}: not the address of a Ray cluster",
            "give HOST:PORT as `ray start` prints it, auto or local",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"--ray {address}: nothing answers there: {error}", "start the cluster: `ray start --head --port PORT`"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray from sending statistics and printing; undo its changes to this process at the end."""
    environment, on_sigterm = dict(os.environ), signal.getsignal(signal.SIGTERM)
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        if threading.current_thread() is threading.main_thread():  # Ray sets the handler in the main thread only
            signal.signal(signal.SIGTERM, on_sigterm)
