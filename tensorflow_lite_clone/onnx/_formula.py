"""Ops that have no rule of their own: their formula, with each of its calls written by a rule.

A forward runs over a namespace ``F`` whose arrays are values of the ONNX graph. They are meta
arrays, so that records say shapes and dtypes; a primitive is written by the rule of its op.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.op import OF_PRIMITIVES, TABLE, Op, is_op
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, PRIMITIVES, Primitive
from tensorflow_lite_clone.onnx._graph import RULES, Graph, Traced
from tensorflow_lite_clone.onnx._sizes import varies
from tensorflow_lite_clone.onnx._trace import Value
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise
from tensorflow_lite_clone.trace import Call


class Symbol(MetaArray):
    """A value of the graph with its name there; operators are those of the namespace
    `primitives`."""

    __slots__ = ("name", "primitives")

    def __init__(self, array: Any, name: str, primitives: Namespace) -> None:
        super().__init__(tuple(array.shape), array.dtype)
        self.primitives = primitives
        self.name = name


#: Why primitives have no form in ONNX: reason -> names.
_REASONS = {
    "ONNX has no decompositions, no inverses and no solutions of equations": """
        cholesky lu_factor lu_permutation ldl_factor ldl_solve eigen eigenvalues geqrf
        singular_values solve solve_triangular linalg.slogdet linalg.inv linalg.pinv
        linalg.matrix_rank linalg.eigh linalg.eigvalsh linalg.qr linalg.svd linalg.svdvals
    """,
    "of special functions ONNX has the error function alone": """
        erfinv erfcx lgamma digamma polygamma igamma igammac zeta ndtri log_ndtr i0 i0e i1 i1e j0 j1
        y0 y1 k0 k0e k1 k1e airy_ai
    """,
    "ONNX would have to repeat something as often as values say": "gcd lcm polynomial",
    "ONNX does not show the bits of numbers": "bitcast frexp nextafter",
    "ONNX calculates with real numbers alone": """
        make_complex imag fft.fft fft.ifft fft.rfft fft.ihfft fft.irfft fft.hfft fft.fftn fft.ifftn
        fft.rfftn fft.irfftn
    """,
    "of running results ONNX has sums alone": """
        cumulative_prod cumulative_max cumulative_min cumulative_logsumexp
    """,
    "how many elements there are depends on values, and a file has fixed shapes": """
        nonzero unique_all unique_counts unique_inverse unique_values bincount
    """,
    "ONNX has values, and no memory that is written or looked at otherwise": """
        write_at add_at combine_at as_strided address from_dlpack
    """,
    "formulas that move, sort or make elements are not written; ops that do so have rules": """
        cumulative_sum sort argsort arg_kth top_k diff vecdot tensordot matmul fft.fftshift
        fft.ifftshift fft.fftfreq fft.rfftfreq reshape permute_dims moveaxis matrix_transpose
        expand_dims broadcast_to broadcast_arrays unstack concat stack tile meshgrid getitem take
        take_along_axis put_along_axis searchsorted empty full ones zeros empty_like full_like
        ones_like zeros_like asarray arange linspace eye can_cast finfo iinfo isdtype result_type
        check_index check_labels
    """,
}
#: Primitive without a form -> why.
NO_FORM = {name: reason for reason, names in _REASONS.items() for name in names.split()}


class _Room:
    """``F.linalg`` or ``F.fft``."""

    def __init__(self, F: Namespace, name: str) -> None:
        self._F, self._name = F, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._F, f"{self._name}.{name}")


class _Backend:
    """What formulas may ask of ``F.backend``."""

    native = NATIVE

    def constant(self, value: Any, dtype: Any) -> Any:
        return value

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedOperatorError(f"'{name}' is something that a device does")


class Namespace:
    """``F`` over values of a graph."""

    backend = _Backend()

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._meta = backends.load("meta").F
        self.linalg, self.fft = _Room(self, "linalg"), _Room(self, "fft")

    def __getattr__(self, name: str) -> Any:
        if name in CONSTANTS:
            return getattr(np, name)
        if name in NO_FORM:
            raise UnsupportedOperatorError(f"'{name}': {NO_FORM[name]}")
        if name in PRIMITIVES:
            op: Any = OF_PRIMITIVES.get(name) or TABLE[name]
            return partial(self._primitive, PRIMITIVES[name], op)
        return partial(self.run, TABLE[name])

    def run(self, entry: Any, *values: Any, **parameters: Any) -> Any:
        """An op or composite: by its rule, else by its formula."""
        if is_op(entry) and entry.name in RULES:
            return self._written(entry.name, partial(self._meta.run, entry), values, parameters)
        return (entry.forward if is_op(entry) else entry)(self, *values, **parameters)

    def _primitive(self, record: Primitive, op: Any, *values: Any, **parameters: Any) -> Symbol:
        count = len(op.inputs)
        named = op.forward.__code__.co_varnames[count + 1 :]
        parameters = {**dict(zip(named, values[count:])), **parameters}
        values = values[:count]
        if record.kind is kinds.reduction:
            parameters = {"axis": None, "keepdims": False, **parameters}
        elif record.arity > 1:
            conditions, operands = values[: count - 2], values[count - 2 :]
            dtype = np.result_type(*[getattr(value, "dtype", value) for value in operands])
            if record.dtypes[0] == "floating" and dtype.kind in "biu":
                dtype = np.dtype(np.float64)
            values = (*conditions, *[self._cast(value, dtype) for value in operands])
        return self._written(op.name, getattr(self._meta, record.name), values, parameters)

    def _written(self, name: str, call: Any, values: tuple, parameters: dict[str, Any]) -> Symbol:
        """What the rule of an op makes of values; `call` is the op, or its primitive, over meta."""
        arrays = [None if x is None else MetaArray(x.shape, x.dtype) for x in values]
        made = Call(name, tuple([None if x is None else Value(x) for x in arrays]), parameters)
        result = call(*arrays, **parameters)
        made.result = Value(result)
        traced = Traced(self._graph, made, [None if x is None else x.name for x in values])
        return Symbol(result, RULES[name](self._graph, traced), self)

    def _cast(self, value: Any, dtype: Any) -> Symbol:
        if not isinstance(value, Symbol):
            return Symbol(np.empty((), dtype), self._graph.constant(value, dtype), self)
        if value.dtype == dtype:
            return value
        return Symbol(MetaArray(value.shape, dtype), self._graph.cast(value.name, dtype), self)

    def astype(self, x: Symbol, dtype: Any, *, copy: bool = False) -> Symbol:
        """`x` in another dtype."""
        return self._cast(x, np.dtype(NATIVE.get(dtype, dtype)))

    def real(self, x: Symbol) -> Symbol:
        """Real numbers are as they are; there are no others in a graph."""
        return x

    conj = positive = copy = real

    def clip(self, x: Symbol, min: Any = None, max: Any = None) -> Symbol:
        """`x` between two bounds, of which either may be left out."""
        x = x if min is None else self.maximum(x, min)
        return x if max is None else self.minimum(x, max)

    def max(self, x: Symbol, axis: Any = None, keepdims: bool = False) -> Symbol:
        """The largest element over axes."""
        return self.run(TABLE["amax"], x, axis=axis, keepdims=keepdims, shape=x.shape)

    def min(self, x: Symbol, axis: Any = None, keepdims: bool = False) -> Symbol:
        """The smallest element over axes."""
        return self.run(TABLE["amin"], x, axis=axis, keepdims=keepdims, shape=x.shape)

    def check_range(self, *values: Any) -> None:
        """Nothing: values are not known yet."""


def rule_of(op: Traced) -> Any:
    """The rule of an op: its own, else its formula, which may read shapes where they are fixed."""
    if op.name in RULES:
        return RULES[op.name]
    entry: Any = TABLE[op.name]
    if any(map(varies, op.shapes())) and not issubclass(entry, Pointwise):
        raise UnsupportedOperatorError(f"'{op.name}' has no rule for ONNX, for dynamic sizes")
    return by_formula


def by_formula(graph: Graph, op: Traced) -> Any:
    """The names of an op's results, by its forward.

    Raises UnsupportedOperatorError where that calls what has no form, or reads values.
    """
    F, entry = Namespace(graph), cast("type[Op]", TABLE[op.name])
    pairs = zip(op.inputs, op.values)
    symbols = [None if name is None else Symbol(value, name, F) for name, value in pairs]
    try:
        made = entry.forward(F, *symbols, **op.parameters())
        outputs = made if type(made) is tuple else (made,)
        names = tuple([result.name for result in outputs])
    except Exception as error:
        reason = (
            error if isinstance(error, UnsupportedOperatorError) else "its formula reads values"
        )
        raise UnsupportedOperatorError(f"'{op.name}' has no rule for ONNX: {reason}") from error
    return names if type(made) is tuple else names[0]
