"""Random numbers: generators, distributions, dropout; PyTorch's own streams on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import edges_of, record, wrap
from tensorflow_lite_clone.autograd.inplace import check_inplace, record_inplace, with_out, write
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.create import finish, size_of
from tensorflow_lite_clone.tensor import Tensor


class Generator:
    """A stream of random numbers on one device, as ``torch.Generator``."""

    def __init__(self, device: Any = "cpu") -> None:
        self._backend = backends.load(device)
        self._source = self._backend.make_generator()

    @property
    def device(self) -> Device:
        """The device whose tensors this generator fills."""
        return self._backend.device

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`; returns the generator."""
        self._source.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Start a stream from a non-deterministic seed, which is returned."""
        return self._source.seed()

    def initial_seed(self) -> int:
        """The seed that the stream began with."""
        return self._source.initial_seed()

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor, on the CPU in torch's own layout."""
        return wrap(self._source.get_state(), backends.load("cpu"))

    def set_state(self, new_state: Tensor) -> None:
        """Continue from a state returned by `get_state`."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        self._source.set_state(new_state._storage.array)

    def clone_state(self) -> Generator:
        """An independent generator that continues the same stream."""
        clone = Generator(self.device)
        clone.set_state(self.get_state())
        return clone

    def __reduce__(self) -> tuple:
        return (_rebuild_generator, (self.device, self.get_state()))


def _rebuild_generator(device: Device, state: Tensor) -> Generator:
    generator = Generator(device)
    generator.set_state(state)
    return generator


export(Generator, "torch", name="Generator")


class _DefaultGenerator(Generator):
    """The stream that functions draw from when no generator is passed."""

    def __init__(self, device: Any = "cpu") -> None:
        self._backend = backends.load(device)

    @property
    def _source(self) -> Any:  # made on the first draw
        return self._backend.generator


default_generator = _DefaultGenerator()
export(default_generator, "torch", name="default_generator")


def source_of(generator: Generator | None, backend: Any) -> Any:
    """The backend's generator to draw from; RuntimeError for one of another device."""
    if generator is None:
        return backend.generator
    if generator._backend is not backend:
        raise RuntimeError(
            f"Expected a '{backend.device.type}' device type for generator but found "
            f"'{generator.device.type}'"
        )
    return generator._source


@public("torch")
def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; on the CPU the stream is PyTorch's."""
    backends.seed_others(int(seed))
    return default_generator.manual_seed(int(seed))


@public("torch")
def seed() -> int:
    """Seed the default generator non-deterministically; returns the seed."""
    return default_generator.seed()


@public("torch")
def initial_seed() -> int:
    """The seed that the default stream began with."""
    return default_generator.initial_seed()


@public("torch")
def get_rng_state() -> Tensor:
    """The default CPU generator's state as a uint8 tensor."""
    return default_generator.get_state()


@public("torch")
def set_rng_state(new_state: Tensor) -> None:
    """Continue the default CPU stream from a state of `get_rng_state`."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the default generators' states at the end of the block.

    Those of the CPU and of `devices`; None: of all devices in use.
    """
    if devices is None:
        devices = [backend.device for backend in backends.loaded()]
    states = default_states(devices) if enabled else []
    try:
        yield
    finally:
        restore(states)


def default_states(devices: Iterable[Any] = ()) -> list[tuple[Generator, Tensor]]:
    """The default generators of the CPU and of other devices, with their states."""
    sources: dict[Any, Generator] = {default_generator._backend: default_generator}
    for device in devices:
        backend = backends.load(device)
        if backend not in sources:
            sources[backend] = _DefaultGenerator(device)
    return [(generator, generator.get_state()) for generator in sources.values()]


def restore(states: list[tuple[Generator, Tensor]]) -> None:
    """Let the generators continue from these states."""
    for generator, state in states:
        generator.set_state(state)


def _drawn(
    draw: str,
    size: tuple[int, ...],
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    generator: Generator | None,
    *arguments: Any,
) -> Tensor:
    backend = backends.load(device)
    source = source_of(generator, backend)
    native = backend.native[dtype or get_default_dtype()]
    return finish(getattr(source, draw)(size, native, *arguments), backend, requires_grad)


