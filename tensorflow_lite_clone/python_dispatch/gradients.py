"""What gradients are in terms of PyTorch's operations: composites, and nodes of a few ops.

While somebody looks, a backward pass runs over Tensors, without being recorded. So each op that a
gradient's formula calls is seen by its form. Where aten has one operation for the whole formula,
that is entered here (see `namespaces.see_composite`, `calls.gradients`).
"""

from __future__ import annotations

from math import isclose, prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.autograd.namespaces import see_composite
from tensorflow_lite_clone.backends.windows import windows_size
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.ops.nn.conv import Conv, ConvTranspose
from tensorflow_lite_clone.python_dispatch.calls import (
    call,
    forms,
    gradients,
    operation,
    own,
    unwrap,
)
from tensorflow_lite_clone.python_dispatch.forms import as_shape, derived, unseen
from tensorflow_lite_clone.python_dispatch.public import REDUCTIONS
from tensorflow_lite_clone.tensor import Tensor


def _computed(name: str, *tensors: Any, **parameters: Any) -> Any:
    """What an op gives, or a primitive or composite over the tensors' arrays."""
    op: Any = TABLE.get(name)
    if is_op(op):
        return apply(op, *tensors, **parameters)  # its results lie as they should
    backend = tensors[0]._storage.backend
    arrays = [None if x is None else x._storage.array for x in tensors]
    result = getattr(backend.F, name)(*arrays, **parameters)
    if not isinstance(result, tuple):
        return wrap(result, backend)
    return tuple([None if array is None else wrap(array, backend) for array in result])


def composite(name: str) -> Any:
    """Enter the decorated ``function(*tensors, **parameters)`` in place of a composite's body.

    It may decline by returning NotImplemented.
    """

    def register(function: Any) -> Any:
        see_composite(name, function)
        return function

    return register


# -- functions of each element ---------------------------------------------------------------------


def _of_elements(name: str) -> None:
    operation(name)(lambda *tensors, **_: _computed(name, *tensors))
    composite(name)(lambda *tensors: call(name, *tensors))


for _name in "tanh sigmoid gelu silu mish hardswish hardsigmoid".split():
    _of_elements(f"{_name}_backward")


def _of_elements_with(name: str, parameter: str, *more: Any) -> None:
    """One that has a number, behind which aten has `more`."""
    operation(name)(lambda g, x, value, *_: _computed(name, g, x, **{parameter: value}))
    composite(name)(lambda g, x, **values: call(name, g, x, values[parameter], *more))


_of_elements_with("threshold_backward", "threshold")
_of_elements_with("leaky_relu_backward", "slope", False)


# -- softmax and losses ----------------------------------------------------------------------------


