"""SciPy's other modules on tensors: every function that it lists for any namespace."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import SAMPLES, SINGLE, check, lines, refused

hierarchy = pytest.importorskip("scipy.cluster.hierarchy", reason="SciPy is not installed")
distance = pytest.importorskip("scipy.spatial.distance", reason="SciPy is not installed")
qmc = pytest.importorskip("scipy.stats.qmc", reason="SciPy is not installed")

# tree: a clustering of x; clusters: its three clusters; distances: of all pairs of x.
CALLS = {
    "cluster.hierarchy": """
average(distances)
centroid(distances)
complete(distances)
cophenet(tree)
cophenet(tree, distances)
correspond(tree, distances)
dendrogram(tree, no_plot=True)
fcluster(tree, 3, "maxclust")
fclusterdata(x, 1.5)
from_mlab_linkage(to_mlab_linkage(tree))
inconsistent(tree)
is_isomorphic(labels, guess)
is_monotonic(tree)
is_valid_im(inconsistent(tree))
is_valid_linkage(tree)
leaders(tree, clusters)
leaves_list(tree)
linkage(x)
linkage(x, "ward", optimal_ordering=True)
maxRstat(tree, inconsistent(tree), 1)
maxdists(tree)
maxinconsts(tree, inconsistent(tree))
median(distances)
num_obs_linkage(tree)
optimal_leaf_ordering(tree, distances)
single(distances)
to_mlab_linkage(tree)
to_tree(tree).pre_order()
ward(distances)
weighted(distances)
""",
    "cluster.vq": """
kmeans(x, x[:3, :])
kmeans(x, 3, rng=1)
kmeans2(x, x[:3, :], minit="matrix")
kmeans2(x, 3, minit="++", rng=1)
vq(x, x[:3, :])
whiten(x)
""",
    "constants": """
convert_temperature(p, "Celsius", "Kelvin")
lambda2nu(p)
nu2lambda(p)
""",
    "differentiate": """
derivative(xp.exp, p)
derivative(lambda s, k: xp.sin(k * s), p, args=(q,), step_direction=arr([0, 1, -1, 0, 1, -1]))
jacobian(lambda s: xp.stack([s[0] * s[1], xp.sin(s[0])]), arr([0.5, 1.5]))
hessian(lambda s: s[0] ** 2 * s[1] + xp.exp(s[1]), arr([0.5, 1.5]))
""",
    "fft": """
dct(v)
dct(x, type=3, axis=0, norm="ortho")
dctn(image)
dst(v)
dstn(image)
fft(z)
fft(v)
fft(x, 8, axis=0, norm="ortho")
fft2(image)
fftn(image)
fftn(x, s=(4, 4), axes=(0, 1))
fftshift(v)
fftshift(image, axes=0)
fht(p, 0.1, 0.5)
hfft(z)
hfft2(fft2(image))
hfftn(fft2(image))
idct(v)
idctn(image)
idst(v)
idstn(image)
ifft(z)
ifft2(image)
ifftn(image)
ifftshift(v)
ifht(p, 0.1, 0.5)
ihfft(v)
ihfft2(image)
ihfftn(image)
irfft(z)
irfft(z, 7)
irfft2(rfft2(image))
irfftn(rfftn(image))
rfft(v)
rfft2(image)
rfftn(image, norm="forward")
""",
    "integrate": """
cubature(lambda s: xp.exp(-xp.sum(s * s, axis=-1)), arr([0.0, 0.0]), arr([1.0, 2.0]))
cubature(lambda s: xp.cos(s[:, 0]), arr([0.0]), arr([1.0]), rule="gk15")
cumulative_simpson(v, x=t[:20])
cumulative_trapezoid(v, t[:20])
cumulative_trapezoid(x, axis=0, initial=0)
nsum(lambda k: 1 / k**2, arr(1.0), arr(np.inf))
qmc_quad(lambda s: xp.sum(s**2, axis=0), arr([0.0, 0.0]), arr([1.0, 2.0]), qrng=halton())
romb(v[:17], dx=0.1)
romb(x[:9, :], axis=0)
tanhsinh(lambda s: xp.exp(-s * s), arr(0.0), arr([1.0, np.inf])).integral
trapezoid(v, t[:20])
trapezoid(x, dx=0.5, axis=0)
""",
    "interpolate": """
