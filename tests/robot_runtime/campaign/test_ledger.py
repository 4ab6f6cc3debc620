from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.campaign.ledger import Ledger, is_running, parse_ledger, read_ledger
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.log_files import LEDGER_FILE


def written(folder: Path, lines: int = 4) -> bytes:
    with Ledger(folder) as ledger:
        for number in range(lines):
            ledger.append("event", number=number, text='ä \\ " \n')
    return (folder / LEDGER_FILE).read_bytes()


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    written(tmp_path)
    assert [entry["number"] for entry in read_ledger(tmp_path)] == [0, 1, 2, 3]
    with Ledger(tmp_path) as ledger:
        ledger.append("more")
        assert [entry.n for entry in ledger.entries] == [0, 1, 2, 3, 4]
    assert read_ledger(tmp_path)[-1].kind == "more"


def test_a_line_that_was_cut_off_at_any_byte_is_removed_and_named(tmp_path: Path) -> None:
    data = written(tmp_path)
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for length in range(last + 1, len(data), 7):
        (tmp_path / LEDGER_FILE).write_bytes(data[:length])
        assert [entry.n for entry in read_ledger(tmp_path)] == [0, 1, 2]
        with Ledger(tmp_path) as ledger:
            assert [entry.kind for entry in ledger.entries] == ["event"] * 3 + ["recovered"]
            assert ledger.entries[-1]["bytes"] == length - last
    (tmp_path / LEDGER_FILE).write_bytes(data[:7])
    with Ledger(tmp_path) as ledger:
        assert ledger.entries == []


@given(st.integers(0, 1 << 16), st.integers(1, 255))
def test_any_change_is_found(tmp_path_factory: pytest.TempPathFactory, place: int, flipped: int) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    content = bytearray(written(folder, 2))
    content[place % (len(content) - 1)] ^= flipped  # the last line's end is another test's
    with pytest.raises(RecordingError, match="altered"):
        parse_ledger(folder / LEDGER_FILE, bytes(content))


def test_a_removed_line_is_found(tmp_path: Path) -> None:
    lines = written(tmp_path).splitlines(keepends=True)
    (tmp_path / LEDGER_FILE).write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(RecordingError, match="line 2"):
        Ledger(tmp_path)


def test_a_second_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robot_runtime.campaign.ledger.LOCK_S", 0.1)
    assert not is_running(tmp_path)
    with Ledger(tmp_path) as ledger:
        assert is_running(tmp_path)
        with pytest.raises(ConfigError, match="another process"):
            Ledger(tmp_path)
        ledger.append("event")
    assert not is_running(tmp_path)


def test_a_clock_that_was_set_back_is_named(tmp_path: Path) -> None:
    with Ledger(tmp_path, now=lambda: "2030-01-01T10:00:00+00:00") as ledger:
        ledger.append("event")
    back = Ledger(tmp_path, now=lambda: "2030-01-01T09:59:00+00:00")
    with back, pytest.raises(ConfigError, match="60 s behind"):
        back.check_clock()
    with Ledger(tmp_path, now=lambda: "2030-01-01T09:59:59+00:00") as ledger:
        ledger.check_clock()  # as time servers correct it


def test_a_full_disk_costs_nothing(tmp_path: Path) -> None:
    size = len(written(tmp_path))
    program = (
        "import resource, signal, sys; from pathlib import Path; from robot_runtime.campaign.ledger import Ledger\n"
        "from robot_runtime.errors import RecordingError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 50}, {size + 50}))\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "try:\n ledger.append('event', text='x' * 500)\nexcept RecordingError as error:\n print(error.remedy)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "nothing is lost" in done.stdout
    assert [entry.n for entry in read_ledger(tmp_path)] == [0, 1, 2, 3]


def test_a_killed_process_loses_no_line(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from robot_runtime.campaign.ledger import Ledger\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "for n in range(10**6):\n ledger.append('event', number=n); print(n, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seen = [int(process.stdout.readline()) for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    seen += [int(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    with Ledger(tmp_path) as ledger:
        numbers = [entry["number"] for entry in ledger.entries if entry.kind == "event"]
    assert numbers[: len(seen)] == seen
    assert numbers == list(range(len(numbers)))


def test_a_line_is_json_that_any_program_reads(tmp_path: Path) -> None:
    first = json.loads(written(tmp_path).splitlines()[0])
    assert {"n", "at", "up_s", "boot", "kind", "number", "chain"} <= set(first)
