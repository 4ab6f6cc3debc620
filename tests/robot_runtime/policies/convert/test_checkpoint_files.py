"""Reader of checkpoints: tensors and configurations are read, code is not run."""

from __future__ import annotations

import collections
import contextlib
import copy
import datetime
import io
import os
import pickle
import resource
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.errors import CheckpointError
from robot_runtime.policies.convert import pickles
from robot_runtime.policies.convert.checkpoint import read_checkpoint, state_of, tensors_in
from robot_runtime.policies.convert.settings import Settings

STATE = collections.OrderedDict(
    half=torch.arange(6, dtype=torch.float16).reshape(2, 3),
    brain=torch.tensor([1.5, -2.0, 3.0e38], dtype=torch.bfloat16),
    turned=torch.arange(12.0).reshape(3, 4).t(),
    part=torch.arange(10)[3:7],
    truth=torch.tensor([True, False]),
    one=torch.tensor(7, dtype=torch.int32),
    none=torch.zeros(0, 3),
    weight=torch.nn.Parameter(torch.ones(2, dtype=torch.float64)),
)


@pytest.fixture(params=[True, False], ids=["zip", "old"])
def save(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Any], Path]:
    def write(data: Any) -> Path:
        path = tmp_path / "checkpoint.pth"
        torch.save(data, path, _use_new_zipfile_serialization=request.param)
        return path

    return write


def test_tensors_of_every_type_and_layout_are_torchs(save: Callable[[Any], Path]) -> None:
    path = save({"state_dict": STATE, "extra_state": {"step": 12, "name": "run"}})
    checkpoint = read_checkpoint(path)
    found = tensors_in(path, checkpoint.data["state_dict"], "state_dict")
    assert list(found) == list(STATE)
    for name, tensor in STATE.items():
        expected = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
        np.testing.assert_array_equal(found[name], expected.numpy(), strict=True)
    assert checkpoint.data["extra_state"] == {"step": 12, "name": "run"}
    assert len(checkpoint.sha256) == 64


@pytest.mark.slow
def test_a_torchscript_archive_gives_its_weights(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sequential(torch.nn.BatchNorm1d(2)))
    path = tmp_path / "module.pt"
    with pytest.warns(DeprecationWarning, match="jit"):
        torch.jit.save(torch.jit.trace(module.eval(), torch.zeros(1, 3)), path)
    found = state_of(path, read_checkpoint(path).data)
    for name, tensor in module.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            np.testing.assert_array_equal(found[name], tensor.numpy())


class CfgNode(dict):  # type: ignore[type-arg]
    """As yacs's: a dictionary with attributes."""


class DictConfig:
    """As OmegaConf's: content beside metadata."""

    def __init__(self, content: Any) -> None:
        self._metadata = {"flags": None}
        self._parent = self
        self._content = content


class AnyNode:
    def __init__(self, value: Any) -> None:
        self._metadata = {"flags": None}
        self._val = value


def test_configurations_of_either_dialect_are_plain_trees(save: Callable[[Any], Path]) -> None:
    old = CfgNode(TASK_CONFIG=CfgNode(SIMULATOR=CfgNode(TURN_ANGLE=10, SENSORS=["RGB_SENSOR"])))
    old.immutable = True  # type: ignore[attr-defined]
    new = DictConfig({"habitat": DictConfig({"seed": AnyNode(3), "again": AnyNode("${habitat.seed}")})})
    path = save({"config": old, "other": new})
    data = read_checkpoint(path).data
    settings_old, settings_new = Settings(path, data["config"]), Settings(path, data["other"])
    assert settings_old.get(int, "task_config.simulator.turn_angle") == 10
    assert settings_old.get(list, "task_config.simulator.sensors") == ["RGB_SENSOR"]
    assert settings_new.get(int, "habitat.again") == 3
    assert settings_new.get(int, "habitat.missing", "habitat.seed") == 3
    with raises_naming(CheckpointError, "task_config.simulator.turn_angle", "10", "str"):
        settings_old.get(str, "task_config.simulator.turn_angle")


# --- attacks ----------------------------------------------------------------------------------------------------------


class Reduce:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def _ops(*parts: bytes) -> bytes:
    return b"\x80\x02" + b"".join(parts) + b"."


def _text(text: str) -> bytes:
    return pickle.BINUNICODE + struct.pack("<I", len(text)) + text.encode()


