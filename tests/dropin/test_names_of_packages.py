"""What packages ask of PyTorch's lesser rooms: equal to PyTorch, or refused with a reason."""

from __future__ import annotations

import json
import threading
from importlib import import_module

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import fx, profiler
from tensorflow_lite_clone.nn.parallel import scatter_gather


def test_schedule():
    for given in (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2},
        {"wait": 0, "warmup": 1, "active": 1},
    ):
        ours, theirs = profiler.schedule(**given), torch.profiler.schedule(**given)
        assert [ours(i).name for i in range(12)] == [theirs(i).name for i in range(12)]


def test_profile(tmp_path):
    with profiler.profile(record_shapes=True) as profiled:
        with profiler.record_function("mine"):
            tlc.ones(3, 2) @ tlc.ones(2, 4)
        tlc.ones(2) + 1
    sums = {event.key: event for event in profiled.key_averages()}
    assert sums["mine"].count == 1 and sums["add"].count == 1
    assert sums["mine"].cpu_time_total >= sums["mine"].self_cpu_time_total > 0
    assert "mine" in profiled.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    profiled.export_chrome_trace(str(tmp_path / "trace.json"))
    found = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in found if event["ph"] == "X"]
    assert [span["name"] for span in spans][0] == "mine"
    tlc.ones(2) + 1
    assert len(profiled.events()) == len(spans)


def marked(x):
    return x


def test_fx_marks():
    code = "def f(x):\n    return x\nassert wrap(f) is f and wrap('len') == 'len'"
    exec(code, {"wrap": fx.wrap})
    for lib in (fx, torch.fx):
        with pytest.raises(NotImplementedError):
            lib.wrap(marked)
        with pytest.raises(RuntimeError):
            lib.wrap(3)


def test_scatter_gather():
    value = {"x": tlc.arange(4), "y": 3}
    pieces = scatter_gather.scatter((value,), ["cpu", "cpu"])
    assert [piece[0]["x"].tolist() for piece in pieces] == [[0, 1], [2, 3]]
    assert scatter_gather.gather([piece[0]["x"] for piece in pieces], -1).tolist() == [0, 1, 2, 3]
    assert scatter_gather.gather([tlc.tensor(1), tlc.tensor(2)], -1).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_limits_of_float8(name):
    ours, theirs = tlc.finfo(getattr(tlc, name)), torch.finfo(getattr(torch, name))
    for limit in ("bits", "max", "min", "eps", "tiny", "resolution"):
        assert getattr(ours, limit) == getattr(theirs, limit)


def test_functions_that_are_never_captured_call_each_other():
    inner = tlc.compiler.disable(lambda x: x + 1)
    outer = tlc.compiler.disable(lambda x: inner(x) * 2)
    assert outer(tlc.ones(1)).item() == 4 and outer(tlc.ones(1)).item() == 4


def test_aten_names_are_the_functions():
    assert tlc.ops.aten.add.Tensor(tlc.ones(1), 2).item() == 3
    assert tlc.ops.aten.add.Tensor is tlc.ops.aten.add.Tensor
    with pytest.raises(NotImplementedError):
        tlc.ops.aten._pin_memory.default(tlc.ones(1))
    assert not hasattr(tlc.ops.aten, "nonsense")


CHECKS = ("", "_index", "_value", "_type", "_not_implemented", "_with", "_tensor_all")
CONDITIONS = (True, False, 1, None, "x", "tensor", "tensors", "integers")


@pytest.mark.parametrize(
    "message", [None, "text", len, lambda: "said"], ids=["none", "text", "len", "lambda"]
)
@pytest.mark.parametrize("check", (*CHECKS, "_tensor_all_with"))
def test_conditions_that_packages_check(check, message):
    def outcome(lib, condition):
        given = {
            "tensor": lib.tensor(True),
            "tensors": lib.tensor([True, False]),
            "integers": lib.tensor([1, 0]),
        }.get(condition, condition)
        error = (ArithmeticError,) if check.endswith("_with") else ()
        try:
            return getattr(lib, f"_check{check}")(*error, given, message)
        except Exception as raised:
            return type(raised), str(raised).partition(" (Could")[0]

    for condition in CONDITIONS:
        assert outcome(tlc, condition) == outcome(torch, condition)


@pytest.mark.filterwarnings("ignore:_check_is_size:FutureWarning")
def test_sizes_and_assertions():
    for lib in (tlc, torch):
        assert lib._check_is_size(3) is None and lib._check_is_size(3, max=3) is None
        for size, limit in ((-1, None), (4, 3)):
            with pytest.raises(RuntimeError, match="because"):
                lib._check_is_size(size, lambda: "because", max=limit)
        assert lib._assert(lib.tensor(True), "no") is None
        for condition in (False, 0, lib.tensor(False)):
            with pytest.raises(AssertionError, match="no"):
                lib._assert(condition, "no")
        assert (
            not isinstance(lib.ones(1), lib.TensorType) and repr(lib.TensorType.get()) == "Tensor"
        )


