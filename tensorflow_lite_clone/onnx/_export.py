"""`export`: run a model on example inputs, once or with several sizes, and write what it did."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.export.exported_program import ExportedProgram
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.onnx import _dynamic
from tensorflow_lite_clone.onnx._enums import OperatorExportTypes, TrainingMode
from tensorflow_lite_clone.onnx._exported import unpacked
from tensorflow_lite_clone.onnx._model import FROZEN, Run, build, equal
from tensorflow_lite_clone.onnx._program import ONNXProgram, library
from tensorflow_lite_clone.onnx._sizes import Symbol
from tensorflow_lite_clone.onnx._trace import Trace
from tensorflow_lite_clone.onnx._tree import named_tensors, replaced
from tensorflow_lite_clone.onnx.errors import OnnxExporterError, OnnxExporterWarning
from tensorflow_lite_clone.ops.random.generators import fork_rng
from tensorflow_lite_clone.storage import contiguous_storages
from tensorflow_lite_clone.tensor import Tensor

DEFAULT_OPSET = 20
_LEAST_OPSET, _LARGEST_OPSET = 18, 23  # the versions that the rules are written for
_state = {"exporting": False}


def is_in_onnx_export() -> bool:
    """Whether an export runs the model now."""
    return _state["exporting"]


def export(
    model: Callable[..., Any],
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Any, Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: Any = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[Any] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Write what `model` computes on example inputs as an ONNX model, to `f` if given.

    `model` is a module, a function or an exported program, which says itself what its inputs and
    dynamic dimensions are; `args` a tuple (or one tensor), whose tensors, with those in
    `kwargs`, are the inputs. What the model does with numbers and in Python's control flow is
    fixed, as is its training flag (`training`); parameters keep their names of the state dict.
    `dynamic_axes` ({input: {axis: name}} or {input: [axis, ...]}) or `dynamic_shapes` (as the
    arguments, {axis: name} in place of tensors) let dimensions vary: the model then runs on two
    sizes of these, and what differs is computed from sizes at run time. Gives an `ONNXProgram`,
    or None with ``dynamo=False``. The other arguments are PyTorch's; those not named here (but
    `verify`, which runs the result and compares) have no effect.

    Raises `errors.UnsupportedOperatorError` for an op that has no form in ONNX,
    `OnnxExporterError` where sizes do not follow from those of the inputs, and ImportError
    without the package onnx.
    """
    onnx = library("onnx")
    if custom_translation_table:
        raise NotImplementedError("export(): custom_translation_table is not supported")
    program_of = unpacked(model, args, kwargs) if isinstance(model, ExportedProgram) else None
    exported = model if program_of is not None else None
    if program_of is not None:
        model, args, kwargs = program_of.module, program_of.args, program_of.kwargs
        input_names = input_names or program_of.input_names
        output_names = output_names or program_of.output_names
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if opset > _LARGEST_OPSET:
        raise ValueError(f"export(): opset_version {opset} is above {_LARGEST_OPSET}")
    example = _Example(model, args, kwargs, input_names)
    dynamic: _dynamic.Dynamic = {}
    if program_of is not None:
        named = zip(example.tensors, program_of.input_names)
        dynamic = {name: program_of.dynamic[own] for name, own in named}
    elif dynamic_shapes is not None:
        dynamic = _dynamic.from_shapes(dynamic_shapes, example.arguments, list(example.tensors))
    elif dynamic_axes:
        ranks = {name: tensor.ndim for name, tensor in example.tensors.items()}
        dynamic = _dynamic.from_axes(dynamic_axes, ranks)
    with _prepared(model, training):
        run, others, symbols = _runs(example, dynamic)
    proto = build(
        onnx, run, others, symbols, _names_of(run, output_names, example), max(opset, _LEAST_OPSET),
        keep_initializers_as_inputs, export_params,
    )  # fmt: skip
    if opset < _LEAST_OPSET:
        proto = _converted(proto, opset)
    program = ONNXProgram(proto)
    program.exported_program = exported
    if verbose:
        print(library("onnx.printer").to_text(proto))
    if verify:
        _verify(program, model, example, training)
    if f is not None:
        program.save(f, external_data=external_data and dynamo)
    return program if dynamo else None


class _Example:
    """A model with its example inputs: `tensors` by the names they get."""

    def __init__(
        self, model: Any, args: Any, kwargs: dict[str, Any] | None, names: Sequence[str] | None
    ) -> None:
        args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        if args and type(args[-1]) is dict and kwargs is None:  # how keywords were given once
            args, kwargs = args[:-1], args[-1]
        self.model, self.args, self.kwargs = model, args, kwargs or {}
        function = model.forward if isinstance(model, Module) else model
        bound = inspect.signature(function).bind(*args, **self.kwargs)
        self.arguments: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            self.arguments.update(value if kind is inspect.Parameter.VAR_KEYWORD else {name: value})
        found: list[tuple[str, Tensor]] = []
        for name, value in self.arguments.items():
            found += named_tensors(value, name)
        given = list(names or ())
        if len(given) > len(found):
            raise ValueError(
                f"number of input names provided ({len(given)}) exceeded number of inputs "
                f"({len(found)})"
            )
        chosen = given + [name for name, _ in found[len(given) :]]
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"export(): input names are not unique: {chosen}")
        self.tensors = {name: tensor for name, (_, tensor) in zip(chosen, found)}
        self.call = bound.args, bound.kwargs

    def run(self, tensors: Mapping[str, Tensor]) -> tuple[Trace, list, list]:
        """Trace the model on other tensors in place of the example's."""
        named = _named_arrays(self.model)
        backend = _backend_of(self.model, tensors)
        trace = Trace(backend, named)
        inputs = [trace.input(tensor, name) for name, tensor in tensors.items()]
        order = iter(tensors.values())
        arguments = replaced(self.call, lambda _: next(order))
        with fork_rng(), no_grad(), contiguous_storages(), trace:
            result = self.model(*arguments[0], **arguments[1])
            results = [tensor for _, tensor in named_tensors(_plain(result), "")]
            outputs = [trace.content(tensor._storage.array) for tensor in results]
        if not outputs:
            raise OnnxExporterError("export(): the model returns no tensors")
        return trace, inputs, outputs


