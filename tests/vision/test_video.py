"""Models of videos against torchvision's: trees, first values, outputs, gradients."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import models
from tests.vision.zoo import (
    array,
    assert_same_run,
    assert_same_start,
    layout,
    libraries,
    needs_torchvision,
    oracle,
    same,
    tensor,
    twins,
)

pytestmark = needs_torchvision

NAMES = models.list_models(models.video)


@pytest.mark.parametrize("name", NAMES)
def test_state_dict(name: str) -> None:
    def build(m: Any) -> Any:
        with m.torch.device("meta"):
            return m.models.get_model(name)

    there, here = twins(build)
    assert layout(here) == layout(there)
    assert repr(here).replace("tensorflow_lite_clone", "torch") == repr(there)
    count = sum(parameter.numel() for parameter in here.parameters())
    assert count == models.get_model_weights(name).DEFAULT.meta["num_params"]


def block(m: Any, name: str, maker: str, stride: int = 1) -> Any:
    # `models.video.resnet` is the module, there as here.
    parts = m.models.video.resnet
    conv = getattr(parts, maker)
    down = m.nn.Conv3d(4, 4 * 4, 1, conv.get_downsample_stride(stride))
    return getattr(parts, name)(4, 4, conv, stride, down if name == "Bottleneck" else None)


PARTS: dict[str, Any] = {
    "simple": lambda m: block(m, "BasicBlock", "Conv3DSimple"),
    "separated": lambda m: block(m, "Bottleneck", "Conv2Plus1D", 2),
    "space": lambda m: block(m, "Bottleneck", "Conv3DNoTemporal", 2),
    "inception": lambda m: sys.modules[m.models.video.S3D.__module__].SepInceptionBlock3D(
        4, 2, 3, 4, 2, 5, 3, m.nn.BatchNorm3d
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    there, here = twins(PARTS[name])
    assert_same_start(there, here)
    assert_same_run(there, here, torch.randn(2, 4, 4, 6, 6))


def residual(m: Any) -> Any:
    parts = m.models.video.resnet
    makers = [parts.Conv3DNoTemporal, parts.Conv3DSimple] + [parts.Conv3DNoTemporal] * 2
    return parts.VideoResNet(parts.BasicBlock, makers, [1] * 4, parts.R2Plus1dStem, 5)


def separated(m: Any) -> Any:
    model = m.models.video.s3d(num_classes=5)
    model.avgpool = m.nn.AdaptiveAvgPool3d(1)  # the other wants 224 pixels
    return model


@pytest.mark.parametrize("build", [residual, separated])
def test_whole_models(build: Any) -> None:
    there, here = twins(build)
    assert_same_start(there, here)
    x = torch.randn(1, 3, 8, 32, 32)
    with torch.no_grad(), tlc.no_grad():
        y, expected = here.eval()(tensor(x)), there.eval()(x)
    np.testing.assert_allclose(array(y), array(expected), rtol=1e-4, atol=1e-5)


def test_preset() -> None:
    """Pictures of the size that they are resized to, as resizing alone is tested elsewhere."""
    same(lambda m: repr(m.models.video.R3D_18_Weights.DEFAULT.transforms()))
    same(lambda m: m.models.video.S3D_Weights.DEFAULT.meta["min_temporal_size"])
    videos = torch.arange(2 * 3 * 3 * 128 * 171).reshape(2, 3, 3, 128, 171).to(torch.uint8)
    there, here = (m.models.video.R3D_18_Weights.DEFAULT.transforms() for m in libraries())
    for x in (videos, videos[0]):
        np.testing.assert_allclose(array(here(tensor(x))), array(there(x)), rtol=1e-5, atol=1e-6)
    assert oracle().models.list_models(oracle().models.video)[0] == NAMES[0]
