"""Networks that were exported on a GPU, where there is none: weights are moved, and a program names the remedy."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from raising import raises_naming

from robot_runtime.errors import PolicyError
from robot_runtime.policies.convert.draft import draft

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="this computer has CUDA")

ABOUT = {"goal": {"role": "pointgoal_with_gps_compass", "shape": [1, 2]}}


class Net(torch.nn.Module):
    def __init__(self, makes_tensors: bool) -> None:
        super().__init__()
        self.linear, self.makes_tensors = torch.nn.Linear(2, 4), makes_tensors

    def forward(self, goal: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(goal)
        return found + torch.zeros(4) if self.makes_tensors else found


def on_gpu(path: Path, edit: Callable[[str, bytes], bytes]) -> Path:
    """The file as it would be from a GPU: its members, edited."""
    moved = path.with_name(f"gpu-{path.name}")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(moved, "w") as copy:
        for name in source.namelist():
            copy.writestr(name, edit(name, source.read(name)))
    assert moved.read_bytes() != path.read_bytes()
    return moved


def in_script(name: str, data: bytes) -> bytes:
    pickled = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
    return pickled if name.endswith(".pkl") else data.replace(b'torch.device("cpu")', b'torch.device("cuda:0")')


def in_program(name: str, data: bytes) -> bytes:
    return re.sub(rb'"type": "cpu", "index": null', b'"type": "cuda", "index": 0', data) if ".json" in name else data


def script(folder: Path, makes_tensors: bool) -> Path:
    traced = torch.jit.trace(Net(makes_tensors).eval(), torch.zeros(1, 2))  # type: ignore[no-untyped-call]
    torch.jit.save(traced, folder / "net.ts")  # type: ignore[no-untyped-call]
    return folder / "net.ts"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_weights_of_a_script_are_moved_to_the_cpu(tmp_path: Path) -> None:
    _, _, golden = draft(script(tmp_path, makes_tensors=False), ABOUT)
    _, _, moved = draft(on_gpu(tmp_path / "net.ts", in_script), ABOUT)
    assert (moved.outputs["logits"] == golden.outputs["logits"]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_script_that_makes_tensors_on_the_gpu_is_exported_on_the_cpu(tmp_path: Path) -> None:
    path = script(tmp_path, makes_tensors=True)
    with raises_naming(PolicyError, "CUDA", "model.cpu()") as caught:
        draft(on_gpu(path, in_script), ABOUT)
    assert len(caught.value.message) < 1200
    draft(path, ABOUT)


@pytest.mark.slow
def test_a_program_of_the_gpu_is_exported_on_the_cpu(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(Net(makes_tensors=True).eval(), (torch.zeros(1, 2),)), path)
    with raises_naming(PolicyError, "gpu-net.pt2", "CUDA", "model.cpu()"):
        draft(on_gpu(path, in_program), ABOUT)
    draft(path, ABOUT)
