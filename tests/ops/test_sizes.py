"""Sizes that no memory has: PyTorch's exception type, at once, whatever function is asked.

The sizes are such that PyTorch itself allocates nothing.
"""

from __future__ import annotations

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE

SIZES = (1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64, -1, -(1 << 64))
#: What no view of NumPy's can have, though its elements lie in one place.
VIEWS = (1 << 62, (1 << 63) - 1)


def zeros(L, *shape, **options):
    return L.zeros(*shape, device=DEVICE if L is tlc else "cpu", **options)


def wide(L, size):
    return zeros(L, 1).expand(size)


CALLS = {
    "empty": lambda L, n: L.empty(n),
    "zeros": lambda L, n: L.zeros((3, n)),
    "ones": lambda L, n: L.ones(n, n),
    "full": lambda L, n: L.full((n,), 1),
    "rand": lambda L, n: L.rand(n),
    "randint": lambda L, n: L.randint(3, (n,)),
    "randperm": lambda L, n: L.randperm(n),
    "normal": lambda L, n: L.normal(0.0, 1.0, (n,)),
    "arange of floats": lambda L, n: L.arange(0, n, 0.5) if n > 0 else L.arange(n),
    "linspace": lambda L, n: L.linspace(0, 1, n),
    "logspace": lambda L, n: L.logspace(0, 1, n),
    "eye": lambda L, n: L.eye(n),
    "tril_indices": lambda L, n: L.tril_indices(n, n),
    "hann_window": lambda L, n: L.hann_window(n),
    "fftfreq": lambda L, n: L.fft.fftfreq(n),
    "vander": lambda L, n: L.vander(L.ones(3), n),
    "empty_strided": lambda L, n: L.empty_strided((2,), (n,)) if n > 0 else L.empty(n),
    "empty_permuted": lambda L, n: L.empty_permuted((n, n), (0, 1)),
    "Tensor": lambda L, n: L.Tensor(n, n),
    "LongTensor": lambda L, n: L.LongTensor(n),
    "new_empty": lambda L, n: zeros(L, 1).new_empty(n),
    "new_full": lambda L, n: zeros(L, 1).new_full((n,), 1),
    "repeat": lambda L, n: zeros(L, 2).repeat(n),
    "tile": lambda L, n: zeros(L, 2).tile((n, n)),
    "repeat_interleave": lambda L, n: zeros(L, 2).repeat_interleave(n),
    "resize_": lambda L, n: zeros(L, 2).resize_(n),
    "pad": lambda L, n: L.nn.functional.pad(zeros(L, 2), (0, n if n > 0 else n - 4)),
    "one_hot": lambda L, n: L.nn.functional.one_hot(L.tensor([0, 1]), n if n != -1 else -2),
    "bincount": lambda L, n: L.bincount(L.tensor([0]), minlength=n),
    "reshape": lambda L, n: zeros(L, 6).reshape(n, n),
    "as_strided": lambda L, n: zeros(L, 6).as_strided((n,), (1,)),
    "as_strided step": lambda L, n: zeros(L, 6).as_strided((2,), (n,)),
    "as_strided start": lambda L, n: zeros(L, 6).as_strided((1,), (1,), n),
    "narrow": lambda L, n: zeros(L, 3).narrow(0, 1, n),
    "select": lambda L, n: zeros(L, 3)[n] if n != -1 else zeros(L, 3)[n - 3],
    "unsqueeze": lambda L, n: zeros(L, 3).unsqueeze(n if n != -1 else 5),
    "max_pool1d": lambda L, n: (
        L.nn.functional.max_pool1d(zeros(L, 1, 1, 4), 2, n, 0)
        if n < 0 or n >= 1 << 63
        else L.empty(n)
    ),
    "conv1d": lambda L, n: L.nn.functional.conv1d(zeros(L, 1, 1, 4), zeros(L, 1, 1, 2), padding=n),
    "interpolate": lambda L, n: L.nn.functional.interpolate(
        zeros(L, 1, 1, 4, 4), size=(n, n) if n < 1 << 63 and n > -(1 << 63) else (4.5, n)
    ),
    "adaptive_avg_pool2d": lambda L, n: L.nn.functional.adaptive_avg_pool2d(
        zeros(L, 1, 1, 4, 4), (n, n)
    ),
    "fft": lambda L, n: L.fft.fft(zeros(L, 3), n if n != -1 else 0),
    "Linear": lambda L, n: L.nn.Linear(n, n),
    "LSTM": lambda L, n: L.nn.LSTM(n, 1) if n < 1 << 63 and n > -2 else L.empty(n),
    "UntypedStorage": lambda L, n: L.UntypedStorage(n) if abs(n) < 1 << 63 else L.empty(n),
    "topk": lambda L, n: zeros(L, 3).topk(n),
    "multinomial": lambda L, n: L.multinomial(L.ones(3), n, replacement=True),
    "sparse": lambda L, n: L.sparse_coo_tensor([[0], [0]], [1.0], (n, n)),
}


