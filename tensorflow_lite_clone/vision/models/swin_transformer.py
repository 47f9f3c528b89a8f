"""Swin transformers: Liu et al., Swin Transformer, 2021, and Swin Transformer V2, 2022."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.fx import wrap
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.create.constructors import full, zeros
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.join import cat, meshgrid, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, bicubic, register_model
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.models._windows import shifted_window_attention
from tensorflow_lite_clone.vision.models.vision_transformer import initialize_mlp
from tensorflow_lite_clone.vision.ops.misc import MLP, Permute
from tensorflow_lite_clone.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "SwinTransformer",
    "Swin_B_Weights",
    "Swin_S_Weights",
    "Swin_T_Weights",
    "Swin_V2_B_Weights",
    "Swin_V2_S_Weights",
    "Swin_V2_T_Weights",
    "swin_t",
    "swin_s",
    "swin_b",
    "swin_v2_t",
    "swin_v2_s",
    "swin_v2_b",
]


class Swin_B_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("swin_b-68c6b09e.pth", 87_768_224, min_size=224, resize_size=238)
    DEFAULT = IMAGENET1K_V1


class Swin_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("swin_s-5e29d889.pth", 49_606_258, min_size=224, resize_size=246)
    DEFAULT = IMAGENET1K_V1


class Swin_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("swin_t-704ceda3.pth", 28_288_354, min_size=224, resize_size=232)
    DEFAULT = IMAGENET1K_V1


class Swin_V2_B_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic(
        "swin_v2_b-781e5279.pth", 87_930_848, min_size=256, crop_size=256, resize_size=272
    )
    DEFAULT = IMAGENET1K_V1


class Swin_V2_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic(
        "swin_v2_s-637d8ceb.pth", 49_737_442, min_size=256, crop_size=256, resize_size=260
    )
    DEFAULT = IMAGENET1K_V1


class Swin_V2_T_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic(
        "swin_v2_t-b137f0e2.pth", 28_351_570, min_size=256, crop_size=256, resize_size=260
    )
    DEFAULT = IMAGENET1K_V1


@wrap
def _patch_merging_pad(x: Tensor) -> Tensor:
    """Each 2 x 2 square's vectors side by side, x (..., H, W, C) padded to even sides."""
    height, width = x.shape[-3:-1]
    x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
    return cat([x[..., row::2, col::2, :] for col in (0, 1) for row in (0, 1)], -1)


@wrap
def _get_relative_position_bias(table: Tensor, index: Tensor, window_size: Sequence[int]) -> Tensor:
    """The table's rows for each pair of positions: (1, heads, positions, positions)."""
    length = window_size[0] * window_size[1]
    bias = table[index].view(length, length, -1)
    return bias.permute(2, 0, 1).contiguous().unsqueeze(0)


wrap("shifted_window_attention")


class PatchMerging(nn.Module):
    """Halves the sides of x (..., H, W, dim) and doubles the width; norm first."""

    def __init__(self, dim: int, norm_layer: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(_patch_merging_pad(x)))


class PatchMergingV2(nn.Module):
    """Halves the sides of x (..., H, W, dim) and doubles the width; norm last."""

    def __init__(self, dim: int, norm_layer: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(_patch_merging_pad(x)))


class ShiftedWindowAttention(nn.Module):
    """`shifted_window_attention` with a learned bias for each offset within a window.

    Raises ValueError if the window or the shift is not of two numbers.
    """

    relative_position_bias_table: Tensor
    relative_position_index: Tensor

    def __init__(
        self,
        dim: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size = window_size
        self.shift_size = shift_size
        self.num_heads = num_heads
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        self.define_relative_position_index()

    def define_relative_position_bias_table(self) -> None:
        height, width = self.window_size
        table = zeros((2 * height - 1) * (2 * width - 1), self.num_heads)
        self.relative_position_bias_table = nn.Parameter(table)
        init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def define_relative_position_index(self) -> None:
        """For each pair of positions, the row of the table for their offset."""
        height, width = self.window_size
        grid = stack(meshgrid(arange(height), arange(width), indexing="ij")).flatten(1)
        rows, columns = grid[:, :, None] - grid[:, None, :]
        index = (rows + height - 1) * (2 * width - 1) + columns + width - 1
        self.register_buffer("relative_position_index", index.flatten())

    def _arranged(self, table: Tensor) -> Tensor:
        index: Any = self.relative_position_index
        return _get_relative_position_bias(table, index, self.window_size)

    def get_relative_position_bias(self) -> Tensor:
        return self._arranged(self.relative_position_bias_table)

    def forward(self, x: Tensor) -> Tensor:
        bias = self.get_relative_position_bias()
        return shifted_window_attention(
            x,
            self.qkv.weight,
            self.proj.weight,
            bias,
            self.window_size,
            self.num_heads,
            shift_size=self.shift_size,
            attention_dropout=self.attention_dropout,
            dropout=self.dropout,
            qkv_bias=self.qkv.bias,
            proj_bias=self.proj.bias,
            logit_scale=getattr(self, "logit_scale", None),
            training=self.training,
        )


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """The same with cosine attention, and a bias that a small network computes of the offset."""

    relative_coords_table: Tensor

    def __init__(
        self,
        dim: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            dim, window_size, shift_size, num_heads, qkv_bias, proj_bias, attention_dropout, dropout
        )
        self.logit_scale = nn.Parameter(full((num_heads, 1, 1), 10.0).log())
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512, bias=True),
            nn.ReLU(inplace=True),
            nn.Linear(512, num_heads, bias=False),
        )
        if self.qkv.bias is not None:
            third = self.qkv.bias.numel() // 3
            self.qkv.bias[third : 2 * third].data.zero_()

    def define_relative_position_bias_table(self) -> None:
        """The offsets (1, 2 height - 1, 2 width - 1, 2) on a logarithmic scale, V2's equation 4."""
        offsets = [arange(1 - side, side).float() / (side - 1) * 8 for side in self.window_size]
        table = stack(meshgrid(*offsets, indexing="ij"), dim=-1).unsqueeze(0)
        scaled = table.sign() * (table.abs() + 1.0).log2() / 3.0
        self.register_buffer("relative_coords_table", scaled)

    def get_relative_position_bias(self) -> Tensor:
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        return 16 * self._arranged(table).sigmoid()


