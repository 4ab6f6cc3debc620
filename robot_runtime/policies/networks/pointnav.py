"""DD-PPO's PointNav policy on depth: ResNet and recurrent state, one step at a time.

Wijmans et al., "DD-PPO", ICLR 2020, section 4; habitat-baselines ``rl/ddppo/policy/resnet_policy.py``, whose parameters
have these names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from robot_runtime.policies.networks.resnet import Backbone, ResNetEncoder

_EMBEDDING = 32


@dataclass(frozen=True)
class PointNavConfig:
    """The shape of the network: what a checkpoint's configuration says."""

    backbone: Backbone = "resnet50"
    rnn: Literal["LSTM", "GRU"] = "LSTM"
    rnn_layers: int = 2
    hidden: int = 512
    height: int = 256
    width: int = 256
    actions: int = 4

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Of the recurrent state: batch, h of every layer (then c of every layer), hidden."""
        return (1, self.rnn_layers * (2 if self.rnn == "LSTM" else 1), self.hidden)


class _StateEncoder(nn.Module):
    """The recurrent part; the state of an episode that just began is zero whatever is handed in."""

    def __init__(self, size: int, config: PointNavConfig) -> None:
        super().__init__()
        self.is_lstm = config.rnn == "LSTM"
        cell = nn.LSTM if self.is_lstm else nn.GRU
        self.rnn = cell(size, config.hidden, config.rnn_layers)

    def forward(self, x: Tensor, state: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """x (N, size), state (N, layers, hidden), mask (N, 1) bool to features (N, hidden) and the next state."""
        layers = torch.where(mask.view(-1, 1, 1), state, torch.zeros_like(state)).permute(1, 0, 2)
        if self.is_lstm:
            h, c = torch.chunk(layers, 2, 0)
            out, (h, c) = self.rnn(x.unsqueeze(0), (h.contiguous(), c.contiguous()))
            layers = torch.cat([h, c], 0)
        else:
            out, layers = self.rnn(x.unsqueeze(0), layers.contiguous())
        return out.squeeze(0), layers.permute(1, 0, 2)


class _Net(nn.Module):
    def __init__(self, config: PointNavConfig) -> None:
        super().__init__()
        self.prev_action_embedding = nn.Embedding(config.actions + 1, _EMBEDDING)
        self.tgt_embeding = nn.Linear(3, _EMBEDDING)  # spelt as in the checkpoints
        self.visual_encoder = ResNetEncoder(config.backbone, 1, config.height, config.width)
        self.visual_fc = nn.Sequential(nn.Flatten(), nn.Linear(self.visual_encoder.out_size, config.hidden), nn.ReLU())
        self.state_encoder = _StateEncoder(config.hidden + 2 * _EMBEDDING, config)

    def forward(
        self, depth: Tensor, pointgoal: Tensor, state: Tensor, previous: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        seen = self.visual_fc(self.visual_encoder(depth.permute(0, 3, 1, 2)))
        rho, phi = pointgoal[:, 0], pointgoal[:, 1]
        goal = self.tgt_embeding(torch.stack([rho, torch.cos(-phi), torch.sin(-phi)], -1))
        started = torch.where(mask, previous + 1, torch.zeros_like(previous)).view(-1)
        done = self.prev_action_embedding(started)
        return self.state_encoder(torch.cat([seen, goal, done], 1), state, mask)  # type: ignore[no-any-return]


class _Linear(nn.Module):
    """A linear layer under the name that checkpoints give it."""

    def __init__(self, name: str, size: int, out: int) -> None:
        super().__init__()
        self._name = name
        self.add_module(name, nn.Linear(size, out))

    def forward(self, x: Tensor) -> Tensor:
        return self.get_submodule(self._name)(x)  # type: ignore[no-any-return]


class PointNavPolicy(nn.Module):
    """One step of the policy.

    Takes depth float32 (N, H, W, 1), point goal (N, 2) as [rho m, azimuth rad], state (N, layers, hidden), the previous
    action's id int64 (N, 1) and a mask bool (N, 1) that is false at an episode's first step; gives logits (N, actions),
    value (N, 1) and the next state.
    """

    def __init__(self, config: PointNavConfig) -> None:
        super().__init__()
        self.net = _Net(config)
        self.action_distribution = _Linear("linear", config.hidden, config.actions)
        self.critic = _Linear("fc", config.hidden, 1)

    def forward(
        self, depth: Tensor, pointgoal: Tensor, state: Tensor, previous: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        features, next_state = self.net(depth, pointgoal, state, previous, mask)
        return self.action_distribution(features), self.critic(features), next_state
