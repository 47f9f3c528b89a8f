"""CUDA graphs, as in ``torch.cuda``: capture work once, replay it without Python.

See docs/cuda_graphs.md.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core import dynamic_scalar
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.cuda._pairs import graphs_of, make_graphed_callables


def is_current_stream_capturing() -> bool:
    """Whether work on the current stream is being captured."""
    return any([
        backend.graphs is not None and backend.graphs.is_capturing()
        for backend in backends.loaded()
    ])  # fmt: skip


def graph_pool_handle() -> Any:
    """A new memory pool, to be given as ``pool=`` to several captures.

    Graphs may share one if they are never replayed at the same time, and are always replayed in
    the order in which they were captured.
    """
    return graphs_of().pool()


class Numbers(dynamic_scalar.Recorder):
    """The dynamic scalars of one capture (learning rates, say), and where they are read from."""

    def __init__(self, graphs: Any) -> None:
        self._cells = graphs.cells()
        self._outer: dynamic_scalar.Recorder | None = None
        self.numbers: list[dynamic_scalar.DynamicScalar] = []

    def __enter__(self) -> Numbers:
        self._thread = threading.get_ident()
        self._outer, dynamic_scalar.recorder = dynamic_scalar.recorder, self
        return self

    def __exit__(self, *exception: object) -> None:
        dynamic_scalar.recorder = self._outer

    def number(self, read: Callable[[], float]) -> float:
        """A live number with the next cell; it is filled before the work that reads it runs.

        For other threads than the one that captures a plain number.
        """
        if threading.get_ident() != self._thread:
            return read()
        made = dynamic_scalar.DynamicScalar(read, self._cells.new())
        self.numbers.append(made)
        return made

    def read(self) -> list[float] | None:
        """What the numbers are now; None if one that the graph holds as a constant has changed."""
        values = []
        for number in self.numbers:
            value = number.read()
            if value != number and not number.consumed:
                return None
            values.append(value)
        return values

    def fill(self, values: list[float]) -> None:
        """Hand values to the device."""
        self._cells.fill(values)


class CUDAGraph:
    """Work of one device that was captured and can be replayed, as ``torch.cuda.CUDAGraph``.

    Replays read and write the memory that the captured work did: fill its inputs in place, and
    copy its results before the next replay. `device` says where the work is (by default on the
    CUDA device that is current when the capture begins).
    """

    def __init__(self, keep_graph: bool = False, *, device: Any = None) -> None:
        self._device = device
        self._graphs = graphs_of(device or "cuda")
        self._graph = self._graphs.graph()
        self._launch: Callable[[], None] | None = None
        self._numbers: Any = None
        self._warned = False

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Capture what this thread does on the current stream, which may not be the default one.

        `pool` is a handle from `graph_pool_handle` or another graph's `pool()`. Nothing that is
        captured is executed. RuntimeError while a capture is under way.
        """
        if self._launch is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                "create a new instance."
            )
        self._settle()
        if pool is not None:
            self._graph.pool = pool
        numbers = Numbers(self._graphs)
        self._graph.begin(capture_error_mode)
        self._numbers = numbers.__enter__()

    def _settle(self, stream: Any = None) -> Any:
        """What the device to be captured offers: the one named, else `stream`'s or the current."""
        found = graphs_of(self._device or getattr(stream, "device", None) or "cuda")
        if found is not self._graphs and self._launch is None:
            self._graphs, self._graph = found, found.graph()
        return self._graphs

    def capture_end(self) -> None:
        """End the capture; `replay` may be called from now on."""
        if self._numbers is not None:
            self._numbers.__exit__()
        self._graph.end()
        self._launch = self._graph.launch

    def instantiate(self) -> None:
        """Nothing: `capture_end` has made the graph ready to run."""

    def replay(self) -> None:
        """Queue the captured work on the current stream."""
        launch = self._launch
        if launch is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if self._numbers.numbers:
            self._refresh(self._numbers)
        launch()

    def _refresh(self, numbers: Numbers) -> None:
        values = numbers.read()
        if values is None:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    "a number that this graph holds as a constant, such as a learning rate, has "
                    "changed since it was captured; replays go on with the old one",
                    stacklevel=level_outside(),
                )
            values = [number.read() for number in numbers.numbers]
        numbers.fill(values)

    def reset(self) -> None:
        """Drop what was captured; another capture may follow."""
        self._launch = self._numbers = None
        self._graph.reset()

    def pool(self) -> Any:
        """The memory pool, for captures that are to share it."""
        return self._graph.pool

    def enable_debug_mode(self) -> None:
        """Nothing: `debug_dump` needs no preparation."""

    def debug_dump(self, debug_path: Any) -> None:
        """Write the graph to a file in the DOT language."""
        Path(debug_path).write_text(self._graph.dot())

    def _abandon(self) -> None:
        self._numbers.__exit__()
        self._graph.abandon()
        self._numbers = None


class graph:
    """Context manager: capture what happens inside into a `CUDAGraph`.

    The work goes to a side stream (`stream`, or one of the device's own), and nothing is executed.
    An exception inside ends the capture and drops it.
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph = cuda_graph
        self._pool = pool
        self._mode = capture_error_mode
        graphs = cuda_graph._settle(stream)
        self._side = graphs.side_stream(getattr(stream, "handle", stream))

    def __enter__(self) -> None:
        self._side.__enter__()
        try:
            self._graph.capture_begin(self._pool, self._mode)
        except BaseException as error:
            self._side.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                self._graph._abandon()
        finally:
            self._side.__exit__(kind, error, traceback)


__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]
