"""Recurrent loop around a network, with all that it remembers: states, previous action, mask, past observations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import PolicyError, PolicyOutputError
from robot_runtime.imaging.preprocess import Operation, preprocess
from robot_runtime.policies.package import manifest as m
from robot_runtime.policies.package.formats.network import Network, check_array
from robot_runtime.policies.package.vocabulary import question_tokens
from robot_runtime.tasks.kind import has_sensor

Array = NDArray[Any]


def prepare(manifest: m.Manifest, observation: Mapping[str, Array]) -> dict[str, Array]:
    """An observation of the task as the network's inputs from sensors, by their names, each of one observation.

    Leading sides of one (batch, time) are added where the manifest has them. A history by time adds ``exposure``.

    Raises:
        PolicyError: a sensor is missing, or its preprocessed array has another type or shape than the manifest's.
    """
    missing = [role for role in manifest.needs if role not in observation]
    if missing:
        raise PolicyError(
            f"policy {manifest.name!r} needs {', '.join(missing)}, which the observation does not have",
            "add the sensor to the task (--sensor)",
        )
    inputs = {}
    for need in manifest.inputs:
        if not has_sensor(manifest.task, need.role):
            continue
        if need.role == m.QUESTION:
            assert manifest.vocabulary is not None
            array = question_tokens(str(observation[m.QUESTION]), manifest.vocabulary.words, need.sides[1])
        else:
            array = formed(need, observation[need.role], manifest.preprocess)
        array = array.reshape((1,) * (len(need.one) - array.ndim) + array.shape)
        if need.dtype == "float16" and array.dtype == np.float32:
            array = array.astype(np.float16)
        try:
            check_array(need.name, array, need.dtype, need.one)
        except ValueError as error:
            raise PolicyError(
                f"policy {manifest.name!r}, after preprocessing: {error}",
                "correct 'preprocess' or 'inputs' in policy.yaml, or run it in the task that it was made for",
            ) from error
        inputs[need.name] = np.ascontiguousarray(array)
    if m.EXPOSURE in manifest.needs:
        inputs[m.EXPOSURE] = observation[m.EXPOSURE]
    return inputs


def formed(need: m.Need, array: Array, operations: Sequence[Operation]) -> Array:
    """A sensor's array after the operations that name the sensor, or the input itself. Raises ``PolicyError``."""
    own = [replace(one, keys=(need.name,)) for one in operations if {need.name, need.role} & set(one.keys)]
    return preprocess({need.name: array}, own)[need.name]


def chosen(manifest: m.Manifest, answer: Array) -> int:
    """The id of the last action that is carried out, by the largest logits; 0 of a motion."""
    return int(np.atleast_2d(answer)[: manifest.carry_out][-1].argmax()) if manifest.answer.role == m.LOGITS else 0


