"""``torch._inductor``: PyTorch's code generator, which is not here: its options change nothing."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.compiler import cudagraph_mark_step_begin
from tensorflow_lite_clone.compiler.dynamo.options import Options

#: Set by programs, read by nothing.
config = Options("torch._inductor.config")

_TUNED = {"max_autotune": True, "coordinate_descent_tuning": True}
_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": _TUNED,
    "max-autotune": {**_TUNED, "triton.cudagraphs": True},
}


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What a mode of ``torch.compile`` sets, or all by their names. Transformers asks.

    Raises RuntimeError for an unknown mode.
    """
    if mode is None:
        return dict(_MODES)
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return dict(_MODES[mode])


__all__ = ["config", "cudagraph_mark_step_begin", "list_mode_options"]
