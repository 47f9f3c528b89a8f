"""``torch.backends.cudnn``: there is no cuDNN here; its switches apply to our convolutions.

`allow_tf32`, or `conv.fp32_precision`, decides whether they may round float32 operands to TF32.
The other switches are kept and have no effect: convolutions are deterministic, and nothing is
tried out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from tensorflow_lite_clone.backends import float32_precision
from tensorflow_lite_clone.core.flags import flags as _flags

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False


def is_available() -> bool:
    """False: cuDNN is not used."""
    return False


def version() -> None:
    """None: cuDNN is not used."""
    return None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Context with other switches."""
    values = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    module = sys.modules[__name__]
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


conv = float32_precision.Operation("cuda", "conv")
rnn = float32_precision.Operation("cuda", "rnn")


class _Module(ModuleType):
    """A module with attributes that live elsewhere."""

    fp32_precision = float32_precision.of("cuda", "all")

    @property
    def allow_tf32(self) -> bool:
        """Whether convolutions of float32 may round their operands to TF32."""
        return _flags.cudnn_allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        conv.fp32_precision = rnn.fp32_precision = "tf32" if value else "none"


sys.modules[__name__].__class__ = _Module