def attacks(marker: Path) -> dict[str, bytes]:
    """Pickles that create ``marker`` when an ordinary unpickler reads them, or would reach something that can."""
    command = f"touch {marker}"
    code = f"open({str(marker)!r}, 'w').close()"
    return {
        "reduce": pickle.dumps(Reduce(os.system, command)),
        "exec": pickle.dumps(Reduce(exec, code)),
        "eval": pickle.dumps(Reduce(eval, f"__import__('os').system({command!r})")),
        "popen": pickle.dumps(Reduce(subprocess.Popen, ["touch", str(marker)])),
        "inst": f"(S{command!r}\nios\nsystem\n.".encode(),
        "obj": b"(cos\nsystem\n" + f"S{command!r}\n".encode() + b"o.",
        "newobj": _ops(b"csubprocess\nPopen\n", b"(]", _text("touch"), b"a", _text(str(marker)), b"a", b"t\x81"),
        "dotted": b"\x80\x04" + _text("os") + _text("system.__call__") + b"\x93" + _text(command) + b"\x85R.",
        "getattr": _ops(b"c__builtin__\ngetattr\n", b"cos\npath\n", _text("os"), b"\x86R", _text(command), b"\x85R"),
        "torch.load": _ops(b"ctorch.serialization\nload\n", _text(str(marker)), b"\x85R"),
        "numpy": _ops(b"cnumpy.testing._private.utils\nrunstring\n", _text(code), b"}\x86R"),
        "defaults": _ops(b"ctorch._utils\n_rebuild_tensor_v2\n", b"N}", _text("__defaults__"), b"cos\nsystem\ns\x86b"),
        "state of a dictionary": _ops(b"ccollections\nOrderedDict\n)R", b"}", _text("__class__"), b"cos\nsystem\nsb"),
        "extension": _ops(pickle.EXT1 + b"\x07", _text(command), b"\x85R"),
        "persistent": _ops(b"cos\nsystem\n", _text(command), b"\x85RQ"),
    }


def _zip(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3")
    return file.getvalue()


def _old(data: bytes) -> bytes:
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}]
    return b"".join(pickle.dumps(item, 2) for item in head) + data + pickle.dumps([], 2)


