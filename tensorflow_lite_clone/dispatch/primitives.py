"""The primitives: what ``F`` offers and a backend implements, each with its record.

A primitive is a function of the array API standard, version 2024.12 (data-apis.org), or one of the
few that the standard lacks. Its record says what is asked of it anywhere: its kind (shapes, costs,
the batching rule of `func.batching`), its dtypes, how CUDA C++ says it in a fused kernel, and what
a backend has to know in order to implement it. Lists of primitives elsewhere are made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, ModuleType
from typing import Any, NamedTuple

from tensorflow_lite_clone.dispatch import costs, kinds
from tensorflow_lite_clone.dispatch.kinds import Kind

#: Rules by which dtypes of results follow from those of the operands. Where a primitive takes a
#: keyword `dtype`, what is given there goes before its rule.
DTYPES = {
    "promoted": "NumPy's promotion of the operands; numbers alone have NumPy's default dtypes",
    "numeric": "likewise; TypeError for truth values",
    "floating": "that of `promoted`; integers give float64",
    "real": "likewise; of complex operands the dtype of their parts",
    "complex": "that of complex numbers with such parts",
    "chosen": "promotion of all operands but the first; numbers do not widen arrays",
    "total": "that of the first operand; integers and booleans give 64 bits",
    "first": "that of the first operand",
    "last": "that of the last operand",
    "named": "the one that is the second argument",
    "bool": "truth values",
    "int32": "int32",
    "int64": "int64",
    "float64": "float64",
}


class Primitive(NamedTuple):
    """The record of a primitive."""

    name: str  # with its namespace: "linalg.eigh"
    kind: Kind
    dtypes: tuple[str, ...]  # of `DTYPES`, one for each result; one for several that are alike
    standard: bool  # whether it is of the array API standard
    shapes: Callable[..., Any]
    flops: Callable[..., float]
    #: How CUDA C++ says it, by the kind of the operands' common dtype: f (float32 and float64), i,
    #: u, b; empty where no fused kernel has it.
    c: Mapping[str, str] = {}
    arity: int = 0  # of elementwise primitives: how many arrays or numbers they take
    fields: tuple[str, ...] = ()  # names of several results
    document: str = ""  # what backends have to know, where it is none of the standard's


#: name -> record
PRIMITIVES: dict[str, Primitive] = {}
#: Constants, dtypes and namespaces of the standard.
CONSTANTS = frozenset(
    """e inf nan newaxis pi bool complex64 complex128 float32 float64 int8 int16 int32 int64 uint8
    uint16 uint32 uint64 linalg fft""".split()
)


def _enter(
    names: str,
    kind: Kind,
    dtype: str | tuple[str, ...] = "first",
    *,
    standard: bool = True,
    shapes: Callable[..., Any] | None = None,
    flops: Callable[..., float] | None = None,
    **more: Any,
) -> None:
    for name in names.split():
        if name in PRIMITIVES:
            raise ValueError(f"two records of the primitive '{name}'")
        dtypes = (dtype,) if isinstance(dtype, str) else dtype
        PRIMITIVES[name] = Primitive(
            name, kind, dtypes, standard, shapes or kind.shapes, flops or kind.flops, **more
        )


def implemented(*modules: ModuleType) -> dict[str, Any]:
    """The primitives that modules of a backend define, by name; ValueError where two do."""
    found: dict[str, Any] = {}
    for module in modules:
        for name, value in vars(module).items():
            if name not in PRIMITIVES or isinstance(value, BuiltinFunctionType):  # Python's
                continue
            if found.setdefault(name, value) is not value:
                raise ValueError(f"{module.__name__}: '{name}' is defined twice")
    return found


def is_primitive(name: str) -> bool:
    """Whether `name` is one that F takes from a backend: a primitive, a constant, a namespace."""
    return name in PRIMITIVES or name in CONSTANTS


# -- element by element ---------------------------------------------------------------------------


def _pointwise(
    names: str,
    arity: int,
    dtype: str | tuple[str, ...] = "promoted",
    *,
    c: Mapping[str, str] | str = "",
    operator: str = "",
    kinds_of_c: str = "",
    **more: Any,
) -> None:
    """`c` by kinds, or a text for all `kinds_of_c`; in texts ``{name}`` is the primitive's."""
    for name in names.split():
        texts = dict.fromkeys(kinds_of_c, c) if isinstance(c, str) else c
        texts = {kind: text.replace("{name}", name) for kind, text in texts.items()}
        _enter(name, kinds.elementwise, dtype, arity=arity, c=texts, **more)


