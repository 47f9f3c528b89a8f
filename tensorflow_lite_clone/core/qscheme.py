"""Quantization schemes: of what numbers share a scale, and where zero lies among the levels."""

from __future__ import annotations


class QScheme:
    """A scheme, printed as torch prints it (``torch.per_tensor_affine``)."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return QScheme.by_name, (self.name,)

    @staticmethod
    def by_name(name: str) -> QScheme:
        """The scheme called `name`."""
        return SCHEMES[name]


per_tensor_affine = QScheme("per_tensor_affine")
per_tensor_symmetric = QScheme("per_tensor_symmetric")
per_channel_affine = QScheme("per_channel_affine")
per_channel_symmetric = QScheme("per_channel_symmetric")
SCHEMES = {
    scheme.name: scheme
    for scheme in (
        per_tensor_affine,
        per_tensor_symmetric,
        per_channel_affine,
        per_channel_symmetric,
    )
}
