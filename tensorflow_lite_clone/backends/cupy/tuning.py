"""Sizes at which launchers take another way, or begin their caches anew.

As on the CPU (`backends.numpy.tuning`) they are read when a function is called, so that a test sets
one to have small arrays take the way of large ones, and so may a user whose device is another:

>>> from tensorflow_lite_clone.backends.cupy.tuning import tuning
>>> tuning.gemm_plans
4096
"""

from __future__ import annotations


class Tuning:
    """The sizes, each with what it counts."""

    #: Matrix products: plans that are kept; then the cache begins anew.
    gemm_plans: int = 4096
    #: Matrices of one call: some of cuBLASLt's kernels have 65535 as their limit.
    gemm_matrices: int = 32768

    #: Attention on Hopper: bytes of L2 that what passes by may take.
    attention_l2_bytes: int = 16 << 20


tuning = Tuning()
