"""Writer of policy packages, for converters and training scripts; it proves what it writes."""

import hashlib
import zipfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from robot_runtime.common import config
from robot_runtime.common.creating import creating
from robot_runtime.common.yaml_text import YamlDumper, dump_yaml
from robot_runtime.errors import PackageError
from robot_runtime.policies.package import golden as rollouts
from robot_runtime.policies.package.files import read_package
from robot_runtime.policies.package.formats.network import Execution, open_network
from robot_runtime.policies.package.golden import Golden
from robot_runtime.policies.package.manifest import MANIFEST_FILE, GoldenFile, Manifest, Proof

UNKNOWN_SHA256 = "0" * 64
"""Placeholder of a manifest's hashes; :func:`write_package` replaces it."""

UNPROVEN = Proof("nothing yet", steps=1, same_actions=0, max_logit_difference=0.0)
"""Placeholder of a manifest's proof; :func:`write_package` replaces it."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)


def write_package(
    path: Path, manifest: Manifest, model: bytes, golden: Golden, weights: Mapping[str, bytes] | None = None
) -> Manifest:
    """Check a network against its golden rollout, write both as a package, read it back, and return its manifest.

    The same arguments give the same bytes. A network that does not repeat the rollout is not written.

    Args:
        path: a zip if it ends in ``.zip``, else a folder, made if missing; files of the package in it are replaced.
        manifest: its hashes, ``golden.steps`` and ``proof`` are computed here.
        model: content of the network's file.
        golden: the original network's rollout.
        weights: content of the files with weights that the network's file names.

    Raises:
        PackageError: the network does not repeat the rollout within the manifest's tolerances, files of the package
            have the same name, or the package cannot be read back.
        PolicyError: the network failed, or the library that runs it is missing or too old.
        ConfigError: the manifest cannot be read back.
        OSError: the files cannot be written.
    """
    manifest, model, golden_bytes = sealed(manifest, model, golden, weights or {})
    recorded = rollouts.read(manifest, golden_bytes)
    with closing(open_network(manifest, model, Execution(device="cpu"), weights)) as network:
        found = rollouts.check(manifest, recorded, network)
    manifest = replace(manifest, proof=found.proof(golden.original))
    files = {
        MANIFEST_FILE: manifest_yaml(manifest).encode(),
        manifest.model.file: model,
        manifest.golden.file: golden_bytes,
        **(weights or {}),
    }
    if len(files) < 3 + len(weights or ()):
        raise PackageError("manifest, model and golden rollout have names in common", "give each its own")
    with creating(path) as draft:
        if path.suffix == ".zip":
            with zipfile.ZipFile(draft, "w") as archive:
                for name, data in files.items():
                    archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data)  # stored: weights do not shrink
        else:
            draft.mkdir(exist_ok=True)
            for name, data in files.items():
                (draft / name).write_bytes(data)
    return read_package(path).manifest


def sealed(
    manifest: Manifest, model: bytes, golden: Golden, weights: Mapping[str, bytes]
) -> tuple[Manifest, bytes, bytes]:
    """The manifest with the files' hashes, the network, and the rollout's content."""
    rollout = golden.to_bytes()
    data = {name: _sha256(content) for name, content in weights.items()}
    manifest = replace(
        manifest,
        model=replace(manifest.model, sha256=_sha256(model), data=data),
        golden=replace(manifest.golden, sha256=_sha256(rollout), steps=golden.steps),
    )
    return manifest, model, rollout


def golden_file(name: str = "golden.npz") -> GoldenFile:
    """The manifest's entry of a rollout that is not written yet."""
    return GoldenFile(name, UNKNOWN_SHA256, steps=1)


def manifest_yaml(manifest: Manifest) -> str:
    """The manifest as YAML, in the order of its fields, without those that are None."""
    document = config.unparse(manifest)
    document["preprocess"] = [{"op": step.pop("op"), **step} for step in document["preprocess"]]
    return dump_yaml(document, _Dumper, width=120)


class _Dumper(YamlDumper):
    """Dumper without anchors; flat lists are on one line."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        flat = not any(isinstance(item, (list, dict)) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=flat)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
