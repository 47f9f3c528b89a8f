"""A quantized tensor: integers, its codes, and the scale and zero point that say what they mean.

A code q stands for ``(q - zero_point) * scale``. A function of dense tensors asks for `_storage`,
and gets an error that knows what `functions` has in its place.
"""

# mypy: disable-error-code="override, assignment"
from __future__ import annotations

import copy
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, NoReturn

from tensorflow_lite_clone._tensor_str import _add_suffixes, _tensor_str
from tensorflow_lite_clone.core.dtypes import DType, float32
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.qscheme import QScheme, per_channel_affine, per_tensor_affine
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.ops.create.convert import parse_to
from tensorflow_lite_clone.tensor import Tensor


class QuantizedTensor(Tensor):
    """Numbers ``(codes - zero_point) * scale`` with `codes` of integers, in a dtype such as qint8.

    Per tensor `scale` is a float and `zero_point` an int. Per channel both are vectors, float64 and
    int64, with an element for each index along `axis`. There are no gradients.
    """

    __slots__ = ("_axis", "_codes", "_kind", "_scale", "_zero")

    __torch_function__ = disabled

    _edge = None
    _view = None
    is_quantized = True
    is_leaf = True
    grad = grad_fn = None

    def __new__(
        cls, codes: Tensor, dtype: DType, scale: Any, zero_point: Any, axis: int | None = None
    ) -> QuantizedTensor:
        self = object.__new__(cls)
        self._codes, self._kind = codes, dtype
        self._scale, self._zero, self._axis = scale, zero_point, axis
        return self

    #: By name what functions do of which an argument is quantized.
    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    _codes: Tensor
    _kind: DType
    _scale: Any
    _zero: Any
    _axis: int | None

    @property
    def _storage(self) -> NoReturn:
        raise NotStrided(
            self.functions,
            "this function does not take quantized tensors: use dequantize() first",
        )

    # -- what it is ---------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """torch.qint8, torch.quint8 or torch.qint32."""
        return self._kind

    @property
    def requires_grad(self) -> bool:
        """Always False."""
        return False

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> QuantizedTensor:
        """The tensor itself; RuntimeError for True."""
        if requires_grad:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients, got "
                f"{self.dtype}"
            )
        return self

    def qscheme(self) -> QScheme:
        """torch.per_tensor_affine or torch.per_channel_affine."""
        return per_tensor_affine if self._axis is None else per_channel_affine

    def int_repr(self) -> Tensor:
        """The codes, as a tensor of int8, uint8 or int32."""
        return self._codes.clone()

    def q_scale(self) -> float:
        """The scale of a tensor that is quantized as a whole."""
        return self._expect(per_tensor_affine, self._scale)

    def q_zero_point(self) -> int:
        """The code of 0 in a tensor that is quantized as a whole."""
        return self._expect(per_tensor_affine, self._zero)

    def q_per_channel_scales(self) -> Tensor:
        """The scales of the channels, in float64."""
        return self._expect(per_channel_affine, self._scale)

    def q_per_channel_zero_points(self) -> Tensor:
        """The codes of 0 in the channels, in int64."""
        return self._expect(per_channel_affine, self._zero)

    def q_per_channel_axis(self) -> int:
        """The axis along which the channels lie."""
        return self._expect(per_channel_affine, self._axis)

    def _expect(self, scheme: QScheme, value: Any) -> Any:
        if self.qscheme() is not scheme:
            raise RuntimeError(f"expected a tensor in {scheme}, but it is in {self.qscheme()}")
        return value

    def _spread(self, parameter: Any) -> Any:
        """A scale or zero point in a shape that broadcasts with the codes."""
        if self._axis is None:
            return parameter
        return parameter.reshape([-1 if d == self._axis else 1 for d in range(self.ndim)])

    def levels(self) -> Tensor:
        """``codes - zero_point`` in float32: the numbers in units of their scale."""
        if self._axis is None and not self._zero:
            return self._codes.to(float32)
        return (self._codes.long() - self._spread(self._zero)).to(float32)

    def dequantize(self) -> Tensor:
        """The numbers in float32."""
        scale = self._scale if self._axis is None else self._spread(self._scale).to(float32)
        return self.levels() * scale

    def tolist(self) -> NoReturn:
        """Always RuntimeError, as in PyTorch."""
        raise RuntimeError(f"tolist() does not take tensors of {self.dtype}: dequantize() first")

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Always TypeError: NumPy has no quantized arrays."""
        raise TypeError(f"Got unsupported ScalarType {self.dtype.short_name}")

    def type(self, dtype: Any = None) -> Any:
        """The type's name (``torch.quantized.QInt8Tensor``)."""
        if dtype is not None:
            return self.to(dtype)
        place = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.quantized.{place}{self.dtype.short_name}Tensor"

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, **_: Any) -> str:
        facts = [] if self.is_cpu else [f"device='{self.device}'"]
        facts += [f"size={tuple(self.shape)}", f"dtype={self.dtype}"]
        facts += [f"quantization_scheme={self.qscheme()}", f"scale={self._scale}"]
        facts.append(f"zero_point={self._zero}")
        if self._axis is not None:
            facts.append(f"axis={self._axis}")
        indent = len("tensor(")
        return _add_suffixes(f"tensor({_tensor_str(self.dequantize(), indent)}", facts, indent)

    # -- copies -------------------------------------------------------------------------------

    def _with(self, codes: Tensor) -> QuantizedTensor:
        return QuantizedTensor(codes, self._kind, self._scale, self._zero, self._axis)

    def to(self, *args: Any, **kwargs: Any) -> QuantizedTensor:
        """On another device, in the forms of ``Tensor.to``; RuntimeError for another dtype."""
        device, dtype, _, copied = parse_to(*args, **kwargs)
        if dtype not in (None, self.dtype):
            raise RuntimeError(f"a tensor of {self.dtype} becomes no other dtype: dequantize() it")
        moved = self._with(self._codes.to(device or self.device, copy=copied))
        if self._axis is not None:
            moved._scale, moved._zero = self._scale.to(moved.device), self._zero.to(moved.device)
        return moved

    def cpu(self) -> QuantizedTensor:
        """On the CPU."""
        return self.to("cpu")

    def __copy__(self) -> QuantizedTensor:
        return _rebuilt(self._with(self._codes), vars(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> QuantizedTensor:
        if id(self) not in memo:
            parts = copy.deepcopy((self._codes, self._scale, self._zero, vars(self)), memo)
            codes, scale, zero, attributes = parts
            fresh = QuantizedTensor(codes, self._kind, scale, zero, self._axis)
            memo[id(self)] = _rebuilt(fresh, attributes)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        parts = self._codes, self._kind, self._scale, self._zero, self._axis
        return QuantizedTensor, parts, vars(self) or None


def _rebuilt(tensor: QuantizedTensor, attributes: dict[str, Any]) -> QuantizedTensor:
    vars(tensor).update(attributes)
    return tensor


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both are quantized alike and have the same codes."""
    if not (isinstance(input, QuantizedTensor) and isinstance(other, QuantizedTensor)):
        raise RuntimeError("equal: expected two quantized tensors, got one and a dense one")
    same = input._kind is other._kind and input._axis == other._axis
    if not same or not input._codes.equal(other._codes):
        return False
    if input._axis is None:
        return (input._scale, input._zero) == (other._scale, other._zero)
    return input._scale.equal(other._scale) and input._zero.equal(other._zero)


def _of_codes(name: str) -> Callable[..., Any]:
    def fact(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._codes, name)(*args, **kwargs)

    return fact


def _view(name: str, changes_shape: bool) -> Callable[..., QuantizedTensor]:
    def view(self: QuantizedTensor, *args: Any, **kwargs: Any) -> QuantizedTensor:
        if changes_shape:
            self._expect(per_tensor_affine, None)
        return self._with(getattr(self._codes, name)(*args, **kwargs))

    return view


for _name in ("shape", "ndim", "device", "is_cuda", "is_cpu", "is_meta"):
    setattr(QuantizedTensor, _name, property(attrgetter(f"_codes.{_name}")))
for _name in (
    "size dim ndimension numel nelement stride storage_offset data_ptr element_size is_contiguous "
    "__len__"
).split():
    setattr(QuantizedTensor, _name, _of_codes(_name))
for _name, _changes in {
    **dict.fromkeys(("clone", "detach", "contiguous"), False),
    **dict.fromkeys(
        "__getitem__ view reshape flatten squeeze unsqueeze permute transpose t".split(), True
    ),
}.items():
    setattr(QuantizedTensor, _name, _view(_name, _changes))
    QuantizedTensor.functions[_name] = getattr(QuantizedTensor, _name)
QuantizedTensor.equal = equal
QuantizedTensor.functions |= {"equal": equal, "dequantize": QuantizedTensor.dequantize}
