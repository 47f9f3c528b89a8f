"""Fourier transforms of drawn shapes, lengths, dimensions, dtypes and layouts, against torch."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.properties.strategies import DTYPES, dtype_of

LINES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
GRIDS = ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
PLANES = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
OTHERS = ("fftfreq", "rfftfreq", "fftshift", "ifftshift")
NORMS = (None, "backward", "ortho", "forward")
WIDE = ("float32", "float64", "complex64", "complex128")
# float32's, for sums of up to 300 terms of size 3
ROUNDING = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-11, "complex128": 1e-11}

shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
dtypes = st.sampled_from(WIDE * 6 + DTYPES)
layouts = st.sampled_from(("contiguous", "reversed", "stepped", "expanded"))


def numbers(shape, dtype, seed):
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool" or "int" in dtype:
        return rng.integers(0, 4, shape)
    array = rng.uniform(-3, 3, shape)
    return array + 1j * rng.uniform(-3, 3, shape) if dtype.startswith("complex") else array


def laid_out(array, layout):
    """A larger array, and how a library's tensor of it becomes one of the array's values."""
    if layout == "reversed":
        back = tuple(reversed(range(array.ndim)))
        return array.transpose(), lambda x: x.permute(back)
    if layout == "stepped":
        return np.repeat(array, 2, -1), lambda x: x[..., ::2]
    if layout == "expanded":
        return array[:1], lambda x: x.expand(array.shape)
    return array, lambda x: x


def tensor(lib, array, dtype):
    made = lib.from_numpy(np.array(array)).to(dtype_of(lib, dtype))
    return made.to(DEVICE) if lib is tlc else made


def kind_of(value):
    return str(value.dtype).removeprefix("torch.")


def like(lib, value, seed):
    """Other numbers in a tensor's shape and dtype."""
    kind = kind_of(value)
    return tensor(lib, numbers(tuple(value.shape), kind, seed), kind)


def host(value):
    return value.detach().resolve_conj().cpu().numpy()


def outcomes(function, array, dtype, layout):
    """What `function(lib, x, leaf)` gives, or the type of what it raises: ours and torch's."""
    larger, view = laid_out(array, layout)
    results = []
    for lib in (tlc, torch):
        leaf = tensor(lib, larger, dtype)
        try:
            results.append(function(lib, view(leaf), leaf))
        except Exception as error:
            results.append(error)
    return results


def assert_same(function, array, dtype, layout="contiguous"):
    ours, theirs = outcomes(function, array, dtype, layout)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), (ours, theirs)
        return
    if isinstance(ours, Exception):
        raise ours
    for mine, other in zip(ours, theirs, strict=True):
        assert (kind_of(mine), tuple(mine.shape)) == (kind_of(other), tuple(other.shape))
        tolerance = ROUNDING[kind_of(other)]
        np.testing.assert_allclose(host(mine), host(other), rtol=tolerance, atol=tolerance)


@st.composite
def seldom(draw):
    """True for about every tenth example: a fault that torch refuses."""
    return draw(st.integers(0, 9)) == 7


@st.composite
def lines(draw):
    """A shape, and the arguments n, dim, norm."""
    shape = draw(shapes)
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    if draw(seldom()):
        dim = draw(st.sampled_from((len(shape), -len(shape) - 1)))
    n = draw(st.sampled_from((0, -1))) if draw(seldom()) else draw(st.none() | st.integers(1, 9))
    norm = "other" if draw(seldom()) else draw(st.sampled_from(NORMS))
    return shape, (n, dim, norm)


@st.composite
def grids(draw):
    """A shape, and the arguments s, dim, norm."""
    shape = draw(shapes)
    ndim = len(shape)
    dims = st.permutations(range(-ndim, 0)).map(tuple)
    dim = draw(st.none() | dims)
    if dim is not None:
        dim = dim[: draw(st.integers(1, ndim))]
        if draw(seldom()):
            dim = draw(st.sampled_from(((), (0, -ndim), (ndim,))))
    count = (ndim if dim is None else len(dim)) + draw(seldom())
    sizes = st.lists(st.sampled_from((-1, 1, 2, 3, 4, 7)), min_size=count, max_size=count)
    s = draw(st.none() | sizes.map(tuple))
    return shape, (s, dim, draw(st.sampled_from(NORMS)))


