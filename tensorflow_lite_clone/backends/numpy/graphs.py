"""Steps captured and replayed on the CPU: what `torch.compile` finds as ``backend.graphs``.

The protocol is that of `backends.cupy.graphs`. A capture runs what it captures, writes the calls on
a tape (`recording.py`) and takes back what they have written and drawn; a launch runs the program
that is made of the tape (`program.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.program import Program
from tensorflow_lite_clone.backends.numpy.recording import Pool, Tape, here
from tensorflow_lite_clone.dispatch import capture


class Graph:
    """Work that was captured once and can be run again and again."""

    def __init__(self, backend: Any, pool: Pool, watchers: list[list[Graph]]) -> None:
        self._backend, self.pool, self._watchers = backend, pool, watchers
        self._tape: Tape | None = None
        self._program: Program | None = None

    def begin(self, mode: str = "global") -> None:
        """Capture what this thread does on the CPU from now on."""
        capture.cross_boundary()
        capture.begin(self)
        self._backend.watch(1)
        here.tape = self._tape = Tape(self.pool)
        self._tape.will_draw(self._backend.generator)

    def end(self) -> None:
        """End the capture, and take back what it has done."""
        assert self._tape is not None
        capture.cross_boundary()
        here.tape = None
        self._backend.watch(-1)
        capture.end()
        self._tape.undo()
        for captured in self._watchers:
            captured.append(self)

    def get_fn(self, array: Any) -> Callable[[], Any]:
        """The function that gives what an array of the capture is after a launch, once.

        It is the array that the launch has made, or a copy of one that lies where it lies.
        """
        value: Any = self.pool.find(array)
        if value is None or self._tape is None or value not in self._tape.computed:
            return partial(array.copy, "K")
        place, kept = self.pool.place(value), self.pool.kept
        root = value.base or value

        def take() -> Any:
            if value.array is not None:
                return value.array.copy("K")
            made, kept[place] = kept[place], None
            return made if root.array is None else made.copy("K")

        return take

    def abandon(self) -> None:
        """End the capture after an error, and drop what was captured."""
        self.end()
        self._tape = None

    @property
    def program(self) -> Program:
        """What a launch runs; made when that is first asked for, after all captures of a pool."""
        if self._program is None:
            if self._tape is None:
                raise RuntimeError("nothing was captured")
            self._program, self._tape = Program(self._tape, self._backend.F), None
        return self._program

    def launch(self) -> None:
        """Run it once."""
        self.program.run(self.pool.kept)


class Cells:
    """Places of dynamic scalars: Python floats that programs read."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def new(self) -> tuple[list[float], int]:
        """One more place: a list, and the position in it."""
        self._values.append(0.0)
        return self._values, len(self._values) - 1

    def fill(self, values: list[float]) -> None:
        """Put values into all places."""
        self._values[:] = values


class Record:
    """Writes down the programs of the graphs that are captured inside of it."""

    def __init__(self, graphs: Graphs) -> None:
        self._graphs = graphs
        self._captured: list[Graph] = []

    def __enter__(self) -> Record:
        self._graphs.watchers.append(self._captured)
        return self

    def __exit__(self, *exception: object) -> None:
        self._graphs.watchers.remove(self._captured)

    def write(self, folder: Path, title: str) -> None:
        """A file for each program in a folder."""
        folder.mkdir(exist_ok=True)
        for number, graph in enumerate(self._captured, 1):
            (folder / f"program_{number}.py").write_text(f"# {title}\n{graph.program.listing()}")


class Graphs:
    """What the CPU offers for graphs."""

    on_host = True  # a replay is seen by no profiler of a device

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.watchers: list[list[Graph]] = []  # to which captured graphs are added

    def pool(self) -> Pool:
        """What graphs have in common that read what others have made."""
        return Pool()

    def graph(self, pool: Pool | None = None) -> Graph:
        """A graph that is yet to be captured."""
        return Graph(self._backend, Pool() if pool is None else pool, self.watchers)

    def cells(self) -> Cells:
        """A set of cells."""
        return Cells()

    def record(self) -> Record:
        """A context that takes down what is captured inside, for ``write(folder, title)``."""
        return Record(self)

    def side_stream(self, stream: Any = None) -> AbstractContextManager[None]:
        """A context that does nothing: there are no streams."""
        return nullcontext()

    def is_capturing(self) -> bool:
        """Whether this thread's work is being captured."""
        return here.tape is not None

    def buffer(self, like: Any) -> Any:
        """A copy of an array, without its gaps and repetitions: a capture works on the values."""
        return like.copy("K")

    def copy_fn(self, target: Any) -> Callable[[Any], None]:
        """The function that copies arrays of the same shape and dtype into `target`."""

        def copy(source: Any) -> None:
            if source.shape != target.shape:
                raise RuntimeError(
                    f"a captured graph works on an input of shape {list(target.shape)}, but was "
                    f"given one of shape {list(source.shape)}"
                )
            np.copyto(target, source)

        return copy

    def clone_fn(self, array: Any) -> Callable[[], Any]:
        """The function that returns a copy of what `array` holds when it is called."""
        return partial(array.copy, "K")
