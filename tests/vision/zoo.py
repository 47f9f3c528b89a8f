"""The same model built by torchvision and here, and what to compare of the two."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)
from tensorflow_lite_clone import vision
from tests.vision.declared import imported

REASON = "torchvision is not installed"
INSTALLED = find_spec("torchvision") is not None
needs_torchvision = pytest.mark.skipif(not INSTALLED, reason=REASON)


def oracle() -> Any:
    """torchvision, or a skip where it is not installed."""
    if not INSTALLED:
        pytest.skip(REASON)
    return imported()


def libraries() -> tuple[SimpleNamespace, SimpleNamespace]:
    """Both as (torch, nn, models, ops), torchvision's first."""
    torchvision = oracle()
    there = SimpleNamespace(
        torch=torch, nn=torch.nn, models=torchvision.models, ops=torchvision.ops
    )
    return there, SimpleNamespace(torch=tlc, nn=tlc.nn, models=vision.models, ops=vision.ops)


Script = Callable[[Any], Any]


def twins(build: Script) -> tuple[Any, Any]:
    """The model that `build(library)` makes of either, from the same seed."""
    result = []
    for library in libraries():
        library.torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the inceptions' first values
            result.append(build(library))
    return result[0], result[1]


@contextmanager
def untouched_memory() -> Iterator[None]:
    """Inside, parameters get no first values, so that the largest models cost nothing."""
    with (
        mock.patch.multiple(torch.nn.init, **_nothing(torch.nn.init)),
        mock.patch.multiple(tlc.nn.init, **_nothing(tlc.nn.init)),
    ):
        yield


def _nothing(init: Any) -> dict[str, Any]:
    names = [name for name in dir(init) if name.endswith("_") and not name.startswith("_")]
    return {name: lambda tensor, *args, **kwargs: tensor for name in names}


@contextmanager
def narrow_linear() -> Iterator[None]:
    """Inside, linear layers have 8 features at most: those of AlexNet and VGG have 10^8 weights."""

    def narrowed(nn: Any) -> type:
        class Linear(nn.Linear):
            def __init__(self, in_features: int, out_features: int) -> None:
                super().__init__(min(in_features, 8), min(out_features, 8))

        return Linear

    with (
        mock.patch.object(torch.nn, "Linear", narrowed(torch.nn)),
        mock.patch.object(tlc.nn, "Linear", narrowed(tlc.nn)),
    ):
        yield


def layout(module: Any) -> list[tuple[str, list[int], str]]:
    """Name, shape and dtype of each tensor of the state, in order."""
    return [
        (name, list(value.shape), str(value.dtype).rpartition(".")[2])
        for name, value in module.state_dict().items()
    ]


def array(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy()


def tensor(value: torch.Tensor) -> Any:
    """PyTorch's tensor as ours."""
    return tlc.from_numpy(value.detach().numpy().copy())


def assert_same_start(there: Any, here: Any) -> None:
    """The same tree, printed alike, the same state and the same first values."""
    assert layout(here) == layout(there)
    assert repr(here).replace("tensorflow_lite_clone", "torch") == repr(there)
    assert [name for name, _ in here.named_parameters()] == [
        name for name, _ in there.named_parameters()
    ]
    state = here.state_dict()
    for name, value in there.state_dict().items():
        # Normal draws are within 2.4e-7 of PyTorch's, for a deviation of 1.
        np.testing.assert_allclose(
            array(state[name]), array(value), rtol=1e-5, atol=1e-6, err_msg=name
        )


def outputs(result: Any) -> list[Any]:
    if isinstance(result, dict):
        assert list(result) == sorted(result, reverse=True)  # "out" before "aux"
        return list(result.values())
    return list(result) if isinstance(result, tuple) else [result]


def assert_same_run(there: Any, here: Any, *inputs: torch.Tensor) -> None:
    """In float64: outputs, gradients and buffers in training, then outputs in evaluation.

    The same state is loaded into both first, so the dictionaries are exchanged as well.
    """
    there.double()
    here.double().load_state_dict({k: tensor(v) for k, v in there.state_dict().items()})
    inputs = tuple(x.double() for x in inputs)
    for mode in ("train", "eval"):
        results = []
        for module, module_inputs, library in (
            (there, inputs, torch),
            (here, tuple(map(tensor, inputs)), tlc),
        ):
            getattr(module, mode)()
            library.manual_seed(1)
            results.append(outputs(module(*module_inputs)))
        assert len(results[0]) == len(results[1])
        for expected, y in zip(*results):
            np.testing.assert_allclose(array(y), array(expected), rtol=1e-8, atol=1e-10)
        if mode == "train":
            for values in results:
                sum((y**2).sum() for y in values).backward()
            assert_same_gradients(there, here)
            buffers = dict(here.named_buffers())
            for name, value in there.named_buffers():
                np.testing.assert_allclose(
                    array(buffers[name]), array(value), rtol=1e-8, atol=1e-10
                )


def assert_same_gradients(there: Any, here: Any) -> None:
    parameters = dict(here.named_parameters())
    # A bias before a batch norm has a gradient of zero, and then of nothing but rounding: so
    # what counts is the error beside the largest gradient of all. Batch norms of a few values
    # magnify rounding to 6e-9 of it; any mistake is larger by far.
    scale = max(float(p.grad.abs().max()) for p in there.parameters() if p.grad is not None)
    assert scale > 0
    for name, parameter in there.named_parameters():
        assert (parameters[name].grad is None) == (parameter.grad is None), name
        if parameter.grad is not None:
            np.testing.assert_allclose(
                array(parameters[name].grad) / scale,
                array(parameter.grad) / scale,
                rtol=1e-7,
                atol=1e-7,
                err_msg=name,
            )


def outcome(script: Script, library: Any) -> tuple[Any, list[tuple[str, str]]]:
    """What a script returns (as plain values) or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = script(library)
        except Exception as error:
            result = type(error).__name__, str(error).split(" Supported")[0]
    return result, [(type(w.message).__name__, str(w.message)) for w in caught]


def same(script: Script) -> Any:
    """Asserts that a script does the same with both; returns what it does."""
    there, here = (outcome(script, library) for library in libraries())
    assert here == there
    return here[0]
