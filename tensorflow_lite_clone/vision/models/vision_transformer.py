"""Vision transformers: Dosovitskiy et al., An Image is Worth 16x16 Words, 2020."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.ops.create.constructors import empty, zeros
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import (
    WeightsEnum,
    _ovewrite_named_param,
    bicubic,
    imagenet,
    register_model,
)
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.ops.misc import MLP, Conv2dNormActivation

__all__ = [
    "VisionTransformer",
    "ViT_B_16_Weights",
    "ViT_B_32_Weights",
    "ViT_H_14_Weights",
    "ViT_L_16_Weights",
    "ViT_L_32_Weights",
    "vit_b_16",
    "vit_b_32",
    "vit_l_16",
    "vit_l_32",
    "vit_h_14",
]


class ViT_B_16_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vit_b_16-c867db91.pth", 86_567_656, min_size=224)
    IMAGENET1K_SWAG_E2E_V1 = bicubic(
        "vit_b_16_swag-9ac1b537.pth", 86_859_496, min_size=384, size=384
    )
    IMAGENET1K_SWAG_LINEAR_V1 = bicubic(
        "vit_b_16_lc_swag-4e70ced5.pth", 86_567_656, min_size=224, resize_size=224
    )
    DEFAULT = IMAGENET1K_V1


class ViT_B_32_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vit_b_32-d86f8d99.pth", 88_224_232, min_size=224)
    DEFAULT = IMAGENET1K_V1


class ViT_H_14_Weights(WeightsEnum):
    IMAGENET1K_SWAG_E2E_V1 = bicubic(
        "vit_h_14_swag-80465313.pth", 633_470_440, min_size=518, size=518
    )
    IMAGENET1K_SWAG_LINEAR_V1 = bicubic(
        "vit_h_14_lc_swag-c1eb923e.pth", 632_045_800, min_size=224, resize_size=224
    )
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


class ViT_L_16_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vit_l_16-852ce7e3.pth", 304_326_632, min_size=224, resize_size=242)
    IMAGENET1K_SWAG_E2E_V1 = bicubic(
        "vit_l_16_swag-4f3808c9.pth", 305_174_504, min_size=512, size=512
    )
    IMAGENET1K_SWAG_LINEAR_V1 = bicubic(
        "vit_l_16_lc_swag-4d563306.pth", 304_326_632, min_size=224, resize_size=224
    )
    DEFAULT = IMAGENET1K_V1


class ViT_L_32_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vit_l_32-c7638314.pth", 306_535_400, min_size=224)
    DEFAULT = IMAGENET1K_V1


NORM = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution in front of the encoder, instead of cutting the picture into patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d
    activation_layer: Callable[..., nn.Module] = nn.ReLU


class MLPBlock(MLP):
    """Two linear layers, GELU between them."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, dropout=dropout)
        initialize_mlp(self)


