"""Transforms side by side along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._transform import Transform
from tensorflow_lite_clone.distributions.utils import _sum_rightmost, lazy_property
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor


class _JoinedTransform(Transform):
    """The transforms `tseq` along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _check(self, name: str, value: Tensor, length: int, words: str) -> None:
        """AssertionError if `value` lacks the dimension or has another length along it."""
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {value.ndim} dimensions"
            )
        if value.shape[self.dim] != length:
            raise AssertionError(
                f"{name}.size({self.dim}) = {value.shape[self.dim]} must equal {words} {length}"
            )

    @property
    def bijective(self) -> bool:
        """Whether all transforms are."""
        return all(t.bijective for t in self.transforms)


class CatTransform(_JoinedTransform):
    """Each transform maps its part, of `lengths` (all 1 if not given) along `dim`."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self):
        """The largest of the transforms'."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The length along `dim`."""
        return sum(self.lengths)

    def _recached(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, name: str, value: Tensor) -> Sequence[Tensor]:
        """The part of `value` for each transform."""
        self._check(name, value, self.length, "length")
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return cat([t(part) for t, part in zip(self.transforms, self._parts("x", x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = self._parts("y", y)
        return cat([t.inv(part) for t, part in zip(self.transforms, parts)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._parts("x", x), self._parts("y", y))
        ]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return cat(terms, dim)
        return sum(terms[1:], terms[0])  # the dimension belongs to the event

    @constraints.dependent_property
    def domain(self):
        """The domains side by side."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The codomains side by side."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_JoinedTransform):
    """Each transform maps its slice along `dim`."""

    def _recached(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, name: str, value: Tensor) -> Sequence[Tensor]:
        """The slice of `value` for each transform."""
        self._check(name, value, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        slices = self._slices("x", x)
        return stack([t(part) for t, part in zip(self.transforms, slices)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        slices = self._slices("y", y)
        return stack([t.inv(part) for t, part in zip(self.transforms, slices)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices("x", x), self._slices("y", y))
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in slices], self.dim)

    @constraints.dependent_property
    def domain(self):
        """The domains, stacked."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The codomains, stacked."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
