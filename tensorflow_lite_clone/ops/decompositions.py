"""Matrix decompositions."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.mode import mode as modes
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.tensor import Tensor


class Qr(Op):
    """A = Q R with orthonormal columns in Q and R upper triangular."""

    label = "LinalgQr"

    def forward(F, x, *, mode):
        q, r = F.linalg.qr(x, mode=mode)
        return q, r


class QrResult(NamedTuple):
    """The factors of `qr`."""

    Q: Any
    R: Any


@public("linalg")
def qr(A: Tensor, mode: str = "reduced") -> QrResult:
    """The QR decomposition of (..., m, n) matrices, `mode` ``reduced``, ``complete`` or ``r``.

    With ``r`` Q is empty. There is no gradient in this version: NotImplementedError for an input
    that requires one.
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    if A.ndim < 2:
        raise RuntimeError(
            f"linalg.qr: The input tensor A must have at least 2 dimensions, got {A.ndim}"
        )
    if modes.grad and A.requires_grad:
        raise NotImplementedError("linalg.qr: the gradient is not implemented; detach() the input")
    if mode == "r":
        return QrResult(A.new_empty(0), apply(Qr, A, mode="reduced")[1])
    return QrResult(*apply(Qr, A, mode=mode))
