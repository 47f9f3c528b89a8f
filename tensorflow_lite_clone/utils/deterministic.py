"""Settings of deterministic computations, as ``torch.utils.deterministic``.

`fill_uninitialized_memory` is accepted: what `empty` returns is arbitrary either way.
"""

from __future__ import annotations

fill_uninitialized_memory = True
