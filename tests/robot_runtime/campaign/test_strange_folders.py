"""Folders of strangers: whatever is in place of a ledger, a log or a verdict is named, in bounded memory."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from robot_runtime.campaign.status import read_status
from robot_runtime.campaign.verification import MAX_FINDINGS, Verification
from robot_runtime.errors import RuntimeFault
from robot_runtime.recording.integrity import Chain, stated_digest
from robot_runtime.recording.log_files import LEDGER_FILE, sha256_of
from robot_runtime.recording.verdict_files import verdicts_path
from tests.benchmarks.runtime.campaign_evidence import foreign_row
from tests.benchmarks.runtime.campaign_frauds import Forger
from tests.benchmarks.runtime.campaign_honest import honest_row
from tests.benchmarks.runtime.simulated_campaigns import run_judged_campaign

pytestmark = pytest.mark.slow

MEMORY_MB = 1024 - 100  # less what a fresh process holds, whose growth is measured
LIMIT_S = 200

Strange = Callable[[Path], object]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_judged_campaign(tmp_path_factory.mktemp("honest"), starts=1)


def first_log(folder: Path) -> Path:
    return min((folder / "logs").rglob("*.mcap"))


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def text(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("x")


def add_line(folder: Path, line: bytes) -> None:
    """A line of which the chain holds."""
    path, chain = folder / LEDGER_FILE, Chain()
    chain.digest = stated_digest(path.read_bytes().splitlines()[-1])
    with path.open("ab") as file:
        file.write(chain.append(line) + b"\n")


def many(kind: str) -> Strange:
    def change(folder: Path) -> None:
        forger = Forger(folder)
        forger.lines += [dict(forger.of_kind(kind)[0])] * 20_000
        forger.write()

    return change


def huge_record(opcode: int) -> Strange:
    """A record of more than 4 GB, which takes no room on the disk, in front of a log; the ledger has its hash."""

    def change(folder: Path) -> None:
        path, length = first_log(folder), (4 << 30) + 1
        data = path.read_bytes()
        with path.open("wb") as file:
            file.write(data[:8] + bytes([opcode]) + length.to_bytes(8, "little"))
            file.seek(length, os.SEEK_CUR)
            file.write(data[8:])
        forger = Forger(folder)
        forger.of_kind("ended")[0]["sha256"] = "0" * 64  # hashing it takes longer than the test may
        forger.write()

    return change


def bomb_of_verdicts(folder: Path) -> None:
    forger = Forger(folder)
    verdict = forger.of_kind("verdict")[0]
    log = next(line for line in forger.of_kind("ended") if line["attempt"] == verdict["attempt"])
    path = verdicts_path(forger.log(log))
    path.write_text("a: [" + "[]," * 5_000_000 + "]")
    verdict["sha256"] = sha256_of(path)
    forger.write()


LISTS = b"[" + b"[]," * 8_000_000 + b"[]]"

STRANGE: dict[str, tuple[Strange, str]] = {
    "ledger is a folder": (lambda f: directory(f / LEDGER_FILE), "no campaign"),
    "ledger is a pipe": (lambda f: pipe(f / LEDGER_FILE), "no campaign"),
    "ledger is endless": (lambda f: link(f / LEDGER_FILE), "no campaign"),
    "ledger is of random bytes": (lambda f: (f / LEDGER_FILE).write_bytes(os.urandom(1 << 18) + b"\n"), "begin with"),
    "ledger holds a million lists": (lambda f: add_line(f, b'{"n":99,"kind":"note","note":%b}' % LISTS), "not a line"),
    "ledger is deep": (lambda f: add_line(f, b'{"n":99,"x":%b}' % (b"[" * 99_999 + b"]" * 99_999)), "not a line"),
    "ledger judges without end": (many("verdict"), "too many findings"),
    "ledger begins without end": (many("begun"), "too many findings"),
    "log is a folder": (lambda f: directory(first_log(f)), ".mcap: the log is missing"),
    "log is a pipe": (lambda f: pipe(first_log(f)), ".mcap: the log is missing"),
    "log is endless": (lambda f: link(first_log(f)), ".mcap: is a link"),
    "log is empty": (lambda f: first_log(f).write_bytes(b""), ".mcap: the log is not the one"),
    "log has a huge attachment": (huge_record(9), ".mcap: the log is not the one"),
    "log has a huge chunk": (huge_record(6), ".mcap: the log is not the one"),
    "verdicts are a folder": (lambda f: directory(verdicts_path(first_log(f))), ".yaml: the judges' verdicts"),
    "verdicts are a pipe": (lambda f: pipe(verdicts_path(first_log(f))), ".yaml: the judges' verdicts"),
    "verdicts are endless": (lambda f: link(verdicts_path(first_log(f))), ".yaml: the judges' verdicts"),
    "verdicts hold a million lists": (bomb_of_verdicts, ".yaml"),
    "attempt is a file": (lambda f: text(first_log(f).parent), ".mcap: the log is missing"),
    "logs are a file": (lambda f: text(f / "logs"), ".mcap: the log is missing"),
    "a pipe among the logs": (lambda f: os.mkfifo(f / "logs" / "more.mcap"), "logs/more.mcap: a log that the ledger"),
}


def read_in_child(folder: Path) -> tuple[str, int]:
    """What a verification and a status say of a folder, and the memory that they took, MB."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        said = ""
        try:
            at_first_mb = _peak_mb()  # the parent's, which has run other tests
            said = _said(_verified, folder) + _said(read_status, folder)
            used_mb = _peak_mb() - at_first_mb
            os.write(writing, f"{used_mb}\n{said[:20_000]}{said[-20_000:]}".encode())
        finally:
            os._exit(0 if said else 1)
    os.close(writing)
    with os.fdopen(reading) as pipe_end:
        answer = pipe_end.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"ended with {status}: a foreign error, or more than {LIMIT_S} s"
    used, _, words = answer.partition("\n")
    return words, int(used)


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _said(read: Callable[[Path], object], folder: Path) -> str:
    try:
        return f"{read(folder)}\n"
    except RuntimeFault as error:
        return f"{error.message}\n"


def _verified(folder: Path) -> str:
    found = Verification(folder)
    found.document()
    assert len(found.findings) < 50 * MAX_FINDINGS
    return "\n".join(f"{one.where}: {one.detail}" for one in found.findings)


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", STRANGE)
def test_what_is_strange_is_named_in_bounded_memory(honest: Path, tmp_path: Path, name: str) -> None:
    change, words = STRANGE[name]
    folder = tmp_path / "copy"
    shutil.copytree(honest, folder)
    change(folder)
    said, used_mb = read_in_child(folder)
    assert words in said
    assert used_mb <= MEMORY_MB


def test_an_altered_ledger_ends_in_findings_or_an_error_of_the_project() -> None:
    row = foreign_row(40, seed=3)
    assert row.value == 0, row.note


def test_suspension_clocks_crashes_and_operators_accuse_nobody() -> None:
    row = honest_row(2, seed=1)
    assert row.value == 0, row.note
