"""Initial values against PyTorch's: with the same seed, the same numbers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tests.nn.against_torch import raises, same

SHAPES = ((3, 5), (16, 4), (8, 3, 3), (6, 2, 3, 3), (4, 2, 2, 3, 2))

FILLS = {
    "uniform": lambda init, x: init.uniform_(x),
    "uniform_range": lambda init, x: init.uniform_(x, -3.0, 0.5),
    "normal": lambda init, x: init.normal_(x),
    "normal_moved": lambda init, x: init.normal_(x, 3.0, 0.1),
    "trunc_normal": lambda init, x: init.trunc_normal_(x),
    "trunc_normal_vit": lambda init, x: init.trunc_normal_(x, std=0.02),
    "trunc_normal_narrow": lambda init, x: init.trunc_normal_(x, 1.0, 2.0, -1.0, 2.5),
    "trunc_normal_one_side": lambda init, x: init.trunc_normal_(x, a=0.0, b=math.inf),
    "trunc_normal_little": lambda init, x: init.trunc_normal_(x, a=-0.1, b=0.2),
    "trunc_normal_tail": lambda init, x: init.trunc_normal_(x, 1.0, 2.0, 4.0, 5.0),
    "constant": lambda init, x: init.constant_(x, 0.3),
    "ones": lambda init, x: init.ones_(x),
    "zeros": lambda init, x: init.zeros_(x),
    "xavier_uniform": lambda init, x: init.xavier_uniform_(x),
    "xavier_uniform_gain": lambda init, x: init.xavier_uniform_(x, init.calculate_gain("relu")),
    "xavier_normal": lambda init, x: init.xavier_normal_(x, 0.5),
    "kaiming_uniform": lambda init, x: init.kaiming_uniform_(x),
    "kaiming_uniform_linear": lambda init, x: init.kaiming_uniform_(x, a=math.sqrt(5)),
    "kaiming_uniform_out": lambda init, x: init.kaiming_uniform_(
        x, mode="fan_out", nonlinearity="relu"
    ),
    "kaiming_normal": lambda init, x: init.kaiming_normal_(x, mode="FAN_OUT"),
    "kaiming_normal_tanh": lambda init, x: init.kaiming_normal_(x, nonlinearity="tanh"),
}


def filled(library, fill, shape, dtype):
    library.manual_seed(0)
    x = library.zeros(shape, dtype=getattr(library, dtype))
    result = fill(library.nn.init, x)
    assert result is x
    after = library.rand(3)  # the stream stands at the same place
    return np.asarray(x.float().numpy() if dtype != "float64" else x.numpy()), after.numpy()


@parameterized.expand(
    [
        (f"{name}_{dtype}", fill, dtype)
        for name, fill in FILLS.items()
        for dtype in ("float32", "float64")
    ]
)
def test_values(_, fill, dtype):
    for shape in SHAPES:
        (x, stream), (expected, expected_stream) = (
            filled(library, fill, shape, dtype) for library in (tlc, torch)
        )
        # The two differ in the last bits of logarithm and cosine.
        np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(stream, expected_stream)


@parameterized.expand([("half", "float16"), ("bfloat16", "bfloat16")])
def test_low_precision(_, dtype):
    for fill in (FILLS["uniform_range"], FILLS["constant"], FILLS["kaiming_uniform"]):
        x, expected = (filled(library, fill, (8, 4), dtype)[0] for library in (tlc, torch))
        np.testing.assert_allclose(x, expected, rtol=1e-2, atol=1e-2)


@parameterized.expand(
    [
        ("square", (3, 3), 1),
        ("wide", (2, 4), 1),
        ("tall", (4, 2), 1),
    ]
)
def test_eye(_, shape, __):
    same(lambda lib: lib.nn.init.eye_(lib.full(shape, 7.0)))


@parameterized.expand(
    [
        ("1d", (3, 3, 3), 1),
        ("1d_groups", (4, 2, 3), 2),
        ("1d_more_out", (5, 2, 4), 1),
        ("2d", (2, 3, 3, 2), 1),
        ("2d_groups", (6, 1, 3, 3), 3),
        ("3d", (2, 2, 1, 2, 3), 1),
    ]
)
def test_dirac(_, shape, groups):
    same(lambda lib: lib.nn.init.dirac_(lib.full(shape, 7.0), groups))


@parameterized.expand(
    [
        (f"{name}_{param}", name, param)
        for name in (*nn.init._GAINS, "leaky_relu")
        for param in (None, 2)
    ]
    + [("slope", "leaky_relu", 0.3), ("bool", "leaky_relu", True), ("text", "leaky_relu", "a")]
    + [("unknown", "gelu", None)]
)
def test_gain(_, nonlinearity, param):
    same(lambda lib: lib.nn.init.calculate_gain(nonlinearity, param))


def test_sparse():
    for library in (tlc, torch):
        library.manual_seed(0)
    x, expected = (
        library.nn.init.sparse_(library.ones(10, 4), 0.33, 0.5).numpy() for library in (tlc, torch)
    )
    np.testing.assert_allclose(x, expected, atol=1e-6)
    assert ((x == 0).sum(axis=0) == 4).all()


@parameterized.expand([("square", (4, 4)), ("wide", (3, 5)), ("tall", (6, 2)), ("conv", (4, 2, 3))])
def test_orthogonal(_, shape):
    pytest.importorskip("tensorflow_lite_clone.linalg")
    for library in (tlc, torch):
        library.manual_seed(0)
    x, expected = (
        library.nn.init.orthogonal_(library.empty(shape), 2.0).numpy() for library in (tlc, torch)
    )
    np.testing.assert_allclose(x, expected, atol=1e-5)
    flat = x.reshape(shape[0], -1)
    gram = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)


def test_parameters_are_filled_without_a_graph():
    def script(lib):
        p = lib.nn.Parameter(lib.zeros(2, 2))
        version = p._version
        filled = [
            lib.nn.init.uniform_(p) is p,
            lib.nn.init.eye_(p) is p,
            lib.nn.init.constant_(p, 2.0) is p,
            lib.nn.init.trunc_normal_(p) is p,
            lib.nn.init.zeros_(p) is p,
        ]
        return filled, p.is_leaf, p.requires_grad, p._version > version, p

    same(script)


def test_generator_is_used():
    values = []
    for library in (tlc, torch):
        generator = library.Generator()
        generator.manual_seed(3)
        library.manual_seed(0)
        before = library.get_rng_state().tolist()
        init = library.nn.init
        for fill in (init.uniform_, init.xavier_normal_, init.kaiming_uniform_):
            values.append(fill(library.empty(3, 2), generator=generator).tolist())
        assert library.get_rng_state().tolist() == before
    np.testing.assert_allclose(values[:3], values[3:], atol=1e-6)


ERRORS = {
    "eye_1d": lambda lib: lib.nn.init.eye_(lib.ones(3)),
    "dirac_2d": lambda lib: lib.nn.init.dirac_(lib.ones(3, 3)),
    "dirac_groups": lambda lib: lib.nn.init.dirac_(lib.ones(4, 2, 3), 3),
    "xavier_uniform_1d": lambda lib: lib.nn.init.xavier_uniform_(lib.ones(3)),
    "xavier_normal_1d": lambda lib: lib.nn.init.xavier_normal_(lib.ones(3)),
    "kaiming_uniform_1d": lambda lib: lib.nn.init.kaiming_uniform_(lib.ones(3)),
    "kaiming_normal_1d": lambda lib: lib.nn.init.kaiming_normal_(lib.ones(3)),
    "kaiming_mode": lambda lib: lib.nn.init.kaiming_uniform_(lib.ones(2, 2), mode="foo"),
    "kaiming_gain": lambda lib: lib.nn.init.kaiming_normal_(lib.ones(2, 2), nonlinearity="foo"),
    "orthogonal_1d": lambda lib: lib.nn.init.orthogonal_(lib.ones(3)),
    "sparse_1d": lambda lib: lib.nn.init.sparse_(lib.ones(3), 0.1),
    "uniform_range": lambda lib: lib.nn.init.uniform_(lib.ones(2), 1, 0),
    "normal_std": lambda lib: lib.nn.init.normal_(lib.ones(2), 0, -1),
    "trunc_normal_range": lambda lib: lib.nn.init.trunc_normal_(lib.ones(2), 0, 1, 2, 1),
    "trunc_normal_std": lambda lib: lib.nn.init.trunc_normal_(lib.ones(2), 0, 0),
}


@parameterized.expand(list(ERRORS.items()))
def test_errors(_, script):
    raises(script)


def test_empty_tensors():
    for name in ("xavier_uniform_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_"):
        same(lambda lib, name=name: getattr(lib.nn.init, name)(lib.empty(0, 3)))


def test_names_of_old():
    for name in ("uniform", "normal", "eye", "xavier_uniform", "kaiming_normal"):
        tlc.manual_seed(0)
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            old = getattr(nn.init, name)(tlc.empty(2, 2)).tolist()
        np.testing.assert_allclose(
            old,
            (torch.manual_seed(0), getattr(torch.nn.init, name + "_")(torch.empty(2, 2)))[1],
            atol=1e-6,
        )
    same(lambda lib: lib.nn.init.constant(lib.empty(2), 3.0))
