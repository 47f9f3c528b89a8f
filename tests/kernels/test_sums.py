"""Sums that compute what waits on the way, over arrays in the host's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy.fusion import deferred, source
from tests.kernels.test_deferred import chain, computed, given, host, in_place, waiting

__all__ = ["chain"]


class Summed:
    """In place of sums on the device; `kernels` has what each read and wrote."""

    kernels: list[tuple[int, int]] = []
    partial: Any = None

    def launch(self, name: str, made: Any, walked: Any, form: Any, given: Any, out: Any) -> None:
        source.write(name, made, form)
        values = computed(made, given)
        for value, result in zip(values, out):
            host(result)[...] = value
        self.partial = np.stack([value.sum((0, 2, 3)) for value in values[len(out) :]], 1)
        whole = [s for s in made.operands if given[s.value].size == walked.elements]
        self.kernels.append((len(whole), len(out)))


@pytest.fixture(autouse=True)
def summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "Sums", Summed)
    Summed.kernels.clear()


class Rectified:
    """A rectified array, made of `x` and one number a channel, and the gradient that comes back."""

    def __init__(self, chain: Any, last: bool = True) -> None:
        self.x, self.g, self.more = [self.picture(last) for _ in range(3)]
        self.shift = given(*np.linspace(-1, 1, 4)).reshape(1, 4, 1, 1)
        self.y = waiting(lambda F, x, b: F.maximum(x - b, 0))(self.x, self.shift)
        chain.flush()
        self.mask = waiting(lambda F, g, y: F.where(y > 0, g, 0))

    def picture(self, last: bool) -> Any:
        shape = (9, 6, 5, 4) if last else (9, 4, 6, 5)
        array = given(*np.random.default_rng().standard_normal(9 * 4 * 6 * 5)).reshape(shape)
        return array.transpose(0, 3, 1, 2) if last else array

    def sums(self, chain: Any, g: Any) -> Any:
        arrays = g, self.x, self.shift
        return chain.sums("sums", lambda F, g, x, b: (g, g * (x - b)), arrays, ())

    def expected(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        masked = np.where(host(self.y) > 0, g, 0)
        slopes = masked * (host(self.x) - host(self.shift))
        return masked, np.stack([masked.sum((0, 2, 3)), slopes.sum((0, 2, 3))], 1)


def test_sums_of_what_waits_compute_it_again(chain: Any) -> None:
    own = Rectified(chain)
    masked = own.mask(own.g, own.y)
    memory = host(masked)
    sums = own.sums(chain, masked)
    assert len(chain.steps) == 1 and Summed.kernels == [(2, 0)]  # y is not read
    last = waiting(lambda F, g, x: g - x)(masked, own.x)
    del masked
    own_y, expected = own.y, own.expected(host(own.g))
    host(own_y)[...] = np.nan  # nor by the last one
    chain.flush()
    np.testing.assert_allclose(sums, expected[1], 1e-5, 1e-5)
    np.testing.assert_allclose(host(last), expected[0] - host(own.x))
    assert np.isnan(memory).all()


def test_sums_write_what_is_read_again(chain: Any) -> None:
    own = Rectified(chain)
    total = waiting(lambda F, x, y: x + y)(own.g, own.more)
    masked = own.mask(total, own.y)
    del total
    sums = own.sums(chain, masked)
    assert not chain.steps and Summed.kernels == [(4, 1)]
    expected = own.expected(host(own.g) + host(own.more))
    np.testing.assert_allclose(host(masked), expected[0])
    np.testing.assert_allclose(sums, expected[1], 1e-5, 1e-5)


@pytest.mark.parametrize("how", ["in place", "outside", "gone"])
def test_what_changed_is_not_computed_again(chain: Any, how: str) -> None:
    own = Rectified(chain)
    if how == "in place":
        assert in_place(lambda F, x: x + 1)(own.shift)
        chain.flush()
    elif how == "outside":
        chain.outside(lambda lists: host(own.shift).fill(3), [[own.shift]])
    else:
        own.x = own.picture(True)
    masked = own.mask(own.g, own.y)
    sums = own.sums(chain, masked)
    assert Summed.kernels == [(3, 1)]
    expected = own.expected(host(own.g))
    np.testing.assert_allclose(host(masked), expected[0])
    np.testing.assert_allclose(sums, expected[1], 1e-5, 1e-5)


def test_sums_of_other_layouts_are_left_to_others(chain: Any) -> None:
    own = Rectified(chain, last=False)
    masked = own.mask(own.g, own.y)
    assert own.sums(chain, masked) is None
    assert len(chain.steps) == 1
    own = Rectified(chain)
    shift = waiting(lambda F, x: x + 1)(own.shift)
    arrays = own.mask(own.g, own.y), own.x, shift
    assert chain.sums("sums", lambda F, g, x, b: (g, g * (x - b)), arrays, ()) is None
    assert len(chain.steps) == 2 and not Summed.kernels  # one of them has to be launched before
