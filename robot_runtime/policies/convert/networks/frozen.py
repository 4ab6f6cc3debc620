"""Frozen backbones of AllenAct's policies: torchvision's ResNets and CLIP's RN50.

He et al., 2016 (torchvision ``models/resnet.py``), and Radford et al., 2021 (openai/CLIP ``clip/model.py``,
``ModifiedResNet``): the names of their parameters are those of the published weights.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

FrozenBackbone = Literal["resnet18", "resnet50", "clip_rn50"]

OUT_CHANNELS: Mapping[FrozenBackbone, int] = {"resnet18": 512, "resnet50": 2048, "clip_rn50": 2048}
"""Channels of the features; their width and height are 1/32 of the image's."""


class _Basic(nn.Module):
    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = _shortcut(channels, planes, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + (x if self.downsample is None else self.downsample(x)))


class _Bottleneck(nn.Module):
    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.downsample = _shortcut(channels, 4 * planes, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(out)))))
        return torch.relu(out + (x if self.downsample is None else self.downsample(x)))


def _shortcut(channels: int, out: int, stride: int) -> nn.Module | None:
    if stride == 1 and channels == out:
        return None
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))


class TorchvisionResNet(nn.Module):
    """Images (N, 3, H, W), normalized as ImageNet's, to features (N, C, H / 32, W / 32): all but the classifier."""

    def __init__(self, depths: Sequence[int], block: type[_Basic] | type[_Bottleneck]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for number, depth in enumerate(depths):
            planes = 64 << number
            blocks = []
            for position in range(depth):
                blocks.append(block(channels, planes, 2 if number and not position else 1))
                channels = planes * (4 if block is _Bottleneck else 1)
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))

    @override
    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return x


class _ClipBottleneck(nn.Module):
    """Bottleneck block with average pooling in place of strides."""

    def __init__(self, channels: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.avgpool: nn.Module = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.downsample: nn.Module | None = None
        if stride > 1 or channels != 4 * planes:
            self.downsample = nn.Sequential()
            self.downsample.add_module("-1", nn.AvgPool2d(stride))
            self.downsample.add_module("0", nn.Conv2d(channels, 4 * planes, 1, bias=False))
            self.downsample.add_module("1", nn.BatchNorm2d(4 * planes))

    def forward(self, x: Tensor) -> Tensor:
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.avgpool(torch.relu(self.bn2(self.conv2(out))))
        out = self.bn3(self.conv3(out))
        return torch.relu(out + (x if self.downsample is None else self.downsample(x)))


class ClipResNet(nn.Module):
    """CLIP's RN50 up to its features (N, 2048, H / 32, W / 32), without the pooling by attention."""

    def __init__(self, depths: Sequence[int] = (3, 4, 6, 3), width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width // 2, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width // 2)
        self.conv2 = nn.Conv2d(width // 2, width // 2, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width // 2)
        self.conv3 = nn.Conv2d(width // 2, width, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)
        channels = width
        for number, depth in enumerate(depths):
            planes = width << number
            blocks = []
            for position in range(depth):
                blocks.append(_ClipBottleneck(channels, planes, 2 if number and not position else 1))
                channels = 4 * planes
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))

    @override
    def forward(self, x: Tensor) -> Tensor:
        for number in range(1, 4):
            x = torch.relu(getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(x)))
        x = nn.functional.avg_pool2d(x, 2)
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return x


def frozen_backbone(kind: FrozenBackbone) -> nn.Module:
    """The backbone of that name, with random weights."""
    if kind == "clip_rn50":
        return ClipResNet()
    if kind == "resnet50":
        return TorchvisionResNet((3, 4, 6, 3), _Bottleneck)
    return TorchvisionResNet((2, 2, 2, 2), _Basic)
