"""einops on tensors: with the backend for them, and without one by way of `einops.array_api`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.array_api.consumers import check, lines

einops = pytest.importorskip("einops", reason="einops is not installed")
backend = pytest.importorskip("tensorflow_lite_clone.utils.einops")
without_backend = pytest.importorskip("einops.array_api", reason="einops is not installed")

SHARED = """
rearrange(b, "b h c -> h (c b)")
rearrange(b, "b (h w) c -> (b h) c w", h=2)
rearrange(b, "b h c -> b h 1 c")
rearrange(b, "... c -> c ...")
rearrange([x, y], "n h c -> h (n c)")
rearrange(image > 0, "(a b) c -> b a c", a=3)
rearrange(arr(2.0), "-> 1 1")
reduce(b, "b (h w) c -> b c", "max", w=3)
reduce(b, "b h c -> b", "mean")
reduce(b, "b h c -> ", "sum")
reduce(b, "b h c -> c", "prod")
reduce(b, "b h c -> b 1 c", "min")
reduce(b, "b (h w) c -> b w c", "sum", h=2)
reduce(b > 0, "b h c -> h", "any")
reduce(b > 0, "b h c -> b c", "all")
repeat(b, "b h c -> b (k h) c", k=2)
repeat(v, "i -> i j", j=3)
repeat(arr(2.0), "-> j", j=3)
repeat(labels, "i -> (i k)", k=2)
pack([b[:, 0, :], b], "b * c")[0]
pack([b[:, 0, :], b], "b * c")[1]
unpack(b, [(2, 2), (2,)], "b * c")
asnumpy(x).shape
"""
WITH_BACKEND = """
reduce(b, "b h c -> h", last)
einsum(b, b, "b h c, b k c -> b h k")
einsum(x, y, v, "i j, i k, i -> j k")
einsum(matrix, "i i ->")
parse_shape(b, "b _ c")
"""


def last(x: Any, axes: tuple[int, ...]) -> Any:
    """A reduction of one's own."""
    for axis in sorted(axes, reverse=True):
        x = x[(slice(None),) * axis + (-1,)]
    return x


def names(given: dict[str, Any]) -> dict[str, Any]:
    return {"b": given["arr"](np.random.default_rng(2).standard_normal((2, 6, 5))), "last": last}


@pytest.mark.parametrize("call", lines(SHARED + WITH_BACKEND))
def test_call(call: str) -> None:
    check(call, einops, names=names)


@pytest.mark.parametrize("call", [line for line in lines(SHARED) if "[x, y]" not in line])
def test_call_without_a_backend(call: str) -> None:
    check(call, without_backend, names=names)


DIFFERENTIABLE = [
    ("rearrange", "b (h w) c -> (b h) c w", {"h": 2}),
    ("repeat", "b h c -> b (k h) c", {"k": 2}),
    ("reduce", "b (h w) c -> b c", {"w": 3, "reduction": "sum"}),
    ("reduce", "b h c -> b", {"reduction": "mean"}),
    ("reduce", "b h c -> h c", {"reduction": "max"}),
    ("reduce", "b h c -> b h", {"reduction": "min"}),
    ("reduce", "b h c -> c", {"reduction": "prod"}),
]


@pytest.mark.parametrize("home", [einops, without_backend], ids=["backend", "array_api"])
@pytest.mark.parametrize(("name", "pattern", "axes"), DIFFERENTIABLE)
def test_gradients(home: Any, name: str, pattern: str, axes: dict[str, Any]) -> None:
    x = tlc.randn(2, 6, 5, dtype=tlc.float64, requires_grad=True)
    function = getattr(home, name)
    assert tlc.autograd.gradcheck(lambda x: function(x, pattern=pattern, **axes), x)
    assert tlc.autograd.gradgradcheck(lambda x: function(x, pattern=pattern, **axes), x)


def test_gradients_of_products_and_packs() -> None:
    x = tlc.randn(2, 3, 4, dtype=tlc.float64, requires_grad=True)
    y = tlc.randn(2, 5, 4, dtype=tlc.float64, requires_grad=True)
    assert tlc.autograd.gradcheck(lambda x, y: einops.einsum(x, y, "b h c, b k c -> b h k"), (x, y))
    assert tlc.autograd.gradcheck(lambda x, y: einops.pack([x, y], "b * c")[0], (x, y))


def test_backend() -> None:
    served = backend.Backend()
    x = served.from_numpy(np.ones((2, 3)))
    assert served.is_appropriate_type(x) and not served.is_appropriate_type(np.ones(2))
    assert type(served.to_numpy(x.requires_grad_())) is np.ndarray
    assert served.arange(1, 4).tolist() == [1, 2, 3]
    assert tuple(served.add_axis(x, 1).shape) == (2, 1, 3)
    assert tuple(served.tile(x, (1, 2)).shape) == (2, 6)
    assert served.is_float_type(x) and not served.is_float_type(x > 0)
    with pytest.raises(NotImplementedError, match="non-floating"):
        einops.reduce(tlc.ones(2, 3, dtype=tlc.int64), "a b -> a", "mean")
