"""Networks of pictures, of which the detectors take the maps."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import (
    BUILDERS,
    WEIGHTS,
    WeightsEnum,
    chosen_weights,
    warn_positional,
)
from tensorflow_lite_clone.vision.models._utils import IntermediateLayerGetter, stage_indices
from tensorflow_lite_clone.vision.models.resnet import ResNet, resnet50
from tensorflow_lite_clone.vision.ops.feature_pyramid_network import (
    ExtraFPNBlock,
    FeaturePyramidNetwork,
    LastLevelMaxPool,
)
from tensorflow_lite_clone.vision.ops.misc import FrozenBatchNorm2d

Norm = Callable[..., nn.Module]
WIDTH = 256  # of the pyramids


class BackboneWithFPN(nn.Module):
    """A `FeaturePyramidNetwork` over some of a model's children, as `IntermediateLayerGetter`.

    `in_channels_list` are the widths of the maps of `return_layers`; all those of the pyramid, and
    of `extra_blocks`, by default one coarser map, have `out_channels`.
    """

    def __init__(
        self,
        backbone: nn.Module,
        return_layers: dict[str, str],
        in_channels_list: Sequence[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers=return_layers)
        extra_blocks = LastLevelMaxPool() if extra_blocks is None else extra_blocks
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, extra_blocks, norm_layer)
        self.out_channels = out_channels

    def forward(self, x: Tensor) -> Mapping[str, Tensor]:
        return self.fpn(self.body(x))


def _older_spellings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lets `pretrained`, truth values for `weights`, and positional arguments do, and warn."""
    names = list(inspect.signature(function).parameters)

    @wraps(function)
    def build(*args: Any, **kwargs: Any) -> Any:
        if args:
            first = dict(zip(names, args))
            warn_positional(first)
            return build(**first, **kwargs)
        if not {"weights", "pretrained"}.isdisjoint(kwargs):
            enum = WEIGHTS[kwargs["backbone_name"]]
            kwargs["weights"] = chosen_weights(kwargs, "weights", enum)
        return function(**kwargs)

    return build


def _frozen(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.requires_grad_(False)


@_older_spellings
def resnet_fpn_backbone(
    *,
    backbone_name: str,
    weights: WeightsEnum | None,
    norm_layer: Norm = FrozenBatchNorm2d,
    trainable_layers: int = 3,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> BackboneWithFPN:
    """A pyramid over the stages `returned_layers` (1 to 4, all by default) of a ResNet.

    All but the last `trainable_layers` of its five parts are frozen. ValueError for other numbers.
    """
    backbone = BUILDERS[backbone_name](weights=weights, norm_layer=norm_layer)
    return _resnet_fpn_extractor(backbone, trainable_layers, returned_layers, extra_blocks)


def _resnet_fpn_extractor(
    backbone: ResNet,
    trainable_layers: int,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: Norm | None = None,
) -> BackboneWithFPN:
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}")
    trained = ("layer4", "layer3", "layer2", "layer1", "conv1")[:trainable_layers]
    for name, child in backbone.named_children():
        if name not in trained and not (name == "bn1" and trainable_layers == 5):
            _frozen(child)
    returned = [1, 2, 3, 4] if returned_layers is None else returned_layers
    if min(returned) <= 0 or max(returned) >= 5:
        raise ValueError(f"Each returned layer should be in the range [1,4]. Got {returned}")
    layers = {f"layer{stage}": str(index) for index, stage in enumerate(returned)}
    widths = [backbone.inplanes // 16 * 2**stage for stage in returned]
    return BackboneWithFPN(backbone, layers, widths, WIDTH, extra_blocks, norm_layer)


def _validate_trainable_layers(
    is_trained: bool, trainable_backbone_layers: int | None, max_value: int, default_value: int
) -> int:
    """How many layers to train: all of a network that has learned nothing yet."""
    layers = trainable_backbone_layers
    if not is_trained:
        if layers is not None:
            warnings.warn(
                "Changing trainable_backbone_layers has no effect if neither pretrained nor "
                "pretrained_backbone have been set to True, falling back to "
                f"trainable_backbone_layers={max_value} so that all layers are trainable",
                stacklevel=level_outside(),
            )
        return max_value
    layers = default_value if layers is None else layers
    if not 0 <= layers <= max_value:
        raise ValueError(
            f"Trainable backbone layers should be in the range [0,{max_value}], got {layers} "
        )
    return layers


@_older_spellings
def mobilenet_backbone(
    *,
    backbone_name: str,
    weights: WeightsEnum | None,
    fpn: bool,
    norm_layer: Norm = FrozenBatchNorm2d,
    trainable_layers: int = 2,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
) -> nn.Module:
    """The features of a MobileNet, with a pyramid over two stages or without.

    All but the last `trainable_layers` of its stages, which begin where it halves the sides, are
    frozen. ValueError for numbers of stages that there are not.
    """
    backbone = BUILDERS[backbone_name](weights=weights, norm_layer=norm_layer)
    return _mobilenet_extractor(backbone, fpn, trainable_layers, returned_layers, extra_blocks)


def freeze_stages(features: nn.Sequential, trainable_layers: int) -> list[int]:
    """Freezes what is before the last stages of a MobileNet; the indices where stages begin."""
    stages = stage_indices(features)
    if not 0 <= trainable_layers <= len(stages):
        raise ValueError(
            f"Trainable layers should be in the range [0,{len(stages)}], got {trainable_layers} "
        )
    first = [*stages, len(features)][len(stages) - trainable_layers]
    for block in features[:first]:
        _frozen(block)
    return stages


def _mobilenet_extractor(
    backbone: Any,
    fpn: bool,
    trainable_layers: int,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: Norm | None = None,
) -> nn.Module:
    features = backbone.features
    stages = freeze_stages(features, trainable_layers)
    if not fpn:
        reduce = nn.Conv2d(features[-1].out_channels, WIDTH, 1)
        model: Any = nn.Sequential(features, reduce)
        model.out_channels = WIDTH
        return model
    last = len(stages) - 1
    returned = [last - 1, last] if returned_layers is None else returned_layers
    if min(returned) < 0 or max(returned) > last:
        raise ValueError(f"Each returned layer should be in the range [0,{last}], got {returned} ")
    layers = {str(stages[stage]): str(index) for index, stage in enumerate(returned)}
    widths = [features[stages[stage]].out_channels for stage in returned]
    return BackboneWithFPN(features, layers, widths, WIDTH, extra_blocks, norm_layer)


def resnet50_fpn(
    weights: WeightsEnum | None,
    weights_backbone: WeightsEnum | None,
    trainable_backbone_layers: int | None,
    *,
    freeze_norm: bool = True,
    **pyramid: Any,
) -> BackboneWithFPN:
    """A pyramid over a ResNet-50 for builders: a trained one has its first parts frozen."""
    trained = weights is not None or weights_backbone is not None
    layers = _validate_trainable_layers(trained, trainable_backbone_layers, 5, 3)
    norm = FrozenBatchNorm2d if trained and freeze_norm else nn.BatchNorm2d
    backbone = resnet50(weights=weights_backbone, norm_layer=norm)
    return _resnet_fpn_extractor(backbone, layers, **pyramid)


resnet50_fpn_v2 = partial(resnet50_fpn, freeze_norm=False, norm_layer=nn.BatchNorm2d)
