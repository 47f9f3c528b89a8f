"""`Optimizer`: parameter groups, states, hooks and their dictionaries."""

from __future__ import annotations

import copy
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.mode import enable_grad, no_grad
from tensorflow_lite_clone.autograd.node import Handle
from tensorflow_lite_clone.ops.create import scalar_tensor
from tensorflow_lite_clone.tensor import Tensor

Closure = Callable[[], Any] | None
_global_optimizer_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Any] = OrderedDict()


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Optimizer:
    """Base of all optimizers.

    A subclass passes its hyperparameters as `defaults` and implements `update(group, params,
    grads)`, called once per group with the parameters that have a gradient.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {params.type()}"
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._init_hooks()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _init_hooks(self) -> None:
        self._step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._state_dict_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._state_dict_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._load_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._load_post_hooks: OrderedDict[int, Any] = OrderedDict()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with ``params`` and the hyperparameters in which the group differs.

        Raises ValueError for parameters that are in a group already or are no leaves.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        if params and isinstance(params[0], tuple):
            param_group["param_names"] = [name for name, _ in params]
            params = [param for _, param in params]
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(param)}"
                )
            if not param.is_leaf and not self.defaults.get("differentiable"):
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        seen = {id(param) for group in self.param_groups for param in group["params"]}
        if any(id(param) in seen for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero in place."""
        for group in self.param_groups:
            for param in group["params"]:
                if param._grad is None:
                    continue
                if set_to_none:
                    param._grad = None
                else:
                    param._grad = param._grad.detach()
                    param._grad.zero_()

    def step(self, closure: Closure = None) -> Any:
        """Update all parameters that have a gradient; returns what `closure` returns."""
        for hook in [*_global_optimizer_pre_hooks.values(), *self._step_pre_hooks.values()]:
            hook(self, (closure,) if closure is not None else (), {})
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                params = [param for param in group["params"] if param._grad is not None]
                if params:
                    self.update(group, params, [param._grad for param in params])
        for hook in [*self._step_post_hooks.values(), *_global_optimizer_post_hooks.values()]:
            hook(self, (closure,) if closure is not None else (), {})
        return loss

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Update one group's parameters in place."""
        raise NotImplementedError

    def states(self, params: list[Tensor], **initial: Callable[[Tensor], Tensor]) -> list:
        """Per name a list with each parameter's state tensor, made by `initial` when missing."""
        lists: list[list[Any]] = [[] for _ in initial]
        for param in params:
            state = self.state[param]
            for entries, (name, make) in zip(lists, initial.items(), strict=True):
                if name not in state:
                    state[name] = make(param)
                entries.append(state[name])
        return lists

    def count_steps(self, params: list[Tensor]) -> list[float]:
        """Each parameter's number of steps, this one included."""
        steps = []
        for param in params:
            state = self.state[param]
            if "step" not in state:
                state["step"] = scalar_tensor(0.0, device="cpu")
            state["step"] += 1
            steps.append(state["step"].item())
        return steps

    def state_dict(self) -> dict[str, Any]:
        """States by parameter number, and the groups with numbers in place of parameters."""
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in list(self._state_dict_post_hooks.values()):
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`; floating-point states are cast to their parameter's dtype.

        Raises ValueError when the groups do not match.
        """
        state_dict = state_dict.copy()
        for hook in list(self._load_pre_hooks.values()):
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups"
            )
        for mine, theirs in zip(self.param_groups, saved, strict=True):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        numbers = itertools.chain.from_iterable(group["params"] for group in saved)
        params = itertools.chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(numbers, params, strict=True))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            param = by_number.get(number)
            state[number if param is None else param] = _cast(param, value)
        for mine, theirs in zip(self.param_groups, saved, strict=True):
            theirs["params"] = mine["params"]
        self.state = state
        self.param_groups = saved
        for hook in list(self._load_post_hooks.values()):
            hook(self)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` before every step."""
        return Handle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` after every step."""
        return Handle(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return Handle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another."""
        return Handle(self._state_dict_post_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another."""
        return Handle(self._load_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer)`` after loading."""
        return Handle(self._load_post_hooks, hook)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._init_hooks()

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            for name in sorted(group):
                if name != "params":
                    text += f"    {name}: {group[name]}\n"
        return text + ")"


def _cast(param: Tensor | None, value: Any, key: str = "") -> Any:
    """A loaded state with its tensors on the parameter's device and in its dtype."""
    if isinstance(value, Tensor):
        if param is None or key == "step":
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {name: _cast(param, entry, name) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, entry) for entry in value)
    return value


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    return Handle(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return Handle(_global_optimizer_post_hooks, hook)


def check_at_least_zero(**values: float) -> None:
    """Raise torch's ValueError for a negative hyperparameter."""
    for name, value in values.items():
        if not value >= 0.0:
            name = "learning rate" if name == "learning_rate" else name
            colon = ":" if name == "learning rate" else " value:"
            raise ValueError(f"Invalid {name}{colon} {value}")

