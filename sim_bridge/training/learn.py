"""Imitation learning: cross entropy over streams of episodes, with truncated backpropagation through time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sim_bridge.training.network import ACTIONS, HIDDEN, Head

STREAMS, PIECE = 32, 40
"""Number of parallel streams, and of steps of truncated backpropagation."""

GRADIENT_NORM = 1.0
_MIRRORED = np.array([0, 1, 3, 2, ACTIONS], np.int64)
"""Ids of the mirrored actions: stop, forward, left, right, none."""


@dataclass(frozen=True)
class Dataset:
    """All demonstrations, concatenated.

    Attributes:
        starts: index of each episode's first step, and the number of steps at the end.
        fine: int8 (N, cells, cells), near view of the map.
        coarse: int8 (N, 2, cells, cells), far view of the map.
        goal: float32 (N, 2), polar.
        motion: float32 (N, numbers), effect of the last action.
        label: int64 (N,), the teacher's action.
        action: int64 (N,), the executed action.
    """

    starts: NDArray[np.int64]
    fine: NDArray[np.int8]
    coarse: NDArray[np.int8]
    goal: NDArray[np.float32]
    motion: NDArray[np.float32]
    label: NDArray[np.int64]
    action: NDArray[np.int64]

    @classmethod
    def load(cls, files: Sequence[Path]) -> Dataset:
        """Load collected files, in this order."""
        parts: dict[str, list[NDArray[np.generic]]] = {}
        for file in files:
            with np.load(file) as data:
                for name in ("first", "fine", "coarse", "goal", "motion", "label", "action"):
                    parts.setdefault(name, []).append(data[name])
        joined = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
        starts = np.append(np.flatnonzero(joined.pop("first")), len(joined["label"]))
        joined["label"], joined["action"] = joined["label"].astype(np.int64), joined["action"].astype(np.int64)
        return cls(starts=starts, **joined)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.label)


@dataclass
class Batch:
    """One piece of every stream; arrays have the shape (PIECE, STREAMS, ...)."""

    fine: Tensor
    coarse: Tensor
    goal: Tensor
    motion: Tensor
    previous: Tensor
    label: Tensor
    first: Tensor


def batches(data: Dataset, random: np.random.Generator) -> Iterator[Batch]:
    """Pieces of endless streams of episodes in random order, mirrored at random."""
    index = np.zeros((PIECE, STREAMS), np.int64)
    first = np.zeros((PIECE, STREAMS), np.bool_)
    mirror = np.zeros((PIECE, STREAMS), np.bool_)
    sources = [_stream(data, random) for _ in range(STREAMS)]
    while True:
        for column, source in enumerate(sources):
            for row in range(PIECE):
                index[row, column], first[row, column], mirror[row, column] = next(source)
        yield _batch(data, index, first, mirror)


def _stream(data: Dataset, random: np.random.Generator) -> Iterator[tuple[int, bool, bool]]:
    while True:
        episode = int(random.integers(len(data.starts) - 1))
        mirrored = bool(random.random() < 0.5)
        for step in range(data.starts[episode], data.starts[episode + 1]):
            yield step, step == data.starts[episode], mirrored


def _batch(data: Dataset, index: NDArray[np.int64], first: NDArray[np.bool_], mirror: NDArray[np.bool_]) -> Batch:
    fine, coarse = data.fine[index], data.coarse[index]
    fine[mirror], coarse[mirror] = fine[mirror][..., ::-1], coarse[mirror][..., ::-1]
    goal, motion = data.goal[index], data.motion[index]
    goal[mirror, 1] *= -1
    motion[mirror, 1:] *= -1
    previous = np.where(first, ACTIONS, data.action[index - 1])
    label = data.label[index]
    previous, label = (np.where(mirror, _MIRRORED[one], one) for one in (previous, label))
    scale = np.array([1, 1 / 16], np.float32)[:, None, None]
    arrays = (fine.astype(np.float32), coarse * scale, goal, motion, previous, label, first)
    return Batch(*(torch.from_numpy(np.ascontiguousarray(one)) for one in arrays))


def learn(
    head: Head, data: Dataset, updates: int, rate: float, seed: int, report: Callable[[int, float, float], None]
) -> None:
    """Train in place, with a learning rate that falls to 0 along a cosine.

    Args:
        head: the network.
        data: the demonstrations.
        updates: number of them.
        rate: highest learning rate.
        seed: seed of the order of episodes.
        report: function that is called after every update with its number, loss and share of correct labels.
    """
    head.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=updates, pct_start=0.1)
    hidden = torch.zeros(STREAMS, HIDDEN)
    for update, batch in zip(range(updates), batches(data, np.random.default_rng(seed)), strict=False):
        logits, hidden = _unroll(head, batch, hidden.detach())
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch.label.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's stub has none
        nn.utils.clip_grad_norm_(head.parameters(), GRADIENT_NORM)
        optimizer.step()
        schedule.step()
        right = (logits.argmax(-1) == batch.label).float().mean()
        report(update + 1, loss.item(), right.item())
    head.eval()


def _unroll(head: Head, batch: Batch, hidden: Tensor) -> tuple[Tensor, Tensor]:
    flat = [one.flatten(0, 1) for one in (batch.fine, batch.coarse, batch.goal, batch.motion, batch.previous)]
    features = head.features(*flat).reshape(PIECE, STREAMS, -1)
    states = []
    for now, first in zip(features, batch.first, strict=True):
        hidden = head.remember(now, torch.where(first[:, None], torch.zeros_like(hidden), hidden))
        states.append(hidden)
    memory = torch.stack(states)
    return head.decide(features.flatten(0, 1), memory.flatten(0, 1)).reshape(PIECE, STREAMS, -1), hidden
