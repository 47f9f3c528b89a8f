"""What is compared of two modules, or of what they give."""

from __future__ import annotations

from typing import Any

import torch

from tests.module_samples.pairs import (
    Call,
)
from tests.samples.comparison import (
    Difference,
    compare,
    compare_strides,
    leaves,
)

#: Attributes by which PyTorch remembers whether its fused encoder layer may be called.
_FAST_WAY = ("activation_relu_or_gelu", "use_nested_tensor")


def same(ours: Any, theirs: Any) -> None:
    compare(ours, theirs)
    compare_strides(ours, theirs)


def same_text(ours: Any, theirs: Any) -> None:
    if str(ours) != str(theirs):
        raise Difference(f"{str(ours)!r:.90} for {str(theirs)!r:.90}")


def same_state(ours: Any, theirs: torch.nn.Module) -> None:
    """Equal names in the same order, classes, values and strides of parameters and buffers."""
    mine, other = ours.state_dict(), theirs.state_dict()
    same_text(list(mine), list(other))
    for kind in ("named_parameters", "named_buffers"):
        left, right = list(getattr(ours, kind)()), list(getattr(theirs, kind)())
        same_text([name for name, _ in left], [name for name, _ in right])
        for (name, x), (_, y) in zip(left, right, strict=True):
            same_text(
                (name, type(x).__name__, x.requires_grad), (name, type(y).__name__, y.requires_grad)
            )
            if not torch.nn.parameter.is_lazy(y):
                same(x, y)


def same_attributes(ours: Any, theirs: torch.nn.Module) -> None:
    """Equal attributes that say how the module was made."""
    for name, value in vars(theirs).items():
        plain = isinstance(value, (bool, int, float, str, type(None), tuple, list))
        if plain and not name.startswith("_") and name not in _FAST_WAY:
            same_text((name, getattr(ours, name)), (name, value))


def inputs_of(call: Call) -> Any:
    return [call.args, call.kwargs]


def tensors(call: Call) -> list[torch.Tensor]:
    return leaves(inputs_of(call), torch.Tensor)
