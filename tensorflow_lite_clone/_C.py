"""What packages use of PyTorch's compiled module, in terms of this package."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tensorflow_lite_clone.accelerator import current_accelerator
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.ops.convert import parse_to
from tensorflow_lite_clone.random import Generator
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Generator", "PyTorchFileReader", "TensorType"]

_has_cuda = _has_mps = _has_xpu = False  # what the compiled module was built with: there is none

_TensorMeta = type(Tensor)
_nn = SimpleNamespace(_parse_to=parse_to)


def _disabled_torch_function_impl(
    function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """For ``__torch_function__`` of a class whose instances are treated as plain tensors."""
    return function(*args, **(kwargs or {}))


def _log_api_usage_once(event: str) -> None:
    """Nothing: no use of any name is counted."""


def _get_tracing_state() -> None:
    """None: no graph of TorchScript is being traced."""


def _get_default_device() -> str:
    """The type of the device that tensors are made on."""
    return get_default_device().type


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
