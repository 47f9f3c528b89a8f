"""Loss scaling on the device."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.tensor_lists import is_cell, launch, rows
from tensorflow_lite_clone.dispatch.table import override

_unscale = Kernel("amp.cu", "amp_unscale", params=("T",))
_update = Kernel("amp.cu", "amp_update_scale", params=("S",))
_i32 = np.dtype(np.int32)


@override("amp_unscale", backend="cupy")
def amp_unscale(F: Any, grads: list, found: list, *, inv_scale: Any) -> Any:
    places = rows([grads])
    if places is None or not is_cell(found[0]) or not is_cell(inv_scale):
        return NotImplemented
    for dtype, part in places.items():
        launch(_unscale[dtype], dtype, part, 1, inv_scale, found[0])
    return None


@override("amp_update_scale", backend="cupy")
def amp_update_scale(
    F: Any,
    scale: list,
    tracker: list,
    *,
    found_inf: Any,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> Any:
    (s,), (n,) = scale, tracker
    if not is_cell(s) or not is_cell(found_inf):
        return NotImplemented
    if n.__class__ is not cupy.ndarray or n.dtype != _i32 or n.size != 1:
        return NotImplemented
    _update[s.dtype](1, 32, found_inf, growth_factor, backoff_factor, growth_interval, s, n)
    return None
