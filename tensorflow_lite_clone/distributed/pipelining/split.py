"""A model cut into stages between modules that it calls one after the other."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributed.pipelining.stage import PipelineStage
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.random.generators import default_states, restore
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_leaves


class SplitPoint(Enum):
    """Where a model is cut: before a module runs, or after."""

    BEGINNING = 1
    END = 2


class PipeInfo(NamedTuple):
    """What is known of a model that is cut."""

    num_stages: int


@dataclass
class _Call:
    """A call of a module, as it was seen, and what was called and cut inside."""

    name: str
    args: tuple
    kwargs: dict[str, Any]
    entered: list[int]
    inside: list[_Call | None] = field(default_factory=list)  # None is a cut
    output: Any = None
    left: list[int] = field(default_factory=list)

    def divided(self, points: Mapping[str, SplitPoint]) -> bool:
        """Whether there is a cut inside."""
        return any(
            call is None or call.name in points or call.divided(points) for call in self.inside
        )


#: The calls that a `pipeline` is watching, from the outermost one.
_watched: list[_Call] = []


def pipe_split() -> None:
    """In a model's forward: a stage ends here. Does nothing outside of `pipeline`."""
    if _watched:
        _watched[-1].inside.append(None)


def _versions(values: Any) -> list[int]:
    return [value._version for value in tree_leaves(values) if isinstance(value, Tensor)]


def _watch(module: Module, args: tuple, kwargs: dict[str, Any]) -> _Call:
    """Run a copy of a model, and tell which modules it called, and how."""
    trial = copy.deepcopy(module)

    def enter(name: str, args: tuple, kwargs: dict[str, Any]) -> None:
        call = _Call(name, args, kwargs, _versions((args, kwargs)))
        if _watched:
            _watched[-1].inside.append(call)
        _watched.append(call)

    def leave(output: Any) -> None:
        call = _watched.pop()
        call.output, call.left = output, _versions(output)
        finished.append(call)

    for name, part in trial.named_modules():
        part.register_forward_pre_hook(
            lambda _, args, kwargs, name=name: enter(name, args, kwargs), with_kwargs=True
        )
        part.register_forward_hook(lambda _, args, output: leave(output))
    finished: list[_Call] = []
    states = default_states({value.device for value in (*args, *module.parameters())})
    try:
        with no_grad():
            trial(*args, **kwargs)
    finally:
        _watched.clear()
        restore(states)
    return finished[-1]


class _Unit(NamedTuple):
    """A module that is not divided, how it is called, and what it gave."""

    name: str
    spread: bool
    output: Any


def _same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _refusal(parent: str, what: str, before: str) -> ValueError:
    return ValueError(
        f"{parent or 'the model'} cannot be divided: {what} is not just {before}. Modules of "
        f"different stages must be called one after the other, each with the result of the one "
        f"before; put what is computed in between into modules, or make stages by hand"
    )


def _units(call: _Call, spread: bool, points: Mapping[str, SplitPoint]) -> Iterator[_Unit | None]:
    """The modules that are called one after the other, and None where a stage ends."""
    if not call.divided(points):
        yield _Unit(call.name, spread, call.output)
        return
    value: Any = None
    versions, before = call.entered, ""
    for inner in call.inside:
        if inner is None:
            yield None
            continue
        if not before:
            fits = _same(inner.args, call.args) and inner.kwargs.keys() == call.kwargs.keys()
            fits = fits and _same([*inner.kwargs.values()], [*call.kwargs.values()])
            inner_spread = spread
        else:
            inner_spread = not _same(inner.args, (value,))
            fits = not inner.kwargs and (
                not inner_spread or (isinstance(value, (tuple, list)) and _same(inner.args, value))
            )
        if not fits or inner.entered != versions:
            raise _refusal(
                call.name,
                f"what {inner.name} takes",
                f"what {before} gives" if before else "the input",
            )
        if points.get(inner.name) is SplitPoint.BEGINNING:
            yield None
        yield from _units(inner, inner_spread, points)
        if points.get(inner.name) is SplitPoint.END:
            yield None
        value, versions, before = inner.output, inner.left, inner.name
    if call.output is not value or call.left != versions:
        raise _refusal(call.name, "the result", f"what {before} gives")


