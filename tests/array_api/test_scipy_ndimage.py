"""`scipy.ndimage` on tensors: every function that SciPy lists for any namespace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import check, lines

ndimage = pytest.importorskip("scipy.ndimage", reason="SciPy is not installed")

FILTERS = """
convolve(image, kernel)
convolve(image, kernel, mode="constant", cval=1.0)
convolve1d(image, v[:3], axis=0)
correlate(image, kernel)
correlate1d(image, v[:3])
gaussian_filter(image, 1.0)
gaussian_filter(image, (1.0, 0.5), order=1, mode="wrap")
gaussian_filter(float32, 1.0)
gaussian_filter1d(image, 1.0)
gaussian_gradient_magnitude(image, 1.0)
gaussian_laplace(image, 1.0)
generic_filter(image, np.ptp, 3)
generic_filter1d(image, double, 3)
generic_gradient_magnitude(image, sobel)
generic_laplace(image, second)
laplace(image)
maximum_filter(image, 3)
maximum_filter1d(image, 3)
median_filter(image, 3)
minimum_filter(image, footprint=cross)
minimum_filter1d(image, 3)
percentile_filter(image, 30, 3)
prewitt(image)
rank_filter(image, 1, 3)
sobel(image, axis=0)
uniform_filter(image, 3)
uniform_filter1d(image, 3)
vectorized_filter(image, xp.sum, size=3)
fourier_ellipsoid(spectrum, 2)
fourier_gaussian(spectrum, 1.0)
fourier_shift(spectrum, 1.5)
fourier_uniform(spectrum, 2)
"""
GEOMETRY = """
affine_transform(image, turn)
affine_transform(image, arr([2.0, 0.5]), order=1)
geometric_transform(image, lambda place: (place[0] * 0.5, place[1] + 0.3))
map_coordinates(image, arr([[0.5, 2.0, 3.3], [1.5, 4.0, 2.2]]))
rotate(image, 30.0)
shift(image, (1.0, -0.5))
shift(image, arr([1.0, -0.5]), order=1)
spline_filter(image)
spline_filter1d(image, axis=0)
zoom(image, 1.5)
zoom(image, (2, 0.5), order=1)
"""
MEASUREMENTS = """
center_of_mass(image**2)
center_of_mass(image**2, regions, arr([1, 2]))
extrema(image)
extrema(image, regions, arr([1, 2]))
find_objects(regions)
histogram(image, -2, 2, 5)
label(mask)
labeled_comprehension(image, regions, arr([1, 2]), np.mean, float, 0.0)
maximum(image, regions, arr([1, 2]))
maximum_position(image)
maximum_position(image, regions, arr([1, 2]))
mean(image)
mean(image, regions, arr([1, 2]))
median(image, regions, arr([1, 2]))
minimum(image, regions, arr([1, 2]))
minimum_position(image)
standard_deviation(image, regions, arr([1, 2]))
sum(image)
sum(image, regions, arr([1, 2]))
sum_labels(image, regions, arr([1, 2]))
value_indices(regions)
variance(image)
variance(image, regions, arr([1, 2]))
watershed_ift(arr(levels, "uint8"), arr(seeds, "int16"))
"""
MORPHOLOGY = """
binary_closing(mask)
binary_dilation(mask, iterations=2)
binary_dilation(mask, mask=image > 0)
binary_erosion(mask, cross)
binary_fill_holes(mask)
binary_hit_or_miss(mask)
binary_opening(mask)
binary_propagation(mask)
black_tophat(image, 3)
distance_transform_bf(mask)
distance_transform_cdt(mask)
distance_transform_edt(mask)
distance_transform_edt(mask, return_indices=True)
grey_closing(image, 3)
grey_dilation(image, 3)
grey_erosion(image, structure=kernel)
grey_opening(image, footprint=cross)
iterate_structure(cross, 2)
morphological_gradient(image, 3)
morphological_laplace(image, 3)
white_tophat(image, 3)
"""


def double(line: np.ndarray, out: np.ndarray) -> None:
    out[:] = 2 * line[1:-1]


def second(image: Any, axis: int, output: Any, mode: str, cval: float) -> Any:
    return ndimage.correlate1d(image, [1, -2, 1], axis, output, mode, cval, 0)


def names(given: dict[str, Any]) -> dict[str, Any]:
    regions = np.arange(108).reshape(9, 12) // 40
    levels = (np.arange(108).reshape(9, 12) * 7) % 50
    made = {
        "kernel": np.arange(9.0).reshape(3, 3) / 10,
        "cross": np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool),
        "turn": np.array([[0.8, -0.6], [0.6, 0.8]]),
        "regions": regions,
        "spectrum": np.fft.fft2(np.array(given["image"])),
    }
    made = {name: given["arr"](value) for name, value in made.items()}
    seeds = np.zeros((9, 12))
    seeds[1, 1], seeds[7, 9] = 1, 2
    return made | {"np": np, "double": double, "second": second, "levels": levels, "seeds": seeds}


@pytest.mark.parametrize("call", lines(FILTERS + GEOMETRY + MEASUREMENTS + MORPHOLOGY))
def test_call(call: str) -> None:
    check(call, ndimage, names=names)
