"""What programs do with modules: print, copy, move, hook and freeze them."""

from __future__ import annotations

import copy
import inspect
import io
import itertools
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.module_samples.pairs import (
    Pair,
    construct,
    dtypes_of,
    modes_of,
    pairs,
    samples,
)
from tests.module_samples.sameness import (
    inputs_of,
    same,
    same_state,
    same_text,
    tensors,
)
from tests.samples.comparison import (
    Difference,
    Nothing,
    brief,
    call_ours,
    call_theirs,
    compare,
    gradients_of,
    leaves,
    same_error,
)

#: Samples that are enough where the module counts, not the input: one loss has 800.
_FEW = 16


def representation(info: Any) -> None:
    """`repr` and `extra_repr` are PyTorch's."""
    for sample in samples(info):
        ours, theirs = construct(info, sample)
        same_text(repr(ours).replace("tensorflow_lite_clone", "torch"), repr(theirs))
        same_text(ours.extra_repr(), theirs.extra_repr())


def copies(info: Any) -> None:
    """Deep copies, pickles, files and PyTorch's files compute what the module computes."""
    for training in modes_of(info):
        for pair in pairs(info, torch.float32, training):
            theirs = copy.deepcopy(pair.theirs)  # calls change buffers
            wanted = call_theirs(theirs, *pair.theirs_input.args, **pair.theirs_input.kwargs)
            for twin in _twins(pair):
                same_state(twin, pair.theirs)
                same_text(repr(twin), repr(pair.ours))
                if twin.training is not training:
                    raise Difference(f"training is {twin.training} for {training}")
                same(call_ours(twin, *pair.ours_input.args, **pair.ours_input.kwargs), wanted)


def _twins(pair: Pair) -> Iterator[Any]:
    yield copy.deepcopy(pair.ours)
    yield pickle.loads(pickle.dumps(pair.ours))
    file = io.BytesIO()
    tlc.save(pair.ours, file)
    yield _loaded(file)
    file = io.BytesIO()
    torch.save(pair.theirs, file)
    yield _loaded(file)


def _loaded(file: io.BytesIO) -> Any:
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tlc.load(file, weights_only=False)


_MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "to float32": lambda m, lib: m.to(lib.float32),
    "to bfloat16": lambda m, lib: m.to(dtype=lib.bfloat16),
    "double": lambda m, lib: m.double(),
    "float": lambda m, lib: m.float(),
    "half": lambda m, lib: m.half(),
    "bfloat16": lambda m, lib: m.bfloat16(),
    "type": lambda m, lib: m.type(lib.float32),
    "cpu": lambda m, lib: m.cpu(),
    "to device and dtype": lambda m, lib: m.to("cpu", lib.float32, True),
    "to tensor": lambda m, lib: m.to(lib.zeros(1, dtype=lib.float32)),
    "requires_grad_": lambda m, lib: m.requires_grad_(False),
    "share_memory": lambda m, lib: m.share_memory(),
    "zero_grad": lambda m, lib: (m.zero_grad(set_to_none=False), m)[1],
}


def moves(info: Any) -> None:
    """`to`, `double`, `half` and others: the same tensors change, in place where PyTorch's do,
    their gradients with them; and moved back they compute the same."""
    for name, move in _MOVES.items():
        for pair in itertools.islice(pairs(info, torch.float64, gradient=True), _FEW):
            before = _backward(pair)
            after = [
                move(m, lib) for m, lib in zip((pair.ours, pair.theirs), (tlc, torch), strict=True)
            ]
            try:
                if after[0] is not pair.ours:
                    raise Difference("another module is returned")
                same_state(pair.ours, pair.theirs)
                kept = [
                    [x is y for x, y in zip(old, m.parameters(), strict=True)]
                    for old, m in zip(before, (pair.ours, pair.theirs), strict=True)
                ]
                same_text(*kept)
                for x, y in zip(pair.ours.parameters(), pair.theirs.parameters(), strict=True):
                    compare(x.grad, y.grad)
                pair.ours.double(), pair.theirs.double()
                same(pair.call_ours(), pair.call_theirs())
            except (AssertionError, Difference) as error:
                raise Difference(f"{name}: {brief(error)}") from error


def _backward(pair: Pair) -> list[list[Any]]:
    """Fill the gradients of the parameters of both; returns these."""
    for lib, call, run in (
        (torch, pair.call_theirs, call_theirs),
        (tlc, pair.call_ours, call_ours),
    ):
        results = [x for x in leaves(call(), lib.Tensor) if x.requires_grad]
        for x in results:
            run(x.sum().backward, retain_graph=True)
    return [list(pair.ours.parameters()), list(pair.theirs.parameters())]


