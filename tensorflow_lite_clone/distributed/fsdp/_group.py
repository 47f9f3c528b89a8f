"""The parameters of one module, cut over processes: gathered, given up, gradients reduced."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.distributed.collectives import (
    all_gather_into_tensor,
    all_reduce,
    reduce_scatter_tensor,
)
from tensorflow_lite_clone.distributed.fsdp._shards import Cut, Sharded, ShardedParameter
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.replicas import first_different
from tensorflow_lite_clone.distributed.tensor._dtensor import LocalParameter
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.shape.memory import contiguous_format
from tensorflow_lite_clone.storage import ReleasableStorage
from tensorflow_lite_clone.tensor import Parameter, Tensor, new_tensor


@dataclass
class Options:
    """How a module's parameters are cut and calculated with.

    `shard_group`: the processes that share each parameter. `replicate_group`: those that have the
    same rows, in several groups that each share all. None stands for this process alone.
    """

    shard_group: ProcessGroup | None
    replicate_group: ProcessGroup | None
    device: Device
    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_inputs: bool = True
    offload: bool = False
    pin_memory: bool = False


class Streams:
    """Where a model's gathers and reductions run: on a GPU beside the calculation."""

    def __init__(self, device: Device) -> None:
        self.apart = device.type == "cuda"
        self._gather = cuda.Stream(device) if self.apart else None
        self._reduce = cuda.Stream(device) if self.apart else None
        self._reducing: tuple[Any, Tensor] | None = None

    def begin(self) -> None:
        """Let gathers wait for what has written the parameters so far."""
        if self._gather is not None:
            self._gather.wait_stream(cuda.current_stream())

    def gathering(self) -> AbstractContextManager:
        """Within, work is queued for gathers, which wait for no calculation."""
        return cuda.stream(self._gather) if self.apart else nullcontext()

    def gathered(self) -> None:
        """What gathers were given is used no more once the work queued so far is done."""
        if self._gather is not None:
            self._gather.wait_stream(cuda.current_stream())

    def reducing(self) -> AbstractContextManager:
        """Within, work is queued for a reduction, after what is queued so far."""
        if self._reduce is None:
            return nullcontext()
        self.finish_reduction()
        self._reduce.wait_stream(cuda.current_stream())
        return cuda.stream(self._reduce)

    def reduced(self, given: Tensor) -> None:
        """A reduction has been queued that reads `given`, which is kept until then."""
        if self._reduce is not None:
            self._reducing = self._reduce.record_event(), given

    def finish_reduction(self) -> None:
        """Let the calculation wait for the last reduction."""
        if self._reducing is not None:
            cuda.current_stream().wait_event(self._reducing[0])
            self._reducing = None

    def join(self) -> None:
        """Let the calculation wait for all that is queued."""
        self.finish_reduction()
        if self._gather is not None and self._reduce is not None:
            cuda.current_stream().wait_stream(self._gather)
            cuda.current_stream().wait_stream(self._reduce)