def _function(names: str, c: str = "{name}({0})", **more: Any) -> None:
    """A function of one floating number."""
    _pointwise(names, 1, "floating", c=c, kinds_of_c="f", **more)


_function(
    "exp expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh"
)
_function("exp2 erf erfc erfinv lgamma", standard=False)
_pointwise("floor ceil trunc", 1, c="{name}({0})", kinds_of_c="f")
_pointwise("round", 1, c="rint({0})", kinds_of_c="f")
_pointwise("reciprocal", 1, "floating", c="1 / {0}", kinds_of_c="f")
_pointwise("square", 1, c="{0} * {0}", kinds_of_c="fiu")
_pointwise("negative", 1, "numeric", c="-{0}", kinds_of_c="fiu")
_pointwise("sign", 1, c="sign_of({0})", kinds_of_c="fiu")
_pointwise(
    "abs", 1, "real", c={"f": "fabs({0})", "i": "{0} < 0 ? -{0} : {0}", "u": "{0}", "b": "{0}"}
)
_pointwise("bitwise_invert", 1, c={"i": "~{0}", "u": "~{0}", "b": "!{0}"}, flops=costs.free)
_pointwise("conj positive", 1, flops=costs.free)
_pointwise(
    "isfinite isinf isnan signbit", 1, "bool", c="{name}({0})", kinds_of_c="f", flops=costs.free
)
_pointwise("logical_not", 1, "bool", c="!{0}", kinds_of_c="fiub", flops=costs.free)
# Of truth values the sum is whether one holds, the product whether both do.
_pointwise("add", 2, c={**dict.fromkeys("fiu", "{0} + {1}"), "b": "{0} || {1}"})
_pointwise("multiply", 2, c={**dict.fromkeys("fiu", "{0} * {1}"), "b": "{0} && {1}"})
_pointwise("subtract", 2, "numeric", c="{0} - {1}", kinds_of_c="fiu")
_pointwise("divide", 2, "floating", c="{0} / {1}", kinds_of_c="f")
_pointwise("atan2 copysign hypot", 2, "floating", c="{name}({0}, {1})", kinds_of_c="f")
_pointwise("logaddexp", 2, "floating", c="log_of_sum({0}, {1})", kinds_of_c="f")
_pointwise("nextafter", 2, "floating", flops=costs.free)
_pointwise("maximum", 2, c="larger({0}, {1})", kinds_of_c="fiub")
_pointwise("minimum", 2, c="smaller({0}, {1})", kinds_of_c="fiub")
for _name, _sign in (
    ("equal", "=="), ("not_equal", "!="), ("less", "<"), ("less_equal", "<="), ("greater", ">"),
    ("greater_equal", ">="), ("logical_and", "&&"), ("logical_or", "||"),
):  # fmt: skip
    _pointwise(_name, 2, "bool", c=f"{{0}} {_sign} {{1}}", kinds_of_c="fiub", flops=costs.free)
_pointwise("logical_xor", 2, "bool", c="!{0} != !{1}", kinds_of_c="fiub", flops=costs.free)
for _name, _sign in (("bitwise_and", "&"), ("bitwise_or", "|"), ("bitwise_xor", "^")):
    _pointwise(_name, 2, c=f"{{0}} {_sign} {{1}}", kinds_of_c="iub", flops=costs.free)
for _name, _sign in (("bitwise_left_shift", "<<"), ("bitwise_right_shift", ">>")):
    _pointwise(_name, 2, c=f"{{0}} {_sign} {{1}}", kinds_of_c="iu", flops=costs.free)
