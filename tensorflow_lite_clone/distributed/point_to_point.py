"""Tensors from one process to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.distributed.collectives import expect_tensor
from tensorflow_lite_clone.distributed.distributed_c10d import get_global_rank, group_of
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.work import Work
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _peer(found: ProcessGroup, which: str, rank: int | None, group_rank: int | None) -> int:
    """The number in a group of another process."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{which} and {which}")
    if rank is None and group_rank is None:
        raise ValueError(f"Must specify {which} or group_{which}")
    if group_rank is None:
        assert rank is not None
        if rank not in found.ranks:
            raise ValueError(f"Global rank {rank} is not part of group {found}")
        group_rank = found.ranks.index(rank)
    if group_rank == found.rank():
        name = "destination" if which == "dst" else "source"
        raise ValueError(
            f"Invalid {name} rank: {name} rank should not be the same as the rank of the current "
            "process."
        )
    return group_rank


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to the process `dst`."""
    expect_tensor("tensor", tensor)
    found = group_of(group, "isend")
    return None if found is None else found.send(tensor, _peer(found, "dst", dst, group_dst), tag)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor from the process `src`, from any without."""
    expect_tensor("tensor", tensor)
    found = group_of(group, "irecv")
    if found is None:
        return None
    anyone = src is None and group_src is None
    return found.receive(tensor, None if anyone else _peer(found, "src", src, group_src), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to the process `dst`."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from the process `src`, from any without; who has sent it, in the world."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is None and group_src is None:
        found = group_of(group)
        assert found is not None
        return get_global_rank(found, work.source_rank())
    if src is not None:
        return src
    found = group_of(group)
    assert found is not None and group_src is not None
    return get_global_rank(found, group_src)


class P2POp:
    """An `isend` or `irecv` for `batch_isend_irecv`."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be `isend` or `irecv`.")
        expect_tensor("tensor", tensor)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        found = group_of(group)
        which = "dst" if op is isend else "src"
        self.group_peer = -1 if found is None else _peer(found, which, peer, group_peer)
        self.peer = peer if found is None else get_global_rank(found, self.group_peer)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start all sends and receives of a list, which may wait for each other."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    if not p2p_op_list:
        raise ValueError("p2p_op_list is empty")
    found = group_of(p2p_op_list[0].group, "batch_isend_irecv")
    if found is None:
        return []
    if any([group_of(op.group) is not found for op in p2p_op_list]):
        raise ValueError("All ops need to use the same group.")
    return found.exchange(
        [
            ("send" if op.op is isend else "receive", op.tensor, op.group_peer, op.tag)
            for op in p2p_op_list
        ]
    )