class Managed:
    """One parameter: this process's rows, and at times the whole."""

    def __init__(
        self, name: str, parameter: Parameter, places: list[tuple[Module, str]], options: Options
    ) -> None:
        self.name = name
        self.places = places
        within = parameter._spec if isinstance(parameter, LocalParameter) else None
        cut = Cut(tuple(parameter.shape), options.shard_group, within)
        with no_grad():
            part = cut.part_of(parameter.detach())
            part = part.to("cpu" if options.offload else options.device)
            if cut.group is not None:
                part = part.clone(memory_format=contiguous_format)  # or the whole would stay alive
            if options.pin_memory and part.numel():
                part = part.pin_memory()
        shard = ShardedParameter.over(part, cut)
        self.cut = cut
        shard.requires_grad_(parameter.requires_grad)
        self.rows = shard
        self.whole: Parameter | None = None
        self._kind: tuple[Any, ...] = ()  # the dtype and device of the whole
        self.install(shard)

    def install(self, parameter: Tensor) -> None:
        """Let the modules have a parameter in this one's place."""
        for module, name in self.places:
            module._parameters[name] = parameter

    def look(self) -> ShardedParameter:
        """The rows, or what was put in their place: by ``load_state_dict(assign=True)``, say."""
        module, name = self.places[0]
        present = module._parameters[name]
        if present is self.whole or present is self.rows:
            return self.rows
        if tuple(present.shape) != self.cut.local_shape:
            raise RuntimeError(
                f"{self.name}: a parameter of shape {tuple(present.shape)} was put where there are "
                f"rows of shape {self.cut.local_shape}"
            )
        self.rows = ShardedParameter.over(present, self.cut)
        self.rows.requires_grad_(present.requires_grad)
        self.install(self.rows)
        return self.rows

    def fill(self, value: Tensor, arrived: Any) -> None:
        """Put the whole parameter in place; `arrived` is called when its gradient is complete."""
        whole, kind = self.whole, (value.dtype, value.device)
        if whole is not None and kind == self._kind:
            storage: Any = whole._storage
            storage.restore(value._storage.array)
        else:
            storage = ReleasableStorage(value._storage.array, value._storage.backend)
            self.whole = whole = Parameter(new_tensor(storage), requires_grad=False)
            self._kind = kind
        whole.requires_grad_(self.rows.requires_grad)
        if self.rows.requires_grad and not whole._post_accumulate_hooks:
            whole.register_post_accumulate_grad_hook(arrived)
        self.install(whole)

    def empty(self) -> None:
        """Put the rows back in place, and drop the whole."""
        assert self.whole is not None
        storage: Any = self.whole._storage
        storage.release(
            f"the parameter {self.name} is cut over processes, and is whole only while its module "
            "calculates: unshard() gathers it"
        )
        self.install(self.rows)


