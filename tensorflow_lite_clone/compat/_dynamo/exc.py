"""``torch._dynamo.exc``: the errors of capturing graphs."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.errors import *  # noqa: F403
from tensorflow_lite_clone.compiler.dynamo.errors import __all__ as __all__
