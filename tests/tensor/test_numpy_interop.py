"""Tensors in NumPy's hands and arrays in ours; DLPack and buffers."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.ops.create import _data
from tests.autograd.against_torch import attempt, same
from tests.device import DEVICE
from tests.tensor.expressions import check, lines

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="NumPy shares memory with the CPU alone")


@lines(
    """
    f.numpy(), s.numpy(), b.numpy(), c.numpy(), h.numpy(), i.byte().numpy()
    torch.zeros(0, 2).numpy()
    x.numpy()
    x.detach().numpy(), x.numpy(force=True), (x * 2).numpy(force=True)
    bf.numpy()
    bf.numpy(force=True)
    bf.float().numpy()
    f.t().numpy().strides, f[:, ::2].numpy().strides, f.expand(2, 2, 3).numpy().strides
    np.shares_memory(f.numpy(), f.numpy()), np.shares_memory(f.numpy(), f.clone().numpy())
    np.asarray(f), np.array(f), np.array(f, dtype=np.int32), np.asarray(i, dtype='f2'), np.array(s)
    np.array([s, s]), np.array([f[0], f[1]]), np.array([si, 2])
    np.asarray(x)
    np.asarray(bf)
    np.array(f, copy=True), np.shares_memory(np.asarray(f), f.numpy())
    np.shares_memory(np.array(f), f.numpy())
    np.asarray(f, dtype=np.float64, copy=False)
    f.__array__(), f.__array__(np.float64), f.__array__(dtype=np.float32)
    f.__array_priority__, np.isscalar(s), np.ndim(f), np.shape(f), np.size(f), np.iterable(f)
    """
)
def test_to_numpy(expression):
    check(expression)


@lines(
    """
    np.exp(f), np.add(f, 1), np.sqrt(s), np.isnan(f), np.add(f, f), np.add(f, n), np.negative(i)
    np.exp(x)
    np.concatenate([f, f]), np.stack([f, f]), np.dot(f[0], f[0]), np.where(f > 1, f, 0)
    np.clip(f, 1, 2), np.transpose(f), np.reshape(f, (3, 2)), np.argmax(f), np.round(f), np.abs(f)
    np.allclose(f, f), np.array_equal(f, n), np.unique(i), np.vstack([f, n]), np.linalg.norm(f)
    np.testing.assert_allclose(f, n)
    np.maximum(f, 2), np.floor(f / 2), np.power(f, 2), np.arange(6)[i]
    """
)
def test_numpy_functions(expression):
    check(expression)


@lines(
    """
    f + n
    n + f
    f * n32
    n32 * f
    n - f
    f - n
    f / (n32 + 1)
    n / (f + 1), n32 / (f + 1), n / (i + 1), ni / (i + 1), n32 / (s + 1)
    n / x
    f @ n.T
    n @ f.double().t()
    f.double() @ n.T
    i + ni
    ni + i
    i * n
    n * i
    n ** i
    i ** ni
    i // (ni + 1)
    ni % (i + 1)
    f + np.float32(2), np.float32(2) + f, f * np.float64(2), np.float64(2) * f
    i + np.int32(2), np.int32(2) + i, i * np.float64(0.5), np.float64(0.5) * i
    f * np.bool_(True), np.int64(2) * f, np.int64(2) ** i
    np.float64(2) - f, np.float64(2) / (f + 1)
    s + np.float64(1), np.float64(1) + s, si + np.int64(1), np.int64(1) * si
    si * np.float32(0.5), np.float32(0.5) * si, f * np.complex128(1j)
    n == f
    f == n
    n > f
    f < n
    np.float64(1) < f, f >= np.float32(1)
    ni == i[0]
    x + n[0, :2]
    n[0, :2] + x
    f.clone().__iadd__(n32)
    n.__iadd__(f)
    n32.__imul__(f)
    f * np.array([1, 2, 3])
    np.array([1, 2, 3]) * f
    operator.iadd(f, np.float64(3)), operator.imul(i, np.int64(3))
    """
)
def test_mixed_arithmetic(expression):
    check(expression)


@lines(
    """
    n[i % 2]
    n[torch.tensor([0, 1])], n[torch.tensor(1)], f[ni[:2]], f[np.array([True, False])]
    f[np.int64(1)], n[f > 2], f[n > 2], f[np.int64(0), np.int64(1)]
    torch.add(f, n)
    torch.mul(n, f)
    torch.sum(n)
    torch.where(n > 1, f, f)
    torch.matmul(f, n)
    torch.exp(n)
    f.add(n)
    f.add_(n32)
    f.copy_(n)
    f.equal(n)
    torch.stack([f, n])
    f.__setitem__(0, n[0])
    f.__setitem__((0, 0), np.float64(9)) or f
    torch.full((2,), np.float32(2)), torch.arange(np.int64(3)), torch.zeros(np.int64(2))
    torch.zeros(np.array([2, 3]))
    f.sum(np.int64(0)), f.reshape(np.int64(3), 2), f.clamp(np.float32(1)), f.pow(np.int64(2))
    torch.full_like(f, np.float64(2)), f.fill_(np.int32(3)), f.new_full((1,), np.float32(1))
    torch.linspace(np.float64(0), np.float32(1), np.int64(3))
    """
)
def test_arrays_as_arguments(expression):
    check(expression)


@lines(
    """
    torch.from_dlpack(n), np.from_dlpack(f), int(f.__dlpack_device__()[0]), torch.from_dlpack(f)
    torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(f))
    torch.from_dlpack(f.__dlpack__())
    x.__dlpack__()
    np.from_dlpack(c.to(torch.complex128)), np.from_dlpack(torch.tensor([True]))
    np.from_dlpack(f.t()).strides, torch.from_dlpack(n.T).stride()
    torch.from_dlpack(n[:, ::2]).stride(), torch.from_dlpack(n[:, ::2])
    torch.from_dlpack(torch.ones(2, requires_grad=True))
    torch.from_dlpack([1, 2])
    torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int16)
    torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.uint8, count=3, offset=2)
    torch.frombuffer(bytearray(b'abc'), dtype=torch.int16)
    torch.frombuffer(bytearray(b''), dtype=torch.int16)
    torch.frombuffer(bytearray(b'abcd'), dtype=torch.uint8, offset=4)
    torch.frombuffer(bytearray(b'abcd'), dtype=torch.uint8, count=5)
    torch.frombuffer(n.copy(), dtype=torch.float64, requires_grad=True)
    torch.frombuffer([1], dtype=torch.float64)
    torch.asarray(x) is x, torch.asarray(f, dtype=torch.float64)
    torch.asarray(x, requires_grad=True), torch.asarray(f, requires_grad=True) is f
    torch.asarray([1, 2], copy=False)
    torch.asarray(ni, dtype=torch.float32, copy=False)
    torch.asarray(ni, copy=True), torch.asarray([1.0], requires_grad=True), torch.asarray(3)
    torch.asarray(b'abcd', dtype=torch.uint8), torch.asarray(np.float32(2)), torch.asarray(f) is f
    torch.as_tensor([1.0], requires_grad=True)
    """
)
def test_exchange(expression):
    check(expression)


def test_shared_memory():
    def script(lib):
        x = lib.arange(4.0)
        a = x.numpy()
        d = np.from_dlpack(x)
        y = lib.from_dlpack(a)
        z = lib.from_numpy(a[1:])
        x[0] = 10
        a[1] = 20
        z[1] = 30
        y[3] = 40
        buffer = bytearray(4)
        w = lib.frombuffer(buffer, dtype=lib.uint8)
        w[2] = 7
        return x, a, d, y, z, bytes(buffer), lib.asarray(a)._version

    same(script)


def test_arrays_outlive_tensors():
    array = tlc.arange(3.0).numpy()
    tensor = tlc.from_numpy(np.arange(3.0))
    assert array.tolist() == tensor.tolist() == [0, 1, 2]


def test_tensors_of_read_only_memory():
    array = np.arange(3.0)
    array.flags.writeable = False
    _data._Warned.read_only = False
    with pytest.warns(UserWarning, match="not writable"):
        x = tlc.from_numpy(array)
    tlc.from_numpy(array)  # warned of once
    assert isinstance(attempt(x.add_, 1), ValueError)
    assert (x + 1).tolist() == [1, 2, 3]
