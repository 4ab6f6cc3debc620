"""Frames between the runtime and an agent's worker process."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from robot_runtime.policies.agents import worker


def test_the_worker_needs_nothing_but_python_3_8_and_numpy() -> None:
    tree = ast.parse(Path(worker.__file__).read_text(), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported <= sys.stdlib_module_names | {"numpy"}


def _reader(data: bytes) -> Any:
    position = 0

    def read(count: int) -> bytearray:
        nonlocal position
        if position + count > len(data):
            raise EOFError
        position += count
        return bytearray(data[position - count : position])

    return read


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text(max_size=5),
        hnp.arrays(
            st.sampled_from(["u1", "f4", "i8", "?", "U3"]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=3,
    )
)
def test_frames_round_trip(arrays: dict[str, Any]) -> None:
    data = b"".join(bytes(buffer) for buffer in worker.encode({"type": "act"}, arrays))
    document, back = worker.decode(_reader(data), 1 << 20)
    assert document["type"] == "act"
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert back[name].flags.writeable or not array.size
        np.testing.assert_array_equal(back[name], array)


@given(st.binary(max_size=60), st.integers(0, 70), st.binary(max_size=3))
def test_any_bytes_are_a_frame_or_refused(data: bytes, cut: int, noise: bytes) -> None:
    good = b"".join(bytes(b) for b in worker.encode({"type": "act"}, {"a": np.arange(3)}))
    for arriving in (data, worker.MAGIC + data, good[:cut] + noise + good[cut + 1 :]):
        with suppress(worker.FrameError, EOFError):
            worker.decode(_reader(arriving), 1 << 20)


def test_a_frame_that_is_too_large_is_refused_before_it_is_read() -> None:
    head = worker.encode({"x": "y" * 5000})[0]
    with pytest.raises(worker.FrameError, match="4096"):
        worker.decode(_reader(bytes(head)), 4096)
