"""Dtypes of eight bits: stored, cast and moved as in PyTorch; what calculates is refused."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import stored
from tensorflow_lite_clone.dispatch.op import TABLE
from tests.device import DEVICE

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="float8 is on the CPU only")

NAMES = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()
LIBRARIES = (torch, tlc)

BITS = np.concatenate(
    [
        (np.arange(1 << 16, dtype=np.uint32) << 16) + offset
        for offset in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
    ]
).astype(np.uint32)
SOURCES = {
    "float32": BITS.view(np.float32),
    "float16": np.arange(1 << 16, dtype=np.uint16).view(np.float16),
    "float64": np.concatenate([BITS.view(np.float32).astype(np.float64), [1e-300, 1e300, -1e300]]),
    "int32": np.arange(-70_000, 70_000, 7, dtype=np.int32),
    "int64": np.array([0, 1, -1, 2**40 + 1, 17, 9, -300, 2**62], np.int64),
    "uint8": np.arange(256, dtype=np.uint8),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j, -3, 1e9 + 1j], np.complex64),
}


def test_lists_are_of_ops():
    assert TABLE.keys() >= stored._SERVED | stored._UNSIGNED | stored.REFUSED


def bytes_of(x):
    return x.view((torch if isinstance(x, torch.Tensor) else tlc).uint8).numpy()


def same(ours, theirs):
    """Bit for bit, but of NaNs any bits."""
    lib_of = {True: torch, False: tlc}
    missing = [x.float().isnan().numpy() for x in (ours, theirs)]
    np.testing.assert_array_equal(*missing)
    ours, theirs = [
        x.view(lib_of[isinstance(x, torch.Tensor)].uint8).numpy() for x in (ours, theirs)
    ]
    np.testing.assert_array_equal(ours[~missing[0]], theirs[~missing[1]])


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", NAMES)
def test_casts(name, source):
    """Also through `copy_`, and from bfloat16."""
    values = SOURCES[source]
    results = []
    for lib in LIBRARIES:
        x, dtype = lib.from_numpy(values.copy()), getattr(lib, name)
        results.append([x.to(dtype), lib.zeros(x.shape, dtype=dtype).copy_(x)])
        if source == "float32":
            results[-1].append(x.bfloat16().to(dtype))
    for theirs, ours in zip(*results, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize(
    "target",
    "float32 float16 bfloat16 float64 complex64 bool".split() + NAMES,
)
@pytest.mark.parametrize("name", NAMES)
def test_casts_back(name, target):
    results = []
    for lib in LIBRARIES:
        x = lib.arange(256, dtype=lib.uint8).view(getattr(lib, name)).to(getattr(lib, target))
        results.append(x)
    if target in NAMES:
        same(results[1], results[0])
        return
    theirs, ours = results[0].to(torch.complex128), results[1].to(tlc.complex128)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


#: With x of the dtype `d`, b a mask of its shape: the same result, or the same type of error.
EXPRESSIONS = """
    x.tolist(); x[0, 0].item(); repr(x); repr(x[0]); repr(x[0, 0]); repr(lib.zeros(0, dtype=d))
    float(x[0, 0]); int(x[0, 0]); bool(x[0, 0]); x.t(); x.T; x.view(4); x.reshape(4); x.clone()
    x.contiguous(); x.t().contiguous(); x.view(lib.uint8); x.view(lib.uint8).view(d)
    x.view(lib.int16).view(d); x[0]; x[:, 1]; x[lib.tensor([1, 0])]; x[b]; x[..., None]
    x.fill_(1); x.fill_(1.5); x.zero_(); x.__setitem__(0, 3.0) or x
    x.__setitem__(0, x[1].clone()) or x; x.__setitem__((slice(None), 1), 0.3) or x
    x.copy_(x.float() * 3); lib.cat([x, x]); lib.stack([x, x]); lib.cat([x, x.float()])
    lib.where(b, x, x); lib.where(b, x, 0.0); lib.where(b, x, x.float()); lib.zeros(2, dtype=d)
    lib.ones(2, dtype=d); lib.full((2,), 1.5, dtype=d); lib.empty(2, dtype=d).shape
    lib.full((2,), 1e9, dtype=d); lib.tensor([1.0, 2.0], dtype=d); lib.tensor(1.5, dtype=d)
    lib.tensor([1, 2], dtype=d); lib.tensor([1e9], dtype=d); lib.eye(2, dtype=d)
    lib.zeros_like(x); lib.ones_like(x); lib.full_like(x, 2); lib.empty_like(x).shape
    x.new_zeros(2); x.new_full((2,), 3.0); x.new_tensor([1.0, 2.0]); lib.as_tensor([1.0], dtype=d)
    lib.asarray([1.0], dtype=d); lib.arange(3, dtype=d); lib.linspace(0, 1, 3, dtype=d)
    lib.rand(2, dtype=d); lib.randn(2, dtype=d); x.normal_(); x.uniform_(); x.random_()
    x.bernoulli_(); lib.promote_types(d, d); lib.promote_types(d, lib.float32)
    lib.promote_types(d, lib.int64); lib.result_type(x, 1.0); lib.can_cast(d, lib.float32)
    lib.can_cast(lib.float32, d); lib.can_cast(d, lib.int64); d.itemsize; d.is_floating_point
    d.is_signed; d.is_complex; d.to_complex(); x.element_size(); x.nbytes; x.type()
    x.untyped_storage().nbytes(); x.storage().dtype; x.numpy(); lib.finfo(d)
    lib.set_default_dtype(d); x.expand(3, 2, 2); x.permute(1, 0); x.flip(0); x.roll(1)
    x.unsqueeze(0); x.split(1); x.chunk(2); x.repeat(2, 1); x.index_select(0, lib.tensor([1]))
    x.masked_select(b); x.diagonal(); x.unfold(0, 2, 1); lib.as_strided(x, (2,), (1,)); x.unbind()
    x.flatten(); x.narrow(0, 0, 1); x.type_as(lib.ones(1)); lib.ones(1).type_as(x)
    lib.ones(1).to(x); x.float(); x.half(); x.double(); x.int(); x.bool(); copy.deepcopy(x)
    x.detach(); lib.nn.Parameter(x); x.requires_grad_(); lib.ones(1).copy_(x[0, :1])
    x.float().requires_grad_().to(d); x == x; x != x; x == 1; x.isnan(); x.any(); x.all(); abs(x)
    x @ x; lib.mm(x, x); lib.addmm(x, x, x); lib.nn.functional.linear(x, x)
    lib.testing.assert_close(x, x); x + x; x + 1; 1 - x; x * 2; x / 2; x ** 2; x // 2; x % 2
    x & x; -x; x < x; x + x.float(); x.float() + x; x.add_(1); x.add_(x); x.mul_(2); x.exp()
    x.sqrt(); x.round(); x.sign(); x.sigmoid(); x.relu(); x.softmax(0); x.sum(); x.mean()
    x.prod(); x.max(); x.min(); x.amax(); x.argmax(); x.norm(); x.cumsum(0); x.sort(); x.argsort()
    x.topk(1); x.unique(); x.clamp(0, 1); x.lerp(x, 0.5); x.logical_not(); x.signbit()
    lib.maximum(x, x); lib.equal(x, x.clone()); lib.allclose(x, x); lib.isclose(x, x)
    lib.dot(x[0], x[0])
    lib.bmm(x[None], x[None]); lib.nan_to_num(x); lib.histc(x); lib.tril(x); lib.triu(x); x.exp_()
    x.gather(0, lib.tensor([[0, 1]])); x.masked_fill(b, 1.0); x.count_nonzero(); x.sqrt_()
    x.neg_(); lib.nn.functional.dropout(x); lib.nn.functional.relu(x); lib.nn.functional.gelu(x)
    x.erf(); x.sub(x)
    """.replace(";", "\n")
EXPRESSIONS = [line.strip() for line in EXPRESSIONS.strip().splitlines() if line.strip()]


def plain(value, lib):
    if isinstance(value, lib.Tensor):
        return str(value.dtype), list(value.shape), value.stride(), str(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry, lib) for entry in value]
    return repr(value)


def outcome(expression, lib, name):
    x = lib.tensor([[1.0, 2.0], [4.0, 0.5]]).to(getattr(lib, name))
    b = lib.tensor([[True, False], [False, True]])
    names = {"lib": lib, "d": getattr(lib, name), "x": x, "b": b, "copy": copy}
    try:
        return plain(eval(expression, names), lib)
    except Exception as error:
        kinds = [k for k in (TypeError, NotImplementedError, RuntimeError) if isinstance(error, k)]
        return kinds[0].__name__ if kinds else type(error).__name__
    finally:
        lib.set_default_dtype(lib.float32)


@pytest.mark.filterwarnings("ignore")  # PyTorch's of TypedStorage
@pytest.mark.parametrize("name", NAMES)
def test_functions(name):
    different = []
    for expression in EXPRESSIONS:
        theirs, ours = (outcome(expression, lib, name) for lib in LIBRARIES)
        if theirs != ours:
            different.append((expression, theirs, ours))
    assert different == []


def test_an_error_names_op_and_dtype():
    x = tlc.ones(2).to(tlc.float8_e5m2)
    for call in (lambda: x + x, lambda: x.exp(), lambda: x.sum(), lambda: x.sort()):
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e5m2'"):
            call()
    assert x.tolist() == [1, 1]
    with pytest.raises(TypeError):  # others stay what they are
        tlc.ones(2) + object()


@pytest.mark.parametrize("form", ({}, {"_use_new_zipfile_serialization": False}))
@pytest.mark.parametrize("name", NAMES)
def test_files(name, form):
    for writer in LIBRARIES:
        values = writer.tensor([[1.0, 2.0], [-0.5, 448.0]]).to(getattr(writer, name))
        stream = io.BytesIO()
        writer.save({"a": values, "row": values[1], "dtype": values.dtype}, stream, **form)
        for reader in LIBRARIES:
            if form and reader is torch:
                continue  # which reads no such files, its own neither
            stream.seek(0)
            result = reader.load(stream, weights_only=True)
            assert str(result["a"].dtype) == str(result["dtype"]) == f"torch.{name}"
            np.testing.assert_array_equal(bytes_of(result["a"]), bytes_of(values))
            assert result["row"].storage_offset() == 2


@pytest.mark.parametrize("name", NAMES)
def test_copies(name):
    x = tlc.tensor([1.0, 2.0, 0.5]).to(getattr(tlc, name))
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.dtype is x.dtype and y.tolist() == x.tolist()
    assert copy.deepcopy(x.dtype) is pickle.loads(pickle.dumps(x.dtype)) is x.dtype


@pytest.mark.parametrize("name", NAMES)
def test_modules(name):
    """A state of float8 is loaded into parameters of float32, and the other way."""
    results = []
    for lib in LIBRARIES:
        small, large = lib.nn.Linear(2, 2).to(getattr(lib, name)), lib.nn.Linear(2, 2)
        with lib.no_grad():
            large.weight.copy_(lib.tensor([[1.0, 0.3], [2.0, 0.6]]))
            large.bias.copy_(lib.tensor([1.0, 4.0]))
        small.load_state_dict(large.state_dict())
        assert str(small.weight.dtype) == f"torch.{name}"
        large.load_state_dict(small.state_dict())
        results.append([large.weight.tolist(), large.bias.tolist()])
    assert results[0] == results[1]
