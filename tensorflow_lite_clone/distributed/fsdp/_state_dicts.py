"""State dicts of models and optimizers whose parameters are cut, and back."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributed.fsdp._group import Managed
from tensorflow_lite_clone.distributed.fsdp._schedule import state_of
from tensorflow_lite_clone.distributed.fsdp._shards import Cut, Sharded, rows_of
from tensorflow_lite_clone.distributed.fsdp.api import OptimStateKeyType
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor


def members_below(module: Module) -> Iterator[Managed]:
    """The cut parameters of a module and of all below it."""
    for part in module.modules():
        state = state_of(part)
        if state is not None:
            yield from state.group.members


def keys_of(module: Module, prefix: str) -> Iterator[tuple[str, Managed]]:
    """The state dict's keys of a cut module's own parameters; shared ones have several."""
    state = state_of(module)
    assert state is not None
    places = {
        (id(part), name): member for member in state.group.members for part, name in member.places
    }
    for path, part in module.named_modules(prefix=prefix.removesuffix(".")):
        for name in part._parameters:
            member = places.get((id(part), name))
            if member is not None:
                yield f"{path}.{name}" if path else name, member


def load_rows(module: Module, state_dict: Any, prefix: str, metadata: dict, *rest: Any) -> None:
    """Before a cut module is loaded: whole tensors in the state dict become this process's rows."""
    state = state_of(module)
    assert state is not None
    state.group.release()
    errors = rest[-1]
    for key, member in keys_of(module, prefix):
        value = state_dict.get(key)
        if isinstance(value, Tensor):
            try:
                state_dict[key] = rows_of(value, member.cut, key)
            except ValueError as error:
                errors.append(str(error))
                state_dict[key] = member.rows.to_local()


def adopt_rows(module: Module, keys: Any) -> None:
    """After a cut module is loaded: parameters that were put in place of rows know the whole."""
    for member in members_below(module):
        member.look()


def optimizer_state(
    names: dict[int, str], optimizer: Any, full: bool, to_cpu: bool, keep: bool = True
) -> dict[str, Any]:
    """An optimizer's state by the parameters' names (by id), in whole tensors if `full`.

    All processes have to ask; where not `keep`, nothing is kept. States of a parameter's shape are
    cut as it is; others are the same on all processes.
    """

    def moved(value: Any, parameter: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        cut = isinstance(parameter, Sharded) and tuple(value.shape) == tuple(parameter.shape)
        if cut and full:
            value = Sharded.over(value, parameter.cut).full_tensor()
        value = value.cpu() if to_cpu and keep else value
        return Sharded.over(value, parameter.cut) if cut and not full else value

    state, groups = {}, []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter in optimizer.state:
                entry = optimizer.state[parameter]
                found = {key: moved(value, parameter) for key, value in entry.items()}
                if keep:
                    state[names[id(parameter)]] = found
        kept = {key: value for key, value in group.items() if key != "params"}
        groups.append({**kept, "params": [names[id(p)] for p in group["params"]]})
    return {"state": state, "param_groups": groups} if keep else {}


def optimizer_rows(names: dict[int, str], optimizer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What the optimizer's `load_state_dict` takes, from what `optimizer_state` gave."""

    def rows(value: Any, parameter: Any) -> Any:
        if not (isinstance(value, Tensor) and isinstance(parameter, Sharded)):
            return value
        cut: Cut = parameter.cut
        if isinstance(value, Sharded) or tuple(value.shape) == cut.shape:
            return rows_of(value, cut, names[id(parameter)])
        return value

    state: dict[int, Any] = {}
    by_name = {name: entry for entry in given["param_groups"] for name in entry["params"]}
    groups = []
    number = 0
    for group in optimizer.param_groups:
        numbers = []
        for parameter in group["params"]:
            entry = given["state"].get(names[id(parameter)])
            if entry is not None:
                state[number] = {key: rows(value, parameter) for key, value in entry.items()}
            numbers.append(number)
            number += 1
        first = [names[id(p)] for p in group["params"]][:1]
        kept = by_name.get(first[0], {}) if first else {}
        groups.append({**group, **kept, "params": numbers})
    return {"state": state, "param_groups": groups}


def with_key_type(
    names: dict[int, str], given: dict[str, Any], kind: OptimStateKeyType, parameters: Iterable[Any]
) -> dict[str, Any]:
    """An optimizer's state whose parameters have names in place of their numbers, or numbers.

    Raises ValueError for a state that has both.
    """
    wanted = str if kind is OptimStateKeyType.PARAM_NAME else int
    kinds = {type(key) for key in given["state"]}
    if len(kinds) > 1:
        raise ValueError(f"Invalid parameter keys: {given['state'].keys()}")
    if kinds <= {wanted}:
        return given
    numbered = {number: names[id(parameter)] for number, parameter in enumerate(parameters)}
    new: dict[Any, Any] = dict(numbered)
    if wanted is int:
        new = {name: number for number, name in numbered.items()}
    return {
        "state": {new[key]: entry for key, entry in given["state"].items()},
        "param_groups": [
            {**copy.deepcopy(group), "params": sorted([new[key] for key in group["params"]])}
            for group in given["param_groups"]
        ],
    }


def whole_state_dict(module: Module) -> dict[str, Tensor]:
    """A model's state dict with whole tensors in place of rows; all processes have to ask."""
    return {
        key: value.full_tensor() if isinstance(value, Sharded) else value
        for key, value in module.state_dict().items()
    }


@no_grad()
def write_back(member: Managed, whole: Tensor) -> None:
    """Let a parameter's rows be those of a whole tensor."""
    member.rows.copy_(member.cut.part_of(whole.detach()))
