"""Sandbox for pickles of plain data: reads one from standard input and writes it as JSON to standard output.

A pickle is a program. This file runs as a script in its own process, started by
:mod:`robot_runtime.task_kinds.rearrangement.convert_ithor`, with the standard library only. Three measures protect the
machine:

* ``find_class`` rejects all names, so that no class is instantiated and no function called; dictionaries, lists,
  tuples, strings, numbers, booleans and None remain, which is all that the published files contain;
* the process may not write files, start processes, or exceed the limits of memory and time below;
* depth, number and types of the values are checked before they are written.
"""

import gzip
import io
import json
import math
import pickle
import resource
import sys
import zlib

MAX_PICKLE_BYTES = 1 << 30
MAX_MEMORY_BYTES = 6 << 30
MAX_CPU_S = 300
MAX_DEPTH = 16
MAX_VALUES = 50_000_000
MAX_CHARACTERS = 1 << 29
"""Of all texts as they are written: one text in a pickle can stand in a million places."""

REFUSED = 3
"""Exit status of a rejected pickle; the reason is on standard error."""


_MALFORMED = (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError)
"""Errors of opcodes with unexpected operands."""


class Refused(Exception):
    """The pickle is not plain data, or too large."""


class _Unpickler(pickle.Unpickler):
    """Unpickler without access to names."""

    def find_class(self, module: str, name: str) -> object:
        raise Refused(f"uses {module}.{name}".replace("\\n", " ")[:200] + ", and only plain data is allowed")


def main() -> int:
    """Read, check and write."""
    limit_resources()
    try:
        value = unpickle(sys.stdin.buffer.read(MAX_PICKLE_BYTES + 1))
        PlainDataCheck().check(value, 0)
    except Refused as error:
        sys.stderr.write(str(error))
        return REFUSED
    json.dump(value, sys.stdout, separators=(",", ":"), allow_nan=False)
    return 0


def limit_resources() -> None:
    """Forbid files and processes and bound memory and time, permanently for this process."""
    for kind, limit in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def unpickle(data: bytes) -> object:
    """The value of a pickle, gzipped or plain. Raises ``Refused``."""
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                data = stream.read(MAX_PICKLE_BYTES + 1)
    except EOFError:
        raise Refused("is truncated: the gzip stream ends too early") from None
    except (OSError, zlib.error) as error:
        raise Refused(f"is damaged: {error}") from error
    if len(data) > MAX_PICKLE_BYTES:
        raise Refused(f"is larger than {MAX_PICKLE_BYTES} bytes")
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (MemoryError, RecursionError) as error:
        raise Refused("takes too much memory") from error
    except _MALFORMED as error:
        raise Refused(f"is not a pickle of plain data: {type(error).__name__}: {error}"[:300]) from error


class PlainDataCheck:
    """Check that a value is plain data of bounded size."""

    def __init__(self) -> None:
        self.values = 0
        self.characters = 0

    def check(self, value: object, depth: int) -> None:
        """Check a value recursively. Raises ``Refused``."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise Refused(f"holds more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise Refused(f"is nested more than {MAX_DEPTH} deep")
        kind = type(value)
        if kind is dict:
            for key, item in value.items():  # type: ignore[attr-defined]
                if type(key) is not str:
                    raise Refused(f"has a key of type {type(key).__name__}")
                self._count(key)
                self.check(item, depth + 1)
        elif kind in (list, tuple):
            for item in value:  # type: ignore[attr-defined]
                self.check(item, depth + 1)
        elif kind is float:
            if not math.isfinite(value):  # type: ignore[arg-type]
                raise Refused("has a number that is not finite")
        elif kind is int:
            if abs(value) >= 1 << 63:  # type: ignore[arg-type]
                raise Refused("has an integer of more than 64 bits")
        elif kind is str:
            self._count(value)  # type: ignore[arg-type]
        elif kind is not bool and value is not None:
            raise Refused(f"holds a {kind.__name__}, and only plain data is allowed")

    def _count(self, text: str) -> None:
        self.characters += len(text)
        if self.characters > MAX_CHARACTERS:
            raise Refused(f"holds more than {MAX_CHARACTERS} characters of text")


if __name__ == "__main__":
    sys.exit(main())
