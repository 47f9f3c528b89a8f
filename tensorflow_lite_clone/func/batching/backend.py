"""The backend of what `vmap` maps over: one level of batching above a base backend.

Levels nest. A backend is made of the levels that its arrays have, in descending order of their
numbers; `batching` keeps one per level, size and base, so that words of F are looked up once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.func.batching import indexing, ops, rules, shapes  # noqa: F401  enter rules
from tensorflow_lite_clone.func.batching.array import ITEM, Batched
from tensorflow_lite_clone.func.batching.random import BatchedGenerator
from tensorflow_lite_clone.func.batching.words import Words
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import new_tensor

_backends: dict[tuple[int, int, Any], BatchedBackend] = {}


def batching(level: int, size: int, base: Any) -> BatchedBackend:
    """The backend of arrays with `size` samples at a level, above `base`.

    CaptureError while `base` writes a tape: words over samples have looked up those of `base`.
    """
    if base.captures:
        capture.crossing("maps over samples")
    key = (level, size, base)
    try:
        return _backends[key]
    except KeyError:
        return _backends.setdefault(key, BatchedBackend(level, size, base))


def _fitted(shape: tuple, ndim: int) -> tuple:
    """A shape with ones put in front, or taken away there, to have `ndim` dimensions."""
    extra = len(shape) - ndim
    if extra > 0 and all([length == 1 for length in shape[:extra]]):
        return shape[extra:]
    return (1,) * -extra + shape


class BatchedBackend(Backend):
    """Arrays of samples; `F` applies batching rules to the words of the base backend."""

    name = "batched"
    alone = True
    batched = True

    def __init__(self, level: int, size: int, base: Any) -> None:
        self.level, self.size, self.base = level, size, base
        self.depth: int = getattr(base, "depth", 0) + 1
        self.device = base.device
        self.dtypes, self.native = base.dtypes, base.native
        self.rounds_numbers = base.rounds_numbers
        self.primitives = self.xp = Words(self)
        self.array_type: Any = type("Batched", (Batched,), {"backend": self, "__slots__": ()})
        self.generator = BatchedGenerator(self)
        super().__init__()

    def make(self, data: Any, shared: bool) -> Any:
        """An array over base data; lists and tuples of them entry by entry."""
        if isinstance(data, (tuple, list)):
            entries = [self.make(entry, shared) for entry in data]
            if hasattr(data, "_fields"):
                return type(data)(*entries)
            return type(data)(entries)
        if data is None:
            return None
        if type(data) is not self.base.array_type:
            data = self.base.asarray(data)
        return self.array_type(data, shared)

    def is_batched(self, value: Any) -> bool:
        """Whether a value differs from sample to sample."""
        return type(value) is self.array_type and not value.shared

    def differs(self, array: Any) -> bool:
        return self.is_batched(array)

    def aligned(self, values: tuple, ndim: int) -> list:
        """Base values whose samples' axes broadcast as those of arrays with `ndim` dimensions."""
        result = []
        for value in values:
            if type(value) is self.array_type:
                data = value.data
                if not value.shared and data.ndim != ndim + 1:
                    data = self.base.F.reshape(data, (self.size, *_fitted(data.shape[1:], ndim)))
                value = data
            result.append(value)
        return result

    def elementwise(self, call: Callable[..., Any], *values: Any, **parameters: Any) -> Any:
        """A function that broadcasts, of arrays and numbers."""
        ndim, shared = 0, True
        for value in values:
            if not isinstance(value, type):  # a dtype
                ndim = max(ndim, getattr(value, "ndim", 0))
            shared = shared and not self.is_batched(value)
        call = self.base.foreign(call)
        return self.make(call(*self.aligned(values, ndim), **parameters), shared)

    def rows(self, value: Any) -> Any:
        """Base data with a first axis of samples, a view where the array is shared."""
        if self.is_batched(value):
            return value.data
        data = value.data if type(value) is self.array_type else value
        F = self.base.F
        return F.broadcast_to(F.expand_dims(data, axis=0), (self.size, *data.shape))

    def foreign(self, call: Callable[..., Any], is_view: bool = False) -> Callable[..., Any]:
        return self.base.foreign(call)  # what is a view here may be none there

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        if type(data) is self.array_type:
            return data if dtype is None else self.F.astype(data, dtype)
        return self.make(self.base.asarray(data, dtype), True)

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        return self.make(self.base.from_host(array, non_blocking), True)

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        if type(array) is self.array_type:
            if not array.shared:
                raise RuntimeError(ITEM)
            array = array.data
        return self.base.to_host(array, non_blocking)

    @property
    def has_values(self) -> bool:  # type: ignore[override]
        return self.base.has_values

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return self.make(self.base.empty((self.size, *shape), dtype), False)

    def write(self, target: Any, value: Any) -> None:
        if target.shared and self.is_batched(value):
            target.spread()
        self.base.write(target.data, self.aligned((value,), target.ndim)[0])

    def constant(self, value: complex, native_dtype: Any) -> Any:
        return self.make(self.base.constant(value, native_dtype), True)

    def strides(self, array: Any) -> tuple[int, ...]:
        if type(array) is not self.array_type:  # the memory of what was lifted
            return self.base.strides(array)
        strides = self.base.strides(array.data)
        return strides if array.shared else strides[1:]

    def is_contiguous(self, array: Any) -> bool:
        expected = 1
        for length, stride in zip(reversed(array.shape), reversed(self.strides(array))):
            if length != 1 and stride != expected:
                return not array.size
            expected *= length
        return True

    def owns_memory(self, array: Any) -> bool:
        return not array.shared and self.base.owns_memory(array.data)

    def text_of(self, array: Any) -> str:
        """How a tensor over the array prints: the samples inside of a frame."""
        text = repr(new_tensor(Storage(array.data, self.base)))
        if array.shared:
            return text
        inside = text.replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self.depth}, bdim=0, value=\n    {inside}\n)"

    def synchronize(self) -> None:
        self.base.synchronize()

    def drawing_from(self, source: Any) -> Any:
        """A generator of the base backend, drawing for all samples."""
        return BatchedGenerator(self, source)

    def make_generator(self) -> Any:
        return self.base.make_generator()

    def __repr__(self) -> str:
        return f"<{self.size} samples at level {self.level} over {self.base!r}>"