def _plain(result: Any) -> Any:
    """What a model returned, as tuples, lists and dicts."""
    return result.to_tuple() if hasattr(result, "to_tuple") else result


def _named_arrays(model: Any) -> dict[int, str]:
    if not isinstance(model, Module):
        return {}
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return {id(tensor._storage.array): name for name, tensor in reversed(tensors)}


def _backend_of(model: Any, tensors: Mapping[str, Tensor]) -> Any:
    parameters = model.parameters() if isinstance(model, Module) else ()
    for tensor in (*tensors.values(), *parameters):
        return tensor._storage.backend
    return backends.load("cpu")


@contextmanager
def _prepared(model: Any, training: TrainingMode) -> Iterator[None]:
    """The model in the wanted mode; flags and buffers are afterwards what they were."""
    modules = list(model.modules()) if isinstance(model, Module) else []
    flags = [module.training for module in modules]
    buffers = [(b, b.detach().clone()) for b in model.buffers()] if modules else []
    if training is not TrainingMode.PRESERVE:
        for module in modules:
            module.training = training is TrainingMode.TRAINING
    _state["exporting"] = True
    try:
        yield
    finally:
        _state["exporting"] = False
        for module, flag in zip(modules, flags):
            module.training = flag
        with no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _runs(example: _Example, dynamic: _dynamic.Dynamic) -> tuple[Run, list[Run], list[Symbol]]:
    """The run that is exported, those of other sizes, the dynamic dimensions."""
    if not any(dynamic.values()):
        run = Run(*example.run({n: t.detach().clone() for n, t in example.tensors.items()}))
        _warn_of_frozen(example, run)
        return run, [], []
    for attempt in range(len(_dynamic.ATTEMPTS)):
        symbols = _dynamic.symbols_of(dynamic, example.tensors, attempt)
        try:
            first, *others = _runs_of_sizes(example, dynamic, symbols)
        except OnnxExporterError:
            raise
        except Exception as error:
            failure = error
        else:
            return first, others, symbols
    raise OnnxExporterError(
        f"the model does not run with other sizes of its dynamic dimensions: {failure}"
    ) from failure


def _runs_of_sizes(
    example: _Example, dynamic: _dynamic.Dynamic, symbols: list[Symbol]
) -> list[Run]:
    sizes = {symbol.name: symbol.size for symbol in symbols}
    runs = []
    for number in range(_dynamic.RUNS):
        tensors = {
            name: _dynamic.resized(
                tensor, {axis: sizes[word][number] for axis, word in dynamic.get(name, {}).items()}
            )
            for name, tensor in example.tensors.items()
        }
        runs.append(Run(*example.run(tensors)))
    return runs


def _warn_of_frozen(example: _Example, run: Run) -> None:
    """Warn where a second run, on the same numbers in another order, has other constants."""
    changed = {n: t.detach().flip(list(range(t.ndim))) for n, t in example.tensors.items()}
    try:
        trace, _, _ = example.run(changed)
    except Exception:  # the example's order may matter to the model, as that of lengths does
        return
    before, after = [[value.constant for value in t.constants] for t in (run.trace, trace)]
    if [call.name for call in run.trace.program] != [
        call.name for call in trace.program
    ] or not all(map(equal, before, after)):
        warnings.warn(FROZEN, OnnxExporterWarning, stacklevel=level_outside())


def _names_of(run: Run, given: Sequence[str] | None, example: _Example) -> list[str]:
    """Names of the outputs: those given, then the ops that made them."""
    names = list(given or ())
    if len(names) > len(run.outputs):
        raise ValueError(
            f"number of output names provided ({len(names)}) exceeded number of outputs "
            f"({len(run.outputs)})"
        )
    taken = {*names, *example.tensors, *run.trace.used}
    for value in run.outputs[len(names) :]:
        word = value.call.name if value.call is not None else "output"
        name, number = word, 0
        while name in taken:
            number += 1
            name = f"{word}_{number}"
        taken.add(name)
        names.append(name)
    return names


def _converted(proto: Any, opset: int) -> Any:
    """The model in an older version of the operators, if the library can convert it."""
    try:
        return library("onnx.version_converter").convert_version(proto, opset)
    except Exception as error:
        warnings.warn(
            f"the model stays at opset {_LEAST_OPSET}: it has no form in opset {opset} ({error})",
            OnnxExporterWarning,
            stacklevel=level_outside(),
        )
        return proto


def _verify(program: ONNXProgram, model: Any, example: _Example, training: TrainingMode) -> None:
    """Raise OnnxExporterError where the exported model gives something else than the model."""
    found = program(*example.tensors.values())
    with _prepared(model, training), no_grad():
        result = model(*example.call[0], **example.call[1])
    for number, (_, tensor) in enumerate(named_tensors(_plain(result), "")):
        if not found[number].allclose(tensor.cpu(), rtol=1e-4, atol=1e-5, equal_nan=True):
            raise OnnxExporterError(f"output {number} of the exported model differs")
