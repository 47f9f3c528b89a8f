"""CUDA as a target of fusion: what its kernels can say, and in which dtypes they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.dispatch.table import overrides
from tensorflow_lite_clone.fuse.namespace import Namespace
from tensorflow_lite_clone.fuse.symbol import NotPointwise, Symbol
from tensorflow_lite_clone.fuse.target import Target


class CudaTarget(Target):
    """Kernels in CUDA C++, which cast operands and hold numbers in the dtype of what computes."""

    xp = cupy
    native = NATIVE
    widens = True
    clips_by_steps = True

    def kinds(self, name: str) -> Mapping[str, str]:
        """What CUDA C++ says for a primitive or op, by the kinds of its operands."""
        record: Any = PRIMITIVES.get(name) or TABLE.get(name)
        texts: Mapping[str, str] = getattr(record, "c", {})
        return texts

    def constant(self, value: Any, dtype: Any) -> Any:
        return dtype.type(value)

    def cast(self, value: Any, dtype: Any) -> Symbol:
        if not isinstance(value, Symbol):
            return self._number(value, dtype)
        return value if value.dtype == dtype else Symbol(self, "astype", dtype, (value,))

    def _number(self, value: Any, dtype: Any) -> Symbol:
        """A number in `dtype`, if it holds it."""
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.item()
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                raise NotPointwise("a number that the dtype does not hold")
        return Symbol(self, "number", dtype, value=dtype.type(value).item())

    def own(self, name: str, result: Any, values: tuple, parameters: dict[str, Any]) -> Any:
        """The result, or a copy that says that a kernel of the device's own makes it."""
        if (name, "cupy") not in overrides or not isinstance(result, Symbol) or not result.operands:
            return result
        copy = Symbol(self, result.name, result.dtype, result.operands, result.value)
        copy.overridden = True
        return copy


CUDA = CudaTarget()
NAMESPACE = Namespace(CUDA)
