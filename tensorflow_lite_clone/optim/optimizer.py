"""`Optimizer`: parameter groups, states, hooks and their dictionaries."""

from __future__ import annotations

import copy
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.mode import enable_grad, no_grad
from tensorflow_lite_clone.autograd.node import Handle
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.live import live
from tensorflow_lite_clone.ops.create import scalar_tensor
from tensorflow_lite_clone.ops.update import by_device, count_steps, update, zero_each
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
    grads)`, called once per group and device with the parameters that have a gradient. It calls
    `run` with a step of `ops.update`, hyperparameters as `number` reads them, and step counts by
    `count_steps`: then a step on a GPU can be captured and replayed.

    A zero-dim float32 tensor as `found_inf` makes `step` change nothing if it is not zero, on a
    device without being read back. Loss scaling sets it.
    """

    found_inf: Tensor | None = None
    _found_inf: Tensor | None = None  # on the device that is being updated, None for the CPU
    _step_supports_amp_scaling = False  # whether `update` heeds `found_inf` on every device

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
        kept = []
        for group in self.param_groups:
            for param in group["params"]:
                if param._grad is None:
                    continue
                if set_to_none:
                    param._grad = None
                else:
                    param._grad = param._grad.detach()
                    kept.append(param._grad)
        for part in by_device(kept):
            update(zero_each, part, read=())

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
                for part in by_device(params):
                    grads: list[Any] = [param._grad for param in part]
                    if self._heed_found_inf(part[0]):
                        self.update(group, part, grads)
        for hook in [*self._step_post_hooks.values(), *_global_optimizer_post_hooks.values()]:
            hook(self, (closure,) if closure is not None else (), {})
        return loss

    def _heed_found_inf(self, beside: Tensor) -> bool:
        """False if a flag on the CPU says that the step must be left out."""
        found_inf = self.found_inf
        if found_inf is not None:
            found_inf = found_inf.to(beside.device)
            if found_inf.is_cpu:
                if found_inf.item():
                    return False
                found_inf = None
        self._found_inf = found_inf
        return True

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Update one group's parameters on one device in place."""
        raise NotImplementedError

    def run(self, step: Callable[..., Any], *lists: list[Tensor], **numbers: Any) -> None:
        """Run a step of `ops.update` on parameters, gradients and states."""
        update(step, *lists, found_inf=self._found_inf, **numbers)

    def number(self, group: dict[str, Any], name: str) -> Any:
        """A hyperparameter as a float, which may change before a captured step is replayed.

        A learning rate that is a tensor on a device is returned as it is.
        """
        value = group[name]
        if name == "lr" and isinstance(value, Tensor) and not value.is_cpu:
            return value
        return live(lambda: float(group[name]))

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

    def count_steps(self, params: list[Tensor]) -> list[float] | list[Tensor]:
        """Each parameter's number of steps, this one included.

        On a device the counts are float32 tensors there, so that they go on when a captured step
        is replayed; on the CPU they are returned as numbers.
        """
        on_host = params[0].is_cpu
        counts = []
        for param in params:
            state = self.state[param]
            if "step" not in state:
                state["step"] = new_count(param)
            counts.append(state["step"])
        if not on_host:
            update(count_steps, counts, read=(), found_inf=self._found_inf)
            return counts
        steps = []
        for count in counts:
            count += 1
            steps.append(count.item())
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
        if param is None:
            return value
        if key == "step":
            return value if param.is_cpu else value.to(dtype=float32, device=param.device)
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


def new_count(param: Tensor) -> Tensor:
    """A zero-dim tensor for the steps of `param`, on its device."""
    if param.is_cpu:
        return scalar_tensor(0.0, device="cpu")
    return scalar_tensor(0.0, dtype=float32, device=param.device)


def check_at_least_zero(**values: float) -> None:
    """Raise torch's ValueError for a negative hyperparameter."""
    for name, value in values.items():
        if not value >= 0.0:
            name = "learning rate" if name == "learning_rate" else name
            colon = ":" if name == "learning rate" else " value:"
            raise ValueError(f"Invalid {name}{colon} {value}")

