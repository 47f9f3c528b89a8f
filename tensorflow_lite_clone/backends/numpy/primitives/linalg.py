"""``numpy.linalg``, where LAPACK's iterations are not begun for infinities and NaN.

For them they may never end: ``numpy.linalg.svd`` of a 3 x 3 matrix with one infinity does not
(OpenBLAS 0.3.30).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import *  # noqa: F403


def _of_finite(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def word(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not np.isfinite(x).all():
            raise np.linalg.LinAlgError("the matrix contains infinities or NaN")
        return function(x, *args, **kwargs)

    return word


svd = _of_finite(np.linalg.svd)
svdvals = _of_finite(np.linalg.svdvals)
