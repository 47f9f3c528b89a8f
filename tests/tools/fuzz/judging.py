"""What becomes of a call on both sides, and how two outcomes differ."""

from __future__ import annotations

import unittest
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.op_db._case import TOLERANCE
from tests.op_db._check import OURS, TORCH, assert_close, flatten
from tests.op_db._device import Side

REFUSALS = (RuntimeError, IndexError, ValueError, TypeError)
#: With these PyTorch says that it lacks a kernel for a dtype, or wants another layout.
LACKS = ("not implemented for", "not supported", "unsupported", "view size is not compatible",
         "must be contiguous", "only supports", "expects floating", "does not support",
         "could not infer output dtype", "to be floating point", "cannot be converted to type",
         "primitive descriptor", "with stride 1", "can't be cast to the desired",
         "unexpected keyword argument",  # of a method that here is the function itself
         "INTERNAL ASSERT FAILED", "is_contiguous", "exceeds dimension size")  # fmt: skip
#: What PyTorch refuses and the array API standard has: docs/array_api.md.
STANDARD = ("step must be greater than zero", "does not match the shape of the indexed tensor",
            "tensors used as indices must be long")  # fmt: skip
#: How often a call was not compared, and why.
skipped: Counter[str] = Counter()
ASSERT = unittest.TestCase()
Tolerance = Callable[[str], tuple[float, float]]


def dtype_tolerance(dtype: str) -> tuple[float, float]:
    """The table's for a dtype; other dtypes are exact."""
    return TOLERANCE.get(dtype, (0.0, 0.0))


def outcome(function: Callable[[], Any]) -> Any:
    """What the function returns, or the exception that it raises."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001  any exception is an answer to compare
        return error


def refusals(ours: Any, theirs: Any, promised: bool = True, exact: bool = False) -> str | bool:
    """How the refusals differ; True if either refused and that is right, False if none did.

    `promised`: whether this package says that it takes such arguments. `exact`: whether the
    exceptions are to be of one kind.
    """
    if not isinstance(theirs, Exception) and unknown(theirs):
        return True
    if isinstance(ours, Exception) and not isinstance(ours, (*REFUSALS, type(theirs))):
        return f"crash: {type(ours).__name__}: {ours}"
    if isinstance(theirs, Exception):
        if any(word in str(theirs) for word in LACKS):
            skipped["PyTorch has no kernel for a dtype, or wants another layout"] += 1
            return True
        if any(word in str(theirs) for word in STANDARD):
            skipped["the array API standard has a result where PyTorch refuses"] += 1
            return True
        if isinstance(ours, Exception):
            kind = RuntimeError if isinstance(theirs, NotImplementedError) else type(theirs)
            if not exact or isinstance(ours, kind) or (_of_index(ours) and _of_index(theirs)):
                return True
            return f"refused with {ours!r}, in PyTorch {theirs!r}"
        return f"PyTorch refuses: {type(theirs).__name__}: {str(theirs).splitlines()[0]}"
    if isinstance(ours, Exception):
        return f"refused: {type(ours).__name__}: {ours}" if promised else True
    return False


def _of_index(error: Exception) -> bool:
    """An index out of bounds: which exception it is depends on PyTorch's path to it."""
    words = ("out of bounds", "out of range", "out of DATA bounds", "idx < num_embeddings")
    return isinstance(error, (IndexError, RuntimeError)) and any(w in str(error) for w in words)


def unknown(result: Any) -> bool:
    """Whether PyTorch's result has a dtype that does not exist here."""
    kinds = [x.dtype if TORCH.is_tensor(x) else x for x in flatten(result)]
    if any(kind is TORCH.module.complex32 for kind in kinds):
        skipped["the result is complex32, which does not exist here"] += 1
        return True
    return False


def said(comparison: Callable[[], None]) -> str | None:
    """None, or what the comparison says."""
    try:
        comparison()
    except AssertionError as error:
        return "differs: " + " ".join(str(error).split())[:300]
    return None


def alike(ours: Any, theirs: Any, tolerance: Tolerance = dtype_tolerance) -> None:
    """Equal types, dtypes, shapes and values."""
    ours, theirs = flatten(ours), flatten(theirs)
    ASSERT.assertEqual(len(ours), len(theirs), "number of results")
    for got, like in zip(ours, theirs, strict=True):
        if TORCH.is_tensor(like):
            ASSERT.assertTrue(OURS.is_tensor(got), f"a tensor was expected, not {got!r}")
            ASSERT.assertEqual(OURS.dtype(got), TORCH.dtype(like), "dtype")
            ASSERT.assertEqual(tuple(got.shape), tuple(like.shape), "shape")
            ASSERT.assertEqual(got.device.type, OURS.device, "device")
            assert_close(OURS.numpy(got), TORCH.numpy(like), twice(tolerance(TORCH.dtype(like))))
        elif isinstance(like, (float, complex)):
            ASSERT.assertIs(type(got), type(like), "type")
            assert_close(np.asarray(got), np.asarray(like), tolerance("float32"))
        elif isinstance(like, TORCH.module.dtype):
            ASSERT.assertEqual(str(got).rsplit(".", 1)[-1], str(like).rsplit(".", 1)[-1])
        else:
            ASSERT.assertEqual(got, like)
            ASSERT.assertEqual(type(got).__name__, type(like).__name__, "type")


def afterwards(
    result: Any, ours: list, theirs: list, before: list, tolerance: Tolerance = dtype_tolerance
) -> str | None:
    """How the arguments differ after the call; a call that refuses leaves ours as they were."""
    if isinstance(result, Exception):
        changed = [
            not np.array_equal(OURS.numpy(tensor), array, equal_nan=tensor.dtype.is_floating_point)
            for tensor, array in zip(ours, before, strict=True)
        ]
        return "refused, and an argument has changed" if any(changed) else None
    found = said(lambda: alike(ours, theirs, tolerance))
    return found and f"the arguments afterwards: {found}"


def twice(tolerance: tuple[float, float]) -> tuple[float, float]:
    """For an oracle that has rounded, too."""
    return 2 * tolerance[0], 2 * tolerance[1]


SIDES: tuple[Side, Side] = (OURS, TORCH)
