"""CuPy's words beyond the array API standard, and corrections of those within it."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy.cuda import get_current_stream, runtime

from tensorflow_lite_clone.backends.cupy import faults
from tensorflow_lite_clone.backends.cupy.faults import check_range  # noqa: F401
from tensorflow_lite_clone.backends.cupy.gemm import matmul  # noqa: F401
from tensorflow_lite_clone.backends.cupy.kit_factor import (  # noqa: F401
    cholesky,
    ldl_factor,
    ldl_solve,
    lu_factor,
    lu_permutation,
    solve,
    solve_triangular,
)
from tensorflow_lite_clone.backends.cupy.kit_index import (  # noqa: F401
    address,
    as_strided,
    broadcast_to,
    check_index,
    concat,
    copy,
    expand_dims,
    flip,
    getitem,
    reshape,
    stack,
    take,
    unstack,
    write_at,
)
from tensorflow_lite_clone.backends.cupy.kit_layout import WORDS
from tensorflow_lite_clone.backends.cupy.kit_pointwise import (  # noqa: F401
    clip,
    count_nonzero,
    exp2,
    floor_divide,
    fmax,
    fmin,
    fmod,
    frexp,
    gcd,
    lcm,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    make_complex,
    pow,
    remainder,
    round,
    sgn,
    sign,
    where,
)
from tensorflow_lite_clone.backends.cupy.kit_polynomials import polynomial  # noqa: F401
from tensorflow_lite_clone.backends.cupy.kit_reduce import (  # noqa: F401
    all,
    any,
    argmax,
    argmin,
    cumulative_logsumexp,
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    prod,
    sum,
)
from tensorflow_lite_clone.backends.cupy.kit_scatter import (  # noqa: F401
    add_at,
    combine_at,
)
from tensorflow_lite_clone.backends.cupy.kit_sort import (  # noqa: F401
    arg_kth,
    argsort,
    bincount,
    put_along_axis,
    searchsorted,
    sort,
    take_along_axis,
    top_k,
)
from tensorflow_lite_clone.backends.cupy.kit_special import (  # noqa: F401
    airy_ai,
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    igamma,
    igammac,
    j0,
    j1,
    k0,
    k0e,
    k1,
    k1e,
    lgamma,
    log_ndtr,
    ndtri,
    polygamma,
    y0,
    y1,
    zeta,
)
from tensorflow_lite_clone.backends.cupy.kit_spectral import (  # noqa: F401
    eigen,
    eigenvalues,
    geqrf,
    singular_values,
)
from tensorflow_lite_clone.backends.cupy.memory import pinned_copy
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.numpy.kit_index import (  # noqa: F401 (methods of arrays)
    bitcast,
    matrix_transpose,
    permute_dims,
    squeeze,
)
from tensorflow_lite_clone.dispatch import capture

globals().update(WORDS)


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:  # noqa: F811
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


def vecdot(x: Any, y: Any, /, *, axis: int = -1) -> Any:
    return sum(cupy.conj(x) * y, axis=axis)


def check_labels(labels: Any, classes: int, ignored: int) -> None:
    faults.check_index(labels, 0, classes, faults.CLASS, ignored)
