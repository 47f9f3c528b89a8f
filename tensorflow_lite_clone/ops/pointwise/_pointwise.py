"""The machinery behind the tables of pointwise functions.

A row of a table (see `arithmetic` and its neighbours) becomes an op, its public function, its
method, its in-place twin and its ``out=`` form; nothing of that is written again per function.
The functions made here are the hottest of the whole package, hence flat rather than short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.apply import NAMES, wrap
from tensorflow_lite_clone.autograd.call_template import ELEMENTWISE, call_text
from tensorflow_lite_clone.autograd.inplace import write_array
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.backends.base import MANY
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.core.signature import also_self
from tensorflow_lite_clone.core.templates import define, fill
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.stored import refuse_in_place
from tensorflow_lite_clone.dispatch.table import run
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import calls_cast_operands, cast_operands
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._elementwise import (
    Pointwise,
    apply_promoted,
    broadcasts_to,
    prepare,
    promote,
    write_pointwise,
    wrong_operands,
)
from tensorflow_lite_clone.ops.pointwise._operands import as_number, is_half_number
from tensorflow_lite_clone.ops.reduce._arguments import (
    expect_tensor,
    override_or_raise,
    override_or_type_error,
)
from tensorflow_lite_clone.tensor import Parameter, Tensor

_Gradient = Callable[..., Any] | None

_UNARY = """
def _make_unary(name, op, slow, differentiable):
    calls = op.calls

    def function(input, *, out=None):
        try:
            input_storage = input._storage
        except AttributeError as error:
            return override_or_raise(error, function, input)
        except NotStrided as reason:
            return reason.answer(name, input)
        input_array = input_storage.physical
        if slow and input_array.dtype.kind in slow:
            input = prepare(op, input)
            input_storage = input._storage
            input_array = input_storage.physical
        if autocast and out is None:
            (input,) = cast_operands(function, input)
            input_storage = input._storage
            input_array = input_storage.physical
        backend = input_storage.backend
        {call}

    return function
"""

_BINARY = """
def _make_binary(
    name, op, slow, floats, integers, halves, differentiable, general, general_reflected, check
):
    calls = op.calls

    def operator(input, other):
        kind = other.__class__
        if kind is Tensor or kind is Parameter:
            input_storage = input._storage
            other_storage = other._storage
            input_array = input_storage.physical
            other_array = other_storage.physical
            backend = input_storage.backend
            if (
                input_array.dtype is not other_array.dtype
                or other_storage.backend is not backend
                or autocast
                or (slow and input_array.dtype.kind in slow)
            ):
                return general(input, other)
            free = input_storage.__class__ is LazyStorage
            if free is not (other_storage.__class__ is LazyStorage) or (
                free and input_array.shape != other_array.shape
            ):
                return general(input, other)
        elif kind is float or kind is int:
            {number}
        else:
            result = general(input, other)
            return try_overrides(operator, input, other) if result is NotImplemented else result
        {operator}

    def reflected(self, other):
        kind = other.__class__
        if (kind is not float and kind is not int) or not isinstance(self, Tensor):
            expect_tensor(name, self)
            result = general_reflected(other, self)
            return try_overrides(reflected, self, other) if result is NotImplemented else result
        {reflected_number}
        {reflected}

    return operator, reflected
"""

#: A tensor and a number of Python's that needs no other dtype, as a constant.
_READ_NUMBER = """
{x}_storage = {x}._storage
{x}_array = {x}_storage.physical
letter = {x}_array.dtype.char
backend = {x}_storage.backend
if autocast or (
    letter not in floats
    and (kind is float or letter not in integers)
    and not (
        letter in halves and (backend.rounds_numbers or is_half_number(other, {x}_array.dtype))
    )
):
    return {general}({operands})
