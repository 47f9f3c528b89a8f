"""The options that capturing reads, and the counts that it keeps."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tensorflow_lite_clone.compiler.dynamo.options import Options

#: ``torch._dynamo.config``. Those that are given here are read, others change nothing.
config: Any = Options("torch._dynamo.config", {"cache_size_limit": "recompile_limit"})
config.recompile_limit = 8
config.fail_on_recompile_limit_hit = False
config.suppress_errors = False
config.disable = False

#: ``torch._dynamo.utils.counters``: of graphs and calls, and of reasons for graph breaks.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
