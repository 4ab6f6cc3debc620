"""Results on Ray, whose workers are killed, and the checks of a node.

Ray takes seconds to start, so one test does everything that needs it.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import synthetic
from raising import raises_naming
from synthetic import FORWARD, STOP
from work_functions import minus, refuse_from_3, square, square_or_die_once

from robot_runtime.common.provenance import software
from robot_runtime.errors import ConfigError, DriverMissing, RecordingError
from robot_runtime.parallel.map import Workers, map_in_order, shared_ray
from robot_runtime.parallel.ray_pool import Task, WorkerActor
from robot_runtime.parallel.workers import Done, Failed, Ready, WorkerLoss
from robot_runtime.scoring.summary import score_logs

pytestmark = pytest.mark.usefixtures("many_processes")


@pytest.mark.slow
def test_work_on_ray(tmp_path: Path, record, capfd: pytest.CaptureFixture[str]) -> None:
    logs = [record(synthetic.header(seed=seed), [FORWARD] * seed + [STOP]) for seed in range(3)]
    before = dict(os.environ), signal.getsignal(signal.SIGTERM)
    again: list[tuple[int, WorkerLoss]] = []
    local = Workers(2, "local")
    with shared_ray(local):
        import ray

        session = ray._private.worker.global_worker.node.get_session_dir_path()
        address = ray.get_runtime_context().gcs_address
        deadly = partial(square_or_die_once, folder=tmp_path, always=(8,))
        results = map_in_order(
            deadly, range(12), local, minus, batch_size=6, on_retry=lambda *message: again.append(message)
        )
        assert list(results) == [-8 if n == 8 else n * n for n in range(12)]
        assert sorted(again) == [(5, "died"), (8, "died")], "the item that the worker was processing"
        with pytest.raises(ValueError, match="not 3") as raised:
            list(map_in_order(refuse_from_3, range(12), local, minus, batch_size=2))
        assert "in refuse_from_3" in str(raised.value.__cause__)
        assert score_logs(logs, workers=local) == score_logs(logs)
        with raises_naming(RecordingError, "gone.mcap", "node"):
            score_logs([*logs, tmp_path / "gone.mcap"], workers=local)
        with raises_naming(ConfigError, "--ray elsewhere:6379", address):
            list(map_in_order(square, range(3), Workers(2, "elsewhere:6379"), minus))
        command = [sys.executable, "-m", "robot_runtime", "score", str(logs[0].parent), "--ray", address]
        scored = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
        said = [line for line in scored.stderr.splitlines() if not line.startswith("scoring: ")]  # on slow computers
        assert (scored.returncode, said) == (0, []), "another process connects by the address"
        assert "3 runs of 1 episode" in scored.stdout

    assert capfd.readouterr() == ("", ""), "Ray prints nothing"
    assert not Path(session).exists()
    assert (dict(os.environ), signal.getsignal(signal.SIGTERM)) == before
    assert session not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def task(function: bytes = pickle.dumps((square, None)), folder: str = "", **other: Any) -> Task:
    return Task(function, folder or os.getcwd(), **{"path": sys.path, "software": software(), **other})


class TestANode:
    """Checks of a worker on its node, which need no Ray."""

    def test_the_same_software_and_folder_are_fine(self, tmp_path: Path) -> None:
        actor = WorkerActor()
        assert actor.start(task()) == Ready()
        assert [actor.process(3), actor.process(4)] == [Done(9), Done(16)]

    def test_other_software_is_refused_by_name(self) -> None:
        wanted = software()
        wanted["libraries"] = {**wanted["libraries"], "numpy": "0.9"}
        message = WorkerActor().start(task(software=wanted))
        assert isinstance(message, Failed)
        assert f"node {platform.node()} " in str(message.error)
        assert f"numpy {software()['libraries']['numpy']} instead of 0.9" in str(message.error)

    def test_a_folder_that_is_not_shared_is_refused_by_name(self, tmp_path: Path) -> None:
        message = WorkerActor().start(task(folder=str(tmp_path / "home")))
        assert isinstance(message, Failed)
        assert f"{tmp_path / 'home'}" in str(message.error)

    def test_a_file_that_is_not_shared_is_refused_by_name(self, tmp_path: Path) -> None:
        actor = WorkerActor()
        assert actor.start(task(pickle.dumps((_names, _itself)))) == Ready()
        message = actor.process(tmp_path / "x.mcap")
        assert isinstance(message, Failed)
        assert isinstance(message.error, RecordingError)
        assert "x.mcap" in message.error.message
        assert platform.node() in message.error.message

    def test_a_function_that_is_not_there_is_refused_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        packed = pickle.dumps((square, None)).replace(b"work_functions", b"work_elsewhere")
        message = WorkerActor().start(task(packed))
        assert isinstance(message, Failed)
        assert "No module named 'work_elsewhere'" in str(message.error)


def _names(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield path.name


def _itself(path: Path) -> list[Path]:
    return [path]


class TestAddresses:
    @pytest.mark.parametrize("address", ["nonsense", "ray://head:10001", ":6379", "head:port"])
    def test_a_malformed_address_is_refused(self, address: str) -> None:
        with raises_naming(ConfigError, f"--ray {address}"):
            list(map_in_order(square, range(3), Workers(2, address), minus))

    def test_an_address_without_a_cluster_is_refused_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
        with raises_naming(ConfigError, f"--ray {address}"):
            list(map_in_order(square, range(3), Workers(2, address), minus))

    def test_without_ray_the_remedy_is_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        with raises_naming(DriverMissing, "Ray") as raised:
            list(map_in_order(square, range(3), Workers(2, "local"), minus))
        assert "pip install 'robot-runtime[cluster]'" in raised.value.remedy

    def test_without_items_nothing_is_started(self) -> None:
        assert list(map_in_order(square, [], Workers(2, "nonsense"), minus)) == []
