"""Private names that packages import and call: as PyTorch's, or refused with a reason."""

from __future__ import annotations

import collections
from importlib import import_module

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import LIBRARIES, same


def module_of(lib, name):
    return import_module(f"{lib.__name__}.{name}")


@pytest.mark.parametrize("kind", "Byte Char Double Float Half Int Long Short".split())
def test_casts(kind):
    def script(lib):
        result = getattr(lib, f"_cast_{kind}")(lib.tensor([1.5, 3.0]))
        return str(result.dtype), result.tolist()

    same(script)


@pytest.mark.parametrize("shapes", [((2, 3), (3, 2)), ((2,), (2, 2)), ((2, 3), (2, 2))], ids=str)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_products_of_int8(shapes, dtype):
    def script(lib):
        a, b = (lib.full(shape, 100).to(getattr(lib, dtype)) for shape in shapes)
        return lib._int_mm(a, b)

    same(script)


def test_small_functions():
    same(lambda lib: lib._shape_as_tensor(lib.ones(2, 3)))
    same(lambda lib: lib._is_all_true(lib.tensor([True, False])))
    same(lambda lib: lib._is_any_true(lib.tensor([True, False])))
    same(lambda lib: repr(lib.chalf))
    same(
        lambda lib: lib._softmax_backward_data(
            lib.tensor([[1.0, 2]]), lib.tensor([[0.25, 0.75]]), 1, lib.float32
        )
    )
    a, b, ends = tlc.ones(4, 8), tlc.ones(2, 8, 3), tlc.tensor([1, 4], dtype=tlc.int32)
    assert tlc._grouped_mm(a, b, ends).equal(tlc.nn.functional.grouped_mm(a, b, offs=ends))


def test_an_export_says_that_it_is_one():
    def script(lib):
        seen = []

        class Model(lib.nn.Module):
            def forward(self, x):
                seen.append((lib.compiler.is_exporting(), lib.compiler.is_compiling()))
                return x + 1

        Model()(lib.ones(2))
        lib.export.export(Model(), (lib.ones(2),))
        return seen

    assert same(script) == [[False, False], [True, True]]


def test_autocast_casts_what_is_in_containers():
    def script(lib):
        values = {"a": lib.ones(1), "b": [lib.ones(1).double(), (lib.ones(1).long(), "text")]}
        found = lib.amp.autocast_mode._cast(values, "cpu", lib.bfloat16)
        return str(found["a"].dtype), str(found["b"][0].dtype), str(found["b"][1][0].dtype)

    same(script)


