"""How reductions read their arguments: dims, dtypes, ``out=``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.core.shape import normalize_dim, normalize_dims
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.ops.decorators.out import delivered as delivered
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor

_ALL = [tuple(range(ndim)) for ndim in range(65)]


def expect_tensor(name: str, value: Any, word: str = "input", position: int = 1) -> None:
    """Raise torch's TypeError when an argument is no Tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{word}' (position {position}) must be Tensor, not "
            f"{type(value).__name__}"
        )


def override_or_raise(error: Exception, function: Any, *args: Any, **kwargs: Any) -> Any:
    """What an argument that overrides `function` makes of a call that no tensor is for.

    Without one raises torch's TypeError if there was an AttributeError because the first argument
    is no Tensor, or else `error`.
    """
    result = try_overrides(function, *args, **kwargs)
    if result is not NotImplemented:
        return result
    if isinstance(error, AttributeError):
        expect_tensor(function.__name__, args[0])
    raise error


def override_or_type_error(function: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    """What `value`, or another argument, makes of the call by overriding `function`.

    Without one raises torch's TypeError.
    """
    return override_or_raise(AttributeError("_storage"), function, value, *args, **kwargs)


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """The axes a reduction over `dim` runs over, ascending; None and () mean all of them."""
    if dim is None:
        return _ALL[ndim]
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    if is_int(dim):
        dim = dim.__index__()
    elif not isinstance(dim, (tuple, list)):
        raise TypeError(f"argument 'dim' must be tuple of ints, not {type(dim).__name__}")
    elif len(dim) == 0:
        return _ALL[ndim]
    axes = tuple(sorted(normalize_dims(dim, ndim)))
    return axes if ndim else ()


def axis_of(dim: Any, ndim: int) -> int:
    """The one axis that `dim` names; TypeError for a bool or several."""
    if type(dim) is int and -ndim <= dim < ndim:
        return dim % ndim
    return normalize_dim(dim, ndim)


def kept_shape(shape: tuple, axes: tuple) -> tuple:
    """`shape` with the reduced `axes` kept as ones."""
    return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])


def restored(F: Any, y: Any, axis: tuple, keepdims: bool, shape: tuple) -> Any:
    """A reduction's result `y` with axes of length one where `shape` lost some."""
    if keepdims or not axis or axis[-1] == len(axis) - 1:
        return y  # broadcasting restores leading axes
    return F.reshape(y, kept_shape(shape, axis))


def reduced_count(shape: tuple, axes: tuple) -> int:
    """How many elements of `shape` go into one result."""
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count


def reduction_label(name: str) -> Any:
    """A label for reductions, as torch has it: ``NAMEBackward0`` where everything is reduced."""

    def label(node: Any) -> str:
        parameters = node.parameters
        whole = len(parameters["axis"]) == len(parameters["shape"]) and not parameters["keepdims"]
        return f"{name}Backward{0 if whole else 1}"

    return label


def as_floating(input: Tensor) -> Tensor:
    """Integers as the default dtype, anything else as it is."""
    if input._storage.physical.dtype.kind in "biu":
        return cast(input, get_default_dtype())
    return input


def is_integral(input: Tensor) -> bool:
    """Whether the elements are integers or booleans."""
    return input._storage.physical.dtype.kind in "biu"


def with_dtype(input: Tensor, dtype: DType | None) -> Tensor:
    """`input` cast to `dtype` if one is given."""
    return input if dtype is None else cast(input, dtype)
