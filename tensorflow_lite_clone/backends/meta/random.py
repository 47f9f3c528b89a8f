"""Random draws of the meta device: shapes and checks of arguments; no generator is touched."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.numpy.random import Generator


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class MetaGenerator:
    """The distributions of `backends.numpy.random.Generator` over arrays without elements."""

    def __init__(self) -> None:
        #: One of the CPU's, to raise what is wrong with arguments: it draws no elements.
        self._checks = Generator()

    def _of_shape(self, name: str) -> Any:
        def draw(shape: Any, dtype: Any = np.float32, *parameters: Any, **options: Any) -> Any:
            like = getattr(self._checks, name)((0,), dtype, *parameters, **options)
            return MetaArray(_sizes(shape), like.dtype)

        return draw

    def __getattr__(self, name: str) -> Any:
        if name in (
            "uniform", "normal", "log_normal", "exponential", "cauchy", "geometric", "random"
        ):  # fmt: skip
            return self._of_shape(name)
        if name in ("poisson", "binomial", "standard_gamma", "dirichlet"):
            return lambda x, *others: MetaArray(x.shape, x.dtype)
        raise AttributeError(name)

    def randint(self, low: int, high: int | None, shape: Any, dtype: Any = np.int64) -> Any:
        self._checks.randint(low, high, (0,), dtype)
        return MetaArray(_sizes(shape), np.dtype(dtype))

    def permutation(self, n: int, dtype: Any = np.int64) -> Any:
        return MetaArray((n,), np.dtype(dtype))

    def bernoulli(self, p: Any, shape: Any = None, dtype: Any = np.float32) -> Any:
        return MetaArray(p.shape if shape is None else _sizes(shape), np.dtype(dtype))

    def dropout_mask(self, p: float, shape: Any, dtype: Any = np.bool_) -> Any:
        return self.bernoulli(1.0 - p, shape, dtype)

    def multinomial(self, probabilities: Any, num_samples: int, replacement: bool = False) -> Any:
        return MetaArray((*probabilities.shape[:-1], num_samples), np.dtype(np.int64))

    def into(self, array: Any) -> Self:
        """This generator, whatever memory its numbers are for."""
        return self

    def manual_seed(self, seed: int) -> Self:
        """There is no stream to restart."""
        return self