def initialize_mlp(mlp: nn.Module) -> None:
    """Weights as Glorot and Bengio, 2010; biases close to zero."""
    for module in mlp.modules():
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
            if module.bias is not None:
                init.normal_(module.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """Self-attention and an MLP, each behind a norm and with a shortcut; x (N, L, hidden_dim)."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Callable[..., nn.Module] = NORM,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        _expect_tokens(input)
        x = self.ln_1(input)
        attended, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(attended) + input
        return x + self.mlp(self.ln_2(x))


def _expect_tokens(input: Tensor) -> None:
    is_batch = input.dim() == 3
    _assert(is_batch, f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}")


class Encoder(nn.Module):
    """Adds learned positions, then blocks and a norm; x (N, seq_length, hidden_dim)."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Callable[..., nn.Module] = NORM,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for index in range(num_layers):
            layers[f"encoder_layer_{index}"] = EncoderBlock(
                num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
            )
        self.layers = nn.Sequential(layers)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        _expect_tokens(input)
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """An encoder over the patches of square pictures (N, 3, image_size, image_size).

    Raises ValueError if the patches do not fill the picture, AssertionError for pictures of another
    size.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Callable[..., nn.Module] = NORM,
        conv_stem_configs: Sequence[ConvStemConfig] | None = None,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError("Input shape indivisible by patch size!")
        self.image_size = image_size
        self.patch_size = patch_size
        self.hidden_dim = hidden_dim
        self.mlp_dim = mlp_dim
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.num_classes = num_classes
        self.representation_size = representation_size
        self.norm_layer = norm_layer
        self.conv_proj: nn.Module = (
            nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
            if conv_stem_configs is None
            else _stem(conv_stem_configs, hidden_dim)
        )
        self.class_token = nn.Parameter(zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout,
            attention_dropout, norm_layer,
        )  # fmt: skip
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is None:
            heads["head"] = nn.Linear(hidden_dim, num_classes)
        else:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
            heads["head"] = nn.Linear(representation_size, num_classes)
        self.heads = nn.Sequential(heads)
        self._initialize()

    def _initialize(self) -> None:
        if isinstance(self.conv_proj, nn.Conv2d):
            _, channels, height, width = self.conv_proj.weight.shape
            fan_in = channels * height * width
            init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / fan_in))
            zero_bias(self.conv_proj)
        else:
            last = self.conv_proj.conv_last
            init.normal_(last.weight, mean=0.0, std=math.sqrt(2.0 / last.out_channels))
            init.zeros_(last.bias)
        if self.representation_size is not None:
            linear = self.heads.pre_logits
            init.trunc_normal_(linear.weight, std=math.sqrt(1 / linear.in_features))
            init.zeros_(linear.bias)
        init.zeros_(self.heads.head.weight)
        init.zeros_(self.heads.head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        """The patches' vectors (N, patches, hidden_dim)."""
        count, _, height, width = x.shape
        for name, size in (("height", height), ("width", width)):
            message = f"Wrong image {name}! Expected {self.image_size} but got {size}!"
            _assert(size == self.image_size, message)
        rows, columns = height // self.patch_size, width // self.patch_size
        patches = self.conv_proj(x).reshape(count, self.hidden_dim, rows * columns)
        return patches.permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        patches = self._process_input(x)
        count = patches.shape[0]
        token = self.class_token.expand(count, -1, -1)
        return self.heads(self.encoder(cat([token, patches], dim=1))[:, 0])


def _stem(configs: Sequence[ConvStemConfig], hidden_dim: int) -> nn.Sequential:
    layers = nn.Sequential()
    channels = 3
    for index, config in enumerate(configs):
        layers.add_module(
            f"conv_bn_relu_{index}",
            Conv2dNormActivation(
                channels,
                config.out_channels,
                kernel_size=config.kernel_size,
                stride=config.stride,
                norm_layer=config.norm_layer,
                activation_layer=config.activation_layer,
            ),
        )
        channels = config.out_channels
    layers.add_module("conv_last", nn.Conv2d(channels, hidden_dim, kernel_size=1))
    return layers


def _image_size(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    """Pretrained positions fit pictures of one size."""
    _ovewrite_named_param(kwargs, "image_size", weights.meta["min_size"][0])


def _transformer(
    patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, **kwargs: Any
) -> VisionTransformer:
    image_size = kwargs.pop("image_size", 224)
    return VisionTransformer(
        image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, **kwargs
    )


def interpolate_embeddings(
    image_size: int,
    patch_size: int,
    model_state: Mapping[str, Tensor],
    interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> OrderedDict[str, Tensor]:
    """A state dict whose positions fit pictures of another size; without heads if they are reset.

    Raises ValueError if the positions are not (1, length, hidden_dim), or no square of patches.
    """
    name = "encoder.pos_embedding"
    positions = model_state[name]
    count, length, hidden_dim = positions.shape
    if count != 1:
        raise ValueError(f"Unexpected position embedding shape: {positions.shape}")
    grid_size = image_size // patch_size
    state: OrderedDict[str, Tensor] = OrderedDict(model_state)
    if grid_size**2 + 1 == length:
        return state
    side = math.isqrt(length - 1)
    if side**2 != length - 1:
        raise ValueError(f"seq_length is not a perfect square: {length - 1}")
    grid = positions[:, 1:].permute(0, 2, 1).reshape(1, hidden_dim, side, side)
    grid = F.interpolate(grid, size=grid_size, mode=interpolation_mode, align_corners=True)
    state[name] = cat([positions[:, :1], grid.flatten(2).permute(0, 2, 1)], dim=1)
    if reset_heads:
        return OrderedDict((k, v) for k, v in state.items() if not k.startswith("heads"))
    return state


@register_model(ViT_B_16_Weights, arguments=_image_size)
def vit_b_16(**kwargs: Any) -> VisionTransformer:
    """ViT-B/16."""
    return _transformer(16, 12, 12, 768, 3072, **kwargs)


@register_model(ViT_B_32_Weights, arguments=_image_size)
def vit_b_32(**kwargs: Any) -> VisionTransformer:
    """ViT-B/32."""
    return _transformer(32, 12, 12, 768, 3072, **kwargs)


@register_model(ViT_L_16_Weights, arguments=_image_size)
def vit_l_16(**kwargs: Any) -> VisionTransformer:
    """ViT-L/16."""
    return _transformer(16, 24, 16, 1024, 4096, **kwargs)


@register_model(ViT_L_32_Weights, arguments=_image_size)
def vit_l_32(**kwargs: Any) -> VisionTransformer:
    """ViT-L/32."""
    return _transformer(32, 24, 16, 1024, 4096, **kwargs)


@register_model(ViT_H_14_Weights, arguments=_image_size)
def vit_h_14(**kwargs: Any) -> VisionTransformer:
    """ViT-H/14."""
    return _transformer(14, 32, 16, 1280, 5120, **kwargs)
