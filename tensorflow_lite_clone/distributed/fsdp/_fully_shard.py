"""`fully_shard`: a module whose parameters are cut over processes, in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.distributed_c10d import (
    _get_default_group,
    init_process_group,
    is_initialized,
)
from tensorflow_lite_clone.distributed.fsdp._group import (
    Managed,
    Options,
    ParameterGroup,
    expect_same,
)
from tensorflow_lite_clone.distributed.fsdp._schedule import State, around, attach, state_of
from tensorflow_lite_clone.distributed.fsdp._shards import ShardedParameter
from tensorflow_lite_clone.distributed.fsdp._state_dicts import adopt_rows, load_rows
from tensorflow_lite_clone.distributed.fsdp.api import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.nn.modules.container import ModuleDict, ModuleList
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Parameter


def own_members(
    module: Module, ignored: set[Any]
) -> dict[int, tuple[str, Parameter, list[tuple[Module, str]]]]:
    """The parameters of a module that no cut module below it has: name, itself, its places."""
    found: dict[int, tuple[str, Parameter, list[tuple[Module, str]]]] = {}
    for prefix, part in own_modules(module):
        for name, parameter in part._parameters.items():
            if parameter is None or parameter in ignored:
                continue
            label = f"{prefix}.{name}" if prefix else name
            _expect_whole(label, parameter)
            _, _, places = found.setdefault(id(parameter), (label, parameter, []))
            places.append((part, name))
    return found


def own_modules(module: Module, prefix: str = "") -> Iterator[tuple[str, Module]]:
    """A module and those below it, without those that are cut themselves."""
    yield prefix, module
    for name, child in module.named_children():
        if state_of(child) is None:
            yield from own_modules(child, f"{prefix}.{name}" if prefix else name)


def _expect_whole(name: str, parameter: Parameter) -> None:
    if isinstance(parameter, ShardedParameter) or vars(parameter).get("_cut"):
        raise ValueError(
            f"the parameter {name} is shared with a module that is cut already: cut the module "
            "that has both, and not that one"
        )
    if not parameter.ndim:
        raise ValueError(
            f"the parameter {name} has no dimension to cut along: give it the shape (1,)"
        )


def group_of_members(module: Module, ignored: set[Any], options: Options) -> ParameterGroup:
    """Cut a module's own parameters. RuntimeError where ranks differ in them."""
    found = own_members(module, ignored).values()
    expect_same([(name, parameter) for name, parameter, _ in found], options.shard_group)
    for _, part in own_modules(module):
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = buffer.to(options.device)
    members = []
    for name, parameter, places in found:
        members.append(Managed(name, parameter, places, options))
        vars(parameter)["_cut"] = True
    return ParameterGroup(members, options)


def several(group: ProcessGroup | None) -> ProcessGroup | None:
    """The group, None if it is of one process."""
    return None if group is None or group.size() == 1 else group


def default_group() -> ProcessGroup:
    """The group of all processes, made if there is none."""
    if not is_initialized():
        init_process_group()
    return _get_default_group()


