"""Data types and PyTorch's promotion rules, without any array library."""

from __future__ import annotations

from typing import Any

_BY_NAME: dict[str, DType] = {}


class DType:
    """An element type, printed as torch prints it (``torch.float32``).

    ``kind`` is NumPy's letter: ``b`` bool, ``u`` unsigned, ``i`` signed, ``f`` floating,
    ``c`` complex.
    """

    __slots__ = ("category", "itemsize", "kind", "name", "short_name")

    def __init__(self, name: str, kind: str, itemsize: int, short_name: str) -> None:
        self.name = name
        self.kind = kind
        self.itemsize = itemsize
        self.short_name = short_name  # the word in torch's error messages ("Float", "Long")
        self.category = "biufc".index("i" if kind == "u" else kind)
        _BY_NAME[name] = self

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_signed(self) -> bool:
        return self.kind in "ifc" and self.name != "float8_e8m0fnu"

    def to_real(self) -> DType:
        """The dtype of this dtype's real part."""
        return _REAL.get(self, self)

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this dtype."""
        if self.kind == "c":
            return self
        real = self if self.kind == "f" else get_default_dtype()
        if real in FLOAT8:
            raise RuntimeError(f"Unknown Complex ScalarType for {real.short_name}")
        return _COMPLEX[real]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return (dtype_by_name, (self.name,))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: dict) -> DType:
        return self


_PYTHON: dict[object, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def as_dtype(value: object) -> DType:
    """The dtype that an argument `dtype` names: a DType, or one of Python's number types."""
    if isinstance(value, DType):
        return value
    name = _PYTHON.get(value) if isinstance(value, type) else None
    if name is None:
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(value).__name__}")
    return _BY_NAME[name]


def dtype_by_name(name: str) -> DType:
    """The dtype called `name` (``"float32"``)."""
    return _BY_NAME[name]


bool_ = DType("bool", "b", 1, "Bool")
uint8 = DType("uint8", "u", 1, "Byte")
int8 = DType("int8", "i", 1, "Char")
int16 = DType("int16", "i", 2, "Short")
int32 = DType("int32", "i", 4, "Int")
int64 = DType("int64", "i", 8, "Long")
float16 = DType("float16", "f", 2, "Half")
bfloat16 = DType("bfloat16", "f", 2, "BFloat16")
float32 = DType("float32", "f", 4, "Float")
float64 = DType("float64", "f", 8, "Double")
complex64 = DType("complex64", "c", 8, "ComplexFloat")
complex128 = DType("complex128", "c", 16, "ComplexDouble")
uint16 = DType("uint16", "u", 2, "UInt16")
uint32 = DType("uint32", "u", 4, "UInt32")
uint64 = DType("uint64", "u", 8, "UInt64")

#: Dtypes that `promote_types` promotes with floating and complex ones only, as in PyTorch.
ALOOF = (uint16, uint32, uint64)

_SIGNED = {1: int8, 2: int16, 4: int32, 8: int64}
_REAL = {complex64: float32, complex128: float64}
_COMPLEX = {float32: complex64, float64: complex128, bfloat16: complex64, float16: complex64}

#: PyTorch's other names for the same dtypes.
ALIASES = {
    "bool": bool_,
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
}
ALL = tuple(_BY_NAME.values())
#: Dtypes in which numbers are stored on the CPU; nothing calculates with them.
FLOAT8 = tuple(
    [
        DType(f"float8_{name}", "f", 1, f"Float8_{name}")
        for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    ]
)
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = FLOAT8
#: Dtypes of quantized tensors, and those of the integers that they hold.
QUANTIZED = {
    DType("qint8", "i", 1, "QInt8"): int8,
    DType("quint8", "u", 1, "QUInt8"): uint8,
    DType("qint32", "i", 4, "QInt32"): int32,
}
qint8, quint8, qint32 = QUANTIZED
#: The names under which the face exports dtypes.
NAMES = {**_BY_NAME, **ALIASES}


class _Default:
    dtype = float32


def get_default_dtype() -> DType:
    """The dtype of floating-point tensors made without an explicit dtype."""
    return _Default.dtype


def set_default_dtype(d: DType, /) -> None:
    """Set the default floating-point dtype; raises TypeError for any other dtype."""
    if not isinstance(d, DType) or d.kind != "f" or d in FLOAT8:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _Default.dtype = d


