"""ShuffleNet V2: Ma et al., Practical Guidelines for Efficient CNN Architecture Design, 2018."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.views import transpose
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model

__all__ = [
    "ShuffleNetV2",
    "ShuffleNet_V2_X0_5_Weights",
    "ShuffleNet_V2_X1_0_Weights",
    "ShuffleNet_V2_X1_5_Weights",
    "ShuffleNet_V2_X2_0_Weights",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
]


class ShuffleNet_V2_X0_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("shufflenetv2_x0.5-f707e7126e.pth", 1_366_792)
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("shufflenetv2_x1-5666bf0f80.pth", 2_278_604)
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X1_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("shufflenetv2_x1_5-3c479a10.pth", 3_503_624, resize_size=232)
    DEFAULT = IMAGENET1K_V1


class ShuffleNet_V2_X2_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("shufflenetv2_x2_0-8be3c8ee.pth", 7_393_996, resize_size=232)
    DEFAULT = IMAGENET1K_V1


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Deals the channels of `groups` groups out in turn, x (N, C, H, W)."""
    count, channels, height, width = x.size()
    x = x.view(count, groups, channels // groups, height, width)
    return transpose(x, 1, 2).contiguous().view(count, channels, height, width)


def _pointwise(inp: int, out: int) -> list[nn.Module]:
    convolution = nn.Conv2d(inp, out, kernel_size=1, stride=1, padding=0, bias=False)
    return [convolution, nn.BatchNorm2d(out), nn.ReLU(inplace=True)]


class InvertedResidual(nn.Module):
    """One half of the channels (at stride 2: all of them, twice) is filtered, then both shuffled.

    Raises ValueError for a stride outside 1 to 3, or an odd width.
    """

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        self.stride = stride
        half = oup // 2
        if stride == 1 and inp != 2 * half:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. If "
                "stride == 1 then inp should be equal to oup // 2 << 1."
            )
        self.branch1 = nn.Sequential()
        if stride > 1:
            self.branch1 = nn.Sequential(
                self.depthwise_conv(inp, inp, kernel_size=3, stride=stride, padding=1),
                nn.BatchNorm2d(inp),
                *_pointwise(inp, half),
            )
        self.branch2 = nn.Sequential(
            *_pointwise(inp if stride > 1 else half, half),
            self.depthwise_conv(half, half, kernel_size=3, stride=stride, padding=1),
            nn.BatchNorm2d(half),
            *_pointwise(half, half),
        )

    @staticmethod
    def depthwise_conv(
        i: int, o: int, kernel_size: int, stride: int = 1, padding: int = 0, bias: bool = False
    ) -> nn.Conv2d:
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            kept, filtered = x.chunk(2, dim=1)
        else:
            kept, filtered = self.branch1(x), x
        return channel_shuffle(cat((kept, self.branch2(filtered)), dim=1), 2)


class ShuffleNetV2(nn.Module):
    """Three stages of shuffled blocks over pictures (N, 3, H, W).

    Raises ValueError if there are not three repeats and five widths.
    """

    def __init__(
        self,
        stages_repeats: Sequence[int],
        stages_out_channels: Sequence[int],
        num_classes: int = 1000,
        inverted_residual: Callable[..., nn.Module] = InvertedResidual,
    ) -> None:
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        self._stage_out_channels = stages_out_channels
        first, *widths, last = stages_out_channels
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU(inplace=True)
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        channels = first
        for index, (repeats, width) in enumerate(zip(stages_repeats, widths), 2):
            stage = [inverted_residual(channels, width, 2)]
            stage += [inverted_residual(width, width, 1) for _ in range(repeats - 1)]
            setattr(self, f"stage{index}", nn.Sequential(*stage))
            channels = width
        self.conv5 = nn.Sequential(*_pointwise(channels, last))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv1(x))
        x = self.conv5(self.stage4(self.stage3(self.stage2(x))))
        return self.fc(x.mean([2, 3]))


@register_model(ShuffleNet_V2_X0_5_Weights)
def shufflenet_v2_x0_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet V2, 0.5 times as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 48, 96, 192, 1024], **kwargs)


@register_model(ShuffleNet_V2_X1_0_Weights)
def shufflenet_v2_x1_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet V2, 1.0 times as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 116, 232, 464, 1024], **kwargs)


@register_model(ShuffleNet_V2_X1_5_Weights)
def shufflenet_v2_x1_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet V2, 1.5 times as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 176, 352, 704, 1024], **kwargs)


@register_model(ShuffleNet_V2_X2_0_Weights)
def shufflenet_v2_x2_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet V2, 2.0 times as wide."""
    return ShuffleNetV2([4, 8, 4], [24, 244, 488, 976, 2048], **kwargs)
