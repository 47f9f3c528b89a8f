"""What ops are in terms of PyTorch's operations: one call of aten's, or a few.

A form takes Tensors (or None, or a number for a constant) and the op's parameters, and returns what
the op does. It calls operations by `call`, so that whoever looks sees each of them. Ops that are
not here and have no parameters are the operation of their own name; others show as ``tlc.NAME``.
"""

from __future__ import annotations

from math import isclose, prod
from typing import Any

from tensorflow_lite_clone.autograd.mode import followed
from tensorflow_lite_clone.core.dtypes import uint8
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.core.strides import contiguous_format, view_strides
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.python_dispatch.calls import (
    call,
    forms,
    operation,
    overloads,
    own,
    without_modes,
)
from tensorflow_lite_clone.python_dispatch.public import REDUCTIONS
from tensorflow_lite_clone.tensor import Tensor

for _names, _beside_tensor, _beside_number in (
    ("add sub mul div lerp", "Tensor", "Tensor"),
    ("lt le gt ge eq ne remainder fmod bitwise_and bitwise_or bitwise_xor", "Tensor", "Scalar"),
    ("pow", "Tensor_Tensor", "Tensor_Scalar"),
    ("where", "self", "self"),
    ("fill", "Tensor", "Scalar"),
):
    overloads.update(dict.fromkeys(_names.split(), (_beside_tensor, _beside_number)))


def form(name: str) -> Any:
    """Enter the decorated function as the form of the op `name`."""

    def register(function: Any) -> Any:
        forms[name] = function
        return function

    return register


def unseen(function: Any, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)`` that no mode sees: what aten's operation does inside."""
    with without_modes():
        return function(*args, **kwargs)


def _is_followed(x: Tensor) -> bool:
    """Whether a class, or a mode, would see what is done to save a value for the gradient."""
    return bool(x._storage.backend.dispatches) or followed()


def derived(function: Any, *args: Any) -> Any:
    """``function(*args)``, which calculates; a mode sees it that must know every value."""
    return function(*args) if followed() else unseen(function, *args)


# -- operations of aten's that have no function of their own ---------------------------------------


def _of_softmax(name: str) -> None:
    operation(f"_{name}")(lambda x, dim, half_to_float: getattr(x, name)(dim))
    forms[name] = lambda x, *, axis: call(f"_{name}", x, axis, False)


_of_softmax("softmax")
_of_softmax("log_softmax")


