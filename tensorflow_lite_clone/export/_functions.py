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
from tensorflow_lite_clone.python_dispatch.public import BY_FUNCTION, RESAMPLE, Row
from tensorflow_lite_clone.tensor import Tensor


def _functional(row: Row) -> str:
    """The name of a function, whose namesake in ``torch`` has aten's arguments or is the same."""
    same = EXPORTS["torch"].get(row.function) is EXPORTS["functional"][row.function]
    return f"torch.{row.function}" if same else f"torch.nn.functional.{row.function}"


def _of_table(row: Row) -> None:
    """Enter a function of the table of those that are called otherwise in aten."""

    @handler(_functional(row))
    def run(capture: Capture, *args: Any, **kwargs: Any) -> Any:
        operation, arguments = row.from_public(*args, **kwargs)
        return capture.call(operation, **arguments)


for _row in BY_FUNCTION.values():
    _of_table(_row)


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


# -- pools, losses --------------------------------------------------------------------------------


def _adaptive(name: str, dims: int, indices: bool) -> None:
    @handler(name)
    def run(capture: Capture, input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        sizes = output_size
        if isinstance(output_size, (tuple, list)):
            shape = capture.shape(input)[-dims:]
            sizes = [own if size is None else size for size, own in zip(output_size, shape)]
        found = capture.call(name, input, sizes)
        return found if not indices or return_indices else found[0]


for _dims in (1, 2, 3):
    _adaptive(f"adaptive_avg_pool{_dims}d", _dims, False)
    _adaptive(f"adaptive_max_pool{_dims}d", _dims, True)


def _pair_loss(row: Row) -> None:
    """Enter a loss of two tensors, which are broadcast against each other."""

    @handler(_functional(row))
    def run(capture: Capture, input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        pair = _broadcast(capture, input, target)
        operation, arguments = row.from_public(*pair, *args, **kwargs)
        return capture.call(operation, **arguments)


for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    _pair_loss(BY_FUNCTION[_name])


@handler(_functional(BY_FUNCTION["kl_div"]))
def _kl_div(capture: Capture, input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    batch = kwargs.get("reduction") == "batchmean" or "batchmean" in args
    args = tuple(["sum" if each == "batchmean" else each for each in args])
    kwargs.update({"reduction": "sum"} if batch and "reduction" in kwargs else {})
    operation, arguments = BY_FUNCTION["kl_div"].from_public(input, target, *args, **kwargs)
    loss = capture.call(operation, **arguments)
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


@handler("interpolate", "upsample")
def _interpolate(
    capture: Capture, input: Tensor, size: Any = None, scale_factor: Any = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:  # fmt: skip
    dims = input.ndim - 2
    name = RESAMPLE.get((mode, dims))
    if name is None:
        with capture:  # which composes it of others, or raises
            return _plain("interpolate")(
                input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
            )
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
