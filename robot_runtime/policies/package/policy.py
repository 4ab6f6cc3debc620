"""Policy of a package: preprocessing, network, choice of the action."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, trajectory, velocity, waypoint
from robot_runtime.common import config
from robot_runtime.errors import ConfigError, PolicyError, PolicyMismatch
from robot_runtime.policies.package import golden
from robot_runtime.policies.package import manifest as m
from robot_runtime.policies.package.compatibility import check_task
from robot_runtime.policies.package.files import PackageFiles, read_package
from robot_runtime.policies.package.formats.network import Execution, Network, open_network
from robot_runtime.policies.package.rollout import Rollout, prepare
from robot_runtime.policy import Answer, ChunkedPolicy, Observation, World
from robot_runtime.tasks.task import Task


class Selector:
    """Selector of an episode; of equal logits it takes the first.

    Args:
        selection: mode, temperature and seed.
        episode_seed: together with ``selection.seed``, of the draws.
    """

    def __init__(self, selection: m.Selection, episode_seed: int) -> None:
        self._selection = selection
        self._random = np.random.default_rng((selection.seed, episode_seed))

    def choose(self, logits: NDArray[np.float32]) -> int:
        """The chosen index into ``logits`` (actions,); draws one random number if it samples."""
        if self._selection.mode == "argmax":
            return int(logits.argmax())
        cumulative = probabilities(logits, self._selection.temperature).cumsum()
        # Rounding may leave the last sum below 1, and the draw between the two.
        return min(int(np.searchsorted(cumulative, self._random.random(), side="right")), len(logits) - 1)


def probabilities(logits: NDArray[np.float32], temperature: float = 1.0) -> NDArray[np.float64]:
    """Softmax of ``logits / temperature``, float64."""
    scaled = logits.astype(np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class Package:
    """A package whose network runs and reproduces its golden rollout."""

    path: Path
    manifest: m.Manifest
    network: Network
    agreement: golden.Agreement


def load_package(path: Path, execution: Execution | None = None) -> Package:
    """Read a package, open its network and check it against the golden rollout, which also warms it up.

    Raises:
        PackageError: the package is incomplete, damaged, inconsistent, uses forbidden operations, or does not reproduce
            its golden rollout on this machine.
        ConfigError: its manifest is invalid; names the field.
        PolicyError: the library that runs it is missing or too old, or its network failed.
    """
    return open_package(read_package(path), execution)


def open_package(files: PackageFiles, execution: Execution | None = None) -> Package:
    """:func:`load_package` of files that were read already."""
    manifest = files.manifest
    recorded = golden.read(manifest, files.golden)
    network = open_network(manifest, files.model, execution, files.data)
    try:
        return Package(files.path, manifest, network, golden.check(manifest, recorded, network))
    except PolicyError:
        network.close()
        raise


class PackagePolicy(ChunkedPolicy):
    """The policy of a package.

    Args:
        package: loaded.
        selection: instead of the manifest's.

    Attributes:
        manifest: manifest of the package, with the selection in force.
    """

    follows = True

    def __init__(self, package: Package, selection: m.Selection | None = None) -> None:
        self.manifest = replace(package.manifest, selection=selection or package.manifest.selection)
        self.name = self.manifest.name  # type: ignore[misc]  # one class stands for every package
        self.needs = self.manifest.needs  # type: ignore[misc]
        self.task, self.declared = self.manifest.task, config.unparse(self.manifest)
        self.package = package
        self._rollout = Rollout(self.manifest, package.network)
        self._info: dict[str, Any] = {}
        self._about: dict[str, Any] = {}

    def select(self, selection: m.Selection) -> None:
        """Use another selection from the next episode on."""
        self.manifest = replace(self.manifest, selection=selection)
        self.declared = config.unparse(self.manifest)

    @override
    def check(self, task: Task) -> None:
        check_task(self.manifest, task)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Start an episode. Raises ``PolicyMismatch``: the task is not one that the policy was trained for."""
        self.check(task)
        self._rollout.reset(self.manifest.selection.seed, seed)
        self.rest = ()
        self._selector = Selector(self.manifest.selection, seed)
        selection = self.manifest.selection
        self._about = {
            "package": {"name": self.name, "model_sha256": self.manifest.model.sha256},
            "selection": {"mode": selection.mode, "temperature": selection.temperature, "seed": [selection.seed, seed]},
        }

    @override
    def act(self, observation: Observation) -> Decision:
        if self.rest:
            self._info = {}
            self._rollout.see(observation)
        return super().act(observation)

    @override
    def answered(self, observation: Observation) -> tuple[Decision, ...]:
        """The next actions.

        Raises:
            PolicyOutputError: the network gave NaN, infinity or an array that it did not declare.
            PolicyError: a sensor is missing or of another shape, or the network failed.
        """
        answer, value = self._rollout.step(prepare(self.manifest, observation))
        self._info, self._about = {**self._about, self.manifest.answer.role: answer.tolist(), "value": value}, {}
        self._info |= {"noise": self._rollout.noise} if self._rollout.noise else {}
        if self.manifest.timing is not None:
            return _motions(self.manifest.answer.role, answer, self.manifest.timing)[: self.manifest.carry_out]
        chosen = [self._selector.choose(logits) for logits in np.atleast_2d(answer)[: self.manifest.carry_out]]
        self._rollout.acted(chosen[-1])
        return tuple(self.manifest.task.actions[action_id] for action_id in chosen)

    @override
    def answer(self, observation: Observation) -> Answer | None:
        return dict(self._rollout.answers) or None

    def overruled(self, decision: Decision) -> None:
        """Set the previous action to ``decision``. Raises ``PolicyMismatch`` if the network has no id for it."""
        super().overruled(decision)
        actions = self.manifest.task.actions
        if decision in actions:
            self._rollout.acted(actions.index(decision))
        elif self.manifest.inputs_of(m.PREVIOUS_ACTION):
            raise PolicyMismatch(
                f"policy {self.name!r} needs the previous action as an id, and has none for {decision}",
                "show it logs of a policy with its own actions",
            )

    def info(self) -> dict[str, Any]:
        """Logits in the order of ``manifest.task.actions``, value, noise, and at the first step package and seeds."""
        return self._info

    @override
    def close(self) -> None:
        self.package.network.close()


