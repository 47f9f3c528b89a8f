"""``torch.backends.cuda``: how matrix products on CUDA devices are computed."""

from __future__ import annotations

from tensorflow_lite_clone.core.flags import flags as _flags


class _Matmul:
    """The switches of matrix products."""

    #: Kept for compatibility: two-byte products are summed in float32 throughout.
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 matrices may round their operands to TF32."""
        return _flags.matmul_allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _flags.set_matmul_precision("high" if value else "highest")


matmul = _Matmul()


def is_built() -> bool:
    """True: CUDA devices are served where CuPy is installed."""
    return True
