"""``bench policy``: overhead of the runtime around a network, and the network beside eager PyTorch.

The network is DD-PPO's depth policy with ResNet-50 and two layers of LSTM, with random weights, on which time does not
depend. The bench needs torch to make the network and as the rival; processes that it measures run without torch.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.common.clock import Stopwatch
from tests.benchmarks.report import JsonFile, Row, report

if TYPE_CHECKING:
    from robot_runtime.policies.package.formats.network import Array, Network
    from robot_runtime.policies.package.manifest import Manifest
    from robot_runtime.policies.package.policy import Package

ROUNDS = 3
"""Rounds in which compared networks take turns; the figure is the median over the rounds."""

CHILD_LIMIT_S = 120.0

_TORCH_MISSING = "torch is not installed: pip install 'robot-runtime[torch]' onnx onnxscript"


def policy(
    steps: Annotated[int, typer.Option(min=30, help="Decisions per measurement.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of weights and observations.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure a ResNet50-LSTM depth policy at 640x480: overhead, ONNX and PyTorch, jitter, memory, start, bridges;
    how well a robot follows trajectories and velocities while it moves."""
    from robot_runtime.common.console import console
    from robot_runtime.errors import ConfigError

    try:
        import torch  # noqa: F401  # without it there is nothing to measure
    except ImportError as error:
        raise ConfigError("the benchmark makes its network with torch", _TORCH_MISSING) from error
    from robot_runtime.policies.package.policy import load_package
    from tests.benchmarks.runtime import policy_servers, pursuit, robothor_server
    from tests.benchmarks.sim import habitat

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.zip"
        eager = make_package(path, seed)
        package = load_package(path)
        rows = [
            overhead_row(package, steps, seed),
            rival_row(package, eager, steps, seed),
            jitter_row(package, steps, seed),
            memory_row(path, Path(folder) / "logs"),
            ready_row(path),
            *robothor_server.rows(steps, seed),
            policy_servers.overhead_row(steps, seed),
            policy_servers.zoo_row(),
        ]
    rows += [*habitat.rows(steps, seed), *pursuit.rows()]
    report("policy", rows, json, console)


def make_package(path: Path, seed: int) -> Network:
    """Write the benchmark's package; returns the network that it was exported from, in eager PyTorch, one thread."""
    import torch

    from robot_runtime.policies.convert.networks.ddppo import DdppoConfig, DdppoPolicy
    from robot_runtime.policies.convert.networks.export import EagerNetwork, export
    from robot_runtime.policies.package.golden import record
    from robot_runtime.policies.package.observations import patchwork
    from robot_runtime.policies.package.writer import write_package

    network = DdppoConfig()
    manifest = bench_manifest(network)
    torch.manual_seed(seed)
    module = DdppoPolicy(network)
    eager = EagerNetwork(manifest, module)
    golden = record(manifest, eager, [patchwork(manifest, seed + step) for step in range(5)])
    write_package(path, manifest, export(module, manifest, "onnx"), golden)
    return eager


def bench_manifest(network: object) -> Manifest:
    """DD-PPO's package on the LoCoBot's camera: shortest side to 256 pixels, then the middle."""
    from robot_runtime.common.version import VERSION
    from robot_runtime.imaging.preprocess import CenterCrop, ResizeShortestEdge
    from robot_runtime.policies.convert.networks.ddppo import DdppoConfig
    from robot_runtime.policies.convert.networks.export import OPSET
    from robot_runtime.policies.package import manifest as m
    from robot_runtime.policies.package.writer import UNKNOWN_SHA256, UNPROVEN, golden_file
    from robot_runtime.tasks.task import load_task

    assert isinstance(network, DdppoConfig)
    task = load_task("pointnav_gps_compass")
    state = network.state_shape
    return m.Manifest(
        schema=m.SCHEMA,
        name="bench-resnet50-lstm",
        task=task,
        sources=(m.Source("random weights", "MIT"),),
        converter=m.Converter("bench policy", VERSION),
        proof=UNPROVEN,
        model=m.Model("model.onnx", "onnx", UNKNOWN_SHA256, "1.20.1", OPSET),
        inputs=(
            m.Need("depth", "depth", "float32", (1, network.height, network.width, 1)),
            m.Need("pointgoal", "pointgoal_with_gps_compass", "float32", (1, 2)),
            m.Need("state", m.RECURRENT, "float32", state),
            m.Need("previous_action", m.PREVIOUS_ACTION, "int64", (1, 1)),
            m.Need("mask", m.MASK, "bool", (1, 1)),
        ),
        outputs=(
            m.Tensor("logits", m.LOGITS, "float32", (1, network.actions)),
            m.Tensor("value", m.VALUE, "float32", (1, 1)),
            m.Tensor("next_state", m.RECURRENT, "float32", state),
        ),
        preprocess=(
            ResizeShortestEdge(("depth",), network.height, "torch_area"),
            CenterCrop(("depth",), network.height, network.width),
        ),
        selection=m.Selection("argmax"),
        golden=golden_file(),
    )


