"""How long a package's decisions take: from the camera's frame, from the observation, and the network alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import RgbdFrame
from robot_runtime.imaging.preprocess import preprocess
from robot_runtime.policies.package.formats.network import Array, Network
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.policies.package.policy import Package, PackagePolicy
from robot_runtime.policies.package.rollout import Rollout, prepare
from robot_runtime.sensors import SENSORS, ObservationBuilder

_FAR = 10.0
_MANY = 1 << 15
_DIFFERENT = 4


@dataclass(frozen=True)
class Times:
    """Milliseconds, one for each step.

    Attributes:
        network: of the network alone, with inputs at hand. preprocess: of the manifest's operations.
        decide: of the policy from observation to action, which has both in it.
        added: from a camera's frame (without a point goal: from the observation) to the action, less what the network
            took of it.
    """

    network: Sequence[float]
    preprocess: Sequence[float]
    decide: Sequence[float]
    added: Sequence[float]


def time_package(package: Package, steps: int, seed: int = 0) -> Times:
    """Time all of them in every step, so that whatever else the machine does hits them alike."""
    manifest = package.manifest
    observations = [random_observation(manifest, seed + number) for number in range(_DIFFERENT)]
    inputs = fixed_inputs(package, seed)
    watching = _Watching(package.network)
    policy = PackagePolicy(replace(package, network=watching))
    policy.reset(manifest.task, seed)
    builder = _builder(manifest)
    frames = [_frame(manifest, seed + number) for number in range(_DIFFERENT)]
    policy.act(observations[0])
    network, prepared, decide, added = [], [], [], []
    watch = Stopwatch()
    for step in range(steps):
        observation = observations[step % _DIFFERENT]
        watch.restart()
        package.network.run(inputs)
        network.append(1000 * watch.restart())
        preprocess(observation, manifest.preprocess)
        prepared.append(1000 * watch.restart())
        policy.act(observation)
        decide.append(1000 * watch.restart())
        if builder is not None:
            observation = builder.build(frames[step % _DIFFERENT], SE2(0.1, 0.2, 0.3))
        policy.act(observation)
        added.append(1000 * (watch.restart() - watching.elapsed_s))
    return Times(network, prepared, decide, added)


def fixed_inputs(package: Package, seed: int) -> dict[str, Array]:
    """What one step in the middle of an episode hands to the network."""
    watching = _Watching(package.network)
    rollout = Rollout(package.manifest, watching)
    for step in range(2):
        rollout.step(prepare(package.manifest, random_observation(package.manifest, seed + step)))
        rollout.acted(0)
    return watching.inputs


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


def _builder(manifest: Manifest) -> ObservationBuilder | None:
    if manifest.task.kind != "pointnav":
        return None
    return ObservationBuilder(manifest.task, SE2(), goal=(3.0, 1.0))


def _frame(manifest: Manifest, seed: int) -> RgbdFrame:
    random = np.random.default_rng(seed)
    size = (manifest.task.camera.height, manifest.task.camera.width)
    depth_m = random.uniform(0.0, manifest.task.camera.depth_max_m, size).astype(np.float32)
    return RgbdFrame(0, random.integers(0, 256, (*size, 3), np.uint8), depth_m)


class _Watching(Network):
    """Passes everything on, and keeps the last inputs and how long they took."""

    def __init__(self, network: Network) -> None:
        self.runtime = network.runtime
        self.inputs: dict[str, Array] = {}
        self.elapsed_s = 0.0
        self._network = network

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.inputs = dict(inputs)
        watch = Stopwatch()
        outputs = self._network.run(inputs)
        self.elapsed_s = watch.elapsed_s()
        return outputs
