"""Names of colors, learned from pixels: weights of :mod:`robot_runtime.task_kinds.eqa.agents.object_memory`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa.agents.object_memory import histogram
from sim_bridge.training.eqa_views import Views, category_words

_LEAST_PIXELS = 10
_LEAST_SHARE, _LEAST_OBJECTS = 0.002, 3
"""A bin has weights if it holds this share of the pixels of so many objects."""

_UPDATES = 500


_EVEN = 0.5
"""Objects of a category that are counted in addition to those of the flats, of every color alike."""


def write_color_names(views: Sequence[Views], scenes: Sequence[Scene], out: Path, seed: int) -> None:
    """Fit a logistic regression to the objects whose color is asked for, and write all of ``ColorNames``."""
    counts, colors = [], []
    for one in views:
        for frames, semantic, category, asked in zip(one.frames, one.semantic, one.category, one.asked, strict=True):
            pixels = frames[-1][semantic == category]
            color = next((answer for _, answer, kind in asked if kind in ("color", "color_room")), None)
            if color is not None and category >= 0 and len(pixels) >= _LEAST_PIXELS:
                found = histogram(pixels)
                counts.append(found / found.sum())
                colors.append(color)
    shares, names = np.array(counts), sorted(set(colors))
    bins = np.flatnonzero((shares > _LEAST_SHARE).sum(axis=0) >= _LEAST_OBJECTS)
    torch.manual_seed(seed)
    inputs = torch.tensor(np.sqrt(shares[:, bins]), dtype=torch.float32)
    truth = torch.tensor([names.index(color) for color in colors])
    layer = nn.Linear(len(bins), len(names))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05, weight_decay=1e-4)
    for _ in range(_UPDATES):
        loss = nn.functional.cross_entropy(layer(inputs), truth)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    weights = layer.weight.detach().numpy().T.astype(np.float16)
    bias = layer.bias.detach().numpy()
    categories, priors = _priors(scenes, names)
    np.savez_compressed(
        out,
        names=np.array(names),
        categories=np.array(categories),
        bins=bins.astype(np.uint16),
        weights=weights,
        bias=bias,
        priors=priors,
    )


def _priors(scenes: Sequence[Scene], names: Sequence[str]) -> tuple[list[str], NDArray[np.float16]]:
    words, counts = category_words(), dict[str, Counter[str]]()
    for item in (item for scene in scenes for item in scene.objects if item.color in names):
        counts.setdefault(words.get(item.category, ""), Counter())[str(item.color)] += 1
    categories = sorted(filter(None, counts))
    there = np.array([[counts[category][name] for name in names] for category in categories], np.float64)
    shares = (there + _EVEN / len(names)) / (there.sum(axis=1, keepdims=True) + _EVEN)
    return categories, np.log(shares).astype(np.float16)
