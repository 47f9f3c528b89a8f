"""Switches of the process, versions, names of types, and modules of devices."""

from __future__ import annotations

import warnings

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import same
from tests.tensor.expressions import check, lines


@pytest.fixture(autouse=True)
def _as_before():
    yield
    for library in (tlc, torch):
        library.use_deterministic_algorithms(False)
        library.set_warn_always(False)


@pytest.mark.parametrize(
    "setting",
    [
        "use_deterministic_algorithms(True)",
        "use_deterministic_algorithms(True, warn_only=True)",
        "use_deterministic_algorithms(False, warn_only=True)",
        "use_deterministic_algorithms(1)",
        "set_deterministic_debug_mode('warn')",
        "set_deterministic_debug_mode('error')",
        "set_deterministic_debug_mode('default')",
        "set_deterministic_debug_mode('x')",
        "set_deterministic_debug_mode(1)",
        "set_deterministic_debug_mode(3)",
        "set_deterministic_debug_mode(1.5)",
    ],
)
def test_deterministic(setting):
    def script(lib):
        eval(f"lib.{setting}")
        return (
            lib.get_deterministic_debug_mode(),
            lib.are_deterministic_algorithms_enabled(),
            lib.is_deterministic_algorithms_warn_only_enabled(),
        )

    same(script)


WHERE_ORDER_COUNTS = {
    "put_": lambda lib: lib.zeros(3).put_(lib.tensor([0]), lib.ones(1)),
    "put": lambda lib: lib.zeros(3).put(lib.tensor([0]), lib.ones(1)),
    "put_ that adds": lambda lib: lib.zeros(3).put_(lib.tensor([0]), lib.ones(1), True),
    **{
        f"max_unpool{n}d": lambda lib, n=n: getattr(lib.nn, f"MaxUnpool{n}d")(2)(
            lib.ones(1, 1, *[2] * n), lib.zeros(1, 1, *[2] * n, dtype=lib.int64)
        )
        for n in (1, 2, 3)
    },
}


@pytest.mark.parametrize("warn_only", [False, True])
@pytest.mark.parametrize("name", WHERE_ORDER_COUNTS)
def test_functions_without_deterministic_algorithms(name, warn_only):
    found = []
    for lib in (tlc, torch):
        lib.use_deterministic_algorithms(True, warn_only=warn_only)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            try:
                WHERE_ORDER_COUNTS[name](lib)
                outcome = [str(each.message).partition(",")[0] for each in given]
            except RuntimeError as error:
                outcome = str(error).partition(",")[0]
        found.append(outcome)
    assert found[0] == found[1]
    assert bool(found[0]) is (name != "put_ that adds")


NEW_MEMORY = {
    "empty": lambda lib, dtype: lib.empty(2, 3, dtype=dtype),
    "empty_like": lambda lib, dtype: lib.empty_like(lib.zeros(2, 3).T, dtype=dtype),
    "empty_strided": lambda lib, dtype: lib.empty_strided((2, 3), (4, 1), dtype=dtype),
    "empty_permuted": lambda lib, dtype: lib.empty_permuted((2, 3), (1, 0), dtype=dtype),
    "new_empty": lambda lib, dtype: lib.zeros(2).new_empty(2, 3, dtype=dtype),
    "resize_": lambda lib, dtype: lib.zeros(2, dtype=dtype).resize_(2, 3),
    "resize_as_": lambda lib, dtype: lib.zeros(2, dtype=dtype).resize_as_(lib.ones(3, 2)),
    "zeros": lambda lib, dtype: lib.zeros(2, 3, dtype=dtype),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int16", "uint8", "bool"])
@pytest.mark.parametrize("name", NEW_MEMORY)
def test_deterministic_memory(name, dtype):
    def script(lib):
        lib.use_deterministic_algorithms(True)
        made = NEW_MEMORY[name](lib, getattr(lib, dtype))
        return str(made.tolist()), str(made.dtype)

    same(script)


def test_memory_is_left_alone_on_request():
    tlc.use_deterministic_algorithms(True)
    tlc.utils.deterministic.fill_uninitialized_memory = False
    try:
        assert tlc.core.determinism.filling(tlc.float32) is None
    finally:
        tlc.utils.deterministic.fill_uninitialized_memory = True


def test_threads():
    assert tlc.get_num_threads() >= 1 and tlc.get_num_interop_threads() >= 1

    def script(lib):
        before = lib.get_num_threads()
        lib.set_num_threads(before + 1)
        after = lib.get_num_threads() - before
        lib.set_num_threads(before)
        return after, lib.init_num_threads()

    same(script)
    for value in (0, -1, 1.5):
        same(lambda lib, value=value: lib.set_num_threads(value))
        same(lambda lib, value=value: lib.set_num_interop_threads(value))


def test_threads_between_operations_are_set_once(monkeypatch):
    monkeypatch.setattr("tensorflow_lite_clone.ops.settings._Threads.between", None)
    tlc.set_num_interop_threads(3)
    assert tlc.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="cannot set number of interop threads"):
        tlc.set_num_interop_threads(3)


