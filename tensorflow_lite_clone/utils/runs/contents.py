"""Numbers, histograms, curves and sound of what programs log, before a format is given to them."""

from __future__ import annotations

import io
import wave
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.core.dtypes import bfloat16
from tensorflow_lite_clone.tensor import Tensor


def make_np(x: Any) -> np.ndarray:
    """A NumPy array of a tensor, an array or a number (then of one element).

    bfloat16 becomes float32. NotImplementedError for anything else.
    """
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.float() if x.dtype == bfloat16 else x).numpy()
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def number(x: Any) -> float:
    """A tensor or array of one element, or what `make_np` takes, as a float."""
    array = make_np(x).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). Was given size: "
            f"{array.size} and {array.ndim} dimensions."
        )
    return float(array)


class Histogram(NamedTuple):
    """Counts of values: ``counts[i]`` of them lie between ``limits[i - 1]`` and ``limits[i]``."""

    min: float
    max: float
    num: int
    sum: float
    sum_squares: float
    limits: list[float]
    counts: list[int]


# The ends of the buckets "tensorflow": 1e-12 times the powers of 1.1 up to 1e20, of both signs.
_FIRST, _LAST, _GROWTH = 1e-12, 1e20, 1.1


def default_bins() -> list[float]:
    """The ends of the buckets that `add_histogram` calls "tensorflow"."""
    ends, end = [], _FIRST
    while end < _LAST:
        ends.append(end)
        end *= _GROWTH
    return [*[-end for end in reversed(ends)], 0, *ends]


def histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> Histogram:
    """Counts of values between the ends `bins` (or what else `numpy.histogram` takes).

    More than `max_bins` of them are joined; empty ones at either side are left out but one, which
    says where the first begins. No counts where all values lie elsewhere. ValueError where there
    is no value.
    """
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        starts = range(0, len(counts), step)
        limits = np.append(limits[list(starts)], limits[-1])
        counts = np.add.reduceat(counts, starts)
    filled = np.flatnonzero(counts)
    moments = values.min(), values.max(), len(values), values.sum(), values.dot(values)
    if filled.size == 0:
        return Histogram(*moments, [], [])
    first, last = filled[0], filled[-1]
    inside = [0, *counts[first : last + 1].tolist()]
    return Histogram(*moments, limits[first : last + 2].tolist(), inside)


def compute_curve(
    labels: np.ndarray,
    predictions: np.ndarray,
    num_thresholds: int | None = None,
    weights: Any = None,
) -> np.ndarray:
    """Rows of true and false positives, true and false negatives, precision and recall, for
    `num_thresholds` thresholds that lie evenly between 0 and 1."""
    n = 127 if num_thresholds is None else num_thresholds
    weights = 1.0 if weights is None else weights
    place = np.floor(predictions * (n - 1)).astype(np.int32)
    labels = labels.astype(float)

    def above(share: Any) -> np.ndarray:
        counts, _ = np.histogram(place, bins=n, range=(0, n - 1), weights=share)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = above(labels * weights), above((1 - labels) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(1e-7, tp + fp)
    recall = tp / np.maximum(1e-7, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


def sound(tensor: Any, sample_rate: int) -> tuple[bytes, int]:
    """The WAV file of one channel of sound, numbers from -1 to 1, and its length in samples."""
    samples = make_np(tensor).squeeze()
    if samples.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (np.clip(samples, -1, 1) * np.iinfo(np.int16).max).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    return buffer.getvalue(), len(samples)


def hyperparameter(value: Any) -> str | float:
    """A hyperparameter as text or number; ValueError for other types."""
    if isinstance(value, Tensor):
        value = value.reshape(-1)[0].item()
    if not isinstance(value, str | int | float):
        raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
    return value


def check_hyperparameters(hparam_dict: Any, metric_dict: Any, domains: Any) -> None:
    """TypeError for what is no dictionary, and for choices of another type than their value."""
    for name, mapping in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(mapping, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    if not isinstance(domains or {}, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for name, value in hparam_dict.items():
        choices = (domains or {}).get(name, [])
        same = isinstance(choices, list) and all(isinstance(c, type(value)) for c in choices)
        if value is not None and not same:
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                f"hparam_dict[{name}]."
            )
