"""`FullyShardedDataParallel`: a wrapper around a module whose parameters are cut over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.distributed.collectives import broadcast
from tensorflow_lite_clone.distributed.fsdp._fully_shard import (
    default_group,
    device_for,
    group_of_members,
    several,
)
from tensorflow_lite_clone.distributed.fsdp._group import Managed, Options
from tensorflow_lite_clone.distributed.fsdp._schedule import attach, state_of
from tensorflow_lite_clone.distributed.fsdp._shards import Sharded
from tensorflow_lite_clone.distributed.fsdp._state_dicts import (
    adopt_rows,
    load_rows,
    members_below,
    optimizer_rows,
    optimizer_state,
    with_key_type,
    write_back,
)
from tensorflow_lite_clone.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from tensorflow_lite_clone.distributed.fsdp.wrap import wrap_children
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils import clip_grad_norm_
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.tensor import Parameter, Tensor

__all__ = [
    "FullyShardedDataParallel",
    "OptimStateKeyType",
    "ShardingStrategy",
    "StateDictType",
]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
_PREFIX = FSDP_WRAPPED_MODULE + "."
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_KEPT_WHOLE = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(Module):
    """A module of which each process keeps a part: the older interface of `fully_shard`.

    The parameters of `module` that no wrapped module inside has are one group: see `fully_shard`.
    Each stays a parameter of its own, whatever `use_orig_params` says.

    Args:
        process_group: the processes; for hybrid strategies the pair of the group that shares
            parameters and the one that averages gradients besides.
        sharding_strategy: FULL_SHARD (default); SHARD_GRAD_OP keeps whole parameters between
            forward and backward; NO_SHARD cuts nothing; HYBRID_SHARD cuts within the first group.
        auto_wrap_policy: which modules inside are wrapped first; see `fsdp.wrap`.
        backward_prefetch: None gathers a module's parameters when backward comes to it; otherwise
            those of the next one are gathered meanwhile, on a GPU.
        ignored_states: parameters, or modules whose parameters, are left as they are; so are those
            of `ignored_modules`.
        sync_module_states: let all start with the parameters and buffers of the group's first.

    Raises:
        ValueError: a hybrid strategy without two groups, and as `fully_shard`.
        NotImplementedError: `param_init_fn` (no tensors without memory here),
            `keep_low_precision_grads`.
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: int | Device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        if param_init_fn is not None:
            raise NotImplementedError("param_init_fn: there are no tensors without memory here")
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        precision = mixed_precision or MixedPrecision()
        if precision.keep_low_precision_grads:
            raise NotImplementedError("keep_low_precision_grads: gradients have the rows' dtype")
        shard_group, replicate_group = _groups(process_group, device_mesh, strategy)
        group = shard_group or replicate_group
        ignored, parameters = _ignored(ignored_modules, ignored_states)
        if sync_module_states:
            _synchronize(module, group, parameters)
        if auto_wrap_policy is not None:
            options = {
                "process_group": process_group,
                "sharding_strategy": strategy,
                "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision,
                "device_id": device_id,
                "forward_prefetch": forward_prefetch,
                "limit_all_gathers": limit_all_gathers,
                "use_orig_params": use_orig_params,
                "ignored_states": parameters,
                "device_mesh": device_mesh,
            }
            wrap_children(module, auto_wrap_policy, FullyShardedDataParallel, ignored, options)
        device = _device(device_id) if device_id is not None else device_for(group)
        offload = cpu_offload is not None and cpu_offload.offload_params
        made = Options(
            shard_group=several(shard_group),
            replicate_group=several(replicate_group),
            device=device,
            param_dtype=precision.param_dtype,
            reduce_dtype=precision.reduce_dtype,
            cast_inputs=precision.cast_forward_inputs,
            offload=offload,
            pin_memory=offload and device.type == "cuda",
        )
        self._fsdp_wrapped_module = module
        self.process_group = group
        self.sharding_strategy = strategy
        self._settings = StateDictSettings()
        state = attach(self, group_of_members(module, parameters, made))
        state.cast_root_inputs = precision.cast_root_forward_inputs
        if strategy in _KEPT_WHOLE:
            state.reshard_after_forward = False
        if backward_prefetch is None:
            state.backward_prefetch = []
        if precision.buffer_dtype is not None:
            _cast_buffers(module, precision.buffer_dtype)
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)
        self.register_load_state_dict_post_hook(adopt_rows)

    @property
    def module(self) -> Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name != FSDP_WRAPPED_MODULE and FSDP_WRAPPED_MODULE in self.__dict__.get("_modules", ()):
            return getattr(self._fsdp_wrapped_module, name)
        return super().__getattr__(name)

    def __getitem__(self, key: Any) -> Any:
        return self._fsdp_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """The parameters, with the names that they have without wrappers."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """The buffers, with the names that they have without wrappers."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(_PREFIX, ""), buffer

    def check_is_root(self) -> bool:
        """Whether this is the outermost wrapper."""
        state = state_of(self)
        assert state is not None
        return (state.root or state._become_root()).state is state

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a model; `root_only`: those that are in no other."""
        found = [part for part in module.modules() if isinstance(part, FullyShardedDataParallel)]
        if root_only:
            inner = {id(m) for part in found for m in part.modules() if m is not part}
            found = [part for part in found if id(part) not in inner]
        return found

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """Call `fn` on every module, with whole parameters; what it changes is kept."""
        with self.summon_full_params(self):
            return super().apply(fn)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager: backward passes add up whole gradients and reduce nothing."""
        states = [state_of(part) for part in self.fsdp_modules(self)]
        before = [state.sync for state in states if state is not None]
        for state in states:
            state.sync = False  # type: ignore[union-attr]
        try:
            yield
        finally:
            for state, sync in zip(states, before, strict=True):
                state.sync = sync  # type: ignore[union-attr]

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm over all processes is at most `max_norm`.

        Returns the norm before.
        """
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """NotImplementedError: gradients are reduced by the group."""
        raise NotImplementedError("communication hooks of FullyShardedDataParallel")

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Context manager: parameters are whole; with `writeback` what was changed is kept.

        With `rank0_only` they are whole on the group's first process alone.
        """
        if writeback and rank0_only:
            raise NotImplementedError("writeback with rank0_only: what would the others write?")
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        members: list[Managed] = []
        for wrapper in wrappers if recurse else wrappers[:1]:
            state = state_of(wrapper)
            assert state is not None
            state.group.release()
            members += state.group.members
        with ExitStack() as stack:
            for member in members:
                summoned = _summoned(member, writeback, rank0_only, offload_to_cpu, with_grads)
                stack.enter_context(summoned)
            yield

    # -- state dicts --------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Set what state dicts of a model hold; returns what was set before.

        RuntimeError for configurations of another type.
        """
        kinds = _CONFIGS[state_dict_type]
        for given, kind in zip((state_dict_config, optim_state_dict_config), kinds, strict=True):
            if given is not None and type(given) is not kind:
                raise RuntimeError(
                    f"Expected state_dict_config of type {kind} but got {type(given)}"
                )
        settings = StateDictSettings(
            state_dict_type, state_dict_config or kinds[0](), optim_state_dict_config or kinds[1]()
        )
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for wrapper in FullyShardedDataParallel.fsdp_modules(module):
            wrapper._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What state dicts of a model hold."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        return wrappers[0]._settings if wrappers else StateDictSettings()

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """Context manager: `set_state_dict_type` within."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for wrapper in FullyShardedDataParallel.fsdp_modules(module):
                wrapper._settings = before

    @staticmethod
    def optim_state_dict(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any] | None = None,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """The optimizer's state by parameter names, of the type that `state_dict_type` says."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        keep = not (getattr(config, "rank0_only", False) and _rank(model))
        return optimizer_state(_names(model), optim, full, config.offload_to_cpu, keep)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """What the optimizer's `load_state_dict` takes, from what `optim_state_dict` gave."""
        if is_named_optimizer:
            raise NotImplementedError("is_named_optimizer: optimizers here number parameters")
        found = optimizer_rows(_names(model), optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: Module,
        optim: Optimizer,
        optim_input: Any = None,
        rank0_only: bool = True,
        group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """The optimizer's state in whole tensors on the CPU; elsewhere empty with `rank0_only`."""
        return optimizer_state(_names(model), optim, True, True, not (rank0_only and _rank(model)))

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Module,
        optim_input: Any = None,
        optim: Optimizer | None = None,
    ) -> dict[str, Any]:
        """An optimizer's state with its parameters by name, or by number, as it is said."""
        found = list((optim.param_groups if optim else optim_input) or model.parameters())
        if isinstance(found[0], dict):
            found = [parameter for group in found for parameter in group["params"]]
        return with_key_type(_names(model), optim_state_dict, optim_state_key_type, found)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any],
        model: Module,
        optim_input: Any = None,
        optim: Optimizer | None = None,
    ) -> dict[str, Any]:
        """What this process's optimizer loads, from the whole state."""
        return optimizer_rows(_names(model), optim, full_optim_state_dict)


