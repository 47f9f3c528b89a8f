"""What packages use of PyTorch's compiled module, in terms of this package."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tensorflow_lite_clone.accelerator import current_accelerator
from tensorflow_lite_clone.autograd.mode import _set_grad_enabled as _set_grad_enabled
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.torch_function import (
    ALL_DISABLED,
    ENABLED,
    SUBCLASSES_DISABLED,
    disabled,
    disabling,
    state,
)
from tensorflow_lite_clone.ops.create.convert import parse_to
from tensorflow_lite_clone.python_dispatch.calls import disabled as dispatch_disabled
from tensorflow_lite_clone.random import Generator
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Generator", "PyTorchFileReader", "TensorType"]

_has_cuda = _has_mps = _has_xpu = False  # what the compiled module was built with: there is none

_TensorMeta = type(Tensor)
_nn = SimpleNamespace(
    _parse_to=parse_to, log_sigmoid=EXPORTS["functional"]["logsigmoid"], **EXPORTS["functional"]
)
_fft, _linalg, _special = [
    SimpleNamespace(**{f"{place}_{name}": value for name, value in EXPORTS[place].items()})
    for place in ("fft", "linalg", "special")
]


_disabled_torch_function_impl = disabled
_disabled_torch_dispatch_impl = dispatch_disabled


class DisableTorchFunctionSubclass:
    """A block in which no argument is asked for its ``__torch_function__``; modes are."""

    _asked = SUBCLASSES_DISABLED

    def __enter__(self) -> None:
        self._block = disabling(self._asked)
        self._block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither arguments nor modes are asked."""

    _asked = ALL_DISABLED


def _is_torch_function_enabled() -> bool:
    """Whether arguments are asked for their ``__torch_function__`` here."""
    return state.disabled == ENABLED


def _is_torch_function_all_disabled() -> bool:
    """Whether nobody is asked here."""
    return state.disabled == ALL_DISABLED


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode is on, and asked."""
    return state.disabled < ALL_DISABLED and bool(state.modes)


def _len_torch_function_stack() -> int:
    """The number of modes that are on."""
    return len(state.modes)


def _get_function_stack_at(position: int) -> Any:
    """A mode that is on; the outermost is the first."""
    return state.modes[position]


def _log_api_usage_once(event: str) -> None:
    """Nothing: no use of any name is counted."""


def _get_tracing_state() -> None:
    """None: no graph of TorchScript is being traced."""


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of `torch.func` is running the function that asks."""
    return bool(mode.transforms)


def _get_default_device() -> str:
    """The type of the device that tensors are made on."""
    return get_default_device().type


def _get_privateuse1_backend_name() -> str:
    """The name of devices that PyTorch's extensions would add: timm lists it."""
    return "privateuseone"


def _set_fuser(enabled: bool) -> bool:
    """A switch of TorchScript's compiler, which is not here (timm, ultralytics): False."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode = _set_fuser
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _set_fuser
_jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _set_fuser


def _jit_can_fuse() -> bool:
    """Whether TorchScript's compiler makes one operation of several: it does not."""
    return False


_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _jit_can_fuse


def _set_math_sdp_allow_fp16_bf16_reduction(allowed: bool) -> None:
    """Nothing: attention in two-byte numbers is summed in float32."""


def _get_accelerator() -> Device:
    """The device type of the GPU that there is, the CPU without one."""
    return current_accelerator() or Device("cpu")


class PyTorchFileReader:
    """What reads a file part by part: NotImplementedError. `load` with ``mmap=True`` is lazy."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError("PyTorchFileReader: see torch.load with mmap=True")


class TensorType:
    """TorchScript's type of tensors, which packages write in annotations: no tensor is of it."""

    @staticmethod
    def get() -> TensorType:
        """The type of any tensor."""
        return _ANY_TENSOR

    def __repr__(self) -> str:
        return "Tensor"


_ANY_TENSOR = TensorType()


class Graph:
    """TorchScript's type of graphs, for annotations (transformers' SEW-D): nothing is of it."""


class Value:
    """TorchScript's type of a graph's values, for annotations: nothing is of it."""
