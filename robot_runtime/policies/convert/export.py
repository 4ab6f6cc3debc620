"""Export of a checkpoint's file as a proven package."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from robot_runtime.errors import CheckpointError
from robot_runtime.policies.convert.allenact import convert_allenact
from robot_runtime.policies.convert.checkpoint import Checkpoint, Family, family_of, read_checkpoint
from robot_runtime.policies.convert.conversion import Conversion, Options
from robot_runtime.policies.convert.habitat import convert_habitat
from robot_runtime.policies.convert.network_facts import format_of
from robot_runtime.policies.convert.networks.export import EagerNetwork, export
from robot_runtime.policies.convert.proof import run_original
from robot_runtime.policies.package.formats.network import open_network
from robot_runtime.policies.package.golden import check, record
from robot_runtime.policies.package.manifest import Proof
from robot_runtime.policies.package.observations import patchwork
from robot_runtime.policies.package.policy import Package, load_package
from robot_runtime.policies.package.writer import write_package

_CONVERTERS: Mapping[Family, Callable[[Checkpoint, Options], Conversion]] = {
    "habitat": convert_habitat,
    "allenact": convert_allenact,
}


@dataclass(frozen=True)
class Exported:
    """Result of an export.

    Attributes:
        package: written and loaded again, which checks its golden rollout.
        proofs: against the runtime's own network, then against the framework if it ran; the package holds the last one.
        notes: sentences about the checkpoint: what its pickle asked for, and where its task differs from the given one.
    """

    package: Package
    proofs: tuple[Proof, ...]
    notes: tuple[str, ...]


def export_checkpoint(path: Path, out: Path, options: Options, framework_python: Path | None = None) -> Exported:
    """Convert a checkpoint, prove the result, and write it as a package. An unproven result is not written.

    Args:
        path: path of the checkpoint.
        out: path of the package, a folder or ``.zip``.
        options: facts that the checkpoint does not hold.
        framework_python: interpreter with the framework; None to prove against the runtime's own network alone.

    Raises:
        CheckpointError: the checkpoint cannot be read or converted.
        PolicyError: network or framework failed.
        PackageError: the package is invalid, or the exported network computes something else.
        OSError: the package cannot be written.
    """
    if format_of(path) is not None:
        raise CheckpointError(f"{path}: is a network, not a checkpoint", f"robot-runtime policy package {path}")
    checkpoint = read_checkpoint(path)
    family = family_of(checkpoint) if options.family == "auto" else options.family
    conversion = _CONVERTERS[family](checkpoint, options)
    manifest = conversion.manifest
    observations = [patchwork(manifest, seed) for seed in range(options.steps)]
    golden = record(
        manifest,
        EagerNetwork(manifest, conversion.module),
        observations,
        starts=(0, options.steps // 2),
        original=f"our own definition, torch {torch.__version__}",
    )
    model = _export(conversion, options)
    network = open_network(manifest, model)
    proofs = [check(manifest, golden, network).proof(golden.original)]
    if framework_python is not None:
        golden = run_original(framework_python, conversion.original, manifest, golden)
        proofs.append(check(manifest, golden, network).proof(golden.original))
    network.close()
    write_package(out, manifest, model, golden)
    return Exported(load_package(out), tuple(proofs), (*checkpoint.warnings, *conversion.notes))


def _export(conversion: Conversion, options: Options) -> bytes:
    try:
        return export(conversion.module, conversion.manifest, options.format)
    except Exception as error:  # the exporters raise many types
        raise CheckpointError(
            f"the network cannot be exported as {options.format}: {type(error).__name__}: {error}",
            "choose another --format, or check torch's version",
        ) from error
