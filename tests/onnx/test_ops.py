"""Every op that has a rule: the op table's samples, each as a model of its own."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.onnx._graph import RULES
from tensorflow_lite_clone.onnx._tree import named_tensors, replaced
from tests.onnx.run import ATOL, RTOL, host, onnx, session
from tests.op_db import FAMILIES
from tests.op_db._case import OpInfo, Sample, TensorSpec, draw, materialize, tree_leaves
from tests.op_db._check import representable
from tests.op_db._device import OURS

#: onnxruntime has no kernel for a dtype, or onnx no NumPy type.
NOT_RUN = {"where.numbers", "Tensor.bfloat16"}
#: All pairs of dtypes, for most of which onnxruntime has no kernel.
PROMOTIONS = "promote."
#: How many samples of a family are exported at least: of some families ONNX has next to nothing.
LEAST = {
    "pointwise": 930, "special": 12, "special_more": 4, "reduce": 280, "shape": 300, "index": 300,
    "create": 30, "matmul": 130, "linalg_solve": 5, "softmax_loss": 450, "conv_pool": 180,
    "norm_misc": 95, "recurrent": 48, "fft": 16, "linalg_decomp": 15, "native": 85,
    "segments": 85, "standard_forms": 9,
}  # fmt: skip


def is_odd(sample: Sample) -> bool:
    """Whether a sample has infinities or NaN, for which runtimes have answers of their own."""
    values = [arg.literal for arg in tree_leaves((sample.args, sample.kwargs), TensorSpec)]
    return any(
        [v is not None and not np.isfinite(np.asarray(v, np.complex128)).all() for v in values]
    )


def model_of(op: OpInfo, args: tuple, kwargs: dict, count: int) -> Any:
    """The call of a sample as a function of its tensors."""

    def model(*tensors: Any) -> Any:
        order = iter(tensors)
        changed = replaced((args, kwargs), lambda _: next(order))
        return op.run(tlc, *changed)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"x{number}", kind) for number in range(count)]
    model.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return model


def exported(op: OpInfo, sample: Sample) -> tuple | None:
    """A sample's model proto, function and tensors; None where it is no model for a file."""
    dtype = next((d for d in ("float32", "int64") if d in op.dtypes), None)
    if dtype is None or not representable(sample, dtype):
        return None
    args, kwargs = materialize(draw(op, sample, dtype), OURS)
    tensors = [tensor for _, tensor in named_tensors((args, kwargs), "")]
    if not tensors or any(tensor.dtype.is_complex for tensor in tensors):
        return None
    model = model_of(op, args, kwargs, len(tensors))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is frozen, and what ops themselves warn of
        try:
            program = tlc.onnx.export(model, tuple(tensors))
        except tlc.onnx.OnnxExporterError:  # no rule, or no tensor as a result
            return None
    return program.model_proto, model, tensors


@pytest.mark.parametrize("family", FAMILIES)
def test_samples(family: str) -> None:
    done = 0
    for op in FAMILIES[family]:
        if op.name in NOT_RUN or op.name.startswith(PROMOTIONS):
            continue
        for sample in [sample for sample in op.samples if not is_odd(sample)]:
            found = exported(op, sample)
            if found is None:
                continue
            proto, model, tensors = found
            onnx.checker.check_model(proto, full_check=True)
            feeds = {v.name: host(t) for v, t in zip(proto.graph.input, tensors, strict=True)}
            results = session(proto).run(None, feeds)
            with tlc.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = model(*[tensor.detach().clone() for tensor in tensors])
            for got, (_, tensor) in zip(results, named_tensors(wanted, ""), strict=True):
                expected, where = host(tensor), f"{op.name} {sample}"
                assert (got.shape, got.dtype) == (expected.shape, expected.dtype), where
                np.testing.assert_allclose(got, expected, RTOL, ATOL, err_msg=where)
            done += 1
    assert done >= LEAST[family]


def test_rules_are_of_ops() -> None:
    of_functions = {"write_region", "lstm", "gru", "rnn_tanh", "rnn_relu"}
    assert set(RULES) - of_functions <= set(TABLE)
