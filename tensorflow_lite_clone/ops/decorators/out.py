"""``out=``: results written into tensors of the caller's, by PyTorch's rules.

Everything that takes ``out=`` ends in `write_out`, most of it by the decorator `with_out`. A result
may be cast where `torch.can_cast` allows it, but for the functions in `EXACT`; `out` may be one of
the inputs, but for those in `APART`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge
from tensorflow_lite_clone.autograd.inplace import check_writable, write
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, can_cast, uncastable
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.forwarding import forwarder
from tensorflow_lite_clone.core.strides import dense_strides, extent, is_dense
from tensorflow_lite_clone.storage import Storage, reshaped
from tensorflow_lite_clone.tensor import Tensor

#: Functions whose `out=` has the result's own dtype: roundings, products, factorizations, indexing,
#: and what else PyTorch computes straight into the memory of `out`.
EXACT = frozenset(
    """abs addbmm addmm addmv alias_copy amax amin aminmax argmax argmin argsort as_strided_copy
    avg_pool2d avg_pool3d baddbmm bitwise_not bmm bucketize ceil clamp complex conj_physical
    cross cummax cummin det detach_copy diag diagonal_copy dot expand_copy float_power floor
    frac frexp frobenius_norm gather gelu gelu_tanh hardshrink hash_tensor heaviside histc
    histogram index_add index_copy index_reduce index_select inner inv isin isneginf isposinf
    kthvalue ldl_solve linalg_cholesky linalg_cholesky_ex linalg_cross linalg_eigh
    linalg_eigvalsh linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lu
    linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_norm linalg_qr
    linalg_slogdet linalg_solve linalg_solve_ex linalg_svd linalg_svdvals linalg_vector_norm
    linear log_sigmoid log_softmax logcumsumexp lu_solve lu_unpack masked_select matmul
    matrix_power max median min mm mode msort multi_dot multinomial mv nan_to_num nanmedian
    nanquantile narrow_copy native_batch_norm neg nonzero nonzero_static norm normal ormqr
    permute_copy polar qr quantile renorm round round_decimals scatter scatter_add
    scatter_reduce searchsorted sgn sign signbit slice_copy slice_scatter softmax softplus
    softshrink solve_triangular sort split_with_sizes_copy squeeze_copy svd t_copy
    take take_along_dim tensordot topk transpose_copy triangular_solve tril triu trunc
    unbind_copy unfold_copy unsqueeze_copy vdot vecdot view_as_real_copy view_copy where""".split()
)
#: Functions whose `out=` shares no memory with an input, not even as the input itself. Those in
#: `INTO` may write into their first argument.
APART = frozenset(
    """addr cat column_stack cross diff dstack gather hstack index_add index_copy index_reduce
    index_select kron kthvalue linalg_cross masked_select outer scatter scatter_add scatter_reduce
    stack take take_along_dim vstack""".split()
)
INTO = frozenset(
    "addr index_add index_copy index_reduce scatter scatter_add scatter_reduce".split()
)
#: Functions that refuse an `out=` with several elements at one place before they resize it, beside
#: elementwise ones.
SINGLE = frozenset(
    """addr complex diff ger ihfft index_select masked_select nonzero normalize outer polar
    scatter scatter_add scatter_reduce split_copy take where""".split()
)
#: Functions -> the kinds of dtypes that `out=` may have.
KINDS = {"all": "bu", "any": "bu", "nanmean": "f", "nansum": "biuf"}
#: Functions that resize `out=` without a warning, beside those that make a tensor.
SILENT = frozenset("addbmm log_sigmoid lu".split())
#: Functions that raise TypeError for an `out=` that the result cannot be cast to.
_JOINING = frozenset("cat column_stack dstack hstack stack vstack".split())


def write_out(
    name: str,
    out: Tensor,
    result: Tensor,
    inputs: Any = (),
    *,
    warns: bool = True,
    elementwise: bool = False,
) -> Tensor:
    """Serve a function's ``out=``: copy `result` into `out`, resized when shapes differ.

    `inputs` are the function's arguments. With `elementwise` an `out` with several elements at one
    place is refused before it is resized, else only where it keeps its shape. Raises TypeError
    where `out` is no tensor; RuntimeError where something requires a gradient, for dtypes and
    devices that do not fit, and where `out` shares memory with an input otherwise than the
    function allows.
    """
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if mode.grad and (result._edge is not None or current_edge(out) is not None):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )
    _check_dtype(name, result, out)
    if out._storage.backend is not result._storage.backend:
        if out._storage.backend.batched or result._storage.backend.batched:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't "
                "work on out= or view ops."
            )
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{result.device} and {out.device}! ({name}() with out=)"
        )
    given = list(_tensors(inputs))
    if elementwise or name in SINGLE:
        check_writable(out._storage.physical)
    _check_overlaps(name, out, given)
    value = result._storage.array
    if out._storage.physical.shape != value.shape:
        if any([out is tensor for tensor in given]):
            raise RuntimeError(
                f"output with shape {list(out.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}"
            )
        _resize(out, value, warns and name not in SILENT)
        if name in APART:  # it may reach into the memory of an input now
            _check_overlaps(name, out, given)
    write(out, value)
    return out


def _tensors(values: Any) -> Iterator[Tensor]:
    """The tensors among arguments, also in lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)


