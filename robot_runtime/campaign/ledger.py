"""Ledger of a campaign: what happened, one JSON line each, appended, chained by hash, and on the disk before the next.

Each line holds its number ``n``, the time ``at`` (UTC), the seconds ``up_s`` since the computer was started and the id
``boot`` of that start, ``kind``, the content, a signature (Ed25519) where the plan names a signer, and ``chain``
(:class:`.recording.integrity.Chain`). Nothing is ever changed or removed. The hash chain is not a signature:
anyone can recompute it. Without the signer's private key, nobody can write another history.
"""

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from robot_runtime.common.clock import SystemClock, utc_now_iso, wait_for
from robot_runtime.common.closing import Closing
from robot_runtime.common.config import no_constant, unique_keys
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.recording.durable_file import sync_folder
from robot_runtime.recording.integrity import Chain
from robot_runtime.recording.log_files import LEDGER_FILE

LOGS = "logs"
"""Folder of the logs in a campaign's, with a folder for each attempt."""

START, OVERLAY = "start.png", "overlay.png"
"""Pictures in an attempt's folder: of the run's start, and the same over the live image during placement."""

MAX_BYTES = 1 << 25
"""Largest ledger that is read: some 3,000 runs. Parsed, 32 MB may take hundreds."""

MAX_PARTS = 1 << 20
"""Lists, objects and their parts in a line that is read: empty ones take twenty times as much memory as text."""

CLOCK_TOLERANCE_S = 2.0
"""Largest step back of the computer's clock between two lines: time servers correct less than that."""

LOCK_S = 2.0
"""Wait for another process before it counts as running the campaign."""

FREE_BYTES = 200 << 20
"""Space that must be free before a run begins."""

Sign = Callable[[bytes], str]
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Entry:
    """One line.

    Attributes:
        n: its number, from 0.
        kind: one word.
        content: the complete line, with ``n``, ``at`` and so on.
        raw: its bytes, without the line's end.
    """

    n: int
    kind: str
    content: Mapping[str, Any]
    raw: bytes

    def __getitem__(self, name: str) -> Any:
        return self.content[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or the default."""
        return self.content.get(name, default)

    @property
    def at(self) -> datetime:
        """Time of the line."""
        return datetime.fromisoformat(self.content["at"])


class Ledger(Closing):
    """The ledger, open for appending; a context, for one process at a time.

    A last line that a power failure cut off is removed, and the next line, of kind ``recovered``, says so, unless the
    ledger is then empty.

    Args:
        folder: folder of the campaign; created if it is missing.
        sign: makes the signature of a line, given what it covers; None for none.
        now: the time (UTC, ISO 8601).

    Attributes:
        entries: all lines, the new ones included.

    Raises:
        ConfigError: another process has it open.
        RecordingError: it was altered, or cannot be read or written.
    """

    def __init__(self, folder: Path, sign: Sign | None = None, now: Callable[[], str] = utc_now_iso) -> None:
        self.folder, self.path = folder, folder / LEDGER_FILE
        self._sign, self._now = sign, now
        self._chain = Chain()
        self.entries: list[Entry] = []
        with writing(self.path, "make the folder writable"):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._lock()
            self._open()
        except BaseException:
            self.close()
            raise

    def append(self, kind: str, **content: Any) -> Entry:
        """Add a line and return it once it is on the disk.

        Raises:
            RecordingError: it cannot be written (disk full); the ledger is then as before.
        """
        record = {"n": len(self.entries), "at": self._now(), "up_s": _up_s(), "boot": _boot()}
        data = json.dumps(record | {"kind": kind} | content, allow_nan=False, separators=(",", ":")).encode()
        if self._sign is not None:
            signature = self._sign(self._chain.digest.encode() + data)
            data = data[:-1] + f',"signature":"{signature}"}}'.encode()
        chain = Chain()
        chain.digest = self._chain.digest
        line = chain.append(data)
        with writing(self.path, "free space on the disk, and repeat the command: nothing is lost"):
            self._write(line + b"\n")
        self._chain = chain
        self.entries.append(Entry(record["n"], kind, json.loads(line), line))  # type: ignore[arg-type]
        return self.entries[-1]

    @property
    def head(self) -> str:
        """Hash over the complete ledger so far."""
        return self._chain.digest

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def check_clock(self) -> None:
        """Raise ``ConfigError`` if the computer's clock is behind the latest time of the ledger."""
        now = datetime.fromisoformat(self._now())
        behind_s = (max(entry.at for entry in self.entries) - now).total_seconds() if self.entries else 0.0
        if behind_s > CLOCK_TOLERANCE_S:
            raise ConfigError(
                f"the computer's clock was set back: it is {behind_s:.0f} s behind the latest line of {self.path}",
                "set the clock right, and repeat the command",
            )

    def _lock(self) -> None:
        # Others hold it for moments only: to see whether it is held, or to add a verdict.
        if not take_lock(self._file, LOCK_S):
            raise ConfigError(
                f"{self.folder}: another process runs this campaign", "wait until it ends, or stop it with Ctrl-C"
            )

    def _open(self) -> None:
        data = read_bytes(self.path)
        whole = data[: data.rfind(b"\n") + 1]
        self.entries, self._chain = parse_ledger(self.path, whole)
        if rest := data[len(whole) :]:
            with writing(self.path):
                os.ftruncate(self._file, len(whole))
            if whole:  # else nothing has happened yet
                self.append("recovered", bytes=len(rest), sha256=hashlib.sha256(rest).hexdigest())
        sync_folder(self.folder)

    def _write(self, line: bytes) -> None:
        start = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(28, "the disk is full")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, start)
            raise


