"""`UntypedStorage.resize_`: memory that is given up, and comes back, under tensors and views."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.nn.against_torch import same

BOTH = pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])


def views(x: Any) -> list[Any]:
    return [x, x[2:4], x.view(2, 3).t(), x.detach(), x[1:1], x[::2]]


@BOTH
def test_what_fits_keeps_its_values(lib: Any) -> None:
    x = lib.arange(6.0)
    memory, seen = x.untyped_storage(), views(x)
    before = [view.tolist() for view in seen]
    assert memory.resize_(40) is memory
    assert (memory.nbytes(), memory.size(), len(memory)) == (40, 40, 40)
    assert [view.tolist() for view in seen] == before
    assert memory.tolist()[:24] == lib.arange(6.0).untyped_storage().tolist()
    memory.resize_(24)
    x[3] = 30.0
    assert seen[1].tolist() == [2.0, 30.0] and seen[2][0, 1] == 30.0
    assert [view._version for view in seen] == [1] * len(seen)
    assert memory._cdata == x.untyped_storage()._cdata
    assert memory.data_ptr() == x.data_ptr()


@BOTH
def test_memory_that_comes_back(lib: Any) -> None:
    """As sharded and reversible modules do it: freed after use, filled before the next one."""
    x = lib.arange(6.0)
    seen = views(x)
    before = [view.tolist() for view in seen]
    for _ in range(3):
        shapes = [(view.shape, view.stride(), view.storage_offset(), view.dtype) for view in seen]
        x.untyped_storage().resize_(0)
        assert (x.untyped_storage().nbytes(), x.untyped_storage().data_ptr()) == (0, 0)
        assert shapes == [
            (view.shape, view.stride(), view.storage_offset(), view.dtype) for view in seen
        ]
        x.untyped_storage().resize_(24)
        x.copy_(lib.arange(6.0))
        assert [view.tolist() for view in seen] == before
        late = x[4:]  # a view of the new memory
        seen.append(late)
        before.append([4.0, 5.0])


@BOTH
def test_typed_storage(lib: Any) -> None:
    x = lib.arange(4, dtype=lib.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory, other = x.storage(), x.storage()
        assert memory.resize_(0) is None
        assert (memory.size(), other.size(), memory._size(), memory.nbytes()) == (0, 0, 0, 0)
        x._typed_storage()._resize_(6)
        assert (memory.size(), other.size(), memory.nbytes()) == (6, 6, 48)
        memory.fill_(7)
        assert x.tolist() == [7] * 4 and x.set_(other).tolist() == [7] * 6
        wrapped = lib.storage.TypedStorage(
            wrap_storage=x.untyped_storage(), dtype=lib.int32, _internal=True
        )
        assert (wrapped.size(), wrapped.dtype, wrapped[0]) == (12, lib.int32, 7)


@BOTH
def test_a_graph_notices_that_values_were_written(lib: Any) -> None:
    leaf = lib.ones(3, requires_grad=True)
    y = leaf * 2
    z = (y * y).sum()
    y.untyped_storage().resize_(0)
    y.untyped_storage().resize_(12)
    with lib.no_grad():
        y.fill_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@BOTH
def test_the_device_meta(lib: Any) -> None:
    memory = lib.zeros(3, device="meta").untyped_storage()
    memory.resize_(100)
    assert memory.nbytes() == 100


def test_refused() -> None:
    same(lambda lib: lib.ones(2).untyped_storage().resize_("3"))
    with pytest.raises(RuntimeError):
        tlc.ones(2).untyped_storage().resize_(-1)


@pytest.mark.skipif(DEVICE != "cpu", reason="weak references are to NumPy's arrays")
def test_use_of_what_was_given_up_is_refused() -> None:
    """PyTorch reads address 0 then, which ends the process."""
    x = tlc.arange(6.0)
    row, memory = x[2:4], weakref.ref(x._storage.array)
    x.untyped_storage().resize_(0)
    assert memory() is None  # it is free
    for use in (
        lambda: x + 1, lambda: x.tolist(), lambda: x.numpy(), lambda: x.fill_(1), lambda: x[0],
        lambda: row.sum(), lambda: x @ x, lambda: repr(row), lambda: x.clone(), lambda: x.view(6),
        lambda: tlc.cat([x, row]), lambda: row.data_ptr(), lambda: x.copy_(tlc.ones(6)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="given up by resize_"):
            use()
