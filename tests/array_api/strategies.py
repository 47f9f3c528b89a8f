"""Arrays, dtypes and shapes of the standard, drawn by hypothesis."""

from __future__ import annotations

from hypothesis.extra.array_api import make_strategies_namespace

import tensorflow_lite_clone as tlc

xp = tlc.zeros(1).__array_namespace__()
# hypothesis.extra.array_api's: xps.arrays, xps.array_shapes, xps.scalar_dtypes, ...
xps = make_strategies_namespace(xp, api_version=xp.__array_api_version__)
