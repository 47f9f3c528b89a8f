"""Small names of the face: older spellings, switches of absent libraries, symbols, subclasses."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)


def test_subclasses_of_tensors() -> None:
    for lib in LIBRARIES:

        class Named(lib.Tensor):
            @staticmethod
            def __new__(cls, x, name, grad=False, lib=lib):
                return lib.Tensor._make_subclass(cls, x, grad)

            def __init__(self, x, name, grad=False):
                self.name_of_it = name

        x = lib.ones(2)
        named = Named(x, "one", True)
        assert type(named) is Named and named.name_of_it == "one"
        assert named.requires_grad and named.is_leaf and not Named(x, "two").requires_grad
        with lib.no_grad():
            named[0] = 5
        assert x.tolist() == [5.0, 1.0]


SYMBOLS = [
    "sym_int(3.5)",
    "sym_float(3)",
    "sym_not(0)",
    "sym_ite(True, 1, 2)",
    "sym_max(2, 3)",
    "sym_max(2, 3.0)",
    "sym_max(4.0, 3)",
    "sym_min(2.0, 3)",
    "sym_min(2, 3)",
    "sym_sum([1, 2, 3])",
    "sym_sqrt(4)",
    "sym_int(True)",
]


@pytest.mark.parametrize("text", SYMBOLS)
def test_symbols_are_numbers(text: str) -> None:
    mine, reference = (eval(f"lib.{text}", {"lib": lib}) for lib in LIBRARIES)
    assert mine == reference and type(mine) is type(reference)


def test_nothing_is_symbolic() -> None:
    for lib in LIBRARIES:
        assert not isinstance(3, lib.SymInt)
        assert not isinstance(3.0, lib.SymFloat)
        assert not isinstance(True, lib.SymBool)


def test_older_spellings() -> None:
    for lib in LIBRARIES:
        assert lib.legacy_contiguous_format is lib.contiguous_format
        assert lib.GradScaler is lib.amp.GradScaler is lib.amp.grad_scaler.GradScaler
        assert lib.amp.autocast_mode.autocast is lib.amp.autocast
        assert lib.storage.UntypedStorage is lib.UntypedStorage
        assert lib.storage.TypedStorage is lib.TypedStorage
        assert not lib.autograd._profiler_enabled() and lib.autograd._is_checkpoint_valid()
        with pytest.raises(RuntimeError, match=r"use torch\.tensor"):
            lib.autograd.variable([1.0])
        old = import_module(f"{lib.__name__}.autograd.variable")
        assert issubclass(lib.Tensor, old.Variable) or isinstance(lib.ones(1), old.Variable)
        scaler = import_module(f"{lib.__name__}.cuda.amp.grad_scaler").GradScaler
        assert scaler is lib.cuda.amp.GradScaler and issubclass(scaler, lib.GradScaler)
        mode = import_module(f"{lib.__name__}.cuda.amp.autocast_mode")
        assert mode.autocast is lib.cuda.amp.autocast


def test_names_of_cuda() -> None:
    assert issubclass(tlc.Stream, tlc.cuda.Stream) and issubclass(tlc.Event, tlc.cuda.Event)
    assert len(tlc.cuda.default_generators) == tlc.cuda.device_count()
    assert not tlc.cuda.nccl.is_available([tlc.ones(1)])
    if tlc.distributed.is_nccl_available():
        assert tlc.cuda.nccl.version() >= (2, 7, 0)
    else:
        with pytest.raises(RuntimeError, match="no NCCL"):
            tlc.cuda.nccl.version()


def test_devices_that_are_absent() -> None:
    for lib in LIBRARIES:
        for module in (lib.xpu, lib.mps, lib.mtia):
            assert not module.is_available() and module.device_count() == 0
            assert module.manual_seed(1) is None
    assert not tlc.xpu.is_initialized()
    with pytest.raises(AttributeError, match="not served"):
        tlc.xpu.synchronize()


def test_callbacks_at_the_end_of_a_backward_pass() -> None:
    for lib in LIBRARIES:
        engine = lib.autograd.Variable._execution_engine
        seen: list[Any] = []
        x = lib.ones(2, requires_grad=True)

        def hook(g: Any, engine: Any = engine, seen: list[Any] = seen, x: Any = x) -> None:
            engine.queue_callback(lambda: seen.append(x.grad.tolist()))

        y = x * 3
        y.register_hook(hook)
        y.sum().backward()
        assert seen == [[3.0, 3.0]]
        with pytest.raises(RuntimeError, match="during backward pass"):
            engine.queue_callback(lambda: None)


def test_switches_of_absent_libraries() -> None:
    backends = tlc.backends
    for name in ("mkldnn", "nnpack", "mkl", "openmp", "opt_einsum", "quantized"):
        library: Any = getattr(backends, name)
        assert not library.is_available() if name != "quantized" else library.engine == "x86"
    assert backends.quantized.engine in backends.quantized.supported_engines
    assert backends.cpu.get_cpu_capability() == "DEFAULT"
    assert not backends.mps.is_macos_or_newer(13, 0)
    with backends.mkldnn.flags(enabled=False):
        assert not backends.mkldnn.enabled
        assert backends.mkldnn.set_flags(True) == (False,)
        assert backends.mkldnn.enabled
    assert backends.mkldnn.enabled is torch.backends.mkldnn.enabled is True
    assert backends.mkldnn.deterministic is torch.backends.mkldnn.deterministic
    assert backends.opt_einsum.strategy is torch.backends.opt_einsum.strategy
    assert backends.nnpack.set_flags(True) == torch.backends.nnpack.set_flags(True)
    with pytest.raises(TypeError, match="speed"), backends.mkldnn.flags(speed=2):
        pass


def test_the_tracing_compilers_module() -> None:
    dynamo = tlc._dynamo
    dynamo.config.verbose = True
    assert dynamo.config.verbose
    with dynamo.config.patch(verbose=False, cache_size_limit=3):
        assert not dynamo.config.verbose and dynamo.config.recompile_limit == 3
    assert dynamo.config.verbose and dynamo.config.cache_size_limit == 8
    with pytest.raises(AttributeError, match="was not set"):
        _ = dynamo.config.log_level
    tlc._inductor.config.coordinate_descent_tuning = True
    assert not dynamo.is_compiling()
    assert dynamo.disable(lambda x: x + 1)(1) == 2
    assert tlc._jit_internal._overload_method(len) is len


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_pytree_names() -> None:
    for lib in LIBRARIES:
        tree = import_module(f"{lib.__name__}.utils._pytree")
        assert repr(tree.LeafSpec()) == "*" and tree.LeafSpec().is_leaf()
        _, spec = tree.tree_flatten([1, {"a": 2}])
        assert isinstance(spec.child(0), tree.LeafSpec) and not isinstance(spec, tree.LeafSpec)
        assert spec.child(0) == tree.LeafSpec() != spec
        assert tree._get_node_type({}) is dict
        assert tree._dict_flatten({"a": 1}) == ([1], ["a"])
        assert tree._dict_unflatten([1], ["a"]) == {"a": 1}
    assert tlc.utils._pytree is import_module("tensorflow_lite_clone.utils._pytree")
