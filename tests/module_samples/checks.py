"""What is compared of a module: one function per kind, which raises where the sides differ."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleErrorEnum
from torch.testing._internal.common_utils import noncontiguous_like

import tensorflow_lite_clone as tlc
from tests.module_samples.pairs import (
    Call,
    Pair,
    construct,
    dtypes_of,
    modes_of,
    module_class,
    pairs,
    samples,
)
from tests.module_samples.sameness import (
    inputs_of,
    same,
    same_attributes,
    same_state,
    same_text,
    tensors,
)
from tests.module_samples.use import (
    copies,
    gradient_modes,
    hooks,
    inplace,
    modes,
    moves,
    representation,
)
from tests.samples.comparison import (
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
from tests.samples.translate import name_of, to_ours, to_torch

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def initial_values(info: Any) -> None:
    """The same modules, attributes and parameters from the same seed, and as many draws."""
    for sample in samples(info):
        ours, theirs = construct(info, sample)
        compare(tlc.rand(2), torch.rand(2))  # what follows in the stream
        same_state(ours, theirs)
        for (name, mine), (right, other) in zip(
            ours.named_modules(), theirs.named_modules(), strict=True
        ):
            same_text((name, type(mine).__name__), (right, type(other).__name__))
            same_attributes(mine, other)


def factory_arguments(info: Any) -> None:
    """`dtype=` and `device=` reach what the constructor makes."""
    if "dtype" not in inspect.signature(info.module_cls).parameters:
        raise Nothing("makes no parameters")
    for dtype in _FLOATS:
        for sample in samples(info, dtype):
            sample.constructor_input.kwargs.update(device="cpu", dtype=dtype)
            same_state(*construct(info, sample))


def forward(info: Any) -> None:
    """Every sample gives PyTorch's result, training and not, in all dtypes of the entry but those
    of `half_precision`."""
    for dtype in [dtype for dtype in dtypes_of(info) if dtype.itemsize > 2]:
        for training in modes_of(info):
            for pair in pairs(info, dtype, training):
                same(pair.call_ours(), pair.call_theirs())
                same_state(pair.ours, pair.theirs)
                compare(leaves(inputs_of(pair.ours_input), tlc.Tensor), tensors(pair.theirs_input))


def half_precision(info: Any) -> None:
    """The same in float16 and bfloat16, as far as PyTorch's CPU computes in them."""
    count, failed = 0, {}
    for dtype in (torch.float16, torch.bfloat16):
        try:
            for pair in pairs(info, dtype):
                try:
                    theirs = pair.call_theirs()
                except RuntimeError:  # not implemented for the dtype
                    continue
                count += 1
                _as_near(pair, theirs)
        except NotImplementedError:  # nor are initial values
            continue
        except Exception as error:
            failed[name_of(dtype)] = error
    if failed:
        raise Difference("; ".join(f"{name}: {brief(error)}" for name, error in failed.items()))
    if not count:
        raise Nothing("PyTorch has no half precision here")


def _as_near(pair: Pair, theirs: Any) -> None:
    """Equal results, or ours at most twice as far from those in float64: where PyTorch rounds on
    the way and we do not, ours are the nearer ones."""
    ours = pair.call_ours()
    try:
        same(ours, theirs)
    except AssertionError:
        exact = Pair(
            pair.ours, copy.deepcopy(pair.theirs).double(), pair.ours_input, pair.theirs_input
        )
        _lay_out(exact, lambda x: x.double() if x.is_floating_point() else x)
        truth = leaves(exact.call_theirs(), torch.Tensor)
        errors = [
            [(x.double() - y).abs().max() for x, y in zip(side, truth, strict=True)]
            for side in (leaves(to_torch(ours), torch.Tensor), leaves(theirs, torch.Tensor))
        ]
        if any(mine > 2 * other for mine, other in zip(*errors, strict=True)):
            raise


def _order(info: Any, order: int) -> None:
    if order == 2 and not info.supports_gradgrad:
        raise Nothing("no second gradient in PyTorch")
    count = 0
    for dtype in dtypes_of(info):
        if dtype not in (torch.float64, torch.complex128):
            continue
        for training in modes_of(info):
            for pair in pairs(info, dtype, training, gradient=True):
                count += _same_gradients(pair, order)
    if not count:
        raise Nothing("no gradient in PyTorch")


def _differentiable(module: Any, call: Call, kind: type) -> list[Any]:
    given = [x for x in leaves(inputs_of(call), kind) if x.requires_grad]
    return given + [x for x in module.parameters() if x.requires_grad]


def _same_gradients(pair: Pair, order: int) -> bool:
    """Compare the gradients of inputs and parameters; False where PyTorch has none."""
    mine = _differentiable(pair.ours, pair.ours_input, tlc.Tensor)
    inputs = _differentiable(pair.theirs, pair.theirs_input, torch.Tensor)
    theirs = pair.call_theirs()
    if not inputs or not any(x.requires_grad for x in leaves(theirs, torch.Tensor)):
        return False
    try:
        wanted = call_theirs(gradients_of, torch, theirs, inputs, order)
    except RuntimeError:  # a derivative that PyTorch does not implement
        return False
    if len(wanted) < order:
        return False
    got = call_ours(gradients_of, tlc, pair.call_ours(), mine, order)
    compare_gradients(got, wanted, inputs, order)
    if order == 1:
        same_text([g is None for g in got[-1]], [g is None for g in wanted[-1]])
    return True


