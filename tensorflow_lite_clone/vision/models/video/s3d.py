"""S3D: Xie et al., Rethinking Spatiotemporal Feature Learning, 2017."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, kinetics, register_model
from tensorflow_lite_clone.vision.ops.misc import Conv3dNormActivation

__all__ = ["S3D", "S3D_Weights", "s3d"]


class S3D_Weights(WeightsEnum):
    KINETICS400_V1 = kinetics(
        "s3d-d76dad2f.pth",
        8_320_048,
        min_size=224,
        min_temporal_size=14,
        crop_size=(224, 224),
        resize_size=(256, 256),
    )
    DEFAULT = KINETICS400_V1


Norm = Callable[..., nn.Module]


class TemporalSeparableConv(nn.Sequential):
    """A convolution over space, then one over time."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel_size: int,
        stride: int,
        padding: int,
        norm_layer: Norm,
    ) -> None:
        super().__init__(
            Conv3dNormActivation(
                in_planes,
                out_planes,
                kernel_size=(1, kernel_size, kernel_size),
                stride=(1, stride, stride),
                padding=(0, padding, padding),
                norm_layer=norm_layer,
            ),
            Conv3dNormActivation(
                out_planes,
                out_planes,
                kernel_size=(kernel_size, 1, 1),
                stride=(stride, 1, 1),
                padding=(padding, 0, 0),
                norm_layer=norm_layer,
            ),
        )


class SepInceptionBlock3D(nn.Module):
    """Four branches side by side, two of them with separated convolutions."""

    def __init__(
        self,
        in_planes: int,
        b0_out: int,
        b1_mid: int,
        b1_out: int,
        b2_mid: int,
        b2_out: int,
        b3_out: int,
        norm_layer: Norm,
    ) -> None:
        super().__init__()
        mix = partial(Conv3dNormActivation, in_planes, kernel_size=1, norm_layer=norm_layer)
        look = partial(
            TemporalSeparableConv, kernel_size=3, stride=1, padding=1, norm_layer=norm_layer
        )
        self.branch0 = mix(b0_out)
        self.branch1 = nn.Sequential(mix(b1_mid), look(b1_mid, b1_out))
        self.branch2 = nn.Sequential(mix(b2_mid), look(b2_mid, b2_out))
        self.branch3 = nn.Sequential(nn.MaxPool3d((3, 3, 3), stride=1, padding=1), mix(b3_out))

    def forward(self, x: Tensor) -> Tensor:
        return cat([self.branch0(x), self.branch1(x), self.branch2(x), self.branch3(x)], dim=1)


# The widths of GoogLeNet's blocks, and where time and space are halved.
BLOCKS = (
    (192, 64, 96, 128, 16, 32, 32),
    (256, 128, 128, 192, 32, 96, 64),
    3,
    (480, 192, 96, 208, 16, 48, 64),
    (512, 160, 112, 224, 24, 64, 64),
    (512, 128, 128, 256, 24, 64, 64),
    (512, 112, 144, 288, 32, 64, 64),
    (528, 256, 160, 320, 32, 128, 128),
    2,
    (832, 256, 160, 320, 32, 128, 128),
    (832, 384, 192, 384, 48, 128, 128),
)


class S3D(nn.Module):
    """A GoogLeNet over videos (N, 3, T, H, W), of at least 14 pictures of 224 x 224."""

    def __init__(
        self, num_classes: int = 400, dropout: float = 0.2, norm_layer: Norm | None = None
    ) -> None:
        super().__init__()
        norm = norm_layer or partial(nn.BatchNorm3d, eps=0.001, momentum=0.001)

        def half_space() -> nn.MaxPool3d:
            return nn.MaxPool3d((1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1))

        layers: list[nn.Module] = [
            TemporalSeparableConv(3, 64, 7, 2, 3, norm),
            half_space(),
            Conv3dNormActivation(64, 64, kernel_size=1, norm_layer=norm),
            TemporalSeparableConv(64, 192, 3, 1, 1, norm),
            half_space(),
        ]
        for block in BLOCKS:
            if isinstance(block, int):
                kernel, padding = (block,) * 3, (block // 3,) * 3
                layers.append(nn.MaxPool3d(kernel, stride=(2, 2, 2), padding=padding))
            else:
                layers.append(SepInceptionBlock3D(*block, norm))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AvgPool3d(kernel_size=(2, 7, 7), stride=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Conv3d(1024, num_classes, kernel_size=1, stride=1, bias=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x))).mean(dim=(2, 3, 4))


@register_model(S3D_Weights, num_classes=400)
def s3d(**kwargs: Any) -> S3D:
    """S3D."""
    return S3D(**kwargs)