def test_constants_that_packages_read():
    for lib in (tlc, torch):
        assert lib.nn.modules.module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
        assert lib._C._get_tracing_state() is None
        assert not lib._C._has_xpu and not lib._C._has_mps
        assert [state.name for state in lib.amp.grad_scaler.OptState] == [
            "READY", "UNSCALED", "STEPPED"
        ]  # fmt: skip
        inverse = lib.distributions.ExpTransform().inv
        assert isinstance(inverse, lib.distributions.transforms._InverseTransform)
        assert isinstance(lib.ops.aten.add.Tensor, import_module(f"{lib.__name__}._ops").OpOverload)


@pytest.mark.parametrize("name", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_layouts_to_compare_with(name):
    for lib in (tlc, torch):
        layout = getattr(lib, name)
        assert isinstance(layout, lib.layout) and repr(layout) == f"torch.{name}"
        assert lib.ones(1).layout != layout and layout not in (lib.strided, lib.sparse_coo)
    tlc.ones(1, layout=tlc.strided)
    for make in (tlc.ones, tlc.full, tlc.rand):  # PyTorch's are empty, or have indices at random
        with pytest.raises(NotImplementedError, match=name):
            make(*((2,), 1)[: 1 + (make is tlc.full)], layout=getattr(tlc, name))
    for lib in (tlc, torch):
        with pytest.raises(RuntimeError):
            lib.zeros_like(lib.ones(2), layout=getattr(lib, name))


def test_extensions_in_cpp_are_refused_with_a_reason(monkeypatch):
    module = import_module("tensorflow_lite_clone.utils.cpp_extension")
    for build in (module.load, module.load_inline, module.CppExtension, module.CUDAExtension):
        with pytest.raises(NotImplementedError, match="headers"):
            build("fast", ["fast.cpp"], extra_cflags=["-O3"])
    with pytest.raises(NotImplementedError, match="headers"):
        module.BuildExtension.with_options(use_ninja=False)()
    theirs = import_module("torch.utils.cpp_extension")
    monkeypatch.setattr(module, "CUDA_HOME", "/toolkit")
    assert module.include_paths("cuda") == ["/toolkit/include"]
    monkeypatch.setattr(module, "CUDA_HOME", None)
    with pytest.raises(OSError, match="CUDA_HOME"):
        module.library_paths("cuda")
    assert module.include_paths() == module.library_paths() == []
    assert module.is_ninja_available() == theirs.is_ninja_available()


def test_a_file_is_a_lock(tmp_path):
    for lib in (tlc, torch):
        make = import_module(f"{lib.__name__}.utils.file_baton").FileBaton
        path = str(tmp_path / lib.__name__)
        holder, other = make(path), make(path, wait_seconds=0.01, warn_after_seconds=0.02)
        assert holder.try_acquire() and not other.try_acquire()
        release = threading.Timer(0.1, holder.release)
        release.start()
        with pytest.warns(UserWarning, match="lock file"):
            other.wait()
        release.join()
        assert other.try_acquire()
        other.release()


def test_divergences_of_classes_of_other_bases():
    for lib in (tlc, torch):

        class Own:
            pass

        kl = lib.distributions.kl

        @kl.register_kl(Own, lib.distributions.Normal)
        def divergence(p, q):
            return 3

        try:
            assert kl.kl_divergence(Own(), lib.distributions.Normal(0.0, 1.0)) == 3
        finally:
            del kl._KL_REGISTRY[Own, lib.distributions.Normal]
            kl._KL_MEMOIZE.clear()
        with pytest.raises(TypeError):
            kl.register_kl(Own, 3)


def test_a_kernel_for_all_devices_is_called_default():
    operation = tlc.library.custom_op("names::twice", mutates_args=())(_twice)
    operation.register_kernel("cpu")(lambda x: x * 2)
    tlc.library.register_kernel("names::twice", "default")(lambda x: x * 20)
    assert operation(tlc.ones(1)).item() == 2
    del operation._kernels["cpu"]
    assert operation(tlc.ones(1)).item() == 20


def _twice(x: tlc.Tensor) -> tlc.Tensor:
    return x + x


def test_samplers_of_parts_take_whole_numbers():
    for lib in (tlc, torch):
        make = lib.utils.data.DistributedSampler
        assert list(make(range(5), 2, 1, shuffle=False)) == [1, 3, 0]
        for given in ((2.0, 0), (2, 1.0), ("2", 0)):
            with pytest.raises(TypeError):
                list(make(range(5), *given))


@pytest.mark.parametrize("dtype", [None, "int64", "bool", "float32", "bfloat16", "complex64"])
@pytest.mark.parametrize(
    "data",
    [None, [None], [1, None], {1: 2}, [object()]],
    ids=["none", "nones", "mixed", "dict", "object"],
)
def test_what_is_no_number(data, dtype):
    def error(lib):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            lib.as_tensor(data, dtype=dtype and getattr(lib, dtype))
        return caught.type, str(caught.value)

    assert error(tlc) == error(torch)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_integers_beyond_64_bits_beside_other_numbers(dtype):
    for data in ((1.0, 2**70), [True, 2**63], [2**70, 1]):
        ours, theirs = (lib.tensor(data, dtype=getattr(lib, dtype)) for lib in (tlc, torch))
        assert ours.tolist() == theirs.tolist()
