"""Opener of policies that are files, and the errors of names that are not policies."""

import ast
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from robot_runtime.common import config
from robot_runtime.errors import PolicyError
from robot_runtime.policies.isolation import Isolation
from robot_runtime.policies.openers import OPENERS, PolicyOpener
from robot_runtime.policies.package.files import (
    PackageFiles,
    framework_of,
    is_network,
    is_package,
    read_manifest,
    read_manifest_bytes,
    read_package,
)
from robot_runtime.policies.package.manifest import MANIFEST_FILE
from robot_runtime.policy import Policy

_DRAFT = ("task", "rgb", "about")


class FileOpener(PolicyOpener):
    """Opener of packages, and of networks as the packages that would be made of them."""

    def __init__(self, agents: Sequence[str]) -> None:
        self._agents = agents

    @override
    def open(self, spec: str, isolation: Isolation | None, arguments: dict[str, Any]) -> Policy:
        """A network's arguments besides a package's are ``task``, ``rgb`` and ``about``, a YAML file of fields."""
        self.check(spec, arguments)
        from robot_runtime.policies.package.policy import package_policy

        path = Path(spec)
        if not is_network(path):
            return package_policy(read_package(path), arguments)
        from robot_runtime.policies.convert.draft import OpenQuestionsError, draft
        from robot_runtime.policies.package.writer import sealed

        said = {key: arguments.pop(key) for key in _DRAFT if key in arguments}
        if "about" in said:
            said["about"] = config.read_yaml(Path(said["about"]))
        try:
            manifest, facts, golden = draft(path, **said)
        except OpenQuestionsError as error:
            error.remedy = f"robot-runtime policy package {path} {error.remedy}"
            raise
        files = sealed(manifest, facts.model, golden, facts.weights)
        return package_policy(PackageFiles(path, *files, facts.weights), arguments)

    @override
    def check(self, spec: str, arguments: Mapping[str, Any]) -> None:
        if framework := framework_of(Path(spec)):
            raise PolicyError(
                f"{spec}: is a policy of {framework}, which has weights and no network",
                f"robot-runtime policy package {spec} --framework-python PYTHON, of one that has {framework}",
            )
        if is_package(Path(spec)):
            read_manifest(Path(spec))
        elif not is_network(Path(spec)):
            raise _unknown(spec, self._agents)

    @override
    def file(self, spec: str) -> Path | None:
        return Path(spec)

    @override
    def content(self, spec: str) -> bytes | Path | None:
        self.check(spec, {})
        return Path(spec) if is_network(Path(spec)) else read_manifest_bytes(Path(spec))


def _unknown(spec: str, agents: Sequence[str]) -> PolicyError:
    """The error for a name that is not a policy: what was given, and the nearest name that works."""
    path, (scheme, colon, rest) = Path(spec), spec.partition(":")
    schemes = OPENERS.names()
    if rest.startswith("//"):
        return PolicyError(
            f"{spec}: no policy is opened by the address of a {scheme}://",
            _nearest(scheme, schemes, f":{rest}")
            or "download it and give the file or folder, or give a policy server as ws://HOST:PORT; there are "
            f"{', '.join(schemes)}",
        )
    if colon and scheme in schemes:
        return PolicyError(f"{spec!r} names no agent", f"write {scheme}:module:Class or {scheme}:file.py:Class")
    if path.suffix == ".py" and path.is_file():
        names = [f"{spec}:{name}" for name in _classes(path)] or [f"{spec}:Class"]
        return PolicyError(f"{spec}: a file of Python is named with its agent's class", f"write {' or '.join(names)}")
    if path.exists():
        return PolicyError(
            f"{spec}: is {'a folder without' if path.is_dir() else 'no package with'} {MANIFEST_FILE}",
            "give a policy package, or a network: docs/how-to/policies.md has the files that are read",
        )
    if path.suffix or len(path.parts) > 1:
        beside = [str(other) for other in path.parent.glob("*")] if path.parent.is_dir() else []
        hub = len(path.parts) == 2 and not path.is_absolute() and not path.suffix
        remedy = "if it is a model on a hub, download it and give its folder" if hub else "check the package's path"
        return PolicyError(f"{spec}: there is no such file or folder", _nearest(spec, beside) or remedy)
    return PolicyError(
        f"there is no agent {spec!r}",
        _nearest(spec, agents) or f"use one of {', '.join(agents)}, module:Class or file.py:Class",
    )


def _nearest(name: str, names: Sequence[str], rest: str = "") -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0] + rest!r}?" if near else ""


def _classes(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
