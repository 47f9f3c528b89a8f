"""Private functions of ``torch`` that packages call."""

from __future__ import annotations

from collections.abc import Callable

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, int8, int32, int64, uint8
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.ops.linalg.grouped_products import grouped_mm
from tensorflow_lite_clone.ops.linalg.matmul import plain_matmul
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.reduce.reductions import all as all_true
from tensorflow_lite_clone.ops.reduce.reductions import any as any_true
from tensorflow_lite_clone.tensor import Tensor


@public("torch", names=("_shape_as_tensor",))
def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape as an int64 tensor (ndim,) on the CPU. Kornia and ultralytics call it."""
    return tensor(list(self.shape), dtype=int64, device="cpu")


def _casting(dtype: DType) -> Callable[..., Tensor]:
    def cast_to(input: Tensor, non_blocking: bool = False) -> Tensor:
        return cast(input, dtype)

    cast_to.__name__ = f"_cast_{dtype.short_name}"
    cast_to.__doc__ = f"The tensor in {dtype}; normflows has one of them."
    return cast_to


for _name in "uint8 int8 float64 float32 float16 int32 int64 int16".split():
    _function = _casting(getattr(dtypes, _name))
    public("torch", names=(_function.__name__,))(_function)


@public("torch", names=("_int_mm",))
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices (m, k) and (k, n) of int8 in int32. bitsandbytes calls it.

    The first may be of uint8. Raises RuntimeError for other dtypes, dimensions, and sizes that do
    not fit.
    """
    problem = ""
    if self.ndim != 2 or mat2.ndim != 2:
        name, matrix = ("self", self) if self.ndim != 2 else ("mat2", mat2)
        problem = f"Expected {name} to be of dimension 2 but got {matrix.ndim}"
    elif self.shape[1] != mat2.shape[0]:
        sizes = f"{self.shape[1]} and {mat2.shape[0]}"
        problem = f"self.size(1) needs to match mat2.size(0) but got {sizes}"
    elif self.dtype not in (int8, uint8):
        problem = f"Expected self dtype to be int8 or uint8 but got {self.dtype.short_name.lower()}"
    elif mat2.dtype is not int8:
        problem = f"Expected mat2 dtype to be of type int8 but got {mat2.dtype.short_name.lower()}"
    if problem:
        raise RuntimeError(f"int_mm_out_cpu: {problem}")
    return plain_matmul(cast(self, int32), cast(mat2, int32))


@public("torch", names=("_is_all_true",))
def _is_all_true(self: Tensor) -> Tensor:
    """Whether all elements of a bool tensor are true, as a tensor ()."""
    return all_true(self)


@public("torch", names=("_is_any_true",))
def _is_any_true(self: Tensor) -> Tensor:
    """Whether an element of a bool tensor is true, as a tensor ()."""
    return any_true(self)


@public("torch", names=("_grouped_mm",))
def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """The older name of `nn.functional.grouped_mm`."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)
