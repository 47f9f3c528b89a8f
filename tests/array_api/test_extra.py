"""array-api-extra, every function of it, and the helpers of array-api-compat on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.array_api.consumers import SINGLE, check, lines

xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")

CALLS = """
angle(z)
angle(v, deg=True)
apply_where(v > 0, v, lambda v: v * 2, fill_value=0.5)
apply_where(v > 0, (v, w), lambda v, w: v + w, lambda v, w: v - w)
xp.take(v, argpartition(v, 5))[5]
at(x, 0).set(1.0)
at(x)[1:3, :].add(y[1:3, :])
at(x)[x > 0].set(0.25)
at(x)[x > 0].multiply(2.0, copy=True)
at(v)[arr([1, 4])].subtract(1.0)
at(x)[:, 1].divide(arr(4.0))
at(p)[2:].power(2.0, copy=False)
at(p)[...].min(1.0)
at(p)[mask_of(p)].max(1.5)
atleast_nd(v, ndim=3)
atleast_nd(arr(2.0), ndim=1)
broadcast_shapes((3, 1), (4,))
cov(x.T)
cov(x, axis=0)
cov(x.T, fweights=arr(range(1, 21)))
create_diagonal(p)
create_diagonal(x[:3, :], offset=1)
default_dtype(xp, "integral") == xp.int64
deg2rad(v)
diag_indices(3, xp=xp)
expand_dims(v, axis=(0, 2))
isclose(x, x + 1e-12)
isclose(v, w, rtol=0.5, atol=0.1)
isin(labels, arr([0, 2]))
isin(labels, arr([0, 2]), invert=True)
kron(matrix, image[:3, :2])
kron(2.0, p)
lazy_apply(np.cumsum, v, as_numpy=True)
nan_to_num(x / (x * 0))
nan_to_num(arr([1.0, np.nan, np.inf]), fill_value=3.0)
nanmax(holes)
nanmax(holes, axis=0)
nanmean(holes, axis=0)
nanmin(holes, axis=1)
nansum(holes)
nunique(labels)
one_hot(labels, 3, dtype=xp.float64)
one_hot(labels, 3, axis=0, dtype=xp.int32)
pad(x, 1)
pad(image, [(1, 0), (0, 2)], constant_values=3.0)
partition(v, 5)[5]
partition(x, 2, axis=0)[2]
rad2deg(v)
searchsorted(xp.sort(v), w)
searchsorted(xp.sort(v), w, side="right")
setdiff1d(labels, arr([0, 7]))
sinc(x)
tril_indices(4, offset=-1, xp=xp)
triu_indices(3, m=5, xp=xp)
union1d(labels, arr([0, 7]))
unravel_index(arr([5, 17]), (4, 6))
"""


def names(given: dict[str, Any]) -> dict[str, Any]:
    holes = np.array(given["x"])
    holes[2, 1] = holes[5, 0] = np.nan
    return {"np": np, "holes": given["arr"](holes), "mask_of": lambda x: x > 1.0}


# array-api-extra drops what the newest standard has.
@pytest.mark.filterwarnings("ignore:`xpx.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("call", lines(CALLS))
def test_call(call: str) -> None:
    check(call, xpx, names=names)


def test_one_hot_of_the_default_dtype() -> None:
    check("one_hot(labels, 3)", xpx, SINGLE)


def test_compat_knows_tensors() -> None:
    x = tlc.zeros(2, 3)
    assert compat.is_array_api_obj(x) and compat.is_array_api_obj(tlc.nn.Parameter(x))
    assert compat.array_namespace(x, 1.0, None) is x.__array_namespace__()
    assert compat.get_namespace(x, x) is x.__array_namespace__()
    assert compat.is_writeable_array(x) and not compat.is_lazy_array(x)
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(x, np.zeros(2))


def test_compat_asks_devices_and_sizes() -> None:
    x = tlc.zeros(2, 3)
    assert compat.device(x) == x.device and compat.size(x) == 6
    assert compat.size(tlc.zeros(())) == 1
    assert compat.to_device(x, "cpu") is x
    assert compat.to_device(x, compat.device(x)).device.type == "cpu"


# What the helpers take for another library's they treat by its name.
@pytest.mark.parametrize(
    "library", "numpy cupy torch dask jax dpnp ndonnx pydata_sparse array_api_strict".split()
)
def test_compat_takes_tensors_for_nobody_elses(library: str) -> None:
    x = tlc.zeros(2)
    assert not getattr(compat, f"is_{library}_namespace", bool)(x.__array_namespace__())
    assert not getattr(compat, f"is_{library}_array", lambda x: False)(x)