def device_for(group: ProcessGroup, kind: str | None = None) -> Device:
    """Where a group's tensors are calculated with: the present GPU under NCCL."""
    kind = kind or ("cuda" if "nccl" in group.name() else "cpu")
    return Device("cuda", cuda.current_device()) if kind == "cuda" else Device(kind)


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[..., Any] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008  (nobody changes it)
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
    ignored_params: set[Parameter] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Cut the parameters of a module over processes, in its place; returns it, an `FSDPModule`.

    The parameters that no cut module inside has form one group: they become `ShardedParameter`s,
    of which each process keeps ceil(rows / processes) rows, are gathered together around the
    module's forward and backward, and their gradients are reduced (mean) together. So cut the
    layers of a model first and then the model. Optimizers are to be made afterwards.

    Args:
        mesh: the processes, in one dimension; in two, each row of the grid shares the parameters,
            and gradients are averaged over rows, too. All processes by default.
        reshard_after_forward: whether whole parameters are dropped between forward and backward;
            None: unless the module is the outermost.
        mp_policy: the dtypes to calculate and to reduce in.
        offload_policy: `CPUOffloadPolicy` keeps the rows on the CPU.
        ignored_params: parameters to leave as they are.

    Raises:
        ValueError: a container without forward, a parameter without dimensions, or one shared
            with a module that is cut already; a mesh of more dimensions.
        RuntimeError: the module is not the same on all ranks, or is cut already.
        NotImplementedError: `shard_placement_fn`, `dp_mesh_dims`, a number as
            `reshard_after_forward`, a list of modules.

    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models" (2020), stage 3; Zhao et al., "PyTorch FSDP" (2023).
    """
    _refuse(module, reshard_after_forward, shard_placement_fn, dp_mesh_dims)
    if isinstance(module, (ModuleList, ModuleDict)):
        raise ValueError(
            f"fully_shard does not support containers that do not implement forward: {module}"
        )
    if state_of(module) is not None:
        raise RuntimeError(f"{type(module).__name__} has been cut already")
    if mesh is None:
        shard_group, replicate_group, kind = default_group(), None, None
    elif mesh.ndim == 1:
        shard_group, replicate_group, kind = mesh.get_group(0), None, mesh.device_type
    elif mesh.ndim == 2:
        shard_group, replicate_group, kind = mesh.get_group(1), mesh.get_group(0), mesh.device_type
    else:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    device = device_for(shard_group, kind)
    offload = isinstance(offload_policy, CPUOffloadPolicy)
    options = Options(
        shard_group=several(shard_group),
        replicate_group=several(replicate_group),
        device=device,
        param_dtype=mp_policy.param_dtype,
        reduce_dtype=mp_policy.reduce_dtype,
        output_dtype=mp_policy.output_dtype,
        cast_inputs=mp_policy.cast_forward_inputs,
        offload=offload,
        pin_memory=offload and device.type == "cuda" and offload_policy.pin_memory,  # type: ignore[attr-defined]
    )
    state = attach(module, group_of_members(module, set(ignored_params or ()), options))
    state.reshard_after_forward = reshard_after_forward  # type: ignore[assignment]
    module.register_load_state_dict_pre_hook(load_rows)
    module.register_load_state_dict_post_hook(adopt_rows)
    kind_of = type(module)
    module.__class__ = type(f"FSDP{kind_of.__name__}", (FSDPModule, kind_of), {})
    return module


def _refuse(module: Any, reshard: Any, placement: Any, dims: Any) -> None:
    if isinstance(module, (list, tuple)):
        raise NotImplementedError("a list of modules as one group: cut the module that has them")
    if placement is not None:
        raise NotImplementedError("shard_placement_fn: parameters are cut along dimension 0")
    if dims is not None:
        raise NotImplementedError("dp_mesh_dims: give the mesh of the data-parallel processes")
    if isinstance(reshard, int) and not isinstance(reshard, bool):
        raise NotImplementedError(
            "a number as reshard_after_forward: parameters are kept whole, or cut over all"
        )


class UnshardHandle:
    """A gather under way."""

    def __init__(self, state: State) -> None:
        self._state = state

    def wait(self) -> None:
        """Wait for it; the parameters are whole then."""
        self._state.group.finish_gather(self._state.streams)


class FSDPModule:
    """What `fully_shard` makes of a module's class."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class that the module had before."""
        original: Any = cls.__mro__[2]
        made = original.__new__(original)
        made.__init__(*args, **kwargs)
        return made

    def _state(self) -> State:
        state = state_of(self)  # type: ignore[arg-type]
        assert state is not None
        return state

    def _states(self, recurse: bool = True) -> Iterable[State]:
        if not recurse:
            return [self._state()]
        parts = self.modules()  # type: ignore[attr-defined]
        return [state for part in parts if (state := state_of(part))]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the module's own parameters; with `async_op` they are whole after ``wait()``."""
        state = self._state()
        state.streams.begin()
        state.group.start_gather(state.streams)
        handle = UnshardHandle(state)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Drop the module's whole parameters; its rows are in place again."""
        self._state().group.release()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Nothing: reductions are waited for at the end of every backward pass."""

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward passes reduce gradients; if not, whole ones add up, uncut."""
        for state in self._states(recurse):
            state.sync = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are averaged over the rows of a mesh of two dimensions."""
        for state in self._states(recurse):
            state.group.reduce_across = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are dropped between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}"
            )
        for state in self._states(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether whole parameters are dropped after backward."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether this module's backward needs its parameters; that of an embedding does not."""
        self._state().unshard_in_backward = unshard_in_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Begin to gather these modules' parameters just before this one's forward."""
        self._state().forward_prefetch = _states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Begin to gather these modules' parameters just before this one's backward.

        By default, on a GPU, it is the module that ran before this one.
        """
        self._state().backward_prefetch = _states_of(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sums of gradients by a number in place of the number of processes."""
        self._state().group.divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor


def _states_of(modules: list[FSDPModule]) -> list[State]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"expected modules that fully_shard has cut, not {type(module)}")
    return [module._state() for module in modules]


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method of a cut module gather its parameters, as `forward` does; nothing for others.

    AttributeError if there is no such method.
    """
    if not hasattr(module, method_name):
        raise AttributeError(f"{type(module)} does not have a method {method_name}")
    state = state_of(module)
    if state is not None:
        module.__dict__[method_name] = around(state, getattr(module, method_name))
