"""Constraints: regions in which parameters and samples lie, as ``torch.distributions.constraints``.

A constraint's ``check(value)`` says of each event of `value` whether it lies in the region: a
boolean tensor without the last `event_dim` dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.distributions._constraint import (
    Constraint,
    MixtureSameFamilyConstraint,
    _all_of,
    _Dependent,
    _DependentProperty,
    _IndependentConstraint,
    _name,
    is_dependent,
)
from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.ops.shape.join import cat as join_cat
from tensorflow_lite_clone.ops.shape.join import stack as join_stack
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class _Boolean(Constraint):
    """Zero or one."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of one one and zeros else."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """A constraint whose attributes are its bounds (numbers or tensors) and stand in its repr."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{_name(self)}({bounds})"


class _From(_Bounded):
    """A constraint with a lower bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _UpTo(_Bounded):
    """A constraint with an upper bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    """A constraint with two bounds."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _IntegerInterval(_Between):
    """Integers in [lower_bound, upper_bound]."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_From):
    """Integers from `lower_bound` on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """All numbers but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value  # noqa: PLR0124 (false for NaN)


class _GreaterThan(_From):
    """Numbers above `lower_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_From):
    """Numbers from `lower_bound` on."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_UpTo):
    """Numbers below `upper_bound`."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers in [lower_bound, upper_bound]."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers in [lower_bound, upper_bound)."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of non-negative numbers whose sum is one, to 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of non-negative counts whose sum is at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_of(value.tril() == value, 2)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Lower Cholesky factors whose rows have length one, to ten rounding errors a column."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = linalg.norm(value.detach(), dim=-1)
        return ((lengths - 1).abs() <= tolerance).all(-1) & lower_cholesky.check(value)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], square, dtype=dtypes.bool_, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, to 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return _all_of(value.isclose(value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return (linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return linalg.cholesky_ex(value).info == 0


class _Joined(Constraint):
    """Several constraints side by side along `dim`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        """Whether any part is discrete."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        """The largest of the parts."""
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        """AssertionError if `value` does not have the dimension."""
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.ndim} dimensions"
            )


class _Cat(_Joined):
    """Each part, of `lengths` along `dim`, is under its own constraint."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return join_cat(checks, self.dim)


class _Stack(_Joined):
    """Each slice along `dim` is under its own constraint."""

    @property
    def event_dim(self) -> int:
        """The largest of the parts, and one more if `dim` lies among their events."""
        largest = super().event_dim
        return largest + 1 if self.dim + largest < 0 else largest

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = zip(self.cseq, value.unbind(self.dim))
        return join_stack([c.check(part) for c, part in slices], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
