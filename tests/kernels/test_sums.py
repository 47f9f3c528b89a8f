"""Sums that compute what waits on the way, over arrays in the host's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy.fusion import deferred
from tests.kernels.waiting import Rectified, Summed, chain, given, host, in_place, waiting

__all__ = ["chain"]  # a fixture


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


def test_sums_of_what_a_later_kernel_reads_in_another_layout(chain: Any) -> None:
    own = Rectified(chain)
    total = waiting(lambda F, x, y: x + y)
    masked = own.mask(total(own.g, own.more), own.y)
    rows, steps = own.picture(False), given(1, 2, 3).reshape(3, 1, 1, 1, 1)
    spread = total(waiting(lambda F, x: x * 2)(rows), steps)
    assert own.sums(chain, masked) is None
    chain.flush()
    np.testing.assert_allclose(host(masked), own.expected(host(own.g) + host(own.more))[0])
    np.testing.assert_allclose(host(spread), host(rows) * 2 + host(steps))


@pytest.mark.parametrize("how", ["in place", "outside", "gone"])
def test_modified_inputs_are_not_recomputed(chain: Any, how: str) -> None:
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


@pytest.mark.parametrize("what", ["x", "y", "shift"])
@pytest.mark.parametrize("how", ["waits too", "waits", "outside"])
def test_inputs_modified_before_recomputation(chain: Any, what: str, how: str) -> None:
    own = Rectified(chain)
    own.y = waiting(lambda F, x, b: F.maximum(x - b, 0))(own.x, own.shift)
    if how == "waits":
        chain.flush()
    if how == "outside":
        deferred.writing(lambda array: host(array).fill(-0.5))(getattr(own, what))
    else:
        assert in_place(lambda F, x: 0.5 - x)(getattr(own, what))
    chain.flush()
    masked = own.mask(own.g, own.y)
    sums = own.sums(chain, masked)
    chain.flush()
    expected = own.expected(host(own.g))
    np.testing.assert_allclose(host(masked), expected[0])
    np.testing.assert_allclose(sums, expected[1], 1e-5, 1e-5)


def test_inputs_modified_during_recomputation(chain: Any) -> None:
    own = Rectified(chain)
    masked, expected = own.mask(own.g, own.y), own.expected(host(own.g))
    np.testing.assert_allclose(own.sums(chain, masked), expected[1], 1e-5, 1e-5)
    assert chain.steps
    chain.outside(lambda array: host(array).fill(3), own.x)
    last = waiting(lambda F, g, x: g - x)(masked, own.x)
    chain.flush()
    np.testing.assert_allclose(host(masked), expected[0])
    np.testing.assert_allclose(host(last), expected[0] - 3)


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
