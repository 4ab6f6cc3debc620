"""The policy's network: two views of the map, the goal and the last action, a GRU, four logits.

:class:`PointNavPolicy` is a complete step, mapping included; :class:`StopsByRule` is the shipped policy.
"""

import torch
from torch import Tensor, nn

from robot_runtime.tasks.task import Task
from sim_bridge.training import mapping
from sim_bridge.training.mapping import COARSE_CELLS, FINE_CELLS, MAP_NUMBERS, MapMemory

HIDDEN = 192
ACTIONS = 4
_STOP, _NO_ACTION = 0, ACTIONS
STOP_RESERVE_M = 0.03
"""Distance inside the success radius at which the policy stops, as the teacher does."""

CERTAIN = 30.0
"""A logit greater than all learned ones."""

_CHANNELS, _WIDTH = 3, 32
_FAR_M, _NEAR_M = 10.0, 1.0


class Head(nn.Module):
    """The network from the views to logits.

    A further channel of each view holds how much nearer to the goal a cell is than the robot.
    """

    def __init__(self) -> None:
        super().__init__()
        for name, cells, step_m in (
            ("fine", FINE_CELLS, mapping.RESOLUTION_M),
            ("coarse", COARSE_CELLS, mapping.RESOLUTION_M * mapping.POOL),
        ):
            middle = (torch.arange(cells, dtype=torch.float32) - (cells - 1) / 2) * step_m
            self.register_buffer(f"_{name}_ahead", (-middle)[None, :, None], persistent=False)
            self.register_buffer(f"_{name}_left", (-middle)[None, None, :], persistent=False)
        self.fine = _encoder(FINE_CELLS)
        self.coarse = _encoder(COARSE_CELLS)
        self.before = nn.Sequential(nn.Linear(8 + mapping.MOTION_NUMBERS + ACTIONS + 1, 48), nn.ReLU())
        self.rnn = nn.GRUCell(128 + 128 + 48, HIDDEN)
        self.after = nn.Sequential(nn.Linear(HIDDEN + 128 + 128 + 48, 128), nn.ReLU())
        self.actor = nn.Linear(128, ACTIONS)

    def features(self, fine: Tensor, coarse: Tensor, goal: Tensor, motion: Tensor, previous: Tensor) -> Tensor:
        """The features of a step, before the recurrent layer.

        Args:
            fine: (B, FINE_CELLS, FINE_CELLS).
            coarse: (B, 2, COARSE_CELLS, COARSE_CELLS).
            goal: (B, 2), polar.
            motion: (B, MOTION_NUMBERS).
            previous: int64 (B,), the last action's id, ``ACTIONS`` for none.
        """
        rho, phi = goal[:, :1], goal[:, 1:2]
        ahead, left = rho * torch.cos(phi), rho * torch.sin(phi)
        f = torch.stack(
            [fine.clamp(min=0) / mapping.MOST, fine.clamp(max=0) / mapping.LEAST, self._nearer("fine", ahead, left)], 1
        )
        c = torch.stack([coarse[:, 0] / mapping.MOST, coarse[:, 1], self._nearer("coarse", ahead, left)], 1)
        near = rho.clamp(max=_NEAR_M)
        numbers = torch.cat(
            [
                rho / _FAR_M,
                near,
                torch.cos(phi),
                torch.sin(phi),
                torch.cos(6 * phi),
                torch.sin(6 * phi),
                near * torch.cos(phi),
                near * torch.sin(phi),
                motion.clamp(-2, 2),
                nn.functional.one_hot(previous, ACTIONS + 1).to(goal.dtype),
            ],
            1,
        )
        f, c = (one.contiguous(memory_format=torch.channels_last) for one in (f, c))
        return torch.cat([self.fine(f), self.coarse(c), self.before(numbers)], 1)

    def _nearer(self, name: str, ahead: Tensor, left: Tensor) -> Tensor:
        cell_ahead, cell_left = getattr(self, f"_{name}_ahead"), getattr(self, f"_{name}_left")
        dx, dy = cell_ahead - ahead[:, :, None], cell_left - left[:, :, None]
        rho = torch.sqrt(ahead * ahead + left * left)[:, :, None]
        return ((torch.sqrt(dx * dx + dy * dy) - rho) / 2).clamp(-1.5, 1.5)

    def remember(self, features: Tensor, hidden: Tensor) -> Tensor:
        """The next hidden state, (B, HIDDEN)."""
        remembered: Tensor = self.rnn(features, hidden)
        return remembered

    def decide(self, features: Tensor, hidden: Tensor) -> Tensor:
        """Logits, (B, ACTIONS)."""
        logits: Tensor = self.actor(self.after(torch.cat([features, hidden], 1)))
        return logits


class PointNavPolicy(nn.Module):
    """One step of the complete policy, with its memory passed in and out."""

    def __init__(self, task: Task, head: Head) -> None:
        super().__init__()
        self.memory = MapMemory(task)
        self.head = head

    def forward(
        self,
        depth: Tensor,
        pointgoal: Tensor,
        gps: Tensor,
        compass: Tensor,
        rnn_state: Tensor,
        prev_action: Tensor,
        not_done_mask: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Logits (B, ACTIONS) and the next state (B, 1, STATE_NUMBERS)."""
        state = rnn_state[:, 0]
        fine, coarse, motion, remembered = self.memory(
            depth, gps, compass, prev_action, not_done_mask, state[:, :MAP_NUMBERS]
        )
        hidden = torch.where(not_done_mask, state[:, MAP_NUMBERS:], 0.0)
        previous = torch.where(not_done_mask, prev_action, _NO_ACTION)[:, 0]
        features = self.head.features(fine, coarse, pointgoal, motion, previous)
        hidden = self.head.remember(features, hidden)
        return self.head.decide(features, hidden), torch.cat([remembered, hidden], 1)[:, None]


class StopsByRule(nn.Module):
    """A policy that stops by the teacher's rule: certainly near the goal, never elsewhere.

    The distance to the goal is an input; a network that imitates the rule is off by centimeters, which are failures.
    """

    _is_stop: Tensor

    def __init__(self, policy: PointNavPolicy, task: Task) -> None:
        super().__init__()
        self.policy = policy
        self._within_m = task.success.distance_m - STOP_RESERVE_M
        self.register_buffer(
            "_is_stop", nn.functional.one_hot(torch.tensor([_STOP]), ACTIONS).float(), persistent=False
        )

    def forward(self, depth: Tensor, pointgoal: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        """The policy's outputs with the rule applied."""
        logits, state = self.policy(depth, pointgoal, *others)
        rule = torch.where(pointgoal[:, :1] <= self._within_m, CERTAIN, -CERTAIN)
        return logits + self._is_stop * (rule - logits), state


STATE_NUMBERS = MAP_NUMBERS + HIDDEN


def _encoder(cells: int) -> nn.Sequential:
    """An encoder that begins with patches of 4 x 4 cells, four times faster on a CPU than overlapping convolutions."""
    side = cells // 8
    return nn.Sequential(
        nn.Conv2d(_CHANNELS, _WIDTH, 4, 4),
        nn.ReLU(),
        nn.Conv2d(_WIDTH, _WIDTH, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(_WIDTH, _WIDTH, 3, 1, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(_WIDTH * side * side, 128),
        nn.ReLU(),
    )
