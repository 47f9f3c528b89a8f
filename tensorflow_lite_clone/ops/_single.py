"""Flat ways to apply ops with one output, mostly to one input: half the overhead of `apply`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import (
    apply,
    current_edge,
    record,
    several,
    wrap,
)
from tensorflow_lite_clone.autograd.autocast import active as autocast
from tensorflow_lite_clone.autograd.autocast import autocasts
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import in_order
from tensorflow_lite_clone.dispatch.stored import REFUSALS, calculated
from tensorflow_lite_clone.dispatch.table import prepared
from tensorflow_lite_clone.ops.reduce._arguments import (
    axes_of,
    override_or_type_error,
)
from tensorflow_lite_clone.storage import Free, Storage
from tensorflow_lite_clone.tensor import Tensor

_new = object.__new__

_NO_PARAMETERS: dict = {}


def apply_single(op: type[Op], input: Tensor, parameters: dict) -> Tensor:
    """`apply` for a differentiable op with one input and one row-major output that is no view."""
    storage = input._storage
    if storage.__class__ is Free:
        return apply(op, input, **parameters)
    backend = storage.backend
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    array = storage.array
    try:
        result = call(array, **parameters)
    except REFUSALS:
        result = calculated(op, backend, call, (array,), parameters)
    edge = None
    if mode.grad:
        edge = input._edge if input._view is None else current_edge(input)
    return _recorded(op, result, backend, (edge,), int(edge is not None), (storage,), parameters)


def apply_to_two(op: type[Op], x: Tensor, y: Tensor) -> Tensor:
    """`apply` for a differentiable op with two inputs, one row-major output that is no view, and no
    parameters."""
    first, second = x._storage, y._storage
    backend = first.backend
    if second.backend is not backend:
        return apply(op, x, y)
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    left, right = first.array, second.array
    try:
        result = call(left, right)
    except REFUSALS:
        result = calculated(op, backend, call, (left, right))
    if not mode.grad:
        return _recorded(op, result, backend, (), 0, ())
    one = x._edge if x._view is None else current_edge(x)
    two = y._edge if y._view is None else current_edge(y)
    mask = (one is not None) + 2 * (two is not None)
    return _recorded(op, result, backend, (one, two), mask, (first, second))


def apply_to_three(op: type[Op], x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """`apply_to_two` with a third input."""
    first, second, third = x._storage, y._storage, z._storage
    backend = first.backend
    if second.backend is not backend or third.backend is not backend:
        return apply(op, x, y, z)
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    arrays = first.array, second.array, third.array
    try:
        result = call(*arrays)
    except REFUSALS:
        result = calculated(op, backend, call, arrays)
    if not mode.grad:
        return _recorded(op, result, backend, (), 0, ())
    one = x._edge if x._view is None else current_edge(x)
    two = y._edge if y._view is None else current_edge(y)
    three = z._edge if z._view is None else current_edge(z)
    mask = (one is not None) + 2 * (two is not None) + 4 * (three is not None)
    return _recorded(op, result, backend, (one, two, three), mask, (first, second, third))


def apply_for_first(
    op: type[Op], x: Tensor, y: Tensor | None, z: Tensor | None, parameters: dict
) -> Tensor:
    """The first output of a differentiable op with three inputs, of which two may be None.

    Its other outputs are for its gradient alone.
    """
    first = x._storage
    backend = first.backend
    second = left = third = right = None
    if y is not None:
        second = y._storage
        left = second.laid
    if z is not None:
        third = z._storage
        right = third.laid
    if (
        backend.lays
        or (second is not None and second.backend is not backend)
        or (third is not None and third.backend is not backend)
    ):
        return apply(op, x, y, z, **parameters)[0]
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    arrays = first.laid, left, right
    try:
        results = call(*arrays, **parameters)
    except REFUSALS:
        results = calculated(op, backend, call, arrays, parameters)
    if not backend.is_contiguous(first.laid):
        results = in_order(op, backend, results, arrays, parameters)
    output = wrap(results[0], backend)
    if mode.grad:
        one = x._edge if x._view is None else current_edge(x)
        two = three = None
        if y is not None:
            two = y._edge if y._view is None else current_edge(y)
        if z is not None:
            three = z._edge if z._view is None else current_edge(z)
        mask = (one is not None) + 2 * (two is not None) + 4 * (three is not None)
        if mask:
            made = [output._storage]
            for array in results[1:]:
                storage = _new(Storage)
                storage.array = array
                storage.backend = backend
                storage.version = 0
                storage.root = None
                made.append(storage)
            edges = (one, two, three)
            node = several(made, op, backend, edges, mask, (first, second, third), parameters)
            output._edge = (node, 0)
    return output


def _recorded(
    op: type[Op],
    result: Any,
    backend: Any,
    edges: tuple,
    mask: int,
    storages: tuple,
    parameters: dict = _NO_PARAMETERS,
) -> Tensor:
    """The tensor of an op's row-major result, in the graph if an input is, which `mask` says."""
    if type(result) is not backend.array_type:
        result = backend.asarray(result)
    elif result.ndim > 1 and not backend.is_contiguous(result):
        result = in_order(op, backend, result, (), parameters)
    made = _new(Storage)
    made.array = result
    made.backend = backend
    made.version = 0
    made.root = None
    output = _new(Tensor)
    output._storage = made
    output._edge = None
    output._view = None
    if mask:
        record(output, op, backend, edges, mask, storages, parameters)
    return output


