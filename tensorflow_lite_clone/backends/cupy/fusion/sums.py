"""Sums per channel of values that are computed on the way, from what waits in the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cupy import ndarray

from tensorflow_lite_clone.backends.cupy.fusion.launch import prepared_sums
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk
from tensorflow_lite_clone.backends.cupy.fusion.source import Form
from tensorflow_lite_clone.backends.cupy.fusion.target import CUDA, NAMESPACE
from tensorflow_lite_clone.fuse.formula import Trace
from tensorflow_lite_clone.fuse.symbol import Symbol
from tensorflow_lite_clone.fuse.target import FLOAT32

_PACKS = 8  # in flight, of all operands together


class Sums:
    """Where the sums are to be: `partial` of shape (channels, parts, sums), once launched."""

    partial: Any = None

    def launch(
        self, name: str, made: Trace, walked: Walk, form: Form, operands: tuple, results: tuple
    ) -> None:
        """Fill the results and the sums."""
        used = [operands[symbol.value] for symbol in made.operands]
        arrays = [value for value in used if value.__class__ is ndarray]
        addresses = [value.data.ptr for value in (*arrays, *results)]
        if any([address & 15 for address in addresses]):
            form = form._replace(width=1)
        fire, parts = prepared_sums(name, made, walked, form)
        count = len(made.results) - len(results)
        self.partial = cupy.empty((walked.sizes[0], parts, count), np.float32)
        numbers = [value for value in used if value.__class__ is not ndarray]
        fire(*addresses, self.partial.data.ptr, *numbers)


def summed(body: Callable[..., tuple], arrays: tuple) -> Trace:
    """The trace of what is to be summed: `body` over ``F`` and the arrays, in float32."""
    operands = tuple(
        [Symbol(CUDA, "operand", FLOAT32, value=position) for position in range(len(arrays))]
    )
    results = body(NAMESPACE, *operands)
    names = body.__code__.co_varnames[1 : 1 + len(arrays)]
    return Trace(names, operands, results, by_shape=True, literal=False)


def by_columns(walked: Walk, form: Form, channels: int) -> Form | None:
    """The form in which sums are computed; None where channels are not next to each other."""
    if len(walked.sizes) != 2 or walked.sizes[0] != channels or form.wide:
        return None
    if any([step[0] not in (0, 1) for step in walked.steps]):
        return None
    varying = [step for step in walked.steps[: len(walked.steps) - len(form.results)] if step[1]]
    return form._replace(packs=max(1, _PACKS // len(varying)))