class _Stage(Module):
    """Modules of a model under their own names, called one after the other."""

    def __init__(self, model: Module, units: Sequence[_Unit]) -> None:
        super().__init__()
        self.training = model.training
        self._calls = [(unit.name, unit.spread) for unit in units]
        for unit in units:
            place: Module = self
            *path, name = unit.name.split(".")
            for part in path:
                if part not in place._modules:
                    place.add_module(part, Module())
                    place._modules[part].training = model.training
                place = place._modules[part]
            place.add_module(name, model.get_submodule(unit.name))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the last module gives; the first takes the arguments."""
        name, _ = self._calls[0]
        value = self.get_submodule(name)(*args, **kwargs)
        for name, spread in self._calls[1:]:
            module = self.get_submodule(name)
            value = module(*value) if spread else module(value)
        return value


class Pipe(Module):
    """A model that is cut: its `num_stages` stages one after the other. `pipeline` makes it."""

    def __init__(self, stages: Sequence[Module]) -> None:
        super().__init__()
        self.num_stages = len(stages)
        for index, stage in enumerate(stages):
            self.add_module(f"submod_{index}", stage)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model gives."""
        value = self.get_stage_module(0)(*args, **kwargs)
        for index in range(1, self.num_stages):
            stage = self.get_stage_module(index)
            value = stage(*value) if isinstance(value, (tuple, list)) else stage(value)
        return value

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage. Its parameters are the model's, under the model's names.

        ValueError for a number out of range.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self.get_submodule(f"submod_{stage_idx}")

    def info(self) -> PipeInfo:
        """What `build_stage` needs to know."""
        return PipeInfo(self.num_stages)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """The stage that the process runs on `device`, to which its module is moved."""
        return build_stage(
            self.get_stage_module(stage_index), stage_index, self.info(), device, group
        )


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None
) -> PipelineStage:
    """A `PipelineStage` of a module of a `Pipe`; the module is moved to `device`."""
    return PipelineStage(
        stage_module.to(device), stage_index, pipe_info.num_stages, device, group=group
    )


def pipeline(
    module: Module,
    mb_args: tuple,
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Any = None,
) -> Pipe:
    """Cut a model before or after the modules that `split_spec` names, and at each `pipe_split`.

    `mb_args` and `mb_kwargs` are a micro-batch's arguments. A copy of the model is run on them
    once, to see which modules it calls with what. A model, or a module of it, can be cut only if
    its forward is to call modules one after the other, each with the result of the one before:
    `nn.Sequential`, or a loop over a `ModuleList`. Anything else, such as ``relu(self.a(x))`` or
    ``x + self.a(x)``, must lie in a module that stays whole. As in a trace, what forward decides by
    values is decided once.

    Raises ValueError, naming the place, for a model whose forward does more, for modules that are
    called twice or whose parameters are needed in two stages, for parameters that would be in none;
    AttributeError for a name that there is not.
    """
    if split_policy is not None:
        raise NotImplementedError("split_policy needs a traced model (planned); use split_spec")
    points = split_spec or {}
    for name, point in points.items():
        module.get_submodule(name)
        if not isinstance(point, SplitPoint):
            raise ValueError("Unknown split point type.")
    call = _watch(module, mb_args, mb_kwargs or {})
    if not call.divided(points):
        if points:
            raise ValueError(f"the model calls none of {list(points)}")
        return Pipe([module])
    groups: list[list[_Unit]] = [[]]
    for unit in _units(call, True, points):
        if unit is not None:
            groups[-1].append(unit)
        elif groups[-1]:
            groups.append([])
    groups = [units for units in groups if units]
    for units, after in zip(groups, groups[1:], strict=False):
        if not isinstance(units[-1].output, Tensor) and not after[0].spread:
            raise ValueError(
                f"{units[-1].name} gives {type(units[-1].output).__name__} as one argument to "
                f"{after[0].name}: between stages go a tensor, or several as arguments"
            )
    stages = [_Stage(module, units) for units in groups]
    _expect_own_state(module, groups, stages)
    return Pipe(stages)


def _expect_own_state(
    model: Module, groups: Sequence[Sequence[_Unit]], stages: Sequence[Module]
) -> None:
    names = [unit.name for units in groups for unit in units]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is called twice: it cannot be in two places of a pipeline")
    owners: dict[int, int] = {}
    for index, stage in enumerate(stages):
        for name, value in (*stage.named_parameters(), *stage.named_buffers()):
            if owners.setdefault(id(value), index) != index:
                raise ValueError(f"{name} is needed in stages {owners[id(value)]} and {index}")
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if id(value) not in owners:
            raise ValueError(f"{name} would be in no stage: no module that stays whole has it")
