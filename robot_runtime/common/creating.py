"""Output files and folders that are complete or do not exist."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robot_runtime.errors import writing


@contextmanager
def creating(path: Path, remedy: str = "give another file", fresh: bool = False) -> Iterator[Path]:
    """A draft of a file or folder; it replaces the path when the block succeeds, and is removed when it fails.

    Folders around it are made; a folder, device or pipe that is there already is written in place.

    Raises:
        RecordingError: the path cannot be written, or exists although ``fresh``.
    """
    with writing(path, remedy):
        if fresh and path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        target = path.resolve()
        if target.exists() and not target.is_file():
            yield path
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
            draft = Path(folder, target.name)
            yield draft
            draft.replace(target)
