"""Emulated lines: bytes arrive at the baud rate, and a device plugged in anew is found under its old name."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from drivers.serial_wire.port import Attachment, Port
from drivers.serial_wire.pty_emulation import PacedLine, Pty, read_exactly

BYTE_NS = 1_000_000


def test_bytes_arrive_one_by_one_after_the_latency() -> None:
    line = PacedLine(10_000, latency_s=0.005)
    line.put(b"abc", 0)
    assert [line.due(5_000_000 + count * BYTE_NS) for count in range(5)] == [b"", b"a", b"b", b"c", b""]


def test_a_transmission_waits_for_the_one_before() -> None:
    line = PacedLine(10_000)
    line.put(b"abc", 0)
    line.put(b"de", BYTE_NS)
    assert line.next_ns == 3 * BYTE_NS
    assert line.due(4 * BYTE_NS) == b"abcd"
    line.clear()
    assert line.due(9 * BYTE_NS) == b""
    assert line.next_ns is None


@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 10**8)), max_size=20))
def test_nothing_is_lost_or_reordered(sent: list[tuple[bytes, int]]) -> None:
    line, now_ns, arrived = PacedLine(115_200, 0.001), 0, b""
    for data, later_ns in sent:
        now_ns += later_ns
        line.put(data, now_ns)
        arrived += line.due(now_ns)
    assert arrived + line.due(10**12) == b"".join(data for data, _ in sent)


def test_a_device_plugged_in_anew_is_found_under_its_old_name(tmp_path: Path) -> None:
    rocket = Attachment("rocket", frozenset())
    terminal = Pty(tmp_path / "rocket")
    for _ in range(2):
        port = Port(terminal.path, 115_200, rocket)
        terminal.write(b"here")
        assert read_exactly(port, 4) == b"here"
        terminal.unplug()
        assert not (tmp_path / "rocket").exists()
        port.close()
        terminal.plug()
    terminal.unplug()
    terminal.unplug()