BPoly(arr([[1.0, 2.0], [0.5, 1.0], [2.0, 0.0]]), arr([0.0, 1.0, 2.0]))(u)
BSpline(knots, p, 3)(u)
BSpline(knots, p, 3).derivative()(u)
BSpline(knots, p, 3).integrate(0.1, 0.9)
BSpline.basis_element(arr([0.0, 1.0, 2.0, 3.0]))(u)
BSpline.design_matrix(u, knots, 3).toarray().shape
CubicHermiteSpline(t, sine, xp.cos(t))(u)
CubicSpline(t, sine)(u)
CubicSpline(t, sine, bc_type="clamped").derivative()(u)
NdBSpline((knots, knots), p[:, None] * q, 3)(xp.stack([u, u * u], axis=-1))
PPoly(arr([[1.0, 2.0], [0.5, 1.0]]), arr([0.0, 1.0, 2.0]))(u)
PPoly(arr([[1.0, 2.0], [-0.5, 1.0]]), arr([0.0, 1.0, 2.0])).antiderivative().integrate(0.2, 1.5)
RBFInterpolator(x, y)(x[:5, :] + 0.1)
RBFInterpolator(x, v, kernel="gaussian", epsilon=1.5)(x[:5, :] + 0.1)
RegularGridInterpolator((t[:9], t[:12]), image)(xp.stack([u * 0.6, u], axis=-1))
RegularGridInterpolator((t[:9], t[:12]), image, "nearest")(xp.stack([u * 0.6, u], axis=-1))
RegularGridInterpolator((t[:9], t[:12]), image, "cubic")(xp.stack([u * 0.6, u], axis=-1))
list(generate_knots(t, sine, s=0.01))
make_interp_spline(t, sine)(u)
make_interp_spline(t, sine, k=2).c
make_lsq_spline(t, sine, arr([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0]))(u)
make_smoothing_spline(t, sine)(u)
make_splprep([t, sine], s=0.1)[0](u)
make_splprep([t, sine], s=0.1)[1]
make_splrep(t, sine, s=0.1)(u)
""",
    "linalg": """
block_diag(matrix, image, float32)
fiedler(p)
orthogonal_procrustes(x, y)
""",
    "optimize": """
rosen(p)
rosen_der(p)
rosen_hess(p)
rosen_hess_prod(p, q)
""",
    "optimize.elementwise": """
bracket_minimum(lambda s: (s - 3.0) ** 2, p)
bracket_root(lambda s, k: s**3 - k, p, args=(q,))
find_minimum(lambda s, k: (s - k) ** 2, (q - 1.0, q + 0.1, q + 2.0), args=(q,))
find_root(lambda s, k: s**3 - k, (p * 0, p * 0 + 3.0), args=(q,))
""",
}
# Float32, or SciPy makes arrays of numbers on the way, which are of the default dtype.
SINGLE_CALLS = {
    "fft": """
fft(float32)
fftfreq(9, 0.5, xp=xp)
rfftfreq(9, 0.5, xp=xp)
""",
    "integrate": """
cumulative_simpson(v, dx=0.1)
cumulative_simpson(x, axis=0, initial=0)
""",
    "interpolate": """
Akima1DInterpolator(t, sine)(u)
Akima1DInterpolator(t, sine, method="makima")(u, nu=1)
""",
}
_NUMPY = "SciPy computes with NumPy's arrays, and gives them back, for PyTorch's tensors too"
_PCHIP = "SciPy passes NumPy's array to the namespace's reshape, for PyTorch's tensors too"
REFUSED = {
    "BPoly.from_derivatives(arr([0.0, 1.0]), arr([[1.0, 2.0], [3.0, 4.0]]))(u)": _NUMPY,
    "PPoly(arr([[1.0, 2.0], [-0.5, 1.0]]), arr([0.0, 1.0, 2.0])).roots()": _NUMPY,
    "PchipInterpolator(t, sine)(u)": _PCHIP,
    "PchipInterpolator(t, sine).derivative()(u)": _PCHIP,
}


def names(given: dict[str, Any]) -> dict[str, Any]:
    tree = hierarchy.linkage(SAMPLES["x"])
    made = {
        "tree": tree,
        "clusters": hierarchy.fcluster(tree, 3, "maxclust"),
        "distances": distance.pdist(SAMPLES["x"]),
        "sine": np.sin(3 * SAMPLES["t"]),
        "knots": np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.6, 1.0, 1.0, 1.0, 1.0]),
    }
    made = {name: given["arr"](value) for name, value in made.items()}
    return made | {"np": np, "halton": lambda: qmc.Halton(2, rng=1)}


def pairs(calls: dict[str, str]) -> list[tuple[str, str]]:
    return [(home, call) for home in calls for call in lines(calls[home])]


def module(home: str) -> Any:
    return importlib.import_module(f"scipy.{home}")


@pytest.mark.parametrize(("home", "call"), pairs(CALLS))
def test_call(home: str, call: str) -> None:
    check(call, module(home), names=names)


@pytest.mark.parametrize(("home", "call"), pairs(SINGLE_CALLS))
def test_of_the_default_dtype(home: str, call: str) -> None:
    check(call, module(home), SINGLE, names=names)


@pytest.mark.parametrize("call", refused(REFUSED))
def test_refused(call: str) -> None:
    check(call, module("interpolate"), names=names)
