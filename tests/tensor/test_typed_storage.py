"""`Tensor.storage()`, and the rarer in-place and memory functions."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import same
from tests.tensor.expressions import check, lines

BOTH = pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])


@lines(
    """
    f.storage().size(), len(f[1:].storage()), len(f.t().storage()), f[1].storage().tolist()
    f.t().storage().tolist(), f.storage()[1], f.storage()[-1], list(i.storage())
    f.storage().dtype, f.storage().nbytes(), f.storage().element_size(), f.storage().is_cuda
    f.storage().type(), i.storage().type(), repr(si.storage())
    f[0].storage().data_ptr() == f[1].storage().data_ptr() == f.data_ptr()
    f.storage().untyped().nbytes(), torch.is_storage(f.storage()), repr(f.storage())
    f.storage().fill_(3).tolist(), f, f.storage().clone().fill_(5).tolist(), f
    f.storage().copy_(f.clone().storage().fill_(2)).tolist(), f
    operator.setitem(f.storage(), 2, 9), f, f.storage().cpu().tolist()
    [torch.ones(64).storage().__sizeof__() - each.storage().__sizeof__() for each in (f, f[0], h)]
    torch.ones(64).untyped_storage().__sizeof__() - f.untyped_storage().__sizeof__()
    f.storage()[1:3]
    f.storage()[6]
    operator.setitem(f.storage(), 6, 1)
    """
)
def test_storage(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(expression)


def test_storage_is_deprecated(monkeypatch):
    monkeypatch.setattr("tensorflow_lite_clone.ops.compat.typed_storage._Warned.once", False)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        tlc.ones(1).storage()


@lines(
    """
    f.clone().as_strided_((2, 2), (1, 2)), torch.as_strided_(f.clone(), (2, 2), (1, 2), 1)
    torch.as_strided_(f.clone(), (9, 2), (1, 2), 1)
    f.renorm_(2, 0, 1.0), f, f.renorm_(1, 1, 0.5)
    torch.addmv_(torch.tensor([1.0, 2]), f, torch.tensor([1.0, 2, 3]))
    torch.addmv_(torch.tensor([1.0]), f, torch.tensor([1.0, 2, 3]))
    torch.resize_as_(f.clone(), torch.zeros(3, 2)), torch.resize_as_(f, torch.zeros(3)), f
    f.resize(3, 2), f.t().resize(6), f.resize_as(torch.zeros(6, 1))
    f.resize(3)
    f.resize_as(torch.zeros(7))
    (g := f.cpu()).map2_(torch.ones(3).cpu(), g * 2, lambda a, b, c: a + b * c), g
    f.map2_(torch.ones(3), f.double(), lambda a, b, c: a)
    f.map2_(x, f, lambda a, b, c: a)
    torch.slice_inverse(f[:, 1:], torch.ones(2, 2)).data_ptr() == f.data_ptr()
    f.const_data_ptr() == f.data_ptr(), type(torch.to_dlpack(f)).__name__
    f.module_load(f * 2), f, f.module_load(i, assign=True) is i, torch.ones(2).module_load(f[0, :2])
    torch.nn.Parameter(f.clone()).module_load(f)
    torch.nn.Parameter(f.clone()).module_load(f, assign=True).requires_grad
    torch.split_copy(f, 2, 1, out=[torch.zeros(2, 2), torch.zeros(2, 1)])
    """
)
def test_memory(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(expression)


def test_resize_is_deprecated():
    same(lambda lib: lib.ones(2).resize(2, 1))
    same(lambda lib: lib.ones(2).resize_as(lib.ones(2, 1)))


def test_resize_has_a_gradient():
    def script(lib):
        x = lib.ones(2, 3, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (x.resize(6) * lib.arange(6.0)).sum().backward()
        return x.grad

    same(script)


def test_loops_check_their_arguments():
    with pytest.raises(RuntimeError, match="branches to be callable"):
        tlc.cond(True, abs, 3, (tlc.tensor(0),))
    with pytest.raises(RuntimeError, match="Expect operands"):
        tlc.cond(True, abs, abs, 3)
    with pytest.raises(RuntimeError, match="should return 1 values"):
        tlc.while_loop(lambda i: i < 3, lambda i: (i, i), (tlc.tensor(0),))
    with pytest.raises(RuntimeError, match="callable"):
        tlc.while_loop(3, 4, ())
    with pytest.raises(RuntimeError, match="tuple or list"):
        tlc.while_loop(lambda i: i < 3, lambda i: i + 1, tlc.tensor(0))


def test_files_as_memory(tmp_path):
    def script(lib, folder):
        path = folder / "numbers"
        path.write_bytes(bytes(range(16)))
        private = lib.from_file(str(path), size=4, dtype=lib.int32)
        private[0] = 7
        read = path.read_bytes()
        shared = lib.from_file(str(path), shared=True, size=5, dtype=lib.int32)
        shared[4] = 1
        whole = lib.UntypedStorage.from_file(str(path), False, 8)
        part = whole[2:6]
        part[0] = 200
        whole[0] = 9
        values = part.tolist(), whole.tolist(), list(part), part.nbytes(), len(whole[7:3])
        results = [
            private.tolist(), read, path.read_bytes(), values, whole.data_ptr() - part.data_ptr(),
            lib.asarray(whole[:4], dtype=lib.uint8).tolist(), repr(part), lib.from_file(str(path)),
            lib.UntypedStorage(3).nbytes(), lib.UntypedStorage([1, 2]).tolist(), private.dtype,
        ]  # fmt: skip
        for wrong in (
            lambda: lib.from_file(str(path), size=100),
            lambda: whole[0:8:2],
            lambda: whole["a"],
            lambda: whole[100],
        ):
            with pytest.raises((RuntimeError, TypeError, IndexError)) as error:
                wrong()
            results.append((type(error.value), str(error.value).split(" but ")[0].split("<")[0]))
        return [str(result) for result in results]

    for name in ("here", "pytorch"):
        (tmp_path / name).mkdir()
    assert script(tlc, tmp_path / "here") == script(torch, tmp_path / "pytorch")


@BOTH
def test_set_shows_a_part_of_a_storage(lib: Any) -> None:
    memory = lib.arange(12.0)
    x = lib.zeros(2)
    assert x.set_(memory.untyped_storage(), 2, (2, 3), (3, 1)) is x
    assert x.tolist() == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]
    assert (x.storage_offset(), x.stride(), x._version, memory._version) == (2, (3, 1), 1, 0)
    x[0, 0] = 100
    assert memory[2] == 100 and (x._version, memory._version) == (2, 0)
    assert lib.zeros(2).set_(memory[3:], 1, (2, 2)).tolist() == [[4.0, 5.0], [6.0, 7.0]]
    assert lib.zeros(2).set_(memory.storage()).shape == lib.zeros(2).set_(memory).shape == (12,)
    bits = lib.zeros(0, dtype=lib.int32).set_(memory.untyped_storage(), 1, (1,))
    assert bits.tolist() == [0x3F800000]
    assert x.set_().shape == (0,)


@BOTH
def test_set_refuses(lib: Any) -> None:
    memory, x = lib.arange(4.0), lib.zeros(2)
    for source in (memory.double(), memory.double().storage()):
        with pytest.raises(RuntimeError):
            x.set_(source)
    for arguments in ((3,), (memory.untyped_storage(), 1)):
        with pytest.raises(TypeError):
            x.set_(*arguments)
    with pytest.raises(RuntimeError):
        x.set_(memory.untyped_storage(), -1, (2,), (1,))
    leaf = lib.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.set_(memory)
    with lib.no_grad():
        leaf.set_(memory)
    assert leaf.requires_grad and leaf.is_leaf and leaf.shape == (4,)
    saved = lib.ones(2)
    product = lib.ones(2, requires_grad=True) * saved
    saved.set_(memory[:2])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
