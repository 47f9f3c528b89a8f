"""Products that wait before a chain's formulas, as they may be asked for moments."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy.fusion import deferred
from tests.kernels.waiting import Rectified, chain, given, host, in_place, waiting

__all__ = ["chain"]  # a fixture


class Producing:
    """A product that fills an array with fives; `launched` tells how it was launched."""

    def __init__(self, chain: Any) -> None:
        self.y = given(1, 2, 3)
        self.launched: list[bool] = []
        chain.flush([self.y])
        chain.put_off(deferred.Product(self.y, self.launch))

    def launch(self, moments: bool) -> Any:
        assert not deferred.chain.on
        self.launched.append(moments)
        host(self.y)[...] = 5
        return "moments" if moments else None


def test_a_product_waits_for_its_moments(chain: Any) -> None:
    own = Producing(chain)
    more = waiting(lambda F, x: x + 1)(own.y)
    assert chain.moments(given(1, 2, 3)) is None
    assert chain.moments(own.y[1:]) is None
    assert own.launched == []
    assert chain.moments(own.y[:]) == "moments"
    assert chain.moments(own.y) is None
    chain.flush()
    assert own.launched == [True]
    assert host(more).tolist() == [6, 6, 6]


def test_a_result_that_is_written_has_other_moments(chain: Any) -> None:
    own = Producing(chain)
    part = own.y[1:]
    assert in_place(lambda F, x: x * 2)(part)
    assert chain.moments(own.y) is None
    chain.flush()
    assert own.launched == [False]
    assert host(own.y).tolist() == [5, 10, 10]


def test_a_product_goes_before_all_that_follows(chain: Any) -> None:
    first = Producing(chain)
    second = Producing(chain)
    assert (first.launched, second.launched) == ([False], [])
    view = deferred.viewing(lambda x: given(*host(x)))
    assert host(view(second.y)).tolist() == [5, 5, 5]
    third = Producing(chain)
    assert chain.outside(lambda: host(third.y).tolist()) == [5, 5, 5]
    picture = Rectified(chain)
    last = Producing(chain)
    picture.sums(chain, picture.mask(picture.g, picture.y))
    assert last.launched == [False]
    dropped = Producing(chain)
    chain.drop()
    chain.flush()
    assert dropped.launched == []
