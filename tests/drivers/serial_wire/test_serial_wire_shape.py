"""One shape of all wires: the same files, and the same questions to every protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

FILES = {"driver.py", "emulator.py", "protocol.py", "serial_port.py", "README.md"}

PROTOCOL_TESTS = {
    "test_worked_bytes_of_messages",
    "test_messages_come_back",
    "test_a_stream_may_be_cut_anywhere",
    "test_noise_costs_at_most_the_frame_behind_it",
    "test_no_bytes_raise",
    "test_a_damaged_frame_is_never_believed",
    "test_what_does_not_fit_is_refused",
}


@pytest.mark.parametrize("wire", ["kobuki", "create2", "dynamixel", "marvelmind"])
def test_a_wire_has_the_files_and_the_protocol_tests_of_all(wire: str) -> None:
    folder, tests = ROOT / "drivers" / wire, ROOT / "tests" / "drivers" / wire
    assert {*FILES, f"60-{wire}.rules"} <= {path.name for path in folder.iterdir()}
    protocol = (tests / f"test_{wire}_protocol.py").read_text(encoding="utf-8")
    assert set(re.findall(r"^def (test_\w+)", protocol, re.MULTILINE)) >= PROTOCOL_TESTS
    assert (tests / f"test_{wire}_driver.py").is_file()
    everywhere = "".join(path.read_text(encoding="utf-8") for path in tests.glob("test_*.py"))
    assert "def test_bad_packets_never_end_a_run(" in everywhere
