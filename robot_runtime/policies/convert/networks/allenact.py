"""AllenAct's ObjectNav policy for RoboTHOR: frozen features joined with the target, compressed, and a recurrent layer.

Weihs et al., "AllenAct", 2020; ``allenact_plugins/navigation_plugin/objectnav/models.py``
(``ResnetTensorNavActorCritic``) and ``allenact/embodiedai/models/visual_nav_models.py``, whose parameters have these
names; the backbone, which their checkpoints do not hold, is ``backbone`` here.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from robot_runtime.policies.convert.networks.frozen import OUT_CHANNELS, FrozenBackbone, frozen_backbone
from robot_runtime.policies.convert.networks.heads import LinearHead, StateEncoder

Image = Literal["rgb", "depth"]

SIDE = 224
"""Width and height of the images in pixels."""

_CELLS = SIDE // 32


@dataclass(frozen=True)
class AllenactConfig:
    """The shape of the network.

    Attributes:
        images: inputs of the backbone; depth as three equal channels.
        compressor: channels of its two convolutions.
        combiner: channels of its two convolutions.
        previous: rows of the previous action's embedding: 0 for none, ``actions``, or ``actions + 1`` with a row for an
            episode's start.
        previous_size: columns of that embedding.
    """

    backbone: FrozenBackbone = "resnet18"
    images: tuple[Image, ...] = ("rgb",)
    actions: int = 6
    categories: int = 12
    goal_size: int = 32
    compressor: tuple[int, int] = (128, 32)
    combiner: tuple[int, int] = (128, 32)
    rnn: Literal["GRU", "LSTM"] = "GRU"
    rnn_layers: int = 1
    hidden: int = 512
    previous: int = 0
    previous_size: int = 0

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Shape of the recurrent state: h of every layer (then c of every layer), batch, hidden."""
        return (self.rnn_layers * (2 if self.rnn == "LSTM" else 1), 1, self.hidden)


class _GoalEncoder(nn.Module):
    """Features of each image compressed, the target's embedding at every cell, and both combined."""

    def __init__(self, config: AllenactConfig) -> None:
        super().__init__()
        self.embed_goal = nn.Embedding(config.categories, config.goal_size)
        self._parts = [("", "")] if len(config.images) == 1 else [(f"{image}_", image) for image in config.images]
        first, second = config.compressor
        inside, out = config.combiner
        for prefix, _ in self._parts:
            compressor = nn.Sequential(
                nn.Conv2d(OUT_CHANNELS[config.backbone], first, 1), nn.ReLU(), nn.Conv2d(first, second, 1), nn.ReLU()
            )
            combiner = nn.Sequential(
                nn.Conv2d(second + config.goal_size, inside, 1), nn.ReLU(), nn.Conv2d(inside, out, 1)
            )
            self.add_module(f"{prefix}resnet_compressor", compressor)
            self.add_module(f"{prefix}target_obs_combiner", combiner)
        self.out_size = len(self._parts) * out * _CELLS * _CELLS

    def forward(self, features: list[Tensor], goal: Tensor) -> Tensor:
        target = self.embed_goal(goal.view(-1))[:, :, None, None].expand(-1, -1, _CELLS, _CELLS)
        made = []
        for (prefix, _), seen in zip(self._parts, features, strict=True):
            compressed = self.get_submodule(f"{prefix}resnet_compressor")(seen)
            made.append(self.get_submodule(f"{prefix}target_obs_combiner")(torch.cat([compressed, target], 1)))
        return torch.cat(made, 1).flatten(1)


class _Embedder(nn.Module):
    def __init__(self, config: AllenactConfig) -> None:
        super().__init__()
        self.fc = nn.Embedding(config.previous, config.previous_size)


class AllenactPolicy(nn.Module):
    """One step of the policy.

    Takes, in this order, float32 images (N, 224, 224, 3), depth (N, 224, 224, 1), prepared as the training did; the
    target int64 (N, 1); the state (layers, N, hidden); the previous action's id int64 (N, 1) if the configuration has
    one; and a mask bool (N, 1) that is false at an episode's first step. Gives logits (N, actions), value (N, 1) and
    the next state.
    """

    def __init__(self, config: AllenactConfig) -> None:
        super().__init__()
        self._config = config
        self.backbone = frozen_backbone(config.backbone)
        self.goal_visual_encoder = _GoalEncoder(config)
        size = self.goal_visual_encoder.out_size + config.previous_size
        if config.previous:
            self.prev_action_embedder = _Embedder(config)
        self.state_encoders = nn.ModuleDict(
            {"single_belief": StateEncoder(size, config.hidden, config.rnn, config.rnn_layers)}
        )
        self.actor = LinearHead("linear", config.hidden, config.actions)
        self.critic = LinearHead("fc", config.hidden, 1)

    @override
    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        count = len(self._config.images)
        *shown, goal, state = inputs[: count + 2]
        mask = inputs[-1]
        x = self.goal_visual_encoder([self._features(image) for image in shown], goal)
        if self._config.previous:
            x = torch.cat([x, self._previous(inputs[-2], mask)], -1)
        belief, next_state = self.state_encoders["single_belief"](x, state, mask)
        return self.actor(belief), self.critic(belief), next_state

    def _features(self, image: Tensor) -> Tensor:
        planes = image.permute(0, 3, 1, 2)
        return self.backbone(planes.expand(-1, 3, -1, -1))  # type: ignore[no-any-return]

    def _previous(self, previous: Tensor, mask: Tensor) -> Tensor:
        if self._config.previous == self._config.actions + 1:
            previous = torch.where(mask, previous + 1, torch.zeros_like(previous))
        return self.prev_action_embedder.fc(previous.view(-1))  # type: ignore[no-any-return]
