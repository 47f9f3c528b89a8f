"""Quantized tensors: codes, what they stand for, and how they print."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.ao.models import LIBRARIES, device_of, random
from tests.device import DEVICE

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of functions that are to go
DTYPES = {"qint8": (0.0131, -7), "quint8": (0.0214854861, 77), "qint32": (0.001, 3)}


def per_tensor(lib: Any, dtype: str, x: Any) -> Any:
    tensor = lib.tensor(x).to(device_of(lib))
    return lib.quantize_per_tensor(tensor, *DTYPES[dtype], getattr(lib, dtype))


def per_channel(lib: Any, dtype: str, x: Any, axis: int) -> Any:
    place, size = device_of(lib), x.shape[axis]
    scales = (lib.arange(size, dtype=lib.float32) + 1).to(place) * 0.0037
    zeros = lib.arange(size).to(place) % 5
    return lib.quantize_per_channel(
        lib.tensor(x).to(place), scales, zeros, axis, getattr(lib, dtype)
    )


def values(q: Any) -> tuple[Any, Any]:
    return q.int_repr().cpu().numpy(), q.dequantize().cpu().numpy()


@pytest.mark.parametrize("dtype", DTYPES)
def test_per_tensor(dtype: str) -> None:
    halves = (np.arange(-300, 300, dtype=np.float32) + 0.5) * np.float32(DTYPES[dtype][0])
    x = np.concatenate([random(3000) * 3, halves])
    mine, reference = [values(per_tensor(lib, dtype, x)) for lib in LIBRARIES]
    for a, b in zip(mine, reference, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_per_channel(dtype: str, axis: int) -> None:
    x = random(5, 6, 7)
    mine, reference = [values(per_channel(lib, dtype, x, axis)) for lib in LIBRARIES]
    for a, b in zip(mine, reference, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("reduce_range", [False, True])
def test_the_choice_of_a_scale(reduce_range: bool) -> None:
    rng = np.random.default_rng(0)
    ranges = [np.zeros(3), np.array([1e-40]), np.array([-3.0]), np.array([-1e-6, 2e-5])]
    for _ in range(500):
        numbers = rng.standard_normal(rng.integers(1, 20)) * 10 ** rng.uniform(-46, 3)
        ranges.append(numbers + rng.choice([0, 0, 1, -1, 10, 1e-5, -1e-6]))
    for numbers in ranges:
        x = numbers.astype(np.float32)
        mine = tlc._choose_qparams_per_tensor(tlc.tensor(x).to(DEVICE), reduce_range)
        assert tuple(mine) == torch._choose_qparams_per_tensor(torch.tensor(x), reduce_range), x


@pytest.mark.parametrize("dtype", ["qint8", "quint8"])
def test_dynamic(dtype: str) -> None:
    x = random(40)
    for reduce_range in (False, True):
        mine, reference = [
            lib.quantize_per_tensor_dynamic(
                lib.tensor(x).to(device_of(lib)), getattr(lib, dtype), reduce_range
            )
            for lib in LIBRARIES
        ]
        assert (mine.q_scale(), mine.q_zero_point()) == pytest.approx(
            (reference.q_scale(), reference.q_zero_point()), rel=1e-7
        )
        np.testing.assert_array_equal(values(mine)[0], values(reference)[0])


@pytest.mark.skipif(DEVICE != "cpu", reason="the device is printed")
@pytest.mark.parametrize("dtype", DTYPES)
def test_printing(dtype: str) -> None:
    for shape in ((2, 3), (0, 3), (4,), (50, 40)):
        mine, reference = [per_tensor(lib, dtype, random(*shape)) for lib in LIBRARIES]
        assert repr(mine) == repr(reference)
        if shape[0]:
            assert repr(mine[0]) == repr(reference[0])
    mine, reference = [per_channel(lib, dtype, random(2, 3), 1) for lib in LIBRARIES]
    assert repr(mine) == repr(reference)


FACTS: dict[str, Callable[[Any, Any], Any]] = {
    "facts": lambda lib, q: (
        [str(q.dtype), q.is_quantized, str(q.layout), str(q.qscheme()), q.shape, q.numel()]
        + [q.stride(), q.dim(), len(q), q.element_size(), q.requires_grad, q.is_contiguous()]
    ),
    "parameters": lambda lib, q: (q.q_scale(), q.q_zero_point(), lib.q_scale(q)),
    "type": lambda lib, q: q.cpu().type(),
    "views": lambda lib, q: [
        part.int_repr().tolist()
        for part in (q[1], q[:, 1:], q.view(6), q.reshape(3, 2), q.t(), q.permute(1, 0))
    ],
    "views know their scale": lambda lib, q: q[0].q_scale(),
    "copies": lambda lib, q: [
        part.int_repr().tolist() for part in (q.clone(), q.detach(), copy.deepcopy(q), copy.copy(q))
    ],
    "equal": lambda lib, q: (lib.equal(q, q.clone()), q.equal(q[:1])),
    "functions": lambda lib, q: (
        lib.int_repr(q).tolist(), lib.dequantize(q).tolist(), lib.dequantize([q])[0].tolist()
    ),
    "to its device": lambda lib, q: q.to(q.device).int_repr().tolist(),
    "channels of one without": lambda lib, q: q.q_per_channel_scales(),
    "numpy": lambda lib, q: q.numpy(),
    "tolist": lambda lib, q: q.tolist(),
    "sum of two": lambda lib, q: q + q,
    "product": lambda lib, q: lib.mm(q, q.dequantize().t()),
    "to a dtype": lambda lib, q: q.float(),
    "gradient": lambda lib, q: q.requires_grad_(),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_a_fact(name: str) -> None:
    found = []
    for lib in LIBRARIES:
        q = per_tensor(lib, "quint8", random(2, 3))
        try:
            found.append(FACTS[name](lib, q))
        except (RuntimeError, TypeError) as error:  # NotImplementedError is a RuntimeError
            found.append(TypeError if isinstance(error, TypeError) else RuntimeError)
    assert found[0] == found[1]


def test_channels() -> None:
    found = []
    for lib in LIBRARIES:
        q = per_channel(lib, "qint8", random(2, 3), 1)
        vectors = q.q_per_channel_scales(), q.q_per_channel_zero_points()
        facts: list[Any] = [str(vector.dtype) for vector in vectors]
        facts += [vector.tolist() for vector in vectors]
        facts += [q.q_per_channel_axis(), str(q.qscheme()), lib.equal(q, q.clone())]
        with pytest.raises(RuntimeError):
            q.q_scale()
        found.append(facts)
    assert found[0] == found[1]


BAD: dict[str, Callable[[Any, Any], Any]] = {
    "no quantized dtype": lambda lib, x: lib.quantize_per_tensor(x, 0.1, 0, lib.int8),
    "doubles": lambda lib, x: lib.quantize_per_tensor(x.double(), 0.1, 0, lib.qint8),
    "a large zero point": lambda lib, x: lib.quantize_per_tensor(x, 0.1, 128, lib.qint8),
    "a small zero point": lambda lib, x: lib.quantize_per_tensor(x, 0.1, -1, lib.quint8),
    "an axis": lambda lib, x: lib.quantize_per_channel(
        x, lib.ones(2), lib.zeros(2).long(), -2, lib.qint8
    ),
    "scales": lambda lib, x: lib.quantize_per_channel(
        x, lib.ones(2), lib.zeros(2).long(), 1, lib.qint8
    ),
    "NaN": lambda lib, x: lib._choose_qparams_per_tensor(x * float("nan")),
    "codes": lambda lib, x: lib._make_per_tensor_quantized_tensor(x, 0.1, 0),
    "an empty one": lambda lib, x: lib.zeros(2, dtype=lib.qint8),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    for lib in LIBRARIES:
        with pytest.raises(RuntimeError):
            BAD[name](lib, lib.tensor(random(2, 3)).to(device_of(lib)))


def test_bad_input_is_named() -> None:
    x = tlc.ones(2, 3)
    with pytest.raises(RuntimeError, match=r"only works on Float Tensor, got Double"):
        tlc.quantize_per_tensor(x.double(), 0.1, 0, tlc.qint8)
    with pytest.raises(RuntimeError, match="zero_point 300 is above upper bound"):
        tlc.quantize_per_tensor(x, 0.1, 300, tlc.quint8)
    with pytest.raises(RuntimeError, match="expected 3 got, 2"):
        tlc.quantize_per_channel(x, tlc.ones(2), tlc.zeros(3).long(), 1, tlc.qint8)
    with pytest.raises(RuntimeError, match=r"expected finite numbers .* \[1.0, inf\]"):
        tlc._choose_qparams_per_tensor(tlc.tensor([1.0, float("inf")]))
    with pytest.raises(NotImplementedError, match="dequantize"):
        tlc.exp(tlc.quantize_per_tensor(x, 0.1, 0, tlc.qint8))


def test_lists_and_parameters_in_tensors() -> None:
    found = []
    for lib in LIBRARIES:
        x = lib.tensor(random(2, 3))
        scale, zero = lib.tensor(0.1), lib.tensor(3)
        one = lib.quantize_per_tensor(x, scale, zero, lib.quint8)
        two = lib.quantize_per_tensor(
            [x, x], lib.tensor([0.1, 0.2]), lib.tensor([3, 4]), lib.quint8
        )
        found.append([(q.q_scale(), q.q_zero_point(), q.int_repr().tolist()) for q in (one, *two)])
        codes = lib.tensor([1, 2], dtype=lib.int8)
        made = lib._make_per_tensor_quantized_tensor(codes, 0.5, 1)
        found[-1].append((made.dequantize().tolist(), str(made.dtype)))
    assert found[0] == found[1]


def test_pickling() -> None:
    for q in (per_tensor(tlc, "quint8", random(2, 3)), per_channel(tlc, "qint8", random(2, 3), 1)):
        for again in (pickle.loads(pickle.dumps(q)), copy.deepcopy(q)):
            assert tlc.equal(again, q)
    scheme = tlc.per_channel_affine
    assert pickle.loads(pickle.dumps(scheme)) is scheme and copy.deepcopy(scheme) is scheme
