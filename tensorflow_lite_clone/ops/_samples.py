"""What values are asked, and computed, for every sample when `func.vmap` maps over them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.errors import values_missing
from tensorflow_lite_clone.ops.shape._views import number_of
from tensorflow_lite_clone.tensor import Tensor


def of_all_samples(x: Tensor) -> tuple[Any, Any]:
    """The array of a tensor and its backend; of all samples, as if they were a batch."""
    backend, array = x._storage.backend, x._storage.array
    while backend.batched:
        backend, array = backend.base, array.data
    return array, backend


def holds(condition: Tensor) -> bool:
    """Whether all elements are true, in every sample; the host waits for it.

    What is asked of values that there are none of is taken to hold.
    """
    array, backend = of_all_samples(condition)
    return not backend.has_values or bool(number_of(backend.F.all(array), backend))


def expect_values(name: str, input: Tensor) -> None:
    """Raise torch's NotImplementedError for an operator whose result depends on values that there
    are none of."""
    if not input._storage.backend.has_values:
        raise values_missing(name)


def integers(tensor: Tensor) -> Any:
    """The integers of a tensor as nested lists, for results whose shapes do not depend on them:
    zeros where there are no values."""
    if tensor._storage.backend.has_values:
        return tensor.tolist()
    F = backends.load("cpu").F
    return F.zeros(tuple(tensor.shape), dtype=F.int64).tolist()


def per_sample(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be called once for every sample where `func.vmap` maps over arguments whose
    values it reads: those of these names, by default all."""

    def decorate(function: Any) -> Any:
        code = inspect.unwrap(function).__code__
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        read = [n for n, name in enumerate(arguments) if not names or name in names]

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if mode.mappings:
                values = [args[n] if n < len(args) else kwargs.get(arguments[n]) for n in read]
                if any([x._storage.backend.batched for x in _tensors(values)]):
                    return interpreters.vmap.run_per_sample(wrapper, args, kwargs)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for entry in value:
            yield from _tensors(entry)