class Rollout:
    """One network with what it remembers of an episode."""

    def __init__(self, manifest: m.Manifest, network: Network) -> None:
        self._manifest = manifest
        self._network = network
        self._states = list(zip(manifest.inputs_of(m.RECURRENT), manifest.outputs_of(m.RECURRENT), strict=True))
        self._value, self._answers = (next(iter(manifest.outputs_of(role)), None) for role in (m.VALUE, m.ANSWERS))
        self._histories = [need for need in manifest.inputs if need.count > 1]
        self.reset()

    def reset(self, *seed: int) -> None:
        """Start an episode: state zero, no previous action, mask false at the next step, noise of ``seed``."""
        self._first = True
        self._previous: int | None = None
        self._random = np.random.default_rng(seed)
        self._seen: list[tuple[int, Mapping[str, Array]]] = []
        self.state = {need.name: np.zeros([side or 0 for side in need.shape], need.dtype) for need, _ in self._states}
        """The recurrent state by input name, as it goes into the next step."""
        self.answers: dict[str, float] = {}
        """Scores of the answers after the last step, of a network that answers questions."""
        self.noise: dict[str, list[float]] = {}
        """Numbers of the last step's inputs of noise, for the log."""

    def step(self, prepared: Mapping[str, Array]) -> tuple[NDArray[np.float32], float | None]:
        """The answer, and the value where the network has one; the state moves on.

        Returns:
            Logits (actions,), velocity (2,), rows of either, waypoint (3,), trajectory (points, columns); float32.

        Raises:
            PolicyOutputError: the network gave NaN or infinity, or another shape or type than it declared.
            PolicyError: the network failed.
        """
        shown = {name: array for name, array in prepared.items() if name != m.EXPOSURE}
        outputs = self._network.run({**shown, **self._past(prepared), **self.state, **self._context()})
        for tensor in self._manifest.outputs:
            self._check(tensor, outputs)
        for need, output in self._states:
            self.state[need.name] = outputs[output.name]
            if None in need.shape and outputs[output.name].shape[need.shape.index(None)] > need.most:
                raise PolicyError(
                    f"policy {self._manifest.name!r}: its memory {need.name!r} grew past {need.most} steps",
                    "use a task of fewer steps, or a network with a longer memory: 'most' in policy.yaml",
                )
        self._first = False
        if self._answers is not None and self._manifest.vocabulary is not None:
            scores = outputs[self._answers.name].reshape(-1).tolist()
            self.answers = dict(zip(self._manifest.vocabulary.answers, scores, strict=True))
        value = None if self._value is None else float(outputs[self._value.name].reshape(()))
        answer = self._manifest.answer
        columns = (answer.sides[-1],) if answer.role == m.TRAJECTORY or self._manifest.chunk > 1 else ()
        return outputs[answer.name].reshape(-1, *columns).astype(np.float32), value

    def see(self, observation: Mapping[str, Array]) -> None:
        """Remember an observation at which nothing is asked, for the inputs with a history."""
        if self._histories:
            self._remember(prepare(self._manifest, observation))

    def acted(self, action_id: int) -> None:
        """Set the previous action of the next step."""
        self._previous = action_id

    def _past(self, prepared: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs with a history. Of equally near exposures the older one counts."""
        if not self._histories:
            return {}
        now_ns = self._remember(prepared)
        past, kept = {}, max(need.count for need in self._histories)
        for need in self._histories:
            chosen = []
            for back in range(need.count - 1, -1, -1):
                wanted_ns = now_ns - round(1e9 * need.period_s * back)
                by_time = min(range(len(self._seen)), key=lambda k: abs(self._seen[k][0] - wanted_ns))
                chosen.append(by_time if need.period_s else max(len(self._seen) - 1 - back, 0))
            past[need.name] = np.stack([self._seen[k][1][need.name] for k in chosen]).reshape(need.sides)
            kept = max(kept, len(self._seen) - chosen[0])
        self._seen = self._seen[-kept:]
        return past

    def _remember(self, prepared: Mapping[str, Array]) -> int:
        now_ns = int(prepared[m.EXPOSURE][0]) if m.EXPOSURE in prepared else 0
        self._seen.append((now_ns, prepared))
        return now_ns

    def _context(self) -> dict[str, Array]:
        context: dict[str, Array] = {}
        for need in self._manifest.inputs_of(m.PREVIOUS_ACTION):
            number = need.first if self._previous is None else self._previous + need.offset
            context[need.name] = np.full(need.sides, number, need.dtype)
        for need in self._manifest.inputs_of(m.MASK):
            context[need.name] = np.full(need.sides, not self._first, need.dtype)
        for need in self._manifest.inputs_of(m.NOISE):
            context[need.name] = self._random.standard_normal(need.sides, np.float32).astype(need.dtype)
            self.noise[need.name] = context[need.name].ravel().tolist()
        return context

    def _check(self, tensor: m.Tensor, outputs: Mapping[str, Array]) -> None:
        what = f"policy {self._manifest.name!r}: output"
        array = outputs.get(tensor.name)
        if array is None:
            raise PolicyOutputError(f"{what} {tensor.name!r} is not there", "correct 'outputs' in policy.yaml")
        try:
            check_array(tensor.name, array, tensor.dtype, tensor.shape)
        except ValueError as error:
            raise PolicyOutputError(f"{what} {error}", "correct 'outputs' in policy.yaml") from error
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise PolicyOutputError(
                f"{what} {tensor.name!r} holds {int((~np.isfinite(array)).sum())} numbers that are not finite",
                "check the training and, with `robot-runtime policy diff`, the observations of this step",
            )
