"""Every row of the op table under autocast: what it raises, and its results' dtypes.

On the CPU PyTorch runs beside it. For CUDA its side are fake tensors, which say dtypes and nothing
else, and ours are on a stand-in for the device, NumPy under the name of "cuda".
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import unittest
import warnings

import pytest
import torch

from tests.device import DEVICE
from tests.op_db import OPS
from tests.op_db._case import HostTensor, draw, materialize, tree_leaves
from tests.op_db._check import flatten, parametrize_rows, representable
from tests.op_db._device import OURS, SELF_CHECK, TORCH

ROWS = [op for op in OPS if "float32" in op.dtypes]
#: Rows whose results have another dtype, and why.
OTHERS = {
    "linalg.pinv": "PyTorch's last product rounds the pseudoinverse to the dtype of the block",
    "linalg.pinv.hermitian": "as linalg.pinv",
    "linalg.pinv.out": "as linalg.pinv",
    "lobpcg": "it calls itself in other dtypes, and answers in several",
    "lstm": "float16 beside float32 is cast by PyTorch's library, or not, as its version has it",
}


def mixtures(count, low, turn):
    """Dtypes for `count` tensors: all alike, or one of two bytes beside others of four.

    The first sample of a count gets every one of them, later ones take turns.
    """
    found = [["float32"] * count, [low] * count]
    if 1 < count <= 3:
        found += [[low if i == j else "float32" for j in range(count)] for i in range(count)]
    return [found[turn % len(found)]] if turn else found


def outcome(side, op, drawn, kinds, block, make=None):
    """The dtypes of the results, or None where it raises."""
    kinds = iter(kinds)

    def tensor(value, dtype):
        dtype = next(kinds) if value.dtype_varies else dtype
        made = make(value, dtype) if make else side.tensor(value.array, dtype)
        return made.requires_grad_(True) if value.requires_grad and not make else made

    args, kwargs = materialize(drawn, side, make=tensor)
    with warnings.catch_warnings(), block:
        warnings.simplefilter("ignore")
        try:
            result = op.run(side.module, args, kwargs)
        except Exception:
            return None
    return [
        side.dtype(leaf) if side.is_tensor(leaf) else type(leaf).__name__
        for leaf in flatten(result)
    ]


def trials(op, low):
    """The row's samples that hold tensors of the dtype under test, with dtypes for these."""
    turns: dict[int, int] = {}
    for sample in op.samples:
        if representable(sample, "float32"):
            drawn = draw(op, sample, "float32")
            count = len([value for value in tree_leaves(drawn, HostTensor) if value.dtype_varies])
            turn = turns[count] = turns.get(count, -1) + 1
            for kinds in mixtures(count, low, turn) if count else ():
                yield sample, drawn, kinds


@pytest.mark.skipif(DEVICE != "cpu", reason="the lists of the CPU")
class TestOnTheCpu(unittest.TestCase):
    """What runs in PyTorch runs here, and its results have PyTorch's dtypes."""

    @parametrize_rows([op for op in ROWS if op.name not in OTHERS])
    def test(self, op):
        low = "bfloat16"
        for sample, drawn, kinds in trials(op, low):
            found = []
            for side in (OURS, TORCH):
                lib = side.module
                block = lib.autocast("cpu", dtype=getattr(lib, low))
                found.append(outcome(side, op, drawn, kinds, block))
            if found[1] is not None and found[0] != found[1]:
                off = contextlib.nullcontext()
                without = [outcome(side, op, drawn, kinds, off) for side in (OURS, TORCH)]
                if without[0] == without[1] or without[1] is None:  # then autocast is to blame
                    self.assertEqual(found[0], found[1], f"{sample} {kinds}")


#: Rows in which fake tensors say something else than a GPU, or than a composite of ours.
FAKE = {
    "ldexp": "the fake power of an integer has no dtype of its own",
    "trace": "ours is the sum of a diagonal, which is on the list",
    "vander": "ours is a cumulative product, which is on the list",
    "median": "of nothing",
    "block_diag": "of three dtypes",
    "F.affine_grid": "cuDNN's where there is one; ours is a product of matrices",
    "grid_sampler_3d": "of two dtypes: a GPU raises",
    "native_dropout": "of nothing",
    "F.bilinear": "an optional bias does not count where dtypes are promoted",
    "F.embedding_bag.weights": "of two dtypes: a GPU raises",
    "embedding_bag": "of two dtypes: a GPU raises",
    "native_batch_norm": "statistics are float32 on a GPU, also without autocast",
    "array_api.expm1": "the standard's functions are on no list",
    "array_api.floor_divide": "numbers without dimensions are tensors to the standard",
}


def stand_in():
    """Enter NumPy as the device "cuda", for a process that has no other use for it."""
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.backends.numpy.backend import NumpyBackend
    from tensorflow_lite_clone.core.device import Device

    class StandIn(NumpyBackend):
        """NumPy under another name."""

        device = Device("cuda", 0)
        accelerators = ()

    backend = StandIn()
    backends.register("cuda", lambda index: backend)


@contextlib.contextmanager
def fake_autocast(low):
    """PyTorch's autocast for CUDA, which its context manager turns off where there is no GPU."""
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", getattr(torch, low))
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)


def on_cuda():
    """Compare dtypes of all rows; prints what differs, and how many were compared."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    logging.disable(logging.ERROR)
    stand_in()
    lib, low, compared = OURS.module, "bfloat16", 0
    for op in ROWS:
        if op.name in FAKE or op.name in OTHERS:
            continue
        for sample, drawn, kinds in trials(op, low):
            with FakeTensorMode():
                theirs = outcome(
                    TORCH, op, drawn, kinds, fake_autocast(low),
                    lambda v, dtype: torch.empty(
                        v.array.shape, dtype=getattr(torch, dtype), device="cuda"
                    ),
                )  # fmt: skip
            if theirs is None:
                continue
            block = lib.autocast("cuda", dtype=getattr(lib, low))
            ours = outcome(
                OURS, op, drawn, kinds, block,
                lambda v, dtype: OURS.tensor(v.array, dtype).to("cuda"),
            )  # fmt: skip
            if ours is None:  # fake tensors take dtypes that no kernel takes
                continue
            compared += 1
            if ours != theirs:
                print(f"{op} {sample} {kinds}: {ours}, PyTorch {theirs}")
    print(f"compared {compared}")


@pytest.mark.skipif(DEVICE != "cpu" or SELF_CHECK, reason="on the stand-in for CUDA")
def test_dtypes_on_cuda():
    run = subprocess.run(
        [sys.executable, "-m", "tests.amp.test_every_op"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    *differing, last = run.stdout.strip().splitlines() or [run.stderr]
    assert not differing, "\n".join(differing)
    # 4,463 when it was written: a sweep that compares next to nothing must not pass.
    assert last.startswith("compared ") and int(last.split()[1]) > 4000, run.stderr


if __name__ == "__main__":
    on_cuda()