class ParameterGroup:
    """The parameters that one module gathers, and whose gradients it reduces, together."""

    def __init__(self, members: list[Managed], options: Options) -> None:
        self.members = members
        self.options = options
        self.size = 1 if options.shard_group is None else options.shard_group.size()
        self.divisor: float | None = None
        self.reduce_across = True  # the groups that each have all parameters
        self.arrived: Any = None  # called when the gradient of a whole parameter is complete
        self.is_whole = False
        self._under_way: list[tuple[list[Managed], Tensor, Any]] | None = None
        self._versions: list[tuple[Any, int]] | None = None

    # -- gathering ----------------------------------------------------------------------------

    def start_gather(self, streams: Streams) -> None:
        """Begin to gather, unless that was done."""
        versions = [(m.look()._storage, m.rows._version) for m in self.members]
        if self.is_whole and versions != self._versions:
            self.release()  # the optimizer has changed the rows
        if self.is_whole or self._under_way is not None:
            return
        if self._versions not in (None, versions):
            for member in self.members:
                if member.whole is not None:
                    member.whole._storage.version += 1  # a graph that saved it must not go on
        self._versions = versions
        if self.options.shard_group is None:
            self._under_way = []
            return
        with no_grad(), streams.gathering():
            self._under_way = [self._ask(dtype, part) for dtype, part in self._by_dtype().items()]

    def _by_dtype(self) -> dict[DType, list[Managed]]:
        found: dict[DType, list[Managed]] = {}
        for member in self.members:
            found.setdefault(self._dtype(member), []).append(member)
        return found

    def _dtype(self, member: Managed) -> DType:
        dtype = member.rows.dtype
        return (self.options.param_dtype or dtype) if dtype.is_floating_point else dtype

    def _ask(self, dtype: DType, members: list[Managed]) -> tuple[list[Managed], Tensor, Any]:
        device = self.options.device
        room = sum([member.cut.room for member in members])
        first = members[0].rows
        line = first.new_empty(room, dtype=dtype, device=device)
        place = 0
        for member in members:
            part = member.rows.to_local()
            line[place : place + part.numel()].copy_(part.view(-1), non_blocking=True)
            if part.numel() < member.cut.room:
                line[place + part.numel() : place + member.cut.room].zero_()
            place += member.cut.room
        whole = line.new_empty(self.size * room)
        work = all_gather_into_tensor(whole, line, self.options.shard_group, async_op=True)
        return members, whole, work

    def finish_gather(self, streams: Streams) -> None:
        """Let the modules have whole parameters."""
        if self._under_way is None:
            return
        with no_grad():
            if self.options.shard_group is None:
                for member in self.members:
                    value = member.rows.to_local()
                    member.fill(value.to(self.options.device, self._dtype(member)), self._note)
            for members, gathered, work in self._under_way:
                work.wait()
                lines = gathered.view(self.size, -1)
                place = 0
                for member in members:
                    self._copy_out(member, lines[:, place : place + member.cut.room])
                    place += member.cut.room
        self._under_way = None
        self.is_whole = True
        streams.gathered()

    def _copy_out(self, member: Managed, lines: Tensor) -> None:
        value = lines.new_empty(self.size * member.cut.room)
        value.view(self.size, -1).copy_(lines)
        member.fill(value[: member.cut.numel].view(member.cut.shape), self._note)

    def _note(self, whole: Tensor) -> None:
        self.arrived()

    def release(self) -> None:
        """Drop the whole parameters."""
        if self._under_way is not None:
            for _, _, work in self._under_way:
                work.wait()
            self._under_way = None
        if self.is_whole:
            self.is_whole = False
            for member in self.members:
                member.empty()

    # -- gradients ----------------------------------------------------------------------------

    def reduce(self, streams: Streams) -> None:
        """Add the means of the gradients that there are to the gradients of the rows."""
        ready: dict[DType, list[Managed]] = {}
        for member in self.members:
            if member.whole is not None and member.whole._grad is not None:
                ready.setdefault(member.whole._grad.dtype, []).append(member)
        for dtype, members in ready.items():
            with no_grad():
                given = self._packed(members, self.options.reduce_dtype or dtype)
                with streams.reducing():
                    reduced = self._reduced(given)
                    streams.reduced(given)
                    self._hand_over(members, reduced)

    def _packed(self, members: list[Managed], dtype: DType) -> Tensor:
        """The gradients in the order in which they are reduced, a line for each process."""
        room = sum([member.cut.room for member in members])
        first: Any = members[0].whole
        given = first.grad.new_empty((self.size, room), dtype=dtype)
        place = 0
        for member in members:
            whole: Any = member.whole
            cut, line = member.cut, whole.grad.reshape(-1)
            padding = self.size * cut.room - cut.numel
            if padding:
                padded = line.new_zeros(cut.numel + padding)
                padded[: cut.numel].copy_(line)
                line = padded
            given[:, place : place + cut.room].copy_(line.view(self.size, -1))
            whole.grad = None
            place += cut.room
        return given

    def _reduced(self, given: Tensor) -> Tensor:
        op = ReduceOp.AVG if self.divisor is None else ReduceOp.SUM
        group, others = self.options.shard_group, self.options.replicate_group
        reduced = given.view(-1)
        if group is not None:
            reduced = given.new_empty(given.shape[1])
            reduce_scatter_tensor(reduced, given.view(-1), op, group)
        if others is not None and self.reduce_across:
            all_reduce(reduced, op, others)
        if self.divisor is not None:
            reduced.div_(self.divisor)
        return reduced

    def _hand_over(self, members: list[Managed], reduced: Tensor) -> None:
        place = 0
        for member in members:
            shard = member.rows
            part = reduced[place : place + shard.numel()].view(shard.shape)
            part = part.to(shard.device, shard.dtype)
            if shard.grad is None:
                shard.grad = Sharded.over(part, member.cut)
            else:
                shard.grad.add_(part)
            for hook in list((shard._post_accumulate_hooks or {}).values()):
                hook(shard)
            place += member.cut.room


def expect_same(members: Iterable[tuple[str, Parameter]], group: ProcessGroup | None) -> None:
    """RuntimeError naming ranks whose parameters have other names, shapes or dtypes."""
    if group is None:
        return
    own = [f"{name}: {tuple(p.shape)} of {p.dtype}" for name, p in members]
    if (different := first_different(group, own)) is not None:
        first, rank, other = different
        here, there = _first_difference(first, other)
        raise RuntimeError(
            f"a module to be cut must be the same on all ranks, but has {here} on rank "
            f"{group.ranks[0]} and {there} on rank {group.ranks[rank]}"
        )


def _first_difference(first: list[str], second: list[str]) -> tuple[str, str]:
    for a, b in zip(first, second):
        if a != b:
            return a, b
    return f"{len(first)} parameters", f"{len(second)} parameters"
