"""Every way the CPU has for convolutions and pools, against their generic forms in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy import (
    convolution,
)
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.op import TABLE

F: Any = backends.load("cpu").F

# the forms that a case is about, the input, the weight, and what differs from a plain convolution
KN2ROW, IM2COL, REMAINDERS = "kn2row", "im2col", "not col2im_products"
COL2IM, DEPTHWISE = "col2im_products", "depthwise"
CASES = [
    (KN2ROW, (5, 4, 9, 8), (4, 4, 3, 3), {"padding": (1, 1)}),
    (KN2ROW, (5, 4, 9, 8), (4, 4, 3, 3), {"padding": (2, 2), "dilation": (2, 2)}),
    (KN2ROW, (5, 4, 10, 9), (3, 4, 3, 2), {"padding": (1, 0)}),
    (KN2ROW, (3, 4, 5, 4, 4), (2, 4, 3, 3, 1), {"padding": (1, 1, 0)}),
    (KN2ROW, (3, 4, 70), (4, 4, 5), {"padding": (2,)}),
    (IM2COL, (5, 4, 9, 8), (4, 4, 3, 3), {}),  # too few windows
    (IM2COL, (3, 8, 12, 11), (44, 8, 3, 3), {"padding": (1, 1)}),
    (IM2COL, (3, 8, 12, 11), (6, 4, 3, 3), {"padding": (1, 1), "groups": 2}),
    (IM2COL, (3, 3, 23, 22), (6, 3, 7, 7), {"padding": (3, 3), "stride": (2, 2)}),
    (IM2COL, (5, 3, 9, 8), (16, 3, 3, 3), {"padding": (1, 1)}),  # short lines
    (IM2COL, (5, 4, 8, 8), (6, 4, 1, 1), {}),
    (IM2COL, (5, 4, 9, 7), (6, 4, 1, 1), {"stride": (2, 2)}),
    (IM2COL, (5, 4, 5, 5), (6, 4, 1, 1), {"padding": (1, 1)}),
    (IM2COL, (5, 4, 4, 4), (6, 4, 3, 3), {"padding": (1, 1)}),  # samples merge
    (IM2COL, (1, 4, 4, 4), (6, 4, 3, 3), {"padding": (1, 1)}),
    (IM2COL, (5, 6, 40), (4, 6, 3), {"padding": (2,), "stride": (2,)}),
    (IM2COL, (3, 2, 6, 5, 7), (4, 2, 3, 3, 3), {"padding": (1, 1, 1), "stride": (2, 1, 2)}),
    (REMAINDERS, (5, 4, 8, 8), (4, 4, 3, 3), {"padding": (1, 1), "stride": (2, 2)}),
    (REMAINDERS, (5, 4, 9, 10), (4, 4, 5, 3), {"padding": (2, 1), "stride": (3, 2)}),
    (REMAINDERS, (5, 4, 12, 12), (4, 2, 3, 3), {"dilation": (2, 2), "stride": (3, 2), "groups": 2}),
    (REMAINDERS, (5, 4, 12, 12), (4, 4, 3, 3), {"dilation": (2, 2), "stride": (2, 2)}),
    (COL2IM, (5, 2, 8, 8), (9, 2, 3, 3), {"padding": (1, 1)}),
    (COL2IM, (5, 4, 9, 9), (4, 4, 2, 2), {"padding": (2, 2), "stride": (2, 2)}),
    (COL2IM, (1, 4, 4, 4), (20, 4, 3, 3), {"padding": (3, 3)}),
    (DEPTHWISE, (5, 6, 9, 8), (6, 1, 3, 3), {"padding": (1, 1), "groups": 6}),
    (DEPTHWISE, (5, 6, 9, 8), (6, 1, 3, 2), {"padding": (0, 3), "groups": 6}),
    (DEPTHWISE, (5, 6, 9, 8), (6, 1, 3, 3), {"stride": (2, 1), "groups": 6}),
    (DEPTHWISE, (5, 6, 30), (6, 1, 4), {"dilation": (3,), "groups": 6}),
    (DEPTHWISE, (5, 3, 4, 5, 6), (3, 1, 2, 3, 2), {"padding": (1, 1, 1), "groups": 3}),
]


@pytest.fixture(params=[False, True], ids=["at once", "in blocks and threads"])
def small(request: pytest.FixtureRequest) -> Iterator[None]:
    """Blocks and threads for what has a thousand elements."""
    if not request.param:
        yield
        return
    with (
        mock.patch.object(flags, "threads", 2),
        mock.patch.object(tuning, "convolution_thread_ns", 1),
        mock.patch.object(tuning, "im2col_bytes", 1 << 12),
        mock.patch.object(tuning, "depthwise_block", 1 << 7),
        mock.patch.object(tuning, "pooling_block", 1 << 7),
        mock.patch.object(tuning, "pooling_per_thread", 1),
    ):
        yield


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("form", "x", "w", "more"), CASES)
def test_convolutions(form: str, x: tuple, w: tuple, more: dict, dtype: str) -> None:
    options = {"stride": (1,) * len(x[2:]), "padding": (0,) * len(x[2:]),
               "dilation": (1,) * len(x[2:]), "groups": 1, **more}  # fmt: skip
    rng = np.random.default_rng(0)

    def numbers(shape: tuple) -> np.ndarray:
        real = rng.standard_normal(shape)
        return (real + 1j * rng.standard_normal(shape) if dtype[0] == "c" else real).astype(dtype)

    arrays = numbers(x), numbers(w), numbers(w[:1])
    name = form.removeprefix("not ")
    with mock.patch.object(convolution, name, wraps=getattr(convolution, name)) as reached:
        y = agrees("conv", arrays, options)
        g = numbers(y.shape)
        agrees("conv_backward_input", (g, arrays[1]), {**options, "size": x[2:]})
        agrees("conv_backward_weight", (g, arrays[0]), {**options, "kernel": w[2:]})
    assert reached.called == (name == form)


def agrees(op: str, arrays: tuple, options: dict) -> np.ndarray:
    """Of contiguous arrays, and of ones that lie as channels_last, as the generic form has it."""
    wide = [a.astype(np.result_type(a.dtype, np.float64)) for a in arrays]
    expected = TABLE[op].forward(F, *wide, **options)  # type: ignore[union-attr]
    last = [np.moveaxis(np.moveaxis(a, 1, -1).copy(), -1, 1) if a.ndim > 1 else a for a in arrays]
    tolerance = (40 if arrays[0].dtype == np.float32 else 1000) * np.finfo(arrays[0].dtype).eps
    for given in (arrays, last):
        result = getattr(F, op)(*given, **options)
        assert result.dtype == arrays[0].dtype
        assert result.flags.c_contiguous
        np.testing.assert_allclose(result, expected, 0, tolerance * np.abs(expected).max())
    return result


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil"), [
    ((2, 2), (2, 2), (0, 0), False), ((3, 3), (2, 2), (1, 1), False),
    ((3, 2), (2, 3), (1, 0), True), ((2, 2), (3, 3), (0, 0), False),
    ((3, 3), (1, 1), (1, 1), False),
])  # fmt: skip
def test_pools(kernel: tuple, stride: tuple, padding: tuple, ceil: bool) -> None:
    finite = np.random.default_rng(0).integers(0, 9, (7, 3, 9, 8)).astype(np.float32)  # with ties
    strange = finite.copy()
    strange[0, 0, 0, 0] = np.inf
    strange[3, 1] = np.nan
    options: dict = {"kernel": kernel, "stride": stride, "padding": padding}
    for x in (strange, finite):
        more = {**options, "dilation": (1, 1)}
        y = same("max_pool", (x,), {**more, "ceil_mode": ceil})[0]
        same("max_pool_backward", (y, x, y, None), more)
    more = {**options, "size": x.shape[2:], "ceil_mode": ceil, "include": False, "divisor": None}
    y = same("avg_pool", (x,), more)
    same("avg_pool_backward", (y,), more)
    for divisor in (None, 5):
        whole = {**more, "kernel": x.shape[2:], "padding": (0, 0), "divisor": divisor}
        same("avg_pool", (x,), whole)


def same(op: str, arrays: tuple, options: dict) -> Any:
    result = getattr(F, op)(*arrays, **options)
    expected = TABLE[op].forward(F, *arrays, **options)  # type: ignore[union-attr]
    ours, theirs = [r[0] if type(r) is tuple else r for r in (result, expected)]
    np.testing.assert_allclose(ours, theirs, 1e-6, 1e-6)  # sums in another order
    return result
