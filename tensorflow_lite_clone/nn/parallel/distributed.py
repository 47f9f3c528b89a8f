"""`DistributedDataParallel`: the same model in each process of a group, each with its batches."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.distributed_c10d import _get_default_group
from tensorflow_lite_clone.distributed.grad_bucket import GradBucket
from tensorflow_lite_clone.distributed.reducer import Reducer
from tensorflow_lite_clone.distributed.replicas import (
    Coalesced,
    broadcast_coalesced,
    expect_same_parameters,
    expect_same_values,
    sync_module_states,
)
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.sparse import Embedding, EmbeddingBag
from tensorflow_lite_clone.nn.parallel._containers import moved, tensors_in
from tensorflow_lite_clone.nn.parameter import is_lazy
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["DistributedDataParallel"]

_MIB = 2**20
_FIRST_BUCKET, _BUCKET = 1.0, 25.0  # MiB: the first one is small, so that reductions begin early
_IGNORED = "_ddp_params_and_buffers_to_ignore"  # an attribute of modules: names


class DistributedDataParallel(Module, Joinable):
    """`module`, whose gradients are averaged over the processes of a group.

    Each process makes one of the same module, which gets the parameters and buffers of rank 0, and
    calls it with batches of its own. After a backward pass all have the same gradients: those of
    the mean of their losses. Gradients are reduced in buckets of `bucket_cap_mb` MiB (25; the
    first of 1) while the backward pass goes on. Source: Li et al., "PyTorch Distributed:
    Experiences on Accelerating Data Parallel Training" (2020).

    * `device_ids`: the one device on which the module is, to which inputs are then moved.
    * `init_sync` False: the parameters are not made equal, and must be.
    * `forward_sync_buffers` (or `broadcast_buffers`): whether each forward pass begins with the
      buffers of rank 0; by default it does.
    * `find_unused_parameters`: parameters that are not in the graph of what ``forward`` returned
      in some process are not waited for. One that no process used keeps its gradient as it is.
    * `gradient_as_bucket_view`: gradients are views of the buckets, which saves copies and memory.
    * `static_graph`: the first iteration shows which parameters are used and how often their
      gradients come, and all others are the same.
    * `bucket_cap_mb_list`: sizes of the first buckets; the last one is that of all others.

    Raises RuntimeError for a module without a parameter that requires a gradient and, in every
    process, where two processes have different parameters; ValueError without a process group.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | Device] | None = None,
        output_device: int | Device | None = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        for name, given in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
            ("mixed_precision", mixed_precision),
        ):
            if given is not None:
                raise NotImplementedError(f"DistributedDataParallel has no {name}")
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group = process_group or _get_default_group()
        self.parameters_to_ignore = set(getattr(module, _IGNORED, ()))
        parameters = self._reduced(module)
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.device_ids, self.output_device = _devices(parameters, device_ids, output_device)
        if any([is_lazy(parameter) for _, parameter in parameters]):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with "
                "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
                "modules"
            )
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is "
                "deprecated. Please avoid using it.",
                FutureWarning,
                stacklevel=level_outside(),
            )
        if static_graph and find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, which says "
                "nothing with static_graph=True: the first iteration shows what is not used.",
                stacklevel=level_outside(),
            )
        self.module = module
        self.dim = dim
        self.device = parameters[0][1].device
        self.device_type = self.device.type
        self.static_graph = static_graph
        self.find_unused_parameters = find_unused_parameters
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.batched_grad_copy = batched_grad_copy
        self.forward_sync_buffers = _syncs_buffers(broadcast_buffers, forward_sync_buffers)
        self.require_backward_grad_sync = True
        self._coalesced: Coalesced | None = None  # made when they are first sent
        self._bucket_limits = _bucket_limits(bucket_cap_mb, bucket_cap_mb_list)
        named = [(n, p) for n, p in module.named_parameters() if not self._is_ignored(n)]
        expect_same_parameters(self.process_group, named)
        if init_sync:
            if broadcast_buffers is False and forward_sync_buffers is None:
                broadcast_coalesced(self.process_group, [p for _, p in named])
            else:
                sync_module_states(self.process_group, module, ignored=self._is_ignored)
        else:
            expect_same_values(self.process_group, named)
        self._make_reducer(parameters)

    def _is_ignored(self, name: str) -> bool:
        return name in self.parameters_to_ignore

    def _reduced(self, module: Module) -> list[tuple[str, Tensor]]:
        """The parameters whose gradients are averaged, with their names."""
        found: list[tuple[str, Tensor]] = [
            (name, parameter)
            for name, parameter in module.named_parameters()
            if parameter.requires_grad and not self._is_ignored(name)
        ]
        if not found:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        return found

    def _with_sparse(self) -> set[int]:
        """The tables, by identity, of embeddings that give sparse gradients."""
        return {
            id(module.weight)
            for module in self.module.modules()
            if isinstance(module, (Embedding, EmbeddingBag)) and module.sparse
        }

    def _make_reducer(self, parameters: list[tuple[str, Tensor]]) -> None:
        self.reducer = Reducer(
            [parameter for _, parameter in parameters],
            [name for name, _ in parameters],
            self.process_group,
            self._bucket_limits,
            find_unused_parameters=self.find_unused_parameters,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
            static_graph=self.static_graph,
            sparse=[
                place for place, (_, p) in enumerate(parameters) if id(p) in self._with_sparse()
            ],
        )
        self.reducer.syncs_buffers = self.forward_sync_buffers

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        del state["process_group"], state["reducer"], state["_coalesced"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = _get_default_group()
        super().__setstate__(state)
        self.require_backward_grad_sync = True
        self._coalesced = None
        self._make_reducer(self._reduced(self.module))

    # -- a step -------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._forward(self.module, *inputs, **kwargs)

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`forward` with `call`, a captured form of the module, in the place of the module.

        For `compile`: what happens here besides is for every call, and must not be captured.
        """
        return partial(self._forward, call)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the module's `forward` in place; what is done here runs at each call."""
        self.module.compile(*args, **kwargs)

    def _forward(self, call: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
        work = Join.notify_join_context(self)
        if work is not None and not self._divide_by_initial_world_size:
            self.reducer.active = _Count(work)
        if self.reducer.syncs_buffers:
            self._sync_buffers()
        if self._join_config.enable:
            self._agree_on_reduction(self.require_backward_grad_sync)
        if self.device_ids:
            inputs, kwargs = moved((inputs, kwargs), self.device)
        outputs = call(*inputs, **kwargs)
        reduces = mode.grad and self.require_backward_grad_sync
        self.reducer.syncs_buffers = reduces and self.forward_sync_buffers
        if reduces:
            self.reducer.prepare(tensors_in(outputs))
        return outputs

    def _sync_buffers(self, has_batch: bool = True) -> None:
        """Take the buffers of rank 0, or inside `join` of the last process that has a batch."""
        named = self.module.named_buffers()
        buffers = [buffer for name, buffer in named if not self._is_ignored(name)]
        if not buffers:
            return
        source = self._last_of(has_batch) if self._join_config.enable else 0
        if self._coalesced is None or not self._coalesced.is_of(buffers):
            self._coalesced = Coalesced(buffers)
        self._coalesced.broadcast(self.process_group, source)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of forward passes within it are not averaged, but summed up for later."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let ``hook(state, bucket)`` reduce each bucket, instead of the average over processes.

        It returns a Future of a tensor like the bucket's buffer, which is done with whatever
        averaging is wanted. Raises TypeError for what cannot be called, ValueError for annotations
        that say something else, RuntimeError for a second hook.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        found = inspect.signature(hook)
        bucket = found.parameters.get("bucket")
        if bucket is not None and not _means(bucket.annotation, GradBucket, "GradBucket"):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if not _means(found.return_annotation, Future[Tensor], "Future"):
            raise ValueError(
                "Communication hook: return annotation should be "
                "torch.futures.Future[torch.Tensor]."
            )
        if self.reducer.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self.reducer.hook = partial(hook, state)

    def _set_static_graph(self) -> None:
        """The older form of ``static_graph=True``, before the first iteration."""
        self.static_graph = True
        self._make_reducer(self._reduced(self.module))

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Settings that PyTorch logs, and lightning reads; nothing is measured."""
        return {
            "module_name": type(self.module).__name__,
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "find_unused_parameters": int(self.find_unused_parameters),
        }

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, names: Sequence[str]) -> None:
        """Before a module is wrapped: leave parameters and buffers of these names alone."""
        setattr(module, _IGNORED, names)

    # -- batches of unequal number ------------------------------------------------------------

    _divide_by_initial_world_size = True

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Context within which processes may have numbers of batches that differ.

        Gradients are divided by the number of all processes, or of those that have a batch left.
        For the other arguments see `Join`.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What this process does for the others when it has no batches left."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return _DDPJoinHook(self)

    @property
    def join_device(self) -> Device:
        """The device of the first parameter."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group over which gradients are averaged."""
        return self.process_group

    def _agree_on_reduction(self, enabled: bool) -> Tensor:
        """Whether the backward pass reduces: processes with batches say it to the others."""
        says = tensor([float(enabled)], device=self.device)
        all_reduce(says, group=self.process_group)
        return says

    def _last_of(self, is_local: bool) -> int:
        """The last process of the group that calls this with True."""
        rank = tensor([self.process_group.rank() if is_local else -1], device=self.device)
        all_reduce(rank, ReduceOp.MAX, group=self.process_group)
        return int(rank.item())


class _DDPJoinHook(JoinHook):
    """Shadows the communications of a `DistributedDataParallel`."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self._model = model

    def main_hook(self) -> None:
        """Take part in the communications of a forward and a backward pass."""
        model = self._model
        model.reducer.active = None
        if model.reducer.syncs_buffers:
            model._sync_buffers(has_batch=False)
        reduces = bool(model._agree_on_reduction(False).item())
        model.reducer.syncs_buffers = reduces and model.forward_sync_buffers
        if reduces:
            model.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the parameters and buffers of a process that had the last batch."""
        model = self._model
        model.reducer.active = None
        source = model._last_of(is_last_joiner)
        sync_module_states(model.process_group, model.module, source, ignored=model._is_ignored)


class _Count:
    """The number of processes that have a batch, when the communication about it is over."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self._count: int | None = None

    def __call__(self) -> int:
        if self._count is None:
            self._work.wait()
            self._count = int(self._work.result()[0].item())
        return self._count


def _devices(
    parameters: list[tuple[str, Tensor]], device_ids: Any, output_device: Any
) -> tuple[list[int] | None, int | None]:
    """The indices of the device that inputs go to, and of that of the outputs.

    Raises ValueError where the module is of several types of devices, or an index is given and the
    module is not on one GPU.
    """
    devices = {parameter.device for _, parameter in parameters}
    types = {device.type for device in devices}
    if len(types) > 1:
        raise ValueError(
            "DistributedDataParallel's input module must be on the same type of devices, but "
            f"input module parameters locate in {types}."
        )
    if device_ids and "cpu" not in types and len(devices) == 1:
        index = _index(device_ids[0])
        return [index], index if output_device is None else _index(output_device)
    if device_ids or output_device:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {devices}."
        )
    return None, None


def _index(device: int | str | Device) -> int:
    index = device if isinstance(device, int) else Device(device).index
    return index or 0


def _syncs_buffers(broadcast_buffers: bool | None, forward_sync_buffers: bool | None) -> bool:
    if broadcast_buffers is None:
        return forward_sync_buffers is not False
    if forward_sync_buffers is not None:
        text = (
            "Both `broadcast_buffers` and `forward_sync_buffers` were specified. "
            "`broadcast_buffers` is deprecated and its value is ignored when "
            "`forward_sync_buffers` is provided."
        )
    else:
        text = (
            "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead, which says "
            "nothing about the beginning: there buffers are made equal all the same."
        )
    warnings.warn(text, FutureWarning, stacklevel=level_outside())
    return broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers


def _bucket_limits(most: float | None, first: list[int] | None) -> list[float]:
    """The sizes of buckets in bytes; the last one is that of all further buckets."""
    if first:
        sizes: Sequence[float] = first
    else:
        sizes = [_FIRST_BUCKET, _BUCKET] if most is None else [most]
    return [size * _MIB for size in sizes]


def _means(annotation: Any, kind: Any, name: str) -> bool:
    """Whether an annotation, if there is one, is a type, or text that names it."""
    if isinstance(annotation, str):
        return name in annotation
    return annotation in (inspect.Parameter.empty, kind)
