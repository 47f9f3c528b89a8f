"""``torch.FloatTensor``, ``torch.cuda.FloatTensor``: constructors, types for `isinstance`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import set_default_device, set_tensor_type_device
from tensorflow_lite_clone.core.dtypes import DType, set_default_dtype
from tensorflow_lite_clone.core.errors import BackendUnavailableError
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.compat.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage
from tensorflow_lite_clone.ops.create import constructors
from tensorflow_lite_clone.tensor import Tensor, new_tensor


class _TensorType(type):
    """A class that makes tensors of one dtype on one device and counts them as its instances."""

    dtype: DType
    device_type: str
    is_cuda: bool
    tensor_type: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.device_type
        )

    def __call__(cls, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Tensor) and not isinstance(args[0], cls):
            raise TypeError(f"expected {cls.tensor_type} (got {args[0].type()})")
        try:
            if len(args) == 1 and not isinstance(args[0], (int, Size)):
                return constructors.tensor(args[0], dtype=cls.dtype, device=cls.device_type)
            return constructors.empty(*(args or (0,)), dtype=cls.dtype, device=cls.device_type)
        except BackendUnavailableError as error:
            raise TypeError(f"type {cls.tensor_type} not available. {error}") from None

    def __repr__(cls) -> str:
        return f"<class '{cls.tensor_type}'>"


for _dtype in [dtype for dtype in dtypes.ALL if dtype not in dtypes.ALOOF]:
    for _place, _device in (("torch", "cpu"), ("cuda", "cuda")):
        if _dtype.kind != "c":
            _name = f"{_dtype.short_name}Tensor"
            _body = {
                "dtype": _dtype,
                "tensor_type": f"torch.{_name}" if _place == "torch" else f"torch.cuda.{_name}",
                "device_type": _device,
                "is_cuda": _device == "cuda",
            }
            export(_TensorType(_name, (), _body), _place, name=_name)


@public("torch")
def set_default_tensor_type(t: Any, /) -> None:
    """Set default dtype and device by a tensor type, such as ``torch.DoubleTensor`` or its name."""
    name = getattr(t, "tensor_type", t)
    space, _, word = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    matches = [d for d in dtypes.ALL if f"{d.short_name}Tensor" == word]
    if not matches or space not in ("torch", "torch.cuda"):
        raise TypeError(f"invalid type object: {t!r}")
    set_default_dtype(matches[0])
    device = "cuda" if space == "torch.cuda" else "cpu"
    set_default_device(device)
    set_tensor_type_device(device)


@public("method")
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """An uninitialised tensor of a size, one over a storage's memory, or one of given data, in this
    tensor's dtype."""
    if len(args) == 1 and isinstance(args[0], TypedStorage):
        return args[0]._line.detach()
    if len(args) == 1 and isinstance(args[0], UntypedStorage):
        return new_tensor(args[0]._memory).reshape(-1).view(self.dtype)
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        return constructors.tensor(args[0], dtype=self.dtype, device=device or self.device)
    return constructors.empty(*(args or (0,)), dtype=self.dtype, device=device or self.device)