def overhead_row(package: Package, steps: int, seed: int) -> Row:
    """Row of the time around the network, from the camera's frame to the action."""
    from robot_runtime.policies.package.speed import time_package

    times = time_package(package, steps, seed)
    added = sorted(times.added)
    network, preprocess = statistics.median(times.network), statistics.median(times.preprocess)
    return Row(
        "runtime_overhead_ms",
        "added per step to bare inference: the observation of a 640x480 frame, preprocessing, choice",
        statistics.median(added),
        "ms",
        3,
        "<=",
        low=added[0],
        high=added[int(0.95 * len(added))],
        note=f"median, least and 95th percentile of {steps} steps; preprocessing, which a framework does too, has "
        f"{preprocess:.2g} ms of it; bare inference in the same run {network:.3g} ms",
    )


def rival_row(package: Package, eager: Network, steps: int, seed: int) -> Row:
    """Row of the network by ONNX Runtime and by eager PyTorch, one thread each, in turns."""
    from robot_runtime.policies.package.speed import fixed_inputs

    inputs = fixed_inputs(package, seed)
    ratios, ours, theirs = [], [], []
    for _ in range(ROUNDS):
        own = statistics.median(_time_ms(package.network, inputs, steps // ROUNDS))
        its = statistics.median(_time_ms(eager, inputs, steps // ROUNDS))
        ours.append(own)
        theirs.append(its)
        ratios.append(its / own)
    return Row(
        "onnx_vs_eager",
        "times faster than eager PyTorch, the same network, one thread each",
        statistics.median(ratios),
        "times",
        2,
        rival=eager.runtime,
        low=min(ratios),
        high=max(ratios),
        note=f"median and range of {ROUNDS} rounds of {steps // ROUNDS} steps in turns; ONNX Runtime "
        f"{statistics.median(ours):.3g} ms, eager {statistics.median(theirs):.3g} ms",
    )


def jitter_row(package: Package, steps: int, seed: int) -> Row:
    """Row of the slowest steps while another process keeps a core busy, and of the bare network's beside them."""
    from robot_runtime.policies.package.speed import time_package

    with _busy_core():
        rounds = [time_package(package, steps, seed) for _ in range(ROUNDS)]
    decided = sorted((_tail_ratio(times.decide), times.decide) for times in rounds)
    ratio, decide = decided[len(decided) // 2]
    bare = statistics.median(_tail_ratio(times.network) for times in rounds)
    return Row(
        "p99_over_median",
        "99th percentile over median of a decision, while another process computes without pause",
        ratio,
        "times",
        2,
        "<=",
        low=decided[0][0],
        high=decided[-1][0],
        note=f"median and range of {ROUNDS} rounds of {steps} decisions; median {statistics.median(decide):.3g} ms; "
        f"the bare network in the same rounds has {bare:.3g}; {os.cpu_count()} cores, load average with it "
        f"{os.getloadavg()[0]:.1f}",
    )


def _tail_ratio(times: Sequence[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(0.99 * len(times)))] / statistics.median(times)


def memory_row(package: Path, logs: Path) -> Row:
    """Row of the peak memory of a process that runs and logs an episode on the robot without physics."""
    command = ["run", "--robot", "fake", "--policy", str(package), "--count", "1", "--out", str(logs)]
    _, peak_mb = _child(command)
    return Row(
        "rss_mb",
        "peak memory of `robot-runtime run` with the package",
        peak_mb,
        "MB",
        400,
        "<=",
        note="one recorded and scored episode on the robot `fake`, whose camera delivers 640x480; no simulator",
    )


def ready_row(package: Path) -> Row:
    """Row of the time from the start of the interpreter to a package that has repeated its golden rollout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = [_child(["policy", "validate", str(package)])[0] for _ in range(ROUNDS)]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy_s = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / ROUNDS
    return Row(
        "ready_s",
        "start of the interpreter, imports, package read and proved on its golden rollout",
        statistics.median(seconds),
        "s",
        1,
        "<=",
        low=min(seconds),
        high=max(seconds),
        note=f"median and range of {ROUNDS} runs of `robot-runtime policy validate`, to its exit; "
        f"{busy_s:.2g} s of a core each",
    )


def _time_ms(network: Network, inputs: Mapping[str, Array], steps: int) -> Sequence[float]:
    network.run(inputs)
    timer = Stopwatch()
    times = []
    for _ in range(steps):
        timer.restart()
        network.run(inputs)
        times.append(1000 * timer.restart())
    return times


def _child(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds and peak MB of a command of ``robot-runtime`` in a process of its own.

    The peak is the kernel's VmHWM: getrusage's is at least this process's own, whose memory a new one shares briefly.
    """
    code = (
        "import sys; from robot_runtime.cli.main import run_command; code = run_command(sys.argv[1:]); "
        "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')), file=sys.stderr); "
        "sys.exit(code)"
    )
    timer = Stopwatch()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=CHILD_LIMIT_S, check=False
    )
    elapsed_s = timer.elapsed_s()
    if done.returncode != 0:
        raise RuntimeError(f"robot-runtime {' '.join(arguments)} failed: {done.stderr}")
    return elapsed_s, int(done.stderr.splitlines()[-1]) / 1024


@contextmanager
def _busy_core() -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait(CHILD_LIMIT_S)
