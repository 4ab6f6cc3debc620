"""ResNets with group normalisation, as DD-PPO's policies have them.

Wijmans et al., "DD-PPO", ICLR 2020, section 4; habitat-baselines ``rl/ddppo/policy/resnet.py``. Half as wide as the
original (He et al., 2016): batches are small, so groups are normalised, and width costs speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Backbone = Literal["resnet18", "resnet50"]

_BLOCKS: dict[Backbone, tuple[bool, Sequence[int]]] = {
    "resnet18": (False, (2, 2, 2, 2)),
    "resnet50": (True, (3, 4, 6, 3)),
}
_EXPANSION = 4


class _Block(nn.Module):
    """Two 3x3 convolutions, or with a bottleneck 1x1, 3x3, 1x1, and what goes round them."""

    def __init__(self, channels: int, planes: int, stride: int, groups: int, bottleneck: bool) -> None:
        super().__init__()
        out = planes * (_EXPANSION if bottleneck else 1)
        if bottleneck:
            layers = [
                nn.Conv2d(channels, planes, 1, bias=False),
                nn.GroupNorm(groups, planes),
                nn.ReLU(),
                nn.Conv2d(planes, planes, 3, stride, 1, bias=False),
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
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.GroupNorm(groups, out))

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        return torch.relu(self.convs(x) + around)


class ResNet(nn.Module):
    """Images (N, channels, H, W) to features (N, ``out_channels``, H / 32, W / 32)."""

    def __init__(self, backbone: Backbone, channels: int, base_planes: int = 32, groups: int = 16) -> None:
        super().__init__()
        bottleneck, depths = _BLOCKS[backbone]
        self.conv1 = nn.Sequential(
            nn.Conv2d(channels, base_planes, 7, 2, 3, bias=False), nn.GroupNorm(groups, base_planes), nn.ReLU()
        )
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inside = base_planes
        for number, depth in enumerate(depths):
            planes = base_planes << number
            blocks = []
            for position in range(depth):
                stride = 2 if number and not position else 1
                blocks.append(_Block(inside, planes, stride, groups, bottleneck))
                inside = planes * (_EXPANSION if bottleneck else 1)
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))
        self.out_channels = inside

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv1(x))
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return x


class ResNetEncoder(nn.Module):
    """An image halved, encoded and compressed to some 2,048 numbers (habitat-baselines ``ResNetEncoder``).

    Args:
        channels: of the image. height, width: of the image, before it is halved.
    """

    def __init__(self, backbone: Backbone, channels: int, height: int, width: int, base_planes: int = 32) -> None:
        super().__init__()
        self.backbone = ResNet(backbone, channels, base_planes, base_planes // 2)
        rows, columns = (-(-(side // 2) // 32) for side in (height, width))
        compressed = round(2048 / (rows * columns))
        self.compression = nn.Sequential(
            nn.Conv2d(self.backbone.out_channels, compressed, 3, 1, 1, bias=False),
            nn.GroupNorm(1, compressed),
            nn.ReLU(),
        )
        self.out_size = compressed * rows * columns

    def forward(self, x: Tensor) -> Tensor:
        return self.compression(self.backbone(nn.functional.avg_pool2d(x, 2)))  # type: ignore[no-any-return]
