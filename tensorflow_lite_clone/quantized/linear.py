"""Linear maps with quantized weights, whose inputs are quantized anew at every call.

An input x becomes codes q with the scale s and the zero point z of its own range, so that with the
weights' scale t and levels v (codes minus zero point) ::

    x w^T + b = (s (q - z)) (t v)^T + b = s t ((q - z) v^T) + b

where the product in the middle is one of integers, and exact.
"""

from __future__ import annotations

import copyreg
from typing import Any, ClassVar

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import float16, float32, float64, int32, quint8
from tensorflow_lite_clone.ops.create.constructors import zeros
from tensorflow_lite_clone.ops.linalg.matmul import plain_matmul
from tensorflow_lite_clone.quantized.quantize import choose_qparams_per_tensor, codes_of, single
from tensorflow_lite_clone.tensor import Tensor


class ScriptObject:
    """What PyTorch's files call an object of one of its classes in C++.

    A subclass stands for such a class. Its state is what it is made of and the C++ class's name, by
    which an object that is read from a file finds the subclass.
    """

    _subclasses: ClassVar[dict[str, type[ScriptObject]]] = {}
    _cpp_class: ClassVar[str]

    def __init_subclass__(cls, cpp_class: str | None = None) -> None:
        if cpp_class is not None:
            cls._cpp_class = cpp_class
            ScriptObject._subclasses[cpp_class] = cls

    def __reduce__(self) -> tuple:
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> tuple:
        return self._contents(), self._cpp_class

    def __setstate__(self, state: tuple) -> None:
        contents, name = state
        if name not in self._subclasses:
            raise NotImplementedError(f"there is no class {name} here")
        self.__class__ = self._subclasses[name]
        self._restore(*contents)

    def _contents(self) -> tuple:
        raise NotImplementedError

    def _restore(self, *contents: Any) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"ScriptObject <{self._cpp_class}>"


class PackedLinear(
    ScriptObject, cpp_class="__torch__.torch.classes.quantized.LinearPackedParamsBase"
):
    """A weight and a bias (or None) as `linear_dynamic` takes them.

    The weight is a quantized tensor (out, in) of qint8; or one of float32, whose numbers are
    rounded to float16, as which they are multiplied.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if not weight.is_quantized:
            limit = 65504.0  # float16's largest number
            weight = weight.detach().clamp(-limit, limit).to(float16).to(float32)
        self._restore(weight, bias)

    def _restore(self, *contents: Any) -> None:
        self.weight, self.bias = contents
        self._pieces: dict[int, list[Tensor]] = {}

    def _contents(self) -> tuple:
        return self.weight, self.bias

    def pieces(self, largest_x: int) -> list[Tensor]:
        """The weight's levels in float32, in the pieces of columns that `integer_product` takes
        with inputs of magnitudes up to `largest_x`.

        They are kept: to make them anew takes longer than the product of few rows with them (14 ms
        and 2 ms for 4096 x 4096 and one row).
        """
        if largest_x not in self._pieces:
            weight: Any = self.weight
            zero = weight._zero
            if isinstance(zero, Tensor):
                zero = int(zero.abs().amax().item()) if zero.numel() else 0
            size = 2**24 // (largest_x * (128 + abs(zero)))
            pieces = weight.levels().split(size, 1)
            self._pieces[largest_x] = [piece.contiguous() for piece in pieces]
        return self._pieces[largest_x]

    def scaled(self, scale: float) -> Any:
        """The product of an input's scale and the weight's: of one, or of each output."""
        weight: Any = self.weight
        weights = weight._scale
        if isinstance(weights, Tensor):
            return (weights.to(float32) * single(scale)).to(float64)
        return single(single(weights) * single(scale))

    def to(self, device: Any) -> PackedLinear:
        """The same on a device."""
        bias = self.bias if self.bias is None else self.bias.to(device)
        return PackedLinear(self.weight.to(device), bias)


@no_grad()
def linear_dynamic(x: Tensor, packed: PackedLinear, reduce_range: bool = False) -> Tensor:
    """``x @ weight.T + bias`` for x (..., in) of float32: (..., out), out of any graph.

    Raises RuntimeError for other dtypes, for fewer than two dimensions, for sizes that do not fit
    and for numbers that are not finite.
    """
    features = packed.weight.shape[1]
    if x.dtype is not float32:
        raise RuntimeError(f"expected scalar type Float but found {x.dtype.short_name}")
    if x.ndim < 2:
        raise RuntimeError(
            f"The dimension of input tensor should be larger than or equal to 2, got {x.ndim}"
        )
    if x.shape[-1] != features:
        raise RuntimeError(
            f"expected {features} features in the last dimension of the input, got {x.shape[-1]}"
        )
    rows = x.detach().reshape(-1, features)
    if not packed.weight.is_quantized:
        result = plain_matmul(rows, packed.weight.t())
        if packed.bias is not None:
            result += packed.bias
    elif rows.numel():
        scale, zero_point = choose_qparams_per_tensor(rows, reduce_range)
        levels = codes_of(rows, scale, zero_point, quint8).sub_(zero_point)
        # Half of 255 codes, and one more where the largest number is rounded up.
        sums = integer_product(levels, packed.pieces(128 if reduce_range else 255))
        # PyTorch multiplies and adds in one instruction, which rounds once: so does float64.
        result = sums.to(float64).mul_(packed.scaled(scale))
        if packed.bias is not None:
            result += packed.bias
        result = result.to(float32)
    else:
        result = zeros(rows.shape[0], packed.weight.shape[0], device=x.device)
    return result.reshape(*x.shape[:-1], packed.weight.shape[0])


def integer_product(x: Tensor, pieces: list[Tensor]) -> Tensor:
    """``x @ w.T`` of whole numbers in float32, exact until the result is rounded to float32.

    Whole numbers up to 2**24 are exact in float32, and so are sums of products that cannot get
    larger, in whichever order they are added. So `pieces` are parts of the columns of w for which
    ``columns * largest_x * largest_w <= 2**24``, 1024 of them for codes of 7 and 8 bits; and the
    products with them are added as int32. (Products of integers by NumPy take up to a hundred times
    as long, float64 twice as long: 128 x 3072 by 3072 x 768 in 18 ms, 47 ms in float64.)
    """
    if len(pieces) == 1:
        return plain_matmul(x, pieces[0].t())
    parts = x.split(pieces[0].shape[1], 1)
    total = zeros(x.shape[0], pieces[0].shape[0], dtype=int32, device=x.device)
    for part, piece in zip(parts, pieces, strict=True):
        total += plain_matmul(part, piece.t()).to(int32)
    return total.to(float32)
