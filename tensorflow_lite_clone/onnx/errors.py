"""What goes wrong in an export, and what it warns of."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op of the model has no form in ONNX, or none that is known here."""


class OnnxExporterWarning(UserWarning):
    """The exported model may compute something else than the model."""


__all__ = ["OnnxExporterWarning", "UnsupportedOperatorError"]