@contextmanager
def _summoned(
    member: Managed, writeback: bool, rank0_only: bool, to_cpu: bool, with_grads: bool
) -> Iterator[None]:
    shard, cut = member.rows, member.cut
    value = cut.gathered(shard)
    gradient = cut.gathered(shard.grad) if with_grads and shard.grad is not None else None
    whole = Parameter(value.cpu() if to_cpu else value, shard.requires_grad)
    if gradient is not None:
        whole.grad = gradient.to(whole.device)
    first = cut.group is None or cut.group.rank() == 0
    if first or not rank0_only:
        member.install(whole)
    try:
        yield
    finally:
        member.install(shard)
        if writeback:
            write_back(member, whole)
            if whole.grad is not None:
                shard.grad = Sharded.over(cut.part_of(whole.grad).to(shard.device).clone(), cut)


def _groups(given: Any, mesh: Any, strategy: ShardingStrategy) -> tuple[ProcessGroup | None, Any]:
    """The group that shares parameters and the one that averages gradients besides."""
    if mesh is not None:
        given = mesh.get_group(0) if mesh.ndim == 1 else (mesh.get_group(1), mesh.get_group(0))
    if strategy in _HYBRID:
        if not isinstance(given, tuple) or len(given) != 2:
            raise ValueError(
                "a hybrid strategy needs a pair of groups as process_group: the one that shares "
                "parameters and the one that averages gradients; or a device_mesh of two dimensions"
            )
        return given
    if isinstance(given, tuple):
        raise ValueError(f"{strategy} needs one process_group, not {len(given)}")
    group = given or default_group()
    return (None, group) if strategy is ShardingStrategy.NO_SHARD else (group, None)