def gradients(info: Any) -> None:
    """First gradients of inputs and parameters, in float64 and complex128."""
    _order(info, 1)


def second_gradients(info: Any) -> None:
    """Second gradients."""
    _order(info, 2)


def errors(info: Any) -> None:
    """Every error sample raises PyTorch's type, at the construction or at the call."""
    if info.module_error_inputs_func is None:
        raise Nothing("no error samples")
    for dtype, training in itertools.product(dtypes_of(info), (True, False)):
        found = call_theirs(
            info.module_error_inputs_func,
            info,
            device="cpu",
            dtype=dtype,
            requires_grad=False,
            training=training,
        )
        for case in found:
            _same_failure(info, case)


def _same_failure(info: Any, case: Any) -> None:
    sample = case.module_error_input
    made, given = sample.constructor_input, sample.forward_input
    outcomes = []
    for cls, call in ((info.module_cls, call_theirs), (module_class(info), call_ours)):
        translated = (lambda value: value) if call is call_theirs else to_ours
        at = ModuleErrorEnum.CONSTRUCTION_ERROR
        try:
            module = call(cls, *translated(made.args), **translated(made.kwargs))
            at = ModuleErrorEnum.FORWARD_ERROR
            if given is not None:
                call(module, *translated(given.args), **translated(given.kwargs))
        except Exception as error:
            outcomes.append((at, error))
        else:
            outcomes.append((at, None))
    (wanted_at, wanted), (at, got) = outcomes
    if wanted is None:
        return
    if got is None:
        raise Difference(f"nothing raised for {type(wanted).__name__}: {str(wanted)[:120]}")
    same_error(got, wanted)
    if at is not wanted_at:
        raise Difference(f"{at} for {wanted_at}: {wanted}")


def memory_format(info: Any) -> None:
    """Inputs and modules in channels-last: PyTorch's values and strides, and gradients.

    Strides are compared in float32: in float64 PyTorch's three-dimensional convolutions lie
    otherwise, which `docs/differences.md` says.
    """
    count = 0
    choices = itertools.product((False, True), (False, True), (torch.float32, torch.float64))
    for training, (of_module, of_input, dtype) in itertools.product(modes_of(info), choices):
        for pair in pairs(info, dtype, training, gradient=True):
            dimensions = {x.dim() for x in tensors(pair.theirs_input)} & {4, 5}
            if len(dimensions) != 1:
                continue
            count += 1
            name = "channels_last" if dimensions == {4} else "channels_last_3d"
            if of_module and all(p.dim() in (*dimensions, 1) for p in pair.theirs.parameters()):
                pair.ours.to(memory_format=getattr(tlc, name))
                pair.theirs.to(memory_format=getattr(torch, name))
                same_state(pair.ours, pair.theirs)
            if of_input:
                _lay_out(pair, _channels_last)
            if dtype is torch.float32:
                same(pair.call_ours(), pair.call_theirs())
            else:
                _same_gradients(pair, 1)
    if not count:
        raise Nothing("no sample of 4 or 5 dimensions")


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats.get(x.dim(), torch.contiguous_format))


def _lay_out(pair: Pair, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Put inputs with other strides into both calls."""

    def moved(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return function(value.detach()).requires_grad_(value.requires_grad)
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return value
        if isinstance(value, (list, tuple)):
            return type(value)(map(moved, value))
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        return value

    pair.theirs_input = Call(moved(pair.theirs_input.args), moved(pair.theirs_input.kwargs))
    pair.ours_input = pair.theirs_input.ours()


def non_contiguous(info: Any) -> None:
    """Inputs with gaps between elements: PyTorch's values, strides and gradients."""
    for training in modes_of(info):
        for pair in pairs(info, torch.float64, training, gradient=True):
            _lay_out(pair, _floats_with_gaps if info.name == "nn.CTCLoss" else noncontiguous_like)
            same(pair.call_ours(), pair.call_theirs())
            _same_gradients(pair, 1)


def _floats_with_gaps(x: torch.Tensor) -> torch.Tensor:
    """PyTorch reads concatenated CTC targets that have gaps at wrong places."""
    return noncontiguous_like(x) if x.is_floating_point() else x


KINDS: dict[str, Callable[[Any], None]] = {
    "initial_values": initial_values,
    "factory_arguments": factory_arguments,
    "forward": forward,
    "half_precision": half_precision,
    "gradients": gradients,
    "second_gradients": second_gradients,
    "errors": errors,
    "memory_format": memory_format,
    "non_contiguous": non_contiguous,
    "representation": representation,
    "copies": copies,
    "moves": moves,
    "hooks": hooks,
    "inplace": inplace,
    "modes": modes,
    "gradient_modes": gradient_modes,
}
