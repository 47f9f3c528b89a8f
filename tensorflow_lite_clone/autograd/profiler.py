"""Names of ``torch.autograd.profiler``, the older place of a part of ``torch.profiler``."""

from __future__ import annotations

from typing import Any, Self

from tensorflow_lite_clone.profiler.events import EventList, FunctionEvent, record_function
from tensorflow_lite_clone.profiler.profiler import profile as _profile

__all__ = ["EventList", "FunctionEvent", "emit_nvtx", "profile", "record_function"]


class profile(_profile):
    """`profiler.profile` with older arguments; `enabled` False notes nothing."""

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, **options: Any):
        super().__init__(record_shapes=record_shapes, **options)
        self.enabled = enabled

    def __enter__(self) -> Self:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            super().__exit__(*error)


class emit_nvtx:
    """Context of ranges in NVIDIA's timelines around all ops: NotImplementedError on entering."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Self:
        raise NotImplementedError("emit_nvtx: see torch.cuda.nvtx.range")

    def __exit__(self, *error: object) -> None:
        pass
