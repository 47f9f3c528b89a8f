"""From what was noted of modules to the rows of a report, and to the sums of these."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, prod

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.profiler._layer_report import LayerReport, LayerRow, Timing
from tensorflow_lite_clone.profiler._part import Part
from tensorflow_lite_clone.profiler._watch import Watch


def report(watch: Watch, backward: bool, cost: float) -> LayerReport:
    """The report on all runs that `watch` has noted, at a `cost` of microseconds per call."""
    parts = [part for part in watch.everything() if part is not watch.loss or any(part.host[0])]
    builder = _Builder(parts, backward)
    model = type(watch.root.module).__name__
    lines = builder.lines(watch.root)
    if watch.loss in parts:
        watch.loss.calls = 1
        lines.append(builder.row("(loss)", "", "loss", 0, [watch.loss]))
    rows = [line for line in lines if line.role != "container"]
    containers = [line for line in lines if line.role == "container"]
    total = builder.row("total", model, "total", 0, parts)
    total.calls, total.shape, total.device = 1, watch.root.shape, _devices(watch.root)
    trials = len(watch.root.host[0])
    return LayerReport(model, rows, containers, total, trials, builder.clock, cost, lines)


class _Builder:
    def __init__(self, parts: list[Part], backward: bool) -> None:
        self.backward = backward
        gpus = {part.gpu for part in parts}
        self.clock = "device" if len(gpus) == 1 and None not in gpus else "host"
        self.children: dict[str, list[Part]] = {}
        for part in parts:
            if part.name and part.module is not None:
                self.children.setdefault(part.name.rpartition(".")[0], []).append(part)
        self.counted: set[int] = set()  # parameters that several modules have count once
        self.parameters = {part: self._parameters(part) for part in parts}

    def _parameters(self, part: Part) -> int:
        if part.module is None:
            return 0
        own = [p for p in part.module.parameters(False) if id(p) not in self.counted]
        self.counted.update(map(id, own))
        return sum([prod(parameter.shape) for parameter in own])

    # -- the order of lines -------------------------------------------------------------------

    def _below(self, part: Part) -> list[Part]:
        """The part and all under it."""
        found = [part]
        for child in self.children.get(part.name, ()):
            found += self._below(child)
        return found

    def _first(self, part: Part) -> float:
        """When the part, or the first one under it, was first called."""
        orders = [each.order for each in self._below(part) if each.order is not None]
        return min(orders, default=inf)

    def lines(self, part: Part, depth: int = 0) -> list[LayerRow]:
        """The lines of a part and of what is under it, in the order of execution."""
        kind = type(part.module).__name__
        children = sorted(self.children.get(part.name, ()), key=self._first)
        if not children:
            return [self.row(part.name or kind, kind, "layer", depth, [part])]
        found = []
        if part.name:
            found = [self.row(part.name, kind, "container", depth, self._below(part))]
            depth += 1
        for child in children:
            found += self.lines(child, depth)
        if part.calls or self.parameters[part]:
            name = f"{part.name} (own)".strip()
            found.append(self.row(name, kind, "own", depth, [part]))
        return found

    # -- sums ---------------------------------------------------------------------------------

    def row(self, name: str, kind: str, role: str, depth: int, parts: list[Part]) -> LayerRow:
        """The line that `parts` make together; the first one is its module."""
        own = parts[0]
        host = [_timing([part.host[phase] for part in parts]) for phase in (0, 1)]
        on_gpu = [part for part in parts if part.gpu is not None]
        device = [_timing([part.device[phase] for part in on_gpu]) for phase in (0, 1)]
        if not self.backward:
            host[1] = device[1] = None
        forward, backward = device if self.clock == "device" else host
        assert forward is not None and host[0] is not None
        return LayerRow(
            name=name,
            type=kind,
            role=role,
            depth=depth,
            calls=own.calls,
            forward=forward,
            backward=backward,
            forward_host=host[0],
            backward_host=host[1],
            forward_device=device[0],
            backward_device=device[1],
            parameters=sum([self.parameters[part] for part in parts]),
            flops=sum([part.flops for part in parts]),
            memory=sum([part.memory for part in parts]),
            saved=sum([part.saved for part in parts]) if self.backward else None,
            shape=own.shape,
            device=_devices(own),
            copies=sum([part.copies for part in parts]),
            copied=sum([part.copied for part in parts]),
        )


def _timing(samples: list[list[float]]) -> Timing | None:
    """The figures of the sums, run by run, of several parts' times."""
    return Timing.of([sum(run) for run in zip(*samples)]) if samples else None


def _devices(part: Part) -> str:
    """Where the results are, and before that where the inputs are if that is elsewhere."""

    def names(devices: Iterable[Device]) -> str:
        return ", ".join(sorted(map(str, devices)))

    takes, gives = names(part.takes), names(part.gives)
    return f"{takes} -> {gives}" if takes and gives and takes != gives else gives or takes
