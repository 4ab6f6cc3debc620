"""Timing of a package's decisions: from the camera's frame, from the observation, and of the network alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_runtime.common.clock import Stopwatch
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import RgbdFrame
from robot_runtime.policies.package.formats.network import Array, Network
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.policies.package.observations import patchwork
from robot_runtime.policies.package.policy import Package, PackagePolicy
from robot_runtime.policies.package.rollout import Rollout, prepare
from robot_runtime.sensors import ObservationBuilder
from robot_runtime.tasks.kind import kind_of, sensor_of

_OBSERVATIONS = 4


@dataclass(frozen=True)
class Times:
    """Milliseconds, one for each step.

    Attributes:
        network: the network alone, with prepared inputs.
        preprocess: the manifest's operations.
        decide: the policy from observation to action, network and preprocessing included.
        added: time from a camera's frame to the action, less the network's time; from the observation where there is
            no point goal, or an image of the goal.
    """

    network: Sequence[float]
    preprocess: Sequence[float]
    decide: Sequence[float]
    added: Sequence[float]


def time_package(package: Package, steps: int, seed: int = 0) -> Times:
    """Time all parts in every step, so that other load on the machine affects them equally."""
    manifest = package.manifest
    observations = [patchwork(manifest, seed + number) for number in range(_OBSERVATIONS)]
    inputs = fixed_inputs(package, seed)
    timed = _TimedNetwork(package.network)
    policy = PackagePolicy(replace(package, network=timed))
    policy.reset(manifest.task, seed)
    builder = _builder(manifest)
    frames = [_frame(manifest, seed + number) for number in range(_OBSERVATIONS)]
    policy.answered(observations[0])
    network, prepared, decide, added = [], [], [], []
    timer = Stopwatch()
    for step in range(steps):
        observation = observations[step % _OBSERVATIONS]
        timer.restart()
        package.network.run(inputs)
        network.append(1000 * timer.restart())
        prepare(manifest, observation)
        prepared.append(1000 * timer.restart())
        policy.answered(observation)
        decide.append(1000 * timer.restart())
        if builder is not None:
            observation = builder.build(frames[step % _OBSERVATIONS], SE2(0.1, 0.2, 0.3))
        policy.answered(observation)
        added.append(1000 * (timer.restart() - timed.elapsed_s))
    return Times(network, prepared, decide, added)


def fixed_inputs(package: Package, seed: int) -> dict[str, Array]:
    """The network's inputs at one step in the middle of an episode."""
    timed = _TimedNetwork(package.network)
    rollout = Rollout(package.manifest, timed)
    for step in range(2):
        rollout.step(prepare(package.manifest, patchwork(package.manifest, seed + step)))
        rollout.acted(0)
    return timed.inputs


def _builder(manifest: Manifest) -> ObservationBuilder | None:
    task = manifest.task
    goal, sensors = kind_of(task).example_goal(), (sensor_of(task, name) for name in task.sensors)
    if goal is None or any(sensor.goal_type and len(sensor.shape(task)) == 3 for sensor in sensors):
        return None  # an image of a goal is an episode's
    return ObservationBuilder(task, SE2(), goal)


def _frame(manifest: Manifest, seed: int) -> RgbdFrame:
    random = np.random.default_rng(seed)
    size = (manifest.task.camera.height, manifest.task.camera.width)
    depth_m = random.uniform(0.0, manifest.task.camera.depth_max_m, size).astype(np.float32)
    return RgbdFrame(0, random.integers(0, 256, (*size, 3), np.uint8), depth_m)


class _TimedNetwork(Network):
    """Wrapper of a network that records the last inputs and their time."""

    def __init__(self, network: Network) -> None:
        self.runtime = network.runtime
        self.inputs: dict[str, Array] = {}
        self.elapsed_s = 0.0
        self._network = network

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.inputs = dict(inputs)
        timer = Stopwatch()
        outputs = self._network.run(inputs)
        self.elapsed_s = timer.elapsed_s()
        return outputs
