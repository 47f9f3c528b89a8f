"""Calls that are wrong by themselves, and which exceptions they raise in either library.

``python -m tests.distributed.bad_calls MEETING RANK`` prints PyTorch's, in one of two processes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

# d is torch.distributed, x a tensor of four numbers, r the rank in a world of two.
BAD_CALLS: dict[str, Callable[[Any, Any, int], Any]] = {
    "all_reduce_list": lambda d, x, r: d.all_reduce([x]),
    "all_reduce_number": lambda d, x, r: d.all_reduce(1.0),
    "all_reduce_bits": lambda d, x, r: d.all_reduce(x, d.ReduceOp.BAND),
    "all_reduce_complex": lambda d, x, r: d.all_reduce(x.to(x.dtype.to_complex()), d.ReduceOp.MAX),
    "all_reduce_mean_of_integers": lambda d, x, r: d.all_reduce(x.long(), d.ReduceOp.AVG),
    "broadcast_nobody": lambda d, x, r: d.broadcast(x, 2),
    "broadcast_negative": lambda d, x, r: d.broadcast(x, -1),
    "broadcast_both": lambda d, x, r: d.broadcast(x, 0, group_src=0),
    "broadcast_nothing": lambda d, x, r: d.broadcast(None, 0),
    "broadcast_no_root": lambda d, x, r: d.broadcast(x),
    "broadcast_group_nobody": lambda d, x, r: d.broadcast(x, group_src=5),
    "reduce_nobody": lambda d, x, r: d.reduce(x, 2),
    "reduce_no_root": lambda d, x, r: d.reduce(x),
    "reduce_both": lambda d, x, r: d.reduce(x, 0, group_dst=0),
    "all_gather_few": lambda d, x, r: d.all_gather([x.clone()], x),
    "all_gather_none": lambda d, x, r: d.all_gather([], x),
    "all_gather_shape": lambda d, x, r: d.all_gather([x[:2], x[:2]], x),
    "all_gather_dtype": lambda d, x, r: d.all_gather([x.double(), x.double()], x),
    "all_gather_tensor": lambda d, x, r: d.all_gather(x, x),
    "all_gather_into_small": lambda d, x, r: d.all_gather_into_tensor(x.clone(), x),
    "all_gather_into_dtype": lambda d, x, r: d.all_gather_into_tensor(x.double().repeat(2), x),
    "gather_no_list": lambda d, x, r: d.gather(x, None, dst=r),
    "gather_list_elsewhere": lambda d, x, r: d.gather(x, [x.clone(), x.clone()], dst=1 - r),
    "gather_few": lambda d, x, r: d.gather(x, [x.clone()], dst=r),
    "scatter_no_list": lambda d, x, r: d.scatter(x, None, src=r),
    "scatter_list_elsewhere": lambda d, x, r: d.scatter(x, [x.clone(), x.clone()], src=1 - r),
    "scatter_few": lambda d, x, r: d.scatter(x, [x.clone()], src=r),
    "scatter_shape": lambda d, x, r: d.scatter(x, [x[:2], x[:2]], src=r),
    "gather_dtype": lambda d, x, r: d.gather(x, [x.double(), x.double()], dst=r),
    "gather_shape": lambda d, x, r: d.gather(x, [x[:2], x[:2]], dst=r),
    "scatter_dtype": lambda d, x, r: d.scatter(x, [x.double(), x.double()], src=r),
    "reduce_scatter_dtype": lambda d, x, r: d.reduce_scatter(x, [x.double(), x.double()]),
    "reduce_scatter_shape": lambda d, x, r: d.reduce_scatter(x, [x[:2], x[:2]]),
    "reduce_scatter_few": lambda d, x, r: d.reduce_scatter(x, [x.clone()]),
    "all_to_all_tensor": lambda d, x, r: d.all_to_all(x, [x, x]),
    "all_to_all_dtypes": lambda d, x, r: d.all_to_all([x.double(), x.double()], [x, x]),
    "all_to_all_few": lambda d, x, r: d.all_to_all([x.clone()], [x]),
    "all_to_all_single_dtypes": lambda d, x, r: d.all_to_all_single(x.double(), x),
    "all_to_all_single_splits": lambda d, x, r: d.all_to_all_single(x.clone(), x, [1, 1], [2, 2]),
    "send_to_itself": lambda d, x, r: d.send(x, r),
    "send_nowhere": lambda d, x, r: d.send(x),
    "send_both": lambda d, x, r: d.send(x, 1 - r, group_dst=1 - r),
    "send_number": lambda d, x, r: d.send(3, 1 - r),
    "recv_number": lambda d, x, r: d.recv(3, 1 - r),
    "batch_tensor": lambda d, x, r: d.batch_isend_irecv([x]),
    "p2p_function": lambda d, x, r: d.P2POp(d.broadcast, x, 1 - r),
    "gather_object_no_list": lambda d, x, r: d.gather_object(1, None, dst=r),
    "scatter_object_no_place": lambda d, x, r: d.scatter_object_list([], [1, 2], src=r),
    "new_group_nobody": lambda d, x, r: d.new_group([0, 5]),
    "new_group_twice": lambda d, x, r: d.new_group([0, 0]),
    "init_again": lambda d, x, r: d.init_process_group("gloo"),
    "destroy_number": lambda d, x, r: d.destroy_process_group(3),
}


def raised(lib: Any, rank: int) -> dict[str, str]:
    """The name of the exception of each call, or what it gave instead."""
    names = {}
    for name, call in BAD_CALLS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                names[name] = f"gave {call(lib.distributed, lib.ones(4), rank)}"
            except Exception as error:
                names[name] = type(error).__name__
    return names


def ours(rank: int, size: int) -> dict[str, str]:
    """What this package raises."""
    import tensorflow_lite_clone as lib

    return raised(lib, rank)


def main(meeting: str, rank: str) -> None:
    """Print what PyTorch raises."""
    import torch

    torch.distributed.init_process_group("gloo", meeting, rank=int(rank), world_size=2)
    print(json.dumps(raised(torch, int(rank))))


if __name__ == "__main__":
    main(*sys.argv[1:])
