"""Random draws of the meta device: shapes and checks of arguments; no generator is touched."""

from __future__ import annotations

from math import prod
from typing import Any, Self

import numpy as np

from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.numpy.random import Generator


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class MetaGenerator:
    """The distributions of `backends.numpy.random.Generator` over arrays without elements."""

    def __init__(self) -> None:
        #: One of the CPU's, to raise what is wrong with arguments; nobody sees what it draws.
        self._checks = Generator()

    def _of_shape(self, name: str) -> Any:
        def draw(shape: Any, dtype: Any = np.float32, *parameters: Any, **options: Any) -> Any:
            sizes = _sizes(shape)
            some = (min(prod(sizes), 1),)
            like = getattr(self._checks, name)(some, dtype, *parameters, **options)
            return MetaArray(sizes, like.dtype)

        return draw

    def _of_parameters(self, name: str) -> Any:
        def draw(x: MetaArray, *others: MetaArray) -> MetaArray:
            shape = (1,) * min(x.ndim, 1)
            getattr(self._checks, name)(*[np.ones(shape, y.dtype) for y in (x, *others)])
            return MetaArray(x.shape, x.dtype)

        return draw

    def __getattr__(self, name: str) -> Any:
        if name in (
            "uniform", "normal", "log_normal", "exponential", "cauchy", "geometric", "random"
        ):  # fmt: skip
            return self._of_shape(name)
        if name in ("poisson", "binomial", "standard_gamma", "dirichlet"):
            return self._of_parameters(name)
        raise AttributeError(name)

    def randint(self, low: int, high: int | None, shape: Any, dtype: Any = np.int64) -> Any:
        self._checks.randint(low, high, (0,), dtype)
        return MetaArray(_sizes(shape), np.dtype(dtype))

    def permutation(self, n: int, dtype: Any = np.int64) -> Any:
        self._checks.permutation(min(n, 1), dtype)
        return MetaArray((n,), np.dtype(dtype))

    def bernoulli(self, p: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
        if shape is not None:
            return MetaArray(_sizes(shape), np.dtype(dtype))
        self._checks.bernoulli(np.ones((1,), p.dtype), None, dtype)
        return MetaArray(p.shape, np.dtype(dtype))

    def dropout_mask(self, p: float, shape: Any, dtype: Any = np.bool_) -> Any:
        return self.bernoulli(1.0 - p, shape, dtype)

    def multinomial(self, probabilities: Any, num_samples: int, replacement: bool = False) -> Any:
        rows, shape = probabilities.shape[:-1], probabilities.shape[-1:]
        some = np.ones((1,) * len(rows) + shape, probabilities.dtype)
        self._checks.multinomial(some, num_samples, replacement)
        return MetaArray((*rows, num_samples), np.dtype(np.int64))

    def into(self, array: Any) -> Self:
        """This generator, whatever memory its numbers are for."""
        return self

    def get_state(self) -> Any:
        """No bytes: there is no stream to continue."""
        return np.empty(0, np.uint8)

    def set_state(self, state: Any) -> None:
        """Nothing to continue from."""

    def manual_seed(self, seed: int) -> Self:
        """There is no stream to restart."""
        return self