def test_warn_always():
    same(lambda lib: (lib.set_warn_always(True), lib.is_warn_always_enabled()))
    same(lambda lib: lib.set_warn_always(1))


def test_anomaly_switch():
    def script(lib):
        lib.set_anomaly_enabled(True, False)
        on = lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()
        lib.set_anomaly_enabled(False)
        return on, lib.is_anomaly_enabled()

    same(script)
    for lib in (tlc, torch):
        lib.set_anomaly_enabled(False, True)


def test_denormals_are_kept():
    assert tlc.set_flush_denormal(True) is False
    assert tlc.tensor([1e-40])[0] * 1 > 0


@lines(
    """
    torch.typename(f), torch.typename(i), torch.typename(b), torch.typename(torch.nn.Parameter(f))
    torch.typename(3), torch.typename('a'), torch.typename(len), torch.typename(int)
    torch.typename(copy.copy), torch.typename(torch.nn.Linear).endswith('nn.modules.linear.Linear')
    torch.typename(torch.nn.Linear(1, 1)).endswith('nn.modules.linear.Linear')
    torch.is_storage(f.untyped_storage()), torch.is_storage(f), torch.is_storage(3)
    torch.is_distributed(f), f.is_distributed(), torch.is_vulkan_available()
    f.reinforce(1)
    """
)
def test_names_and_kinds(expression):
    check(expression)


