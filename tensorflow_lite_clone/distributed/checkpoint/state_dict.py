"""State dicts of models and optimizers by the parameters' names; in a world of one process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.state import _IncompatibleKeys
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """What goes into a state dict, and how strictly one is read.

    `full_state_dict` and `broadcast_from_rank0` say nothing in a world of one.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _clean(name: str, model: Module) -> str:
    """A parameter's name without the wrapper's `module.` in front."""
    return name.removeprefix("module.") if isinstance(model, DistributedDataParallel) else name


def _names(model: Module) -> dict[int, str]:
    return {id(p): _clean(name, model) for name, p in model.named_parameters()}


def _moved(value: Any, options: StateDictOptions) -> Any:
    return value.cpu() if options.cpu_offload and isinstance(value, Tensor) else value


def get_model_state_dict(
    model: Module,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state dict of a model, without the names of wrappers."""
    if submodules is not None:
        raise NotImplementedError("submodules (planned: several devices and processes)")
    options = options or StateDictOptions()
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    return {
        _clean(name, model): _moved(value, options)
        for name, value in model.state_dict().items()
        if not (options.ignore_frozen_params and name in frozen)
    }


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load what `get_model_state_dict` gave."""
    options = options or StateDictOptions()
    own = {_clean(name, model): name for name in model.state_dict()}
    state = {own.get(name, name): value for name, value in model_state_dict.items()}
    return model.load_state_dict(state, strict=options.strict)


def _init_optim_state(optim: Optimizer) -> None:
    """Let an optimizer that has made no step make its state: by a step of rate 0."""
    if optim.state:
        return
    parameters = [p for group in optim.param_groups for p in group["params"] if p.requires_grad]
    if any([p.grad is not None for p in parameters]):
        return  # a step would use these
    for p in parameters:
        p.grad = p.detach().new_zeros(p.shape)
    rates = [group["lr"] for group in optim.param_groups]
    for group in optim.param_groups:
        group["lr"] = group["lr"] * 0
    optim.step(closure=None)
    for group, rate in zip(optim.param_groups, rates, strict=True):
        group["lr"] = rate
    optim.zero_grad(set_to_none=True)


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states of optimizers, with the names of the model's parameters in place of numbers."""
    if submodules is not None:
        raise NotImplementedError("submodules (planned: several devices and processes)")
    options = options or StateDictOptions()
    names = _names(model)
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        raw = optimizer.state_dict()
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        for number, entry in raw["state"].items():
            moved = {key: _moved(value, options) for key, value in entry.items()}
            result["state"][order[number]] = moved
        for group in raw["param_groups"]:
            result["param_groups"].append(
                {**group, "params": [order[number] for number in group["params"]]}
            )
    return _flattened(result) if options.flatten_optimizer_state_dict else result


def _flattened(nested: dict[str, Any]) -> dict[str, Any]:
    flat = {}
    for name, entry in nested["state"].items():
        flat.update({f"state.{name}.{key}": value for key, value in entry.items()})
    for group in nested["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load what `get_optimizer_state_dict` gave, in either form."""
    names = _names(model)
    flat = optim_state_dict
    if "param_groups" in flat and "state" in flat:
        flat = _flattened(optim_state_dict)
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        raw = optimizer.state_dict()
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        for number, entry in raw["state"].items():
            for key in entry:
                entry[key] = flat[f"state.{order[number]}.{key}"]
        for group in raw["param_groups"]:
            for key in group:
                if key != "params" and group["params"]:
                    group[key] = flat[f"param_groups.{order[group['params'][0]]}.{key}"]
        optimizer.load_state_dict(raw)


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    chosen: Any = {"submodules": submodules, "options": options}
    return (
        get_model_state_dict(model, **chosen),
        get_optimizer_state_dict(model, optimizers, **chosen),
    )


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """`set_model_state_dict` and `set_optimizer_state_dict`."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
