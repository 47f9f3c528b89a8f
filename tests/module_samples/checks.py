"""What is compared of a module: one function per kind, which raises where the sides differ."""

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
from tests.samples.comparison import (
    Difference,
    Nothing,
    brief,
    call_ours,
    call_theirs,
    compare,
    compare_strides,
    gradients_of,
    leaves,
    same_error,
)
from tests.samples.translate import name_of, to_ours

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def _same(ours: Any, theirs: Any) -> None:
    compare(ours, theirs)
    compare_strides(ours, theirs)


def _same_text(ours: Any, theirs: Any) -> None:
    if str(ours) != str(theirs):
        raise Difference(f"{str(ours)!r:.90} for {str(theirs)!r:.90}")


def _same_state(ours: Any, theirs: torch.nn.Module) -> None:
    """Equal names in the same order, classes, values and strides of parameters and buffers."""
    mine, other = ours.state_dict(), theirs.state_dict()
    _same_text(list(mine), list(other))
    for kind in ("named_parameters", "named_buffers"):
        left, right = list(getattr(ours, kind)()), list(getattr(theirs, kind)())
        _same_text([name for name, _ in left], [name for name, _ in right])
        for (name, x), (_, y) in zip(left, right, strict=True):
            _same_text(
                (name, type(x).__name__, x.requires_grad), (name, type(y).__name__, y.requires_grad)
            )
            if not torch.nn.parameter.is_lazy(y):
                _same(x, y)


def _public(module: Any) -> dict[str, Any]:
    """Attributes that say how the module was made."""
    plain = (bool, int, float, str, type(None), tuple, list)
    return {
        name: value
        for name, value in sorted(vars(module).items())
        if not name.startswith("_")
        and isinstance(value, plain)
        and name not in module._parameters
        and name not in module._buffers
    }


def initial_values(info: Any) -> None:
    """The same modules, attributes and parameters from the same seed, and as many draws."""
    for sample in samples(info):
        ours, theirs = construct(info, sample)
        compare(tlc.rand(2), torch.rand(2))  # what follows in the stream
        _same_state(ours, theirs)
        for (name, mine), (right, other) in zip(
            ours.named_modules(), theirs.named_modules(), strict=True
        ):
            _same_text((name, type(mine).__name__), (right, type(other).__name__))
            _same_text(_public(mine), _public(other))


def factory_arguments(info: Any) -> None:
    """`dtype=` and `device=` reach what the constructor makes."""
    if "dtype" not in inspect.signature(info.module_cls).parameters:
        raise Nothing("makes no parameters")
    for dtype in _FLOATS:
        for sample in samples(info, dtype):
            sample.constructor_input.kwargs.update(device="cpu", dtype=dtype)
            _same_state(*construct(info, sample))


def forward(info: Any) -> None:
    """Every sample gives PyTorch's result, in the entry's dtypes, when training and not."""
    for dtype in dtypes_of(info):
        for training in modes_of(info):
            for pair in pairs(info, dtype, training):
                _same(pair.call_ours(), pair.call_theirs())
                _same_state(pair.ours, pair.theirs)
                compare(leaves(_given(pair.ours_input), tlc.Tensor), _tensors(pair.theirs_input))


def _given(call: Call) -> Any:
    return [call.args, call.kwargs]


def _tensors(call: Call) -> list[torch.Tensor]:
    return leaves(_given(call), torch.Tensor)


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
                _same(pair.call_ours(), theirs)
        except NotImplementedError:  # nor are initial values
            continue
        except Exception as error:
            failed[name_of(dtype)] = error
    if failed:
        raise Difference("; ".join(f"{name}: {brief(error)}" for name, error in failed.items()))
    if not count:
        raise Nothing("PyTorch has no half precision here")


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
    given = [x for x in leaves(_given(call), kind) if x.requires_grad]
    return given + [x for x in module.parameters() if x.requires_grad]


def _same_gradients(pair: Pair, order: int) -> bool:
    """Compare the gradients of inputs and parameters; False where PyTorch has none."""
    mine = _differentiable(pair.ours, pair.ours_input, tlc.Tensor)
    inputs = _differentiable(pair.theirs, pair.theirs_input, torch.Tensor)
    theirs = pair.call_theirs()
    if not inputs or not any(x.requires_grad for x in leaves(theirs, torch.Tensor)):
        return False
    wanted = call_theirs(gradients_of, torch, theirs, inputs, order)
    if len(wanted) < order:
        return False
    got = call_ours(gradients_of, tlc, pair.call_ours(), mine, order)
    if len(got) < order:
        raise Difference("the result requires no gradient")
    for left, right, x in zip(got[-1], wanted[-1], inputs, strict=True):
        if order == 1 and (left is None) != (right is None):
            raise Difference(f"gradient {left!r:.60} for {right!r:.60}")
        right = torch.zeros_like(x) if right is None else right
        left = to_ours(torch.zeros_like(x.detach())) if left is None else left
        compare(left, right)
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
    """Inputs and modules in channels-last: PyTorch's values, strides and gradients."""
    count = 0
    for training in modes_of(info):
        for of_module, of_input in itertools.product((False, True), repeat=2):
            for pair in pairs(info, torch.float64, training, gradient=True):
                dimensions = {x.dim() for x in _tensors(pair.theirs_input)} & {4, 5}
                if len(dimensions) != 1:
                    continue
                count += 1
                name = "channels_last" if dimensions == {4} else "channels_last_3d"
                if of_module and all(p.dim() in (*dimensions, 1) for p in pair.theirs.parameters()):
                    pair.ours.to(memory_format=getattr(tlc, name))
                    pair.theirs.to(memory_format=getattr(torch, name))
                    _same_state(pair.ours, pair.theirs)
                if of_input:
                    _lay_out(pair, lambda x: x.contiguous(memory_format=getattr(torch, name)))
                theirs = pair.call_theirs()
                _same(pair.call_ours(), theirs)
                _same_gradients(pair, 1)
    if not count:
        raise Nothing("no sample of 4 or 5 dimensions")


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
            _lay_out(pair, noncontiguous_like)
            _same(pair.call_ours(), pair.call_theirs())
            _same_gradients(pair, 1)


