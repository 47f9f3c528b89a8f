"""The tape device's backend, and what it offers for graphs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy import primitives as numpy_kit
from tensorflow_lite_clone.backends.numpy.backend import NATIVE
from tensorflow_lite_clone.backends.numpy.random import Generator
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, PRIMITIVES
from tests.strict_backend.array import unwrap
from tests.strict_backend.backend import StrictBackend
from tests.tape_backend.array import Tape, TapeArray, active, change, rewrap, run

_WRITES = ("write_at", "add_at", "combine_at")


class _Taped:
    """The functions of a module over tape arrays."""

    def __init__(self, module: Any, names: frozenset[str] | None) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (self._names is not None and name not in self._names):
            raise AttributeError(f"the tape device has no '{name}'")
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            word: Any = _Taped(value, None)
        elif isinstance(value, type) or not callable(value):
            return value
        else:
            call = change if name in _WRITES else run
            word = lambda *args, **kwargs: call(value, *args, **kwargs)  # noqa: E731
        setattr(self, name, word)
        return word


class _TapedGenerator:
    """The CPU's random streams as tape arrays; a launch draws anew."""

    def __init__(self) -> None:
        self.source = Generator()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.source, name)
        return (lambda *a, **k: run(value, *a, **k)) if callable(value) else value

    def into(self, array: Any) -> Any:
        return self

    def get_state(self) -> Any:
        return self.source.get_state()

    def set_state(self, state: Any) -> None:
        self.source.set_state(state)

    def manual_seed(self, seed: int) -> Any:
        self.source.manual_seed(seed)
        return self


class TapeGraph:
    """A tape that can be played again."""

    def __init__(self, owner: TapeBackend, pool: Any) -> None:
        self._owner, self.pool = owner, pool or object()
        self._tape: Tape | None = None
        self.launches = 0

    def begin(self, mode: str = "global") -> None:
        capture.begin(self)
        self._state = self._owner.generator.get_state()
        active.tape = self._tape = Tape()

    def end(self) -> None:
        capture.end()
        active.tape = None
        self._tape.undo()
        self._owner.generator.set_state(self._state)
        self._owner.graphs.captured.append(self)

    def abandon(self) -> None:
        self.end()
        self._owner.graphs.captured.pop()
        self._tape = None

    def launch(self) -> None:
        self.launches += 1
        self._tape.play()

    def reset(self) -> None:
        self._tape = None

    def dot(self, flags: int = 0) -> str:
        return "digraph {}"


class _Cells:
    def __init__(self) -> None:
        self._arrays: list[TapeArray] = []

    def new(self) -> TapeArray:
        self._arrays.append(TapeArray(np.zeros((), np.float32)))
        return self._arrays[-1]

    def fill(self, values: list[float]) -> None:
        for array, value in zip(self._arrays, values):
            array._hidden[...] = value


class _Record:
    """Tells how many graphs were captured."""

    def __init__(self, captured: list[TapeGraph]) -> None:
        self._captured, self._before = captured, len(captured)

    def __enter__(self) -> _Record:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def write(self, folder: Path, title: str) -> None:
        folder.mkdir(exist_ok=True)
        count = len(self._captured) - self._before
        (folder / "kernels.md").write_text(f"{title}: {count} graphs")


class TapeGraphs:
    """What a device offers for graphs, see backends.cupy.graphs.Graphs."""

    on_host = False

    def __init__(self, owner: TapeBackend) -> None:
        self._owner = owner
        self.captured: list[TapeGraph] = []

    def pool(self) -> Any:
        return object()

    def graph(self, pool: Any = None) -> TapeGraph:
        return TapeGraph(self._owner, pool)

    def cells(self) -> _Cells:
        return _Cells()

    def record(self) -> _Record:
        return _Record(self.captured)

    def side_stream(self, stream: Any = None) -> Any:
        return nullcontext()

    def is_capturing(self) -> bool:
        return active.tape is not None

    def buffer(self, like: TapeArray) -> TapeArray:
        return TapeArray(np.full_like(like._hidden, 0))

    def copy_fn(self, target: TapeArray) -> Callable[[TapeArray], None]:
        def copy(source: TapeArray) -> None:
            if source.shape != target.shape:
                raise RuntimeError("a captured graph works on an input of another shape")
            target._hidden[...] = source._hidden

        return copy

    def clone_fn(self, array: TapeArray) -> Callable[[], TapeArray]:
        return lambda: TapeArray(array._hidden.copy(order="K"))


backends.register("tape", lambda index: backend(index))  # before its device is named


class TapeBackend(StrictBackend):
    """The strict device with graphs."""

    name = "tape"
    device = Device("tape", 0)
    xp = _Taped(np, PRIMITIVES.keys() | CONSTANTS)
    primitives = _Taped(numpy_kit, None)
    array_type = TapeArray

    def __init__(self) -> None:
        super().__init__()
        self.generator = _TapedGenerator()
        self.graphs = TapeGraphs(self)

    def make_generator(self) -> Any:
        return _TapedGenerator()

    def asarray(self, data: Any, dtype: DType | None = None) -> Any:
        if not isinstance(data, (TapeArray, np.generic, bool, int, float, complex)):
            capture.crossing("copies from the host")
        return run(np.asarray, data, None if dtype is None else NATIVE[dtype])

    def from_host(self, array: Any, non_blocking: bool = False) -> Any:
        capture.crossing("copies from the host")
        return TapeArray(np.array(array))

    def to_host(self, array: Any, non_blocking: bool = False) -> Any:
        capture.crossing("reads a value back")
        return np.array(unwrap(array))

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return TapeArray(np.full(shape, 7, NATIVE[dtype]))

    def write(self, target: Any, value: Any) -> None:
        change(lambda x, y: x.__setitem__(..., y), target, value)

    def constant(self, value: complex, native_dtype: Any) -> Any:
        return rewrap(unwrap(super().constant(value, native_dtype)))

    def owns_memory(self, array: Any) -> bool:
        return isinstance(array, TapeArray) and array._hidden.base is None


_backend = TapeBackend()


def backend(index: int) -> TapeBackend:
    """The one tape device."""
    return _backend