@given(st.sampled_from(LINES), lines(), dtypes, layouts)
def test_lines(name, case, dtype, layout):
    shape, arguments = case
    call = lambda lib, x, _: [getattr(lib.fft, name)(x, *arguments)]
    assert_same(call, numbers(shape, dtype, 0), dtype, layout)


@given(st.sampled_from(GRIDS + PLANES), grids(), dtypes, layouts)
def test_grids(name, case, dtype, layout):
    shape, (s, dim, norm) = case
    if name.startswith("ihfft"):  # where also dims are wrong, torch complains of them first
        assume(not dtype.startswith("complex"))
    options = {"s": s, "norm": norm} | ({} if dim is None else {"dim": dim})
    call = lambda lib, x, _: [getattr(lib.fft, name)(x, **options)]
    assert_same(call, numbers(shape, dtype, 0), dtype, layout)


def wide_dtypes(name):
    real = name.startswith(("rfft", "ihfft"))
    return st.sampled_from(("float64",) if real else ("complex128", "float64"))


def gradients(name, arguments):
    """A result, its gradient, and the gradient of that one's product with fixed numbers."""

    def call(lib, x, leaf):
        leaf.requires_grad_()
        result = getattr(lib.fft, name)(x, *arguments)
        up = like(lib, result, 1).requires_grad_()
        (first,) = lib.autograd.grad(result * result, leaf, up, create_graph=True)
        return [result, first, *lib.autograd.grad(first, (leaf, up), like(lib, first, 2))]

    return call


@given(st.sampled_from(LINES), lines(), st.data())
def test_gradients_of_lines(name, case, data):
    shape, arguments = case
    dtype = data.draw(wide_dtypes(name))
    assert_same(gradients(name, arguments), numbers(shape, dtype, 0), dtype)


@given(st.sampled_from(GRIDS), grids(), st.data())
def test_gradients_of_grids(name, case, data):
    shape, arguments = case
    dtype = data.draw(wide_dtypes(name))
    assert_same(gradients(name, arguments), numbers(shape, dtype, 0), dtype)


