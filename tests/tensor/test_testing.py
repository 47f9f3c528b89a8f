"""`torch.testing`: what passes, what is said about what does not, and which tensors are made."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.tensor.expressions import lines

CLOSE = """
    T([1., 2.]), T([1., 2.])
    T([1., 2.]), T([1., 2.5])
    T([1., 2., 3.]), T([1., 2.5, 4.])
    T([[1., 2., 3.]]), T([[1., 2.5, 4.]]), rtol=0, atol=0.1
    T([1, 2]), T([1, 3])
    T([1, 2]), T([1, 3]), rtol=0, atol=2
    T([True, False]), T([True, True])
    T(1.), T(2.), atol=0.1, rtol=0
    T(1), T(2)
    1., 2.
    1, 2
    1, 1.0
    1, 1.0, check_dtype=False
    True, False
    1 + 1j, 1 + 2j
    1., 0.
    2., 1., rtol=0, atol=0.5
    T([1.]), T([1.]).double()
    T([1.]), T([1.]).double(), check_dtype=False
    T([1.]), T([2]), check_dtype=False
    T([1.]), T([1., 2.])
    T([1.]), 1.0
    [T([1.]), T([2.])], [T([1.]), T([3.])]
    {'a': T([1.]), 'b': T(2.)}, {'a': T([1.]), 'b': T(3.)}
    [[1., 2], [1., 3.]], [[1., 2], [1., 4.]]
    [1., 2.], [1.]
    (1,), [1]
    [], []
    {'a': 1}, {'b': 1}
    {'a': 1}, {'a': 1, 'b': 1}
    [1., 'a'], [2., 'a']
    'a', 'a'
    None, None
    None, 1
    float('nan'), float('nan')
    float('nan'), float('nan'), equal_nan=True
    T([float('nan'), 1.]), T([float('nan'), 1.])
    T([float('nan'), 1.]), T([float('nan'), 1.]), equal_nan=True
    T([float('inf'), 1.]), T([1., 1.])
    T([float('inf')]), T([-float('inf')])
    T([float('inf')]), T([float('inf')])
    T([1.]), T([1.]), rtol=1e-3
    T([1.]), T([1.]), atol=1e-3
    T([1.]), T([2.]), msg='hello'
    T([1.]), T([2.]), msg=lambda text: 'here: ' + text
    torch.ones(2, 2), torch.ones(2, 2).t()
    torch.ones(2, 2), torch.ones(2, 2).t(), check_stride=True
    T([1 + 1j]), T([1 + 2j])
    torch.zeros(2, 0), torch.zeros(2, 0)
    T([1.]).bfloat16(), T([1.015]).bfloat16()
    T([1.]).half(), T([1.0009]).half()
    T([1.]).half(), T([1.002]).half()
    T([1e-6]), T([0.])
    T([1e-4]), T([0.])
    torch.nn.Parameter(T([1.])), T([1.])
    torch.nn.Parameter(T([1.])), T([1.]), allow_subclasses=False
    np.ones(2), np.zeros(2)
    np.ones(2), T([1., 1.]).double()
    1.0, np.float64(1.0)
    T([1]).byte(), T([255]).byte()
    torch.rand(3, 4), T([[0.5]]).expand(3, 4)
"""


def outcome(library, name: str, arguments: str):
    """None, or the error's type and text with one name for the package."""
    library.manual_seed(0)
    scope = {"T": library.tensor, "torch": library, "np": np, "call": lambda *a, **k: (a, k)}
    args, kwargs = eval(f"call({arguments})", scope)
    try:
        getattr(library.testing, name)(*args, **kwargs)
    except Exception as error:
        message = str(error)
        for kind in (library.Tensor, library.nn.Parameter):
            message = message.replace(str(kind), f"<{kind.__name__}>")
        return type(error), message
    return None


@lines(CLOSE)
def test_assert_close(arguments):
    ours = outcome(tlc, "assert_close", arguments)
    assert ours == outcome(torch, "assert_close", arguments)


@lines(
    """
    T([1.]), T([1.]).double()
    T([1.]), [1.00001]
    T([1.]), [1.001]
    1.0, 2.0
    T([1.]).half(), T([2.]).half()
    T([1.]).double(), [2.]
    T([float('nan')]), [float('nan')]
    T([1.]), T([2.]), msg='said'
    """
)
def test_assert_allclose(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ours = outcome(tlc, "assert_allclose", arguments)
        assert ours == outcome(torch, "assert_allclose", arguments)


def test_assert_allclose_is_deprecated():
    with pytest.warns(FutureWarning, match="assert_allclose"):
        tlc.testing.assert_allclose(1.0, 1.0)


def made(library, arguments: str):
    """What `make_tensor` gives: values, strides and whether it requires grad; or what it raises."""
    library.manual_seed(0)
    scope = {"make": library.testing.make_tensor, "torch": library, "inf": np.inf, "nan": np.nan}
    try:
        x = eval(f"make({arguments}, device='cpu')", scope)
    except Exception as error:
        return type(error), str(error)
    return x.tolist(), str(x.dtype), x.stride(), x.requires_grad


@lines(
    """
    40, dtype=torch.float32
    40, dtype=torch.float64
    40, dtype=torch.bfloat16
    40, dtype=torch.int64
    40, dtype=torch.uint8
    40, dtype=torch.bool
    40, dtype=torch.complex64
    (), dtype=torch.float32, noncontiguous=True
    (1,), dtype=torch.float32, noncontiguous=True
    3, 2, dtype=torch.int64, exclude_zero=True, noncontiguous=True
    3, 2, dtype=torch.bool, exclude_zero=True
    2, 3, dtype=torch.float32, low=-1, requires_grad=True
    2, 3, dtype=torch.float32, low=2, high=1
    2, 3, dtype=torch.float32, low=nan, high=1
    2, 3, dtype=torch.float32, low=-inf, high=1
    2, 3, dtype=torch.int64, low=0.5, high=3.5
    2, 3, dtype=torch.uint8, low=-4, high=500
    2, 3, dtype=torch.int8, low=1000, high=2000
    2, 3, dtype=torch.int64, requires_grad=True
    1, 2, 3, 4, dtype=torch.float32, memory_format=torch.channels_last
    1, 2, 3, 4, dtype=torch.float32, memory_format=torch.channels_last, noncontiguous=True
    """
)
def test_make_tensor(arguments):
    assert made(tlc, arguments) == made(torch, arguments)


def test_equal_bounds_are_deprecated():
    with pytest.warns(FutureWarning, match="low==high"):
        x = tlc.testing.make_tensor(2, dtype=tlc.float32, device="cpu", low=1, high=1)
    assert x.tolist() == [1, 1]
