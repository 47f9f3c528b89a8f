"""NumPy's own forms of primitives: what the array API standard lacks, and corrections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.backends.numpy import (  # noqa: F401
    kit_airy,
    kit_bessel,
    kit_bessel_waves,
    kit_checks,
    kit_factor,
    kit_incomplete_gamma,
    kit_index,
    kit_lu,
    kit_matmul,
    kit_pointwise,
    kit_polynomials,
    kit_reduce,
    kit_solve,
    kit_sort,
    kit_special,
    kit_spectral,
    kit_triangular,
    kit_zeta,
)
from tensorflow_lite_clone.backends.numpy import kit_fft as fft  # noqa: F401
from tensorflow_lite_clone.backends.numpy import kit_linalg as linalg  # noqa: F401
from tensorflow_lite_clone.backends.numpy.float8 import stored as _stored
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.dispatch.primitives import implemented

globals().update(
    implemented(*[value for name, value in list(globals().items()) if name[:4] == "kit_"])
)
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:
    native = NATIVE.get(dtype, dtype)
    if getattr(native, "names", None) is not None and native != x.dtype:
        return _stored(x, native)
    if x.dtype.names is not None and native != x.dtype:
        x = x.astype("float32")
    if x.dtype.kind == "c" and native.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and native.kind != "c":
        x, copy = x.real, True  # a view
    return x.astype(native, copy=copy)