def _of_softmax(name: str) -> None:
    def run(g: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
        return _computed(f"{name}_backward", g, y, axis=dim % y.ndim)

    def seen(g: Tensor, y: Tensor, *, axis: int) -> Tensor:
        return call(f"_{name}_backward_data", g, y, axis, y.dtype)

    operation(f"_{name}_backward_data")(run)
    composite(f"{name}_backward")(seen)


_of_softmax("softmax")
_of_softmax("log_softmax")


@operation("nll_loss_backward")
def _nll_loss_backward(
    g: Tensor, x: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int,
    total_weight: Tensor,
) -> Tensor:  # fmt: skip
    return _computed(
        "nll_loss_backward", g, target, weight, axis=min(1, x.ndim - 1),
        classes=x.shape[min(1, x.ndim - 1)], reduction=REDUCTIONS[reduction],
        ignore_index=ignore_index,
    )  # fmt: skip


@composite("cross_entropy_backward")
def _cross_entropy(
    g: Tensor, x: Tensor, lse: Tensor, target: Tensor, weight: Any, *, axis: int, reduction: str,
    ignore_index: int, smoothing: float,
) -> Tensor:  # fmt: skip
    if smoothing:
        return NotImplemented
    logs = lse if lse.ndim == x.ndim else derived(lambda: x - lse.unsqueeze(axis))
    total = unseen(g.new_ones, ())
    number = REDUCTIONS.index(reduction)
    g = call("nll_loss_backward", g, logs, target, weight, number, ignore_index, total)
    return call("_log_softmax_backward_data", g, logs, axis, x.dtype)


@operation("mse_loss_backward")
def _mse_loss_backward(g: Tensor, x: Tensor, y: Tensor, reduction: int) -> Tensor:
    return _computed("mse_loss_backward", g, x, y, reduction=REDUCTIONS[reduction])


@composite("mse_loss_backward")
def _mse_loss(g: Tensor, x: Tensor, y: Tensor, *, reduction: str) -> Tensor:
    return call("mse_loss_backward", g, x, y, REDUCTIONS.index(reduction))


# -- norms, pools, embeddings, attention -----------------------------------------------------------


@operation("native_layer_norm_backward")
def _native_layer_norm_backward(
    g: Tensor, x: Tensor, shape: Any, mean: Tensor, rstd: Tensor, w: Any, b: Any, mask: Any
) -> tuple:
    return _computed(
        "layer_norm_backward", g, x, w, mean.reshape(-1, 1), rstd.reshape(-1, 1), ndim=len(shape),
        eps=0.0, needs=tuple(mask),
    )  # fmt: skip


@composite("layer_norm_backward")
def _layer_norm(
    g: Tensor, x: Tensor, w: Any, mean: Tensor, rstd: Tensor, *, ndim: int, eps: float, needs: Any
) -> tuple:
    shape = list(x.shape[x.ndim - ndim :])
    mask = [*needs, False, False][:3]
    rows = (*x.shape[: x.ndim - ndim], *[1] * ndim)
    if mean.shape != rows:
        mean, rstd = unseen(mean.reshape, rows), unseen(rstd.reshape, rows)
    return tuple(call("native_layer_norm_backward", g, x, shape, mean, rstd, w, w, mask))


@operation("native_batch_norm_backward")
def _native_batch_norm_backward(
    g: Tensor, x: Tensor, w: Any, running_mean: Any, running_var: Any, mean: Any, rstd: Any,
    train: bool, eps: float, mask: Any,
) -> tuple:  # fmt: skip
    needs = tuple(mask)
    if not train:
        moments = (running_mean, running_var)
        return _computed("batch_norm_eval_backward", g, x, w, *moments, eps=eps, needs=needs)
    variance = rstd**-2 - eps
    return _computed("batch_norm_backward", g, x, w, mean, variance, eps=eps, needs=needs)


@composite("batch_norm_backward")
def _batch_norm(
    g: Tensor, x: Tensor, w: Any, mean: Tensor, variance: Tensor, *, eps: float, needs: Any
) -> tuple:
    rstd = derived(lambda: (variance + eps) ** -0.5)
    args = (g, x, w, None, None, mean, rstd, True, eps, list(needs))
    return tuple(call("native_batch_norm_backward", *args))


@composite("batch_norm_eval_backward")
def _batch_norm_eval(
    g: Tensor, x: Tensor, w: Any, mean: Tensor, variance: Tensor, *, eps: float, needs: Any
) -> tuple:
    args = (g, x, w, mean, variance, None, None, False, eps, list(needs))
    return tuple(call("native_batch_norm_backward", *args))


def _max_pool_backward(ndim: int) -> None:
    name = f"max_pool{ndim}d_with_indices_backward"

    def run(
        g: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any,
        ceil_mode: bool, indices: Tensor,
    ) -> Tensor:  # fmt: skip
        spread = x.new_zeros((*x.shape[:2], prod(x.shape[2:])))
        spread = spread.scatter_add(2, indices.flatten(2), g.flatten(2))
        return spread.reshape(x.shape)

    operation(name)(run)


for _ndim in (2, 3):
    _max_pool_backward(_ndim)


def _max_pool(g: Tensor, x: Tensor, y: Tensor, hint: Any, **sizes: Any) -> Tensor:
    if len(sizes["kernel"]) == 1:
        return own(TABLE["max_pool_backward"], g, x, y, hint, **sizes)
    indices = hint if hint is not None and hint.shape == y.shape else None
    if indices is None:
        indices = derived(lambda: _computed("max_pool_indices", x, y, **sizes))
    args = [list(sizes[name]) for name in ("kernel", "stride", "padding", "dilation")]
    name = f"max_pool{len(sizes['kernel'])}d_with_indices_backward"
    return call(name, g, x, *args, False, indices)


forms["max_pool_backward"] = _max_pool


def _avg_pool_backward(ndim: int) -> None:
    def run(
        g: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
        count_include_pad: bool, divisor_override: Any,
    ) -> Tensor:  # fmt: skip
        return _computed(
            "avg_pool_backward", g, size=tuple(x.shape[2:]), kernel=tuple(kernel),
            stride=tuple(stride), padding=tuple(padding), ceil_mode=ceil_mode,
            include=count_include_pad, divisor=divisor_override,
        )  # fmt: skip

    operation(f"avg_pool{ndim}d_backward")(run)


for _ndim in (1, 2, 3):
    _avg_pool_backward(_ndim)


def _avg_pool(
    g: Tensor, *, size: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
    include: bool, divisor: Any,
) -> Tensor:  # fmt: skip
    x = unseen(lambda: g.new_zeros(()).expand(*g.shape[:2], *size))  # only its shape is asked for
    args = [list(each) for each in (kernel, stride, padding)]
    name = f"avg_pool{len(kernel)}d_backward"
    return call(name, g, x, *args, ceil_mode, include, divisor)


forms["avg_pool_backward"] = _avg_pool


@operation("embedding_dense_backward")
def _embedding_dense_backward(
    g: Tensor, index: Tensor, rows: int, padding: int, by_frequency: bool
) -> Tensor:
    return _computed(
        "embedding_backward", g, index, rows=rows, padding=None if padding < 0 else padding,
        by_frequency=by_frequency,
    )  # fmt: skip


def _embedding(g: Tensor, index: Tensor, *, rows: int, padding: Any, by_frequency: bool) -> Tensor:
    padding = -1 if padding is None else padding
    return call("embedding_dense_backward", g, index, rows, padding, by_frequency)


forms["embedding_backward"] = _embedding


@operation("_scaled_dot_product_flash_attention_for_cpu")
def _attention_forward(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: Any = None,
) -> tuple:  # fmt: skip
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return _computed("attention", q, k, v, attn_mask, scale=scale, causal=is_causal, groups=1)


@operation("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_backward(
    g: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, dropout_p: float,
    is_causal: bool, *, attn_mask: Any = None, scale: Any = None,
) -> tuple:  # fmt: skip
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return _computed(
        "attention_backward", g, q, k, v, attn_mask, out, lse, scale=scale, causal=is_causal,
        groups=1, needs=(True, True, True, False),
    )[:3]  # fmt: skip


@composite("attention_backward")
def _attention(
    g: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Any, out: Tensor, lse: Tensor, *,
    scale: float, causal: bool, groups: int, needs: Any,
) -> tuple:  # fmt: skip
    if needs[3] or q.ndim != 4 or groups > 1 or not q.shape[-1]:  # PyTorch takes other ways
        return _computed(
            "attention_backward", g, q, k, v, mask, out, lse, scale=scale, causal=causal,
            groups=groups, needs=needs,
        )  # fmt: skip
    kwargs = {"attn_mask": mask}
    if not isclose(scale, q.shape[-1] ** -0.5):
        kwargs["scale"] = scale
    name = "_scaled_dot_product_flash_attention_for_cpu_backward"
    found = call(name, g, q, k, v, out, lse, 0.0, causal, **kwargs)
    return (*found, None)


# -- products --------------------------------------------------------------------------------------


def _saved(node: Any, needed: Any) -> tuple[dict[int, Tensor], list[bool]]:
    """The saved values of a node by their places, and which inputs' gradients are wanted."""
    plan = node.op.plans[node.mask]
    saved = unwrap(node._unpack(plan.saves, True))
    values = dict(zip(plan.saves, saved, strict=True))
    requested = [need and (needed is None or needed[i]) for i, need in enumerate(plan.needs)]
    return values, requested


def _linear(node: Any, grads: list, needed: Any) -> Any:
    (g,) = grads
    if g.is_complex():
        return NotImplemented
    values, requested = _saved(node, needed)
    gx = gw = gb = None
    rows = g if g.ndim == 2 else as_shape(g, [prod(g.shape[:-1]), g.shape[-1]])
    if requested[0]:
        gx = call("mm", rows, call("t", unseen(values[1].t)))
        if g.ndim != 2:
            gx = call("view", gx, [*g.shape[:-1], gx.shape[-1]])
    if requested[1]:
        see = unseen if values[0].is_contiguous() else derived  # a copy is to be followed
        x = see(values[0].reshape, -1, values[0].shape[-1])
        gw = call("t", call("t", call("mm", call("t", rows), x)))
    if requested[2]:
        gb = call("view", call("sum.dim_IntList", rows, [0], True), [rows.shape[1]])
    return [gx, gw, gb]


def _mm(node: Any, grads: list, needed: Any) -> Any:
    (g,) = grads
    if g.ndim != 1 or g.is_complex():
        return NotImplemented
    values, requested = _saved(node, needed)
    g, gx, gy = call("unsqueeze", g, 0), None, None  # of a vector, which was a row
    if requested[1]:
        gy = call("mm", call("t", derived(values[0].unsqueeze, 0)), g)
    if requested[0]:
        gx = call("squeeze.dim", call("mm", g, call("t", values[1])), 0)
    return [gx, gy]


def _bmm(node: Any, grads: list, needed: Any) -> Any:
    (g,) = grads
    if g.is_complex():
        return NotImplemented
    values, requested = _saved(node, needed)
    batch = list(g.shape[:-2])

    def flat(x: Tensor) -> Tensor:
        return derived(lambda: x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:]))

    def product(x: Tensor, y: Tensor) -> Tensor:
        z = call("bmm", x, y)
        return z if len(batch) == 1 else call("view", z, [*batch, *z.shape[-2:]])

    if len(batch) > 1:
        g = as_shape(g, [prod(batch), *g.shape[-2:]])
    gx = product(g, call("transpose.int", flat(values[1]), 1, 2)) if requested[0] else None
    gy = product(call("transpose.int", flat(values[0]), 1, 2), g) if requested[1] else None
    return [gx, gy]


