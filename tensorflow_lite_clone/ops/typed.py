"""``torch.FloatTensor`` and its kin: constructors, types for `isinstance`, names of dtypes."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, set_default_dtype
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops import create
from tensorflow_lite_clone.tensor import Tensor


class _TensorType(type):
    """A class that makes CPU tensors of one dtype and counts them as its instances."""

    dtype: DType
    tensor_type: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.is_cpu and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dtype is not cls.dtype:
            raise TypeError(
                f"expected {cls.tensor_type} (got torch.{args[0].dtype.short_name}Tensor)"
            )
        if len(args) == 1 and not isinstance(args[0], (int, Size)):
            return create.tensor(args[0], dtype=cls.dtype)
        return create.empty(*(args or (0,)), dtype=cls.dtype)

    def __repr__(cls) -> str:
        return f"<class '{cls.tensor_type}'>"


for _dtype in dtypes.ALL:
    if _dtype.kind != "c":
        _name = f"{_dtype.short_name}Tensor"
        _body = {"dtype": _dtype, "tensor_type": f"torch.{_name}"}
        export(_TensorType(_name, (), _body), "torch", name=_name)


@public("torch")
def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by a tensor type, such as ``torch.DoubleTensor`` or its name."""
    name = getattr(t, "tensor_type", t)
    matches = [d for d in dtypes.ALL if f"torch.{d.short_name}Tensor" == name]
    if not matches:
        raise TypeError(f"invalid type object: {t!r}")
    set_default_dtype(matches[0])


@public("method")
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """An uninitialised tensor of a size, or one of given data, in this tensor's dtype."""
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        return create.tensor(args[0], dtype=self.dtype, device=device or self.device)
    return create.empty(*(args or (0,)), dtype=self.dtype, device=device or self.device)
