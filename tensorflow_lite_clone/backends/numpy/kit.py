"""NumPy's words beyond the array API standard, and corrections of those within it."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.backends.numpy import kit_fft as fft  # noqa: F401
from tensorflow_lite_clone.backends.numpy import kit_linalg as linalg  # noqa: F401
from tensorflow_lite_clone.backends.numpy.float8 import stored as _stored
from tensorflow_lite_clone.backends.numpy.kit_airy import airy_ai  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_bessel import (  # noqa: F401
    i0,
    i0e,
    i1,
    i1e,
    k0,
    k0e,
    k1,
    k1e,
)
from tensorflow_lite_clone.backends.numpy.kit_bessel_waves import j0, j1, y0, y1  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_checks import (  # noqa: F401
    check_labels,
    check_range,
)
from tensorflow_lite_clone.backends.numpy.kit_factor import (  # noqa: F401
    cholesky,
    ldl_factor,
    ldl_solve,
)
from tensorflow_lite_clone.backends.numpy.kit_incomplete_gamma import (  # noqa: F401
    igamma,
    igammac,
)
from tensorflow_lite_clone.backends.numpy.kit_index import (  # noqa: F401
    add_at,
    address,
    arange,
    as_strided,
    bitcast,
    broadcast_to,
    check_index,
    combine_at,
    concat,
    copy,
    expand_dims,
    flip,
    getitem,
    matrix_transpose,
    ones,
    permute_dims,
    reshape,
    squeeze,
    stack,
    take,
    write_at,
)
from tensorflow_lite_clone.backends.numpy.kit_lu import lu_factor, lu_permutation  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_matmul import matmul  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_pointwise import (  # noqa: F401
    clip,
    exp2,
    floor_divide,
    fmax,
    fmin,
    fmod,
    frexp,
    gcd,
    lcm,
    logaddexp2,
    make_complex,
    pow,
    remainder,
    sgn,
    sign,
    where,
)
from tensorflow_lite_clone.backends.numpy.kit_polynomials import polynomial  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_reduce import (  # noqa: F401
    all,
    any,
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
from tensorflow_lite_clone.backends.numpy.kit_solve import solve  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_sort import (  # noqa: F401
    arg_kth,
    argsort,
    bincount,
    put_along_axis,
    searchsorted,
    sort,
    take_along_axis,
    top_k,
)
from tensorflow_lite_clone.backends.numpy.kit_special import (  # noqa: F401
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    lgamma,
    log_ndtr,
    ndtri,
)
from tensorflow_lite_clone.backends.numpy.kit_spectral import (  # noqa: F401
    eigen,
    eigenvalues,
    geqrf,
    singular_values,
)
from tensorflow_lite_clone.backends.numpy.kit_triangular import solve_triangular  # noqa: F401
from tensorflow_lite_clone.backends.numpy.kit_zeta import polygamma, zeta  # noqa: F401
from tensorflow_lite_clone.backends.numpy.native import NATIVE


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:  # noqa: F811
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
