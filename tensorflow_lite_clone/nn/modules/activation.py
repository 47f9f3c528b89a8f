"""Activations as modules, and multi-head attention."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.linear import NonDynamicallyQuantizableLinear
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.pointwise.elementary import sigmoid, tanh
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Plain(Stateless):  # a function without options
    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input)


class Sigmoid(_Plain):
    """1 / (1 + exp(-x))."""

    function = staticmethod(sigmoid)


class Tanh(_Plain):
    """The hyperbolic tangent."""

    function = staticmethod(tanh)


class LogSigmoid(_Plain):
    """log(1 / (1 + exp(-x)))."""

    function = staticmethod(F.logsigmoid)


class Softsign(_Plain):
    """x / (1 + |x|)."""

    function = staticmethod(F.softsign)


class Tanhshrink(_Plain):
    """x - tanh(x)."""

    function = staticmethod(F.tanhshrink)


class _Inplace(Stateless):
    """A function whose one option is to write over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.inplace)


class ReLU(_Inplace):
    """max(0, x)."""

    function = staticmethod(F.relu)


class SELU(_Inplace):
    """A scaled `ELU` that keeps mean 0 and variance 1; see `functional.selu`."""

    function = staticmethod(F.selu)


class SiLU(_Inplace):
    """x sigmoid(x)."""

    function = staticmethod(F.silu)


class Mish(_Inplace):
    """x tanh(softplus(x))."""

    function = staticmethod(F.mish)


class Hardsigmoid(_Inplace):
    """x / 6 + 1/2, cut off at 0 and 1."""

    function = staticmethod(F.hardsigmoid)
    repr_inplace = False


class Hardswish(_Inplace):
    """x hardsigmoid(x)."""

    function = staticmethod(F.hardswish)
    repr_inplace = False


class _Elu(Stateless):
    repr_fields = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.alpha, inplace=self.inplace)


class ELU(_Elu):
    """x where it is positive, alpha (exp(x) - 1) elsewhere."""

    function = staticmethod(F.elu)


class CELU(_Elu):
    """x where it is positive, alpha (exp(x / alpha) - 1) elsewhere."""

    function = staticmethod(F.celu)


class LeakyReLU(Stateless):
    """x where it is positive, `negative_slope` x elsewhere."""

    repr_fields = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class Hardtanh(Stateless):
    """x cut off at `min_val` and `max_val`, which were once called `min_value` and `max_value`."""

    repr_fields: ClassVar[tuple[str, ...]] = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            min_val = self._renamed("min", min_value)
        if max_value is not None:
            max_val = self._renamed("max", max_value)
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    @staticmethod
    def _renamed(end: str, value: float) -> float:
        warnings.warn(
            f"keyword argument `{end}_value` is deprecated and renamed to `{end}_val`",
            FutureWarning,
            stacklevel=level_outside(),
        )
        return value

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """x cut off at 0 and 6."""

    repr_fields = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Threshold(Stateless):
    """x where it is more than `threshold`, `value` elsewhere."""

    repr_fields = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(Stateless):
    """Leaky ReLU whose slope is drawn from [lower, upper] in training and their mean otherwise."""

    repr_fields = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class GELU(Stateless):
    """x Phi(x), Phi being the normal distribution's; `approximate` is "none" or "tanh"."""

    repr_fields = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class GLU(Stateless):
    """a sigmoid(b) for the two halves a and b along `dim`."""

    repr_fields = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softplus(Stateless):
    """log(1 + exp(beta x)) / beta, and x where beta x is more than `threshold`."""

    repr_fields = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class _Shrink(Stateless):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where |x| is more than `lambd`, 0 elsewhere."""

    function = staticmethod(F.hardshrink)


class Softshrink(_Shrink):
    """x moved towards 0 by `lambd`."""

    function = staticmethod(F.softshrink)


class _OverDim(Stateless):
    """A softmax over `dim`; torch's legacy choice of a dimension when it is None."""

    repr_fields = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.dim, _stacklevel=5)


class Softmax(_OverDim):
    """exp(x) / sum exp(x) along `dim`."""

    function = staticmethod(F.softmax)


class LogSoftmax(_OverDim):
    """The logarithm of `Softmax`."""

    function = staticmethod(F.log_softmax)


class Softmin(_OverDim):
    """`Softmax` of -x."""

    function = staticmethod(F.softmin)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class PReLU(Module):
    """max(0, x) + w min(0, x) with a learned slope w, one or one per channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to its initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self._member(self._parameters, "weight"))

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention by `num_heads` heads of `embed_dim` / `num_heads` features each.

    Query (L, N, E), key (S, N, kdim) and value (S, N, vdim), or (N, L, E) ... with `batch_first`,
    or without N. Masks: True, or minus infinity, keeps a position from being attended to. Source:
    Vaswani et al., "Attention is all you need" (2017).
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(
            ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight")
        )
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * embed_dim, embed_dim)
            names = ["in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"]
        else:
            shapes["q_proj_weight"] = (embed_dim, embed_dim)
            shapes["k_proj_weight"] = (embed_dim, self.kdim)
            shapes["v_proj_weight"] = (embed_dim, self.vdim)
            names = ["q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight"]
        for name in names:
            self._register_empty(name, shapes[name], **where)
        self._register_empty("in_proj_bias", 3 * embed_dim if bias else None, **where)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **where)
        for name in ("bias_k", "bias_v"):  # PyTorch registers them only if there are any
            setattr(self, name, Parameter(empty(1, 1, embed_dim, **where)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        swapped = self.batch_first and query.ndim == 3
        if swapped:
            same = key is value
            together = query is key
            key = key.transpose(1, 0)
            value = key if same else value.transpose(1, 0)
            query = key if together else query.transpose(1, 0)
        out_proj = self.out_proj
        separate = not self._qkv_same_embed_dim
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            out_proj.weight,
            out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=separate,
            q_proj_weight=self.q_proj_weight if separate else None,
            k_proj_weight=self.k_proj_weight if separate else None,
            v_proj_weight=self.v_proj_weight if separate else None,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if swapped:
            output = output.transpose(1, 0)
            if same and together and not (self.training or output.requires_grad):
                output = output.contiguous()  # as PyTorch's form for evaluation gives it
        return output, weights
