"""Pointwise formulas as kernels of their own: traced, written as CUDA C++, launched at little cost.

A formula is a function over ``F``, the forward or the gradient of an op. `fuse` runs it on
symbols, by what `target` says that CUDA can do; `source` writes that down as a kernel for arrays
that lie in memory as `layout` says; `launch` keeps what is ready to be launched by the dtypes,
shapes and strides of the operands. A formula that is not pointwise runs as it always did.
"""

from __future__ import annotations
