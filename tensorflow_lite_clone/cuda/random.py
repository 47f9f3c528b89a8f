"""The generators of CUDA devices: their seeds and states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.cuda._devices import device_count, index_of
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.tensor import Tensor


def _generator(device: Any) -> Any:
    for before in hooks.on_seed:
        before()
    return backends.load(f"cuda:{index_of(device)}").generator


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; nothing without a device."""
    if device_count():
        _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices, also of those first used later; nothing without one."""
    if device_count():
        backends.seed_others(int(seed))


def seed() -> None:
    """Seed the current device's generator non-deterministically."""
    if device_count():
        _generator(None).seed()


def seed_all() -> None:
    """Seed all devices' generators with one non-deterministic number."""
    if device_count():
        manual_seed_all(_generator(None).seed())


def initial_seed() -> int:
    """The seed that the current device's stream began with."""
    return _generator(None).initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's generator, a uint8 tensor on the CPU: seed and offset."""
    return wrap(_generator(device).get_state(), backends.load("cpu"))


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue a device's stream from a state of `get_rng_state`."""
    storage = new_state._storage
    _generator(device).set_state(storage.backend.to_host(storage.array))


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Continue all devices' streams."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
