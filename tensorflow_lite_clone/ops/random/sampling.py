"""Random tensors: samples of distributions, permutations; PyTorch's own streams on the CPU."""

from __future__ import annotations

import operator
from typing import Any

from tensorflow_lite_clone.autograd.apply import edges_of, together, wrap
from tensorflow_lite_clone.autograd.inplace import (
    check_inplace,
    check_writable,
    record_inplace,
    write,
)
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Layout
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, get_default_dtype
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._samples import holds
from tensorflow_lite_clone.ops.create.constructors import empty_like, explicit_size, finish, size_of
from tensorflow_lite_clone.ops.decorators.out import with_new_out, with_out
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.random.generators import (
    Generator,
    as_drawn,
    drawing,
    drawing_backend,
    expect_drawing,
    source_of,
)
from tensorflow_lite_clone.tensor import Tensor


def _drawn(
    draw: str,
    size: tuple[int, ...],
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    generator: Generator | None,
    *arguments: Any,
) -> Tensor:
    backend = drawing_backend(device)
    source = source_of(generator, backend)
    native = backend.native[get_default_dtype() if dtype is None else as_dtype(dtype)]
    return finish(getattr(source, draw)(size, native, *arguments), backend, requires_grad)


def _sampler(name: str, draw: str, document: str) -> None:
    def sample(
        *args: Any,
        size: Any = None,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        shape = explicit_size(name, args, size)
        return _drawn(draw, shape, dtype, device, requires_grad, generator)

    def sample_like(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: MemoryFormat | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        result = empty_like(drawing(input), dtype=dtype, device=device, memory_format=memory_format)
        result = _write_drawn(result, draw, generator)
        return result.requires_grad_() if requires_grad else result

    for function, exported in ((sample, name), (sample_like, f"{name}_like")):
        function.__name__ = function.__qualname__ = exported
        function.__doc__ = document
        public("torch")(with_new_out(function) if function is sample else function)


_sampler("rand", "uniform", "Numbers drawn uniformly from [0, 1).")
_sampler("randn", "normal", "Numbers drawn from the standard normal distribution.")


@public("torch")
@with_new_out
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Integers drawn uniformly from [low, high): ``randint(high, size)`` or with both bounds."""
    if isinstance(high, (tuple, list)):
        low, high, size = None, low, high
    elif high is None:
        low, high = None, low
    if size is None or high is None:
        raise TypeError('randint() missing 1 required positional arguments: "size"')
    return _randint(low, high, size_of((size,)), dtype, device, requires_grad, generator)


def _bound(name: str, value: Any) -> int:
    """An integer bound; TypeError for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"randint(): argument '{name}' must be int, not {type(value).__name__}"
        ) from None


def _randint(
    low: int | None,
    high: int,
    size: tuple[int, ...],
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    generator: Generator | None,
) -> Tensor:
    backend = drawing_backend(device)
    native = backend.native[dtypes.int64 if dtype is None else as_dtype(dtype)]
    first, end = 0 if low is None else _bound("low", low), _bound("high", high)
    array = source_of(generator, backend).randint(first, end, size, native)
    return finish(array, backend, requires_grad)


@public("torch")
def randint_like(
    input: Tensor,
    low: Any = None,
    high: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    **ignored: Any,
) -> Tensor:
    """Integers from [low, high), or [0, high), in `input`'s shape and dtype."""
    if high is None:
        low, high = None, low
    if high is None:
        raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    result = empty_like(drawing(input), dtype=dtype, device=device, memory_format=memory_format)
    first, end = 0 if low is None else _bound("low", low), _bound("high", high)
    random_(result, first, end, generator=generator)
    return result.requires_grad_() if requires_grad else result


@public("torch")
@with_new_out
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A random permutation of ``0 .. n-1``."""
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(
            f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}"
        ) from None
    kind = dtypes.int64 if dtype is None else as_dtype(dtype)
    if kind.kind in "bc":
        refuse("randperm", kind)
    backend = drawing_backend(device)
    array = source_of(generator, backend).permutation(n, backend.native[kind])
    return finish(array, backend, requires_grad)


class Sampled(Op):
    """Random numbers. They are drawn and recorded by hand; their gradient is zero."""

    @staticmethod
    def label(node: Any) -> str:
        return node.parameters["label"]

    def forward(F, *inputs, label):
        raise NotImplementedError("random numbers are drawn from generators")

    def backward(F, g, *, label, needs):
        return tuple([F.zeros_like(g) if need else None for need in needs])


def _fill(target: Tensor, label: str, generator: Generator | None, draw: Any) -> Tensor:
    """Write ``draw(source, shape, native dtype)`` into `target`, in the order of memory."""
    expect_drawing(target)
    edges, mask = edges_of((target,)) if mode.grad else ((), 0)
    check_inplace(target, bool(mask))
    storage = target._storage
    backend, array = storage.backend, storage.array
    source = source_of(generator, backend)
    if backend.is_contiguous(array):
        check_writable(array)
        direct = not (backend.batched or hooks.around_write)
        samples = draw(source.into(array) if direct else source, array.shape, array.dtype)
        if samples is array:
            storage.bump()
        else:
            write(target, samples)
    else:
        check_writable(array)
        part = backend.F.permute_dims(array, _memory_order(backend, array))
        backend.write(part, draw(source, part.shape, array.dtype))
        storage.bump()
    if mask:
        record_inplace(Sampled, target, backend, edges, mask, (storage,), {"label": label})
    return target


def _memory_order(backend: Any, array: Any) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest in memory."""
    strides = backend.strides(array)
    return tuple(sorted(range(array.ndim), key=lambda dim: -strides[dim]))


def _sampled(array: Any, label: str, *inputs: Any) -> Tensor:
    """The tensor of numbers drawn with `inputs` as parameters."""
    tensors = [value for value in inputs if isinstance(value, Tensor)]
    return as_drawn(array, Sampled, *tensors, label=label)


def _write_drawn(
    self: Tensor, draw: str, generator: Generator | None, *arguments: Any, **parameters: Any
) -> Tensor:
    """Fill `self` in place with what the generator's method `draw` gives."""
    if draw == "normal":  # many row-major numbers are drawn otherwise than others
        parameters["contiguous"] = self._storage.backend.is_contiguous(self._storage.array)
    return _fill(
        self,
        f"{''.join([part.capitalize() for part in draw.split('_')])}Backward0",
        generator,
        lambda source, shape, dtype: getattr(source, draw)(shape, dtype, *arguments, **parameters),
    )


@public("method")
def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers drawn uniformly from [from, to)."""
    return _write_drawn(self, "uniform", generator, from_, to)


@public("method")
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers drawn from the normal distribution."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    return _write_drawn(self, "normal", generator, mean, std)


@public("method")
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentials of normally distributed numbers."""
    return _write_drawn(self, "log_normal", generator, mean, std)


@public("method")
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers drawn from the exponential distribution of rate `lambd`."""
    return _write_drawn(self, "exponential", generator, lambd)


@public("method")
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers drawn from the Cauchy distribution."""
    return _write_drawn(self, "cauchy", generator, median, sigma)


@public("method")
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of trials until the first success of probability `p`."""
    return _write_drawn(self, "geometric", generator, p)


_NO_END = object()


@public("method")
def random_(
    self: Tensor,
    from_: int | None = None,
    to: Any = _NO_END,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with integers: ``random_()`` all the dtype holds, ``random_(to)``, ``(from, to)``.

    With ``to=None`` the largest that the dtype holds is the last one.
    """
    if from_ is None and to is not _NO_END:
        from_, to = to, _NO_END
    if from_ is None:
        return _fill(
            self,
            "RandomBackward2",
            generator,
            lambda source, shape, dtype: source.random(shape, dtype),
        )
    low, high = (0, from_) if to is _NO_END else (from_, to)
    return _fill(
        self,
        f"RandomBackward{1 if to is _NO_END else 0}",
        generator,
        lambda source, shape, dtype: source.randint(int(low), high, shape, dtype),
    )


@public("method")
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones of probability `p` (a number, or a tensor of probabilities) and zeros."""
    probability = p
    if isinstance(p, Tensor):
        probability = p.to(self.device)._storage.array
        storage = self._storage
        backend, array = storage.backend, storage.array
        if not backend.is_contiguous(array):
            F, order = backend.F, _memory_order(backend, array)
            probability = F.permute_dims(F.broadcast_to(probability, array.shape), order)
    return _fill(
        self,
        f"BernoulliBackward{1 if isinstance(p, Tensor) else 2}",
        generator,
        lambda source, shape, dtype: source.bernoulli(probability, shape, dtype),
    )


@public("torch", "method")
@with_out
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Ones with the probabilities that `input` holds (or `p`), zeros elsewhere."""
    input = drawing(input)
    storage = input._storage
    array = storage.array
    source = source_of(generator, storage.backend)
    samples = source.bernoulli(array if p is None else p, array.shape, array.dtype)
    return _sampled(samples, "BernoulliBackward0", input)


@public("torch", "method")
@with_out
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with probabilities proportional to each row of `input`; int64."""
    storage = drawing(input)._storage
    source = source_of(generator, storage.backend)
    return wrap(source.multinomial(storage.array, num_samples, replacement), storage.backend)


@public("torch")
@with_out
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers drawn from Poisson distributions with the rates that `input` holds."""
    input = drawing(input)
    storage = input._storage
    source = source_of(generator, storage.backend)
    return _sampled(source.poisson(storage.array), "PoissonBackward0", input)


@public("torch")
@with_out
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers of the given means and standard deviations (tensors, or numbers + size)."""
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        shape = size_of((size,))
        return _drawn("normal", shape, dtype, device, requires_grad, generator, mean, std)
    model = mean + std * 0 if isinstance(mean, Tensor) else std + mean * 0
    if size is not None:
        model = model.expand(size_of((size,)))
    if isinstance(std, Tensor) and not holds((std < 0).logical_not()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    noise = _drawn("normal", model.shape, model.dtype, model.device, False, generator)
    samples = (noise * std + mean).detach()
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if {x._storage.backend for x in given} != {samples._storage.backend}:
        samples, *given = together((samples, *given), Sampled)
    return _sampled(samples._storage.array, "NormalBackward3", *given)
