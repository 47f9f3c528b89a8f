"""``T``, ``mT``, ``H`` and ``mH``: transposes that are properties, and `adjoint`."""

from __future__ import annotations

import warnings

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.ops.shape.views import Permute, Transpose, apply_permute
from tensorflow_lite_clone.tensor import Tensor


def _get_T(self: Tensor) -> Tensor:
    """Dimensions in reversed order."""
    array = self._storage.array
    if array.ndim != 2:
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions.",
            stacklevel=level_outside(),
        )
    axes = (1, 0) if array.ndim == 2 else tuple(range(array.ndim))[::-1]
    return apply_permute(Permute, self, axes)


def _get_mT(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    ndim = self._storage.physical.ndim
    if ndim == 1:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {ndim}-D tensor."
        )
    axes = (*range(ndim - 2), ndim - 1, ndim - 2) if ndim else ()
    return apply_permute(Transpose, self, axes)


@public("torch", "method")
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of matrices, batched over leading dimensions."""
    ndim = input._storage.physical.ndim
    if ndim == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{ndim}-D tensor."
        )
    transposed = _get_mT(input)
    return transposed.conj() if input.dtype.is_complex else transposed


def _get_H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    ndim = self._storage.physical.ndim
    if ndim != 2 and ndim != 0:
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
        )
    return adjoint(self) if ndim else self


for _name, _getter in {"T": _get_T, "mT": _get_mT, "H": _get_H, "mH": adjoint}.items():
    export(property(_getter), "property", name=_name)
