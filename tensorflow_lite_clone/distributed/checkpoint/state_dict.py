"""State dicts of models and optimizers by the parameters' names, whatever wraps the model.

Names are those of the model without its wrappers. What is cut over processes stays so, or becomes
whole with `full_state_dict`, and can be loaded in either form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tensorflow_lite_clone.distributed import collectives, distributed_c10d, objects
from tensorflow_lite_clone.distributed.checkpoint._shards import (
    Boxes,
    fill,
    full_tensor,
    is_sharded,
    is_tensor,
    narrowed,
    shape_of,
    shards_of,
)
from tensorflow_lite_clone.distributed.checkpoint.staging import boxes_on_host
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.state import _IncompatibleKeys
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tensorflow_lite_clone.ops.create.constructors import empty
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


#: Attributes by which wrappers have what they wrap.
_WRAPPED = ("_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_orig_mod")


@dataclass
class StateDictOptions:
    """What goes into a state dict, and how strictly one is read.

    With `full_state_dict` tensors are whole; with `cpu_offload` they lie in host memory, and if
    both are set the first process has them and others an empty dictionary. With
    `broadcast_from_rank0`, which wants `full_state_dict`, the first process has what is loaded.
    `dsd_fqn_modifiers` changes nothing.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    @property
    def _only_first_keeps(self) -> bool:
        return self.full_state_dict and self.cpu_offload and _rank() != 0


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _rank() -> int:
    return distributed_c10d.get_rank() if distributed_c10d.is_initialized() else 0


def _clean(name: str, model: Module) -> str:
    """The name of a parameter or a buffer without the names of wrappers."""
    parts, module = [], model
    for part in name.split("."):
        wrapped = part == "module" and isinstance(module, DistributedDataParallel)
        if not wrapped and part not in _WRAPPED:
            parts.append(part)
        module = getattr(module, part, module)
    return ".".join(parts)


def _names(model: Module) -> dict[int, str]:
    return {id(p): _clean(name, model) for name, p in model.named_parameters()}


def _given(value: Any, options: StateDictOptions) -> Any:
    """A value as it goes into a state dict; all processes ask for those that are sharded."""
    if options.full_state_dict:
        value = full_tensor(value)
    if not options.cpu_offload or not is_tensor(value):
        return value
    return boxes_on_host(value) if is_sharded(value) else value.cpu()


def from_first(flat: dict[str, Any], root: int = 0) -> Iterator[tuple[str, Any]]:
    """The names and values of one process's dictionary, one by one, on all processes.

    Tensors lie where the group carries them.
    """
    place = distributed_c10d._get_default_group().carried()
    kinds: list[Any] = []
    for name, value in flat.items():
        tensor = isinstance(value, Tensor)
        kinds.append((name, tensor, (tuple(value.shape), value.dtype) if tensor else value))
    contents = [kinds]
    objects.broadcast_object_list(contents, src=root)
    for name, tensor, value in contents[0]:
        if not tensor:
            yield name, value
            continue
        if _rank() == root:
            sent = flat[name].detach().to(place).contiguous()
        else:
            sent = empty(value[0], dtype=value[1], device=place)
        collectives.broadcast(sent, src=root)
        yield name, sent