def _promote(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a.category > b.category:
        a, b = b, a
    if a.category < b.category:  # across categories the higher one wins ...
        if b.kind == "c" and a is float64:
            return complex128  # ... but keeps float64's precision
        return b
    if a.kind != b.kind:  # an unsigned with a signed integer: one that holds both
        signed, unsigned = (a, b) if a.kind == "i" else (b, a)
        return _SIGNED[max(signed.itemsize, 2 * unsigned.itemsize)]
    if a.itemsize == b.itemsize:  # float16 with bfloat16
        return float32
    return a if a.itemsize > b.itemsize else b


class Natives(dict[DType, Any]):
    """A device's own dtypes; NotImplementedError for those of which it has no arrays."""

    def __missing__(self, dtype: Any) -> Any:
        if dtype in QUANTIZED:
            raise NotImplementedError(
                f"tensors of {dtype} are made by torch.quantize_per_tensor and "
                "torch.quantize_per_channel"
            )
        if dtype not in FLOAT8:
            raise KeyError(dtype)
        raise NotImplementedError(f"tensors of {dtype} are on the CPU only")


class _Table(dict[tuple[DType, DType], DType]):
    """The promoted dtype of every pair that has one."""

    def __missing__(self, pair: tuple[Any, Any]) -> DType:
        first, second = map(as_dtype, pair)  # Python's number types
        if (first, second) != pair:
            return self[first, second]
        names = " and ".join([dtype.short_name for dtype in pair])
        if set(pair) & set(FLOAT8):
            raise RuntimeError(
                f"Promotion for Float8 Types is not supported, attempted to promote {names}"
            )
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{names}"
        )


_TABLE = _Table(
    {
        (a, b): _promote(a, b)
        for a in ALL
        for b in ALL
        if a is b
        or not (a in ALOOF or b in ALOOF)
        or "f" in a.kind + b.kind
        or "c" in a.kind + b.kind
    }
    | {(dtype, dtype): dtype for dtype in FLOAT8}
)
#: For operands also the pairs of integers that the array API standard promotes and PyTorch refuses:
#: https://data-apis.org/array-api/2025.12/API_specification/type_promotion.html.
_OPERANDS = _Table(
    {
        (a, b): _promote(a, b)
        for a in ALL
        for b in ALL
        if not (uint64 in (a, b) and "i" in a.kind + b.kind)
    }
    | {(dtype, dtype): dtype for dtype in FLOAT8}
)


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype to which both can be cast."""
    return _TABLE[type1, type2]


def promote_peers(a: DType, b: DType) -> DType:
    """`promote_types`, and the smallest integer dtype that holds both where PyTorch has none.

    RuntimeError for uint64 with signed integers, which no dtype holds.
    """
    return _OPERANDS[a, b]


def can_cast(from_: DType, to: DType) -> bool:
    """Whether torch casts `from_` to `to` when it writes a result in place."""
    return as_dtype(from_).category <= as_dtype(to).category


def uncastable(have: DType, want: DType) -> RuntimeError:
    """The error for results of a dtype that cannot be written into tensors of another."""
    return RuntimeError(
        f"result type {have.short_name} can't be cast to the desired output type {want.short_name}"
    )


def _combine(strong: DType | None, weak: DType | None) -> DType | None:
    if strong is None or weak is None:
        return strong or weak
    if strong.kind == "c":
        return strong
    if strong.kind == "f":
        return strong.to_complex() if weak.kind == "c" else strong
    if strong.kind == "b" or weak.kind in "fc":
        return _OPERANDS[strong, weak]
    return strong


def promote_operands(
    dimensioned: DType | None, zero_dim: DType | None, scalar: DType | None
) -> DType:
    """PyTorch's result type from three priority classes, each already promoted within itself.

    A weaker class (zero-dim tensors, then Python scalars) counts only when its category
    (bool < int < float < complex) is higher. Source: PyTorch's documentation, "Tensor
    attributes", section on type promotion.
    """
    result = _combine(dimensioned, _combine(zero_dim, scalar))
    assert result is not None
    return result


def dtype_of_scalar(value: object) -> DType:
    """The weak dtype of a Python scalar: bool, int64, the default dtype or its complex form."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return get_default_dtype()
    if isinstance(value, complex):
        return get_default_dtype().to_complex()
    raise TypeError(f"expected a Python number, got {type(value).__name__}")
