"""Recurrent loop around a network, with its state, previous action and mask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.errors import PolicyError, PolicyOutputError
from robot_runtime.imaging.preprocess import preprocess
from robot_runtime.policies.package.formats.network import Network, check_tensor
from robot_runtime.policies.package.manifest import (
    ANSWERS,
    LOGITS,
    MASK,
    PREVIOUS_ACTION,
    QUESTION,
    RECURRENT,
    VALUE,
    Manifest,
    Tensor,
)
from robot_runtime.policies.package.vocabulary import question_tokens
from robot_runtime.tasks.registry import has_sensor

Array = NDArray[Any]


def prepare(manifest: Manifest, observation: Mapping[str, Array]) -> dict[str, Array]:
    """An observation of the task as the network's inputs from sensors, by their names.

    Leading sides of one (batch, time) are added where the manifest has them.

    Raises:
        PolicyError: a sensor is missing, or its preprocessed array has another type or shape than the manifest's.
    """
    expected = [tensor for tensor in manifest.inputs if has_sensor(manifest.task, tensor.role)]
    missing = [tensor.role for tensor in expected if tensor.role not in observation]
    if missing:
        raise PolicyError(
            f"policy {manifest.name!r} needs {', '.join(missing)}, which the observation does not have",
            "add the sensor to the task (--sensor)",
        )
    shown = preprocess({key: observation[key] for key in manifest.needs}, manifest.preprocess)
    for tensor in manifest.inputs_of(QUESTION):
        assert manifest.vocabulary is not None
        shown[QUESTION] = question_tokens(str(observation[QUESTION]), manifest.vocabulary.words, tensor.shape[1])
    inputs = {}
    for tensor in expected:
        array = shown[tensor.role]
        array = array.reshape((1,) * (len(tensor.shape) - array.ndim) + array.shape)
        try:
            check_tensor(tensor, array)
        except ValueError as error:
            raise PolicyError(
                f"policy {manifest.name!r}, after preprocessing: {error}",
                "correct 'preprocess' or 'inputs' in policy.yaml, or run it in the task that it was made for",
            ) from error
        inputs[tensor.name] = np.ascontiguousarray(array)
    return inputs


class Rollout:
    """One network with its recurrent state.

    Args:
        manifest: manifest of the package.
        network: network of the package.
    """

    def __init__(self, manifest: Manifest, network: Network) -> None:
        self._manifest = manifest
        self._network = network
        self._states = list(zip(manifest.inputs_of(RECURRENT), manifest.outputs_of(RECURRENT), strict=True))
        self._logits = manifest.outputs_of(LOGITS)[0]
        self._value, self._answers = (next(iter(manifest.outputs_of(role)), None) for role in (VALUE, ANSWERS))
        self.reset()

    def reset(self) -> None:
        """Start an episode: state zero, no previous action, mask false at the next step."""
        self._first = True
        self._previous: int | None = None
        self.state = {tensor.name: np.zeros(tensor.shape, tensor.dtype) for tensor, _ in self._states}
        """The recurrent state by input name, as it goes into the next step."""
        self.answers: dict[str, float] = {}
        """Scores of the answers after the last step, of a network that answers questions."""

    def step(self, prepared: Mapping[str, Array]) -> tuple[NDArray[np.float32], float | None]:
        """The logits (actions,), and the value where the network has one; the state moves on.

        Args:
            prepared: see :func:`prepare`.

        Raises:
            PolicyOutputError: the network gave NaN or infinity, or another shape or type than it declared.
            PolicyError: the network failed.
        """
        outputs = self._network.run({**prepared, **self.state, **self._context()})
        for tensor in self._manifest.outputs:
            self._check(tensor, outputs)
        for tensor, output in self._states:
            self.state[tensor.name] = outputs[output.name]
        self._first = False
        if self._answers is not None and self._manifest.vocabulary is not None:
            scores = outputs[self._answers.name].reshape(-1).tolist()
            self.answers = dict(zip(self._manifest.vocabulary.answers, scores, strict=True))
        value = None if self._value is None else float(outputs[self._value.name].reshape(()))
        return outputs[self._logits.name].reshape(-1), value

    def acted(self, action_id: int) -> None:
        """Set the previous action of the next step."""
        self._previous = action_id

    def _context(self) -> dict[str, Array]:
        context: dict[str, Array] = {}
        rule = self._manifest.previous_action
        for tensor in self._manifest.inputs_of(PREVIOUS_ACTION):
            assert rule is not None
            number = rule.first if self._previous is None else self._previous + rule.offset
            context[tensor.name] = np.full(tensor.shape, number, tensor.dtype)
        for tensor in self._manifest.inputs_of(MASK):
            context[tensor.name] = np.full(tensor.shape, not self._first, tensor.dtype)
        return context

    def _check(self, tensor: Tensor, outputs: Mapping[str, Array]) -> None:
        what = f"policy {self._manifest.name!r}: output"
        array = outputs.get(tensor.name)
        if array is None:
            raise PolicyOutputError(f"{what} {tensor.name!r} is not there", "correct 'outputs' in policy.yaml")
        try:
            check_tensor(tensor, array)
        except ValueError as error:
            raise PolicyOutputError(f"{what} {error}", "correct 'outputs' in policy.yaml") from error
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise PolicyOutputError(
                f"{what} {tensor.name!r} holds {int((~np.isfinite(array)).sum())} numbers that are not finite",
                "check the training and, with `robot-runtime policy diff`, the observations of this step",
            )
