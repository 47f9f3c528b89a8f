"""`out=` and writes in place where memory is shared, resized or of another dtype, as in PyTorch."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

BOTH = pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])


@contextlib.contextmanager
def heard() -> Any:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


@BOTH
def test_an_output_that_is_an_input_keeps_its_size(lib: Any) -> None:
    x = lib.ones(3, 1)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        lib.add(x, lib.ones(1, 4), out=x)
    assert lib.add(x, lib.ones(3, 1), out=x) is x
    assert x.tolist() == [[2.0]] * 3


@BOTH
def test_an_output_that_overlaps_an_input_is_refused(lib: Any) -> None:
    x = lib.arange(9.0).reshape(3, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        lib.sin(x, out=x.t())
    line = lib.arange(5.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        lib.mul(line[:4], 2, out=line[1:])
    assert line.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    lib.mul(line[:2], 2, out=line[2:4])
    assert line.tolist() == [0.0, 1.0, 0.0, 2.0, 4.0]


@BOTH
def test_a_resized_output_has_the_strides_of_the_result(lib: Any) -> None:
    out = lib.empty(2, 5)
    with heard() as found:
        lib.exp(lib.ones(3, 4).t(), out=out)
    assert out.shape == (4, 3) and out.stride() == (1, 4)
    assert any("resized" in str(warning.message) for warning in found)


@BOTH
def test_a_line_fills_an_output_of_as_many_elements(lib: Any) -> None:
    out = lib.zeros(3, 1)
    assert lib.arange(3, out=out).tolist() == [[0.0], [1.0], [2.0]]
    assert lib.linspace(0, 1, 3, out=out).shape == lib.fft.rfftfreq(5, out=out).shape == (3, 1)


@BOTH
@pytest.mark.parametrize("name", ["neg", "floor", "mm", "inverse", "clamp"])
def test_an_output_of_the_results_own_dtype(lib: Any, name: str) -> None:
    x = lib.eye(3)
    rest = {"mm": (x,), "clamp": (0,)}.get(name, ())
    with pytest.raises(RuntimeError):
        getattr(lib, name)(x, *rest, out=lib.zeros(3, 3, dtype=lib.float64))


@BOTH
def test_an_output_of_a_wider_dtype(lib: Any) -> None:
    out = lib.zeros(3, 3, dtype=lib.float64)
    for found in (lib.exp(lib.zeros(3, 3), out=out), lib.clamp(out, lib.ones(()), out=out)):
        assert found is out and out.tolist() == [[1.0] * 3] * 3


@BOTH
def test_writes_into_expanded_tensors(lib: Any) -> None:
    x = lib.zeros(3)
    with heard():
        x.expand(2, 3).masked_fill_(lib.ones(2, 3, dtype=lib.bool), 2)
    assert x.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="single"):
        x.expand(2, 3).masked_scatter_(lib.ones(2, 3, dtype=lib.bool), lib.ones(6))


@BOTH
def test_an_index_is_looked_at_where_it_reads(lib: Any) -> None:
    x = lib.zeros(5, 2, 0)
    assert x[:, [7]].shape == (5, 1, 0) and x[lib.tensor([7])].shape == (1, 2, 0)
    x[[7, 8]] = 1.0
    for key in ((slice(None), slice(None), [0]), (0, slice(None), lib.tensor([0]))):
        with pytest.raises(IndexError):
            x[key]


@BOTH
def test_a_write_of_nothing_counts(lib: Any) -> None:
    x, nowhere = lib.zeros(5, 1), lib.zeros(5, 0, dtype=lib.int64)
    x.scatter_add_(1, nowhere, lib.zeros(5, 0))
    assert x._version == 1
    source = lib.zeros(5, 0, requires_grad=True)
    assert lib.zeros(5, 1).scatter_add(1, nowhere, source).requires_grad


@BOTH
def test_the_reciprocal_of_two_bytes(lib: Any) -> None:
    x = lib.tensor([3.1], dtype=lib.bfloat16)
    assert ((1 + 1j) / x).tolist() == (x.reciprocal() * (1 + 1j)).tolist()


@BOTH
def test_a_view_of_another_size_needs_a_last_stride_of_one(lib: Any) -> None:
    for x, dtype in ((lib.zeros(2, dtype=lib.complex128)[::2], lib.float64),
                     (lib.zeros(1, 2, dtype=lib.int64).t()[:, :1].t().t(), lib.uint8)):
        if x.stride(-1) != 1:
            with pytest.raises(RuntimeError):
                x.view(dtype)
    assert lib.zeros(6)[::3].view(lib.int32).stride() == (3,)
    assert lib.view_as_complex(lib.zeros(5).as_strided((1, 2), (3, 1))).stride() == (1,)