def _ignored(modules: Any, states: Any) -> tuple[set[Module], set[Any]]:
    """The modules and the parameters that are left as they are."""
    if modules is not None and states is not None:
        raise ValueError("ignored_modules is a part of ignored_states: give only one")
    given = list(modules or states or ())
    ignored = {m for value in given if isinstance(value, Module) for m in value.modules()}
    parameters = {p for module in ignored for p in module.parameters(recurse=False)}
    return ignored, parameters | {value for value in given if isinstance(value, Parameter)}


def _device(given: Any) -> Device:
    return Device("cuda", given) if isinstance(given, int) else Device(given)


def _synchronize(module: Module, group: ProcessGroup, ignored: set[Any]) -> None:
    for tensor in (*module.parameters(), *module.buffers()):
        if not isinstance(tensor, Sharded) and tensor not in ignored:
            broadcast(tensor.detach(), group=group, group_src=0)


def _cast_buffers(module: Module, dtype: Any) -> None:
    for part in module.modules():
        for name, value in part._buffers.items():
            if value is not None and value.is_floating_point():
                part._buffers[name] = value.to(dtype)


def _names(model: Module) -> dict[int, str]:
    """The parameters' names without wrappers, by id."""
    return {id(p): name.replace(_PREFIX, "") for name, p in model.named_parameters()}


def _rank(model: Module) -> int:
    members = list(members_below(model))
    group = members[0].cut.group if members else None
    return 0 if group is None else group.rank()


def _without_prefix(module: Any, state_dict: Any, prefix: str, metadata: dict) -> None:
    """After a wrapper's state is collected: its name is left out, and rows become what is set."""
    settings = module._settings
    config = settings.state_dict_config
    full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
    keep = not (getattr(config, "rank0_only", False) and module.process_group.rank())
    start = prefix + _PREFIX
    for key in [key for key in state_dict if key.startswith(start)]:
        value = state_dict.pop(key)
        if isinstance(value, Sharded):
            if full:
                value = value.full_tensor()
            elif settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
                value = value.to_local()
        if isinstance(value, Tensor) and config.offload_to_cpu:
            value = _on_cpu(value)
        if keep:
            state_dict[prefix + key.removeprefix(start)] = value


def _on_cpu(value: Tensor) -> Tensor:
    moved = value.cpu()
    return Sharded.over(moved, value.cut) if isinstance(value, Sharded) else moved


def _with_prefix(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    """Before a wrapper's state is loaded: `_without_prefix` backwards."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        if not key.startswith(prefix + _PREFIX):
            state_dict[prefix + _PREFIX + key.removeprefix(prefix)] = state_dict.pop(key)
    load_rows(module, state_dict, prefix, *rest)
