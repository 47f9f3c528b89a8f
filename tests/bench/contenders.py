"""Who does the work of a row: ours and torch, eager, as a graph, in another layout, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

import tensorflow_lite_clone as tlc
from tests.bench.rows import Row

Call = Callable[[], Any]
WARM = 3  # calls before a capture


class Contender(NamedTuple):
    """`make(row)` gives a callable that does the row's work once."""

    lib: Any
    make: Callable[[Row], Call]
    applies: Callable[[Row], bool]


def ready(lib: Any, row: Row, options: dict[str, Any]) -> tuple[Callable[..., Any], tuple]:
    """The row's work. Peaks of memory count from here: drawing its inputs may take more."""
    work = row.work(lib, **options)
    if lib.cuda.is_available():
        lib.cuda.reset_peak_memory_stats()
    return work


def eager(lib: Any, **options: Any) -> Callable[[Row], Call]:
    def make(row: Row) -> Call:
        function, arguments = ready(lib, row, options)
        return partial(function, *arguments) if arguments else function

    return make


def graph(lib: Any, **options: Any) -> Callable[[Row], Call]:
    """The work captured by hand; what it is given is made on the stream of the capture."""

    def make(row: Row) -> Call:
        side = lib.cuda.Stream()
        with lib.cuda.stream(side):
            function, arguments = ready(lib, row, options)
            for _ in range(WARM):
                function(*arguments)
            lib.cuda.synchronize()
            captured = lib.cuda.CUDAGraph()
            with lib.cuda.graph(captured, stream=side):
                result = function(*arguments)

        def call() -> Any:
            captured.replay()
            return function, arguments, result  # what the graph works on must live

        return call

    return make


def compiled_step(fullgraph: bool = True, **options: Any) -> Callable[[Row], Call]:
    """Our ``torch.compile`` of a whole step, which with `fullgraph` is one graph or fails."""

    def make(row: Row) -> Call:
        if not row.is_step:
            return graph(tlc, **options)(row)
        function, arguments = ready(tlc, row, options)
        return partial(tlc.compile(function, fullgraph=fullgraph), *arguments)

    return make


def compiled_forward(how: Any, mode: str, **options: Any) -> Callable[[Row], Call]:
    """PyTorch's ``torch.compile`` of the loss, the optimizer as it is; `how` is eager or graph."""
    make = how(torch, wrap=lambda function: torch.compile(function, mode=mode), **options)

    def made(row: Row) -> Call:
        dynamo, functorch = torch._dynamo.config, torch._functorch.config
        dynamo.recompile_limit, dynamo.fail_on_recompile_limit_hit = 64, True  # all rows share code
        functorch.donated_buffer = row.is_step  # a backward alone is called again and again
        return make(row)

    return made


def always(row: Row) -> bool:
    return True


def with_pictures(row: Row) -> bool:
    return row.pictures


def whole_step(row: Row) -> bool:
    return row.is_step


NHWC = {"channels_last": True}
CONTENDERS = {
    "ours eager": Contender(tlc, eager(tlc), always),
    "ours captured": Contender(tlc, compiled_step(), always),
    "ours NHWC captured": Contender(tlc, compiled_step(**NHWC), with_pictures),
    "torch eager": Contender(torch, eager(torch), always),
    "torch graph": Contender(torch, graph(torch), always),
    "torch NHWC eager": Contender(torch, eager(torch, **NHWC), with_pictures),
    "torch NHWC graph": Contender(torch, graph(torch, **NHWC), with_pictures),
}
COMPILED = {
    "torch.compile": (eager, {}, lambda row: row.compiles),
    "torch.compile graph": (graph, {}, lambda row: row.compiles),
    "torch.compile NHWC": (eager, NHWC, lambda row: row.compiles and row.pictures),
    "torch.compile NHWC graph": (graph, NHWC, lambda row: row.compiles and row.pictures),
}


ON_CPU = {
    "ours eager": Contender(tlc, eager(tlc), always),
    "ours compiled": Contender(tlc, compiled_step(fullgraph=False), whole_step),
    "torch eager": Contender(torch, eager(torch), always),
}
COMPILED_ON_CPU = {"torch.compile": (eager, {}, whole_step)}


def entered(
    against_torch: bool, mode: str | None, names: list[str], device: str = "cuda"
) -> dict[str, Contender]:
    """Ours, with torch's where it is wanted, and compiled in a mode of ``torch.compile``.

    With `names` only those of them. Raises ValueError for a name that is none of them.
    """
    here, compiled = (ON_CPU, COMPILED_ON_CPU) if device == "cpu" else (CONTENDERS, COMPILED)
    found = {name: who for name, who in here.items() if against_torch or who.lib is tlc}
    if against_torch and mode is not None:
        for name, (how, options, applies) in compiled.items():
            found[name] = Contender(torch, compiled_forward(how, mode, **options), applies)
    if unknown := set(names) - found.keys():
        raise ValueError(f"no contenders {sorted(unknown)}: there are {list(found)}")
    return {name: who for name, who in found.items() if name in names} if names else found
