"""`torch.signal.windows` and `torch.functional` against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.functional
import torch.signal.windows

import tensorflow_lite_clone as tlc

WINDOWS: dict[str, list[dict[str, Any]]] = {
    name: [{}] for name in "bartlett blackman cosine hamming hann nuttall".split()
} | {
    "exponential": [{}, {"tau": 2.5}, {"center": 1.0, "sym": False}],
    "gaussian": [{}, {"std": 0.4}],
    "general_cosine": [{"a": [0.46, 0.23, 0.31]}, {"a": (1.0,)}],
    "general_hamming": [{}, {"alpha": 0.7}],
    "kaiser": [{}, {"beta": 0.0}, {"beta": 30.0}],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_values(name: str) -> None:
    for options in WINDOWS[name]:
        for length in (0, 1, 2, 3, 6, 17):
            for more in ({}, {"sym": False}):
                for dtype, tolerance in (("float32", 2e-6), ("float64", 1e-12)):
                    got, wanted = [
                        getattr(lib.signal.windows, name)(
                            length, dtype=getattr(lib, dtype), **options | more
                        ).numpy()
                        for lib in (tlc, torch)
                    ]
                    assert got.dtype == wanted.dtype == dtype
                    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])
def test_errors(lib: Any) -> None:
    windows = lib.signal.windows
    for refused in (
        lambda: windows.hann(-1),
        lambda: windows.hann(3, dtype=lib.float16),
        lambda: windows.hann(3, layout=lib.sparse_coo),
        lambda: windows.exponential(3, center=1.0),
        lambda: windows.exponential(3, tau=0.0),
        lambda: windows.gaussian(3, std=-1.0),
        lambda: windows.kaiser(3, beta=-1.0),
        lambda: windows.general_cosine(3, a=[]),
    ):
        with pytest.raises(ValueError):
            refused()
    for refused in (lambda: windows.hann(2.5), lambda: windows.general_cosine(3, a=2.0)):
        with pytest.raises(TypeError):
            refused()


def test_options() -> None:
    assert tlc.signal.windows.hann(4).dtype is tlc.get_default_dtype()
    assert tlc.signal.windows.hann(4, requires_grad=True).requires_grad
    assert set(tlc.signal.windows.__all__) == set(torch.signal.windows.__all__)


def test_functional() -> None:
    assert set(tlc.functional.__all__) == set(torch.functional.__all__)
    for name in torch.functional.__all__:
        assert getattr(tlc.functional, name) is getattr(tlc, name)
