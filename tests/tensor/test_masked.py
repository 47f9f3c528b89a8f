"""`torch.masked` against PyTorch: values, dtypes and gradients, with and without masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

X = np.random.default_rng(7).standard_normal((3, 4)).round(2)
MASKS = {
    "none": None,
    "some": np.array([[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]], bool),
    "a row of nothing": np.array([[1], [0], [1]], bool),
    "numbers": np.array([0, 2, 1, 0]),
}
REDUCTIONS = "sum prod amax amin mean var std logsumexp argmax argmin".split()
ALONG = "softmax log_softmax softmin cumsum cumprod".split()


def outcome(lib: Any, name: str, kind: str, mask: Any, *args: Any, **kwargs: Any) -> Any:
    """(values and dtype, gradient) of a call, or the type of the exception."""
    x = lib.from_numpy(X.astype(kind)).requires_grad_(kind in ("float64", "float32"))
    if mask is not None:
        kwargs["mask"] = lib.from_numpy(mask)
    if "dtype" in kwargs:
        kwargs["dtype"] = getattr(lib, kwargs["dtype"])
    try:
        y = getattr(lib.masked, name)(x, *args, **kwargs)
    except Exception as error:
        return type(error)
    gradient = None
    if y.requires_grad:
        y.backward(lib.arange(1.0, y.numel() + 1, dtype=y.dtype).reshape(y.shape))
        gradient = None if x.grad is None else x.grad.numpy()
    return y.detach().numpy(), gradient


def same(name: str, kind: str, mask: Any, *args: Any, **kwargs: Any) -> None:
    theirs, ours = [outcome(lib, name, kind, mask, *args, **kwargs) for lib in (torch, tlc)]
    if isinstance(theirs, type):
        assert isinstance(ours, type) and issubclass(ours, theirs), (ours, theirs)
        return
    assert not isinstance(ours, type), ours
    for got, wanted in zip(ours, theirs, strict=True):
        assert (got is None) == (wanted is None)
        if got is not None:
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero", "ignore:overflow")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("dtype", ["float64", "int64", "int8", "bool"])
@pytest.mark.parametrize("name", [*REDUCTIONS, *ALONG, "median"])
def test_along_dimensions(name: str, dtype: str, mask: Any) -> None:
    for dim in (0, -1, 5) if dtype != "bool" else (0, -1):
        same(name, dtype, mask, dim)
        same(name, dtype, mask, dim, dtype="float64")
        if name in REDUCTIONS:
            same(name, dtype, mask, dim, keepdim=True)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_over_several_dimensions(name: str) -> None:
    for mask in MASKS.values():
        same(name, "float64", mask)
        if not name.startswith("arg"):
            same(name, "float64", mask, (0, 1), keepdim=True)
            same(name, "float64", mask, ())
            same(name, "float64", mask, (0, 0))


def test_norms() -> None:
    for mask in MASKS.values():
        for order in (0, 1, 2.0, 3, float("inf"), -float("inf")):
            same("norm", "float64", mask, order, 1)
            if order in (1, 2.0, 3):
                same("normalize", "float64", mask, order, 1)
                same("normalize", "float32", mask, order, 0, eps=0.5, dtype="float64")


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_corrections() -> None:
    for name in ("var", "std"):
        for options in ({"unbiased": False}, {"correction": 0}, {"correction": 2}):
            same(name, "float64", MASKS["some"], 1, **options)
        same(name, "float64", None, 1, unbiased=True, correction=1)


def test_logaddexp() -> None:
    for lib in (torch, tlc):
        x, y = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([0.5, 4.0, 3.0])
        mask = lib.tensor([True, False, True])
        both = lib.masked.logaddexp(
            x, y, input_mask=mask, other_mask=lib.tensor([True, True, False])
        )
        assert both.tolist() == pytest.approx([1.4740769841801067, 4.0, 3.0])


def test_masks_that_do_not_fit() -> None:
    for lib in (torch, tlc):
        with pytest.raises(IndexError):
            lib.masked.sum(lib.ones(3), 0, mask=lib.ones(1, 3).bool())
        with pytest.raises(RuntimeError):
            lib.masked.sum(lib.ones(3), 0, mask=lib.ones(2).bool())


def test_masked_tensors_are_named_as_missing() -> None:
    assert not tlc.masked.is_masked_tensor(tlc.ones(2))
    with pytest.raises(AttributeError, match="planned"):
        tlc.masked.masked_tensor(tlc.ones(2), tlc.ones(2).bool())