@operation("convolution_backward")
def _convolution_backward(
    g: Tensor, x: Tensor, w: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> tuple:  # fmt: skip
    op = ConvTranspose if transposed else Conv
    backend = g._storage.backend
    values = {"g": g, "x": x, "w": w}
    sizes = {
        "stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation),
        "groups": groups,
    }  # fmt: skip
    results: list[Any] = []
    for place, requested in enumerate(output_mask):
        if not requested:
            results.append(None)
            continue
        gradient, saved, names = op.separate[(place,)]
        arrays = [values[name]._storage.array for name in ("g", *saved)]
        array = gradient(backend.F, *arrays, **{name: sizes[name] for name in names})
        results.append(wrap(array, backend))
    return tuple(results)


def _transpose(node: Any, grads: list, needed: Any) -> list:
    return [forms["transpose"](grads[0], **node.parameters)]


def _convolution(node: Any, grads: list, needed: Any) -> list:
    (g,) = grads
    values, requested = _saved(node, needed)
    transposed = node.op is ConvTranspose
    sizes = [list(node.parameters[name]) for name in ("stride", "padding", "dilation")]
    if 0 not in values:  # only its shape is asked for
        w = values[1]
        count = windows_size(g.shape[2:], w.shape[2:], *map(tuple, sizes))
        values[0] = unseen(lambda: g.new_zeros(()).expand(g.shape[0], w.shape[0], *count))
    channels = [g.shape[1]] if node.edges[2] is not None else None
    args = (g, values[0], values[1], channels, *sizes, transposed, [0] * len(sizes[0]))
    return list(call("convolution_backward", *args, node.parameters["groups"], requested))


gradients.update(
    linear=_linear,
    mm=_mm,
    bmm=_bmm,
    transpose=_transpose,
    conv=_convolution,
    conv_transpose=_convolution,
)
