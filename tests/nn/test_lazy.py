"""Lazy modules, and parameters and buffers without a shape, as in PyTorch."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

from tests.nn.against_torch import LIBRARIES, raises, same


def lazy_class(lib):
    """A user's lazy module."""

    class Scale(lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.UninitializedParameter()
            self.register_buffer("count", lib.nn.UninitializedBuffer())

        def initialize_parameters(self, x, times=1):
            if self.has_uninitialized_params():
                with lib.no_grad():
                    self.weight.materialize(x.shape[-1:])
                    self.weight.fill_(times)
                    self.count.materialize(())
                    self.count.zero_()

        def forward(self, x, times=1):
            self.count += 1
            return x * self.weight

    return Scale


SAME = {
    "printed": lambda lib: [
        repr(lib.nn.UninitializedParameter()),
        repr(lib.nn.UninitializedBuffer()),
    ],
    "attributes": lambda lib: [
        (p.dtype, p.device, p.requires_grad, p.is_leaf, p.grad, p.ndim, p.is_cuda, p.size())
        for p in (
            lib.nn.UninitializedParameter(),
            lib.nn.UninitializedParameter(False, "cpu", lib.float64),
            lib.nn.UninitializedBuffer(dtype=lib.int32),
        )
    ],
    "kinds": lambda lib: [
        (isinstance(p, lib.nn.Parameter), isinstance(p, lib.nn.Buffer), lib.nn.parameter.is_lazy(p))
        for p in (lib.nn.UninitializedParameter(), lib.nn.UninitializedBuffer(), lib.ones(1))
    ],
    "own class": lambda lib: own_class(lib),
    "in a network": lambda lib: network(lib),
    "moved before": lambda lib: moved(lib),
    "loaded": lambda lib: loaded(lib),
    "loaded normalisation": lambda lib: loaded_normalisation(lib),
    "lazy from lazy": lambda lib: lib.nn.LazyLinear(3).load_state_dict(
        lib.nn.LazyLinear(3).state_dict()
    ),
    "assigned": lambda lib: repr(
        lib.nn.LazyLinear(3).load_state_dict(lib.nn.Linear(4, 3).state_dict(), assign=True)
    ),
    "materialized": lambda lib: materialized(lib),
    "parameters of an optimizer": lambda lib: optimized(lib),
    "walks": lambda lib: [
        [name for name, _ in lib.nn.LazyBatchNorm1d().named_parameters()],
        [name for name, _ in lib.nn.LazyBatchNorm1d().named_buffers()],
        lib.nn.LazyLinear(2).has_uninitialized_params(),
    ],
}


def own_class(lib):
    module = lazy_class(lib)()
    before = module.has_uninitialized_params(), list(module.state_dict())
    result = module(lib.ones(3), times=2)
    again = module(lib.ones(3))
    return before, result, again, module.count, module.has_uninitialized_params()


def network(lib):
    lib.manual_seed(0)
    model = lib.nn.Sequential(
        lib.nn.LazyConv2d(2, 3), lib.nn.LazyBatchNorm2d(), lib.nn.Flatten(), lib.nn.LazyLinear(2)
    )
    twin = copy.deepcopy(model[0])
    before = repr(model)
    y = model(lib.ones(2, 1, 4, 4))
    y.sum().backward()
    shapes = {name: (list(p.shape), p.grad is None) for name, p in model.named_parameters()}
    return before, repr(model), repr(twin), shapes, type(model[3])


def moved(lib):
    model = lib.nn.Sequential(lib.nn.LazyLinear(3), lib.nn.LazyBatchNorm1d()).to(lib.float64)
    before = [str(t.dtype) for t in model.state_dict().values()]
    y = model(lib.ones(2, 4, dtype=lib.float64))
    return before, y.dtype, model.half()[0].weight.dtype


def loaded(lib):
    lib.manual_seed(0)
    module = lib.nn.LazyLinear(3)
    result = repr(module.load_state_dict(lib.nn.Linear(4, 3).state_dict()))
    before = repr(module), list(module.weight.shape)
    return result, before, module(lib.ones(2, 4)).shape, repr(module)


def loaded_normalisation(lib):
    module = lib.nn.LazyBatchNorm1d()
    module.load_state_dict(lib.nn.BatchNorm1d(3).state_dict())
    return repr(module), module(lib.ones(2, 3)), repr(module)


def materialized(lib):
    p, b = lib.nn.UninitializedParameter(False), lib.nn.UninitializedBuffer()
    p.materialize((2, 3), dtype=lib.float64)
    b.materialize((0,))
    return p.shape, p.dtype, p.requires_grad, type(p), type(b), b


def optimized(lib):
    lib.manual_seed(0)
    module = lib.nn.LazyLinear(1)
    optimizer = lib.optim.SGD(module.parameters(), lr=0.5)
    with lib.no_grad():
        module(lib.ones(1, 2))
    before = [p.detach().clone() for p in module.parameters()]
    module(lib.ones(1, 2)).sum().backward()
    optimizer.step()
    # The draws are compared elsewhere; here, that the step reaches the parameters.
    return [(p - q).detach() * 2 for p, q in zip(module.parameters(), before)]


@pytest.mark.parametrize("name", SAME)
def test_lazy_modules_match_pytorch(name):
    same(SAME[name])


WRONG = {
    "shape": lambda lib: lib.nn.UninitializedParameter().shape,
    "share_memory": lambda lib: lib.nn.LazyLinear(3).share_memory(),
    "nothing initialized": lambda lib: type(
        "Nothing", (lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Linear), {}
    )(1, 2)(lib.ones(1)),
    "not all initialized": lambda lib: type(
        "Some", (lazy_class(lib),), {"initialize_parameters": lambda self, x: None}
    )()(lib.ones(1)),
    "into an ordinary module": lambda lib: lib.nn.Linear(4, 3).load_state_dict(
        lib.nn.LazyLinear(3).state_dict()
    ),
    "groups": lambda lib: lib.nn.LazyConv2d(4, 2, groups=2)(lib.ones(1, 3, 3, 3)),
    "dimensions": lambda lib: lib.nn.LazyConv2d(3, 2)(lib.ones(1, 2)),
    "missing keys": lambda lib: lib.nn.LazyLinear(3).load_state_dict({"weight": lib.ones(3, 4)}),
    "input of a norm": lambda lib: lib.nn.LazyBatchNorm2d()(lib.ones(2, 3)),
    "replicas": lambda lib: lib.nn.LazyLinear(3)._replicate_for_data_parallel(),
    "padding mode": lambda lib: lib.nn.LazyConvTranspose2d(3, 2, padding_mode="circular"),
}


@pytest.mark.parametrize("name", WRONG)
def test_lazy_modules_invalid_calls_raise(name):
    raises(WRONG[name])


@pytest.mark.parametrize(
    "use",
    (
        lambda lib, p: p + 1,
        lambda lib, p: p.sum(),
        lambda lib, p: p.numel(),
        lambda lib, p: len(p),
        lambda lib, p: p.detach(),
        lambda lib, p: p.zero_(),
        lambda lib, p: p == 1,
        lambda lib, p: p.tolist(),
        lambda lib, p: lib.zeros_like(p),
        lambda lib, p: lib.nn.Parameter(p),
    ),
)
def test_use_before_the_first_call(use):
    """The message names no function here, otherwise it is PyTorch's."""
    for lib in LIBRARIES:
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use(lib, lib.nn.UninitializedParameter())


@pytest.mark.parametrize("writer", LIBRARIES)
@pytest.mark.parametrize("reader", LIBRARIES)
def test_files(writer, reader):
    """A state without shapes is saved, needs `weights_only=False`, and goes both ways."""
    file = io.BytesIO()
    writer.save(writer.nn.LazyBatchNorm1d().state_dict(), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        reader.load(file)
    file.seek(0)
    state = reader.load(file, weights_only=False)
    assert repr(state["weight"]) == "<UninitializedParameter>"
    assert repr(state["running_var"]) == "<UninitializedBuffer>"
    assert state["num_batches_tracked"].tolist() == 0
    module = reader.nn.LazyBatchNorm1d()
    module.load_state_dict(state)
    assert module.has_uninitialized_params()


@pytest.mark.parametrize("lib", LIBRARIES)
def test_whole_modules(lib):
    """A lazy module that was pickled whole learns its sizes where it is loaded."""
    module = pickle.loads(pickle.dumps(lib.nn.LazyLinear(3, bias=False)))
    assert module(lib.ones(2, 4)).shape == (2, 3)
    assert type(module) is lib.nn.Linear
