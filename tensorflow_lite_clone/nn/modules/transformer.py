"""Transformer encoders and decoders.

Source: Vaswani et al., "Attention is all you need" (2017).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.dtypes import bool_
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.activation import GELU, MultiheadAttention, ReLU
from tensorflow_lite_clone.nn.modules.container import ModuleList
from tensorflow_lite_clone.nn.modules.dropout import Dropout
from tensorflow_lite_clone.nn.modules.linear import Linear
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.normalization import LayerNorm
from tensorflow_lite_clone.ops.create.constructors import full, zeros_like
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _activation(activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return _get_activation_fn(activation) if isinstance(activation, str) else activation


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """The (sz, sz) mask that is minus infinity above the diagonal and zero elsewhere."""
    return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    """The length of sequences (S, N, E), (N, S, E) with `batch_first`, or (S, E)."""
    return src.shape[1 if batch_first and src.ndim == 3 else 0]


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """What the caller says, else whether `mask` is the causal mask (of that size)."""
    if is_causal is not None:
        return is_causal
    if mask is None or mask.ndim != 2:
        return False
    length = mask.shape[-2] if size is None else size
    if mask.shape != (length, length):
        return False
    causal = _generate_square_subsequent_mask(length, device=mask.device)
    return mask.is_meta or bool((_as_additive(mask, causal) == causal).all())


def _as_additive(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A boolean mask (True: ignore) as zeros and minus infinities in `like`'s dtype."""
    if mask is None or mask.dtype is not bool_:
        return mask
    return zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))


class _Layer(Module):
    """The feed-forward half that encoder and decoder layers share."""

    def _make_feed_forward(
        self, d_model: int, size: int, dropout: float, bias: bool, where: dict[str, Any]
    ) -> None:
        self.linear1 = Linear(d_model, size, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(size, d_model, bias=bias, **where)

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Self-attention; subclasses in the wild override it, and the other blocks."""
        x, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(x)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual and layer norm."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **where
        )
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        src_mask = _as_additive(src_mask, src)
        src_key_padding_mask = _as_additive(src_key_padding_mask, src)
        masks = src_mask, src_key_padding_mask, is_causal
        if self.norm_first:
            src = src + self._sa_block(self.norm1(src), *masks)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._sa_block(src, *masks))
        return self.norm2(src + self._ff_block(src))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention over the encoder's memory, and a feed-forward network."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **where}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        x, _ = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed(x))


def _float_masks(src: Tensor, mask: Tensor | None, padding: Tensor | None) -> tuple:
    """The two masks of an encoder as layers see them, once for all: added to scores."""
    other = None if mask is None else mask.dtype
    padding = F._canonical_mask(padding, "src_key_padding_mask", other, "mask", src.dtype)
    return F._canonical_mask(mask, "mask", None, "", src.dtype, False), padding


def _batch_first(layers: ModuleList) -> bool:
    attention = getattr(layers[0], "self_attn", None) if len(layers) else None
    return getattr(attention, "batch_first", False)


class TransformerEncoder(Module):
    """`num_layers` copies of an encoder layer, and perhaps a final norm."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        length = _get_seq_len(src, _batch_first(self.layers))
        causal = _detect_is_causal_mask(mask, is_causal, length)
        padding = src_key_padding_mask
        mask, src_key_padding_mask = _float_masks(src, mask, src_key_padding_mask)
        for layer in self.layers:
            src = layer(
                src,
                src_mask=mask,
                is_causal=causal,
                src_key_padding_mask=src_key_padding_mask,
            )
        if padding is not None and mask is None and self._leaves_padding_out(src, padding):
            src = src.masked_fill(padding.bool().unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _leaves_padding_out(self, output: Tensor, padding: Tensor) -> bool:
        """Whether PyTorch would not calculate what stands at padded places, and gives zeros there.

        It does so in evaluation where no gradient is wanted, for layers that its form for
        evaluation serves, and padding that follows the rest.
        """
        layer = self.layers[0] if len(self.layers) else None
        activation = getattr(layer, "activation", None)
        if (
            not isinstance(layer, TransformerEncoderLayer)
            or not self.enable_nested_tensor
            or layer.training
            or output.ndim != 3
            or output.requires_grad
            or layer.norm_first
            or not (activation in (F.relu, F.gelu) or isinstance(activation, (ReLU, GELU)))
            or layer.norm1.eps != layer.norm2.eps
        ):
            return False
        attention = layer.self_attn
        if (
            not attention.batch_first
            or not attention._qkv_same_embed_dim
            or attention.in_proj_bias is None
            or attention.num_heads % 2
        ):
            return False
        left_out = padding.bool()
        if not self.mask_check or left_out.is_meta:
            return True
        return not bool((left_out[:, :-1] & ~left_out[:, 1:]).any())


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, and perhaps a final norm."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        length = _get_seq_len(tgt, _batch_first(self.layers))
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder: (S, N, E) source and (T, N, E) target -> (T, N, E)."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        arguments = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)

        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*arguments, **where)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*arguments, **where)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The (sz, sz) mask that is minus infinity above the diagonal and zero elsewhere."""
        return _generate_square_subsequent_mask(sz, device, dtype)