def read_bytes(path: Path) -> bytes:
    """Content of a ledger. Raises ``RecordingError``: it cannot be read, or is larger than :data:`MAX_BYTES`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}", "make the file readable") from error
    if len(data) > MAX_BYTES:
        raise RecordingError(f"{path}: has more than {MAX_BYTES >> 20} MB", "restore the ledger as it was written")
    return data


def parse_ledger(path: Path, data: bytes) -> tuple[list[Entry], Chain]:
    """Lines of a ledger, and the chain up to the last.

    Raises:
        RecordingError: a line is not JSON, or does not continue the chain.
    """
    entries: list[Entry] = []
    chain = Chain()
    for number, raw in enumerate(data.split(b"\n")[:-1]):
        entry = parse_line(raw)
        if entry is None or entry.n != number or not chain.follows(raw):
            raise RecordingError(
                f"{path}: line {number + 1} was altered, or a line before it is missing",
                "restore the file as it was written; `robot-runtime campaign verify` names what differs",
            )
        entries.append(entry)
    return entries, chain


def parse_line(raw: bytes) -> Entry | None:
    """A line's content, its fields unchecked; None for what is not JSON, has NaN, repeated keys, or too many parts."""
    if sum(map(raw.count, (b",", b"[", b"{"))) > MAX_PARTS:
        return None
    try:
        content = json.loads(raw, parse_constant=no_constant, object_pairs_hook=unique_keys)
        number, kind = content["n"], content["kind"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (isinstance(number, int) and isinstance(kind, str) and isinstance(content, dict)):
        return None
    return Entry(number, kind, content, raw)


def read_ledger(folder: Path) -> list[Entry]:
    """All complete lines, without a lock, also while another process appends.

    Raises:
        ConfigError: there is none.
        RecordingError: it was altered.
    """
    path = folder / LEDGER_FILE
    if not path.is_file():
        raise ConfigError(f"no campaign in {folder}", "give the folder in which a campaign was run, or its plan")
    data = read_bytes(path)
    return parse_ledger(path, data[: data.rfind(b"\n") + 1])[0]


def read_heads(texts: Iterable[str]) -> dict[int, str]:
    """Heads as ``LINE:HEAD``, where LINE counts from 0 as in the ledger's ``n``. Raises ``ConfigError``."""
    heads = {}
    for text in texts:
        number, colon, head = text.partition(":")
        if not (colon and number.isdecimal() and re.fullmatch(r"[0-9a-f]{64}", head)):
            raise ConfigError(f"{text!r} is not a head", "write it as LINE:HEAD, as the hook posted it")
        heads[int(number)] = head
    return heads


def take_lock(file: int | IO[Any], limit_s: float) -> bool:
    """Lock an open file for this process alone; False if another process still has it locked after ``limit_s``."""

    def locked() -> bool | None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return True

    return wait_for(SystemClock(), locked, limit_s, 0.05) is not None


def is_running(folder: Path) -> bool:
    """Whether a process has the campaign open."""
    try:
        with (folder / LEDGER_FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def check_space(folder: Path) -> None:
    """Raise ``RecordingError`` if the disk has no room for another run."""
    state = os.statvfs(folder)
    free = state.f_bavail * state.f_frsize
    if free < FREE_BYTES:
        raise RecordingError(
            f"{folder}: only {free >> 20} MB are free, {FREE_BYTES >> 20} MB are needed before a run begins",
            "free space on the disk, and repeat the command: nothing is lost",
        )


def _up_s() -> float:
    """Seconds since the computer was started, those in which it was suspended included, as its wall clock has them."""
    return round(time.clock_gettime(time.CLOCK_BOOTTIME), 3)


def _boot() -> str:
    return _BOOT_ID.read_text().strip()[:8] if _BOOT_ID.exists() else ""