@lines(
    """
    torch.get_autocast_cpu_dtype(), torch.get_autocast_gpu_dtype(), torch.is_autocast_cpu_enabled()
    torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    torch.set_autocast_cpu_enabled(True), torch.is_autocast_enabled('cpu')
    torch.set_autocast_cpu_enabled(False), torch.is_autocast_cpu_enabled()
    torch.set_autocast_cpu_dtype(torch.float16), torch.get_autocast_dtype('cpu')
    torch.set_autocast_cpu_dtype(torch.bfloat16), torch.get_autocast_dtype('cpu')
    torch.set_autocast_gpu_dtype(torch.bfloat16), torch.get_autocast_dtype('cuda')
    torch.set_autocast_gpu_dtype(torch.float16), torch.get_autocast_gpu_dtype()
    """
)
def test_autocast_of_old(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        check(expression)


def test_autocast_of_old_warns():
    with pytest.warns(DeprecationWarning, match=r"use torch.get_autocast_dtype\('cuda'\) instead"):
        tlc.get_autocast_gpu_dtype()


def test_version():
    assert tlc.version.__version__ == tlc.__version__
    same(lambda lib: (lib.version.cuda, lib.version.hip, lib.version.debug))


def test_types():
    for name in ("Number", "_size", "_dtype", "_device", "Device", "Tensor", "Size", "Storage"):
        assert hasattr(tlc.types, name) and hasattr(torch.types, name), name
    assert isinstance(1.5, tlc.types.Number) and isinstance(tlc.int8, tlc.types._dtype)
    assert tlc.types._int is int and tlc.types._device is tlc.device


@pytest.mark.skipif(tlc.cuda.is_available(), reason="what is answered without an accelerator")
def test_accelerator_without_one():
    def script(lib):
        module = lib.accelerator
        return module.is_available(), module.current_accelerator(), module.device_count()

    same(script)
    for name in (
        "current_device_index current_stream synchronize empty_cache memory_allocated memory_stats "
        "max_memory_allocated memory_reserved get_memory_info reset_peak_memory_stats"
    ).split():
        same(lambda lib, name=name: getattr(lib.accelerator, name)())
    same(lambda lib: lib.accelerator.set_device_index(0))


@pytest.mark.cuda
def test_accelerator():
    module = tlc.accelerator
    assert module.current_accelerator() == tlc.device("cuda") and module.device_count() >= 1
    with module.device_index(0):
        assert module.current_device_index() == 0
    x = tlc.zeros(1024, device="cuda")
    module.synchronize()
    assert module.memory_allocated() >= x.nbytes
    assert module.max_memory_allocated(0) >= x.nbytes
    assert module.get_memory_info("cuda")[1] > 0
    assert tlc.get_device_module() is tlc.cuda


def test_device_modules():
    assert tlc.get_device_module("cpu") is tlc.get_device_module(tlc.device("cpu")) is tlc.cpu
    assert tlc.get_device_module("cuda:0") is tlc.cuda
    for wrong in ("foo", 3):
        with pytest.raises(RuntimeError):
            tlc.get_device_module(wrong)


def test_cpu_module():
    def script(lib):
        cpu, stream = lib.cpu, lib.cpu.Stream()
        with cpu.stream(stream):
            inside = cpu.current_stream() is stream
        event = cpu.Event()
        event.record(), event.wait(), event.synchronize()
        stream.wait_stream(stream), stream.wait_event(event), stream.record_event()
        return (
            inside,
            cpu.current_stream() is stream,
            event.query(),
            cpu.current_device(),
            cpu.device_count(),
            cpu.is_available(),
            cpu.is_initialized(),
            cpu.synchronize(),
            cpu.set_device(0),
        )

    same(script)


PRECISIONS = """
    cuda.matmul.fp32_precision = 'tf32'
    cuda.matmul.fp32_precision = 'none'
    cuda.matmul.allow_tf32 = True
    cuda.matmul.allow_tf32 = False
    cudnn.allow_tf32 = False
    cudnn.allow_tf32 = True
    fp32_precision = 'ieee'
    fp32_precision = 'bf16'
    mkldnn.conv.fp32_precision = 'tf32'
    fp32_precision = 'none'
    cudnn.fp32_precision = 'ieee'
    cudnn.fp32_precision = 'none'
    cudnn.rnn.fp32_precision = 'ieee'
    cudnn.conv.fp32_precision = 'none'
    cuda.matmul.fp32_precision = 'none'
    mkldnn.conv.fp32_precision = 'none'
    mkldnn.matmul.fp32_precision = 'none'
    cudnn.allow_tf32 = True
"""  # and so everything is as it was


def test_precisions_in_general_and_in_particular():
    """Each word, after each of the statements; torch's `allow_tf32` refuses to answer for some."""

    def script(lib):
        names = "cudnn cudnn.conv cudnn.rnn cuda.matmul mkldnn mkldnn.matmul mkldnn.conv mkldnn.rnn"
        backends = lib.backends
        found = []
        for statement in PRECISIONS.split("\n"):
            exec(f"backends.{statement.strip()}" if statement.strip() else "", {**locals()})
            words = [eval(f"backends.{name}.fp32_precision") for name in names.split()]
            found.append([backends.fp32_precision, *words])
        return found

    same(script)


def test_words_of_precisions_are_what_kernels_ask_for():
    backends, flags = tlc.backends, tlc.core.flags.flags
    # Another test may have said a word in particular.
    backends.cuda.matmul.fp32_precision = backends.cudnn.conv.fp32_precision = "none"
    try:
        backends.fp32_precision = "tf32"
        assert flags.matmul_allow_tf32 and flags.cudnn_allow_tf32
        backends.cudnn.conv.fp32_precision = "ieee"
        assert backends.cuda.matmul.allow_tf32 and not backends.cudnn.allow_tf32
        assert tlc.get_float32_matmul_precision() == "high"
        tlc.set_float32_matmul_precision("highest")
        assert not flags.matmul_allow_tf32 and backends.mkldnn.matmul.fp32_precision == "ieee"
    finally:
        backends.fp32_precision = "none"
        backends.cuda.matmul.fp32_precision = backends.mkldnn.matmul.fp32_precision = "none"
        backends.cudnn.allow_tf32 = True


@pytest.mark.parametrize(
    "statement",
    [
        "torch.backends.cuda.matmul.fp32_precision = 'bf16'",
        "torch.backends.cuda.matmul.fp32_precision = 'fast'",
        "torch.backends.cudnn.rnn.fp32_precision = 'bf16'",
        "torch.backends.fp32_precision = 'fast'",
        "torch.utils.deterministic.fill_uninitialized_memory = 1",
        "torch.backends.cuda.matmul.nonsense = True",
        "torch.backends.quantized.engine = 'nonsense'",
    ],
)
def test_switches_that_cannot_be_set(statement):
    kinds = []
    for lib in (tlc, torch):
        with pytest.raises((RuntimeError, AttributeError)) as caught:
            exec(statement, {"torch": lib})
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
