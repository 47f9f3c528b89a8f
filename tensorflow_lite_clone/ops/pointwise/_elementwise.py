"""The general path of pointwise functions: promotion, refusals, recording, in-place writing.

`_pointwise` has the flat path for the usual one or two operands of one dtype; whatever does not
fit there comes here, and so do functions with parameters or with three operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.apply import (
    NAMES,
    apply,
    edges_of,
    record,
    together,
    wrap_freely,
)
from tensorflow_lite_clone.autograd.call_template import ELEMENTWISE, call_text, define_call
from tensorflow_lite_clone.autograd.inplace import (
    check_inplace,
    check_result,
    check_writable,
    copied,
    on_one_backend,
    record_inplace,
    write,
)
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import float32, get_default_dtype
from tensorflow_lite_clone.core.public import export
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.dispatch import costs, hooks
from tensorflow_lite_clone.dispatch.op import TABLE, Op
from tensorflow_lite_clone.dispatch.result_layout import elementwise, in_order
from tensorflow_lite_clone.dispatch.stored import refuse_in_place
from tensorflow_lite_clone.dispatch.table import run
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._operands import (
    as_number,
    as_operands,
    cast,
    no_halves,
    operand_dtype,
    refuse,
)
from tensorflow_lite_clone.ops.reduce._arguments import expect_tensor
from tensorflow_lite_clone.storage import Storage, in_physical_layout
from tensorflow_lite_clone.tensor import Tensor


class Pointwise(Op):
    """An op that works element by element on operands of one dtype, which broadcast."""

    cost = costs.elementwise
    floating = False  # integers become the default dtype
    refuses = ""  # kinds of the operands' common dtype that it does not serve
    numbers_alone = False  # Python numbers without a Tensor are operands, on the CPU
    scales: tuple[int, ...] = ()  # which operands may be such numbers as in `rounded_once`
    check: Callable[[tuple], None] | None = None  # raises for operands torch refuses
    layout_agnostic = True
    layout = elementwise
    kinds = "biuc"  # the kinds to look at more closely: refused or promoted
    function: Any = None  # the function over Tensors that a row of `_pointwise` makes of the op

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not (cls.differentiable or cls.primitive):
            cls.cost = costs.Cost()  # it may be a comparison, which counts nothing
        cls.kinds = "biufc" if cls.check else cls.refuses + ("biu" if cls.floating else "")


def op_of_doubles(name: str, forward: str | Callable[..., Any]) -> type[Pointwise]:
    """An op without gradient in float32 and float64 only; one that is a primitive by its name."""
    primitive = forward if isinstance(forward, str) else None
    body = {
        "name": name,
        "primitive": primitive,
        "forward": forward if primitive is None else lambda F, x: getattr(F, primitive)(x),
        "floating": True,
        "refuses": "c",
        "check": staticmethod(no_halves(name)),
    }
    return type(name, (Pointwise,), body)


def wrong_operands(name: str, *values: Any) -> TypeError:
    """The error for operands that are neither Tensors nor numbers."""
    seen = ", ".join(type(value).__name__ for value in values)
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({seen}), but expected "
        "Tensors, or a Tensor and numbers"
    )


def prepare(op: type[Pointwise], input: Any) -> Tensor:
    """The operand of a function of one tensor, cast where the op asks for it."""
    expect_tensor(op.name, input)
    dtype = input.dtype
    kind = dtype.kind
    if op.check is not None:
        op.check((input,))
    if kind in op.refuses:
        refuse(op.name, dtype)
    if op.floating and kind in "biu":
        return as_operands((input,), get_default_dtype())[0]
    return input


def promote(op: type[Pointwise], values: tuple) -> list[Tensor] | None:
    """Tensors and numbers as Tensors of one dtype; None for operands that the op does not take.

    Raises RuntimeError (NotImplementedError) for dtypes that the op refuses.
    """
    first = values[0]
    if isinstance(first, Tensor):  # the usual case: tensors of one dtype that needs no care
        storage = first._storage
        native, backend = storage.physical.dtype, storage.backend
        if backend.dtypes[native].kind not in op.kinds:
            for value in values:
                if (
                    not isinstance(value, Tensor)
                    or value._storage.physical.dtype is not native
                    or value._storage.backend is not backend
                ):
                    break
            else:
                return list(values)
    known: list[Any] = []
    tensors = 0
    for value in values:
        if isinstance(value, Tensor):
            tensors += 1
        else:
            value = as_number(value)
            if value is None:
                return None
        known.append(value)
    if not tensors and not op.numbers_alone:
        return None
    if op.check is not None:
        op.check(tuple(known))
    dtype = operand_dtype(*known)
    if dtype.kind in op.refuses:
        place = next(value.device for value in known if isinstance(value, Tensor))
        refuse(f"{op.name}_{place.type}", dtype)  # as PyTorch calls its kernels
    if op.floating and dtype.kind in "biu":
        dtype = get_default_dtype()
    return as_operands(tuple(known), dtype, op.scales)


def rounded_once(op: type[Pointwise], x: Tensor, y: Tensor) -> Tensor:
    """An op of half floats and a number, which is a zero-dim tensor of float32.

    As in PyTorch all is calculated in float32 and then rounded where the number is the second
    operand. The first is rounded before; but gradients, in which it scales, take it as it is.
    """
    storages = x._storage, y._storage
    backend = storages[0].backend
    if storages[1].backend is not backend:
        return rounded_once(op, *together((x, y), op))
    recording, mode.grad = mode.grad, False
    try:
        if y.dtype is not float32:
            output = apply(op, cast(x, y.dtype), y)
        elif hooks.around_op:  # which are shown the casts, too
            output = cast(apply(op, cast(x, float32), y), x.dtype)
        else:
            half, number = [storage.physical for storage in storages]
            arrays = backend.F.astype(half, float32), number
            result = in_order(op, backend, run(op, backend, arrays, {}), arrays, {})
            output = wrap_freely(backend.F.astype(result, half.dtype), backend)
    finally:
        mode.grad = recording
    if recording and op.differentiable:
        edges, mask = edges_of((x, y))
        if mask:
            record(output, op, backend, edges, mask, storages)
    return output


def _is_mixed(op: type[Pointwise], operands: list[Tensor]) -> bool:
    """Whether `rounded_once` is for these operands; modes are shown one operation of them."""
    mixed = op.scales and operands[0].dtype is not operands[1].dtype
    return bool(mixed) and not mode.dispatch_modes


def apply_promoted(op: type[Pointwise], operands: list[Tensor], **parameters: Any) -> Tensor:
    """`apply` for what `promote` gives."""
    if _is_mixed(op, operands):
        return rounded_once(op, *operands)
    result: Tensor = apply(op, *operands, **parameters)
    return result


def write_pointwise(
    op: type[Pointwise], target: Any, others: tuple = (), parameters: dict | None = None
) -> Any:
    """``target = op(target, *others)`` in place; computed in the promoted dtype, then cast.

    NotImplemented when an operand is neither a Tensor nor a number.
    """
    parameters = parameters or {}
    if others:
        if not isinstance(target, Tensor):
            raise wrong_operands(f"{op.name}_", target, *others)
        operands = promote(op, (target, *others))
        if operands is None:
            return NotImplemented
    else:
        operands = [prepare(op, target)]
    edges, mask = edges_of(tuple(operands)) if mode.grad else ((), 0)
    check_inplace(target, bool(mask))
    operands, storages = on_one_backend(target, operands, op)
    backend = target._storage.backend
    array = target._storage.physical
    mixed = _is_mixed(op, operands)
    fits = (operands[0] is target and not mixed) and all(
        [broadcasts_to(storage.physical.shape, array.shape) for storage in storages[1:]]
    )
    writer = backend.writers[op] if fits else None
    if writer is None:
        arrays = (
            in_physical_layout(storages)
            if backend.lays
            else [storage.array for storage in storages]
        )
        if mixed:  # as in `rounded_once`
            arrays[0] = backend.F.astype(arrays[0], operands[1].dtype)
        result = run(op, backend, arrays, parameters)
        result = in_order(op, backend, result, arrays, parameters)
        check_result(op.name, target, result, backend)
    recorded: type[Op] = op
    if mask and not op.differentiable:  # a comparison: its gradient is zero, as that of signs
        recorded, edges, mask, parameters = TABLE["sign"], edges[:1], mask & 1, {}  # type: ignore
    if mask:
        storages = _kept(storages, recorded.plans[mask].saves, target._storage)
    if writer is None:
        write(target, result)
    else:
        check_writable(array)
        arrays = [storage.physical for storage in storages[1:]]
        call = partial(_written, op, writer, target, arrays, parameters)
        hooks.writing(op, call, (array, *arrays), parameters)
        target._storage.bump()
    if mask:
        record_inplace(recorded, target, backend, edges, mask, storages, parameters)
    return target


def _written(
    op: type[Op], writer: Callable[..., Any], target: Tensor, others: list, parameters: dict
) -> None:
    """Do `op` in the target's memory, or elsewhere and copy where the writer cannot."""
    backend, array = target._storage.backend, target._storage.physical
    try:
        done = writer(array, *others, **parameters)
    except TypeError:
        refuse_in_place(op, backend, (array, *others))
    if done is False:
        result = run(op, backend, (array, *others), parameters)
        check_result(op.name, target, result, backend)
        backend.write(array, result)


