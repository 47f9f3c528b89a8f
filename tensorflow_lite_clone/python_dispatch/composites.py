"""Operations of aten's that PyTorch composes of others, by their own arguments.

The public functions of these have other arguments, or other names. They run by what they are
composed of: a mode or class that dispatches sees that, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.ops.namespaces import OpOverloadPacket, aten
from tensorflow_lite_clone.python_dispatch.public import BY_OPERATION, DROPOUTS, RESAMPLE
from tensorflow_lite_clone.tensor import Tensor

_F: Any = EXPORTS["functional"]
_M: Any = EXPORTS["method"]
_T: Any = EXPORTS["torch"]


def composite(*names: str) -> Callable[[Any], Any]:
    """Let the decorated function run these operations ("layer_norm", "upsample_linear1d.vec")."""

    def register(function: Any) -> Any:
        for name in names:
            packet_name, _, overload = name.partition(".")
            packet = aten.members.get(packet_name)
            if packet is None:
                public = _T.get(packet_name) or _M.get(packet_name) or _F.get(packet_name)
                packet = OpOverloadPacket(f"aten::{packet_name}", public or function)
                aten.members[packet_name] = packet
            packet.overload(overload or "default", function)
        return function

    return register


for _operation, _row in BY_OPERATION.items():
    composite(_operation)(_row.to_public)
for _name in DROPOUTS:
    composite(f"{_name}_")(partial(BY_OPERATION[_name].to_public, inplace=True))
composite("nll_loss")(BY_OPERATION["nll_loss_nd"].to_public)


# -- dropout, pixels -------------------------------------------------------------------------------


def _feature_dropout(x: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
    """Dropout of whole channels: one dimension of pixels for three of x, and so on."""
    dims = max(x.ndim - 2, 1)
    return _F[f"dropout{min(dims, 3)}d"](x, p, train, inplace)


composite("feature_dropout")(_feature_dropout)
composite("feature_dropout_")(lambda x, p, train: _feature_dropout(x, p, train, True))


def _resample(name: str, mode: str, **options: Any) -> None:
    @composite(f"{name}.vec")
    def run(x: Tensor, output_size: Any, *rest: Any) -> Tensor:
        *corners, scales = rest if rest else (None,)
        sizes = {"size": output_size} if output_size is not None else {"scale_factor": scales}
        if corners:
            sizes["align_corners"] = corners[0]
        return _F["interpolate"](x, **sizes, mode=mode, **options)


for (_mode, _), _name in RESAMPLE.items():
    _resample(_name, _mode)
for _mode in ("bilinear", "bicubic"):
    _resample(f"_upsample_{_mode}2d_aa", _mode, antialias=True)


# -- views, copies, casts --------------------------------------------------------------------------


@composite("index_put_")
def _index_put(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    if None not in [index if index is None else 0 for index in indices]:
        return _M["index_put_"](x, tuple(indices), values, accumulate)
    key = tuple([slice(None) if index is None else index for index in indices])
    if accumulate:  # at the places that the key takes of all of them
        places = _T["arange"](x.numel(), device=x.device).view(x.shape)[key]
        return x.put_(places, values.expand(places.shape), True)
    x[key] = values
    return x


@composite("index_put")
def _index_put_apart(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    return _index_put(x.clone(), indices, values, accumulate)


@composite("lift_fresh_copy")
def _lift_fresh_copy(x: Tensor) -> Tensor:
    return x.clone()


@composite("sym_size.int")
def _sym_size(x: Tensor, dim: int) -> int:
    return x.shape[dim]


@composite("_assert_scalar")
def _assert_scalar(condition: Any, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


@composite("_assert_tensor_metadata")
def _assert_tensor_metadata(
    x: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None,
    layout: Any = None,
) -> None:  # fmt: skip
    if dtype is not None and x.dtype is not dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype}, Got: {x.dtype}")


@composite("numpy_T")
def _numpy_t(x: Tensor) -> Tensor:
    return x.permute(*range(x.ndim)[::-1])


def _attribute(name: str) -> None:
    composite(name)(lambda x: getattr(x, name))


for _name in ("mT", "mH", "T", "H"):
    _attribute(_name)


@composite("to.dtype_layout")
def _to_layout(x: Tensor, dtype: Any = None, layout: Any = None, device: Any = None,
               pin_memory: Any = None, **options: Any) -> Tensor:  # fmt: skip
    return x.to(device=device, dtype=dtype, **options)


@composite("empty.memory_format")
def _empty(size: Any, **options: Any) -> Tensor:
    return _T["empty"](size, **options)


@composite("broadcast_tensors")
def _broadcast(tensors: Any) -> Any:
    return _T["broadcast_tensors"](*tensors)


@composite("meshgrid", "meshgrid.indexing")
def _meshgrid(tensors: Any, indexing: str = "ij") -> Any:
    return _T["meshgrid"](*tensors, indexing=indexing)


@composite("tensordot")
def _tensordot(x: Tensor, y: Tensor, dims_self: Any, dims_other: Any) -> Tensor:
    return _T["tensordot"](x, y, (list(dims_self), list(dims_other)))


@composite("einsum")
def _einsum(equation: str, tensors: Any, path: Any = None) -> Tensor:
    return _T["einsum"](equation, *tensors)


# -- native forms, which give more than the result -------------------------------------------------


@composite("native_dropout")
def _native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    mask = _F["dropout"](_T["ones_like"](x), p, train is not False) != 0
    return x * mask / (1 - p) if train is not False and p < 1 else x * mask, mask


@composite("native_layer_norm")
def _native_layer_norm(
    x: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = [*range(x.ndim - len(normalized_shape), x.ndim)]
    var, mean = _T["var_mean"](x, dims, correction=0, keepdim=True)
    return _F["layer_norm"](x, normalized_shape, weight, bias, eps), mean, (var + eps).rsqrt()


@composite("native_group_norm")
def _native_group_norm(
    x: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    var, mean = _T["var_mean"](x.reshape(N, group, -1), -1, correction=0)
    return _F["group_norm"](x, group, weight, bias, eps), mean, (var + eps).rsqrt()


@composite("_native_batch_norm_legit_no_training")
def _batch_norm_no_training(
    x: Tensor, weight: Any, bias: Any, running_mean: Tensor, running_var: Tensor, momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    y = _F["batch_norm"](x, running_mean, running_var, weight, bias, False, momentum, eps)
    return y, x.new_empty(0), x.new_empty(0)


@composite("_native_batch_norm_legit_functional")
def _batch_norm_functional(
    x: Tensor, weight: Any, bias: Any, running_mean: Tensor, running_var: Tensor, training: bool,
    momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    mean, var = running_mean.detach().clone(), running_var.detach().clone()
    y = _F["batch_norm"](x, mean, var, weight, bias, training, momentum, eps)
    dims = [0, *range(2, x.ndim)]
    batch_var, batch_mean = _T["var_mean"](x, dims, correction=0)
    return y, batch_mean, (batch_var + eps).rsqrt(), mean, var


@composite("convolution")
def _convolution(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    dims = weight.ndim - 2
    if transposed:
        sizes = (stride, padding, output_padding, groups, dilation)
        return _F[f"conv_transpose{dims}d"](x, weight, bias, *sizes)
    return _F[f"conv{dims}d"](x, weight, bias, stride, padding, dilation, groups)


@composite("constant_pad_nd")
def _constant_pad(x: Tensor, pad: Any, value: Any = 0) -> Tensor:
    return _F["pad"](x, pad, "constant", value)


def _pad_by(mode: str, name: str) -> None:
    for dims in (1, 2, 3):
        composite(f"{name}_pad{dims}d")(lambda x, padding: _F["pad"](x, padding, mode))


_pad_by("reflect", "reflection")
_pad_by("replicate", "replication")


def _without_pinning(name: str) -> None:
    """Let an operation be told about pinned memory and the layout, which change nothing."""
    public = _T.get(name) or _M[name]

    @composite(name)
    def run(*args: Any, pin_memory: Any = None, layout: Any = None, **options: Any) -> Tensor:
        return public(*args, **options)


for _name in (
    "empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like", "new_empty",
    "new_full", "new_ones", "new_zeros", "scalar_tensor",
    "tril_indices",
    "triu_indices",
):  # fmt: skip
    _without_pinning(_name)


@composite("_adaptive_avg_pool2d")
def _adaptive_avg_pool(x: Tensor, output_size: Any) -> Tensor:
    return _F["adaptive_avg_pool2d"](x, output_size)


@composite("copy")
def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.to(x.dtype).expand(x.shape).clone()


@composite("alias")
def _alias(x: Tensor) -> Tensor:
    return x.view(x.shape)
