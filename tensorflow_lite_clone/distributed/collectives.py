"""Communication within a group, as functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.distributed_c10d import (
    _get_default_group,
    get_group_rank,
    group_of,
)
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.work import ReduceOp, Work
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


def expect_tensor(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _expect_tensors(name: str, values: Any) -> None:
    if not isinstance(values, list) or not all(isinstance(value, Tensor) for value in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )


def _expect_dtype(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if tensor.dtype is not tensors[0].dtype:
            raise ValueError(
                "Invalid usage of tensors with different dtypes: found "
                f"{tensors[0].dtype} and {tensor.dtype}"
            )


def _expect_length(what: str, tensors: Sequence[Tensor], size: int) -> None:
    if len(tensors) != size:
        raise RuntimeError(
            f"ProcessGroup::{what}: invalid tensor list (expected length {size}, got "
            f"{len(tensors)})"
        )


def _expect_like(what: str, tensors: Sequence[Tensor], like: Tensor, size: int) -> None:
    _expect_length(what, tensors, size)
    _expect_dtype([like, *tensors])
    for index, tensor in enumerate(tensors):
        if tensor.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroup::{what}: invalid tensor size at index {index} (expected "
                f"{tuple(like.shape)}, got {tuple(tensor.shape)})"
            )


def expect_root(rank: int | None, group_rank: int | None) -> None:
    """ValueError where neither names a process."""
    if rank is None and group_rank is None:
        raise ValueError("Must specify the rank of a process in the world or in the group")


def root_of(group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The number in the group of a process that is named in the world, or in the group."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both the global rank and the group's")
    if rank is None:
        return group_rank or 0
    if group is group_of(None):
        return rank  # the group says itself whether there is such a rank
    return get_group_rank(group, rank)


class _CoalescingManager:
    """Communications that are waited for together."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add one."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait until all are over."""
        for work in self.works:
            work.wait()


#: Those whose block is open, by their groups.
_coalescing: dict[ProcessGroup, _CoalescingManager] = {}


@contextmanager
def _coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """A block whose communications of a group are waited for at its end.

    With `async_ops` they are waited for by ``wait()`` of its value. Megatron gathers parameters and
    reduces gradients in such blocks.
    """
    found = group or _get_default_group()
    if found in _coalescing:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    manager = _coalescing[found] = _CoalescingManager()
    try:
        yield manager
    finally:
        del _coalescing[found]
    if not async_ops:
        manager.wait()


def _done(group: ProcessGroup, work: Work, async_op: bool) -> Work | None:
    if group in _coalescing:
        _coalescing[group].append(work)
    elif not async_op:
        work.wait()
    return work if async_op else None


def _within(
    what: str, group: Any, async_op: bool, start: Callable[[ProcessGroup], Work]
) -> Work | None:
    """Start a communication, where this process is in the group, and wait for it if asked to."""
    found = group_of(group, what)
    return None if found is None else _done(found, start(found), async_op)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replace `tensor` by the sum, or what else `op` says, of the tensors of all processes."""
    expect_tensor("tensor", tensor)
    return _within("all_reduce", group, async_op, lambda found: found.all_reduce(tensor, op))


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace `tensor` by that of the process `src`."""
    expect_tensor("tensor", tensor)
    expect_root(src, group_src)
    return _within(
        "broadcast",
        group,
        async_op,
        lambda found: found.broadcast(tensor, root_of(found, src, group_src)),
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As `all_reduce`, in the process `dst` alone."""
    expect_tensor("tensor", tensor)
    expect_root(dst, group_dst)
    return _within(
        "reduce",
        group,
        async_op,
        lambda found: found.reduce(tensor, root_of(found, dst, group_dst), op),
    )


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes to `tensor_list`."""
    _expect_tensors("tensor_list", tensor_list)
    expect_tensor("tensor", tensor)
    found = group_of(group, "all_gather")
    if found is None:
        return None
    _expect_like("all_gather", tensor_list, tensor, found.size())
    return _done(found, found.all_gather(tensor_list, tensor), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes, one after the other, to one tensor."""
    expect_tensor("output_tensor", output_tensor)
    expect_tensor("input_tensor", input_tensor)
    found = group_of(group, "all_gather_into_tensor")
    if found is None:
        return None
    parts = _parts(output_tensor, input_tensor, found.size())
    return _done(found, found.all_gather(parts, input_tensor), async_op)


