"""``torch.functional``: functions of the face under an older name of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone._bind import names_of

if TYPE_CHECKING:  # the names are entered below

    def __getattr__(name: str) -> Any: ...


_NAMES = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot
    unique unique_consecutive unravel_index
""".split()
_FACE = names_of("torch")
globals().update({name: _FACE[name] for name in _NAMES})
__all__ = _NAMES  # noqa: PLE0605