_pointwise("where", 3, "chosen", c="{0} ? {1} : {2}", kinds_of_c="fiub", flops=costs.free)
_pointwise("clip", 3, "promoted", document="(x, min, max): as the standard's; NaN stays NaN")
_pointwise(
    "pow", 2, c="pow({0}, {1})", kinds_of_c="f",
    document="(x, y): as the standard's, but integers to negative powers are truncated",
)  # fmt: skip
_DIVISION = (
    "(x, y): as Python at infinities, where the standard prefers others; a host raises "
    "RuntimeError for an integer divided by zero, a device need not"
)
_pointwise("floor_divide", 2, c="floor_quotient({0}, {1})", kinds_of_c="fiu", document=_DIVISION)
_pointwise("remainder", 2, c="floor_remainder({0}, {1})", kinds_of_c="fiu", document=_DIVISION)
_pointwise("fmod", 2, c="fmod({0}, {1})", kinds_of_c="f", standard=False, document=_DIVISION)
_pointwise("fmax fmin", 2, c="{name}({0}, {1})", kinds_of_c="f", standard=False)
_pointwise("gcd lcm", 2, standard=False, flops=costs.free)
_pointwise("logaddexp2", 2, "floating", standard=False)
_pointwise(
    "sgn", 1, standard=False,
    document="(x): as the standard's sign, but real NaNs have sign 0; booleans are their own",
)  # fmt: skip
_pointwise(
    "frexp", 1, ("promoted", "int32"), standard=False, shapes=lambda x: [x.shape, x.shape],
    flops=costs.free, document="(x): mantissa and exponent, int32",
)  # fmt: skip
_pointwise(
    "make_complex", 2, "complex", standard=False, flops=costs.free,
    document="(real, imag): infinities and NaNs stay in their part",
)  # fmt: skip
_pointwise("erfcx digamma ndtri log_ndtr i0 i0e i1 i1e", 1, "floating", standard=False)
_pointwise("polygamma", 1, "floating", standard=False, document="(x, *, n)")
_pointwise(
    "j0 j1 y0 y1 k0 k0e k1 k1e airy_ai", 1, "floating", standard=False,
    document="(x): float32 and float64 only; as PyTorch at infinity",
)  # fmt: skip
_pointwise(
    "igamma igammac zeta", 2, "floating", standard=False,
    document="(a, x): two floating arrays of one dtype; as PyTorch at infinity",
)  # fmt: skip
_pointwise(
    "polynomial", 2, "floating", standard=False,
    document="(x, n, *, kind): kind is a family and a letter, such as 'hermite_he'",
)  # fmt: skip
_enter(
    "astype", kinds.elementwise, "named", flops=costs.free, shapes=kinds.same,
    document="(x, dtype, *, copy=False): dtype is native or a DType",
)  # fmt: skip
_enter(
    "copy", kinds.elementwise, flops=costs.free, standard=False, shapes=kinds.same,
    document="(x): a contiguous copy",
)  # fmt: skip
_enter(
    "bitcast", kinds.elementwise, "named", flops=costs.free, standard=False, shapes=kinds.same,
    document="(x, dtype): the same bytes in another native dtype, a view",
)  # fmt: skip

# -- over and along axes --------------------------------------------------------------------------

_SUM = "two-byte floats are accumulated in float32 here and in mean and prod"
_enter("sum", kinds.reduction, "total", document=f"(x, axis, dtype, keepdims): {_SUM}")
_enter("prod", kinds.reduction)
_enter("mean", kinds.reduction, "floating")
_enter("max min", kinds.reduction)
_enter("any all", kinds.reduction, "bool", flops=costs.free)
_enter("count_nonzero", kinds.reduction, "int64", flops=costs.free)
_enter(
    "std var", kinds.reduction, "real",
    flops=costs.per_operand(4),
)  # fmt: skip
_enter("argmax argmin", kinds.position_of_extreme, "int64")
_enter("cumulative_sum cumulative_prod", kinds.scan)
_enter(
    "cumulative_max cumulative_min", kinds.scan, standard=False,
    document="(x, *, axis): the extremes so far",
)  # fmt: skip
_enter(
    "cumulative_logsumexp", kinds.scan, standard=False, document="(x, *, axis)",
    flops=costs.per_operand(4),
)  # fmt: skip
_enter("sort", kinds.sorting, document="as the standard has it; NaN is largest; so argsort")
_enter("argsort", kinds.sorting, "int64")
_enter(
    "arg_kth", kinds.selection, "int64", standard=False, shapes=kinds.kth,
    document="(x, k, *, axis): where the k-th smallest (from 0) is; the axis stays, of length 1",
)  # fmt: skip
_enter(
    "top_k", kinds.selection, ("first", "int64"), standard=False,
    document="(x, k, *, axis, largest): the k largest or smallest, in order, and their positions",
)  # fmt: skip
_enter("diff", kinds.rearrangement, shapes=kinds.differences, flops=costs.per_result())