def reduction(
    op: type[Op], refuses: str, *, whole: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Serve the usual calls of a reduction, ``(input, dim, keepdim)``, without detours.

    All others go to the decorated function: those with more arguments (NumPy's words for them among
    these), of tensors without elements or of a kind in `refuses`, and with `whole` those with a
    `dim`.
    """
    calls = op.calls

    def decorate(general: Callable[..., Any]) -> Any:
        name = general.__name__
        general = autocasts(name)(checked(general))

        @functools.wraps(general)
        def function(input=None, dim=None, keepdim=False, **others):
            if not others and isinstance(input, Tensor):
                try:
                    storage = input._storage
                except NotStrided as reason:
                    return reason.answer(name, input, dim, keepdim)
                array = storage.laid
                shape = array.shape
                if (
                    array.size
                    and array.dtype.kind not in refuses
                    and (dim is None or not whole)
                    and keepdim.__class__ is bool
                    and not autocast
                    and storage.__class__ is not Free
                ):
                    axis = axes_of(dim, len(shape))
                    backend = storage.backend
                    try:
                        call = calls[backend]
                    except KeyError:
                        call = prepared(op, backend)
                    try:
                        result = call(array, axis=axis, keepdims=keepdim, shape=shape)
                    except REFUSALS:
                        result = calculated(op, backend, call, (array,))
                    edge = None
                    if mode.grad:
                        edge = input._edge if input._view is None else current_edge(input)
                    if edge is None:
                        return _recorded(op, result, backend, (), 0, ())
                    parameters = {"axis": axis, "keepdims": keepdim, "shape": shape}
                    return _recorded(op, result, backend, (edge,), 1, (storage,), parameters)
            elif not others and input is not None and not isinstance(input, Tensor):
                dims = () if dim is None else (dim,)
                return override_or_type_error(function, input, *dims)
            # What was not given stays away, for the complaints about missing or double arguments.
            given = {"input": input, "dim": dim} if input is not None else {"dim": dim}
            if dim is None:
                del given["dim"]
            if keepdim is not False:
                given["keepdim"] = keepdim
            try:
                return general(**given, **others)
            except NotStrided as reason:
                return reason.answer(name, **given, **others)

        return function

    return decorate


def along_dim(op: type[Op], refuses: str) -> Callable[[Callable[..., Any]], Any]:
    """Serve the usual calls, ``(input, dim)``, of an op along one dim without detours.

    All others go to the decorated function: with more arguments or NumPy's words for them, of
    tensors without elements or dimensions, or of a kind in `refuses`.
    """
    calls = op.calls

    def decorate(general: Callable[..., Any]) -> Any:
        general = autocasts(general.__name__)(checked(general))

        @functools.wraps(general)
        def function(input=None, dim=None, *rest, **others):
            if dim.__class__ is int and not rest and not others and isinstance(input, Tensor):
                storage = input._storage
                array = storage.laid
                ndim = array.ndim
                if (
                    -ndim <= dim < ndim
                    and array.size
                    and array.dtype.kind not in refuses
                    and not autocast
                    and storage.__class__ is not Free
                ):
                    backend = storage.backend
                    try:
                        call = calls[backend]
                    except KeyError:
                        call = prepared(op, backend)
                    axis = dim if dim >= 0 else dim + ndim
                    try:
                        result = call(array, axis=axis)
                    except REFUSALS:
                        result = calculated(op, backend, call, (array,))
                    edge = None
                    if mode.grad:
                        edge = input._edge if input._view is None else current_edge(input)
                    if edge is None:
                        return _recorded(op, result, backend, (), 0, ())
                    parameters = {"axis": axis}
                    return _recorded(op, result, backend, (edge,), 1, (storage,), parameters)
            # What was not given stays away, for the complaints about missing or double arguments.
            if input is not None:
                rest = (input, dim, *rest) if dim is not None or rest else (input,)
            elif dim is not None:
                others["dim"] = dim
            return general(*rest, **others)

        return function

    return decorate