def _kept(storages: tuple, saves: tuple[int, ...], target: Storage) -> tuple:
    """The operands' storages; what backward wants of the memory that is overwritten is copied."""
    memory = target.root or target
    return tuple(
        [
            Storage(copied(storage.physical, storage.backend), storage.backend)
            if index in saves and (storage.root or storage) is memory
            else storage
            for index, storage in enumerate(storages)
        ]
    )


def broadcasts_to(shape: tuple, target: tuple) -> bool:
    """Whether an array of `shape` can be written into one of shape `target`."""
    if shape == target:
        return True
    extra = len(target) - len(shape)
    if extra < 0:
        return False
    return all([size in (1, target_size) for size, target_size in zip(shape, target[extra:])])


_READ_ONE = """
if not isinstance(x, Tensor) or x.dtype.kind in op.kinds:
    x = prepare(op, x)
x_storage = x._storage
x_array = x_storage.physical
backend = x_storage.backend
"""

_apply_to_one = define_call(
    "_apply_to_one",
    "op, x, parameters",
    "A pointwise function of one tensor.",
    _READ_ONE,
    call_text("x", ELEMENTWISE, parameters="parameters", differentiable="op.differentiable"),
    scope=NAMES | {"__name__": __name__, "prepare": prepare},
)


def pointwise(
    op: type[Pointwise], *values: Any, inplace: bool = False, out: Any = None, **parameters: Any
) -> Tensor:
    """A pointwise function of Tensors and numbers, of the first value in place if asked for."""
    if inplace:
        result = write_pointwise(op, values[0], values[1:], parameters)
        if result is NotImplemented:
            raise wrong_operands(f"{op.name}_", *values)
        return result
    if len(values) == 1:
        result = _apply_to_one(op, values[0], parameters)
    else:
        operands = promote(op, values)
        if operands is None:
            raise wrong_operands(op.name, *values)
        result = apply_promoted(op, operands, **parameters)
    return result if out is None else write_out(op.name, out, result, values, elementwise=True)


def inplace_form(function: Callable[..., Any], *places: str) -> Any:
    """Export the in-place twin of a function that has a parameter `inplace`."""

    def function_(input: Any, *args: Any, **kwargs: Any) -> Any:
        return function(input, *args, inplace=True, **kwargs)

    function_.__name__ = function_.__qualname__ = f"{function.__name__}_"
    function_.__doc__ = f"In-place form of `{function.__name__}`."
    exported = checked(function_)
    export(exported, *places, name=function_.__name__)
    return exported
