"""Why a step is not equal, and why a module cannot be imported, where the message does not say."""

from __future__ import annotations

_LONGER = "the message begins as PyTorch's and says more"
#: (package, step): the reason.
REASONS: dict[tuple[str, str], str] = {
    ("accelerate", "profile"): "events are named by this package's ops: `linear`, no `aten::addmm`",
    ("pykan", "prune, refine: outputs"): (
        "least squares of a rank that PyTorch misses, as memory that it does not set says"
    ),
    ("diffusers", "gradients through a step; float64; bfloat16"): (
        "a number that multiplies bfloat16 is rounded to it first; PyTorch keeps it in float32"
    ),
    ("transformers", "an unknown dtype"): _LONGER,
}
#: A module: the reason.
WITHOUT: dict[str, str] = {}
