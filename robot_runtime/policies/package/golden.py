"""``golden.npz``: a recorded rollout that a network must reproduce before it may drive a robot.

Arrays, T steps long except for the sensors and the states:

====================  ================================================================================================
``first``             bool: an episode starts here (state zero, mask false, no previous action)
``action``            int64: the action taken last, the previous action of the next step; the largest logit's, else 0
``input/NAME``        the network's inputs from sensors, preprocessed, with the manifest's shape of one observation
``sensor/KEY``        the first few observations; preprocessed, they must equal the first few inputs
``output/NAME``       the original network's outputs except the states
``state/NAME``        by input name: the states after the last step
====================  ================================================================================================

The rollout is the original network's, not that of the exported one: it detects a damaged export, and operator libraries
and processors that compute something else.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import bounded
from robot_runtime.errors import PackageError
from robot_runtime.policies.package.files import MAX_GOLDEN_BYTES
from robot_runtime.policies.package.formats.network import Network, check_array
from robot_runtime.policies.package.manifest import ANSWERS, EXPOSURE, LOGITS, RECURRENT, UNUSED, VALUE, Manifest, Proof
from robot_runtime.policies.package.rollout import Rollout, chosen, prepare
from robot_runtime.tasks.kind import has_sensor

Array = NDArray[Any]

MAX_ARRAYS = 256


@dataclass(frozen=True, eq=False)
class Golden:
    """The file's arrays; see the module's table.

    Attributes:
        original: software that ran the recorded network, with its version; the manifest's ``proof.against``.
    """

    original: str
    first: NDArray[np.bool_]
    action: NDArray[np.int64]
    inputs: Mapping[str, Array]
    sensors: Mapping[str, Array]
    outputs: Mapping[str, Array]
    states: Mapping[str, Array]

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return len(self.first)

    def prepared(self, step: int) -> dict[str, Array]:
        """The inputs of a step that come from sensors."""
        return {name: array[step] for name, array in self.inputs.items()}

    def to_bytes(self) -> bytes:
        """The content of ``golden.npz``."""
        arrays: dict[str, Array] = {"first": self.first, "action": self.action}
        for prefix, group in _groups(self).items():
            arrays.update({f"{prefix}/{name}": array for name, array in group.items()})
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return file.getvalue()


@dataclass(frozen=True)
class Agreement:
    """Agreement of a network with a golden rollout. Differences are the largest absolute ones.

    Attributes:
        steps: number of steps of the rollout.
        same_actions: steps at which the largest logit was the recorded one; all where there are no logits.
        logit_difference: largest difference of logits, or motions, and scores of answers, over all steps.
        state_difference: after the last step.
        input_difference: largest difference of the preprocessed recorded observations.
    """

    steps: int
    same_actions: int
    logit_difference: float
    state_difference: float
    input_difference: float

    def proof(self, against: str) -> Proof:
        """The manifest's entry, against a rollout's :attr:`Golden.original`."""
        return Proof(against, self.steps, self.same_actions, self.logit_difference)


def record(
    manifest: Manifest,
    network: Network,
    observations: Sequence[Mapping[str, Array]],
    starts: Sequence[int] = (0,),
    keep_sensors: int = 2,
    original: str | None = None,
) -> Golden:
    """Record the original network's rollout over observations of the task.

    Args:
        manifest: manifest of the package; ``model`` and ``golden`` are not used.
        network: the original, by the manifest's names; any :class:`Network`, such as one that calls eager PyTorch.
        observations: one per step.
        starts: steps at which an episode starts, 0 among them.
        keep_sensors: number of raw observations in the file: images are large.
        original: name of the network with its version; by default the network's ``runtime``.
    """
    rollout = Rollout(manifest, network)
    answer = manifest.answer
    value_name = next((tensor.name for tensor in manifest.outputs_of(VALUE)), None)
    inputs: list[dict[str, Array]] = []
    outputs: dict[str, list[Array]] = {name: [] for name in (answer.name, value_name) if name is not None}
    actions = []
    for step, observation in enumerate(observations):
        if step in starts:
            rollout.reset()
        inputs.append(prepare(manifest, observation))
        logits, value = rollout.step(inputs[-1])
        outputs[answer.name].append(logits.astype(answer.dtype).reshape(answer.sides))
        if value_name is not None:
            outputs[value_name].append(np.full(manifest.outputs_of(VALUE)[0].sides, value, np.float32))
        for tensor in manifest.outputs_of(ANSWERS):
            scores = np.array(list(rollout.answers.values()), np.float32).reshape(tensor.sides)
            outputs.setdefault(tensor.name, []).append(scores)
        actions.append(chosen(manifest, logits))
        rollout.acted(actions[-1])
    return Golden(
        original=original or network.runtime,
        first=np.isin(np.arange(len(actions)), starts),
        action=np.array(actions, np.int64),
        inputs={name: np.stack([step[name] for step in inputs]) for name in inputs[0]},
        sensors={key: np.stack([o[key] for o in observations[:keep_sensors]]) for key in manifest.needs},
        outputs={name: np.stack(values) for name, values in outputs.items()},
        states=dict(rollout.state),
    )


def read(manifest: Manifest, data: bytes) -> Golden:
    """Read the file's arrays, without pickles.

    Raises:
        PackageError: the file is damaged, too large, or not a rollout of this manifest.
    """
    arrays = _arrays(manifest, data)
    try:
        golden = Golden(
            original=manifest.proof.against,
            first=_typed(arrays, "first", "bool", (manifest.golden.steps,)),
            action=_typed(arrays, "action", "int64", (manifest.golden.steps,)),
            inputs={
                need.name: _typed(arrays, f"input/{need.name}", need.dtype, (manifest.golden.steps, *need.one))
                for need in manifest.inputs
                if has_sensor(manifest.task, need.role)
            }
            | ({EXPOSURE: arrays[f"input/{EXPOSURE}"]} if EXPOSURE in manifest.needs else {}),
            sensors={key: arrays[f"sensor/{key}"] for key in manifest.needs},
            outputs={
                tensor.name: _typed(
                    arrays, f"output/{tensor.name}", tensor.dtype, (manifest.golden.steps, *tensor.shape)
                )
                for tensor in manifest.outputs
                if tensor.role not in (RECURRENT, UNUSED)
            },
            states={
                tensor.name: _typed(arrays, f"state/{tensor.name}", tensor.dtype, tensor.shape)
                for tensor in manifest.inputs_of(RECURRENT)
            },
        )
        if not golden.first[0]:
            raise ValueError("the first step is not an episode's first")
        if len({len(array) for array in golden.sensors.values()}) != 1:
            raise ValueError("the sensors have different numbers of observations")
    except KeyError as error:
        raise _bad(manifest, f"there is no array {error}") from error
    except ValueError as error:
        raise _bad(manifest, str(error)) from error
    return golden


def replay(manifest: Manifest, golden: Golden, network: Network) -> Agreement:
    """Run a network over the recorded inputs and compare; preprocessing over the recorded sensors as well.

    Raises:
        PolicyError: network or preprocessing failed.
    """
    input_difference = 0.0
    count = len(next(iter(golden.sensors.values())))
    for step in range(min(count, golden.steps)):
        prepared = prepare(manifest, {key: array[step] for key, array in golden.sensors.items()})
        for name, array in prepared.items():
            input_difference = max(input_difference, _difference(array, golden.inputs[name][step]))
    rollout = Rollout(manifest, network)
    answer = manifest.answer
    expected = golden.outputs[answer.name]
    logit_difference, same = 0.0, 0
    for step in range(golden.steps):
        if golden.first[step]:
            rollout.reset()
        logits, _ = rollout.step(golden.prepared(step))
        logit_difference = max(logit_difference, _difference(logits, expected[step].reshape(logits.shape)))
        for tensor in manifest.outputs_of(ANSWERS):
            scores = np.array(list(rollout.answers.values()))
            logit_difference = max(logit_difference, _difference(scores, golden.outputs[tensor.name][step].reshape(-1)))
        same += int(answer.role != LOGITS or chosen(manifest, logits) == golden.action[step])
        rollout.acted(int(golden.action[step]))
    state_difference = max(
        (_difference(rollout.state[name], array) for name, array in golden.states.items()), default=0.0
    )
    return Agreement(golden.steps, same, logit_difference, state_difference, input_difference)


def check(manifest: Manifest, golden: Golden, network: Network) -> Agreement:
    """:func:`replay`, and check of the result against the manifest's tolerances.

    Raises:
        PackageError: inputs, logits or states differ by more, or the largest logit is another one at any step.
    """
    found, rule = replay(manifest, golden, network), manifest.golden
    for what, difference, limit in (
        ("preprocessed inputs", found.input_difference, rule.input_atol),
        (manifest.answer.role, found.logit_difference, rule.logit_atol),
        ("recurrent states", found.state_difference, rule.state_atol),
    ):
        if not difference <= limit:
            raise PackageError(
                f"policy {manifest.name!r}: {what} differ from the golden rollout by {difference:.3g}, {limit:g} is "
                f"allowed ({network.runtime})",
                _remedy(manifest, golden, network, found),
            )
    if found.same_actions < found.steps:
        raise PackageError(
            f"policy {manifest.name!r}: the largest logit is the golden rollout's at {found.same_actions} of "
            f"{found.steps} steps ({network.runtime})",
            _remedy(manifest, golden, network, found),
        )
    return found


def _remedy(manifest: Manifest, golden: Golden, network: Network, found: Agreement) -> str:
    if repr(replay(manifest, golden, network)) != repr(found):
        return "it is not deterministic: export it in evaluation mode (`model.eval()`), without dropout or noise"
    return (
        "this machine computes another policy than was trained: compare library versions with the manifest; a network "
        "that is quantized for writing needs a tolerance of its own, golden.logit_atol"
    )


def _groups(golden: Golden) -> dict[str, Mapping[str, Array]]:
    return {"input": golden.inputs, "sensor": golden.sensors, "output": golden.outputs, "state": golden.states}


def _arrays(manifest: Manifest, data: bytes) -> dict[str, Array]:
    try:
        return bounded.read_arrays(io.BytesIO(data), MAX_ARRAYS, MAX_GOLDEN_BYTES)
    except ValueError as error:
        raise _bad(manifest, str(error)) from error


def _typed(arrays: Mapping[str, Array], name: str, dtype: str, shape: tuple[int | None, ...]) -> Array:
    check_array(name, arrays[name], dtype, shape)
    return arrays[name]


def _difference(a: Array, b: Array) -> float:
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


def _bad(manifest: Manifest, problem: str) -> PackageError:
    return PackageError(
        f"{manifest.golden.file}: is not a golden rollout of this policy: {problem}", "write the package again"
    )