# -- products, equations, decompositions ----------------------------------------------------------


def _batch(x: Any) -> tuple[int, ...]:
    return tuple(x.shape[:-2])


def _smaller(x: Any) -> tuple[int, ...]:
    return (*x.shape[:-2], min(x.shape[-2:]))


def _svd_shapes(x: Any, /, *, full_matrices: bool = True) -> Any:
    *batch, m, n = x.shape
    k = min(m, n)
    rows, columns = (m, n) if full_matrices else (k, k)
    return [(*batch, m, rows), (*batch, k), (*batch, columns, n)]


def _qr_shapes(x: Any, /, *, mode: str = "reduced") -> Any:
    *batch, m, n = x.shape
    k = m if mode == "complete" else min(m, n)
    return (*batch, k, n) if mode == "r" else [(*batch, m, k), (*batch, k, n)]


_enter("matmul", kinds.product, "promoted")
_enter(
    "vecdot", kinds.contraction, "promoted", shapes=kinds.vector_product, flops=costs.product_flops
)
_enter("tensordot", kinds.contraction, "promoted")
_INFO = (
    "info, here and below, is int32, per matrix: 0, or the position (from 1) of the pivot that did "
    "not allow to go on"
)


def _of_matrices(name: str, dtype: Any, shapes: Any, flops: Any, **more: Any) -> None:
    _enter(name, kinds.matrices, dtype, shapes=shapes, flops=flops, **more)