def _sampler(name: str, draw: str, document: str) -> None:
    def sample(
        *args: Any,
        size: Any = None,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        shape = size_of(args if size is None else (size,))
        return _drawn(draw, shape, dtype, device, requires_grad, generator)

    def sample_like(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        place = device or input.device
        return _drawn(draw, input.shape, dtype or input.dtype, place, requires_grad, generator)

    for function, exported in ((sample, name), (sample_like, f"{name}_like")):
        function.__name__ = function.__qualname__ = exported
        function.__doc__ = document
        public("torch")(with_out(function) if function is sample else function)


_sampler("rand", "uniform", "Numbers drawn uniformly from [0, 1).")
_sampler("randn", "normal", "Numbers drawn from the standard normal distribution.")


@public("torch")
@with_out
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Integers drawn uniformly from [low, high): ``randint(high, size)`` or with both bounds."""
    if size is None or not hasattr(high, "__index__"):
        low, high, size = 0, low if high is None or not hasattr(high, "__index__") else high, (
            size if size is not None else high
        )
    return _randint(low, high, size_of((size,)), dtype, device, requires_grad, generator)


def _randint(
    low: int,
    high: int,
    size: tuple[int, ...],
    dtype: DType | None,
    device: Any,
    requires_grad: bool,
    generator: Generator | None,
) -> Tensor:
    backend = backends.load(device)
    native = backend.native[dtype or dtypes.int64]
    array = source_of(generator, backend).randint(int(low), int(high), size, native)
    return finish(array, backend, requires_grad)


@public("torch")
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    **ignored: Any,
) -> Tensor:
    """Integers from [low, high) in `input`'s shape and dtype."""
    if high is None:
        low, high = 0, low
    place = device or input.device
    return _randint(low, high, input.shape, dtype or input.dtype, place, requires_grad, None)


@public("torch")
@with_out
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType = dtypes.int64,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A random permutation of ``0 .. n-1``."""
    backend = backends.load(device)
    array = source_of(generator, backend).permutation(n, backend.native[dtype])
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
    """Write ``draw(source, shape, native dtype)`` into `target`, in row-major order."""
    edges, mask = edges_of((target,)) if mode.grad else ((), 0)
    check_inplace(target, bool(mask))
    storage = target._storage
    backend, array = storage.backend, storage.array
    write(target, draw(source_of(generator, backend), array.shape, array.dtype))
    if mask:
        record_inplace(Sampled, target, backend, edges, mask, (storage,), {"label": label})
    return target


def _sampled(array: Any, label: str, *inputs: Any) -> Tensor:
    """The tensor of numbers drawn with `inputs` as parameters."""
    tensors = tuple([value for value in inputs if isinstance(value, Tensor)])
    backend = tensors[0]._storage.backend
    output = wrap(array, backend)
    edges, mask = edges_of(tensors) if mode.grad else ((), 0)
    if mask and output.dtype.kind in "fc":
        storages = tuple([tensor._storage for tensor in tensors])
        record(output, Sampled, backend, edges, mask, storages, {"label": label})
    return output


def _write_drawn(
    self: Tensor, draw: str, generator: Generator | None, *arguments: Any, **parameters: Any
) -> Tensor:
    """Fill `self` in place with what the generator's method `draw` gives."""
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
    contiguous = self._storage.backend.is_contiguous(self._storage.array)
    return _write_drawn(self, "normal", generator, mean, std, contiguous=contiguous)


@public("method")
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exponentials of normally distributed numbers."""
    return _write_drawn(self, "log_normal", generator, mean, std)


@public("method")
def exponential_(
    self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
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


@public("method")
def random_(
    self: Tensor,
    from_: int | None = None,
    to: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with integers: ``random_()`` all the dtype holds, ``random_(to)``, ``(from, to)``."""
    if from_ is None:
        return _fill(
            self,
            "RandomBackward2",
            generator,
            lambda source, shape, dtype: source.random(shape, dtype),
        )
    low, high = (0, from_) if to is None else (from_, to)
    return _fill(
        self,
        f"RandomBackward{1 if to is None else 0}",
        generator,
        lambda source, shape, dtype: source.randint(int(low), int(high), shape, dtype),
    )


@public("method")
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones of probability `p` (a number, or a tensor of probabilities) and zeros."""
    probability = p._storage.array if isinstance(p, Tensor) else p
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
    storage = input._storage
    array = storage.array
    source = source_of(generator, storage.backend)
    drawn = source.bernoulli(array if p is None else p, array.shape, array.dtype)
    return _sampled(drawn, "BernoulliBackward0", input)


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
    storage = input._storage
    source = source_of(generator, storage.backend)
    return wrap(source.multinomial(storage.array, num_samples, replacement), storage.backend)


@public("torch")
@with_out
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers drawn from Poisson distributions with the rates that `input` holds."""
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
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers of the given means and standard deviations (tensors, or numbers + size)."""
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if std < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        shape = size_of((size,))
        return _drawn("normal", shape, dtype, device, requires_grad, generator, mean, std)
    model = mean + std * 0 if isinstance(mean, Tensor) else std + mean * 0
    if isinstance(std, Tensor) and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    noise = _drawn("normal", model.shape, model.dtype, model.device, False, generator)
    drawn = (noise * std + mean).detach()
    return _sampled(drawn._storage.array, "NormalBackward3", mean, std)
