"""The bias of depth, from pose replays: what a log's depth and its scene's twin differ by at the same pose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robot_runtime.errors import ConfigError


def depth_bias(replays: Sequence[Path]) -> float:
    """Metres, measured less true: the median over all frames of all replays; 0 without any.

    A camera that hangs elsewhere than described makes such differences, too: replay into a robot whose mount is right.

    Raises:
        ConfigError: a file that is no replay, or has no pose replay in it.
    """
    found_mm = [bias_mm for path in replays for bias_mm in _biases_mm(path)]
    if replays and not found_mm:
        raise ConfigError(f"{replays[0]}: none of its frames has depth to compare", "replay logs with depth")
    return float(np.median(found_mm)) / 1000 if found_mm else 0.0


def _biases_mm(path: Path) -> list[float]:
    try:
        frames = json.loads(path.read_text(encoding="utf-8"))["pose"]["frames"]
        return [frame["depth"]["bias_mm"] for frame in frames if frame["depth"].get("bias_mm") is not None]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path}: holds no pose replay with depth: {error!r}", "make one: `robot-runtime replay LOG`"
        ) from error
