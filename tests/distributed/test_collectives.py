"""Every collective against its definition, in processes of this machine."""

from __future__ import annotations

import re

import pytest

from tests.device import DEVICE
from tests.distributed.cases import CASES, run
from tests.distributed.process_groups import gpu_world, world

# What NCCL does not do: patterns of names of cases, and why.
NOT_OVER_NCCL = {
    "reduce.*int16": "NCCL has no such dtype",
    "int.*_B(AND|OR)|_BXOR": "NCCL reduces no bits",
    "bits_of_floats": "other reductions are missing, with another error",
    "avg_of_integers": "NCCL has it",
    "from_anyone": "NCCL receives from a rank that is named",
    "tags": "messages between two ranks come in their order",
    "ring": "a receive that is started first holds up the send after it",
    "outputs_that_are_inputs": "a kernel would read what it writes",
    "threads": "ranks must start the kernels of two groups in one order",
    "different": "calls are compared the first time only; afterwards the device waits",
    "a_time_limit": "it ends the process",
}


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_collectives(name, size):
    world(size).run(run, name)


@pytest.mark.cuda
@pytest.mark.parametrize("name", CASES if DEVICE == "cuda" else ["all_reduce_float32_SUM"])
def test_collectives_over_nccl(name):
    for pattern, reason in NOT_OVER_NCCL.items():
        if re.search(pattern, name):
            pytest.skip(reason)
    gpu_world(2).run(run, name)
