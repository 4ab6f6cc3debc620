"""Reader of policy packages from untrusted folders and zips.

Nothing is unpacked to disk, nothing outside the package is opened, nothing is read before its size is checked, and
nothing is used before its hash is checked against the manifest's.
"""

from __future__ import annotations

import hashlib
import stat
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime.common import bounded, config
from robot_runtime.common.closing import Closing
from robot_runtime.errors import PackageError
from robot_runtime.policies.package.manifest import MANIFEST_FILE, PREVIOUS_ACTION, SCHEMA, Manifest

_NETWORKS = (".onnx", ".pt2", ".ts", ".pt", ".pth", ".ckpt")
"""Suffixes of files that hold a network, or should."""

_UNREADABLE = (OSError, zipfile.BadZipFile, ValueError, NotImplementedError)

MAX_FILES = 64
MAX_MANIFEST_BYTES = 1 << 20
MAX_GOLDEN_BYTES = 1 << 28
MAX_MODEL_BYTES = 1 << 31
MAX_DATA_BYTES = 1 << 36


@dataclass(frozen=True)
class PackageFiles:
    """A package in memory, hashes checked; nothing in it was run yet."""

    path: Path
    manifest: Manifest
    model: bytes
    golden: bytes
    data: Mapping[str, bytes] = field(default_factory=dict)


def is_package(path: Path) -> bool:
    """Whether a path looks like a package, good or bad: a folder with a manifest, or a zip."""
    if path.is_file():
        return path.suffix == ".zip" or (path.suffix not in _NETWORKS and zipfile.is_zipfile(path))
    return path.is_dir() and (path / MANIFEST_FILE).exists()


def is_network(path: Path) -> bool:
    """Whether a path looks like a network's file, good or bad."""
    return path.is_file() and path.suffix in _NETWORKS


def framework_of(path: Path) -> str | None:
    """The framework of a policy whose files are weights: a zip of ``stable-baselines3``, a folder of ``lerobot``."""
    if path.is_dir():
        return "lerobot" if all((path / name).is_file() for name in ("config.json", "model.safetensors")) else None
    with suppress(*_UNREADABLE), zipfile.ZipFile(path) as archive:
        return "stable-baselines3" if {"data", "policy.pth"} <= set(archive.namelist()) else None
    return None


def read_manifest(path: Path) -> Manifest:
    """The manifest of a package.

    Raises:
        PackageError: there is no such package, or its manifest cannot be read.
        ConfigError: the manifest is invalid; names the field.
    """
    with _open(path) as container:
        return _manifest(path, container)


def read_manifest_bytes(path: Path) -> bytes:
    """The bytes of a package's manifest, which holds the hashes of all other files. Raises ``PackageError``."""
    with _open(path) as container:
        return container.read(MANIFEST_FILE, MAX_MANIFEST_BYTES)


def read_package(path: Path) -> PackageFiles:
    """A package's files.

    Raises:
        PackageError: there is no such package; a file is missing, too large, or has another hash than the manifest's.
        ConfigError: the manifest is invalid; names the field.
    """
    with _open(path) as container:
        manifest = _manifest(path, container)
        model, golden = manifest.model, manifest.golden
        return PackageFiles(
            path,
            manifest,
            _checked(path, model.file, container.read(model.file, MAX_MODEL_BYTES), model.sha256),
            _checked(path, golden.file, container.read(golden.file, MAX_GOLDEN_BYTES), golden.sha256),
            {
                name: _checked(path, name, container.read(name, MAX_DATA_BYTES), sha256)
                for name, sha256 in model.data.items()
            },
        )


class _Container(Closing):
    """The folder or zip that holds a package's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def read(self, name: str, limit: int) -> bytes:
        """A file's content. Raises ``PackageError`` if it is missing, too large or unreadable."""

    def close(self) -> None:
        """Close the container."""

    def missing(self, name: str) -> PackageError:
        return PackageError(f"{self.path}: there is no {name}", "write the package again, with all its files")

    def too_large(self, name: str, size: int, limit: int) -> PackageError:
        return PackageError(
            f"{self.path}: {name} has {size} bytes, {limit} are allowed", "get it again from its publisher"
        )