_of_matrices(
    "cholesky", ("first", "int32"), lambda x: [x.shape, _batch(x)], costs.cholesky_flops,
    standard=False,
    document=f"(x): lower factors, of the lower triangles, and info; {_INFO}",
)  # fmt: skip
_of_matrices(
    "lu_factor", ("first", "int32", "int32"), lambda x: [x.shape, _smaller(x), _batch(x)],
    costs.lu_flops, standard=False,
    document="(x): L (without its diagonal) and U in one array, pivots (int32, from 1) as LAPACK's "
    "getrf chooses them, and info",
)  # fmt: skip
_of_matrices(
    "lu_permutation", "int64", lambda pivots, size: (*pivots.shape[:-1], size), costs.free,
    standard=False, document="(pivots, size): the row of A, int64, that each row of L U is",
)  # fmt: skip
_of_matrices(
    "ldl_factor", ("first", "int32", "int32"),
    lambda x, *, hermitian: [x.shape, x.shape[:-1], _batch(x)], costs.cholesky_flops,
    standard=False,
    document="(x, *, hermitian): L and D in one array, of the lower triangle, pivots as LAPACK's "
    "sytrf has them, and info",
)  # fmt: skip
_of_matrices(
    "eigen", ("complex", "complex"), lambda x: [x.shape[:-1], x.shape],
    costs.eigenvectors_flops, standard=False,
    document="(x): the complex eigenvalues and eigenvectors of square matrices; eigenvalues(x); "
    "ValueError for infinities and NaN",
)  # fmt: skip
_of_matrices(
    "eigenvalues", "complex", lambda x: x.shape[:-1], costs.eigenvalues_flops, standard=False
)
_of_matrices(
    "geqrf", ("first", "first"), lambda x: [x.shape, _smaller(x)], costs.reflections_flops,
    standard=False,
    document="(x): LAPACK's QR decomposition, the matrices and tau",
)  # fmt: skip
_of_matrices(
    "singular_values", "real", _smaller, costs.singular_values_flops, standard=False,
    document="(x): those of matrices, falling",
)  # fmt: skip
_of_matrices("linalg.det", "first", _batch, costs.determinant_flops)
_of_matrices(
    "linalg.slogdet", ("first", "real"), lambda x: [_batch(x)] * 2, costs.determinant_flops,
    fields=("sign", "logabsdet"),
)  # fmt: skip
_of_matrices("linalg.inv", "first", kinds.same, costs.inverse_flops)
_of_matrices(
    "linalg.pinv", "first", lambda x, **more: (*_batch(x), *x.shape[:-3:-1]), costs.svd_flops
)
_of_matrices(
    "linalg.matrix_rank", "int64", lambda x, **more: _batch(x), costs.singular_values_flops
)
_of_matrices(
    "linalg.eigh", ("real", "first"), lambda x: [x.shape[:-1], x.shape],
    costs.hermitian_eigenvectors_flops,
    fields=("eigenvalues", "eigenvectors"),
)  # fmt: skip
_of_matrices("linalg.eigvalsh", "real", lambda x: x.shape[:-1], costs.hermitian_eigenvalues_flops)
_of_matrices("linalg.qr", ("first", "first"), _qr_shapes, costs.qr_flops, fields=("Q", "R"))
_of_matrices(
    "linalg.svd", ("first", "real", "first"), _svd_shapes, costs.svd_flops, fields=("U", "S", "Vh")
)
_of_matrices("linalg.svdvals", "real", _smaller, costs.singular_values_flops)
_enter(
    "solve", kinds.equations, ("first", "int32"), standard=False,
    shapes=lambda a, b: [kinds.solved(a, b), _batch(a)],
    flops=costs.solution_flops,
    document="(a, b): x with a x = b and info; b has columns, shapes before the matrices broadcast",
)  # fmt: skip
_enter(
    "solve_triangular", kinds.equations, standard=False,
    flops=costs.substitution_flops,
    document="(a, b, *, upper, unitriangular): x; no complaint about zeros",
)  # fmt: skip
_enter(
    "ldl_solve", kinds.equations, standard=False,
    shapes=lambda ld, pivots, b, *, hermitian: kinds.solved(ld, b),
    flops=costs.factored_solution_flops,
    document="(ld, pivots, b, *, hermitian): x for what ldl_factor gave",
)  # fmt: skip


def _kept(n: int, given: bool) -> int:
    return n


def _halved(n: int, given: bool) -> int:
    return n // 2 + 1


def _doubled(n: int, given: bool) -> int:
    return n if given else 2 * (n - 1)


for _name, _dtype, _change in (
    ("fft", "complex", _kept), ("ifft", "complex", _kept), ("rfft", "complex", _halved),
    ("ihfft", "complex", _halved), ("irfft", "real", _doubled), ("hfft", "real", _doubled),
):  # fmt: skip
    _flops = costs.transform_flops(5 if _change is _kept else 2.5, False)
    _enter(f"fft.{_name}", kinds.transform, _dtype, shapes=kinds.line(_change), flops=_flops)
for _name, _dtype, _change in (
    ("fftn", "complex", _kept), ("ifftn", "complex", _kept), ("rfftn", "complex", _halved),
    ("irfftn", "real", _doubled),
):  # fmt: skip
    _flops = costs.transform_flops(5 if _change is _kept else 2.5, True)
    _enter(f"fft.{_name}", kinds.transforms, _dtype, shapes=kinds.lines(_change), flops=_flops)
