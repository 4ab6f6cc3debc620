"""Names of colors, learned from the pixels of objects: the weights of :mod:`robot_runtime.policies.eqa.colors`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from robot_runtime.policies.eqa.colors import histogram
from sim_bridge.training.eqa_views import Views

_LEAST_PIXELS = 10
_LEAST_SHARE, _LEAST_OBJECTS = 0.002, 3
"""A bin has weights if it holds this share of the pixels of so many objects."""

_UPDATES = 500


def write_color_names(views: Sequence[Views], out: Path, seed: int) -> None:
    """Fit a logistic regression to the objects whose color is asked for, and write names, bins, weights and bias."""
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
    np.savez_compressed(out, names=np.array(names), bins=bins.astype(np.uint16), weights=weights, bias=bias)
