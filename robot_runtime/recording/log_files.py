"""Log files of a run's folder."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from robot_runtime.errors import RecordingError

LEDGER_FILE = "ledger.jsonl"
"""Name of the ledger next to the logs of a run or a campaign."""


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """The given files and every ``*.mcap`` below the given folders, sorted, without duplicates.

    Raises:
        RecordingError: a path does not exist, or a folder has no log.
    """
    logs: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder", "give log files, or folders that hold them")
        inside = sorted(path.rglob("*.mcap")) if path.is_dir() else [path]
        if not inside:
            raise RecordingError(f"no *.mcap logs in {path}", "give the folder that a run wrote")
        for log in inside:
            logs.setdefault(log.resolve(), log)
    return list(logs.values())


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
