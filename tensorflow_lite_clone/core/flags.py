"""Switches of the whole process."""

from __future__ import annotations

import os


def _threads() -> int:
    """``OMP_NUM_THREADS``, or the number of processors."""
    named = os.environ.get("OMP_NUM_THREADS", "")
    return int(named) if named.isdigit() and named != "0" else os.cpu_count() or 1


class Flags:
    """How float32 products are computed, and what else was asked for; PyTorch's defaults.

    `torch.backends` and the functions of `ops/settings.py` set them,
    device backends read the first three, `free_layouts`, `remember_launches` and `threads`.
    """

    __slots__ = (
        "cudnn_allow_tf32",
        "deterministic",
        "deterministic_warn_only",
        "fill_uninitialized_memory",
        "free_layouts",
        "float32_matmul_precision",
        "matmul_allow_tf32",
        "remember_launches",
        "threads",
        "warn_always",
    )

    def __init__(self) -> None:
        self.cudnn_allow_tf32 = True  # convolutions may round their operands to TF32
        self.matmul_allow_tf32 = False  # so may matrix products
        self.float32_matmul_precision = "highest"
        self.deterministic = False
        self.deterministic_warn_only = False
        self.fill_uninitialized_memory = True  # where algorithms are to be deterministic
        self.warn_always = False
        self.threads = _threads()  # of one operation on the CPU
        # Convolutions on CUDA may lay results out otherwise than programs see: LazyStorage.
        self.free_layouts = os.environ.get("TENSORFLOW_LITE_CLONE_FREE_LAYOUTS") != "0"
        # Launchers of CUDA kernels may do again what they did for arrays that lay alike.
        self.remember_launches = os.environ.get("TENSORFLOW_LITE_CLONE_REMEMBER_LAUNCHES") != "0"


flags = Flags()
