"""``torch.onnx.symbolic_helper``: what describes operations to PyTorch's TorchScript exporter.

The exporter here knows operations by rules of its own. Packages (onnxruntime, transformers' SEW-D)
write such descriptions in their code, which nothing calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tensorflow_lite_clone.onnx import TensorProtoDataType

#: ONNX's dtype by the name of TorchScript's.
cast_pytorch_to_onnx = {
    "Byte": TensorProtoDataType.UINT8,
    "Char": TensorProtoDataType.INT8,
    "Double": TensorProtoDataType.DOUBLE,
    "Float": TensorProtoDataType.FLOAT,
    "Half": TensorProtoDataType.FLOAT16,
    "Int": TensorProtoDataType.INT32,
    "Long": TensorProtoDataType.INT64,
    "Short": TensorProtoDataType.INT16,
    "Bool": TensorProtoDataType.BOOL,
    "ComplexFloat": TensorProtoDataType.COMPLEX64,
    "ComplexDouble": TensorProtoDataType.COMPLEX128,
    "BFloat16": TensorProtoDataType.BFLOAT16,
    "Undefined": TensorProtoDataType.UNDEFINED,
}


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """A decorator that says what a description takes: it changes nothing."""
    return lambda function: function


def refused(name: str) -> Callable[..., NoReturn]:
    """The function `name` of a description: NotImplementedError where it is called."""

    def describe(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: the exporter here builds no graphs of TorchScript")

    describe.__name__ = name
    return describe


_get_const, _maybe_get_const, _is_none = map(
    refused, ("_get_const", "_maybe_get_const", "_is_none")
)
