"""Every class of ``torch.nn``: face, representation, state, values, gradients, copies."""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)
from tests.device import DEVICE
from tests.nn.table import ROWS

#: Classes of ``torch.nn`` that are for several devices.
ELSEWHERE = {"DataParallel", "SyncBatchNorm"}
CLASSES = [
    name
    for name, kind in vars(torch.nn).items()
    if isinstance(kind, type) and issubclass(kind, torch.nn.Module) and name not in ELSEWHERE
]
RUNNING = [row for row in ROWS if row[1]]


class Inputs:
    """The words of an input in the table, for one library."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.draws = np.random.default_rng(7)
        self.leaves: list[Any] = []

    def tensor(self, values: Any) -> Any:
        return self.lib.tensor(values, device=DEVICE if self.lib is tlc else "cpu")

    def leaf(self, values: Any) -> Any:
        self.leaves.append(self.tensor(values.astype("f4")).requires_grad_())
        return self.leaves[-1]

    def f(self, *shape: int) -> Any:
        return self.leaf(self.draws.standard_normal(shape))

    def u(self, *shape: int) -> Any:
        return self.leaf(self.draws.uniform(0.1, 0.9, shape))

    def i(self, high: int, *shape: int) -> Any:
        return self.tensor(self.draws.integers(0, high, shape))

    def s(self, *shape: int) -> Any:
        return self.tensor(self.draws.choice([-1.0, 1.0], shape).astype("f4"))

    def read(self, text: str) -> tuple:
        names = {name: getattr(self, name) for name in "fuis"}
        return eval(f"({text},)", {**names, "t": self.tensor})


def made(text: str, lib: Any, seed: int = 3) -> Any:
    """The module, with PyTorch's remarks on old names and empty layers left unsaid."""
    lib.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"nn.{text}", {"nn": lib.nn, "lib": lib})


def host(value: Any) -> Any:
    return value.detach().cpu().numpy()


def tensors(lib: Any, value: Any) -> Iterator[Any]:
    """The tensors in an output."""
    if isinstance(value, lib.Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tensors(lib, part)


def state(module: Any) -> dict[str, Any]:
    """The state as arrays; what has no shape yet as None."""
    lib = tlc if isinstance(module, tlc.nn.Module) else torch
    return {
        name: None if lib.nn.parameter.is_lazy(value) else host(value).copy()
        for name, value in module.state_dict().items()
    }


def call(text: str, inputs: str, lib: Any, training: bool) -> tuple:
    """Representation and state before and after a call, its outputs, and gradients."""
    module = made(text, lib)
    before = repr(module), state(module)
    if lib is tlc:
        module.to(DEVICE)
    module.train(training)
    given = Inputs(lib)
    arguments = given.read(inputs)
    lib.manual_seed(4)
    outputs = list(tensors(lib, module(*arguments)))
    weights = np.random.default_rng(11)
    total = None
    for output in outputs:
        if output.requires_grad:
            weight = weights.standard_normal(tuple(output.shape)).astype("f4")
            part = (output * lib.tensor(weight, device=output.device)).sum()
            total = part if total is None else total + part
    gradients: dict[str, Any] = {}
    if total is not None:
        total.backward()
        gradients = {name: p.grad for name, p in module.named_parameters()}
        gradients |= {f"input {n}": x.grad for n, x in enumerate(given.leaves)}
    gradients = {name: None if g is None else host(g) for name, g in gradients.items()}
    after = repr(module), state(module)
    return before, after, {f"output {n}": host(y) for n, y in enumerate(outputs)}, gradients


def assert_same(ours: dict[str, Any], theirs: dict[str, Any], tolerance: float) -> None:
    assert list(ours) == list(theirs)
    for name, mine in ours.items():
        other = theirs[name]
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert mine.dtype == other.dtype, name
            assert mine.shape == other.shape, name
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance, err_msg=name)


def test_every_class_has_a_row() -> None:
    assert len(CLASSES) >= 160
    assert set(CLASSES) == {text.partition("(")[0] for text, _ in ROWS}


def signature(function: Any) -> list[tuple]:
    """Names, kinds and defaults of the parameters; a function as its name."""
    plain = lambda value: getattr(value, "__name__", value)
    return [
        (p.name, p.kind, plain(p.default)) for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("name", CLASSES)
def test_face(name: str) -> None:
    """The constructor's and forward's parameters, the bases, and the file."""
    ours, theirs = getattr(tlc.nn, name), getattr(torch.nn, name)
    if name != "Container":  # which PyTorch wraps in a function that warns
        assert signature(ours) == signature(theirs)
    if name != "RNNBase":  # which is called with anything
        assert signature(ours.forward) == signature(theirs.forward)
    bases = {kind.__name__ for kind in theirs.__mro__}
    assert bases - {kind.__name__ for kind in ours.__mro__} <= {"Generic", "TensorBase"}
    place = theirs.__module__.replace("torch", "tensorflow_lite_clone", 1)
    assert getattr(importlib.import_module(place), name) is ours
    assert ours.__doc__


# PyTorch's own remarks on the ways it goes
@pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor is True",
    "ignore:Using padding='same'",
    "ignore:LSTM with projections is not supported with oneDNN",
)
@pytest.mark.parametrize("training", (True, False), ids=("train", "eval"))
@pytest.mark.parametrize(("text", "inputs"), RUNNING, ids=[row[0] for row in RUNNING])
def test_call(text: str, inputs: str, training: bool) -> None:
    ours, theirs = (call(text, inputs, lib, training) for lib in (tlc, torch))
    for mine, other in zip(ours[:2], theirs[:2], strict=True):
        assert mine[0] == other[0]
    assert_same(ours[0][1], theirs[0][1], 5e-7)  # randn differs in the last bits
    assert_same(ours[1][1], theirs[1][1], 5e-5)
    assert_same(ours[2], theirs[2], 5e-5)
    assert_same(ours[3], theirs[3], 5e-5)


@pytest.mark.parametrize("text", [row[0] for row in ROWS])
def test_copies(text: str) -> None:
    """deepcopy, pickle, and a state that goes over to PyTorch and comes back."""
    module = made(text, tlc)
    wanted = state(module)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert type(twin) is type(module)
        assert repr(twin) == repr(module)
        assert_same(state(twin), wanted, 0)
        assert not {id(p) for p in twin.parameters()} & {id(p) for p in module.parameters()}
        assert twin.training

    other = made(text, torch, seed=5)
    assert repr(other) == repr(module)
    file = io.BytesIO()
    tlc.save(module.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=False))
    assert_same(state(other), wanted, 0)
    file = io.BytesIO()
    torch.save(other.state_dict(), file)
    file.seek(0)
    back = made(text, tlc, seed=6)
    back.load_state_dict(tlc.load(file, weights_only=False))
    assert_same(state(back), wanted, 0)


@pytest.mark.parametrize("text", [text for text, _ in ROWS if not text.startswith("Lazy")])
def test_double(text: str) -> None:
    """Parameters and floating buffers change their dtype, and nothing else."""
    ours, theirs = (state(made(text, lib).double()) for lib in (tlc, torch))
    assert_same(ours, theirs, 5e-7)
