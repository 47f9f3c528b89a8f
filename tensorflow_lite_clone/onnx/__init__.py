"""Models as ONNX files, as ``torch.onnx``: `export` writes what a model computes.

The model runs on example inputs while hooks around the dispatcher note every op with its inputs
and results; a rule per op writes it with ONNX's operators. `docs/onnx.md` says what that means for
models.
"""

from __future__ import annotations

from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.onnx import errors, operators
from tensorflow_lite_clone.onnx._enums import (
    OperatorExportTypes,
    TensorProtoDataType,
    TrainingMode,
)
from tensorflow_lite_clone.onnx._export import export, is_in_onnx_export
from tensorflow_lite_clone.onnx._program import ONNXProgram
from tensorflow_lite_clone.onnx._registration import (
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)
from tensorflow_lite_clone.onnx.errors import OnnxExporterError

mount_compat(__path__, __name__)

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "operators",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]
