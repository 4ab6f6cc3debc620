"""The same results on Ray, whose workers are killed for real; and what a node must be to take part.

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
from synthetic import FORWARD, STOP
from work_functions import minus, refuse_from_3, square, square_or_die_once

from robot_runtime.common.provenance import software
from robot_runtime.errors import ConfigError, DriverMissing, RecordingError
from robot_runtime.parallel.engine import Done, Failed, Lost, Ready
from robot_runtime.parallel.map import Workers, employed, map_in_order
from robot_runtime.parallel.ray_cluster import Hand, Task
from robot_runtime.scoring.summary import score_logs

pytestmark = pytest.mark.usefixtures("many_processes")


def test_work_on_ray(tmp_path: Path, record, capfd: pytest.CaptureFixture[str]) -> None:
    logs = [record(synthetic.header(seed=seed), [FORWARD] * seed + [STOP]) for seed in range(3)]
    before = dict(os.environ), signal.getsignal(signal.SIGTERM)
    again: list[tuple[int, Lost]] = []
    local = Workers(2, "local")
    with employed(local):
        import ray

        session = ray._private.worker.global_worker.node.get_session_dir_path()
        address = ray.get_runtime_context().gcs_address
        deadly = partial(square_or_die_once, folder=tmp_path, always=(8,))
        results = map_in_order(deadly, range(12), local, minus, chunk=6, on_retry=lambda *said: again.append(said))
        assert list(results) == [-8 if n == 8 else n * n for n in range(12)]
        assert sorted(again) == [(5, "died"), (8, "died")], "each by the item that its worker was at"
        with pytest.raises(ValueError, match="not 3") as raised:
            list(map_in_order(refuse_from_3, range(12), local, minus, chunk=2))
        assert "in refuse_from_3" in str(raised.value.__cause__)
        assert score_logs(logs, workers=local) == score_logs(logs)
        with pytest.raises(RecordingError, match=r"gone.mcap: node .* does not see it"):
            score_logs([*logs, tmp_path / "gone.mcap"], workers=local)
        with pytest.raises(ConfigError, match=f"connected to {address} already"):
            list(map_in_order(square, range(3), Workers(2, "elsewhere:6379"), minus))
        command = [sys.executable, "-m", "robot_runtime", "score", str(logs[0].parent), "--ray", address]
        scored = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
        assert (scored.returncode, scored.stderr) == (0, ""), "another process joins by the address"
        assert "3 episodes" in scored.stdout

    assert capfd.readouterr() == ("", ""), "Ray is quiet"
    assert not Path(session).exists()
    assert (dict(os.environ), signal.getsignal(signal.SIGTERM)) == before
    assert session not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def task(function: bytes = pickle.dumps((square, None)), folder: str = "", **other: Any) -> Task:
    return Task(function, folder or os.getcwd(), **{"path": sys.path, "software": software(), **other})


class TestANode:
    """What a worker does on its node before it begins, which needs no Ray."""

    def test_the_same_software_and_folder_are_fine(self, tmp_path: Path) -> None:
        hand = Hand()
        assert hand.start(task()) == Ready()
        assert [hand.work(3), hand.work(4)] == [Done(9), Done(16)]

    def test_other_software_is_refused_by_name(self) -> None:
        wanted = software()
        wanted["libraries"] = {**wanted["libraries"], "numpy": "0.9"}
        said = Hand().start(task(software=wanted))
        assert isinstance(said, Failed)
        assert f"node {platform.node()} " in str(said.error)
        assert f"numpy {software()['libraries']['numpy']} instead of 0.9" in str(said.error)

    def test_a_folder_that_is_not_shared_is_refused_by_name(self, tmp_path: Path) -> None:
        said = Hand().start(task(folder=str(tmp_path / "home")))
        assert isinstance(said, Failed)
        assert f"cannot enter {tmp_path / 'home'}" in str(said.error)

    def test_a_file_that_is_not_shared_is_refused_by_name(self, tmp_path: Path) -> None:
        hand = Hand()
        assert hand.start(task(pickle.dumps((_names, _itself)))) == Ready()
        said = hand.work(tmp_path / "x.mcap")
        assert isinstance(said, Failed)
        assert isinstance(said.error, RecordingError)
        assert f"x.mcap: node {platform.node()} of the Ray cluster does not see it" in said.error.message

    def test_a_function_that_is_not_there_is_refused_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        packed = pickle.dumps((square, None)).replace(b"work_functions", b"work_elsewhere")
        said = Hand().start(task(packed))
        assert isinstance(said, Failed)
        assert "cannot import what it is to do: No module named 'work_elsewhere'" in str(said.error)


def _names(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield path.name


def _itself(path: Path) -> list[Path]:
    return [path]


class TestAddresses:
    @pytest.mark.parametrize("address", ["nonsense", "ray://head:10001", ":6379", "head:port"])
    def test_what_is_no_address_is_told(self, address: str) -> None:
        with pytest.raises(ConfigError, match="is no address of a Ray cluster"):
            list(map_in_order(square, range(3), Workers(2, address), minus))

    def test_nobody_there_is_told_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConfigError, match=f"--ray {address}: nothing answers there"):
            list(map_in_order(square, range(3), Workers(2, address), minus))

    def test_without_ray_the_remedy_is_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(DriverMissing, match=r"pip install 'robot-runtime\[cluster\]'"):
            list(map_in_order(square, range(3), Workers(2, "local"), minus))

    def test_without_items_nothing_is_started(self) -> None:
        assert list(map_in_order(square, [], Workers(2, "nonsense"), minus)) == []
