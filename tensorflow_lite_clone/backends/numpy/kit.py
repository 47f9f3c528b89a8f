"""NumPy's words beyond the array API standard, and corrections of those within it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.kit_index import (  # noqa: F401
    add_at,
    address,
    as_strided,
    bitcast,
    broadcast_to,
    check_index,
    combine_at,
    concat,
    expand_dims,
    flip,
    getitem,
    matrix_transpose,
    permute_dims,
    reshape,
    squeeze,
    stack,
    take,
    write_at,
)
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
from tensorflow_lite_clone.backends.numpy.kit_sort import (  # noqa: F401
    arg_kth,
    argsort,
    bincount,
    put_along_axis,
    searchsorted,
    sort,
    top_k,
)
from tensorflow_lite_clone.backends.numpy.native import NATIVE


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:
    native = NATIVE.get(dtype, dtype)
    if x.dtype.kind == "c" and native.kind != "c":
        x = x.real
    return x.astype(native, copy=copy)


def copy(x: Any) -> Any:
    return np.array(x, order="C")


def matmul(x: Any, y: Any) -> Any:
    result = np.matmul(x, y)
    return result if result.dtype == x.dtype else result.astype(x.dtype)