def _check_dtype(name: str, result: Tensor, out: Tensor) -> None:
    """Raise RuntimeError (TypeError for joined tensors) when the result's dtype does not fit."""
    have, want = result.dtype, out.dtype
    if name in EXACT and have is not want:
        raise RuntimeError(
            f"{name}(): Expected out tensor to have dtype {have.short_name}, but got "
            f"{want.short_name} instead"
        )
    if want.kind not in KINDS.get(name, want.kind):
        raise RuntimeError(f"{name}(): an out tensor of dtype {want.short_name} is not supported")
    if not can_cast(have, want):
        if name in _JOINING:
            raise TypeError(
                f"torch.{name}(): input types can't be cast to the desired output type "
                f"{want.short_name}"
            )
        raise uncastable(have, want)


def _resize(out: Tensor, value: Any, warns: bool) -> None:
    """Give `out` the value's shape and order of dimensions, in its memory if that suffices."""
    if warns and out._storage.physical.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape "
            f"{list(value.shape)}.",
            stacklevel=level_outside(),
        )
    backend = out._storage.backend
    strides = dense_strides(value.shape, backend.strides(value))
    changed = reshaped(out._storage, value.shape, strides)
    if changed is None:
        memory = backend.empty((extent(value.shape, strides),), out.dtype)
        changed = Storage(backend.F.as_strided(memory, value.shape, strides), backend)
    out._storage = changed


def _check_overlaps(name: str, out: Tensor, inputs: list[Tensor]) -> None:
    for position, tensor in enumerate(inputs):
        _check_overlap(out, tensor, name in APART and (position > 0 or name not in INTO))


def _check_overlap(out: Tensor, tensor: Tensor, apart: bool) -> None:
    """Raise RuntimeError when some memory of `out` is the tensor's, but is not used alike.

    With `apart` even then. As in PyTorch, tensors with gaps are not looked at.
    """
    if tensor is out:
        if apart:
            raise _overlap()
        return
    ours, theirs = out._storage, tensor._storage
    if (ours.root or ours) is not (theirs.root or theirs):
        return
    strides = [storage.backend.strides(storage.array) for storage in (ours, theirs)]
    shapes = [ours.array.shape, theirs.array.shape]
    if not all(map(is_dense, shapes, strides)):
        return
    start, other = [storage.backend.F.address(storage.array) for storage in (ours, theirs)]
    if start == other and shapes[0] == shapes[1] and strides[0] == strides[1] and not apart:
        return
    ends = out.dtype.itemsize * ours.array.size, tensor.dtype.itemsize * theirs.array.size
    if start < other + ends[1] and other < start + ends[0]:
        raise _overlap()


def _overlap() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor "
        "refer to a single memory location. Please clone() the tensor before performing the "
        "operation."
    )


def delivered(name: str, result: Any, out: Any, inputs: Any = ()) -> Any:
    """`result`, or `out` (a tensor, or a tuple of them for several) after it was written there."""
    if out is None:
        return result
    if isinstance(result, Tensor):
        return write_out(name, out, result, inputs)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(
            f"{name}(): argument 'out' must be tuple of {len(result)} Tensors, not "
            f"{type(out).__name__}"
        )
    written = [write_out(name, *pair, inputs) for pair in zip(out, result, strict=True)]
    return type(result)(written)


#: What a function with `out` does, see `forwarder`.
_WITH_OUT = """
if out is not None:
    return deliver({args}, {kwargs}, out)
{inner}
"""


def with_out(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Give `function` the keyword ``out=``: a tensor, or a tuple of them for several results."""
    name = name or function.__name__

    def deliver(args: tuple, kwargs: dict[str, Any], out: Any) -> Any:
        return delivered(name, function(*args, **kwargs), out, (*args, *kwargs.values()))

    forwarded: Callable[..., Any] = forwarder(
        function,
        _WITH_OUT,
        lambda _: {"deliver": deliver},
        lambda parameters: parameters.and_keyword("out", None),
    )
    return forwarded


def with_new_out(function: Callable[..., Any], fills: bool = False) -> Callable[..., Any]:
    """As `with_out`, for a function that makes a tensor: dtype and device are those of `out`.

    With `fills` an `out` of as many elements keeps its shape.
    """
    name = function.__name__

    @functools.wraps(function)
    def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        if isinstance(out, Tensor):
            kwargs["dtype"] = dtype_of_out(out, kwargs.get("dtype"))
            if kwargs.get("device") is None:
                kwargs["device"] = out.device
        result = function(*args, **kwargs)
        if fills:
            return write_filled(name, out, result)
        return write_out(name, out, result, warns=False)

    return wrapper


def dtype_of_out(out: Tensor, dtype: Any) -> DType:
    """The dtype of `out`; RuntimeError where another one is asked for."""
    if dtype is not None and as_dtype(dtype) is not out.dtype:
        raise RuntimeError(
            f"dtype {as_dtype(dtype).short_name} does not match dtype of out parameter "
            f"({out.dtype.short_name})"
        )
    return out.dtype


def write_filled(name: str, out: Tensor, result: Tensor) -> Tensor:
    """As `write_out`, of a line; an `out` of as many elements keeps its shape."""
    if isinstance(out, Tensor) and out.numel() == result.numel():
        result = result.reshape(out.shape)
    return write_out(name, out, result, warns=False)
