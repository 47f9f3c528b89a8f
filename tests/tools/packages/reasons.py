"""Why a step is not equal, and why a module cannot be imported, where the message does not say."""

from __future__ import annotations

_LONGER = "the message begins as PyTorch's and says more"
#: (package, step): the reason.
REASONS: dict[tuple[str, str], str] = {
    ("accelerate", "profile"): "events are named by this package's ops: `linear`, no `aten::addmm`",
    ("pykan", "prune, refine: outputs"): (
        "least squares of a rank that PyTorch misses, as memory that it does not set says"
    ),
    ("bitsandbytes", "refused: int8 factors of other lengths"): (
        "bitsandbytes multiplies int8 as it does on a machine without AVX-512: as float32"
    ),
    ("transformers", "an unknown dtype"): _LONGER,
}
#: A module: the reason.
WITHOUT: dict[str, str] = {}
