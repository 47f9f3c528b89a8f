"""`assert_close`: tensors, numbers and containers of them, equal up to tolerances."""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import strided
from tensorflow_lite_clone.core.dtypes import promote_types
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.create.constructors import as_tensor
from tensorflow_lite_clone.tensor import Tensor

# (relative, absolute) by dtype; integers and booleans must be equal.
_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
#: Those of `assert_allclose`.
_LOOSE = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}
_NUMBERS = {
    bool: dtypes.bool_,
    int: dtypes.int64,
    float: dtypes.float64,
    complex: dtypes.complex128,
}


class _Mismatch(Exception):
    """What is wrong, to be raised as `kind` once the place is known."""

    def __init__(self, message: str, kind: type[Exception] = AssertionError) -> None:
        super().__init__(message)
        self.kind = kind


class _Options:
    """The arguments of `assert_close` that every pair needs."""

    def __init__(self, rtol: float | None, atol: float | None, **switches: Any) -> None:
        if (rtol is None) is not (atol is None):
            raise ValueError(
                "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                f"{'rtol' if rtol is None else 'atol'}."
            )
        self.rtol, self.atol = rtol, atol
        self.equal_nan = switches.pop("equal_nan")
        self.subclasses = switches.pop("allow_subclasses")
        self.switches = switches

    def tolerances(self, *kinds: Any) -> tuple[float, float]:
        """Those given, or the largest that the dtypes have."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        pairs = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def _pairs(actual: Any, expected: Any, options: _Options, place: tuple) -> list[tuple]:
    """Comparisons to make, in order, each with its place; containers that differ raise."""
    text = (str, bytes)
    sequences = isinstance(actual, Sequence) and isinstance(expected, Sequence)
    if sequences and not isinstance(actual, text) and not isinstance(expected, text):
        if len(actual) != len(expected):
            raise _located(
                _Mismatch(
                    f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
                ),
                place,
            )
        keys: Any = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _same_keys(actual, expected, place)
        try:
            keys = sorted(actual)
        except TypeError:
            keys = list(actual)
    else:
        try:
            return [(_comparison(actual, expected, options), place)]
        except _Mismatch as problem:
            raise _located(problem, place) from None
    return [
        pair for key in keys for pair in _pairs(actual[key], expected[key], options, (*place, key))
    ]


def _same_keys(actual: Any, expected: Any, place: tuple) -> None:
    missing = [key for key in expected if key not in actual]
    additional = [key for key in actual if key not in expected]
    if missing or additional:
        raise _located(
            _Mismatch(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {additional}"
            ),
            place,
        )


def _located(problem: _Mismatch, place: tuple) -> _Mismatch:
    if not place:
        return problem
    where = "".join([f"[{key!r}]" for key in place])
    return _Mismatch(f"{problem}\n\nThe failure occurred for item {where}", problem.kind)


def _comparison(actual: Any, expected: Any, options: _Options) -> Callable[[], None]:
    """The check for one pair of leaves; TypeError for what is neither tensor nor number."""
    kinds = [Tensor if _is_sparse(x) else type(x) for x in (actual, expected)]
    alike = issubclass(*kinds) or issubclass(*kinds[::-1])
    if not options.subclasses:
        alike = kinds[0] is kinds[1]
    if alike and (isinstance(actual, Tensor) or hasattr(type(actual), "__array_interface__")):
        ours, theirs = [x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected)]
        return lambda: _compare_tensors(ours, theirs, options)
    if actual is None or expected is None:
        return lambda: _compare_identity("None", actual, expected)
    if isinstance(actual, bool) and isinstance(expected, bool):
        return lambda: _compare_identity("Booleans", actual, expected)
    numbers = (int, float, complex)
    if isinstance(actual, numbers) and isinstance(expected, numbers):
        return lambda: _compare_numbers(actual, expected, options)
    raise _Mismatch(
        f"No comparison pair was able to handle inputs of type {type(actual)} and "
        f"{type(expected)}.",
        TypeError,
    )


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is not strided


def _compare_identity(what: str, actual: Any, expected: Any) -> None:
    if actual is not expected:
        raise _Mismatch(f"{what} mismatch: {actual} is not {expected}")


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    kinds = [next(k for k in _NUMBERS if isinstance(value, k)) for value in (actual, expected)]
    if options.switches["check_dtype"] and kinds[0] is not kinds[1]:
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(*[_NUMBERS[kind] for kind in kinds])
    _compare_scalars(actual, expected, rtol, atol, options.equal_nan)


def _compare_scalars(actual: Any, expected: Any, rtol: float, atol: float, nans: bool) -> None:
    distance = abs(actual - expected)
    close = (
        actual == expected
        or (nans and cmath.isnan(actual) and cmath.isnan(expected))
        or (cmath.isfinite(actual - expected) and distance <= atol + rtol * abs(expected))
    )
    if close:
        return
    relative = distance / abs(expected) if expected != 0 else cmath.inf
    exact = rtol == 0 and atol == 0
    raise _Mismatch(
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {distance}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}"
    )


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


def _compare_tensors(actual: Tensor, expected: Tensor, options: _Options) -> None:
    dense = actual.layout is strided and expected.layout is strided
    attributes: dict[str, tuple[Any, Any]] = {
        "shape": (actual.shape, expected.shape),
        "layout": (actual.layout, expected.layout),
        "device": (actual.device, expected.device),
        "dtype": (actual.dtype, expected.dtype),
    }
    if dense:
        attributes["stride()"] = actual.stride(), expected.stride()
    for name, (ours, theirs) in attributes.items():
        if options.switches.get(f"check_{name.removesuffix('()')}", True) and ours != theirs:
            raise _Mismatch(f"The values for attribute '{name}' do not match: {ours} != {theirs}.")
    if actual.is_meta or expected.is_meta:
        return
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.detach(), expected.detach()
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if dense:
        _compare_values("Tensor-likes", actual, expected, rtol, atol, options)
    elif actual.layout is expected.layout:
        _compare_parts(actual, expected, rtol, atol, options)
    else:
        dense_ones = actual.to_dense(), expected.to_dense()
        _compare_values("Tensor-likes", *dense_ones, rtol, atol, options)


def _compare_parts(actual: Any, expected: Any, rtol: float, atol: float, options: _Options) -> None:
    """The indices, which are to be equal, and the values of two sparse tensors in one layout."""
    kind = f"Sparse {actual.layout.name.removeprefix('sparse_').upper()}"
    if actual.is_sparse and actual.is_coalesced() is not expected.is_coalesced():
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual._nnz() != expected._nnz():
        raise _Mismatch(
            f"The number of specified values in {kind.replace('S', 's', 1)} tensors does not "
            f"match: {actual._nnz()} != {expected._nnz()}"
        )
    names = actual._index_names
    for name, ours, theirs in zip(names, actual._index, expected._index, strict=True):
        _compare_values(f"{kind} {name}", ours, theirs, 0, 0, options)
    values = actual._elements, expected._elements
    _compare_values(f"{kind} values", *values, rtol, atol, options)


def _compare_values(
    what: str, actual: Tensor, expected: Tensor, rtol: float, atol: float, options: _Options
) -> None:
    """Dense tensors, which a message calls `what`, element by element."""
    if actual.dtype is not expected.dtype:
        dtype = promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    matches = actual.isclose(expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    if not actual.ndim:
        _compare_scalars(actual.item(), expected.item(), rtol, atol, options.equal_nan)
    raise _Mismatch(_account(what, actual, expected, matches, rtol, atol))


def _account(
    what: str, actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float
) -> str:
    """How many elements differ, and where most."""
    exact = rtol == 0 and atol == 0
    wrong, total = matches.numel() - int(matches.sum()), matches.numel()
    if actual.dtype.kind in "bui":
        actual, expected = actual.to(dtypes.int64), expected.to(dtypes.int64)
    distance = (actual - expected).abs().masked_fill(matches, 0)
    relative = (distance / expected.abs()).masked_fill(matches, 0)
    lines = [
        f"{what} are not {'equal' if exact else 'close'}!\n",
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
    ]
    for name, values, tolerance in (
        ("absolute", distance, atol),
        ("relative", relative, rtol),
    ):
        place = int(values.flatten().argmax())
        where: tuple[int, ...] = ()
        greatest = values.flatten()[place].item()
        for size in reversed(values.shape):
            place, index = divmod(place, size)
            where = (index, *where)
        lines.append(
            f"Greatest {name} difference: {greatest} at index {where}{_allowed(tolerance, exact)}"
        )
    return "\n".join(lines)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless ``|actual - expected| <= atol + rtol |expected|`` everywhere.

    Takes tensors, arrays and numbers, and sequences and mappings of them. Tolerances are given
    both or not at all; without them they follow from the dtypes, and integers must be equal.
    Shapes always agree; devices, dtypes and strides as asked. `msg` is the message, or a function
    of it. Raises TypeError for other objects.
    """
    options = _Options(
        rtol,
        atol,
        equal_nan=equal_nan,
        allow_subclasses=allow_subclasses,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    problem: _Mismatch | None = None
    try:
        for compare, place in _pairs(actual, expected, options, ()):
            try:
                compare()
            except _Mismatch as found:
                raise _located(found, place) from None
    except _Mismatch as found:
        problem = found
    if problem is not None:
        message = str(problem)
        if msg is not None and problem.kind is AssertionError:
            message = msg(message) if callable(msg) else msg
        raise problem.kind(message)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of `assert_close`: dtypes may differ, and NaN equals NaN; deprecated."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    actual = actual if isinstance(actual, Tensor) else as_tensor(actual)
    expected = expected if isinstance(expected, Tensor) else as_tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_LOOSE.get(kind, (0.0, 0.0)) for kind in (actual.dtype, expected.dtype)]
        rtol, atol = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        msg=msg or None,
    )
