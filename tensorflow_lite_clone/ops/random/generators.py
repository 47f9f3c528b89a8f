"""Generators of random numbers: the default ones, their seeds and states."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import edges_of, record, wrap
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.core.signature import classes
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.tensor import Tensor


class Generator:
    """A stream of random numbers on one device, as ``torch.Generator``."""

    def __init__(self, device: Any = "cpu") -> None:
        self._backend = backends.load(device)
        if not self._backend.has_values:
            kind = self._backend.device.type
            raise RuntimeError(f"{kind.upper()} device type not an accelerator.")
        self._source = self._backend.make_generator()

    @property
    def device(self) -> Device:
        """The device whose tensors this generator fills."""
        return self._backend.device

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`; returns the generator."""
        self._own().manual_seed(seed)
        return self

    def seed(self) -> int:
        """Start a stream from a non-deterministic seed, which is returned."""
        return self._own().seed()

    def initial_seed(self) -> int:
        """The seed that the stream began with."""
        return self._source.initial_seed()

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor, on the CPU in torch's own layout."""
        return wrap(self._own().get_state(), backends.load("cpu"))

    def set_state(self, new_state: Tensor) -> None:
        """Continue from a state returned by `get_state`."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        storage = new_state._storage
        array = storage.array
        if storage.backend is not backends.load("cpu"):
            array = storage.backend.to_host(array)
        self._own().set_state(array)

    def _own(self) -> Any:
        """The source, about to be seeded or asked for its state."""
        for before in hooks.on_seed:
            before()
        return self._backend.drawn(self._source)

    def clone_state(self) -> Generator:
        """An independent generator that continues the same stream."""
        clone = Generator(self.device)
        clone.set_state(self.get_state())
        return clone

    def __reduce__(self) -> tuple:
        return (_rebuild_generator, (self.device, self.get_state()))


classes["Generator"] = Generator


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


def drawing_backend(device: Any) -> Any:
    """The backend on which new random numbers are made."""
    backend = backends.load(device)
    return interpreters.vmap.drawing_backend(backend) if mode.mappings else backend


def drawing(input: Tensor) -> Tensor:
    """`input` on the backend on which numbers in its shape are drawn."""
    return interpreters.vmap.lift_drawn(input) if mode.mappings else input


def expect_drawing(target: Tensor) -> None:
    """RuntimeError when `func.vmap` allows no numbers to be written into a tensor."""
    if mode.mappings:
        interpreters.vmap.check_draw(target)


def source_of(generator: Generator | None, backend: Any) -> Any:
    """The backend's generator to draw from; RuntimeError for one of another device."""
    if generator is None or not backend.has_values:
        return backend.drawn(backend.generator)
    if not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    if backend.batched:
        return backend.drawing_from(source_of(generator, backend.base))
    if generator._backend is not backend:
        raise RuntimeError(
            f"Expected a '{backend.device.type}' device type for generator but found "
            f"'{generator.device.type}'"
        )
    return backend.drawn(generator._source)


@public("torch", flat=True)
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
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Restore the default generators' states at the end of the block; also a decorator.

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
        if backend.has_values and backend not in sources:
            sources[backend] = _DefaultGenerator(device)
    return [(generator, generator.get_state()) for generator in sources.values()]


def restore(states: list[tuple[Generator, Tensor]]) -> None:
    """Let the generators continue from these states."""
    for generator, state in states:
        generator.set_state(state)


def as_drawn(array: Any, op: type[Op], *inputs: Tensor, **parameters: Any) -> Tensor:
    """The tensor of numbers that were drawn with `inputs` as parameters, recorded as `op`."""
    backend = inputs[0]._storage.backend
    output = wrap(array, backend)
    edges, mask = edges_of(inputs) if mode.grad else ((), 0)
    if mask and output.dtype.kind in "fc":
        storages = tuple([tensor._storage for tensor in inputs])
        record(output, op, backend, edges, mask, storages, parameters)
    return output
