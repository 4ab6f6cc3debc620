"""Opener of policies that are files, and what to do about a name that is no policy."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import OPENERS, PolicyOpener
from robot_runtime.policies.package.files import is_package, read_manifest, read_manifest_bytes
from robot_runtime.policies.package.manifest import MANIFEST_FILE
from robot_runtime.policy import Policy


def file_opener(spec: str, agents: Sequence[str]) -> PolicyOpener:
    """The opener of a file or folder; one that raises the reason if that is no policy.

    Args:
        spec: name of the policy, not that of an agent, and without a known scheme.
        agents: names of the agents on offer.
    """
    return PackageOpener() if is_package(Path(spec)) else _NoOpener(_unknown(spec, agents))


class PackageOpener(PolicyOpener):
    """Opener of packages."""

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        from robot_runtime.policies.package.policy import load_package_policy

        return load_package_policy(Path(spec), **arguments)

    @override
    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        read_manifest(Path(spec))

    @override
    def file(self, spec: str) -> Path | None:
        return Path(spec)

    @override
    def content(self, spec: str) -> bytes | Path | None:
        return read_manifest_bytes(Path(spec))


class _NoOpener(PackageOpener):
    def __init__(self, error: RuntimeFault) -> None:
        self._error = error

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        raise self._error

    @override
    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        raise self._error

    @override
    def content(self, spec: str) -> bytes | Path | None:
        raise self._error


def _unknown(spec: str, agents: Sequence[str]) -> PolicyError:
    """The error for a name that is no policy: what was given, and the nearest that works."""
    path, (scheme, colon, rest) = Path(spec), spec.partition(":")
    schemes = OPENERS.names()
    if rest.startswith("//"):
        near = difflib.get_close_matches(scheme, schemes, n=1)
        return PolicyError(
            f"{spec}: no policy is opened by the address of a {scheme}://",
            f"did you mean {near[0]}:{rest}?"
            if near
            else "download it and give the file or folder, or give a policy server as ws://HOST:PORT; there are "
            f"{', '.join(schemes)}",
        )
    if colon and scheme in schemes:
        return PolicyError(f"{spec!r} names no agent", f"write {scheme}:module:Class or {scheme}:file.py:Class")
    if path.suffix == ".py" and path.is_file():
        names = [f"{spec}:{name}" for name in _classes(path)] or [f"{spec}:Class"]
        return PolicyError(f"{spec}: a file of Python is named with its agent's class", f"write {' or '.join(names)}")
    if path.exists():
        what = "a folder without" if path.is_dir() else "no package with"
        return PolicyError(
            f"{spec}: is {what} {MANIFEST_FILE}",
            "give a policy package, or a network: docs/how-to/policies.md has the files that are read",
        )
    if path.suffix or len(path.parts) > 1:
        beside = [str(other) for other in path.parent.glob("*")] if path.parent.is_dir() else []
        near = difflib.get_close_matches(spec, beside, n=1)
        hub = len(path.parts) == 2 and not path.is_absolute() and not path.suffix
        return PolicyError(
            f"{spec}: there is no such file or folder",
            f"did you mean {near[0]}?"
            if near
            else "if it is the name of a model on a hub, download it and give its folder"
            if hub
            else "check the path",
        )
    near = difflib.get_close_matches(spec, agents, n=1)
    return PolicyError(
        f"there is no agent {spec!r}",
        f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(agents)}, module:Class or file.py:Class",
    )


def _classes(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
