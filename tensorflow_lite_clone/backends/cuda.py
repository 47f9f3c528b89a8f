"""``torch.backends.cuda``: how matrix products and attention on CUDA devices are computed.

Which form of attention runs follows from its inputs here; the switches for it are kept and
answered, and have no other effect.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from tensorflow_lite_clone.backends import float32_precision
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.flags import flags as _flags


class _Matmul:
    """The switches of matrix products; AttributeError for one that PyTorch has not."""

    __slots__ = (
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
    )

    def __init__(self) -> None:
        # Permissions that are not made use of: two-byte products are summed in float32.
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False

    fp32_precision = float32_precision.of("cuda", "matmul")

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 matrices may round their operands to TF32."""
        return _flags.matmul_allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        self.fp32_precision = "tf32" if value else "ieee"


matmul = _Matmul()


def is_built() -> bool:
    """True: CUDA devices are served where CuPy is installed."""
    return True


class SDPBackend(IntEnum):
    """A form of scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


#: The forms that may be used.
_allowed = set(SDPBackend) - {SDPBackend.ERROR}


def allowed_attention() -> list[SDPBackend]:
    """The forms of attention that may be used, in order of preference."""
    order = (
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
        SDPBackend.OVERRIDEABLE,
    )
    return [form for form in order if form in _allowed]


@contextmanager
def only_attention(forms: set[SDPBackend]) -> Iterator[None]:
    """Context in which these forms of attention may be used."""
    before = set(_allowed)
    _replace(forms)
    try:
        yield
    finally:
        _replace(before)


def _replace(forms: set[SDPBackend]) -> None:
    _allowed.clear()
    _allowed.update(forms)


def _switch(form: SDPBackend, enabled: bool) -> None:
    if enabled:
        _allowed.add(form)
    else:
        _allowed.discard(form)


def enable_flash_sdp(enabled: bool) -> None:
    """Allow flash attention, or not."""
    _switch(SDPBackend.FLASH_ATTENTION, enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow memory-efficient attention, or not."""
    _switch(SDPBackend.EFFICIENT_ATTENTION, enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Allow attention by its formula, or not."""
    _switch(SDPBackend.MATH, enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow cuDNN's attention, or not."""
    _switch(SDPBackend.CUDNN_ATTENTION, enabled)


def flash_sdp_enabled() -> bool:
    """Whether flash attention is allowed."""
    return SDPBackend.FLASH_ATTENTION in _allowed


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is allowed."""
    return SDPBackend.EFFICIENT_ATTENTION in _allowed


def math_sdp_enabled() -> bool:
    """Whether attention by its formula is allowed."""
    return SDPBackend.MATH in _allowed


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention is allowed."""
    return SDPBackend.CUDNN_ATTENTION in _allowed


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[dict]:
    """Context in which these forms may be used; `nn.attention.sdpa_kernel` is newer."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
        "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
        "manager, with updated signature.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    enabled = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    with only_attention({form for form, allowed in enabled.items() if allowed}):
        yield {}