@operation("nll_loss_forward")
def _nll_loss_forward(
    x: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    word = REDUCTIONS[reduction]
    loss = _functional("nll_loss")(x, target, weight, ignore_index=ignore_index, reduction=word)
    kept = target != ignore_index
    total = kept.sum() if weight is None else weight[target.clamp(min=0)][kept].sum()
    return loss, total.to(x.dtype)


def _functional(name: str) -> Any:
    return EXPORTS["functional"][name]


# -- products --------------------------------------------------------------------------------------


@form("linear")
def _linear(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    if x.ndim == 1:
        return call("squeeze.dim", _linear(call("unsqueeze", x, 0), w, b), 0)
    flat = x.ndim > 2
    rows = as_shape(x, [prod(x.shape[:-1]), x.shape[-1]]) if flat else x
    wt = call("t", w)
    if flat and b is not None and not x.is_contiguous():
        y = call("_unsafe_view", call("mm", rows, wt), [*x.shape[:-1], w.shape[0]])
        return call("add_.Tensor", y, b)
    y = call("mm", rows, wt) if b is None else call("addmm", b, rows, wt)
    if flat:
        y = call("_unsafe_view" if b is None else "view", y, [*x.shape[:-1], w.shape[0]])
    return y


@form("mm")
def _mm(x: Tensor, y: Tensor) -> Tensor:
    if x.ndim == 2:
        return call("mm", x, y)
    if x.ndim == 1:
        return call("squeeze.dim", call("mm", call("unsqueeze", x, 0), y), 0)
    product = call("mm", as_shape(x, [prod(x.shape[:-1]), x.shape[-1]]), y)
    return call("_unsafe_view", product, [*x.shape[:-1], y.shape[1]])


@form("mv")
def _mv(x: Tensor, y: Tensor) -> Tensor:
    if x.ndim == 2:
        return call("mv", x, y)
    product = call("mv", as_shape(x, [prod(x.shape[:-1]), x.shape[-1]]), y)
    return call("_unsafe_view", product, list(x.shape[:-1]))


@form("bmm")
def _bmm(x: Tensor, y: Tensor) -> Tensor:
    if x.ndim == y.ndim == 3 and x.shape[0] == y.shape[0]:
        return call("bmm", x, y)
    batch = tuple(broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    product = call("bmm", _batches(x, batch), _batches(y, batch))
    return call("_unsafe_view", product, [*batch, *product.shape[1:]])


def _batches(x: Tensor, batch: tuple) -> Tensor:
    """x with all leading dimensions in one, as aten's matmul brings them there."""
    x = call("expand", x, [*batch, *x.shape[-2:]])
    return as_shape(x, [prod(batch), *x.shape[-2:]])


def as_shape(x: Tensor, shape: list[int]) -> Tensor:
    """A view where there is one, else a copy, as aten's reshape."""
    if view_strides(x.shape, x.stride(), tuple(shape)) is not None:
        return call("view", x, shape)
    copy = call("clone", x, memory_format=contiguous_format)
    return call("_unsafe_view", copy, shape)


def _with_scales(name: str) -> None:
    def scaled(x: Tensor, y: Tensor, z: Tensor, *, beta: Any, alpha: Any) -> Tensor:
        kwargs = {"beta": beta} if beta != 1 else {}
        if alpha != 1:
            kwargs["alpha"] = alpha
        return call(name, x, y, z, **kwargs)

    forms[name] = scaled


_with_scales("addmm")
_with_scales("baddbmm")


@form("conv")
def _conv(
    x: Tensor, w: Tensor, b: Any, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    sizes = [list(stride), list(padding), list(dilation)]
    return call("convolution", x, w, b, *sizes, False, [0] * len(stride), groups)


@form("conv_transpose")
def _conv_transpose(
    x: Tensor, w: Tensor, b: Any, *, size: Any, stride: Any, padding: Any, dilation: Any,
    groups: int,
) -> Tensor:  # fmt: skip
    extra = [
        n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, m, k, s, p, d in zip(size, x.shape[2:], w.shape[2:], stride, padding, dilation)
    ]
    sizes = [list(stride), list(padding), list(dilation)]
    return call("convolution", x, w, b, *sizes, True, extra, groups)


@form("attention")
def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, *, scale: float, causal: bool, groups: int
) -> Any:
    if q.ndim != 4 or groups > 1 or not q.shape[-1]:
        op = TABLE["attention"]
        return own(op, q, k, v, mask, scale=scale, causal=causal, groups=groups)
    kwargs: dict[str, Any] = {} if mask is None else {"attn_mask": mask}
    if not isclose(scale, q.shape[-1] ** -0.5):
        kwargs["scale"] = scale
    args = (0.0, True) if causal else ()
    return call("_scaled_dot_product_flash_attention_for_cpu", q, k, v, *args, **kwargs)


# -- norms, pools, softmax, losses -----------------------------------------------------------------


@form("safe_softmax")
def _safe_softmax_form(x: Tensor, *, axis: int) -> Tensor:
    return call("_safe_softmax", x, axis)


@form("layer_norm")
def _layer_norm(x: Tensor, w: Any, b: Any, *, ndim: int, eps: float) -> tuple:
    y, mean, rstd = call("native_layer_norm", x, list(x.shape[x.ndim - ndim :]), w, b, eps)
    if _is_followed(y):
        return y, mean, rstd  # for `gradients` alone, which takes them so
    return y, unseen(mean.reshape, -1, 1), unseen(rstd.reshape, -1, 1)


@form("batch_norm")
def _batch_norm(
    x: Tensor, w: Any, b: Any, running_mean: Any, running_var: Any, *, momentum: float, eps: float
) -> tuple:
    statistics = (running_mean, running_var)
    y, mean, rstd = call("native_batch_norm", x, w, b, *statistics, True, momentum, eps)
    return y, mean, derived(lambda: rstd**-2 - eps)


@form("batch_norm_eval")
def _batch_norm_eval(x: Tensor, w: Any, b: Any, mean: Tensor, var: Tensor, *, eps: float) -> Tensor:
    return call("native_batch_norm", x, w, b, mean, var, False, 0.1, eps)[0]


@form("max_pool")
def _max_pool(
    x: Tensor, *, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple:
    if len(kernel) == 1:
        return own(
            TABLE["max_pool"], x, kernel=kernel, stride=stride, padding=padding, dilation=dilation,
            ceil_mode=ceil_mode,
        )  # fmt: skip
    args: list[Any] = [list(kernel), list(stride)]
    if any(padding) or set(dilation) != {1} or ceil_mode:
        args += [list(padding), list(dilation), ceil_mode]
    y, indices = call(f"max_pool{len(kernel)}d_with_indices", x, *args)
    return y, indices if _is_followed(y) else unseen(lambda: x.new_zeros(0, dtype=uint8))


@form("avg_pool")
def _avg_pool(
    x: Tensor, *, size: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
    include: bool, divisor: Any,
) -> Tensor:  # fmt: skip
    args: list[Any] = [list(kernel), list(stride)]
    if any(padding) or ceil_mode or not include or divisor is not None:
        args += [list(padding), ceil_mode, include]
    if divisor is not None:
        args.append(divisor)
    return call(f"avg_pool{len(kernel)}d", x, *args)


@form("cross_entropy")
def _cross_entropy(
    x: Tensor, target: Tensor, weight: Any, *, axis: int, reduction: str, ignore_index: int,
    smoothing: float,
) -> tuple:  # fmt: skip
    if smoothing:
        return own(
            TABLE["cross_entropy"], x, target, weight, axis=axis, reduction=reduction,
            ignore_index=ignore_index, smoothing=smoothing,
        )  # fmt: skip
    logs = call("_log_softmax", x, axis, False)
    number = REDUCTIONS.index(reduction)
    loss = call("nll_loss_forward", logs, target, weight, number, ignore_index)[0]
    return loss, logs if _is_followed(logs) else unseen(x.logsumexp, axis)


@form("nll_loss")
def _nll_loss(
    x: Tensor, target: Tensor, weight: Any, *, axis: int, reduction: str, ignore_index: int
) -> Tensor:
    number = REDUCTIONS.index(reduction)
    return call("nll_loss_forward", x, target, weight, number, ignore_index)[0]


def _with_reduction(name: str) -> None:
    def reduced(x: Tensor, y: Tensor, *, reduction: str) -> Tensor:
        number = () if reduction == "mean" else (REDUCTIONS.index(reduction),)
        return call(name, x, y, *number)

    forms[name] = reduced


_with_reduction("mse_loss")


@form("embedding")
def _embedding(
    w: Tensor, index: Tensor, *, rows: int, padding: Any, by_frequency: bool, sparse: bool
) -> Tensor:
    args = () if padding is None else (padding,)
    return call("embedding", w, index, *args)


@operation("embedding")
def _embed(w: Tensor, index: Tensor, padding_idx: int = -1, *others: Any) -> Tensor:
    return _functional("embedding")(index, w)


# -- arithmetic ------------------------------------------------------------------------------------


def _commutative(name: str) -> None:
    def swapped(x: Any, y: Any) -> Tensor:
        return call(f"{name}.Tensor", *((x, y) if isinstance(x, Tensor) else (y, x)))

    forms[name] = swapped


_commutative("add")
_commutative("mul")


@form("div")
def _div(x: Any, y: Any) -> Tensor:
    if isinstance(x, Tensor):
        return call("div.Tensor", x, y)
    return call("mul.Tensor", call("reciprocal", y), x)


@form("sub")
def _sub(x: Any, y: Any) -> Tensor:
    return call("sub.Tensor", x, y) if isinstance(x, Tensor) else call("rsub.Scalar", y, x)


@operation("rsub.Scalar")
def _rsub(x: Tensor, y: Any, alpha: Any = 1) -> Tensor:
    return y - x * alpha if alpha != 1 else y - x