def _parts(whole: Tensor, part: Tensor, size: int) -> list[Tensor]:
    """Views of `whole`, one for each process, in the shape of `part`."""
    if whole.numel() != part.numel() * size or whole.dtype is not part.dtype:
        raise RuntimeError(
            f"one tensor must be {size} times the other: {tuple(whole.shape)} of {whole.dtype} and "
            f"{tuple(part.shape)} of {part.dtype}"
        )
    return [line.view(part.shape) for line in whole.view(size, -1).unbind(0)]


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Write to `output` the sum over all processes of the input meant for this one."""
    expect_tensor("output", output)
    _expect_tensors("input_list", input_list)
    found = group_of(group, "reduce_scatter")
    if found is None:
        return None
    _expect_like("reduce_scatter", input_list, output, found.size())
    return _done(found, found.reduce_scatter(output, input_list, op), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As `reduce_scatter`, with all inputs in one tensor."""
    expect_tensor("output", output)
    expect_tensor("input", input)
    return _within(
        "reduce_scatter_tensor",
        group,
        async_op,
        lambda found: found.reduce_scatter(output, _parts(input, output, found.size()), op),
    )


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all processes to `gather_list` in the process `dst`."""
    expect_tensor("tensor", tensor)
    found = group_of(group, "gather")
    if found is None:
        return None
    root = root_of(found, dst, group_dst)
    if found.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _expect_like("gather", gather_list, tensor, found.size())
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return _done(found, found.gather(gather_list or [], tensor, root), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write to `tensor` this process's part of the `scatter_list` of the process `src`."""
    expect_tensor("tensor", tensor)
    found = group_of(group, "scatter")
    if found is None:
        return None
    root = root_of(found, src, group_src)
    if found.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _expect_like("scatter", scatter_list, tensor, found.size())
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _done(found, found.scatter(tensor, scatter_list or [], root), async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send input i to process i, and write what process i sends to output i."""
    _expect_tensors("output_tensor_list", output_tensor_list)
    _expect_tensors("input_tensor_list", input_tensor_list)
    found = group_of(group, "all_to_all")
    if found is None:
        return None
    return _done(found, _exchange(found, output_tensor_list, input_tensor_list), async_op)


def _exchange(found: ProcessGroup, outputs: list[Tensor], inputs: list[Tensor]) -> Work:
    for tensors in (outputs, inputs):
        _expect_length("all_to_all", tensors, found.size())
    _expect_dtype([*outputs, *inputs])
    return found.all_to_all(outputs, inputs)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """As `all_to_all`, with the parts of one tensor along its first dimension."""
    expect_tensor("output", output)
    expect_tensor("input", input)
    found = group_of(group, "all_to_all_single")
    if found is None:
        return None
    outputs, inputs = [
        list(whole.split(sizes or whole.shape[0] // found.size()))
        for whole, sizes in ((output, output_split_sizes), (input, input_split_sizes))
    ]
    return _done(found, _exchange(found, outputs, inputs), async_op)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> Work | None:
    """Wait until all processes have come here; RuntimeError when `timeout` has passed."""
    found = group_of(group, "barrier")
    if found is None:
        return None
    work = found.barrier()
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """As `barrier`, whose errors name the processes that did not come in the group's own time."""
    barrier(group, timeout=timeout)


def _deprecated(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        warnings.warn(
            f"torch.distributed.{name} is a private function and will be deprecated. "
            f"Please use torch.distributed.{function.__name__} instead.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        return function(*args, **options)

    return call


_all_gather_base = _deprecated("_all_gather_base", all_gather_into_tensor)
_reduce_scatter_base = _deprecated("_reduce_scatter_base", reduce_scatter_tensor)
