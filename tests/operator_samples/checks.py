"""What is compared of an operator: one function per kind, which raises where the sides differ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.samples.comparison import (
    SEED,
    Difference,
    Nothing,
    brief,
    call_ours,
    call_theirs,
    compare,
    compare_gradients,
    gradients_of,
    leaves,
    same_error,
)
from tests.samples.translate import Missing, name_of, operator, to_ours, to_ours_callable, to_torch

#: Of PyTorch's dtypes those that are not here: NumPy has no complex numbers of four bytes.
ABSENT = (torch.complex32,)
#: Results whose values nobody promises.
UNDEFINED = frozenset(
    """
    empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_
    """.split()
)
#: Functions that say where elements are, of which equal ones nobody promises an order -> the
#: position of the dimension among the arguments.
ORDERED = {
    "sort": 0,
    "argsort": 0,
    "topk": 1,
    "kthvalue": 1,
    "median": 0,
    "nanmedian": 0,
    "mode": 0,
}


def _samples(op: Any, dtype: torch.dtype, gradient: bool = False) -> list[Any]:
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(op.sample_inputs("cpu", dtype, requires_grad=gradient))
        except Exception as error:  # the table itself is not whole for every dtype
            raise Nothing(str(error)) from error


def _calls(op: Any, dtype: torch.dtype, gradient: bool = False) -> Iterator[tuple[Any, ...]]:
    """(sample, our arguments, our keywords, PyTorch's result).

    Our inputs are made before PyTorch runs, which may write to its own.
    """
    for sample in _samples(op, dtype, gradient):
        args, kwargs = to_ours((sample.input, *sample.args)), to_ours(sample.kwargs)
        try:
            theirs = call_theirs(op.op, sample.input, *sample.args, **sample.kwargs)
        except Exception:
            continue  # an entry that PyTorch itself marks as failing
        yield sample, args, kwargs, theirs


def _processed(sample: Any, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Both without what is free to differ, such as the signs of singular vectors."""
    process = sample.output_process_fn_grad
    return to_ours_callable(process)(ours), process(theirs)


def default_dtype(op: Any) -> torch.dtype:
    """float32 where the operator takes it, else the first it takes."""
    supported = op.supported_dtypes("cpu")
    for dtype in (torch.float32, torch.complex64, torch.int64, torch.bool):
        if dtype in supported:
            return dtype
    raise Nothing("no dtype on the CPU")


def names(op: Any) -> None:
    """The function is here."""
    default_dtype(op)
    operator(op)


def forward(op: Any, dtype: torch.dtype | None = None) -> None:
    """Every sample gives PyTorch's result, or one that is nearer to PyTorch's in float64.

    Indices of `ORDERED` functions give what PyTorch's give. Results in float64 are compared alone:
    there is nothing nearer to the truth.
    """
    function = operator(op)
    count = 0
    for sample, args, kwargs, theirs in _calls(op, dtype or default_dtype(op)):
        count += 1
        ours, theirs = _processed(sample, call_ours(function, *args, **kwargs), theirs)
        if op.name in ORDERED:
            ours, theirs = (_found(op, sample, side) for side in (to_torch(ours), theirs))
        try:
            compare(ours, theirs, values=op.name not in UNDEFINED)
        except AssertionError:
            if not _nearer(op, sample, ours, theirs):
                raise
    if not count:
        raise Nothing("no sample runs")


def _found(op: Any, sample: Any, result: Any) -> Any:
    """The result with the elements that its indices point to in their place."""
    position = ORDERED[op.name]
    x, dim = sample.input, sample.kwargs.get("dim", sample.args[position : position + 1] or -1)
    dim = dim[0] if isinstance(dim, tuple) else dim
    parts = [result] if isinstance(result, torch.Tensor) else list(result)
    index = parts[-1]
    if index.dtype is not torch.int64 or (len(parts) < 2 and op.name != "argsort"):
        return result
    index = index.unsqueeze(dim) if index.ndim < x.ndim else index
    return [*parts[:-1], x.gather(dim, index)]


def _widened(value: Any) -> Any:
    """Floating-point tensors and dtypes in double precision."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    if type(value) in (list, tuple):
        return type(value)([_widened(item) for item in value])
    if type(value) is dict:
        return {key: _widened(item) for key, item in value.items()}
    return value


def _nearer(op: Any, sample: Any, ours: Any, theirs: Any) -> bool:
    """Whether our result is nearer than PyTorch's to PyTorch's in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        args, kwargs = _widened((sample.input, *sample.args)), _widened(sample.kwargs)
        exact = sample.output_process_fn_grad(call_theirs(op.op, *args, **kwargs))
    except Exception:  # no such dtype
        return False
    finally:
        torch.set_default_dtype(before)
    sides = [leaves(side, torch.Tensor) for side in (to_torch(ours), theirs, exact)]
    return all(_error(left, true) <= _error(right, true) for left, right, true in zip(*sides))


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest distance, infinite where one of the two alone is not finite."""
    if found.dtype is exact.dtype:
        return 0.0 if torch.equal(found, exact) else math.inf
    distance = (found.to(exact.dtype) - exact).abs()
    distance = distance.masked_fill(found.to(exact.dtype) == exact, 0).nan_to_num(math.inf)
    return distance.max().item() if distance.numel() else 0.0


def dtypes(op: Any) -> None:
    """The same for every dtype that PyTorch's CPU serves."""
    failed = {}
    for dtype in sorted(op.supported_dtypes("cpu").difference(ABSENT), key=str):
        try:
            forward(op, dtype)
        except Nothing:
            continue
        except Exception as error:
            failed[name_of(dtype)] = error
    if failed:
        raise Difference("; ".join(f"{name}: {brief(error)}" for name, error in failed.items()))


def _order(op: Any, order: int) -> None:
    if not op.supports_autograd or (order == 2 and not op.supports_gradgrad):
        raise Nothing("no gradient in PyTorch")
    function = operator(op)
    count = 0
    for dtype in (torch.float64, torch.complex128):
        if dtype not in op.supported_backward_dtypes("cpu"):
            continue
        for sample, args, kwargs, theirs in _calls(op, dtype, gradient=True):
            inputs = [
                x
                for x in leaves([sample.input, sample.args, sample.kwargs], torch.Tensor)
                if x.requires_grad and x.is_leaf
            ]
            mine = [x for x in leaves([args, kwargs], tlc.Tensor) if x.requires_grad]
            ours = call_ours(function, *args, **kwargs)
            ours, theirs = _processed(sample, ours, theirs)
            try:
                wanted = call_theirs(gradients_of, torch, theirs, inputs, order)
            except Exception:
                continue
            if len(wanted) < order or all(g is None for g in wanted[-1]):
                continue
            count += 1
            got = call_ours(gradients_of, tlc, ours, mine, order)
            compare_gradients(got, wanted, inputs, order)
    if not count:
        raise Nothing("no gradient in PyTorch")


def gradients(op: Any) -> None:
    """First gradients, in float64 and complex128, along random directions."""
    _order(op, 1)


def second_gradients(op: Any) -> None:
    """Second gradients."""
    _order(op, 2)


def errors(op: Any) -> None:
    """Every error sample raises PyTorch's type."""
    if op.error_inputs_func is None:
        raise Nothing("no error samples")
    function = operator(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(op.error_inputs("cpu"))
    count = 0
    for case in found:
        sample = case.sample_input
        try:
            memories: dict[Any, Any] = {}  # some share it with what they write to
            args = to_ours((sample.input, *sample.args), memories)
            kwargs = to_ours(sample.kwargs, memories)
        except (Missing, TypeError, ValueError):  # no such tensors here: meta, 65 dimensions
            continue
        try:
            call_theirs(op.op, sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            wanted = error
        else:
            continue
        count += 1
        try:
            call_ours(function, *args, **kwargs)
        except Exception as error:
            same_error(error, wanted)
        else:
            raise Difference(f"nothing raised for {type(wanted).__name__}: {str(wanted)[:120]}")
    if not count:
        raise Nothing("no error samples")


def out(op: Any) -> None:
    """`out=`: the result is written there, into other shapes too, and other dtypes are refused."""
    if not op.supports_out:
        raise Nothing("no out=")
    function = operator(op)
    count = 0
    for sample, args, kwargs, theirs in _calls(op, default_dtype(op)):
        expected = leaves(theirs, torch.Tensor)
        single = isinstance(theirs, torch.Tensor)
        if not expected or op.name == "histogramdd":  # which has none in PyTorch either
            continue
        count += 1
        for shape in (None, (0,)):
            made = [
                to_ours(torch.full_like(x if shape is None else x.new_empty(shape), 3))
                for x in expected
            ]
            target = made[0] if single else tuple(made)
            found = call_ours(function, *args, **kwargs, out=target)
            if found is None:  # what is split into copies returns nothing, in PyTorch too
                found = target
            returned = [found] if single else list(found)
            if any(x is not y for x, y in zip(returned, made, strict=True)):
                raise Difference("out= is not what is returned")
            values = op.name not in UNDEFINED
            if single or isinstance(theirs, tuple):
                compare(*_processed(sample, target, theirs), values=values)
            else:
                compare(made, expected, values=values)
    if not count:
        raise Nothing("no sample runs")


KINDS: dict[str, Callable[[Any], None]] = {
    "names": names,
    "forward": forward,
    "dtypes": dtypes,
    "gradients": gradients,
    "second_gradients": second_gradients,
    "errors": errors,
    "out": out,
}
