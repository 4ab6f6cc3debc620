"""DD-PPO's navigation policy: images through a ResNet, with goal and previous action, recurrent, step by step.

Wijmans et al., "DD-PPO", ICLR 2020, section 4; habitat-baselines ``rl/ddppo/policy/resnet_policy.py``, whose parameters
have these names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from robot_runtime.policies.convert.networks.heads import LinearHead, StateEncoder
from robot_runtime.policies.convert.networks.resnet import Backbone, ResNetEncoder

Image = Literal["rgb", "depth"]
VectorSensor = Literal["pointgoal_with_gps_compass", "pointgoal", "objectgoal", "compass", "gps"]

SENSOR_LAYERS: Mapping[VectorSensor, str] = {
    "pointgoal_with_gps_compass": "tgt_embeding",  # spelled as in the checkpoints
    "pointgoal": "pointgoal_embedding",
    "objectgoal": "obj_categories_embedding",
    "compass": "compass_embedding",
    "gps": "gps_embedding",
}
"""Each sensor's layer, in the order in which their outputs are concatenated."""

CHANNELS: Mapping[Image, int] = {"rgb": 3, "depth": 1}

_EMBEDDING = 32


@dataclass(frozen=True)
class DdppoConfig:
    """The shape of the network.

    Attributes:
        height: height of the images.
        width: width of the images.
        images: images in the order of the first convolution's channels.
        sensors: sensors in the order of :data:`SENSOR_LAYERS`.
        polar: the sensor that goes through ``tgt_embeding``, as distance, cosine and sine.
        categories: rows of the object goal's embedding.
        normalize: whether images are normalized with a running mean and variance.
    """

    backbone: Backbone = "resnet50"
    rnn: Literal["LSTM", "GRU"] = "LSTM"
    rnn_layers: int = 2
    hidden: int = 512
    height: int = 256
    width: int = 256
    actions: int = 4
    images: tuple[Image, ...] = ("depth",)
    sensors: tuple[VectorSensor, ...] = ("pointgoal_with_gps_compass",)
    polar: VectorSensor = "pointgoal_with_gps_compass"
    categories: int = 0
    normalize: bool = False
    base_planes: int = 32

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """Shape of the recurrent state: batch, h of every layer (then c of every layer), hidden."""
        return (1, self.rnn_layers * (2 if self.rnn == "LSTM" else 1), self.hidden)

    def layer_of(self, sensor: VectorSensor) -> str:
        """The name of the layer that a sensor goes through."""
        return SENSOR_LAYERS["pointgoal_with_gps_compass" if sensor == self.polar else sensor]


class _Net(nn.Module):
    def __init__(self, config: DdppoConfig) -> None:
        super().__init__()
        self._config = config
        self.prev_action_embedding = nn.Embedding(config.actions + 1, _EMBEDDING)
        for sensor in config.sensors:
            if sensor == "objectgoal":
                layer: nn.Module = nn.Embedding(config.categories, _EMBEDDING)
            else:
                layer = nn.Linear(3 if sensor == config.polar else 2, _EMBEDDING)
            self.add_module(config.layer_of(sensor), layer)
        channels = sum(CHANNELS[image] for image in config.images)
        self.visual_encoder = ResNetEncoder(
            config.backbone, channels, config.height, config.width, config.base_planes, config.normalize
        )
        self.visual_fc = nn.Sequential(nn.Flatten(), nn.Linear(self.visual_encoder.out_size, config.hidden), nn.ReLU())
        size = config.hidden + (len(config.sensors) + 1) * _EMBEDDING
        self.state_encoder = StateEncoder(size, config.hidden, config.rnn, config.rnn_layers)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        *shown, state, previous, mask = inputs
        count = len(self._config.images)
        planes = [
            (image.float() / 255 if name == "rgb" else image).permute(0, 3, 1, 2)
            for name, image in zip(self._config.images, shown[:count], strict=True)
        ]
        parts = [self.visual_fc(self.visual_encoder(torch.cat(planes, 1)))]
        for sensor, values in zip(self._config.sensors, shown[count:], strict=True):
            parts.append(self._embed(sensor, values))
        started = torch.where(mask, previous + 1, torch.zeros_like(previous)).view(-1)
        parts.append(self.prev_action_embedding(started))
        features, layers = self.state_encoder(torch.cat(parts, 1), state.permute(1, 0, 2), mask)
        return features, layers.permute(1, 0, 2)

    def _embed(self, sensor: VectorSensor, values: Tensor) -> Tensor:
        layer = self.get_submodule(self._config.layer_of(sensor))
        if sensor == self._config.polar:
            rho, phi = values[:, 0], values[:, 1]
            values = torch.stack([rho, torch.cos(-phi), torch.sin(-phi)], -1)
        elif sensor == "objectgoal":
            values = values.view(-1)
        elif sensor == "compass":
            values = torch.cat([torch.cos(values), torch.sin(values)], -1)
        return layer(values)  # type: ignore[no-any-return]


class DdppoPolicy(nn.Module):
    """One step of the policy.

    Takes, in this order, the images of the configuration, uint8 (N, H, W, 3) or float32 (N, H, W, 1); its
    sensors (N, 2), (N, 1) for the compass and int64 (N, 1) for the object goal; the state (N, layers, hidden); the
    previous action's id int64 (N, 1); and a mask bool (N, 1) that is false at an episode's first step. Gives logits
    (N, actions), value (N, 1) and the next state.
    """

    def __init__(self, config: DdppoConfig) -> None:
        super().__init__()
        self.net = _Net(config)
        self.action_distribution = LinearHead("linear", config.hidden, config.actions)
        self.critic = LinearHead("fc", config.hidden, 1)

    @override
    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features, next_state = self.net(*inputs)
        return self.action_distribution(features), self.critic(features), next_state
