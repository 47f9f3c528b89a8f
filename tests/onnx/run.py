"""Export a model, check the file's grammar, and run it elsewhere: in onnxruntime."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tests.device import DEVICE

onnx = pytest.importorskip("onnx", reason="needs the package onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

RTOL, ATOL = 1e-4, 1e-5  # float32 sums in another order


def session(proto: Any) -> Any:
    """onnxruntime's session of a model, without its own rewriting."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def export(model: Any, *args: Any, **options: Any) -> Any:
    """The checked model proto of an export."""
    if isinstance(model, nn.Module):
        model.to(DEVICE)
    proto = tlc.onnx.export(model, args, **options).model_proto
    onnx.checker.check_model(proto, full_check=True)
    return proto


def tensors_of(result: Any) -> list[Any]:
    if isinstance(result, tlc.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [t for part in result for t in tensors_of(part)] if isinstance(result, Iterable) else []


def host(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def compare(proto: Any, model: Any, *args: Any) -> None:
    """The exported model gives what the model gives."""
    found = session(proto).run(None, dict(zip(names(proto), map(host, tensors_of(args)))))
    with tlc.no_grad():
        wanted = tensors_of(model(*args))
    assert len(found) == len(wanted)
    for got, tensor in zip(found, wanted):
        expected = host(tensor)
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=RTOL, atol=ATOL)


def names(proto: Any) -> list[str]:
    """The inputs that have no value of their own."""
    weights = {tensor.name for tensor in proto.graph.initializer}
    return [value.name for value in proto.graph.input if value.name not in weights]


def kinds(proto: Any) -> set[str]:
    return {node.op_type for node in proto.graph.node}


def check(model: Any, *args: Any, more: tuple = (), **options: Any) -> Any:
    """Export, compare on the example and on arguments of other sizes; the model proto."""
    if isinstance(model, nn.Module):
        model.eval()
    proto = export(model, *args, **options)
    compare(proto, model, *args)
    for others in more:
        compare(proto, model, *others)
    return proto


def saved(model: Any, *args: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    tlc.onnx.export(model, args, buffer, **options)
    return buffer.getvalue()
