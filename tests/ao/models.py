"""The same model in both libraries, quantized by each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.ao.quantization

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.ao  # noqa: F401  (binds tlc.ao)
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)
from tests.device import DEVICE

LIBRARIES = (tlc, torch)


def device_of(lib: Any) -> str:
    return DEVICE if lib is tlc else "cpu"


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pair(make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The model of each library, with the weights of PyTorch's."""
    torch.manual_seed(0)
    reference = make(torch)
    mine = make(tlc)
    state = reference.state_dict()
    mine.load_state_dict({key: tlc.tensor(value.numpy()) for key, value in state.items()})
    return mine, reference


def quantized(
    make: Callable[[Any], Any], spec: Callable[[Any], Any] = lambda lib: None, dtype: str = "qint8"
) -> tuple[Any, Any]:
    """Both models, quantized; this package's on the device."""
    models = [
        lib.ao.quantization.quantize_dynamic(model, spec(lib), dtype=getattr(lib, dtype))
        for lib, model in zip(LIBRARIES, pair(make), strict=True)
    ]
    return models[0].to(DEVICE), models[1]


def leaves(value: Any) -> list[Any]:
    """The tensors of nested tuples, as NumPy's arrays."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [value.detach().cpu().numpy()]


def outputs(models: tuple[Any, Any], *inputs: Any) -> list[list[Any]]:
    """What each model gives for arrays."""
    found = []
    for lib, model in zip(LIBRARIES, models, strict=True):
        with lib.no_grad():
            found.append(leaves(model(*[lib.tensor(x).to(device_of(lib)) for x in inputs])))
    return found


def expect_close(models: tuple[Any, Any], *inputs: Any, atol: float = 1e-6) -> None:
    mine, reference = outputs(models, *inputs)
    assert len(mine) == len(reference)
    for a, b in zip(mine, reference, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol)
