"""``torch.nested``: tensors of rows of several lengths, which are left out.

vit-pytorch imports from it; each function raises NotImplementedError. Rows of several lengths are
padded here, see ``torch.nn.utils.rnn.pad_sequence``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.nested.{name}: nested tensors are left out; torch.nn.utils.rnn.pad_sequence "
            "pads rows of several lengths"
        )

    refuse.__name__ = name
    return refuse


as_nested_tensor = _refused("as_nested_tensor")
masked_select = _refused("masked_select")
narrow = _refused("narrow")
nested_tensor = _refused("nested_tensor")
nested_tensor_from_jagged = _refused("nested_tensor_from_jagged")
to_padded_tensor = _refused("to_padded_tensor")
