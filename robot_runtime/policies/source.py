"""Where a policy came from, so that a log can have it loaded again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from robot_runtime import config

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class PolicySource:
    """What to load, as a command line says it.

    Attributes:
        spec: of :func:`robot_runtime.policies.load_policy`; paths as they were given.
        arguments: texts, without what is secret.
        python: interpreter or virtual environment of an agent in a process of its own; None for the runtime's own.
        timeout_s: of such an agent, for each answer; None for the default.
        digest: SHA-256 of what was loaded (:func:`digest_of`); None where no file is named.
    """

    spec: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    timeout_s: float | None = None
    digest: str | None = None

    __pydantic_config__ = config.STRICT

    def public(self) -> PolicySource:
        """Without what must not be written into a log: the token that a policy server is shown."""
        return replace(self, arguments={key: value for key, value in self.arguments.items() if key != "token"})

    def __str__(self) -> str:
        said = "".join(f" {key}={value}" for key, value in self.arguments.items())
        return f"{self.spec}{said}" + (f" (SHA-256 {self.digest[:12]})" if self.digest else "")


def digest_of(first: bytes | Path | None, arguments: Mapping[str, str]) -> str | None:
    """SHA-256 over ``first`` and the files that arguments name, in the order of the arguments' names.

    Args:
        first: what stands for the policy: content or a file's path; None where it is no file.

    Returns:
        None where nothing is a file.
    """
    hashed, found = hashlib.sha256(), isinstance(first, bytes)
    if isinstance(first, bytes):
        hashed.update(first)
    files = [first] if isinstance(first, Path) else []
    for file in (*files, *(Path(value) for _, value in sorted(arguments.items()))):
        if file.is_file():
            found = True
            for block in _blocks(file):
                hashed.update(block)
    return hashed.hexdigest() if found else None


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            yield block
