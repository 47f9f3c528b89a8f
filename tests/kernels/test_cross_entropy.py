"""Cross-entropy's kernels beside the generic forms, at the borders of every variant."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu, run_override

pytestmark = needs_gpu
REDUCTIONS = ("none", "mean", "sum")
# The least and the most classes of every variant, and rows no pack divides.
CLASSES = (1, 2, 3, 10, 31, 32, 33, 100, 1000, 1024, 1025, 4096, 4097, 8191, 20001)
# (outer, classes, inner): one X each, ends of tiles, packs and none
SLABS = ((2, 21, 2056), (2, 40, 304), (3, 19, 5), (2, 33, 136), (5, 3, 2), (1, 700, 64))
OPTIONS = tuple(itertools.product((False, True), (-100, 1), (0.0, 0.2)))


def case(*shape: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, targets of which some are ignored, weights of classes."""
    rng = np.random.default_rng(sum(shape) + seed)
    x = rng.normal(0, 3, shape)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    target[rng.random(target.shape) < 0.2] = -100
    return x, target, rng.uniform(0.2, 2.0, shape[1])


def both(x: Any, target: np.ndarray, weight: Any, dtypes: Any = None, **parameters: Any) -> None:
    """Check the loss and its gradient."""
    parameters = {"axis": 1, "ignore_index": -100, "smoothing": 0.0} | parameters
    if parameters["ignore_index"] != -100:
        target = np.where(target < 0, parameters["ignore_index"], target)
    if parameters["reduction"] == "mean":  # where all are ignored, the mean is NaN by right
        target.flat[0] = 0
    more = {} if dtypes is None else {"dtypes": dtypes}
    check("cross_entropy", [x, target, weight], parameters, **more)
    host = x.array if isinstance(x, Laid) else x
    if isinstance(x, Laid) and x.layout == "expanded":
        host = np.broadcast_to(host[:1], host.shape)
    top = host.max(1)
    lse = top + np.log(np.exp(host - np.expand_dims(top, 1)).sum(1))
    shape = target.shape if parameters["reduction"] == "none" else ()
    g = np.random.default_rng(1).normal(1, 0.2, shape)
    check("cross_entropy_backward", [g, x, lse, target, weight], parameters, **more)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("classes", CLASSES)
def test_rows(classes: int, reduction: str) -> None:
    x, target, _ = case(7 if classes > 1024 else 130, classes)
    both(x, target, None, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("slab", SLABS)
def test_slabs(slab: tuple, reduction: str) -> None:
    x, target, _ = case(*slab)
    both(x, target, None, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("weighted", "ignored", "smoothing"), OPTIONS)
@pytest.mark.parametrize(
    "shape", [(70, 10), (9, 1000), (5, 8200), (3, 16500), (3, 21, 6, 16), (2, 5, 7)]
)
def test_options(
    shape: tuple, weighted: bool, ignored: int, smoothing: float, reduction: str
) -> None:
    x, target, weight = case(*shape)
    given = weight if weighted else None
    both(x, target, given, reduction=reduction, ignore_index=ignored, smoothing=smoothing)


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "sliced", "offset", "expanded"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_layouts(layout: str, smoothing: float) -> None:
    x, target, weight = case(4, 16, 8, 24)
    both(Laid(x, layout), target, Laid(weight, "offset"), reduction="mean", smoothing=smoothing)
    x, target, weight = case(16, 24)
    if layout != "channels_last":
        both(Laid(x, layout), target, weight, reduction="none", smoothing=smoothing)


def test_one_vector() -> None:
    x = np.random.default_rng(0).normal(0, 3, 9)
    for reduction in REDUCTIONS:
        parameters = {"axis": 0, "reduction": reduction, "ignore_index": -100, "smoothing": 0.1}
        check("cross_entropy", [x, np.array(3), None], parameters)
        lse = np.log(np.exp(x).sum())
        check("cross_entropy_backward", [np.array(1.5), x, lse, np.array(3), None], parameters)


def test_more_rows_than_blocks() -> None:
    """Blocks go on to further rows, and the sum of weights takes several blocks."""
    x, target, weight = case(300_000, 3)
    both(x, target, weight, ("float32",), reduction="mean")
    x, target, weight = case(9000, 3, 5)
    both(x, target, weight, ("float32", "bfloat16"), reduction="mean")


@pytest.mark.parametrize("shape", [(40, 10), (6, 3000), (3, 7, 5)])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_labels_out_of_range_are_told_and_ignored(shape: tuple, reduction: str) -> None:
    import cupy

    from tensorflow_lite_clone.backends.cupy import device_asserts

    x, target, weight = case(*shape)
    x, weight = cupy.asarray(x, np.float32), cupy.asarray(weight, np.float32)
    wrong = np.where(target < 0, -1, target)
    wrong.flat[3] = shape[1]
    wrong.flat[4], target.flat[4] = 10**12, -100
    target.flat[3] = -100
    parameters = {"axis": 1, "reduction": reduction, "ignore_index": -100, "smoothing": 0.1}
    results = []
    for labels in (target, wrong):
        labels = cupy.asarray(labels)
        loss, lse = run_override("cross_entropy", [x, labels, weight], parameters)
        arrays = [cupy.ones_like(loss), x, lse, labels, weight]
        results.append((loss, lse, run_override("cross_entropy_backward", arrays, parameters)))
        cupy.cuda.Device().synchronize()
        if len(results) == 2:
            with pytest.raises(RuntimeError, match="Target .* is out of bounds"):
                device_asserts.raise_reported()
        device_asserts.raise_reported()
    for right, other in zip(*results, strict=True):
        np.testing.assert_array_equal(right.get(), other.get())


def test_all_ignored() -> None:
    import cupy

    x, target = cupy.ones((5, 4), np.float32), cupy.full(5, -100)
    parameters = {"axis": 1, "reduction": "mean", "ignore_index": -100, "smoothing": 0.0}
    loss, lse = run_override("cross_entropy", [x, target, None], parameters)
    assert bool(cupy.isnan(loss))
    arrays = [cupy.ones_like(loss), x, lse, target, None]
    assert not run_override("cross_entropy_backward", arrays, parameters).any()


def test_values_without_a_number() -> None:
    """Rows of -inf, with an infinity, with NaN, with masked classes."""
    x, target, _ = case(8, 3000)
    target[:] = 5
    x[0] = -np.inf
    x[1, 7] = np.inf
    x[2, 2999] = np.nan
    x[3, 10:] = -np.inf
    parameters = {"axis": 1, "reduction": "none", "ignore_index": -100, "smoothing": 0.0}
    check("cross_entropy", [x, target, None], parameters, ("float32", "float64"))
    check("cross_entropy", [x.T[None].copy().reshape(1, 3000, 8), target[None], None], parameters,
          ("float32", "float64"))  # fmt: skip
