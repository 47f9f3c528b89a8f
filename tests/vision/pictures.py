"""Pictures for both libraries, and the comparison of what is made of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import tv_tensors
from tests.device import DEVICE
from tests.vision import oracle  # noqa: F401  (makes torchvision importable)

PIL = pytest.importorskip("PIL.Image")

import torchvision.tv_tensors  # noqa: E402

HEIGHT, WIDTH = 23, 31


def smooth(seed: int = 0) -> np.ndarray:
    """A picture (H, W, 3) whose neighbours are alike, as a photograph's are."""
    rng = np.random.default_rng(seed)
    waves = rng.uniform(0.05, 0.4, (3, 2, 3))
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [
        sum(np.sin(a * x + b * y + c) for a, b, c in plane) + rng.normal(0, 0.1, x.shape)
        for plane in waves
    ]
    pixels = np.stack(planes, -1)
    pixels = (pixels - pixels.min()) / np.ptp(pixels)
    return (pixels * 255).round().astype(np.uint8)


PIXELS = smooth()
PILS = {
    "RGB": PIL.fromarray(PIXELS),
    "L": PIL.fromarray(PIXELS[:, :, 0]),
    "RGBA": PIL.fromarray(PIXELS).convert("RGBA"),
}
PLANES = np.ascontiguousarray(PIXELS.transpose(2, 0, 1))
ARRAYS = {
    "bytes": PLANES,
    "grey": PLANES[:1],
    "floats": (PLANES / 255).astype(np.float32),
    "batch": (np.stack([PLANES, PLANES[::-1]]) / 255).astype(np.float32),
}


def both(name: str) -> tuple[Any, Any]:
    """The picture of that name for us and for torchvision."""
    if name in PILS:
        return PILS[name].copy(), PILS[name].copy()
    return tlc.from_numpy(ARRAYS[name].copy()).to(DEVICE), torch.from_numpy(ARRAYS[name].copy())


def sample(kind: str) -> tuple[Any, Any]:
    """A sample with that kind of boxes for us and for torchvision: image, boxes, mask, label."""
    corners = np.array([[1, 2, 10, 12], [5, 5, 25, 20]], np.float32)
    if kind != "XYXY":
        corners[:, 2:] -= corners[:, :2]
    if kind == "CXCYWH":
        corners[:, :2] += corners[:, 2:] / 2
    result = []
    for library, kinds in ((tlc, tv_tensors), (torch, torchvision.tv_tensors)):
        boxes = kinds.BoundingBoxes(
            library.from_numpy(corners.copy()), format=kind, canvas_size=(HEIGHT, WIDTH)
        )
        image = kinds.Image(library.from_numpy(PLANES.copy()))
        mask = kinds.Mask(library.from_numpy(PLANES[0] // 60))
        result.append({"image": image, "boxes": boxes, "rest": [mask, 7, "name"]})
    return result[0], result[1]


def seed(number: int) -> None:
    """Starts all random streams that transforms draw from."""
    tlc.manual_seed(number)
    torch.manual_seed(number)
    random.seed(number)


def outcome(call: Any, *arguments: Any) -> Any:
    """What a call returns or raises, from streams as they are; Python's is set back."""
    state = random.getstate()
    try:
        return call(*arguments)
    except Exception as error:
        return error
    finally:
        random.setstate(state)


def assert_same(
    here: Any, there: Any, levels: float = 0, floats: float = 1e-5, share: float = 0
) -> None:
    """Both are the same: PIL images in every pixel, floats to rounding, bytes to so many levels.

    A `share` of the places may differ in any way. Errors are of the same type.
    """
    if isinstance(there, Exception) or isinstance(here, Exception):
        kinds = type(here), type(there)
        assert kinds[0] is kinds[1], (kinds, str(here)[:200], str(there)[:200])
    elif isinstance(there, dict):
        assert here.keys() == there.keys()
        for key in there:
            assert_same(here[key], there[key], levels, floats, share)
    elif isinstance(there, list | tuple):
        assert len(here) == len(there)
        for one, other in zip(here, there):
            assert_same(one, other, levels, floats, share)
    elif isinstance(there, PIL.Image):
        assert here.mode == there.mode and here.size == there.size
        close(np.asarray(here), np.asarray(there), levels, share)
    elif isinstance(there, torch.Tensor):
        assert type(here).__name__ == type(there).__name__
        assert str(here.dtype) == str(there.dtype) and here.shape == there.shape
        if hasattr(there, "canvas_size"):
            assert here.format.value == there.format.value
            assert tuple(here.canvas_size) == tuple(there.canvas_size)
        tolerance = floats if there.is_floating_point() else levels
        other = there.as_subclass(torch.Tensor).detach().numpy()
        close(here.detach().cpu().numpy(), other, tolerance, share)
    else:
        assert here == there


def close(here: np.ndarray, there: np.ndarray, tolerance: float, share: float) -> None:
    """No two numbers differ by more than the tolerance, but for a share of the places."""
    assert here.shape == there.shape
    difference = np.abs(here.astype(np.float64) - there.astype(np.float64))
    wrong = (difference > tolerance).sum() / max(difference.size, 1)
    assert wrong <= share, f"{difference.max()} in {wrong:.2%} of the places"
