"""Sums that compute what waits on the way, over arrays in the host's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

from tests.kernels.waiting import Rectified, Summed, chain, host, in_place, waiting

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
