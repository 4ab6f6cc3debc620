"""How long a package's decisions take: the whole of :meth:`PackagePolicy.act`, and the network's part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_runtime.clock import Stopwatch
from robot_runtime.imaging.preprocess import preprocess
from robot_runtime.policies.formats.network import Array, Network
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.policies.package.policy import Package, PackagePolicy
from robot_runtime.sensors import SENSORS

_FAR = 10.0
_MANY = 1 << 15


@dataclass(frozen=True)
class Times:
    """Milliseconds per call, one for each step.

    Attributes:
        network: of the network alone, with inputs at hand. preprocess: of the manifest's operations.
        decide: of the policy from observation to action, which has both in it.
    """

    network: Sequence[float]
    preprocess: Sequence[float]
    decide: Sequence[float]


def time_package(package: Package, steps: int, seed: int = 0) -> Times:
    """Time the three side by side, a round each per step, so that whatever else the machine does hits them alike."""
    manifest = package.manifest
    observations = [random_observation(manifest, seed + number) for number in range(4)]
    watching = _Watching(package.network)
    policy = PackagePolicy(Package(package.path, manifest, watching, package.agreement))
    policy.reset(manifest.task, seed)
    policy.act(observations[0])
    fixed = dict(watching.inputs)
    network, prepared, decide = [], [], []
    watch = Stopwatch()
    for step in range(steps):
        observation = observations[step % len(observations)]
        watch.restart()
        package.network.run(fixed)
        network.append(1000 * watch.restart())
        preprocess(observation, manifest.preprocess)
        prepared.append(1000 * watch.restart())
        policy.act(observation)
        decide.append(1000 * watch.restart())
    return Times(network, prepared, decide)


def random_observation(manifest: Manifest, seed: int) -> dict[str, Array]:
    """Noise in the shapes, types and bounds of the task's sensors that the policy takes."""
    random = np.random.default_rng(seed)
    observation: dict[str, Array] = {}
    for name in manifest.needs:
        sensor = SENSORS[name]
        low, high = sensor.bounds(manifest.task)
        shape = sensor.shape(manifest.task)
        if np.dtype(sensor.dtype).kind == "f":
            lowest, highest = np.maximum(low, -_FAR), np.minimum(high, _FAR)
            observation[name] = (lowest + (highest - lowest) * random.random(shape)).astype(sensor.dtype)
        else:
            numbers = random.integers(np.asarray(low, np.int64), np.minimum(high, _MANY), shape, endpoint=True)
            observation[name] = numbers.astype(sensor.dtype)
    return observation


class _Watching(Network):
    """Passes everything on, and keeps the last inputs."""

    def __init__(self, network: Network) -> None:
        self.runtime = network.runtime
        self.inputs: Mapping[str, Array] = {}
        self._network = network

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.inputs = inputs
        return self._network.run(inputs)
