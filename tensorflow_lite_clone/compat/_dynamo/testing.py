"""``torch._dynamo.testing``: backends for tests."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.testing import *  # noqa: F403
from tensorflow_lite_clone.compiler.dynamo.testing import __all__ as __all__
