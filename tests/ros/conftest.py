"""ROS for tests: a master of its own for every test process, and programs that die with the test.

For every test below ``tests/ros``, whichever package it is of:

* ``ros_master``: this process's own master on a free port of 127.0.0.1, and the environment that leads to it.
* ``ros_node``: the same, and this process is a node of it. rospy knows one node per process and one life per node:
  tests share it, use topics of their own (``ros_name``), and unregister what they made.
* ``spawn``: start a program as a node of ``ros_master`` or of another master; it is killed when the test ends, or when
  this process dies.
* ``make_master``: further masters, to be killed and started again.

What rospy prints as deprecated is ignored in these tests and nowhere else.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ros_processes import Master, Program, find_port

FOLDER = Path(__file__).resolve().parent


def missing_ros() -> str | None:
    """The reason why there is no ROS for this Python, or None."""
    for module in ("rospy", "rosmaster", "kobuki_msgs"):
        if importlib.util.find_spec(module) is None:
            return f"`make test` installs ROS 1 where the system's Python is the .venv's: no module {module!r}"
    return None


class _WithoutRos(pytest.Module):
    """Stands for a file of tests that cannot even be imported."""

    def collect(self) -> Any:
        reason = missing_ros()
        assert reason is not None
        if os.environ.get("CI"):
            raise self.CollectError(reason)
        pytest.skip(reason, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    return _WithoutRos.from_parent(parent, path=module_path) if missing_ros() else None


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            for ignored in ("ignore:notifyAll:DeprecationWarning", "ignore::ResourceWarning"):
                item.add_marker(pytest.mark.filterwarnings(ignored))
            item.add_marker(pytest.mark.slow)  # nearly all start ROS programs


@pytest.fixture(autouse=True)
def _nodes_answer_in_time(in_real_time: None) -> None:
    """Every test here has nodes in processes of their own, which are missed when they are late."""


@pytest.fixture(scope="session")
def ros_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a ROS program, less the master: logs in a folder of its own, sockets on 127.0.0.1 only."""
    home = tmp_path_factory.mktemp("ros")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROS_")}
    return kept | {"ROS_HOME": str(home), "ROS_LOG_DIR": str(home / "log"), "ROS_IP": "127.0.0.1"}


@pytest.fixture
def make_master(ros_environ: dict[str, str]) -> Iterator[Callable[[], Master]]:
    """Make a master of the test's own; all are killed after it."""
    with ExitStack() as stack:

        def make() -> Master:
            master = Master(ros_environ)
            stack.callback(master.kill)
            return master

        yield make


@pytest.fixture(scope="session")
def ros_master(ros_environ: dict[str, str]) -> Iterator[str]:
    """The address of this test process's master; ``os.environ`` leads there until the session ends."""
    master = Master(ros_environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROS_HOSTNAME", raising=False)
        for name in ("ROS_HOME", "ROS_LOG_DIR", "ROS_IP"):
            patch.setenv(name, ros_environ[name])
        patch.setenv("ROS_MASTER_URI", master.uri)
        yield master.uri
    master.kill()


@pytest.fixture(scope="session")
def ros_node(ros_master: str) -> Iterator[str]:
    """The name of this test process as a node of :func:`ros_master`."""
    import rospy

    with pytest.MonkeyPatch.context() as patch:
        # rospy's threads live on beside tests that turn warnings into errors, which would end them.
        patch.setattr(threading.Condition, "notifyAll", threading.Condition.notify_all)
        name = f"tests_{os.getpid()}"
        rospy.init_node(name, argv=["tests"], disable_signals=True)
        yield f"/{name}"
        rospy.signal_shutdown("the tests are over")


_numbers = itertools.count()


@pytest.fixture
def ros_name() -> str:
    """A namespace that no other test uses: ``/t17_4``."""
    return f"/t{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def spawn(ros_environ: dict[str, str], ros_master: str) -> Iterator[Callable[..., Program]]:
    """``spawn(*arguments, master=URI, environ={})`` starts ``python`` with these arguments."""
    with ExitStack() as stack:

        def start(*arguments: str, master: str = ros_master, environ: Mapping[str, str] | None = None) -> Program:
            program = Program(
                [sys.executable, "-u", *arguments], ros_environ | {"ROS_MASTER_URI": master} | dict(environ or {})
            )
            stack.callback(program.stop, signal.SIGKILL)
            return program

        yield start


@pytest.fixture
def free_port() -> int:
    """A free port, for programs that cannot choose one themselves (roscore)."""
    return find_port()


@pytest.fixture(scope="module")
def free_port_of_module() -> int:
    """The same, for what all tests of a file share."""
    return find_port()