def kind(function, L, n):
    try:
        function(L, n)
    except (RuntimeError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        kinds = (NotImplementedError, RuntimeError, ValueError, TypeError, IndexError)
        return next((each for each in kinds if isinstance(error, each)), type(error)), str(error)
    return None, ""


@pytest.mark.parametrize("name", CALLS)
def test_the_type_of_the_error_is_pytorchs(name):
    for n in SIZES:
        expected, _ = kind(CALLS[name], torch, n)
        got, message = kind(CALLS[name], tlc, n)
        assert expected is not None, f"{name}({n}) is fine"
        assert got is expected, f"{name}({n}): {got}, expected {expected}: {message}"


@pytest.mark.parametrize("n", [1 << 32, 1 << 40, 1 << 59])
def test_the_message_names_the_sizes(n):
    calls = {
        "outer": lambda L: L.outer(wide(L, n), wide(L, n)),
        "kron": lambda L: L.kron(wide(L, n), wide(L, n)),
        "add": lambda L: wide(L, n).unsqueeze(1) + wide(L, n),
        "repeat": lambda L: zeros(L, 1).repeat(n, n),
        "zeros": lambda L: L.zeros(n, n),
        "pad": lambda L: L.nn.functional.pad(zeros(L, 1, 1), (0, n - 1, 0, n - 1)),
    }
    for name, call in calls.items():
        for L in (torch, tlc):
            with pytest.raises(RuntimeError) as caught:
                call(L)
        assert "overflowed" in str(caught.value), name
        assert str(n) in str(caught.value) or str(n - 1) in str(caught.value), name


@pytest.mark.parametrize("n", VIEWS)
def test_views_beyond_any_memory_say_so(n):
    with pytest.raises(RuntimeError, match=f"overflowed with sizes=.*{n}"):
        wide(tlc, n)


def test_a_large_number_is_no_size():
    for L in (torch, tlc):
        with pytest.raises(RuntimeError, match="without overflow"):
            L.full((2,), 1 << 63)
        with pytest.raises(OverflowError):
            L.full((2,), 1 << 64)
        with pytest.raises(RuntimeError, match="without overflow"):
            L.arange(1 << 63)
        with pytest.raises(OverflowError):
            L.arange(0, 10, 1 << 64)
        assert (L.tensor([1]) + (1 << 63)).tolist() == [1 - (1 << 63)]
        assert L.polygamma(200, L.ones(1)).tolist() == [-float("inf")]


def test_counts_that_wrap_around():
    """NumPy gives an empty array for these."""
    largest = (1 << 63) - 1
    calls = (
        lambda L: L.arange(largest),
        lambda L: L.bincount(L.tensor([largest])),
        lambda L: L.nn.functional.pad(zeros(L, 1, 2, 2), (0, largest), mode="replicate"),
        lambda L: L.zeros(2).repeat_interleave(2, output_size=7),
        lambda L: L.zeros(2).repeat_interleave(L.tensor([1, 1]), output_size=5),
    )
    for call in calls:
        for L in (torch, tlc):
            with pytest.raises(RuntimeError):
                call(L)


def test_more_differences_than_elements():
    for L in (torch, tlc):
        assert L.diff(L.arange(4), 1 << 40).shape == (0,)
    for shape in (-1, (3, -2)):
        for L in (torch, tlc):
            with pytest.raises(ValueError, match="negative length"):
                L.broadcast_shapes(shape, (1,))
