"""Fusion of pointwise formulas: what is the same on every device.

A formula is a function over ``F``: the forward or the gradient of an op. `namespace` runs it on
symbols (`symbol`), which keep what it does; `target` says what a device can do of that. `groups`
tells which formulas become one kernel, and joins their expressions. Devices print these:
`backends.cupy.fusion` as CUDA C++, `backends.numpy.tiles` and `backends.numba.chains` as loops.
"""

from __future__ import annotations