def _motions(role: str, answer: NDArray[np.float32], timing: m.Timing) -> tuple[Decision, ...]:
    """The decisions of an answer in place of actions: one of each velocity, else one waypoint or trajectory.

    ``answer`` is [forward, left turn] or rows of it; [x, y, yaw]; or (points, columns) of x, y, and yaw or its cosine
    and sine.
    """
    rows = np.atleast_2d(answer).astype(np.float64)
    if role == m.VELOCITY:
        return tuple(_velocity(row[0], row[1], timing) for row in rows * (timing.scale, timing.turn_scale))
    if (np.hypot(rows[:, 0], rows[:, 1]) * timing.scale < timing.stop_m).all():
        return (Action.STOP,)
    yaw = np.arctan2(rows[:, 3], rows[:, 2]) if rows.shape[1] == 4 else rows[:, 2:3].sum(1) * timing.turn_scale
    points = np.column_stack((rows[:, :2] * timing.scale, yaw))
    if role == m.WAYPOINT and timing.settle:
        x_m, y_m, yaw_rad = map(float, points[0])
        return (waypoint(x_m, y_m, yaw_rad, max_duration_s=timing.period_s),)
    if timing.deltas:
        points = points.cumsum(0)
    return (trajectory(points[:, : min(rows.shape[1], 3)].tolist(), timing.period_s),)


def _velocity(forward_m_s: float, turn_rad_s: float, timing: m.Timing) -> Decision:
    if max(abs(forward_m_s), abs(turn_rad_s)) < timing.stop_m:
        return Action.STOP
    return velocity(float(forward_m_s), float(turn_rad_s), 0.0, timing.period_s, timing.settle)


def load_package_policy(path: Path, /, **arguments: Any) -> PackagePolicy:
    """The policy of a package.

    Args:
        path: path of the package.
        arguments: ``threads``, ``device``, ``selection`` (argmax or sample), ``temperature``, ``seed``.

    Raises:
        ConfigError: there is no such argument, or its value is invalid.
        RuntimeFault: those of :func:`load_package`.
    """
    return package_policy(read_package(path), arguments)


def package_policy(files: PackageFiles, arguments: Mapping[str, Any]) -> PackagePolicy:
    """:func:`load_package_policy` of files that were read already."""
    execution, selection_fields = _execution(arguments)
    selection = _selection(files.manifest.selection, selection_fields)
    return PackagePolicy(open_package(files, execution), selection)


def _execution(arguments: Mapping[str, Any]) -> tuple[Execution, dict[str, Any]]:
    kinds = {"threads": int, "device": str, "selection": str, "temperature": int | float, "seed": int}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in kinds:
            raise ConfigError(f"a policy package takes no argument {name!r}", f"use one of {', '.join(kinds)}")
        if isinstance(value, bool) or not isinstance(value, kinds[name]):
            wanted = "a text" if kinds[name] is str else "an integer" if kinds[name] is int else "a number"
            raise ConfigError(f"argument {name}={value!r} is not {wanted}", "correct the value")
        values[name] = value
    execution: dict[str, Any] = {name: values.pop(name) for name in ("threads", "device") if name in values}
    return Execution(**execution), values


def _selection(selection: m.Selection, fields: dict[str, Any]) -> m.Selection:
    if "selection" in fields:
        fields = {**fields, "mode": fields["selection"]}
        del fields["selection"]
        modes = get_args(m.Mode)
        if fields["mode"] not in modes:
            raise ConfigError(f"there is no selection {fields['mode']!r}", f"choose {' or '.join(modes)}")
    try:
        return replace(selection, **fields)
    except ValueError as error:
        raise ConfigError(f"selection: {error}", "correct the policy's arguments") from error