@pytest.mark.parametrize("container", [_zip, _old])
@pytest.mark.parametrize("name", list(attacks(Path("x"))))
def test_no_pickle_runs_code(name: str, container: Callable[[bytes], bytes], tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / "evil.pth"
    path.write_bytes(container(attacks(marker)[name]))
    try:
        data = read_checkpoint(path).data
    except CheckpointError:
        pass
    else:
        assert isinstance(data, (pickles.Inert, dict, type))
    assert not marker.exists()
    assert pickles._tensor.__defaults__ is None


def test_functions_that_no_checkpoint_needs_are_named(tmp_path: Path, save: Callable[[Any], Path]) -> None:
    path = tmp_path / "evil.pth"
    for name, origin in (
        ("inst", "os.system"),
        ("torch.load", "torch.serialization.load"),
        ("newobj", "subprocess.Popen"),
    ):
        path.write_bytes(_zip(attacks(tmp_path / "marker")[name]))
        assert read_checkpoint(path).suspect == (origin,)
    usual = {
        "state_dict": {"w": torch.zeros(2)},
        "config": {"when": datetime.date(2022, 5, 1), "where": Path("a"), "types": [dict[str, int], tuple[int, ...]]},
    }
    assert read_checkpoint(save(usual)).suspect == ()


def test_the_attacks_are_real(tmp_path: Path) -> None:
    for name in ("reduce", "exec", "inst", "obj"):
        marker = tmp_path / name
        pickle.loads(attacks(marker)[name])
        assert marker.exists(), name


def test_nothing_named_in_a_pickle_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "bites_on_import.py"
    module.write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "evil.pth"
    path.write_bytes(_zip(_ops(b"cbites_on_import\nThing\n)R")))
    assert read_checkpoint(path).data.origin == "bites_on_import.Thing"


def _tensor(storage: tuple[Any, ...], *arguments: Any) -> bytes:
    """A pickle of one tensor over a storage of four floats."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> Any:
            return item.pid if isinstance(item, _Storage) else None

    file = io.BytesIO()
    Pickler(file, 2).dump(Reduce(torch._utils._rebuild_tensor_v2, _Storage(storage), *arguments))
    return file.getvalue()


class _Storage:
    def __init__(self, pid: tuple[Any, ...]) -> None:
        self.pid = pid


_FOUR = ("storage", torch.FloatStorage, "0", "cpu", 4)


@pytest.mark.parametrize(
    ("storage", "arguments"),
    [
        (_FOUR, (0, (5,), (1,), False, {})),
        (_FOUR, (1, (4,), (1,), False, {})),
        (_FOUR, (-1, (2,), (1,), False, {})),
        (_FOUR, (0, (1 << 40,), (0,), False, {})),
        (_FOUR, (0, (2, 2), (1,), False, {})),
        (_FOUR, (0, ("2",), (1,), False, {})),
        (("storage", torch.FloatStorage, "0", "cpu", 8), (0, (8,), (1,), False, {})),
        (("storage", torch.FloatStorage, "../version", "cpu", 4), (0, (4,), (1,), False, {})),
        (("storage", os.system, "0", "cpu", 4), (0, (4,), (1,), False, {})),
    ],
)
def test_a_tensor_stays_in_its_storage(storage: tuple[Any, ...], arguments: tuple[Any, ...], tmp_path: Path) -> None:
    path = tmp_path / "evil.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", _tensor(storage, *arguments))
        archive.writestr("archive/version", "3")
        archive.writestr("archive/data/0", np.arange(4, dtype=np.float32).tobytes())
    with pytest.raises(CheckpointError):
        tensors_in(path, {"weight": read_checkpoint(path).data}, "state_dict")


def test_weights_that_are_not_finite_are_refused(save: Callable[[Any], Path]) -> None:
    path = save({"weight": torch.tensor([1.0, float("nan"), float("inf")])})
    with raises_naming(CheckpointError, "weight", "2"):
        tensors_in(path, read_checkpoint(path).data, "state_dict")


def test_compressed_and_doubled_members_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.pth"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    with raises_naming(CheckpointError, "bomb.pth", "data.pkl"):
        read_checkpoint(bomb)


def test_a_value_stored_under_a_large_number_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "memo.pth"
    begin_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for pickled in (b"\x80\x02]r" + struct.pack("<I", 1 << 27) + b".", b"\x80\x02]r\xff\xff\xff\x7f0."):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", pickled)
        with contextlib.suppress(CheckpointError):
            read_checkpoint(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < begin_bytes + (1 << 28)


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.pth"
    with zipfile.ZipFile(bomb, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps([]))
        archive.writestr("archive/data/0", bytes(1000))
        first = archive.getinfo("archive/data/0")
        for number in range(1, 9):
            again = copy.copy(first)
            again.filename = f"archive/data/{number}"
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
    with raises_naming(CheckpointError, "bomb.pth", "share"):
        read_checkpoint(bomb)


def test_nesting_and_repetition_end_in_an_error(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    wide: Any = {"a": 1}
    for _ in range(60):
        wide = {"a": wide, "b": wide}
    for value in (deep, wide):
        with raises_naming(CheckpointError, tmp_path):
            Settings(tmp_path, {"config": value})


@pytest.fixture(scope="module")
def intact() -> dict[bool, bytes]:
    made = {}
    for new in (True, False):
        file = io.BytesIO()
        torch.save({"state_dict": STATE}, file, _use_new_zipfile_serialization=new)
        made[new] = file.getvalue()
    return made


@settings(max_examples=150, deadline=None)
@given(new=st.booleans(), cut=st.floats(0, 1), place=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused(
    intact: dict[bool, bytes], tmp_path_factory: pytest.TempPathFactory, new: bool, cut: float, place: float, byte: int
) -> None:
    data = bytearray(intact[new])
    data[min(int(place * len(data)), len(data) - 1)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.pth"
    path.write_bytes(bytes(data[: int(len(data) * (1 if cut > 0.5 else 2 * cut))]))
    try:
        found = read_checkpoint(path).data
        tensors_in(path, found.get("state_dict") if isinstance(found, dict) else None, "state_dict")
    except CheckpointError:
        pass


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(pickles.UnsafePickle):
        pickles.load_bytes(data)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04", pickle.dumps({"a": 1}), b"hello"):
        path = tmp_path / "none.pth"
        path.write_bytes(content)
        with raises_naming(CheckpointError, path):
            read_checkpoint(path)
    with raises_naming(CheckpointError, "missing.pth"):
        read_checkpoint(tmp_path / "missing.pth")
