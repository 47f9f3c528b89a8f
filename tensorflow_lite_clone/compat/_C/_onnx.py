"""``torch._C._onnx``: the enumerations of the exporter. onnxruntime imports them from here."""

from __future__ import annotations

from tensorflow_lite_clone.onnx import OperatorExportTypes, TensorProtoDataType, TrainingMode

__all__ = ["OperatorExportTypes", "TensorProtoDataType", "TrainingMode"]
