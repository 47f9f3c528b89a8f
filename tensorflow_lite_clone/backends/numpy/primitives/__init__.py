"""NumPy's own forms of primitives: what the array API standard lacks, and corrections."""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.backends.numpy.float8 import stored as _stored
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.backends.numpy.primitives import (  # noqa: F401
    airy,
    bessel,
    bessel_waves,
    checks,
    elementwise,
    factorizations,
    fft,
    incomplete_gamma,
    indexing,
    linalg,
    lu,
    polynomials,
    products,
    reductions,
    solvers,
    sorting,
    special,
    spectral,
    triangular,
    zeta_function,
)
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch.primitives import implemented

_namespaces = (fft, linalg)  # which the standard has
_modules = [value for value in list(globals().values()) if isinstance(value, _ModuleType)]
globals().update(implemented(*[module for module in _modules if module not in _namespaces]))
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:
    native = NATIVE[dtype] if isinstance(dtype, DType) else dtype
    if getattr(native, "names", None) is not None and native != x.dtype:
        return _stored(x, native)
    if x.dtype.names is not None and native != x.dtype:
        x = x.astype("float32")
    if x.dtype.kind == "c" and native.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and native.kind != "c":
        x, copy = x.real, True  # a view
    return x.astype(native, copy=copy)
