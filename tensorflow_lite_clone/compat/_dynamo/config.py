"""``torch._dynamo.config``: the module is the object that holds the options."""

from __future__ import annotations

import sys
from typing import Any

from tensorflow_lite_clone.compiler.dynamo.settings import config

config.__spec__ = __spec__
_modules: dict[str, Any] = sys.modules
_modules[__name__] = config
