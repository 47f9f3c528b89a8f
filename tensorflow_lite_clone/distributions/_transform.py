"""What a transform is, its inverse, and transforms made of transforms."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.utils import _sum_rightmost, lazy_property
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.tensor import Tensor


class Transform:
    """A differentiable map from `domain` to `codomain` with a tractable Jacobian determinant.

    ``t(x)`` maps, ``t.inv(y)`` maps back. With ``cache_size=1`` the last pair of `x` and `y` is
    kept, so that ``t.inv(y)`` gives the very `x` that was mapped. A transform that is not
    `bijective` has a pseudoinverse: ``t(t.inv(t(x))) == t(x)``.

    A subclass defines ``_call(x)``, ``_inverse(y)`` and ``log_abs_det_jacobian(x, y)``.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        if cache_size:
            self._cached_x_y: tuple[Any, Any] = None, None
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}  # a weak reference cannot be pickled

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions belong to one event, if on both sides the same."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse, whose ``inv`` is this transform."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """Of a map of the line: 1 where it increases, -1 where it decreases."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with another size of cache."""
        return self if self._cache_size == cache_size else self._recached(cache_size)

    def _recached(self, cache_size: int) -> Transform:
        """A new transform with this size of cache."""
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]  # as PyTorch's

    def __call__(self, x: Tensor) -> Tensor:
        """The image of `x`."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        """What is mapped to `y`."""
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Tensor) -> Tensor:
        """The map itself."""
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        """The map back."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log abs(det dy/dx) of each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the image of a tensor of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of a tensor whose image has this shape."""
        return shape


class WithoutParameters(Transform):
    """A transform that equals all others of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = None


def check_dims(shape: Any, dims: int) -> None:
    """ValueError if `shape` has fewer than `dims` dimensions."""
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


class _InverseTransform(Transform):
    """The inverse of `transform`; it uses that transform's cache."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    @property
    def domain(self) -> Any:
        """The transform's codomain."""
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        """The transform's domain."""
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        """The transform's."""
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


def widened(constraint: Any, event_dim: int) -> Any:
    """`constraint`, with dimensions of the batch added to its events up to `event_dim`."""
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


class ComposeTransform(Transform):
    """The transforms `parts`, the first one first."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The first part's, with the event dimensions that later parts need."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The last part's, with the event dimensions that earlier parts have."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return widened(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self):
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        """The product of the parts' signs."""
        return math.prod([part.sign for part in self.parts])

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def _recached(self, cache_size: int) -> Transform:
        return ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim = self.domain.event_dim
        total: Any = 0
        for part, source, image in zip(self.parts, values[:-1], values[1:]):
            term = part.log_abs_det_jacobian(source, image)
            total = total + _sum_rightmost(term, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join([repr(part) for part in self.parts])
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """`base_transform`, with further dimensions counted to the event."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _recached(self, cache_size: int) -> Transform:
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The base transform's, with the further dimensions."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The base transform's, with the further dimensions."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        """The base transform's."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        check_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        check_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        base, dims = self.base_transform, self.reinterpreted_batch_ndims
        return f"{type(self).__name__}({base!r}, {dims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of shape `in_shape` read as events of shape `out_shape`."""

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        """Real tensors of as many dimensions as `in_shape`."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        """Real tensors of as many dimensions as `out_shape`."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _recached(self, cache_size: int) -> Transform:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Any, old: Size, new: Size) -> Any:
    """`shape` with its end `old` replaced; ValueError if it does not end so."""
    check_dims(shape, len(old))
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return Size(shape[:cut]) + new