_enter("fft.fftshift fft.ifftshift", kinds.rearrangement)
_enter("fft.fftfreq", kinds.creation, "float64", shapes=lambda n, /, **more: (n,))
_enter("fft.rfftfreq", kinds.creation, "float64", shapes=lambda n, /, **more: (n // 2 + 1,))

# -- views and rearrangements ---------------------------------------------------------------------

_enter("real imag", kinds.view, "real")
_enter("reshape", kinds.view, shapes=kinds.reshaped)
_enter("permute_dims", kinds.view, shapes=kinds.permuted)
_enter("moveaxis", kinds.view, shapes=kinds.moved)
_enter("matrix_transpose", kinds.view, shapes=kinds.transposed)
_enter("expand_dims", kinds.view, shapes=kinds.with_axis)
_enter("squeeze", kinds.view, shapes=kinds.reduced)
_enter("broadcast_to", kinds.view, shapes=kinds.given)
_enter("broadcast_arrays", kinds.view, shapes=kinds.broadcast_all)
_enter("unstack", kinds.view, shapes=kinds.unstacked)
_enter(
    "as_strided", kinds.view, standard=False, shapes=kinds.given,
    document="(x, shape, strides, offset=0): a view; strides and offset in elements from x's first "
    "element",
)  # fmt: skip
_enter("tril triu roll", kinds.rearrangement)
_enter("flip", kinds.rearrangement, document="(x, *, axis): a copy")
_enter("concat", kinds.rearrangement, "promoted", shapes=kinds.joined)
_enter("stack", kinds.rearrangement, "promoted", shapes=kinds.stacked)
_enter("repeat", kinds.rearrangement, shapes=kinds.repeated)
_enter("tile", kinds.rearrangement, shapes=kinds.tiled)
_enter("meshgrid", kinds.rearrangement, shapes=kinds.grid)

# -- indexing -------------------------------------------------------------------------------------

_enter(
    "getitem", kinds.indexing, standard=False,
    document="(x, index): like x[index], for any mix of slices, integers, None and arrays",
)  # fmt: skip
_enter("take", kinds.gather, shapes=kinds.taken)
_enter("take_along_axis", kinds.gather)
_enter(
    "put_along_axis", kinds.gather, standard=False, shapes=kinds.scattered,
    document="(values, index, *, axis, size): zeros of length `size` along the axis with the "
    "values at the positions; the inverse of take_along_axis",
)  # fmt: skip
_enter(
    "write_at", kinds.scatter, standard=False, flops=costs.free,
    document="(x, index, value): x[index] = value in x's memory; for forwards alone, as the two "
    "below",
)  # fmt: skip
_enter(
    "add_at", kinds.scatter, standard=False,
    document="(x, index, value): x[index] += value in x's memory, repeated indices summed",
)  # fmt: skip
_enter(
    "combine_at", kinds.scatter, standard=False,
    document="(x, index, value, *, how): likewise for multiply, maximum and minimum",
)  # fmt: skip
_enter(
    "searchsorted", kinds.search, "int64",
    document="(x1, x2, *, side, sorter): also for rows of the same leading shape",
)  # fmt: skip
_enter("nonzero", kinds.data_dependent, "int64")
_enter("unique_all unique_counts unique_inverse unique_values", kinds.data_dependent)
_enter(
    "bincount", kinds.data_dependent, "int64", standard=False, flops=costs.per_operand(position=1),
    document="(x, weights, *, minlength): weights may be None",
)  # fmt: skip

# -- new arrays -----------------------------------------------------------------------------------

_enter("empty ones zeros", kinds.allocation, "float64")
_enter("full", kinds.allocation, "last")
_enter("empty_like full_like ones_like zeros_like", kinds.allocation_like)
_enter("asarray from_dlpack", kinds.creation, "promoted")
_enter("arange", kinds.creation, "promoted", shapes=kinds.counted)
_enter("linspace", kinds.creation, "float64", shapes=kinds.spaced)
_enter("eye", kinds.creation, "float64", shapes=kinds.identity)

# -- facts and checks -----------------------------------------------------------------------------

_enter("can_cast finfo iinfo isdtype result_type", kinds.query)
_enter("address", kinds.query, standard=False, document="(x): where the first element lies")
_enter(
    "check_index", kinds.query, standard=False,
    document="(index, size, dim, *, negative=False): IndexError when an index is out of bounds; "
    "may be left to the device",
)  # fmt: skip
_enter(
    "check_labels", kinds.query, standard=False,
    document="(labels, classes, ignored): IndexError for class indices out of range; a device may "
    "raise it later",
)  # fmt: skip
_enter(
    "check_range", kinds.query, standard=False,
    document="(x, low, high, message): RuntimeError for values out of range; a device may raise it "
    "later",
)  # fmt: skip
