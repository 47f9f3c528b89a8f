"""What layers, losses, casts and creation are composed of: more rules of `_decompositions`."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.core.dtypes import get_default_dtype
from tensorflow_lite_clone.export._decompositions import (
    broadcast,
    call,
    device_of,
    rule,
    scalar,
    shape_of,
)
from tensorflow_lite_clone.tensor import Tensor

# -- norms, pools, activations ---------------------------------------------------------------------


@rule("layer_norm")
def _layer_norm(
    x: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    return call("native_layer_norm", x, normalized_shape, weight, bias, eps)[0]


@rule("group_norm")
def _group_norm(
    x: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    n, c, *rest = shape_of(x)
    return call("native_group_norm", x, weight, bias, n, c, prod(rest, start=1), num_groups, eps)[0]


@rule("batch_norm")
def _batch_norm(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    if training:  # with statistics to write it is not composed here
        return call("batch_norm", x, weight, bias, mean, var, training, momentum, eps, False)
    name = "_native_batch_norm_legit_no_training"
    return call(name, x, weight, bias, mean, var, momentum, eps)[0]


@rule("dropout")
def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    return call("native_dropout", x, p, True)[0] if train and p else call("clone", x)


@rule("max_pool2d")
def _max_pool2d(x: Tensor, *sizes: Any) -> Tensor:
    return call("max_pool2d_with_indices", x, *sizes)[0]


@rule("max_pool3d")
def _max_pool3d(x: Tensor, *sizes: Any) -> Tensor:
    return call("max_pool3d_with_indices", x, *sizes)[0]


@rule("adaptive_avg_pool2d")
def _adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Tensor:
    if list(output_size) == [1, 1]:
        return call("mean", x, [-1, -2], True)
    return call("_adaptive_avg_pool2d", x, output_size)


def _softmax(name: str) -> None:
    @rule(f"{name}.int")
    def composed(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
        x = x if dtype is None or dtype is x.dtype else call("_to_copy", x, dtype=dtype)
        return call(f"_{name}", x, dim, False)


_softmax("softmax")
_softmax("log_softmax")


@rule("relu6")
def _relu6(x: Tensor) -> Tensor:
    return call("hardtanh", x, 0.0, 6.0)


@rule("silu")
def _silu(x: Tensor) -> Tensor:
    return call("mul", x, call("sigmoid", x))


@rule("hardswish")
def _hardswish(x: Tensor) -> Tensor:
    return call("div", call("mul", x, call("clamp", call("add", x, 3), 0, 6)), 6)


@rule("hardsigmoid")
def _hardsigmoid(x: Tensor) -> Tensor:
    return call("div", call("clamp", call("add", x, 3), 0, 6), 6)


@rule("softplus")
def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    scaled = call("mul", x, beta)
    small = call("div", call("log1p", call("exp", scaled)), beta)
    return call("where", call("gt", scaled, threshold), x, small)


@rule("mish")
def _mish(x: Tensor) -> Tensor:
    return call("mul", x, call("tanh", call("log1p", call("exp", x))))


@rule("glu")
def _glu(x: Tensor, dim: int = -1) -> Tensor:
    half = shape_of(x)[dim] // 2
    one, two = call("split_with_sizes", x, [half, half], dim)
    return call("mul", one, call("sigmoid", two))


# -- reductions, losses ----------------------------------------------------------------------------


@rule("std.dim")
def _std(x: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    return call("sqrt", _var(x, dim, unbiased, keepdim))


@rule("var.dim")
def _var(x: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    dims = {} if dim is None else {"dim": dim}
    return call("var", x, **dims, correction=1.0 if unbiased else 0.0, keepdim=keepdim)


@rule("std.correction")
def _std_correction(x: Tensor, dim: Any = None, **options: Any) -> Tensor:
    return call("sqrt", call("var", x, **({} if dim is None else {"dim": dim}), **options))


@rule("sum")
def _sum(x: Tensor, **options: Any) -> Tensor:
    return call("sum", x, [], **options)


def _reduced(x: Tensor, reduction: int) -> Tensor:
    return x if reduction == 0 else call("mean", x) if reduction == 1 else _sum(x)


@rule("mse_loss")
def _mse_loss(x: Tensor, y: Tensor, reduction: int = 1) -> Tensor:
    return _reduced(call("pow", call("sub", x, y), 2), reduction)


@rule("l1_loss")
def _l1_loss(x: Tensor, y: Tensor, reduction: int = 1) -> Tensor:
    return _reduced(call("abs", call("sub", x, y)), reduction)


@rule("broadcast_tensors")
def _broadcast_tensors(tensors: Any) -> Any:
    shape: Any = ()
    for each in tensors:
        shape = broadcast(shape, shape_of(each))
    return tuple(
        [x if tuple(shape_of(x)) == tuple(shape) else call("expand", x, shape) for x in tensors]
    )


@rule("cross_entropy_loss")
def _cross_entropy(
    x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    if target.is_floating_point() or label_smoothing or x.ndim > 2 or weight is not None:
        args = (x, target, weight, reduction, ignore_index, label_smoothing)
        return call("cross_entropy_loss", *args)
    logs = call("_log_softmax", x, x.ndim - 1, False)
    return _nll_loss(logs, target, weight, reduction, ignore_index)


@rule("nll_loss_nd")
def _nll_loss(
    x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    if x.ndim > 2 or weight is not None:
        return call("nll_loss_nd", x, target, weight, reduction, ignore_index)
    dim = x.ndim - 1
    kept = call("ne", target, ignore_index)
    safe = call("where", kept, target, scalar(0, target))
    chosen = call("gather", x, dim, call("unsqueeze", safe, dim))
    losses = call("neg", call("squeeze", chosen, [dim]))
    kept = call("ne", target, ignore_index)
    losses = call("where", kept, losses, scalar(0, x))
    if reduction == 0:
        return losses
    if reduction == 2:
        return _sum(losses)
    count = _sum(call("ne", target, ignore_index))
    count = call("_to_copy", count, dtype=x.dtype, device=device_of(x))
    return call("div", _sum(losses), count)


# -- creation, casts, arithmetic -------------------------------------------------------------------


def _filled(name: str, value: int) -> None:
    @rule(name)
    def composed(size: Any, **options: Any) -> Tensor:
        return call("full", size, value, **{"dtype": get_default_dtype(), **options})

    @rule(f"{name}_like")
    def like(x: Tensor, **options: Any) -> Tensor:
        return call("full_like", x, value, **options)

    @rule(f"new_{name}")
    def new(x: Tensor, size: Any, **options: Any) -> Tensor:
        return call("full", size, value, **{"dtype": x.dtype, **options})


_filled("zeros", 0)
_filled("ones", 1)


@rule("new_full")
def _new_full(x: Tensor, size: Any, value: Any, **options: Any) -> Tensor:
    return call("full", size, value, **{"dtype": x.dtype, **options})


@rule("to.dtype")
def _to(x: Tensor, dtype: Any, *rest: Any, **options: Any) -> Tensor:
    return x if dtype is x.dtype else call("_to_copy", x, dtype=dtype)


@rule("to.dtype_layout")
def _to_layout(x: Tensor, *, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    return x if dtype in (None, x.dtype) else call("_to_copy", x, dtype=dtype)


@rule("to.device")
def _to_device(x: Tensor, device: Any, dtype: Any, *rest: Any, **options: Any) -> Tensor:
    return _to(x, dtype)


@rule("type_as")
def _type_as(x: Tensor, other: Tensor) -> Tensor:
    return _to(x, other.dtype)


@rule("masked_fill.Scalar")
def _masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return call("where", mask, scalar(value, x), x)


@rule("where.ScalarOther")
def _where_other(condition: Tensor, x: Tensor, other: Any) -> Tensor:
    return call("where", condition, x, scalar(other, x))


@rule("where.ScalarSelf")
def _where_self(condition: Tensor, x: Any, other: Tensor) -> Tensor:
    return call("where", condition, scalar(x, other), other)


@rule("rsub.Scalar")
def _rsub(x: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return call("sub", other, x if alpha == 1 else call("mul", x, alpha))


@rule("__and__.Tensor")
def _and(x: Tensor, y: Tensor) -> Tensor:
    return call("bitwise_and", x, y)


@rule("__or__.Tensor")
def _or(x: Tensor, y: Tensor) -> Tensor:
    return call("bitwise_or", x, y)


@rule("__xor__.Tensor")
def _xor(x: Tensor, y: Tensor) -> Tensor:
    return call("bitwise_xor", x, y)


@rule("floor_divide")
def _floor_divide(x: Tensor, y: Any) -> Tensor:
    return call("div", x, y, rounding_mode="floor")


@rule("clamp_min")
def _clamp_min(x: Tensor, least: Any) -> Tensor:
    return call("clamp", x, least)


@rule("clamp_max")
def _clamp_max(x: Tensor, most: Any) -> Tensor:
    return call("clamp", x, None, most)


@rule("pad")
def _pad(x: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    if mode == "constant":
        return call("constant_pad_nd", x, pad, 0.0 if value is None else value)
    word = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if word is None:
        return call("pad", x, pad, mode)
    return call(f"{word}_pad{len(pad) // 2}d", x, pad)
