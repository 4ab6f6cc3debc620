"""Servers of openpi, RoboArena and MolmoSpaces: what they are sent, and the meaning of their ``actions``.

openpi at 15a9616 (``serving/websocket_policy_server.py``), RoboArena at 6fa329f (``policy_server.py``), MolmoSpaces at
1320b26 (``evaluation/policy_server.py``). The first two answer ``{"actions": (N, D)}``; what the columns are is known
to who trained the policy, and neither server says it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.timed import Decision, trajectory, velocity
from robot_runtime.common import config
from robot_runtime.common.quantities import ControlPeriod
from robot_runtime.errors import PolicyError
from robot_runtime.imaging.preprocess import MAX_SIDE, ResizeWithPad
from robot_runtime.policies.remote.protocol import observation_to_message
from robot_runtime.policy import Observation
from robot_runtime.tasks.task import Task

MOST_ACTIONS = 1000
_IMAGE = "observation/exterior_image_0_left"


@dataclass(frozen=True)
class Chunks(config.Strict):
    """Meaning of a server's ``actions``, and names of what it is sent.

    Attributes:
        actions: ``velocities`` (m/s, rad/s), ``poses`` (x forward, y left, m; and yaw, rad, left positive) in the
            robot's frame at the image, or ``ids`` of the task's actions; None where the server answers ``action``.
        columns: columns that have these numbers, "0,1"; empty for all.
        period_s: time from one action to the next.
        carry_out: number of actions after which the server is asked again; None for all.
        keys: sensor=name of what the server calls it, separated by commas.
    """

    actions: Literal["velocities", "poses", "ids"] | None = None
    columns: str = ""
    period_s: ControlPeriod = 0.25
    carry_out: int | None = None
    keys: str = ""

    def __post_init__(self) -> None:
        config.check_positive(self, "period_s")
        if self.carry_out is not None and self.carry_out < 1:
            raise ValueError(f"carry_out must be positive, got {self.carry_out}")
        if not all(column.strip().isdecimal() for column in self.columns.split(",") if self.columns):
            raise ValueError(f"columns must be numbers separated by commas, got {self.columns!r}")
        if not all(name and key for name, key in self.renamed().items()):
            raise ValueError(f"keys must be sensor=name, separated by commas, got {self.keys!r}")

    def renamed(self) -> dict[str, str]:
        """Sensor -> name of what the server calls it."""
        pairs = (pair.partition("=") for pair in self.keys.split(",") if pair)
        return {name.strip(): key.strip() for name, _, key in pairs}


def is_roboarena(about: Mapping[Any, Any]) -> bool:
    """Whether a server's first message is a configuration of RoboArena, whose requests name an endpoint."""
    return "needs_session_id" in about and "action_space" in about


def request(observation: Observation, about: Mapping[Any, Any], session: str, meaning: Chunks) -> dict[str, Any]:
    """The request for actions: the sensors under their own names or those of ``meaning``.

    An instruction is also ``prompt`` (openpi, RoboArena) and ``task`` (MolmoSpaces). The server's first message, of
    RoboArena its configuration, says in which form it wants the image.
    """
    message = observation_to_message(observation)
    if "instruction" in message:
        message |= dict.fromkeys(("prompt", "task"), message["instruction"])
    if is_roboarena(about):
        message |= {"endpoint": "infer", "session_id": session}
        if about.get("n_external_cameras") and "rgb" in message:
            message[_IMAGE] = _padded(message["rgb"], about.get("image_resolution"))
    for name, key in meaning.renamed().items():
        if name not in message:
            raise PolicyError(f"there is no sensor {name!r} to send as {key!r}", f"use {', '.join(observation)}")
        message[key] = message.pop(name)
    return message


def decisions(answer: object, meaning: Chunks, task: Task, server: str) -> tuple[Decision, ...]:
    """The decisions that the value of ``actions`` means, (N, D).

    Raises:
        PolicyError: the meaning is not given or is another than the width allows, or a number is not finite.
    """
    rows: NDArray[Any] = np.empty(0)
    with suppress(ValueError):  # rows of different lengths
        rows = np.asarray(answer if isinstance(answer, np.ndarray | list) else ())
    shown = f"{server}: answered actions of shape {rows.shape}"
    if meaning.actions is None:
        raise PolicyError(
            f"{shown}, and does not say what they are", "say it: --agent-arg actions=velocities, poses or ids"
        )
    if rows.ndim != 2 or not 0 < len(rows) <= MOST_ACTIONS or rows.dtype.kind not in "iuf":
        raise PolicyError(f"{shown} and type {rows.dtype}, not rows of numbers", "correct the server")
    columns = [int(column) for column in meaning.columns.split(",")] if meaning.columns else [*range(rows.shape[1])]
    widths = {"velocities": (2,), "poses": (2, 3), "ids": (1,)}[meaning.actions]
    if len(columns) not in widths or max(columns) >= rows.shape[1]:
        wanted = " or ".join(map(str, widths))
        raise PolicyError(
            f"{shown}; {meaning.actions} have {wanted} columns", "name the columns: --agent-arg columns=0,1"
        )
    rows = rows[: meaning.carry_out, columns]
    if not np.isfinite(rows).all():
        raise PolicyError(f"{shown} with a number that is not finite", "correct the server")
    if meaning.actions == "velocities":
        return tuple(velocity(v, w, duration_s=meaning.period_s, settle=False) for v, w in rows.astype(float).tolist())
    if meaning.actions == "poses":
        return (trajectory(rows.tolist(), meaning.period_s),)
    ids = [float(number) for number in rows[:, 0]]
    if not all(number.is_integer() and 0 <= number < len(task.actions) for number in ids):
        raise PolicyError(
            f"{server}: answered ids {ids!r:.100}; task {task.name!r} has 0 to {len(task.actions) - 1}",
            "choose the task that the policy was trained in",
        )
    return tuple(task.actions[int(number)] for number in ids)


def _padded(rgb: NDArray[np.uint8], size: object) -> NDArray[Any]:
    """The image at a size (height, width) with black borders, its proportions kept: openpi's ``resize_with_pad``."""
    if size is None:
        return rgb
    if not isinstance(size, list) or len(size) != 2 or not all(type(n) is int and 0 < n <= MAX_SIDE for n in size):
        raise PolicyError(f"the server asks for images of {size!r:.100} pixels", "correct its image_resolution")
    return ResizeWithPad((_IMAGE,), size[0], size[1], "pil_bilinear").apply(rgb)