class SwinTransformerBlock(nn.Module):
    """Windowed attention and an MLP, each behind a norm and with a shortcut; x (N, H, W, dim)."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
        attn_layer: Callable[..., nn.Module] = ShiftedWindowAttention,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim,
            window_size,
            shift_size,
            num_heads,
            attention_dropout=attention_dropout,
            dropout=dropout,
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        hidden = [int(dim * mlp_ratio), dim]
        self.mlp = MLP(dim, hidden, activation_layer=nn.GELU, inplace=None, dropout=dropout)
        initialize_mlp(self.mlp)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """The same with the norms behind attention and MLP."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: Sequence[int],
        shift_size: Sequence[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
        attn_layer: Callable[..., nn.Module] = ShiftedWindowAttentionV2,
    ) -> None:
        super().__init__(
            dim, num_heads, window_size, shift_size, mlp_ratio, dropout, attention_dropout,
            stochastic_depth_prob, norm_layer, attn_layer,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """Stages of blocks, every second one shifted, over pictures (N, 3, H, W)."""

    def __init__(
        self,
        patch_size: Sequence[int],
        embed_dim: int,
        depths: Sequence[int],
        num_heads: Sequence[int],
        window_size: Sequence[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000,
        norm_layer: Callable[..., nn.Module] | None = None,
        block: Callable[..., nn.Module] | None = None,
        downsample_layer: Callable[..., nn.Module] = PatchMerging,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        block = block or SwinTransformerBlock
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-5)
        patch = tuple(patch_size)
        features: list[nn.Module] = [
            nn.Sequential(
                nn.Conv2d(3, embed_dim, kernel_size=patch, stride=patch),
                Permute([0, 2, 3, 1]),
                norm_layer(embed_dim),
            )
        ]
        total = sum(depths)
        done = 0
        for stage, depth in enumerate(depths):
            width = embed_dim * 2**stage
            blocks = []
            for index in range(depth):
                blocks.append(
                    block(
                        width,
                        num_heads[stage],
                        window_size=window_size,
                        shift_size=[side // 2 if index % 2 else 0 for side in window_size],
                        mlp_ratio=mlp_ratio,
                        dropout=dropout,
                        attention_dropout=attention_dropout,
                        stochastic_depth_prob=stochastic_depth_prob * float(done) / (total - 1),
                        norm_layer=norm_layer,
                    )
                )
                done += 1
            features.append(nn.Sequential(*blocks))
            if stage < len(depths) - 1:
                features.append(downsample_layer(width, norm_layer))
        self.features = nn.Sequential(*features)
        self.norm = norm_layer(width)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                init.trunc_normal_(module.weight, std=0.02)
                zero_bias(module)

    def forward(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def _swin(
    width: int,
    depths: Sequence[int],
    heads: Sequence[int],
    window: int,
    probability: float,
    **kwargs: Any,
) -> SwinTransformer:
    given = {"stochastic_depth_prob": probability, **kwargs}
    return SwinTransformer([4, 4], width, depths, heads, [window, window], **given)


V2: dict[str, Any] = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}


@register_model(Swin_T_Weights)
def swin_t(**kwargs: Any) -> SwinTransformer:
    """Swin, tiny."""
    return _swin(96, [2, 2, 6, 2], [3, 6, 12, 24], 7, 0.2, **kwargs)


@register_model(Swin_S_Weights)
def swin_s(**kwargs: Any) -> SwinTransformer:
    """Swin, small."""
    return _swin(96, [2, 2, 18, 2], [3, 6, 12, 24], 7, 0.3, **kwargs)


@register_model(Swin_B_Weights)
def swin_b(**kwargs: Any) -> SwinTransformer:
    """Swin, base."""
    return _swin(128, [2, 2, 18, 2], [4, 8, 16, 32], 7, 0.5, **kwargs)


@register_model(Swin_V2_T_Weights)
def swin_v2_t(**kwargs: Any) -> SwinTransformer:
    """Swin V2, tiny."""
    return _swin(96, [2, 2, 6, 2], [3, 6, 12, 24], 8, 0.2, **{**V2, **kwargs})


@register_model(Swin_V2_S_Weights)
def swin_v2_s(**kwargs: Any) -> SwinTransformer:
    """Swin V2, small."""
    return _swin(96, [2, 2, 18, 2], [3, 6, 12, 24], 8, 0.3, **{**V2, **kwargs})


@register_model(Swin_V2_B_Weights)
def swin_v2_b(**kwargs: Any) -> SwinTransformer:
    """Swin V2, base."""
    return _swin(128, [2, 2, 18, 2], [4, 8, 16, 32], 8, 0.5, **{**V2, **kwargs})
