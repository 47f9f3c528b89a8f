"""A module of PyTorch's and ours, made from one sample, with inputs for both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.samples.comparison import Nothing, call_ours, call_theirs
from tests.samples.translate import Missing, to_ours

#: Of PyTorch's dtypes those that are not here: NumPy has no complex numbers of four bytes.
ABSENT = (torch.complex32,)


@dataclass
class Call:
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def ours(self) -> Call:
        """The same for our package."""
        return Call(*to_ours((self.args, self.kwargs), {}))


@dataclass
class Pair:
    """Both modules, and their inputs."""

    ours: Any
    theirs: torch.nn.Module
    ours_input: Call
    theirs_input: Call

    def call_ours(self) -> Any:
        """What our module returns."""
        return call_ours(self.ours, *self.ours_input.args, **self.ours_input.kwargs)

    def call_theirs(self) -> Any:
        """What PyTorch's module returns."""
        return call_theirs(self.theirs, *self.theirs_input.args, **self.theirs_input.kwargs)


def module_class(info: Any) -> type:
    """Our class of the entry's name."""
    name = info.module_cls.__name__
    found = getattr(tlc.nn, name, None)
    if found is None:
        raise Missing(f"nn.{name}")
    return found


def dtypes_of(info: Any) -> list[torch.dtype]:
    """The dtypes that the entry names for the CPU."""
    return [dtype for dtype in info.supported_dtypes("cpu") if dtype not in ABSENT]


def modes_of(info: Any) -> tuple[bool, ...]:
    """`training` in which the module is worth a call."""
    return (True, False) if info.train_and_eval_differ else (True,)


def samples(
    info: Any, dtype: torch.dtype = torch.float32, training: bool = True, gradient: bool = False
) -> list[Any]:
    """The entry's samples, with packed sequences where it has them."""
    return call_theirs(
        info.module_inputs_func,
        info,
        device="cpu",
        dtype=dtype,
        requires_grad=gradient,
        training=training,
        with_packed_sequence=True,
    )


def construct(info: Any, sample: Any, **more: Any) -> tuple[Any, torch.nn.Module]:
    """Our module and PyTorch's, each made from the same arguments and seed."""
    given = Call(sample.constructor_input.args, {**sample.constructor_input.kwargs, **more})
    mine = given.ours()
    theirs = call_theirs(info.module_cls, *given.args, **given.kwargs)
    return call_ours(module_class(info), *mine.args, **mine.kwargs), theirs


def pairs(
    info: Any,
    dtype: torch.dtype = torch.float32,
    training: bool = True,
    gradient: bool = False,
    **more: Any,
) -> Iterator[Pair]:
    """A pair for every sample with an input, of equal parameters."""
    for sample in samples(info, dtype, training, gradient):
        if sample.forward_input is None:
            continue
        ours, theirs = construct(info, sample, **more)
        given = Call(sample.forward_input.args, sample.forward_input.kwargs)
        pair = Pair(ours, theirs, given.ours(), given)
        pair.ours.to(to_ours(dtype)).train(training)
        pair.theirs.to(dtype).train(training)
        if info.is_lazy:  # gets its parameters at the first call
            pair.call_theirs()
            pair.call_ours()
        pair.ours.load_state_dict(to_ours(dict(pair.theirs.state_dict())))
        yield pair


def counted(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """The pairs; raise `Nothing` at the end if there was none."""
    count = 0
    for pair in pairs:
        count += 1
        yield pair
    if not count:
        raise Nothing("no sample")
