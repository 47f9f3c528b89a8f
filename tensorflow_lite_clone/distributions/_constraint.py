"""What a constraint is; constraints that are not known yet, and ones made of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.tensor import Tensor


class Constraint:
    """A region in which a variable may lie.

    `is_discrete` says whether it is a set of isolated points, `event_dim` how many of the last
    dimensions of a tensor make up one point.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of `value` lies in the region: bool, of the batch's shape."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{_name(self)}()"


def _name(constraint: Constraint) -> str:
    """The name of a constraint's class, without the underscore."""
    return type(constraint).__name__.removeprefix("_")


def _all_of(result: Tensor, dims: int) -> Tensor:
    """Whether all of the last `dims` dimensions are true."""
    return result.reshape((*result.shape[: result.ndim - dims], -1)).all(-1)


class _Dependent(Constraint):
    """Stands for a region that depends on other variables; it cannot be checked."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        """What the constructor was told; NotImplementedError if nothing."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """What the constructor was told; NotImplementedError if nothing."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """The same with other static attributes."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether `constraint` is ``dependent`` or a ``dependent_property``."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; read from the class, it is a dependent one.

    Used as ``@dependent_property`` or ``@dependent_property(is_discrete=..., event_dim=...)``.
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """`base_constraint`, with further dimensions of the batch counted to the event."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        """The base constraint's."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """The base constraint's, and the reinterpreted dimensions."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return _all_of(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{_name(self)}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: what all components' supports, `base_constraint`, allow."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        """The base constraint's."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """The base constraint's."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        """Whether each event lies in every component's support."""
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.ndim < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        kept = value.ndim - self.event_dim
        return _all_of(result, result.ndim - kept)

    def __repr__(self) -> str:
        return f"{_name(self)}({self.base_constraint!r})"
