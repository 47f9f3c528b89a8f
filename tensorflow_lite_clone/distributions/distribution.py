"""What all distributions have in common."""

from __future__ import annotations

import warnings
from typing import Any, Self

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions.constraints import Constraint, is_dependent
from tensorflow_lite_clone.distributions.utils import broadcastable, lazy_property
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Distribution"]


class Distribution:
    """A batch of independent distributions over events.

    A sample has the shape ``sample_shape + batch_shape + event_shape``, a log density the shape
    ``sample_shape + batch_shape``. With `validate_args` (the default), parameters and values are
    checked against `arg_constraints` and `support`; ValueError if they violate them.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    #: What the constructor sets, for `expand`: the tensors and distributions that have the batch's
    #: dimensions (those of them that are set), and what is the same for every batch.
    _batched: tuple[str, ...]
    _unbatched: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments when nothing else is said."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = Size(),  # noqa: B008 (immutable)
        event_shape: Any = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self) -> None:
        """ValueError if a parameter violates its constraint."""
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=level_outside(),
            )
        for name, constraint in arg_constraints.items():
            if is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # follows from other parameters, which are checked
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The distribution with its parameters expanded to `batch_shape`, without copies.

        A subclass with a constructor of its own passes the instance to be filled, or names its
        attributes anew. NotImplementedError for a class that does neither.
        """
        owner = next((cls for cls in type(self).__mro__ if "_batched" in vars(cls)), None)
        if owner is None:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        shape = Size(batch_shape)
        for name in self._batched:
            if name in self.__dict__:
                value = self.__dict__[name]
                own = value.shape if isinstance(value, Tensor) else value.batch_shape
                setattr(new, name, value.expand(shape + own[len(self._batch_shape) :]))
        for name in self._unbatched:
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters' batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """The constraint of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of the samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely event."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008 (immutable)
        """Samples of shape ``sample_shape + batch_shape + event_shape``, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        """Samples with gradients of the parameters, where `has_rsample` says so."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`n` samples; deprecated."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, of the events in `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of an event up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All events, along a first dimension; with `expand`, of the whole batch's shape."""
        raise NotImplementedError

    def _along_first(self, values: Tensor, expand: bool) -> Tensor:
        """`enumerate_support` of the events in `values`."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape) + self._event_shape)
        return values.expand((-1,) + self._batch_shape + self._event_shape) if expand else values

    def entropy(self) -> Tensor:
        """The entropy in nats, of the batch's shape."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:  # noqa: B008 (immutable)
        """``sample_shape + batch_shape + event_shape``."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _check_value(self, value: Tensor) -> None:
        """`_validate_sample`, where arguments are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """ValueError if `value` is no tensor, has another shape or lies outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = value.shape[value.ndim - len(self._event_shape) :]
        if event != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        if not broadcastable(value.shape, expected):
            raise ValueError(
                "Value is not broadcastable with batch_shape+event_shape: "
                f"{value.shape} vs {expected}."
            )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=level_outside(),
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """`_instance`, or an empty instance of the type of `self`.

        NotImplementedError if that type has a constructor other than `cls` and should have
        passed an instance.
        """
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [(name, self.__dict__[name]) for name in names]
        args = [f"{n}: {v if v.numel() == 1 else v.shape}" for n, v in values]
        return f"{type(self).__name__}({', '.join(args)})"