def get_model_state_dict(
    model: Module,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state dict of a model, or of some modules within it, without the names of wrappers.

    All processes call it together where parameters are sharded.
    """
    options = _checked(options)
    frozen = {_clean(name, model) for name, p in model.named_parameters() if not p.requires_grad}
    prefixes = None
    if submodules is not None:
        prefixes = [
            f"{_clean(name, model)}." for name, m in model.named_modules() if m in submodules
        ]
    found = {}
    for full_name, value in model.state_dict().items():
        name = _clean(full_name, model)
        if options.ignore_frozen_params and name in frozen:
            continue
        if prefixes is not None:
            prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
            if prefix is None:
                continue
            name = name if options.keep_submodule_prefixes else name.removeprefix(prefix)
        found[name] = _given(value, options)
    return {} if options._only_first_keeps else found


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load what `get_model_state_dict` gave, in either form; raises as `load_state_dict` does."""
    options = _checked(options)
    own = {_clean(name, model): (name, value) for name, value in model.state_dict().items()}
    pairs: Iterable[tuple[str, Any]] = model_state_dict.items()
    if options.broadcast_from_rank0:
        pairs = from_first(model_state_dict)
    state = {}
    for name, value in pairs:
        full_name, target = own.get(name, (name, None))
        if is_sharded(target) and is_tensor(value) and shape_of(target) == shape_of(value):
            fill(target, value)
            value = target
        state[full_name] = value
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


def _whole(parameter: Any) -> Any:
    """What knows of which tensor a parameter is a part; DTensors' parameters keep it aside."""
    return getattr(parameter, "dtensor", parameter)


def _cut_alike(value: Any, parameter: Any) -> Any:
    """A value of an optimizer's state: of the shape of a parameter's part, it is cut as that is."""
    whole = _whole(parameter)
    if not isinstance(value, Tensor) or not is_sharded(whole) or is_sharded(value):
        return value
    if value.shape != parameter.shape:
        return value
    return Boxes(
        shape_of(whole), value.dtype, [(offsets, value) for offsets, _ in shards_of(whole)]
    )


def _own_part(value: Any, parameter: Any, present: Any) -> Any:
    """The part of a whole or cut value that goes with a parameter's part, in place of `present`."""
    whole = _whole(parameter)
    if is_sharded(value):
        boxes = shards_of(value)
        return boxes[0][1] if boxes else present
    if isinstance(value, Tensor) and is_sharded(whole) and value.shape == shape_of(whole):
        places = shards_of(whole)
        return narrowed(value, places[0][0], places[0][1].shape) if places else present
    return value


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states of optimizers, with the names of the model's parameters in place of numbers.

    All processes call it together where parameters are sharded. As in PyTorch, `submodules`
    changes nothing.
    """
    options = _checked(options)
    names = _names(model)
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        raw = optimizer.state_dict()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        order = [names[id(p)] for p in parameters]
        for number, entry in raw["state"].items():
            result["state"][order[number]] = {
                key: _given(_cut_alike(value, parameters[number]), options)
                for key, value in entry.items()
            }
        for group in raw["param_groups"]:
            result["param_groups"].append(
                {**group, "params": [order[number] for number in group["params"]]}
            )
    if options._only_first_keeps:
        return {}
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
    """Load what `get_optimizer_state_dict` gave, in any form.

    Raises RuntimeError for a parameter whose state is missing, unless `strict` is False.
    """
    options, optimizers = _checked(options), _listed(optimizers)
    names = _names(model)
    flat = optim_state_dict
    if "param_groups" in flat and "state" in flat:
        flat = _flattened(optim_state_dict)
    parts: dict[str, Any] = {}
    selected = _wanted(optimizers, names)
    for name, value in from_first(flat) if options.broadcast_from_rank0 else flat.items():
        parts[name] = _own_part(value, *selected[name]) if name in selected else value
    for optimizer in optimizers:
        raw = optimizer.state_dict()
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        for number, entry in raw["state"].items():
            for key in entry:
                name = f"state.{order[number]}.{key}"
                if name in parts:
                    entry[key] = parts[name]
                elif options.strict:
                    raise RuntimeError(
                        f"Missing optimizer state for parameter '{order[number]}' in checkpoint: "
                        f"there is no '{key}'. To load anyway, use StateDictOptions(strict=False)."
                    )
        for group in raw["param_groups"]:
            for key in group:
                if key != "params" and group["params"]:
                    name = f"param_groups.{order[group['params'][0]]}.{key}"
                    group[key] = parts.get(name, group[key])
        optimizer.load_state_dict(raw)


def _wanted(optimizers: list[Optimizer], names: dict[int, str]) -> dict[str, tuple[Any, Any]]:
    """Flat name of a value of an optimizer's state -> the parameter, and the present value."""
    found = {}
    for optimizer in optimizers:
        _init_optim_state(optimizer)
        for parameter, entry in optimizer.state.items():
            for key, value in entry.items():
                found[f"state.{names[id(parameter)]}.{key}"] = parameter, value
    return found


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