@pytest.mark.parametrize("width", [3, 60, 90])
@pytest.mark.parametrize("force_newline", [False, True])
def test_suffixes_of_printed_tensors(width, force_newline):
    same(
        lambda lib: lib._tensor_str._add_suffixes(
            "tensor(" + "1" * width, ["device='x'", "dtype=y"], 7, force_newline
        )
    )
    same(lambda lib: lib._tensor_str._str_intern(lib.ones(2), tensor_contents="[...]"))


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("allow_cpu", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cuda:1", 3, "cuda"])
def test_numbers_of_devices(device, allow_cpu, optional):
    if device == "cuda" and optional:
        pytest.skip("PyTorch asks for a GPU")
    same(lambda lib: lib._utils._get_device_index(device, optional, allow_cpu))
    same(lambda lib: lib._utils._element_size(lib.float64))


TREES = {
    "nested": {"a": [1, (2, 3)], "b": None},
    "ordered": collections.OrderedDict(a=1),
    "default": collections.defaultdict(list, a=1),
    "deque": collections.deque([1], maxlen=3),
    "leaf": 1,
    "unwritable": {object: 1},
}


@pytest.mark.parametrize("name", TREES)
def test_shapes_of_trees_in_files(name):
    def script(lib):
        tree = module_of(lib, "utils._pytree")
        spec = tree.tree_structure(TREES[name])
        text = tree.treespec_dumps(spec)
        assert tree.treespec_loads(text) == spec
        return text

    same(script)


def test_shapes_of_trees_that_are_refused():
    for call in (
        lambda tree: tree.treespec_dumps(3),
        lambda tree: tree.treespec_dumps(tree.tree_structure(1), 2),
        lambda tree: tree.treespec_loads("[3, {}]"),
        lambda tree: tree.treespec_loads('[1, {"type": "x", "context": 1, "children_spec": []}]'),
    ):
        same(lambda lib, call=call: call(module_of(lib, "utils._pytree")))


def test_classes_in_cpp_are_not_there():
    same(lambda lib: lib.classes.some.Thing)
    with pytest.raises(NotImplementedError, match="libraries in C"):
        tlc.classes.load_library("some.so")


def test_nested_tensors_are_refused():
    nested = module_of(tlc, "nested")
    for call in (
        lambda: nested.nested_tensor([tlc.ones(2)], layout=tlc.jagged),
        lambda: nested.as_nested_tensor([tlc.ones(2)]),
        lambda: nested.nested_tensor_from_jagged(tlc.ones(2), tlc.tensor([0, 2])),
        lambda: nested.to_padded_tensor(tlc.ones(2), 0.0),
        lambda: nested.narrow(tlc.ones(2), 0, 0, 1),
        lambda: nested.masked_select(tlc.ones(2), tlc.ones(2)),
    ):
        with pytest.raises(NotImplementedError, match="pad_sequence"):
            call()


def test_descriptions_for_an_exporter_of_torchscript():
    ours, theirs = (module_of(lib, "onnx.symbolic_helper") for lib in LIBRARIES)
    for name, dtype in ours.cast_pytorch_to_onnx.items():
        assert theirs.cast_pytorch_to_onnx[name].value == dtype.value
    assert ours.parse_args("v", "i")(same) is same
    for opset, name in ((9, "softmax"), (11, "unsqueeze"), (12, "dropout")):
        assert callable(getattr(module_of(torch, f"onnx.symbolic_opset{opset}"), name))
        with pytest.raises(NotImplementedError, match=name):
            getattr(module_of(tlc, f"onnx.symbolic_opset{opset}"), name)(None)
    with pytest.raises(NotImplementedError, match="some::op"):
        tlc.onnx.register_custom_op_symbolic("some::op", same, 9)


def test_calls_in_other_processes_before_they_meet():
    for name, given in {
        "rpc_sync": ("other", len), "rpc_async": ("other", len), "remote": ("other", len),
        "shutdown": (), "get_worker_info": ("other",),
    }.items():  # fmt: skip
        same(
            lambda lib, name=name, given=given: getattr(module_of(lib, "distributed.rpc"), name)(
                *given
            )
        )
    rpc = module_of(tlc, "distributed.rpc")
    assert rpc.TensorPipeRpcBackendOptions(rpc_timeout=3).rpc_timeout == 3
    with pytest.raises(RuntimeError, match="not been initialized"):
        rpc.RRef(3)
    same(lambda lib: module_of(lib, "distributed.autograd").context().__enter__())


def test_operations_of_tables():
    assert str(tlc.ops.aten.sym_constrain_range_for_size.default) in str(
        torch.ops.aten.sym_constrain_range_for_size.default
    )
    for lib in LIBRARIES:
        module_of(lib, "ao.quantization.fx._decomposed")

    def script(lib, dtype="int8", axis=0):
        x = lib.tensor([[1, 2], [3, 4]], dtype=lib.int8)
        scales, zeros = lib.tensor([0.5, 2.0]), lib.tensor([1, 0])
        operation = lib.ops.quantized_decomposed.dequantize_per_channel
        return operation(x, scales, zeros, axis, -128, 127, getattr(lib, dtype))

    same(script)
    same(lambda lib: script(lib, axis=1))
    same(lambda lib: script(lib, axis=2))
    same(lambda lib: script(lib, dtype="uint8"))


def test_conditions_on_sizes():
    for each in (module_of(lib, "fx.experimental.symbolic_shapes") for lib in LIBRARIES):
        for condition in (True, False):
            assert each.guard_or_false(condition) is each.guard_or_true(condition) is condition

    def script(lib):
        shapes = module_of(lib, "fx.experimental.symbolic_shapes")
        found = []

        class Model(lib.nn.Module):
            def forward(self, x):
                count = x.sum().item()
                found.append((shapes.guard_or_true(count > 1), shapes.guard_or_false(count > 1)))
                return x

        lib.export.export(Model(), (lib.tensor([1, 2]),))
        return found

    assert same(script) == [[True, False]]


def test_what_the_compiler_is_asked():
    def script(lib):
        inductor = module_of(lib, "_inductor")
        cudagraphs = {
            name: options.get("triton.cudagraphs", False)
            for name, options in inductor.list_mode_options().items()
        }
        return cudagraphs, inductor.list_mode_options("max-autotune-no-cudagraphs")

    same(script)
    same(lambda lib: module_of(lib, "_inductor").list_mode_options("x"))
    same(lambda lib: lib._C._get_privateuse1_backend_name())
    same(lambda lib: module_of(lib, "_C._functorch").is_legacy_batchedtensor(lib.ones(1)))


def test_operations_as_modules():
    def script(lib):
        module = module_of(lib, "ao.nn.quantized").FloatFunctional()
        module.activation_post_process = lib.nn.Softplus()
        x, y = lib.tensor([[1.0, -2.0]]), lib.tensor([[0.5, 1.0]])
        found = [
            module.add(x, y), module.mul(x, y), module.add_relu(x, y), module.matmul(x, y.T),
            module.cat([x, y]), module.cat((x, y), 1), module.add_scalar(x, 2),
            module.mul_scalar(x, 2),
        ]  # fmt: skip
        return found

    same(script)
    same(lambda lib: module_of(lib, "nn.quantized").FloatFunctional()(1))


def test_where_a_slice_lies():
    def script(lib):
        shard = module_of(lib, "distributed.tensor.placement_types").Shard
        return [
            shard.local_shard_size_and_offset(size, parts, rank)
            for size in range(8)
            for parts in (1, 2, 3, 5)
            for rank in range(parts)
        ]

    same(script)


@pytest.mark.parametrize("index", [0, -1, 2, -3])
def test_children_by_their_places(index):
    same(lambda lib: lib.nn.ModuleList([lib.nn.ReLU(), lib.nn.ReLU()])._get_abs_string_index(index))
