"""What each op means: a folder per family, with generic forwards, gradients, public functions."""

from __future__ import annotations

from typing import Any

# First: it wraps the public functions that are collected after.
from tensorflow_lite_clone.ops.decorators import autocast as _autocast  # noqa: F401

# isort: split

# Importing a module enters its ops into the table, and its functions into the public names.
from tensorflow_lite_clone.ops import (  # noqa: F401
    checks,
    control_flow,
    foreach,
    namespaces,
    precision,
    properties,
    settings,
    standard_forms,
    update,
)
from tensorflow_lite_clone.ops.compat import (  # noqa: F401
    native_forms,
    native_losses,
    native_norms,
    other_layouts,
    private_forms,
    symbols,
    typed,
    typed_storage,
    untyped_storage,
)
from tensorflow_lite_clone.ops.create import (  # noqa: F401
    constructors,
    convert,
    interchange,
    progressions,
)
from tensorflow_lite_clone.ops.fft import (  # noqa: F401
    frequencies,
    stft,
    transforms,
    window_functions,
)
from tensorflow_lite_clone.ops.index import (  # noqa: F401
    assign,
    gather,
    getitem,
    scatter,
    sort,
    unique,
)
from tensorflow_lite_clone.ops.linalg import (  # noqa: F401
    cholesky,
    determinants,
    distance,
    eigen,
    einsum,
    grouped_products,
    householder,
    ldl,
    least_squares,
    lobpcg,
    log_determinant,
    low_rank,
    lu,
    matmul,
    matrix_functions,
    norms,
    products,
    qr,
    solve,
    solve_triangular,
    svd,
)
from tensorflow_lite_clone.ops.nn import (  # noqa: F401
    activation,
    activation_smooth,
    adaptive_pool,
    attention,
    batch_norm,
    conv,
    dropout,
    embedding,
    embedding_bag,
    fold,
    fractional_pool,
    grid,
    interpolate,
    linear,
    loss,
    loss_ctc,
    loss_elementwise,
    loss_margin,
    multi_head_attention,
    normalization,
    pad,
    pixels,
    pool,
    recurrent,
    recurrent_layers,
    softmax,
)
from tensorflow_lite_clone.ops.pointwise import (  # noqa: F401
    arithmetic,
    choice,
    compare,
    complex_numbers,
    elementary,
    fake_quantize,
    logical,
    multivariate,
    power,
)
from tensorflow_lite_clone.ops.random import gamma, sampling  # noqa: F401
from tensorflow_lite_clone.ops.reduce import (  # noqa: F401
    covariance,
    extremes,
    finite_differences,
    histograms,
    reductions,
    scan,
    segments,
    statistics,
)
from tensorflow_lite_clone.ops.shape import (  # noqa: F401
    join,
    memory,
    rearrange,
    slices,
    transposes,
    view_copies,
    views,
)
from tensorflow_lite_clone.ops.special import (  # noqa: F401
    bessel_functions,
    gamma_functions,
    polynomials,
    special_functions,
)


def __getattr__(name: str) -> Any:
    if name in namespaces.namespaces:  # operations of a program's own
        return namespaces.namespaces[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
