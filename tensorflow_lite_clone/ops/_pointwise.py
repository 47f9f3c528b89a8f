"""The machinery behind the tables of pointwise functions.

A row of a table (see `arithmetic` and its neighbours) becomes an op, its public function, its
method, its in-place twin and its ``out=`` form; nothing of that is written again per function.
The functions made here are the hottest of the whole package, hence flat rather than short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge, edges_of, record, wrap
from tensorflow_lite_clone.autograd.inplace import (
    check_inplace,
    check_result,
    record_inplace,
    write,
    write_out,
)
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.table import resolve, run
from tensorflow_lite_clone.ops._operands import as_number, as_operands, operand_dtype
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Parameter, Tensor

_new = object.__new__
_active_hooks = hooks.active
_Gradient = Callable[..., Any] | None


def unary(
    name: str,
    forward: str | Callable[..., Any] | None = None,
    *,
    x: _Gradient = None,
    label: str | None = None,
    floating: bool = False,
    places: tuple[str, ...] = ("torch", "method"),
    inplace: bool = True,
    alias: tuple[str, ...] = (),
    document: str | None = None,
) -> Callable[..., Any]:
    """A row ``y = forward(x)``: a word of F or a function over it, and ``backward_x``.

    `floating` rows turn integers into the default dtype first. The function is exported from
    `places` under its name and every `alias`; with `inplace` so is its twin ``name_``.
    """
    word = name if forward is None else forward
    op = _make_op(name, word, label, {"backward_x": x}, 1)
    calls = op.calls
    differentiable = op.differentiable

    def function(input, *, out=None):
        try:
            storage = input._storage
        except AttributeError:
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not "
                f"{type(input).__name__}"
            ) from None
        array = storage.array
        if floating and array.dtype.kind in "biu":
            input = as_operands((input,), get_default_dtype())[0]
            storage = input._storage
            array = storage.array
        backend = storage.backend
        if _active_hooks:
            result = run(op, backend, (array,), {})
        else:
            try:
                call = calls[backend]
            except KeyError:
                call = calls[backend] = resolve(op, backend)
            result = call(array)
        if type(result) is not backend.array_type:
            result = backend.asarray(result)
        made = _new(Storage)
        made.array = result
        made.backend = backend
        made.version = 0
        made.root = None
        output = _new(Tensor)
        output._storage = made
        output._edge = None
        output._base = None
        if differentiable:
            edge = input._edge if input._base is None else current_edge(input)
            if edge is not None and mode.grad:
                record(output, op, backend, (edge,), 1, (storage,))
        if out is not None:
            return write_out(name, out, output)
        return output

    def function_(input):
        return _write_pointwise(op, input, (), get_default_dtype() if floating else None)

    _publish(function, function_ if inplace else None, name, places, alias, document)
    return function


def binary(
    name: str,
    forward: str | Callable[..., Any] | None = None,
    *,
    x: _Gradient = None,
    y: _Gradient = None,
    label: str | None = None,
    floating: bool = False,
    operators: tuple[str, str | None, str | None] | None = None,
    places: tuple[str, ...] = ("torch", "method"),
    inplace: bool = True,
    alias: tuple[str, ...] = (),
    document: str | None = None,
) -> Any:
    """A row ``z = forward(x, y)`` with gradients ``backward_x`` and ``backward_y``.

    `operators` names the Python operators, as (``__add__``, ``__radd__``, ``__iadd__``); they are
    a function of their own because they answer NotImplemented to operands they do not know.
    Without `places` the caller exports a function of its own around the one returned, whose
    in-place twin is its attribute ``inplace``.
    """
    word = name if forward is None else forward
    op = _make_op(name, word, label, {"backward_x": x, "backward_y": y}, 2)
    calls = op.calls
    differentiable = op.differentiable

    def operator(input, other):
        kind = type(other)
        if kind is Tensor or kind is Parameter:
            a = input._storage
            b = other._storage
            left = a.array
            right = b.array
            backend = a.backend
            if (
                left.dtype is not right.dtype
                or b.backend is not backend
                or _active_hooks
                or (floating and left.dtype.kind in "biu")
            ):
                return _promoted(op, input, other, floating)
        elif kind is float or kind is int:
            a = input._storage
            left = a.array
            letter = left.dtype.kind
            if _active_hooks or (letter != "f" and (floating or letter != "i" or kind is float)):
                return _promoted(op, input, other, floating)
            backend = a.backend
            right = backend.constant(other, left.dtype)
            b = None
        else:
            return _promoted(op, input, other, floating)
        try:
            result = calls[backend](left, right)
        except KeyError:
            result = run(op, backend, (left, right), {})
        except ValueError:
            broadcast_shapes(left.shape, right.shape)  # raises torch's error
            raise
        if type(result) is not backend.array_type:
            result = backend.asarray(result)
        made = _new(Storage)
        made.array = result
        made.backend = backend
        made.version = 0
        made.root = None
        output = _new(Tensor)
        output._storage = made
        output._edge = None
        output._base = None
        if differentiable:
            first = input._edge if input._base is None else current_edge(input)
            if b is None:
                if first is not None and mode.grad:
                    b = Storage(right, backend)
                    record(output, op, backend, (first, None), 1, (a, b))
                return output
            second = other._edge if other._base is None else current_edge(other)
            if (first is not None or second is not None) and mode.grad:
                mask = 1 if second is None else 2 if first is None else 3
                record(output, op, backend, (first, second), mask, (a, b))
        return output

    def reflected(self, other):
        return _promoted(op, other, self, floating)

    def function(input, other, *, out=None):
        if isinstance(input, Tensor):
            result = operator(input, other)
        else:
            result = _promoted(op, input, other, floating)
        if result is NotImplemented:
            raise _wrong_operands(name, input, other)
        return result if out is None else write_out(name, out, result)

    def function_(input, other):
        return _write_pointwise(op, input, (other,), get_default_dtype() if floating else None)

    function.inplace = function_  # type: ignore[attr-defined]
    if operators is not None:
        normal, mirrored, assigning = operators
        export(operator, "method", name=normal)
        if mirrored is not None:
            export(reflected, "method", name=mirrored)
        if assigning is not None:
            export(function_, "method", name=assigning)
    _publish(function, function_ if inplace else None, name, places, alias, document)
    return function


def _make_op(
    name: str,
    forward: str | Callable[..., Any],
    label: str | None,
    gradients: dict[str, _Gradient],
    inputs: int,
) -> type[Op]:
    body: dict[str, Any] = {key: value for key, value in gradients.items() if value is not None}
    body["name"] = name
    if label is not None:
        body["label"] = label
    if isinstance(forward, str):
        word = body["word"] = forward
        if inputs == 1:
            body["forward"] = lambda F, x: getattr(F, word)(x)
        else:
            body["forward"] = lambda F, x, y: getattr(F, word)(x, y)
    else:
        body["forward"] = forward
    return type(name, (Op,), body)


def _publish(
    function: Any,
    function_: Any,
    name: str,
    places: tuple[str, ...],
    alias: tuple[str, ...],
    document: str | None,
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    for exported in (name, *alias):
        export(function, *places, name=exported)
        if function_ is not None and "method" in places:
            export(function_, "method", name=f"{exported}_")
    if function_ is not None:
        function_.__name__ = function_.__qualname__ = f"{name}_"
        function_.__doc__ = f"In-place form of `{name}`."


def _promoted(op: type[Op], left: Any, right: Any, floating: bool) -> Any:
    """The general path: any mixture of dtypes, devices, numbers and tensor subclasses."""
    values = []
    for value in (left, right):
        if not isinstance(value, Tensor):
            value = as_number(value)
            if value is None:
                return NotImplemented
        values.append(value)
    if not any(isinstance(value, Tensor) for value in values):
        raise _wrong_operands(op.name, left, right)
    dtype = operand_dtype(*values)
    if floating and dtype.kind in "biu":
        dtype = get_default_dtype()
    return apply_pointwise(op, *as_operands(tuple(values), dtype))


def apply_pointwise(op: type[Op], *operands: Tensor) -> Tensor:
    """Run a pointwise op on operands of one dtype; shapes that do not broadcast raise torch's
    RuntimeError."""
    storages = tuple([operand._storage for operand in operands])
    backend = storages[0].backend
    for storage in storages:
        if storage.backend is not backend:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{backend.device} and {storage.backend.device}!"
            )
    arrays = tuple([storage.array for storage in storages])
    try:
        result = run(op, backend, arrays, {})
    except ValueError:
        broadcast_shapes(*(array.shape for array in arrays))
        raise
    output = wrap(result, backend)
    if op.differentiable and mode.grad:
        edges, mask = edges_of(operands)
        if mask:
            record(output, op, backend, edges, mask, storages)
    return output


def _write_pointwise(
    op: type[Op], target: Any, others: tuple, floor: DType | None
) -> Any:
    """``target = op(target, *others)`` in place; computed in the promoted dtype, then cast."""
    if not isinstance(target, Tensor):
        raise _wrong_operands(f"{op.name}_", target, *others)
    numbers = []
    for other in others:
        value = other if isinstance(other, Tensor) else as_number(other)
        if value is None:
            return NotImplemented
        numbers.append(value)
    dtype = operand_dtype(target, *numbers)
    if floor is not None and dtype.kind in "biu":
        dtype = floor
    operands = as_operands((target, *numbers), dtype)
    edges, mask = edges_of(tuple(operands)) if mode.grad else ((), 0)
    mask = mask if op.differentiable else 0
    check_inplace(target, bool(mask))
    storages = tuple([operand._storage for operand in operands])
    backend = storages[0].backend
    arrays = tuple([storage.array for storage in storages])
    try:
        result = run(op, backend, arrays, {})
    except ValueError:
        broadcast_shapes(*(array.shape for array in arrays))
        raise
    check_result(op.name, target, result, backend)
    if mask and operands[0] is target and 0 in op.plans[mask].saves:
        storages = (Storage(backend.F.copy(arrays[0]), backend), *storages[1:])
    write(target, result)
    if mask:
        record_inplace(op, target, backend, edges, mask, storages, {})
    return target


def _wrong_operands(name: str, *values: Any) -> TypeError:
    seen = ", ".join(type(value).__name__ for value in values)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({seen})")