other_storage = None
other_array = backend.constant(other, {x}_array.dtype)
"""

_NAMES = NAMES | {
    each.__name__: each
    for each in (
        NotStrided, Parameter, cast_operands, expect_tensor, override_or_raise,
        is_half_number, prepare, try_overrides, write_out,
    )
} | dict(MANY=MANY, __name__=__name__, autocast=autocast)  # fmt: skip


def _call(*inputs: str, **more: Any) -> str:
    """The text of a call of the op of a row."""
    names = {"calls": "calls", "differentiable": "differentiable"}
    return call_text(inputs, ELEMENTWISE, **names, **more)


_IN_PARTS = "{call} if input_array.size < MANY else backend.large(call, {arguments})"
_write = "if out is not None:\n    return write_out(name, out, output, (input,), elementwise=True)"
_check = "if check is not None:\n    check((input, other))"  # PyTorch's errors for dtypes
_UNARY = fill(_UNARY, call=_call("input", run=_IN_PARTS, finish=_write))
_BINARY = fill(
    _BINARY,
    number=fill(_READ_NUMBER, x="input", general="general", operands="input, other"),
    operator=_call("input", "other", optional=("other",), run=_IN_PARTS, refused=_check),
    reflected_number=fill(
        _READ_NUMBER, x="self", general="general_reflected", operands="other, self"
    ),
    reflected=_call("other", "self", optional=("other",)),
)


def _flat(slow: str, scales: tuple[int, ...]) -> tuple[str, str, str]:
    """The letters of the dtypes beside which numbers, ints, and numbers that half floats hold need
    no other dtype."""
    floats = "" if "f" in slow else "fdV" if scales else "fdeEV"
    return floats, "" if "i" in slow else "bhilq", "eE" if scales else ""


_make_unary = define("_make_unary", _UNARY, __name__, _NAMES)
_make_binary = define("_make_binary", _BINARY, __name__, _NAMES)


def unary(
    name: str,
    forward: str | Callable[..., Any] | None = None,
    *,
    x: _Gradient = None,
    c: Mapping[str, str] | None = None,
    constant: bool = False,
    label: str | None = None,
    floating: bool = False,
    refuses: str = "",
    check: Callable[[tuple], None] | None = None,
    places: tuple[str, ...] = ("torch", "method"),
    inplace: tuple[str, ...] | None = None,
    alias: tuple[str, ...] = (),
    special: tuple[str, ...] = (),
    document: str | None = None,
) -> Any:
    """A row ``y = forward(x)``: a primitive or a function over F, and ``backward_x``.

    The gradient of `constant` rows is constant between steps (`Op.constant_in`); `floating` rows
    turn integers into the default dtype first; dtypes of the kinds in `refuses` raise
    NotImplementedError. The function is exported from `places` under its name and every
    `alias` (from ``torch.special`` under the names `special`), and its twin ``name_`` from
    `inplace`; without places it is the caller's to export, and the twin its attribute `inplace`.
    """
    body = {
        "backward_x": x,
        "c": c,
        "floating": floating,
        "refuses": refuses,
        "check": check,
        "constant_in": ("x",) if constant else (),
    }
    op = _make_op(name, name if forward is None else forward, label, body, 1)
    slow = _native_kinds(refuses + ("biu" if floating or check else ""))
    function = calls_cast_operands(name)(_make_unary(name, op, slow, op.differentiable))

    def function_(input):
        # The flat path: nothing to promote, nothing to record.
        if isinstance(input, Tensor):
            try:
                storage = input._storage
            except NotStrided as reason:
                return reason.answer(f"{name}_", input)
            array = storage.physical
            if (
                not (slow and array.dtype.kind in slow)
                and not (mode.grad and (input._edge is not None or input._view is not None))
                and 0 not in array.strides
            ):
                backend = storage.backend
                writer = None if hooks.around_write else backend.writers[op]
                if writer is not None and writer(array) is not False:
                    storage.bump()
                    return input
                result = run(op, backend, (array,), {})
                if result.dtype is array.dtype:
                    write_array(backend, array, result)
                    storage.bump()
                    return input
        else:
            return override_or_type_error(function_, input)
        return write_pointwise(op, input)

    if inplace is None:
        inplace = tuple([place for place in places if place in ("torch", "method")])
    _publish(op, function, function_, places, inplace, alias, special, document)
    return function


def binary(
    name: str,
    forward: str | Callable[..., Any] | None = None,
    *,
    x: _Gradient = None,
    y: _Gradient = None,
    label: str | None = None,
    floating: bool = False,
    refuses: str = "",
    numbers: bool = True,
    number_first: bool = True,
    numbers_alone: bool = False,
    check: Callable[[tuple], None] | None = None,
    assign: Callable[[Any, Any], Any] | None = None,
    scales: tuple[int, ...] = (),
    operators: tuple[str, str | None, str | None] | None = None,
    places: tuple[str, ...] = ("torch", "method"),
    inplace: tuple[str, ...] = ("method",),
    alias: tuple[str, ...] = (),
    special: tuple[str, ...] = (),
    arrays: bool = False,
    self_named: bool = False,
    document: str | None = None,
) -> Any:
    """A row ``z = forward(x, y)`` with gradients ``backward_x`` and ``backward_y``.

    `operators` names the Python operators, as (``__add__``, ``__radd__``, ``__iadd__``); they are
    functions of their own because they answer NotImplemented to operands they do not know.
    ``assign(array, other)`` is the op in the array's own memory, such as ``operator.iadd``. With
    `numbers` off only Tensors are operands (of the function; its attribute `with_numbers` takes
    numbers all the same), with `number_first` off the first is one, with `numbers_alone` neither
    need be one. Operands at the places `scales` may be numbers of more digits than half floats have
    (see `_elementwise.rounded_once`); if the first may, Python's reflected operator takes it for
    the second. With `arrays` the operators take the device's own arrays. With `self_named` the
    first operand may be named so, outside of `Tensor`. The rest is as in `unary`.
    """
    body = {
        "backward_x": x,
        "backward_y": y,
        "floating": floating,
        "refuses": refuses,
        "numbers_alone": numbers_alone,
        "check": check,
        "write": None if assign is None else lambda F, x, y: assign(x, y),
        "assign": assign,
        "scales": scales,
    }
    op = _make_op(name, name if forward is None else forward, label, body, 2)
    slow = _native_kinds(refuses + ("biu" if floating else ""))
    flat = _flat(slow, scales)

    @calls_cast_operands(name)
    def general(input, other):
        if autocast:
            input, other = cast_operands(general, input, other)
        operands = promote(op, (input, other))
        if operands is None and arrays and isinstance(input, Tensor):
            backend = input._storage.backend
            if isinstance(other, backend.array_type):
                operands = promote(op, (input, wrap(other, backend)))
        return NotImplemented if operands is None else apply_promoted(op, operands)

    def swapped(input, other):
        return general(other, input)

    operator, reflected = _make_binary(
        name,
        op,
        slow,
        *flat,
        op.differentiable,
        general,
        swapped if 0 in scales else general,
        check,
    )

    def with_numbers(input, other, /):
        if isinstance(input, Tensor):
            return operator(input, other)
        return general(input, other)

    @calls_cast_operands(name)
    def function(input, other, *, out=None):
        if not isinstance(input, Tensor):
            fits = numbers and number_first
        elif not isinstance(other, Tensor):
            fits = numbers and (not arrays or as_number(other) is not None)
        else:
            fits = True
        if fits:
            try:
                result = with_numbers(input, other)
            except NotStrided as reason:
                return reason.answer(name, input, other)
            if result is not NotImplemented:
                return (
                    result
                    if out is None
                    else write_out(name, out, result, (input, other), elementwise=True)
                )
        return override_or_raise(wrong_operands(name, input, other), function, input, other)

    def assigning(self, other):
        try:
            if assign is not None and _assigned(op, self, other, slow, flat):
                return self
            result = write_pointwise(op, self, (other,))
            return try_overrides(assigning, self, other) if result is NotImplemented else result
        except NotStrided as reason:
            return reason.answer(f"{name}_", self, other)

    def function_(input, other):
        if numbers or isinstance(other, Tensor):
            result = assigning(input, other)
            if result is not NotImplemented:
                return result
        return override_or_raise(wrong_operands(f"{name}_", input, other), function_, input, other)

    function.with_numbers = with_numbers
    function.reflected = reflected
    if operators is not None:
        normal, mirrored, augmented = operators
        for method, exported in (
            (operator, normal),
            (reflected, mirrored),
            (assigning, augmented),
        ):
            if exported is not None:
                method.__name__ = method.__qualname__ = exported
                export(method, "method", name=exported)
    _publish(op, function, function_, places, inplace, alias, special, document, self_named)
    return function


def _assigned(op: type[Op], target: Any, other: Any, slow: str, flat: tuple[str, ...]) -> bool:
    """Do ``target op= other`` in place if nothing is to be promoted or recorded; say if so."""
    if mode.grad and (target._edge is not None or target._view is not None):
        return False
    storage = target._storage
    array = storage.physical
    dtype = array.dtype
    kind = type(other)
    if kind is Tensor or kind is Parameter:
        if mode.grad and (other._edge is not None or other._view is not None):
            return False
        b = other._storage
        right = b.physical
        if right.dtype is not dtype or b.backend is not storage.backend:
            return False
        if right.shape != array.shape and not broadcasts_to(right.shape, array.shape):
            return False
    elif kind is float or kind is int:
        letter, (floats, integers, halves), backend = dtype.char, flat, storage.backend
        if (
            letter not in floats
            and (kind is float or letter not in integers)
            and not (letter in halves and (backend.rounds_numbers or is_half_number(other, dtype)))
        ):
            return False
        right = backend.constant(other, dtype)
    else:
        return False
    if (slow and dtype.kind in slow) or dtype.kind == "b" or 0 in array.strides:
        return False
    assign = storage.backend.writers[op]
    if hooks.around_write:
        hooks.writing(op, partial(assign, array, right), (array, right), {})
    else:
        try:
            assign(array, right)
        except TypeError:
            refuse_in_place(op, storage.backend, (array, right))
    storage.bump()
    return True


def _native_kinds(kinds: str) -> str:
    # NumPy's letter for bfloat16, which is not its own, is V.
    return kinds.replace("f", "fV")


def _make_op(
    name: str, forward: str | Callable[..., Any], label: str | None, body: dict, inputs: int
) -> type[Pointwise]:
    body = {key: value for key, value in body.items() if value is not None}
    body["name"] = name
    for plain in ("check", "assign"):
        if plain in body:
            body[plain] = staticmethod(body[plain])
    if label is not None:
        body["label"] = label
    if isinstance(forward, str):
        primitive = body["primitive"] = forward
        if inputs == 1:
            body["forward"] = lambda F, x: getattr(F, primitive)(x)
        else:
            body["forward"] = lambda F, x, y: getattr(F, primitive)(x, y)
    else:
        body["forward"] = forward
    return type(name, (Pointwise,), body)


def _publish(
    op: type[Pointwise],
    function: Any,
    function_: Any,
    places: tuple[str, ...],
    inplace: tuple[str, ...],
    alias: tuple[str, ...],
    special: tuple[str, ...],
    document: str | None,
    self_named: bool = False,
) -> None:
    name = op.name
    op.function = staticmethod(function)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    function_.__name__ = function_.__qualname__ = f"{name}_"
    function_.__doc__ = f"In-place form of `{name}`."
    function.inplace = function_
    outside = also_self(function) if self_named else function
    for exported in (name, *alias) if places else ():
        for place in places:
            export(function if place == "method" else outside, place, name=exported)
        export(function_, *inplace, name=f"{exported}_")
    for exported in special:
        export(outside, "special", name=exported)
