"""CuPy's own forms of primitives: what the array API standard lacks, and corrections."""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import get_current_stream, runtime

from tensorflow_lite_clone.backends.cupy import device_asserts
from tensorflow_lite_clone.backends.cupy.device_asserts import check_range  # noqa: F401
from tensorflow_lite_clone.backends.cupy.gemm import matmul  # noqa: F401
from tensorflow_lite_clone.backends.cupy.memory import pinned_copy
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.cupy.primitives import (  # noqa: F401
    elementwise,
    factorizations,
    indexing,
    polynomials,
    reductions,
    scattering,
    sorting,
    special,
    spectral,
)
from tensorflow_lite_clone.backends.cupy.primitives.memory_order import keeping
from tensorflow_lite_clone.backends.numpy.primitives.indexing import (  # noqa: F401 (methods of arrays)
    bitcast,
    matrix_transpose,
    permute_dims,
    squeeze,
)
from tensorflow_lite_clone.core.shape import expect_storage
from tensorflow_lite_clone.dispatch import capture
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES, implemented

_modules = [value for value in list(globals().values()) if isinstance(value, _ModuleType)]
globals().update(
    implemented(*[module for module in _modules if module.__name__.startswith(__name__)])
)
globals().update(keeping(globals()))
_WIDEST = 16  # bytes of an element


def _counted(name: str) -> Any:
    """CuPy's function, whose sizes must not wrap around: it would write into memory of others."""
    function, shapes = getattr(cupy, name), PRIMITIVES[name].shapes

    def call(*values: Any, **options: Any) -> Any:
        expect_storage(shapes(*values, **options), _WIDEST)
        return function(*values, **options)

    return call


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    if isinstance(repeats, int):
        expect_storage(PRIMITIVES["repeat"].shapes(x, repeats, axis=axis), _WIDEST)
    return cupy.repeat(x, repeats, axis)


empty, full, ones, tile, zeros = map(_counted, ("empty", "full", "ones", "tile", "zeros"))
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:
    native = NATIVE.get(dtype, dtype)
    if x.dtype.kind == "c" and native.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and native.kind != "c":
        x, copy = x.real, True  # a view
    if native == np.uint8 and x.dtype.kind in "fV":  # wraps around, as elsewhere; CUDA clamps
        x = x.astype(np.int64)
    return x.astype(native, copy=copy)


def asarray(obj: Any, /, *, dtype: Any = None) -> Any:
    graph = capture.state.graph
    if graph is None or isinstance(obj, cupy.ndarray):
        return cupy.asarray(obj, dtype)
    # A replay copies anew: from memory kept with the graph's, as CuPy's would soon be another's.
    host = np.asarray(obj, dtype)
    if not host.ndim:
        return cupy.full((), host[()], host.dtype)
    made = cupy.empty(host.shape, host.dtype)
    if not host.size:
        return made
    pinned, stream = pinned_copy(host), get_current_stream().ptr
    runtime.memcpyAsync(  # CuPy's arrays refuse copies from the host under capture
        made.data.ptr, pinned.ctypes.data, pinned.nbytes, runtime.memcpyHostToDevice, stream
    )
    graph.pool.kept.append(pinned)
    return made


def check_labels(labels: Any, classes: int, ignored: int) -> None:
    device_asserts.check_index(labels, 0, classes, device_asserts.CLASS, ignored)
