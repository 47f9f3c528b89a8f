"""The meta device's face under PyTorch and here: what is made, told, refused, saved and printed."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same


def told(value: Any, lib: Any) -> Any:
    """What can be told of tensors that have no elements, in containers too; others as they are."""
    if isinstance(value, lib.Tensor):
        strides = value.stride() if value.layout is lib.strided else None
        parts = str(value.dtype), tuple(value.shape), strides, str(value.device)
        elements = None if value.is_meta else value.detach().tolist()
        return (type(value).__name__, *parts, value.requires_grad, elements)
    if isinstance(value, dict):
        return {key: told(item, lib) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(item, lib) for item in value]
    return value


def agreed(script: Callable[[Any], list], **options: Any) -> list:
    """What `script` returns under both libraries, which is no exception.

    It is about the CPU beside meta, whatever device the tests run on.
    """

    def on_the_cpu(lib: Any) -> list:
        tlc.set_default_device(None)
        return script(lib)

    results = same(on_the_cpu, **options)
    assert isinstance(results, list), results
    return results


def check(expressions: str) -> None:
    """Each line gives or raises the same under both libraries; `x` and `w` are on meta."""

    def script(lib: Any) -> list:
        results: list = []
        for line in expressions.strip().splitlines():
            x, w = lib.ones(2, 3, device="meta"), lib.ones(3, device="meta", requires_grad=True)
            names = {"torch": lib, "np": np, "x": x, "w": w, "copy": copy, "pickle": pickle}
            results.append([line.strip(), told(attempt(eval, line.strip(), names), lib)])
        return results

    results = agreed(script, warned=False)
    assert [line for line, _ in results] == [line.strip() for line in expressions.split("\n")[1:-1]]


def test_factories() -> None:
    check("""
        torch.zeros(2, 3, device="meta")
        torch.ones((2,), dtype=torch.int8, device="meta:0")
        torch.empty(2, 3, 4, 5, device="meta", memory_format=torch.channels_last)
        torch.full((2,), True, device="meta")
        torch.arange(0, 1, 0.3, device="meta")
        torch.range(0, 5, device="meta")
        torch.linspace(0, 1, 5, device="meta"), torch.logspace(0, 1, 5, device="meta")
        torch.eye(3, 4, device="meta")
        torch.tensor([[1, 2.0]], device="meta", requires_grad=True)
        torch.tensor([1, "a"], device="meta")
        torch.as_tensor(np.ones((2, 3)).T, device="meta")
        torch.scalar_tensor(3, device="meta")
        torch.zeros_like(torch.ones(2, 3).t(), device="meta")
        torch.ones_like(x, device="cpu")
        torch.rand_like(x), torch.randn_like(torch.ones(2, 3).t(), device="meta")
        torch.randint_like(x, 5), torch.full_like(x, 5)
        x.new_zeros(3), x.new_empty_strided((2, 3), (1, 2)), x.new_tensor([1, 2])
        x.new_full((2,), 1), x.new_ones(2, dtype=torch.int64), x.new_empty(2, device="meta")
        torch.ones(2).new_zeros(3, device="meta")
        torch.empty_permuted((2, 3, 4), (0, 2, 1), device="meta")
        torch.complex(x, x), torch.polar(x, x)
        torch.tril_indices(3, 4, 1, device="meta"), torch.triu_indices(3, 4, device="meta")
        torch.hann_window(5, device="meta"), torch.kaiser_window(5, device="meta")
        torch.normal(0.0, 1.0, (3,), device="meta"), torch.normal(x), torch.normal(1.0, x)
        torch.normal(x, x), torch.bernoulli(x), torch.multinomial(x, 2), torch.poisson(x)
        torch.randint(1, 5, (3,), dtype=torch.int32, device="meta")
        torch.randperm(5, device="meta"), torch.randn(2, device="meta", requires_grad=True)
        torch.rand(3, device="meta", generator=torch.Generator())
        torch.Generator("meta")
        torch.UntypedStorage(10, device="meta").nbytes()
        torch.zeros(2**40, 2**20, device="meta").nbytes
        torch.zeros(2**62, 2, device="meta")
    """)


def test_moves() -> None:
    check("""
        torch.ones(2, 3).t().to("meta"), torch.ones(4, 2)[::2].to("meta")
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).to("meta")
        torch.ones(3).to("meta", torch.float16), x.to(torch.float64), x.type(torch.int64)
        x.to("meta") is x, x.to(x.device) is x, x.type()
        x.to("cpu")
        x.cpu()
        x.to("cpu", torch.float16)
        x.copy_(torch.ones(3)), x.copy_(x)
        x.copy_(torch.ones(4))
        torch.ones(2, 3).copy_(x)
        x + torch.tensor(2.0), torch.tensor(2) * x, torch.where(x > 0, x, torch.tensor(2.0))
        [x[torch.tensor([0, 1])], torch.stack([x, x]), list(x)]
        torch.get_default_device(), torch.device("meta"), str(torch.device("meta", 0))
    """)


def test_values_are_refused() -> None:
    check("""
        x[0, 0].item()
        x.item()
        bool(w[0])
        bool(x)
        int(w[0])
        float(w[0].detach())
        complex(w[0])
        range(3)[w[0].detach().long()]
        x.tolist()
        x[0, 0].tolist()
        x.numpy()
        x.numpy(force=True)
        np.asarray(x)
        1.0 in x
        torch.allclose(x, x)
        x.__dlpack__()
        x.__dlpack_device__()
        x.share_memory_()
        x.untyped_storage().tolist()
        x.untyped_storage()[0]
        torch.is_nonzero(x[0, 0])
    """)
    words = "same device", "expected device"
    for script in (
        lambda lib: lib.ones(3, device="meta") + lib.ones(3),
        lambda lib: lib.nn.Linear(3, 4, device="meta")(lib.ones(2, 3)),
        lambda lib: lib.cat([lib.ones(3, device="meta"), lib.ones(3)]),
    ):
        (here, there) = (attempt(script, lib) for lib in (tlc, torch))
        assert type(here) is type(there) is RuntimeError
        assert all(any(word in str(error) for word in words) for error in (here, there))
    raises(lambda lib: lib.ones(3, device="meta").equal(lib.ones(3, device="meta")), "aten::equal")
    raises(lambda lib: lib.ones(3, device="meta").pin_memory(), "only dense CPU tensors")


def test_dtypes_are_refused() -> None:
    check("""
        x.bool() - x.bool()
        -x.bool()
    """)


def test_sizes_that_no_memory_has_are_refused() -> None:
    check("""
        torch.empty(2**62, 4, device="meta")
        torch.empty(2**31, 1, device="meta") @ torch.empty(1, 2**31, device="meta")
        torch.cat([torch.empty(2**60, device="meta")] * 4)
        torch.empty(2**61, device="meta").double()
        torch.empty(1, device="meta").expand(2**62).contiguous()
        torch.empty(1, device="meta").expand(2**62).shape
    """)
    raises(lambda lib: lib.outer(*[lib.empty(2**40, device="meta")] * 2), "overflow")


def test_facts() -> None:
    check("""
        x.is_meta, torch.ones(1).is_meta, x.is_cpu, x.is_cuda, x.is_shared(), x.is_leaf
        torch.nn.Parameter(x).is_meta, torch.nn.LazyLinear(3, device="meta").weight.is_meta
        x.device == torch.device("meta"), x.device == torch.device("meta:0"), x.get_device()
        x.data_ptr(), x[1:].data_ptr(), x[1:].storage_offset(), x.nbytes, x.element_size()
        x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()
        torch.empty_strided((2, 2), (10, 1), device="meta").untyped_storage().nbytes()
        x.untyped_storage().device, x[1:].untyped_storage().size(), x.storage().is_shared()
        x.untyped_storage()._cdata == x.t().untyped_storage()._cdata
        x.untyped_storage()._cdata == w.untyped_storage()._cdata
        x.storage().size(), x.storage().dtype, x.storage().device, x.storage().data_ptr()
        x.as_strided((2, 2), (1, 2), 1), x.as_strided((2, 2), (1, 2), 1).storage_offset()
        x.data, x.detach(), w.data, str(x.layout), x.is_contiguous(), x.t().is_contiguous(), len(x)
        x.resize_(4, 2), x.untyped_storage().nbytes()
        x.resize_(2), x.untyped_storage().nbytes()
        x.set_(x.untyped_storage(), 1, (2,), (1,)), x.storage_offset()
        x.set_(torch.zeros(2, device="meta"))
        x.new_empty(0).set_(torch.UntypedStorage(24, device="meta"), 0, (2, 3), (3, 1))
        x.set_()
        x.set_(torch.zeros(2))
        torch.testing.assert_close(x, x), torch.testing.assert_close(x, x.clone())
        torch.testing.assert_close(x, torch.ones(4, device="meta"))
        hash(x) == hash(x), {x: 1}[x]
    """)
    for make in (
        lambda lib: (lib.ones(3, device="meta"), lib.zeros(4)),
        lambda lib: (lib.ones(3), lib.zeros(4, device="meta")),
        lambda lib: (lib.nn.Parameter(lib.ones(3, device="meta")), lib.zeros(4)),
    ):
        raises(lambda lib, make=make: setattr(*make(lib)[:1], "data", make(lib)[1]), "set_data")


def test_versions_of_views() -> None:
    def script(lib: Any) -> list:
        x = lib.randn(3, 4, device="meta")
        row, columns, line = x[1], x.t(), x.view(12)
        row.zero_()
        columns.mul_(2)
        line[3:] = 1
        x[0] = lib.ones(4)
        x += 1
        views = row, columns, line
        return [x._version, *[(v._version, v._base is x, v.storage_offset()) for v in views]]

    agreed(script)


def test_printing() -> None:
    check("""
        [str(x), repr(x.int()), str(x.requires_grad_()), str(w * 2), str([x[0]]), f"{x[0, 0]}"]
        [str(torch.nn.Parameter(x)), str(torch.nn.Linear(2, 3, device="meta"))]
        [str(torch.ones(0, 3, device="meta")), str(torch.ones((), device="meta", dtype=torch.bool))]
        f"{w[0]:.2f}"
        str(x.untyped_storage()), str(x.storage())
        str(torch.sparse_coo_tensor(x[:, :2].long(), w[:2].detach(), (4, 4)))
    """)

    def in_full(lib: Any) -> list:
        lib.set_printoptions(profile="full", precision=2)
        try:
            return [str(lib.ones(2000, device="meta"))]
        finally:
            lib.set_printoptions(profile="default")

    agreed(in_full)


def test_contexts() -> None:
    def script(lib: Any) -> list:
        here = [lib.zeros(1)]
        with lib.device("meta"):
            here += [lib.zeros(1), lib.get_default_device()]
            with lib.device("cpu"):
                here += [lib.zeros(1), lib.get_default_device()]
            given = lib.ones(2, device="cpu")
            here += [lib.as_tensor(given), lib.asarray(given), lib.zeros_like(given)]
            here += [given.new_zeros(2), given + 1, lib.from_numpy(np.ones(2)), lib.nn.Linear(2, 1)]
            with pytest.raises(ZeroDivisionError), lib.device("cpu"):
                raise ZeroDivisionError
            here += [lib.tensor([1])]
        here += [lib.zeros(1), lib.get_default_device()]
        lib.set_default_device("meta")
        try:
            here += [lib.zeros(1), lib.get_default_device(), lib.arange(3)]
            with lib.device("cpu"):
                here += [lib.zeros(1)]
        finally:
            lib.set_default_device(None)
        modules = [list(m.parameters()) for m in here if isinstance(m, lib.nn.Module)]
        return told([m for m in here if not isinstance(m, lib.nn.Module)] + modules, lib)

    agreed(script, warned=False)


def test_contexts_of_threads() -> None:
    def script(lib: Any) -> list:
        with lib.device("meta"), ThreadPoolExecutor(1) as other:
            here = [lib.ones(1), other.submit(lib.ones, 1).result()]
            here += [other.submit(lib.get_default_device).result()]
        return told(here, lib)

    agreed(script)


LAYERS = """
    Linear(3, 4); Conv2d(3, 4, 3); ConvTranspose1d(3, 4, 3); LSTM(3, 4, 2); Embedding(9, 3)
    MultiheadAttention(4, 2); TransformerEncoderLayer(4, 2); BatchNorm2d(3); Bilinear(2, 3, 4)
    PReLU(); GroupNorm(2, 4); EmbeddingBag(9, 3)
