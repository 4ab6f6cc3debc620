"""ResNets with group normalization, the backbones of DD-PPO's policies.

Wijmans et al., "DD-PPO", ICLR 2020, section 4; habitat-baselines ``rl/ddppo/policy/resnet.py``. Half as wide as the
original (He et al., 2016): batches are small, hence group normalization, and width costs speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

Backbone = Literal["resnet18", "resnet50", "resneXt50", "se_resnet50", "se_resneXt50", "se_resneXt101"]


@dataclass(frozen=True)
class Layers:
    """Architecture of a backbone.

    Attributes:
        depths: blocks in each of the four layers.
        bottleneck: 1x1, 3x3, 1x1 instead of 3x3, 3x3.
        next: ResNeXt: planes doubled, expanded by 2 instead of 4, and convolutions in groups; as in the
            framework, only in the first block of each layer.
        squeeze: squeeze and excitation after each block.
    """

    depths: tuple[int, int, int, int]
    bottleneck: bool = True
    next: bool = False
    squeeze: bool = False

    @property
    def expansion(self) -> int:
        """Channels out of a block over its planes."""
        return (2 if self.next else 4) if self.bottleneck else 1


BACKBONES: Mapping[Backbone, Layers] = {
    "resnet18": Layers((2, 2, 2, 2), bottleneck=False),
    "resnet50": Layers((3, 4, 6, 3)),
    "resneXt50": Layers((3, 4, 6, 3), next=True),
    "se_resnet50": Layers((3, 4, 6, 3), squeeze=True),
    "se_resneXt50": Layers((3, 4, 6, 3), next=True, squeeze=True),
    "se_resneXt101": Layers((3, 4, 23, 3), next=True, squeeze=True),
}

_REDUCTION = 16


class _Squeeze(nn.Module):
    """Squeeze and excitation: channels weighted by their means over the image (Hu et al., 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inside = channels // _REDUCTION
        self.excite = nn.Sequential(nn.Linear(channels, inside), nn.ReLU(), nn.Linear(inside, channels), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return self.excite(x.mean((2, 3)))[:, :, None, None] * x  # type: ignore[no-any-return]


class _Block(nn.Module):
    """Two 3x3 convolutions, or with a bottleneck 1x1, 3x3, 1x1, with a shortcut."""

    def __init__(self, kind: Layers, channels: int, planes: int, stride: int, groups: int, cardinality: int) -> None:
        super().__init__()
        out = planes * kind.expansion
        if kind.bottleneck:
            layers = [
                nn.Conv2d(channels, planes, 1, bias=False),
                nn.GroupNorm(groups, planes),
                nn.ReLU(),
                nn.Conv2d(planes, planes, 3, stride, 1, groups=cardinality, bias=False),
                nn.GroupNorm(groups, planes),
                nn.ReLU(),
                nn.Conv2d(planes, out, 1, bias=False),
                nn.GroupNorm(groups, out),
            ]
        else:
            layers = [
                nn.Conv2d(channels, planes, 3, stride, 1, bias=False),
                nn.GroupNorm(groups, planes),
                nn.ReLU(),
                nn.Conv2d(planes, out, 3, 1, 1, bias=False),
                nn.GroupNorm(groups, out),
            ]
        self.convs = nn.Sequential(*layers)
        self.se: nn.Module | None = _Squeeze(out) if kind.squeeze else None
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.GroupNorm(groups, out))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        through = self.convs(x)
        if self.se is not None:
            through = self.se(through)
        return torch.relu(through + shortcut)


class ResNet(nn.Module):
    """Images (N, channels, H, W) to features (N, ``out_channels``, H / 32, W / 32)."""

    def __init__(self, backbone: Backbone, channels: int, base_planes: int = 32, groups: int = 16) -> None:
        super().__init__()
        kind = BACKBONES[backbone]
        self.conv1 = nn.Sequential(
            nn.Conv2d(channels, base_planes, 7, 2, 3, bias=False), nn.GroupNorm(groups, base_planes), nn.ReLU()
        )
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inside = base_planes
        for number, depth in enumerate(kind.depths):
            planes = (base_planes << number) * (2 if kind.next else 1)
            blocks = []
            for position in range(depth):
                stride = 2 if number and not position else 1
                cardinality = base_planes // 2 if kind.next and not position else 1
                blocks.append(_Block(kind, inside, planes, stride, groups, cardinality))
                inside = planes * kind.expansion
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))
        self.out_channels = inside

    @override
    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv1(x))
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return x


class RunningMeanAndVar(nn.Module):
    """Normalization with the training's mean and variance (habitat-baselines ``running_mean_and_var.py``)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("_mean", torch.zeros(1, channels, 1, 1))
        self.register_buffer("_var", torch.ones(1, channels, 1, 1))
        self.register_buffer("_count", torch.zeros(()))
        self._mean: Tensor
        self._var: Tensor

    @override
    def forward(self, x: Tensor) -> Tensor:
        inverse = torch.rsqrt(self._var.clamp(min=1e-2))
        return x * inverse - self._mean * inverse


class ResNetEncoder(nn.Module):
    """An image halved, encoded and compressed to some 2,048 numbers (habitat-baselines ``ResNetEncoder``)."""

    def __init__(
        self, backbone: Backbone, channels: int, height: int, width: int, base_planes: int = 32, normalize: bool = False
    ) -> None:
        super().__init__()
        self.running_mean_and_var = RunningMeanAndVar(channels) if normalize else nn.Sequential()
        self.backbone = ResNet(backbone, channels, base_planes, base_planes // 2)
        rows, columns = (-(-(side // 2) // 32) for side in (height, width))
        compressed = round(2048 / (rows * columns))
        self.compression = nn.Sequential(
            nn.Conv2d(self.backbone.out_channels, compressed, 3, 1, 1, bias=False),
            nn.GroupNorm(1, compressed),
            nn.ReLU(),
        )
        self.out_size = compressed * rows * columns

    @override
    def forward(self, x: Tensor) -> Tensor:
        halved = nn.functional.avg_pool2d(x, 2)
        return self.compression(self.backbone(self.running_mean_and_var(halved)))  # type: ignore[no-any-return]
