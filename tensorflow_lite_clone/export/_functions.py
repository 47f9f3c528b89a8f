"""Functions of ``torch.nn.functional`` as the operations of aten's that they are in PyTorch.

The arguments are those of the public functions; what is called has aten's.
"""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.templates import originals
from tensorflow_lite_clone.export._capture import Capture
from tensorflow_lite_clone.export._queries import handler
from tensorflow_lite_clone.export._symbolic import SymInt
from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.tensor import Tensor

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _with_inplace(name: str, *arguments: tuple[str, Any]) -> None:
    """Enter a function ``name(input, ..., inplace=False)``."""
    names = [each for each, _ in arguments]
    defaults = dict(arguments)

    @handler(name)
    def run(capture: Capture, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        values = {**defaults, **dict(zip(names, args)), **kwargs}
        inplace = values.pop("inplace", False) or args[len(names) :] == (True,)
        called = f"{name}_" if inplace else name
        return capture.call(called, input, *[values[each] for each in names])


for _name, *_arguments in (
    ("relu",), ("silu",), ("mish",), ("hardswish",), ("hardsigmoid",), ("selu",), ("relu6",),
    ("elu", ("alpha", 1.0)), ("celu", ("alpha", 1.0)), ("leaky_relu", ("negative_slope", 0.01)),
    ("hardtanh", ("min_val", -1.0), ("max_val", 1.0)), ("threshold", ("threshold", 0),
    ("value", 0)),
):  # fmt: skip
    _with_inplace(_name, *_arguments)


def _dropout(name: str, default: float, training: bool, called: str) -> None:
    @handler(name)
    def run(
        capture: Capture,
        input: Tensor,
        p: float = default,
        training: bool = training,
        inplace: bool = False,
    ) -> Tensor:
        return capture.call(f"{called}_" if inplace else called, input, float(p), training)


_dropout("dropout", 0.5, True, "dropout")
_dropout("alpha_dropout", 0.5, False, "alpha_dropout")
_dropout("feature_alpha_dropout", 0.5, False, "feature_alpha_dropout")
for _name in ("dropout1d", "dropout2d", "dropout3d"):
    _dropout(_name, 0.5, True, "feature_dropout")


def _along_dim(name: str) -> None:
    @handler(name)
    def run(
        capture: Capture,
        input: Tensor,
        dim: int | None = None,
        _stacklevel: Any = 3,
        dtype: Any = None,
    ) -> Tensor:
        if not isinstance(_stacklevel, int):
            dtype = _stacklevel
        if dim is None:
            warnings.warn(
                f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                "include dim=X as an argument.",
                stacklevel=level_outside(),
            )
            dim = 0 if input.ndim in (0, 1, 3) else 1
        if name == "softmin":
            return capture.call("softmax", capture.call("neg", input), dim, dtype)
        return capture.call(name, input, dim, dtype)


for _name in ("softmax", "log_softmax", "softmin"):
    _along_dim(_name)


# -- norms, pools ----------------------------------------------------------------------------------


@handler("layer_norm")
def _layer_norm(
    capture: Capture, input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None,
    eps: float = 1e-5, cudnn_enable: bool = False,
) -> Tensor:  # fmt: skip
    return capture.call("layer_norm", input, list(normalized_shape), weight, bias, eps, False)


@handler("group_norm")
def _group_norm(
    capture: Capture, input: Tensor, num_groups: int, weight: Any = None, bias: Any = None,
    eps: float = 1e-5, cudnn_enabled: bool = False,
) -> Tensor:  # fmt: skip
    return capture.call("group_norm", input, num_groups, weight, bias, eps, False)


@handler("batch_norm")
def _batch_norm(
    capture: Capture, input: Tensor, running_mean: Any, running_var: Any, weight: Any = None,
    bias: Any = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    statistics = (running_mean, running_var)
    return capture.call(
        "batch_norm", input, weight, bias, *statistics, training, momentum, eps, False
    )


@handler("instance_norm")
def _instance_norm(
    capture: Capture, input: Tensor, running_mean: Any = None, running_var: Any = None,
    weight: Any = None, bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    statistics = (running_mean, running_var)
    return capture.call(
        "instance_norm", input, weight, bias, *statistics, use_input_stats, momentum, eps, False
    )


def _max_pool(name: str) -> None:
    @handler(name)
    def run(
        capture: Capture, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        called = f"{name}_with_indices" if return_indices else name
        stride = [] if stride is None else stride
        return capture.call(called, input, kernel_size, stride, padding, dilation, ceil_mode)


def _adaptive(name: str, dims: int, indices: bool) -> None:
    @handler(name)
    def run(capture: Capture, input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        sizes = output_size
        if isinstance(output_size, (tuple, list)):
            shape = capture.shape(input)[-dims:]
            sizes = [own if size is None else size for size, own in zip(output_size, shape)]
        found = capture.call(name, input, sizes)
        return found if not indices or return_indices else found[0]


def _avg_pool(name: str) -> None:
    @handler(name)
    def run(
        capture: Capture, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Tensor:  # fmt: skip
        stride = [] if stride is None else stride
        more = () if name == "avg_pool1d" else (divisor_override,)
        return capture.call(
            name, input, kernel_size, stride, padding, ceil_mode, count_include_pad, *more
        )


for _dims in (1, 2, 3):
    _max_pool(f"max_pool{_dims}d")
    _avg_pool(f"avg_pool{_dims}d")
    _adaptive(f"adaptive_avg_pool{_dims}d", _dims, False)
    _adaptive(f"adaptive_max_pool{_dims}d", _dims, True)


# -- losses ----------------------------------------------------------------------------------------


def _reduction(reduction: Any, size_average: Any = None, reduce: Any = None) -> int:
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    return _REDUCTIONS[reduction]


@handler("cross_entropy")
def _cross_entropy(
    capture: Capture, input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    number = _reduction(reduction, size_average, reduce)
    return capture.call(
        "cross_entropy_loss", input, target, weight, number, ignore_index, float(label_smoothing)
    )


@handler("nll_loss")
def _nll_loss(
    capture: Capture, input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    number = _reduction(reduction, size_average, reduce)
    return capture.call("nll_loss_nd", input, target, weight, number, ignore_index)


def _pair_loss(name: str, *more: tuple[str, float]) -> None:
    """Enter a loss of two tensors, which are broadcast against each other."""
    names = [each for each, _ in more]

    @handler(name)
    def run(
        capture: Capture, input: Tensor, target: Tensor, size_average: Any = None,
        reduce: Any = None, reduction: str = "mean", *args: Any, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if isinstance(size_average, str):  # `huber_loss` has no older arguments
            reduction, size_average, args = size_average, None, (reduce, *args) if reduce else args
            reduce = None
        values = {**dict(more), **dict(zip(names, args)), **kwargs}
        values.pop("weight", None)
        first, second = _broadcast(capture, input, target)
        number = _reduction(reduction, size_average, reduce)
        return capture.call(name, first, second, number, *[float(values[each]) for each in names])


_pair_loss("mse_loss")
_pair_loss("l1_loss")
_pair_loss("smooth_l1_loss", ("beta", 1.0))
_pair_loss("huber_loss", ("delta", 1.0))


@handler("binary_cross_entropy")
def _binary_cross_entropy(
    capture: Capture, input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    number = _reduction(reduction, size_average, reduce)
    return capture.call("binary_cross_entropy", input, target, weight, number)


@handler("binary_cross_entropy_with_logits")
def _with_logits(
    capture: Capture, input: Tensor, target: Tensor, weight: Any = None, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean", pos_weight: Any = None,
) -> Tensor:  # fmt: skip
    number = _reduction(reduction, size_average, reduce)
    name = "binary_cross_entropy_with_logits"
    return capture.call(name, input, target, weight, pos_weight, number)


@handler("kl_div")
def _kl_div(
    capture: Capture, input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    batch = reduction == "batchmean"
    number = _reduction("sum" if batch else reduction, size_average, reduce)
    loss = capture.call("kl_div", input, target, number, log_target=log_target)
    return capture.call("div", loss, capture.shape(input)[0]) if batch and input.ndim else loss


# -- the others ------------------------------------------------------------------------------------


@handler("embedding")
def _embedding(
    capture: Capture, input: Tensor, weight: Tensor, padding_idx: int | None = None,
    max_norm: Any = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:  # fmt: skip
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    if max_norm is not None:
        capture.call("embedding_renorm_", weight, input, float(max_norm), norm_type)
    return capture.call("embedding", weight, input, padding, scale_grad_by_freq, sparse)


#: Mode -> the operations for one, two and three dimensions of pixels.
_RESAMPLE = {
    "nearest": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    "nearest-exact": (
        "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
    ),
    "linear": ("upsample_linear1d",),
    "bilinear": (None, "upsample_bilinear2d"),
    "bicubic": (None, "upsample_bicubic2d"),
    "trilinear": (None, None, "upsample_trilinear3d"),
}  # fmt: skip


@handler("interpolate", "upsample")
def _interpolate(
    capture: Capture, input: Tensor, size: Any = None, scale_factor: Any = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:  # fmt: skip
    dims = input.ndim - 2
    names = _RESAMPLE.get(mode, ())
    if mode == "area" or dims > len(names) or names[dims - 1] is None:
        with capture:  # which composes it of others, or raises
            return _plain("interpolate")(
                input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
            )
    name = str(names[dims - 1])
    if antialias:
        name = f"_{name}_aa"
    scales = None
    if scale_factor is not None:
        one = not isinstance(scale_factor, (tuple, list))
        scales = [float(each) for each in ([scale_factor] * dims if one else scale_factor)]
        if recompute_scale_factor:
            shape = capture.shape(input)[2:]
            size = [int(n * scale) for n, scale in zip(shape, scales)]
            scales = None
    elif not isinstance(size, (tuple, list)):
        size = [size] * dims
    if scales is not None:
        size = None
    corners = () if mode.startswith("nearest") else (bool(align_corners),)
    sizes = None if size is None else list(size)
    return capture.emit(getattr(aten, name).vec, (input, sizes, *corners, scales), {})


def _plain(name: str) -> Any:
    function = EXPORTS["functional"][name]
    return originals.get(function, function)


@handler("pad")
def _pad(
    capture: Capture, input: Tensor, pad: Any, mode: str = "constant", value: float | None = None
) -> Tensor:
    return capture.call("pad", input, list(pad), mode, None if value is None else float(value))


@handler("unfold")
def _unfold(capture: Capture, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    if input.ndim in (3, 4) and (len(args) != 3 or kwargs) and "step" not in kwargs:
        names = ("kernel_size", "dilation", "padding", "stride")
        values = {"dilation": 1, "padding": 0, "stride": 1, **dict(zip(names, args)), **kwargs}
        pairs = [_pair(values[name]) for name in names]
        return capture.call("im2col", input, *pairs)
    return capture.call("unfold", input, *args, **kwargs)


@handler("fold")
def _fold(
    capture: Capture, input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1,
    padding: Any = 0, stride: Any = 1,
) -> Tensor:  # fmt: skip
    sizes = (output_size, kernel_size, dilation, padding, stride)
    return capture.call("col2im", input, *map(_pair, sizes))


def _pair(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value, value]


@handler("grid_sample")
def _grid_sample(
    capture: Capture, input: Tensor, grid: Tensor, mode: str = "bilinear",
    padding_mode: str = "zeros", align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    numbers = (
        ("bilinear", "nearest", "bicubic").index(mode),
        ("zeros", "border", "reflection").index(padding_mode),
    )
    return capture.call("grid_sampler", input, grid, *numbers, bool(align_corners))


@handler("affine_grid")
def _affine_grid(
    capture: Capture, theta: Tensor, size: Any, align_corners: bool | None = None
) -> Tensor:
    return capture.call("affine_grid_generator", theta, list(size), bool(align_corners))


@handler("logsigmoid")
def _logsigmoid(capture: Capture, input: Tensor) -> Tensor:
    return capture.call("log_sigmoid", input)


@handler("tanhshrink")
def _tanhshrink(capture: Capture, input: Tensor) -> Tensor:
    return capture.call("sub", input, capture.call("tanh", input))


@handler("softsign")
def _softsign(capture: Capture, input: Tensor) -> Tensor:
    return capture.call("div", input, capture.call("add", capture.call("abs", input), 1))


@handler("einsum")
def _einsum(capture: Capture, equation: str, *operands: Any) -> Tensor:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return capture.call("einsum", equation, list(operands))


@handler("split")
def _split(capture: Capture, tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    sizes = split_size_or_sections
    if isinstance(sizes, (int, SymInt)):
        return tuple(capture.call("split", tensor, sizes, dim))
    return tuple(capture.call("split_with_sizes", tensor, list(sizes), dim))


@handler("broadcast_tensors")
def _broadcast(capture: Capture, *tensors: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    results = list(capture.call("broadcast_tensors", list(tensors)))
    for place, (given, result) in enumerate(zip(tensors, results)):
        if given.shape == result.shape:  # PyTorch gives the tensor itself
            results[place] = capture.rename(given, result)
    return tuple(results)


@handler("meshgrid")
def _meshgrid(capture: Capture, *tensors: Any, indexing: str | None = None) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    options = {} if indexing is None else {"indexing": indexing}
    return capture.call("meshgrid", list(tensors), **options)


@handler("__iter__")
def _iterate(capture: Capture, x: Tensor) -> Any:
    return iter(capture.call("unbind", x))
