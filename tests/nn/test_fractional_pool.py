"""Fractional max pooling as modules, and its random places."""

from __future__ import annotations

import pytest

from tests.nn.against_torch import raises, same


@pytest.mark.parametrize(
    "made",
    ["2d(2, 3)", "2d((2, 1), output_ratio=0.5)", "3d(2, (2, 1, 2), return_indices=True)"],
)
def test_modules(made):
    def script(lib):
        pool = eval(f"lib.nn.FractionalMaxPool{made}")
        ndim = int(made[0])
        x = (lib.arange(2.0 * 7**ndim) * 37 % 101).reshape(1, 2, *[7] * ndim)
        lib.manual_seed(3)
        return repr(pool), list(pool.state_dict()), pool(x)

    same(script)


@pytest.mark.parametrize("shape", [(2, 3, 6, 6), (3, 6, 6)])
def test_drawn_places(shape):
    def script(lib):
        lib.manual_seed(1)
        x = lib.rand(*shape)
        return lib.nn.functional.fractional_max_pool2d(x, 2, 3, return_indices=True)

    same(script)


def test_given_places():
    def script(lib):
        samples = lib.tensor([[[0.3, 0.6]]])
        pool = lib.nn.FractionalMaxPool2d(2, 3, _random_samples=samples)
        return pool((lib.arange(36.0) * 37 % 101).reshape(1, 1, 6, 6)), list(pool.state_dict())

    same(script)


@pytest.mark.parametrize(
    "made", ["2d(2)", "2d(2, 3, 0.5)", "2d(2, output_ratio=1.5)", "3d(2, output_ratio=(0.5, 0, 1))"]
)
def test_wrong_options(made):
    raises(lambda lib: eval(f"lib.nn.FractionalMaxPool{made}"))


def test_no_channels():
    raises(lambda lib: lib.nn.functional.fractional_max_pool2d(lib.zeros(2, 3), 2, 1))