def representation(info: Any) -> None:
    """`repr` and `extra_repr` are PyTorch's."""
    for sample in samples(info):
        ours, theirs = construct(info, sample)
        _same_text(repr(ours).replace("tensorflow_lite_clone", "torch"), repr(theirs))
        _same_text(ours.extra_repr(), theirs.extra_repr())


def copies(info: Any) -> None:
    """Deep copies, pickles, files and PyTorch's files compute what the module computes."""
    for training in modes_of(info):
        for pair in pairs(info, torch.float32, training):
            theirs = copy.deepcopy(pair.theirs)  # calls change buffers
            wanted = call_theirs(theirs, *pair.theirs_input.args, **pair.theirs_input.kwargs)
            for twin in _twins(pair):
                _same_state(twin, pair.theirs)
                _same_text(repr(twin), repr(pair.ours))
                if twin.training is not training:
                    raise Difference(f"training is {twin.training} for {training}")
                _same(call_ours(twin, *pair.ours_input.args, **pair.ours_input.kwargs), wanted)


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
    **{f"to {d}": lambda m, lib, d=name_of(d): m.to(getattr(lib, d)) for d in _FLOATS},
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
        for pair in pairs(info, torch.float64, gradient=True):
            before = _backward(pair)
            after = [
                move(m, lib) for m, lib in zip((pair.ours, pair.theirs), (tlc, torch), strict=True)
            ]
            try:
                if after[0] is not pair.ours:
                    raise Difference("another module is returned")
                _same_state(pair.ours, pair.theirs)
                kept = [
                    [x is y for x, y in zip(old, m.parameters(), strict=True)]
                    for old, m in zip(before, (pair.ours, pair.theirs), strict=True)
                ]
                _same_text(*kept)
                for x, y in zip(pair.ours.parameters(), pair.theirs.parameters(), strict=True):
                    compare(x.grad, y.grad)
                pair.ours.double(), pair.theirs.double()
                _same(pair.call_ours(), pair.call_theirs())
            except (AssertionError, Difference) as error:
                raise Difference(f"{name}: {brief(error)}") from error


def _backward(pair: Pair) -> list[list[Any]]:
    """Fill the gradients of the parameters of both; returns these."""
    for lib, call in ((torch, pair.call_theirs), (tlc, pair.call_ours)):
        results = [x for x in leaves(call(), lib.Tensor) if x.requires_grad]
        for x in results:
            x.sum().backward(retain_graph=True)
    return [list(pair.ours.parameters()), list(pair.theirs.parameters())]


def hooks(info: Any) -> None:
    """Hooks of every submodule run in PyTorch's order and see what PyTorch's see."""
    for training in modes_of(info):
        for pair in pairs(info, torch.float32, training, gradient=True):
            mine, theirs = [], []
            _watch(pair.ours, mine)
            _watch(pair.theirs, theirs)
            _backward(pair)
            _same_text([event[:2] for event in mine], [event[:2] for event in theirs])
            for left, right in zip(mine, theirs, strict=True):
                compare(left[2], right[2])
    for pair in pairs(info, torch.float32):
        _replaced(pair)


def _watch(module: Any, log: list[Any]) -> None:
    for name, part in module.named_modules():
        note = lambda kind, name=name: lambda m, *seen: log.append((name, kind, _flat(seen)))
        part.register_forward_pre_hook(note("before"), with_kwargs=True)
        part.register_forward_hook(note("after"), with_kwargs=True, always_call=True)
        part.register_full_backward_pre_hook(note("before backward"))
        part.register_full_backward_hook(note("after backward"))


def _flat(value: Any) -> Any:
    """Dictionaries as lists of pairs; tensors detached, others as they are."""
    if isinstance(value, (tlc.Tensor, torch.Tensor)):
        return value.detach().clone()
    if isinstance(value, dict):
        return [[key, _flat(item)] for key, item in value.items()]
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
            inputs = _tensors(pair.theirs_input), leaves(_given(pair.ours_input), tlc.Tensor)
            clones = [[x.clone() for x in side] for side in inputs]
            theirs = call_theirs(pair.theirs, *clones[0])
            ours = call_ours(pair.ours, *clones[1])
            _same(ours, theirs)
            _same_text(ours is clones[1][0], theirs is clones[0][0])
            _same(clones[1], clones[0])
            _same_text([x._version for x in clones[1]], [x._version for x in clones[0]])
            wanted_g = gradients_of(torch, theirs, inputs[0], 1)
            compare(gradients_of(tlc, ours, inputs[1], 1), wanted_g)


def modes(info: Any) -> None:
    """`train()` and `eval()` reach every submodule, and change the result where PyTorch's does."""
    for pair in pairs(info, torch.float32):
        results = []
        for training in (True, False, True):
            for module in (pair.ours, pair.theirs):
                module.train(training)
            _same_text(
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
                _same(ours, theirs)
                _same_text(
                    [x.requires_grad for x in leaves(ours, tlc.Tensor)],
                    [x.requires_grad for x in leaves(theirs, torch.Tensor)],
                )


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
