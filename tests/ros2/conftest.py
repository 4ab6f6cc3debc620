"""Tests of ROS 2, between two DDS vendors. They run in .venv-ros2, where nothing is skipped::

    .venv-ros2/bin/python -m pytest tests/ros2

* ``ros2_domain``: the test's own network on this computer.
* ``emulator``: start an emulated base in a process of its own, on Cyclone DDS.
* ``client``: a foreign ROS 2 program in this process, on rclpy and Fast DDS.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import ros2_network

FOLDER = Path(__file__).resolve().parent
IS_HERE = Path(sys.prefix).name == ".venv-ros2"
HAS_ROS2 = IS_HERE and importlib.util.find_spec("rclpy") is not None

if HAS_ROS2:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lark  # noqa: F401 - of rclpy's; warns when it is imported


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Every other environment has nothing to collect here: ``make test`` and ``make check`` run both."""
    return None if IS_HERE else True


class _WithoutRos2(pytest.Module):
    """Stands for a file of tests that cannot even be imported."""

    def collect(self) -> Any:
        reason = "PyPI has no ROS 2 for this computer: x86-64 and Python 3.10 to 3.13 are needed"
        if os.environ.get("CI"):
            raise self.CollectError(reason)
        pytest.skip(reason, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    return None if HAS_ROS2 else _WithoutRos2.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:  # what rclpy itself calls that is deprecated
            item.add_marker(pytest.mark.filterwarnings("ignore:Deprecated in favor of:DeprecationWarning"))


@pytest.fixture(scope="session", autouse=True)
def _warm_up() -> None:
    """Nothing: these tests use none of what the others load first."""


@pytest.fixture(scope="session", autouse=True)
def ros2_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The network's variables, for this process and its programs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("ROS_", "RMW_", "FASTRTPS_"))]:
            patch.delenv(name)
        for name, value in ros2_network.environment(tmp_path_factory.mktemp("ros2")).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True)
def _programs_answer_in_time(in_real_time: None) -> None:
    """Nearly every test here has programs in processes of their own."""


_numbers = itertools.count(os.getpid() * 7)


@pytest.fixture
def ros2_domain(ros2_environment: None) -> Iterator[int]:
    """A domain of the test's own."""
    with ros2_network.domain(next(_numbers)) as number:
        yield number


@pytest.fixture
def emulator(ros2_domain: int) -> Iterator[Callable[..., Any]]:
    """Start emulators on the test's network: ``emulator("create3", "--hazards", "periodic")``."""
    from ros2_programs import Emulator

    with ExitStack() as stack:

        def start(name: str, *options: object) -> Emulator:
            made = Emulator(name, ros2_domain, *options)
            stack.callback(made.close)
            return made

        yield start


@pytest.fixture
def client(ros2_domain: int) -> Iterator[Any]:
    """A foreign ROS 2 program."""
    from ros2_programs import Client

    made = Client(ros2_domain)
    yield made
    made.close()