class _Folder(_Container):
    def read(self, name: str, limit: int) -> bytes:
        file = self.path / name
        try:
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                raise PackageError(f"{file}: is not a regular file", "put the file itself there, not a link to it")
            if status.st_size > limit:
                raise self.too_large(name, status.st_size, limit)
            return file.read_bytes()
        except FileNotFoundError as error:
            raise self.missing(name) from error
        except OSError as error:
            raise PackageError(f"{file}: cannot be read: {error.strerror}", "check its permissions") from error


class _Zip(_Container):
    """A zip, of which only members are read, by their exact names."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._zip = zipfile.ZipFile(path)
        except _UNREADABLE as error:
            raise PackageError(f"{path}: is not a readable zip: {error}", "copy the package again") from error
        try:
            self._check_names()
            bounded.check_members(self._zip, MAX_FILES, MAX_DATA_BYTES)
        except bounded.TooLarge as error:
            self._zip.close()
            raise PackageError(f"{path}: {error}", "get it again from its publisher") from error
        except PackageError:
            self._zip.close()
            raise

    def close(self) -> None:
        self._zip.close()

    def read(self, name: str, limit: int) -> bytes:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise self.missing(name) from None
        if info.file_size > limit:
            raise self.too_large(name, info.file_size, limit)
        try:
            with self._zip.open(info) as file:
                data = file.read(info.file_size + 1)
        except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise PackageError(f"{self.path}: {name} cannot be read: {error}", "copy the package again") from error
        if len(data) != info.file_size:
            raise PackageError(f"{self.path}: {name} is longer than its entry in the zip", "copy the package again")
        return data

    def _check_names(self) -> None:
        members = self._zip.infolist()
        names = [member.filename for member in members]
        if len(names) > MAX_FILES or len(set(names)) < len(names):
            raise PackageError(
                f"{self.path}: {len(names)} members, of which {MAX_FILES} are allowed, each name once",
                "write the package again",
            )
        for member in members:
            kind = stat.S_IFMT(member.external_attr >> 16)
            if "/" in member.filename or "\\" in member.filename or kind not in (0, stat.S_IFREG):
                raise PackageError(
                    f"{self.path}: member {member.filename!r} is not a plain file next to the manifest",
                    "a package is flat: put its files at the top of the zip",
                )


def _open(path: Path) -> _Container:
    if path.is_dir():
        return _Folder(path)
    if is_network(path):
        raise PackageError(f"{path}: is not a policy package", f"make one: robot-runtime policy package {path}")
    if path.is_file():
        return _Zip(path)
    raise PackageError(f"{path}: there is no such policy package", "give the folder or the zip that holds policy.yaml")


def _manifest(path: Path, container: _Container) -> Manifest:
    where = f"{path}: {MANIFEST_FILE}"
    document = config.parse_yaml(container.read(MANIFEST_FILE, MAX_MANIFEST_BYTES), where)
    return config.parse(_of_today(document), Manifest, where)


def _of_today(document: Any) -> Any:
    """A manifest of schema 1 as one of today's: what could be derived is gone, and inputs have what they need."""
    if not isinstance(document, dict) or document.get("schema") != 1:
        return document
    previous = document.get("previous_action") or {}
    inputs = [
        {**need, **(previous if isinstance(need, dict) and need.get("role") == PREVIOUS_ACTION else {})}
        for need in document.get("inputs", ())
    ]
    gone = ("native_actions", "stop_id", "goal", "recurrent", "previous_action")
    kept = {name: value for name, value in document.items() if name not in gone}
    return {**kept, "schema": SCHEMA, "inputs": inputs}


def _checked(path: Path, name: str, data: bytes, sha256: str) -> bytes:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise PackageError(
            f"{path}: {name} has SHA-256 {found}, the manifest {sha256}",
            "the file was damaged or replaced: get the package again, or write it again if you changed the file",
        )
    return data