def hooks(info: Any) -> None:
    """Hooks of every submodule run in PyTorch's order and see what PyTorch's see."""
    for training in modes_of(info):
        for pair in pairs(info, torch.float64, training, gradient=True):
            mine, theirs = [], []
            _watch(pair.ours, mine)
            _watch(pair.theirs, theirs)
            _backward(pair)
            same_text([event[:2] for event in mine], [event[:2] for event in theirs])
            for left, right in zip(mine, theirs, strict=True):
                compare(left[2], right[2])
    for pair in pairs(info, torch.float64):
        _replaced(pair)


def _watch(module: Any, log: list[Any]) -> None:
    for name, part in module.named_modules():
        note = lambda kind, name=name: lambda m, *seen: log.append((name, kind, _flat(seen)))
        part.register_forward_pre_hook(note("before"), with_kwargs=True)
        part.register_forward_hook(note("after"), with_kwargs=True, always_call=True)
        part.register_full_backward_pre_hook(note("before backward"))
        part.register_full_backward_hook(note("after backward"))


def _flat(value: Any) -> Any:
    """Dictionaries as sorted lists of pairs; tensors detached, others as they are."""
    if isinstance(value, (tlc.Tensor, torch.Tensor)):
        return value.detach().clone()
    if isinstance(value, dict):
        return [[key, _flat(value[key])] for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [_flat(item) for item in value]
    return value


def _replaced(pair: Pair) -> None:
    """What hooks return takes the place of inputs and results, until they are removed."""
    first = [pair.call_ours(), pair.call_theirs()]
    handles = [
        handle
        for module in (pair.ours, pair.theirs)
        for handle in (
            module.register_forward_hook(lambda m, args, result: (result, len(args))),
            module.register_forward_pre_hook(lambda m, args: args),
        )
    ]
    compare(pair.call_ours(), pair.call_theirs())
    for handle in handles:
        handle.remove()
    if len(leaves(pair.call_ours(), tlc.Tensor)) != len(leaves(first[0], tlc.Tensor)):
        raise Difference("a removed hook runs")
    compare(pair.call_ours(), pair.call_theirs())


def inplace(info: Any) -> None:
    """`inplace=True`: the input is written where PyTorch's is, with the same gradients, and
    leaves that require gradients are refused."""
    if "inplace" not in inspect.signature(info.module_cls).parameters:
        raise Nothing("no argument inplace")
    for dtype in dtypes_of(info):
        for pair in pairs(info, dtype, gradient=True, inplace=True):
            try:
                pair.call_theirs()
            except Exception as error:
                wanted: Exception | None = error
            else:
                wanted = None
            try:
                pair.call_ours()
            except Exception as error:
                if wanted is None:
                    raise
                same_error(error, wanted)
            else:
                if wanted is not None:
                    raise Difference(f"nothing raised for {brief(wanted)}")
            inputs = tensors(pair.theirs_input), leaves(inputs_of(pair.ours_input), tlc.Tensor)
            clones = [[x.clone() for x in side] for side in inputs]
            theirs = call_theirs(pair.theirs, *clones[0])
            ours = call_ours(pair.ours, *clones[1])
            same(ours, theirs)
            same_text(ours is clones[1][0], theirs is clones[0][0])
            same(clones[1], clones[0])
            same_text([x._version for x in clones[1]], [x._version for x in clones[0]])
            wanted_g = gradients_of(torch, theirs, inputs[0], 1)
            compare(gradients_of(tlc, ours, inputs[1], 1), wanted_g)


def modes(info: Any) -> None:
    """`train()` and `eval()` reach every submodule, and change the result where PyTorch's does."""
    for pair in pairs(info, torch.float32):
        results = []
        for training in (True, False, True):
            for module in (pair.ours, pair.theirs):
                module.train(training)
            same_text(
                [m.training for m in pair.ours.modules()],
                [m.training for m in pair.theirs.modules()],
            )
            ours, theirs = pair.call_ours(), pair.call_theirs()
            compare(ours, theirs)
            results.append([ours, theirs])


def gradient_modes(info: Any) -> None:
    """Under `no_grad` and `inference_mode`, and with frozen parameters, the result requires a
    gradient where PyTorch's does; PyTorch's fast ways give the same values."""
    for training in (True, False):
        for guard in ("no_grad", "inference_mode", "enable_grad"):
            for pair in pairs(info, torch.float32, training, gradient=guard != "enable_grad"):
                with getattr(tlc, guard)():
                    ours = pair.call_ours()
                with getattr(torch, guard)():
                    theirs = pair.call_theirs()
                same(ours, theirs)
                same_text(
                    [x.requires_grad for x in leaves(ours, tlc.Tensor)],
                    [x.requires_grad for x in leaves(theirs, torch.Tensor)],
                )
