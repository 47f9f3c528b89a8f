"""`Optimizer`: parameter groups, states, hooks and their dictionaries."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from tensorflow_lite_clone.autograd.mode import enable_grad, mode
from tensorflow_lite_clone.core import dynamic_scalar
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.pointwise.complex_numbers import view_as_real
from tensorflow_lite_clone.ops.update import (
    by_device,
    count_steps,
    count_writes,
    update,
    update_recorded,
    update_with,
    zero_each,
)
from tensorflow_lite_clone.optim.arguments import (
    ParamsT,
    _default_to_fused_or_foreach,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _RequiredParameter,
    _use_grad_for_differentiable,
    _view_as_real,
    check_choices,
    new_count,
    required,
)
from tensorflow_lite_clone.optim.hooks import (
    Hooked,
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from tensorflow_lite_clone.optim.record import STEP, Record, cast_state
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "Optimizer",
    "ParamsT",
    "_RequiredParameter",
    "_default_to_fused_or_foreach",
    "_get_capturable_supported_devices",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_get_scalar_dtype",
    "_get_value",
    "_global_optimizer_post_hooks",
    "_global_optimizer_pre_hooks",
    "_use_grad_for_differentiable",
    "_view_as_real",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
Closure = Callable[[], Any] | None
_FLOATS = {float}
_ORDINARY = {Tensor}  # what a gradient is if it is not sparse, or of a class of the program's


class Optimizer(Hooked):
    """Base of all optimizers.

    A subclass passes its hyperparameters as `defaults` and implements `step`, as in PyTorch. Those
    of the package have a `_record` instead, from which `update` is made (see `optim.record`). It is
    called once per group and device with the parameters that have a gradient (`update_sparse` with
    those whose gradients are sparse). A subclass of another kind may implement it with `run`,
    `number`, `states` and `count_steps`: then a step on a GPU can be captured and replayed, complex
    parameters are updated as pairs of reals, and with `differentiable` the step is a part of the
    graph.

    A zero-dim float32 tensor as `found_inf` makes `step` change nothing if it is not zero, on a
    device without being read back. Loss scaling sets it.
    """

    found_inf: Tensor | None = None
    _found_inf: Tensor | None = None  # on the device that is being updated, None for the CPU
    _step_supports_amp_scaling = False  # whether `update` heeds `found_inf` on every device
    _record: ClassVar[Record] = Record()  # that of a class of another kind has no step
    _newer_options: ClassVar[dict[str, Any]] = {}  # what groups in older checkpoints lack
    _counts: tuple[str, ...] = ()  # states that are plain numbers in older checkpoints
    _capturable_states = "params and state_steps"

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._prepare()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {params.type()}"
            )
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with ``params`` and the hyperparameters in which the group differs.

        The parameters may be given as pairs with their names. Raises ValueError for parameters
        that are in a group already or are no leaves, or if only some have names.
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
        named = [isinstance(param, tuple) for param in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["params"] = None  # before the names, for the order of the group's keys
            param_group["param_names"] = [param[0] for param in params]
            params = [param[1] for param in params]
        param_group["params"] = params
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(param).__name__}"
                )
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        if len({id(param) for param in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=level_outside(),
            )
        seen = {id(param) for group in self.param_groups for param in group["params"]}
        if any(id(param) in seen for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups:
            with_names = "param_names" in param_group
            if ("param_names" in self.param_groups[0]) != with_names:
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {'with' if with_names else 'without'} names to the optimizer"
                )
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
                    if param._grad.grad_fn is not None:
                        param._grad.detach_()
                    else:
                        param._grad.requires_grad_(False)
                    if param._grad.is_sparse:
                        param._grad.zero_()
                    else:
                        kept.append(param._grad)
        for part in by_device(kept):
            update(zero_each, part, read=())

    def step(self, closure: Closure = None) -> Any:
        """Update all parameters that have a gradient; returns what `closure` returns."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        recorded_outside = mode.grad
        mode.grad = bool(self.defaults.get("differentiable")) and not mode.inference
        try:
            for group in self.param_groups:
                params = [param for param in group["params"] if param._grad is not None]
                if params:
                    check_choices(group, params, self._capturable_states)
                for part in by_device(params):
                    if self._heed_found_inf(part[0]):
                        grads: list[Any] = [param._grad for param in part]
                        if not _ORDINARY.issuperset(map(type, grads)):
                            part = self._without_sparse(group, part)
                            grads = [param._grad for param in part]
                        if part:
                            self.update(group, part, grads)
        finally:
            mode.grad = recorded_outside
        return loss

    def _without_sparse(self, group: dict[str, Any], params: list[Tensor]) -> list[Tensor]:
        """Update the parameters whose gradients are sparse; returns the others."""
        chosen: list[Tensor] = []
        rest: list[Tensor] = []
        for param in params:
            g: Any = param._grad
            (chosen if g.is_sparse else rest).append(param)
        if chosen and not (self._found_inf is not None and self._found_inf.item()):
            self.update_sparse(group, chosen, [param._grad for param in chosen])
        return rest

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

    def hyperparameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """The `defaults` of a class with a record, among the local names of its constructor."""
        given = {**given, **self._record.fixed}
        return {name: given[name] for name in self._record.names}

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Update one group's parameters on one device in place, as the class's record says."""
        if self._record.step is None:
            raise NotImplementedError
        self._run_rule(self._numbers(group), params, grads, self._kept(group, params))

    def _kept(self, group: dict[str, Any], params: list[Tensor]) -> dict[str, list[Tensor]]:
        """The states of the record, by their names, for each parameter; made when missing."""
        kept = {}
        owned = [self.state[param] for param in params]
        for state in self._record.states:
            if not state.when or group[state.when]:
                name = state.name
                for param, own in zip(params, owned, strict=True):
                    if name not in own:
                        own[name] = state.make(param, group)
                kept[name] = [own[name] for own in owned]
        return kept

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        """The hyperparameters that steps take."""
        record = self._record
        numbers = {name: group[name] for name in record.taken}
        is_live = dynamic_scalar.recorder is not None
        for name in record.scheduled:
            kind = numbers[name].__class__
            if kind is int and not is_live:
                numbers[name] = float(numbers[name])
            elif kind is not float or is_live:
                numbers[name] = self.number(group, name)
        return numbers

    def _run_rule(
        self,
        numbers: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: dict[str, list[Tensor]],
    ) -> None:
        """Run the record's step. `states` are by their names, without those that are not kept."""
        record = self._record
        if STEP.name in states:
            counts = self._advance(states[STEP.name])
            if record.is_counted:
                numbers["steps"] = counts
        lists = [states.get(name, []) for name in record.lists]
        self.run(record.step, (params, grads, *lists), numbers)

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """Update one group's parameters that have sparse gradients; RuntimeError by default."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def run(
        self, step: Callable[..., Any], lists: tuple[list[Tensor], ...], numbers: dict[str, Any]
    ) -> None:
        """Run a step on parameters, gradients and states; complex ones as pairs of reals."""
        numbers["found_inf"] = self._found_inf
        for param in lists[0]:
            if param._storage.physical.dtype.kind == "c":
                lists = tuple([[_as_real(tensor) for tensor in tensors] for tensors in lists])
                break
        if self.defaults.get("differentiable"):
            update_recorded(step, *lists, **numbers)
        else:
            update_with(step, lists, numbers)

    def number(self, group: dict[str, Any], name: str) -> Any:
        """A hyperparameter as a float, which may change before a captured step is replayed.

        One that is a tensor is returned as it is, if it is a learning rate on a device or the
        optimizer is `differentiable`. A tuple is returned as a tuple of such.
        """
        value = group[name]
        if dynamic_scalar.recorder is None and (value.__class__ is float or value.__class__ is int):
            return float(value)
        if isinstance(value, Tensor):
            if self.defaults.get("differentiable"):
                return value
            if name == "lr" and not value.is_cpu:
                return value
        elif isinstance(value, (tuple, list)):
            if dynamic_scalar.recorder is None and _FLOATS.issuperset(map(type, value)):
                return tuple(value)
            return tuple([self._entry(group, name, i) for i in range(len(value))])
        return dynamic_scalar.dynamic_scalar(lambda: float(group[name]))

    def _entry(self, group: dict[str, Any], name: str, i: int) -> Any:
        value = group[name][i]
        if dynamic_scalar.recorder is None and (value.__class__ is float or value.__class__ is int):
            return float(value)
        if isinstance(value, Tensor) and self.defaults.get("differentiable"):
            return value
        return dynamic_scalar.dynamic_scalar(lambda: float(group[name][i]))

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

    def count_steps(self, group: dict[str, Any], params: list[Tensor]) -> list[Any]:
        """Each parameter's number of steps, this one included.

        On a device the counts are float32 tensors there, so that they go on when a captured step
        is replayed; on the CPU they are returned as numbers.
        """
        counts = []
        for param in params:
            state = self.state[param]
            if "step" not in state:
                state["step"] = new_count(param, group.get("fused"))
            counts.append(state["step"])
        return self._advance(counts)

    def _advance(self, counts: list[Tensor]) -> list[Any]:
        """Add 1 to step counts. The new ones: numbers on the CPU, else the tensors themselves."""
        if not counts or not counts[0].is_cpu:
            update(count_steps, counts, read=(), found_inf=self._found_inf)
            return counts
        backend = counts[0]._storage.backend
        steps: list[Any] = backend.F.count_on_host([count._storage.array for count in counts])
        count_writes(counts)
        return steps

    def run_on_numbers(
        self, step: Callable[..., Any], *lists: list[Tensor], **numbers: Any
    ) -> None:
        """Run a step of `ops` that updates zero-dim states."""
        update(step, *lists, read=(), found_inf=self._found_inf, **numbers)

    def host_values(self, numbers: list[Tensor]) -> list[Any]:
        """Zero-dim states for a step of `ops`: on the CPU as numbers."""
        if not numbers[0].is_cpu:
            return numbers
        arrays = [x._storage.array for x in numbers]
        values: list[Any] = numbers[0]._storage.backend.F.read_on_host(arrays)
        return values

    def state_dict(self) -> dict[str, Any]:
        """States by parameter number, and the groups with numbers in place of parameters."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
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
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`; floating-point states are cast to their parameter's dtype.

        Raises ValueError when the groups do not match.
        """
        state_dict = state_dict.copy()
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for own_group, saved_group in zip(self.param_groups, saved, strict=True):
            if len(own_group["params"]) != len(saved_group["params"]):
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
            state[number if param is None else param] = cast_state(param, value)
        for own_group, saved_group in zip(self.param_groups, saved, strict=True):
            if "param_names" in own_group and "param_names" not in saved_group:
                saved_group["param_names"] = own_group["param_names"]
            saved_group["params"] = own_group["params"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[Any, tuple[list[list[Any]], list[int]]]:
        """Parallel lists split by the first one's devices and dtypes; the places if asked for."""
        parts: dict[Any, list[int]] = {}
        for i, tensor in enumerate(tensorlistlist[0]):
            parts.setdefault((tensor.device, tensor.dtype), []).append(i)
        return {
            key: (
                [[tensors[i] for i in places] if tensors else [] for tensors in tensorlistlist],
                places if with_indices else [],
            )
            for key, places in parts.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()
        for group in self.param_groups:
            for name, value in self._newer_options.items():
                group.setdefault(name, value)
            for param in group["params"]:
                entries = self.state.get(param, {})
                for name in self._counts:
                    if isinstance(entries.get(name), (int, float)):
                        entries[name] = new_count(param, group.get("fused"), entries[name])

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            for name in sorted(group):
                if name != "params":
                    text += f"    {name}: {group[name]}\n"
        return text + ")"


def _as_real(tensor: Tensor) -> Tensor:
    return view_as_real(tensor) if tensor.is_complex() else tensor
