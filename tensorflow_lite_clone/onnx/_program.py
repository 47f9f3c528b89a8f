"""What an export gives: the model, and ways to save and run it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.onnx._tree import named_tensors
from tensorflow_lite_clone.ops.create.constructors import from_numpy
from tensorflow_lite_clone.tensor import Tensor

_LARGE = 2**31 - 1024  # a protobuf message has less than 2 GiB


def library(name: str) -> Any:
    """An optional library; ImportError says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ImportError(
            f"torch.onnx needs the package '{package}' here: pip install {package}"
        ) from None


class ONNXProgram:
    """An exported model: `model_proto` is ONNX's own object for it."""

    def __init__(self, model_proto: Any, without_weights: Any = None) -> None:
        self.model_proto = model_proto
        self.exported_program: Any = None
        self._without_weights = without_weights
        self._session: Any = None

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        inputs, outputs = [[value.name for value in part] for part in (graph.input, graph.output)]
        return f"ONNXProgram(inputs={inputs}, outputs={outputs}, nodes={len(graph.node)})"

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model with onnxruntime on the arguments of the original model."""
        if self._session is None:
            self.initialize_inference_session()
        return self._results(self._session.run(None, self._feeds(args, kwargs)))

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model with ONNX's own evaluator, which is slow and needs no onnxruntime."""
        evaluator = library("onnx.reference").ReferenceEvaluator(self.model_proto)
        return self._results(evaluator.run(None, self._feeds(args, kwargs)))

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Make the session of onnxruntime that calls use; `initializer` makes it from a path or
        the bytes of the model."""
        if initializer is None:
            runtime = library("onnxruntime")
            self._session = runtime.InferenceSession(
                self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        else:
            self._session = initializer(self.model_proto.SerializeToString())

    def release(self) -> None:
        """Let go of the session of onnxruntime."""
        self._session = None

    def optimize(self) -> None:
        """Nothing: exported models have no dead or doubled parts to begin with."""

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replace weights by those of the same names."""
        helper = library("onnx").numpy_helper
        for tensor in self.model_proto.graph.initializer:
            if tensor.name in state_dict:
                array = state_dict[tensor.name].detach().cpu().numpy()
                tensor.CopyFrom(helper.from_array(np.ascontiguousarray(array), tensor.name))
        self._session = None

    def save(
        self,
        destination: Any,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a path or a file object.

        With `external_data` large weights lie in a file of their own beside it, named
        ``destination + ".data"``; None does so for models that are too large for one file.
        """
        onnx = library("onnx")
        model = self.model_proto
        if keep_initializers_as_inputs or not include_initializers:
            model = _with_weights_as_inputs(onnx, model, include_initializers)
        if hasattr(destination, "write"):
            destination.write(model.SerializeToString())
            return
        path = os.fspath(destination)
        if external_data is None:
            external_data = model.ByteSize() > _LARGE
        if not external_data:
            onnx.save(model, path)
            return
        data = os.path.basename(path) + ".data"
        beside = os.path.join(os.path.dirname(path), data)
        if os.path.exists(beside):  # the library would append to it
            os.remove(beside)
        copy = onnx.ModelProto()
        copy.CopyFrom(model)  # saving takes the weights out
        onnx.save(copy, path, save_as_external_data=True, location=data)

    def _feeds(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        tensors = [tensor for _, tensor in named_tensors((*args, *kwargs.values()), "")]
        weights = {tensor.name for tensor in self.model_proto.graph.initializer}
        names = [v.name for v in self.model_proto.graph.input if v.name not in weights]
        return {
            name: tensor.detach().cpu().numpy() for name, tensor in zip(names, tensors, strict=True)
        }

    def _results(self, arrays: list[Any]) -> list[Tensor]:
        return [from_numpy(np.array(array)) for array in arrays]


def _with_weights_as_inputs(onnx: Any, model: Any, keep: bool) -> Any:
    """The model with an input per weight, which has a default value unless `keep` is off."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    have = {value.name for value in copy.graph.input}
    for tensor in copy.graph.initializer:
        if tensor.name not in have:
            copy.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    if not keep:
        del copy.graph.initializer[:]
    return copy