@pytest.mark.parametrize("name", ("irfft", "hfft"))
@pytest.mark.parametrize("n", range(1, 8))
@pytest.mark.parametrize("norm", NORMS)
def test_elements_that_stand_for_themselves(name, n, norm):
    """The first one, and for even n the last one, have no imaginary part that counts."""
    array = numbers((2, n // 2 + 1), "complex128", 3)
    assert_same(gradients(name, (n, -1, norm)), array, "complex128")
    leaf = tensor(tlc, array, "complex128").requires_grad_()
    getattr(tlc.fft, name)(leaf, n).sum(0).square().sum().backward()
    alone = host(leaf.grad).imag[:, [0, *([-1] if n % 2 == 0 else [])]]
    np.testing.assert_array_equal(alone, 0)


def test_all_functions_are_there():
    names = set(LINES + GRIDS + PLANES + OTHERS)
    assert names == set(tlc.fft.__all__)
    assert names >= set(torch.fft.__all__) - {"Tensor"}  # which lacks four of its own
    assert all(hasattr(torch.fft, name) for name in names)


@pytest.mark.parametrize("name", LINES + GRIDS + PLANES)
def test_signatures(name):
    """The arguments' names and defaults, as torch's documentation has them."""
    parameters = inspect.signature(getattr(tlc.fft, name)).parameters
    defaults = {key: parameter.default for key, parameter in parameters.items()}
    sizes = {"n": None, "dim": -1} if name in LINES else {"s": None, "dim": None}
    if name in PLANES:
        sizes = {"s": None, "dim": (-2, -1)}
    assert defaults == {"input": inspect.Parameter.empty, **sizes, "norm": None, "out": None}


@pytest.mark.parametrize("name", LINES)
def test_an_empty_batch_gives_an_empty_result(name):
    """PyTorch's library for the CPU refuses it."""
    shape = getattr(torch.fft, name)(torch.zeros(2, 4)).shape[-1]
    x = torch.zeros(0, 4)
    assert tuple(getattr(tlc.fft, name)(tensor(tlc, x.numpy(), "float32")).shape) == (0, shape)


@pytest.mark.parametrize("name", ("ihfft", "ihfft2", "ihfftn"))
def test_out_of_the_inverse_of_hermitian_transforms(name):
    """PyTorch leaves `out` in a wrong shape or refuses its dtype."""
    x = tensor(tlc, numbers((2, 3, 4), "float64", 0), "float64")
    out = tlc.empty(0, dtype=tlc.complex128, device=DEVICE)
    wanted = getattr(tlc.fft, name)(x)
    assert getattr(tlc.fft, name)(x, out=out) is out
    np.testing.assert_array_equal(host(out), host(wanted))


@pytest.mark.parametrize("name", LINES)
def test_autocast(name):
    """Two-byte floats are transformed in float32 under the CPU's autocast, as in PyTorch."""
    kinds = []
    for lib in (tlc, torch):
        x = lib.ones(4, dtype=lib.float16)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            kinds.append(str(getattr(lib.fft, name)(x).dtype))
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", ("fft", "rfft", "irfft", "hfft", "ihfft"))
@pytest.mark.parametrize("norm", ("backward", "ortho", "forward"))
def test_the_standard_namespace(name, norm):
    """The same functions, with the names of the array API standard."""
    array = numbers((3, 5), "float64", 4)
    x = tensor(tlc, array, "float64")
    words = x.__array_namespace__().fft
    got = getattr(words, name)(x, n=4, axis=0, norm=norm)
    wanted = getattr(np.fft, name)(array, n=4, axis=0, norm=norm)
    np.testing.assert_allclose(host(got), wanted, rtol=1e-12, atol=1e-12)
    many = getattr(words, "irfftn" if name in ("irfft", "hfft") else "rfftn")
    wanted = getattr(np.fft, many.__name__)(array, s=(2, 6), axes=(1, 0), norm=norm)
    np.testing.assert_allclose(host(many(x, s=(2, 6), axes=(1, 0), norm=norm)), wanted, atol=1e-12)


def test_the_standard_namespace_of_frequencies():
    words = tlc.ones(1).__array_namespace__().fft
    for name in ("fftfreq", "rfftfreq"):
        got = getattr(words, name)(7, d=0.3, dtype=tlc.float64)
        np.testing.assert_allclose(host(got), getattr(np.fft, name)(7, d=0.3), rtol=1e-15)
    x = tensor(tlc, np.arange(15.0).reshape(3, 5), "float64")
    for name in ("fftshift", "ifftshift"):
        for axes in (None, (1,), 0):
            wanted = getattr(np.fft, name)(host(x), axes=axes)
            np.testing.assert_array_equal(host(getattr(words, name)(x, axes=axes)), wanted)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", (0, 1))
def test_many_numbers_in_single_precision(name, norm, dim):
    """As near to the values in double precision as PyTorch's are."""
    dtype = "float32" if name in ("rfft", "ihfft") else "complex64"
    array = numbers((96, 150), dtype, 5).astype(dtype)
    exact = getattr(torch.fft, name)(torch.from_numpy(array).to(
        torch.float64 if dtype == "float32" else torch.complex128), dim=dim, norm=norm)  # fmt: skip
    got, theirs = (
        getattr(lib.fft, name)(tensor(lib, array, dtype), dim=dim, norm=norm)
        for lib in (tlc, torch)
    )
    assert kind_of(got) == kind_of(theirs)
    wanted = host(exact)
    ours, allowed = (np.abs(host(value) - wanted).max() for value in (got, theirs))
    assert ours <= 3 * allowed


def test_infinities_in_many_numbers():
    """They spread as in PyTorch: to NaN in all of their own line, and to no other one."""
    array = np.zeros((9, 1024), "complex64")
    array[3, 5] = np.inf
    got = host(tlc.fft.fft(tensor(tlc, array, "complex64")))
    finite = np.isfinite(got).all(-1)
    assert finite.tolist() == [row != 3 for row in range(9)]
