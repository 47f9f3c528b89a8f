"""``torch.return_types``: the named results of functions such as `max` and `sort`."""

from __future__ import annotations

from tensorflow_lite_clone._bind import names_of

globals().update(names_of("return_types"))
__all__ = sorted(names_of("return_types"))  # noqa: PLE0605