"""
FILLS = "uniform_ normal_ exponential_ cauchy_ log_normal_ bernoulli_ random_"
INITIAL = """ones_ zeros_ eye_ uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_
kaiming_uniform_ kaiming_normal_ orthogonal_"""


def test_no_generator_is_read() -> None:
    def script(lib: Any) -> list:
        lib.manual_seed(3)
        state, f = lib.get_rng_state(), lib.nn.functional
        with lib.device("meta"):
            for layer in LAYERS.replace("\n", ";").split(";"):
                if layer.strip():
                    eval(f"nn.{layer.strip()}", {"nn": lib.nn})
            x = lib.rand(2, 3, 4)
            made = [lib.randn(3), lib.randint(3, (2,)), lib.randperm(4), lib.bernoulli(x)]
            made += [f.dropout(x), f.dropout1d(x), f.alpha_dropout(x), f.gumbel_softmax(x)]
            made += [getattr(x, name)() for name in FILLS.split()]
        w = lib.empty(4, 4, device="meta")
        same_tensor = [getattr(lib.nn.init, name)(w) is w for name in INITIAL.split()]
        same_tensor += [lib.nn.init.constant_(w, 2) is w]
        return [told(made, lib), same_tensor, lib.equal(state, lib.get_rng_state())]

    agreed(script)
    with tlc.device("meta"):  # PyTorch draws the zeros of sparse_ on the CPU
        state = tlc.get_rng_state()
        tlc.nn.init.sparse_(tlc.empty(4, 4), 0.5)
        tlc.nn.init.dirac_(tlc.empty(4, 4, 3))
        assert (tlc.get_rng_state() == state).all()
    with tlc.random.fork_rng():  # which keeps the states of all devices in use
        tlc.rand(3, device="meta")


def test_gradients() -> None:
    def script(lib: Any) -> list:
        x = lib.randn(3, device="meta", requires_grad=True)
        calls = []
        x.register_hook(lambda g: calls.append(told(g, lib)))
        x.register_post_accumulate_grad_hook(lambda p: calls.append(told(p.grad, lib)))
        for _ in range(2):
            y = (x * 2).relu()
            y.retain_grad()
            y.sum().backward(lib.tensor(1.0))
        grads = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
        lib.ones(3, requires_grad=True).to("meta").sum().grad_fn.name()
        checkpointed = lib.utils.checkpoint.checkpoint(
            lambda x: lib.nn.functional.dropout(x.exp()), x, use_reentrant=False
        )
        checkpointed.sum().backward()
        assign = attempt(setattr, x, "grad", lib.ones(3, device="meta"))
        wrong = attempt((x * 2).backward, lib.ones(3)), attempt(x.add_, 1)
        return told([x.grad, y.grad, y, grads, calls, wrong, assign, y.grad_fn.name()], lib)

    agreed(script)
    stale = "modified by an inplace operation"

    def stale_script(lib: Any) -> None:
        y = lib.ones(3, device="meta", requires_grad=True).exp()
        y.add_(1)
        y.sum().backward()

    raises(stale_script, stale)


def test_pickles_copies_and_files() -> None:
    def script(lib: Any) -> list:
        x = lib.randn(3, 4, device="meta", requires_grad=True)
        module = lib.nn.Linear(2, 2, device="meta")
        module.weight.grad = lib.ones(2, 2, device="meta")
        copied = copy.deepcopy(module)
        results = [pickle.loads(pickle.dumps(value)) for value in (x, x.detach().t())]
        results += [copy.copy(x), copy.deepcopy(x), copied.weight, copied.weight.grad]
        results += pickle.loads(pickle.dumps(module)).parameters()
        state = {"x": x.detach(), "t": x.detach().t(), "row": x.detach()[1:], "p": module.weight}
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            file = io.BytesIO()
            lib.save(state, file, **options)
            assert len(file.getvalue()) < 4000
            results += [
                lib.load(io.BytesIO(file.getvalue()), map_location=m) for m in (None, "cpu")
            ]
        return told(results, lib)

    agreed(script)


def test_files_are_loaded_without_their_values(tmp_path: Any) -> None:
    def script(lib: Any) -> list:
        path, x = tmp_path / lib.__name__, lib.arange(12.0).reshape(3, 4)
        lib.save({"x": x, "t": x.t(), "last": x[1:], "p": lib.nn.Parameter(x[0])}, path)
        found = [lib.load(path, map_location="meta", mmap=mmap) for mmap in (False, True)]
        offsets = [each["last"].storage_offset() for each in found]
        return told([found, offsets, lib.load(path, map_location=lib.device("meta"))], lib)

    agreed(script)


@pytest.mark.parametrize("here", (True, False))
def test_files_of_the_other_library(here: bool) -> None:
    writer, reader = (tlc, torch) if here else (torch, tlc)
    file = io.BytesIO()
    value = writer.nn.Parameter(writer.ones(4, 3, device="meta").t())
    writer.save({"p": value}, file)
    file.seek(0)
    assert told(reader.load(file)["p"], reader) == told(value, writer)


def test_device_types_are_named() -> None:
    message = r"Expected one of cpu, cuda, meta(, \w+)* device type at start"
    with pytest.raises(RuntimeError, match=message):
        tlc.ones(2, device="xpu")
    for name in ("metaa", "meta:-1", "meta:x"):
        assert type(attempt(tlc.device, name)) is type(attempt(torch.device, name)) is RuntimeError


def test_sparse_tensors() -> None:
    places = "torch.zeros(2, 3, dtype=torch.int64, device='meta')"
    check(f"""
        torch.sparse_coo_tensor({places}, w.detach(), (4, 5)).shape
        torch.sparse_coo_tensor({places}, w.detach(), (4, 5)).is_meta
        torch.sparse_coo_tensor({places}, w.detach())
        torch.eye(3).to_sparse().to("meta").shape, torch.eye(3).to_sparse().is_meta
    """)
    file = io.BytesIO()
    tlc.save(tlc.eye(3).to_sparse().to("meta"), file)
    file.seek(0)
    assert tlc.load(file).is_meta
