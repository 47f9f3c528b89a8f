"""How a tensor's values may lie in memory: `layout(side, array, dtype)` makes a tensor so."""

from __future__ import annotations

import numpy as np

JUNK = 77


def transposed(side, array, dtype):
    """The same values with the strides of the reversed order of dimensions."""
    back = tuple(reversed(range(array.ndim)))
    return side.tensor(array.transpose(), dtype).permute(back)


def stepped(side, array, dtype):
    """Every second element of a longer tensor, from its second on."""
    buffer = np.full(
        (*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else 2, JUNK, array.dtype
    )
    buffer[..., 1::2] = array
    made = side.tensor(buffer, dtype)
    return made[..., 1::2] if array.ndim else made[1]
