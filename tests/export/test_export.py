"""What surrounds the graphs: files, shapes of collections, trees of modules, operations."""

from __future__ import annotations

import copy
import dataclasses
import io
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch as oracle

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tests.export.compare import assert_close, converted, exported, oracle_program, our_program
from tests.export.programs import PROGRAMS, of
from tests.tools import aten

Point = namedtuple("Point", "x y")  # noqa: PYI024


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor | None = None


torch.export.register_dataclass(Pair, serialized_type_name="tests.Pair")


def test_signatures_of_operations_are_pytorchs() -> None:
    assert aten.FILE.read_text() == aten.text()


# -- files -----------------------------------------------------------------------------------------


def test_a_program_runs_without_its_source(tmp_path: Path) -> None:
    program = PROGRAMS["gpt_block"](torch)
    found = exported(torch, program)
    path = tmp_path / "program.pt2"
    torch.export.save(found, path, extra_files={"note": "written here"})
    expected = tmp_path / "expected.pt"
    torch.save([program.args[0], found.module()(*program.args)], expected)
    code = f"""
import tensorflow_lite_clone as torch
files = {{"note": ""}}
program = torch.export.load({str(path)!r}, extra_files=files)
assert files == {{"note": "written here"}}
x, y = torch.load({str(expected)!r})
assert torch.allclose(program.module()(x), y)
assert program.run_decompositions().module()(x[:, :3]).shape == (2, 3, 20)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".partial"] == []


def test_what_is_no_file_of_a_program(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="ExportedProgram"):
        torch.export.save(nn.ReLU(), io.BytesIO())
    with pytest.raises(RuntimeError, match="no archive"):
        torch.export.load(io.BytesIO(b"nothing"))
    file = io.BytesIO()
    oracle.export.save(oracle_program("mlp")[1], file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"\.pt2 archives are not read"):
        torch.export.load(file)
    later = io.BytesIO()
    with zipfile.ZipFile(later, "w") as archive:
        archive.writestr("format", "tensorflow_lite_clone.export\n99\n")
    later.seek(0)
    with pytest.raises(RuntimeError, match="version"):
        torch.export.load(later)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "program.pt2"
    path.write_text("old")
    program = exported(torch, PROGRAMS["mlp"](torch))
    program.graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default)[0].kwargs = {
        "x": object()
    }
    with pytest.raises(ValueError, match="no form in a file"):
        torch.export.save(program, path)
    assert path.read_text() == "old"


def test_containers_in_files() -> None:
    class Net(nn.Module):
        def forward(self, p: Any, d: Any) -> Any:
            return Point(p.x + d.left, p.y), Pair(p.x * 2), torch.max(p.x, 0)

    args = Point(torch.ones(2), torch.zeros(2)), Pair(torch.ones(2))
    program = torch.export.export(Net(), args)
    assert program.graph_signature.user_inputs == ("p_x", "p_y", "d_left")
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    point, pair, largest = torch.export.load(file).module()(*args)
    assert type(point) is Point
    assert type(pair) is Pair
    assert pair.right is None
    assert_close([*point, pair.left, *largest], [*Net()(*args)[0], args[0].x * 2, 1.0, 0])


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2])
def test_any_number_of_arguments(count: int) -> None:
    class Sum(nn.Module):
        def forward(self, x: Any, *others: Any, **named: Any) -> Any:
            return sum(others, x) + named["y"]

    batch = {0: torch.export.Dim("batch")}
    ones, twos = torch.ones(3, 2), torch.ones(5, 2) * 2
    others = {"others": (batch,) * count} if count else {}
    shapes = {"x": batch, **others, "y": batch}
    program = torch.export.export(Sum(), (ones,) * (1 + count), {"y": ones}, dynamic_shapes=shapes)
    assert_close(program.module()(*[twos] * (1 + count), y=twos), twos * (2 + count))


def test_shapes_by_tensor_and_by_examples() -> None:
    module = of(torch, lambda x, y: x @ y["w"])
    x, w = torch.ones(4, 3), torch.ones(3, 2)
    shapes = torch.export.ShapesCollection()
    shapes[x] = (torch.export.Dim.DYNAMIC, None)
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(6, 3), {"w": w}))
    for dynamic in (shapes, more):
        program = torch.export.export(module, (x, {"w": w}), dynamic_shapes=dynamic)
        (bounds,) = program.range_constraints.values()
        assert str(bounds) == "VR[2, int_oo]"
        more.verify(program)
        with pytest.raises(AssertionError, match="Guard failed"):
            program.module()(torch.ones(4, 5), {"w": w})
    shapes[torch.ones(1)] = (None,)
    with pytest.raises(ValueError, match="not found"):
        torch.export.export(module, (x, {"w": w}), dynamic_shapes=shapes)


def test_sizes_that_depend_on_values() -> None:
    module = of(torch, lambda x: (x[x > 0] * 2, x.nonzero(), torch.zeros(x[0, 0].long().item())))
    program = torch.export.export(module, (torch.ones(2, 2),))
    x = torch.tensor([[3.0, -1.0], [0.0, 2.0]])
    for each in (program, program.run_decompositions()):
        assert_close(each.module()(x), module(x))


@pytest.mark.parametrize("length", range(1, 9))
def test_counts_of_few_values_are_no_numbers(length: int) -> None:
    module = of(torch, lambda x: (x.nonzero().shape[0] * x, x[x > 0].numel() + x))
    program = torch.export.export(module, (torch.ones(length),))
    x = torch.arange(length).float()
    counted, added = program.module()(x)
    assert counted.equal((length - 1) * x) and added.equal(x + length - 1)


def test_checks_of_numbers_that_depend_on_values() -> None:
    def function(x: Any, y: Any) -> Any:
        count = x.item()
        torch._check(count >= 2)
        torch._check(count <= y.shape[0])
        return y.narrow(0, 0, count) * 2

    sizes = (None, {0: torch.export.Dim("size")})
    program = torch.export.export(
        of(torch, function), (torch.tensor(3), torch.arange(5.0)), dynamic_shapes=sizes
    )
    for each in (program, program.run_decompositions()):
        run = each.module()
        assert run(torch.tensor(6), torch.arange(8.0)).tolist() == [0, 2, 4, 6, 8, 10]
        for number, condition in ((1, "u0 >= 2"), (9, "u0 <= s")):
            with pytest.raises(RuntimeError, match=f"assertion failed for expression {condition}"):
                run(torch.tensor(number), torch.arange(8.0))


@pytest.mark.parametrize("size", range(8, 13))
def test_a_size_is_not_taken_for_one_that_depends_on_values(size: int) -> None:
    def function(x: Any, y: Any) -> Any:
        return torch.zeros(x.item()).sum() + torch.ones(y.shape[0]), y.shape[0]

    program = torch.export.export(of(torch, function), (torch.tensor(4), torch.zeros(size)))
    values, number = program.module()(torch.tensor(3), torch.zeros(size))
    assert values.shape == (size,) and number == size


def test_guards_of_sizes() -> None:
    auto = torch.export.Dim.AUTO
    module = of(torch, lambda x, y: x if x.shape[0] > y.shape[0] else y)
    program = torch.export.export(
        module, (torch.ones(5, 2), torch.ones(4, 2)), dynamic_shapes=({0: auto}, {0: auto})
    )
    run = program.module()
    assert run(torch.ones(7, 2), torch.ones(3, 2)).shape == (7, 2)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] > y.size\(\)\[0\]"):
        run(torch.ones(3, 2), torch.ones(7, 2))
    assert program.module(check_guards=False)(torch.ones(3, 2), torch.ones(7, 2)).shape == (3, 2)


# -- modules ---------------------------------------------------------------------------------------


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Any, y: Any = None) -> Any:
        return {"a": self.linear(x) + y}


class Tree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scaled, self.seq = Scaled(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.items = nn.ModuleList([nn.Linear(3, 3)])
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        x = self.seq(self.seq(self.scaled(x, y=x)["a"]))
        self.count.add_(1)
        return self.items[0](x) + self.count


def test_trees_of_modules() -> None:
    module, x = Tree(), torch.randn(2, 3)
    program = torch.export.export(module, (x,), preserve_module_call_signature=("scaled",))
    assert module.count.sum() == 0  # exporting leaves the module as it was
    tree = torch.export.unflatten(program)
    assert set(tree.state_dict()) == set(module.state_dict())
    paths = [path for path, _ in module.named_modules()]
    assert [path for path, _ in tree.named_modules()] == paths
    assert_close(tree(x), program.module()(x) - 1)  # both count in one buffer

    class Zero(nn.Module):
        def forward(self, x: Any, y: Any = None) -> Any:
            return {"a": x * 0}

    tree.scaled = Zero()
    tree.items.add_module("0", nn.Identity())
    expected = module.seq(module.seq(x * 0)) + module.count + 1
    assert_close(tree(x), expected)
    with pytest.raises(TypeError, match="adapter"):
        tree([x], 3)


def test_arguments_of_another_structure() -> None:
    class Swap(torch.export.FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[::-1]

    program = torch.export.export(of(torch, lambda x, y: x - y), (torch.ones(2), torch.zeros(2)))
    tree = torch.export.unflatten(program, Swap())
    assert_close(tree([torch.ones(2), torch.zeros(2)]), torch.zeros(2) - 1)


@pytest.mark.parametrize("name", ["encoder_layer", "bert_block", "resnet18"])
def test_programs_as_trees(name: str) -> None:
    program, found = our_program(name)
    found = copy.deepcopy(found)  # running writes to its buffers
    result = found.module()(*program.args)
    assert_close(torch.export.unflatten(found)(*program.args), result)


# -- operations ------------------------------------------------------------------------------------


def test_operations_of_a_program() -> None:
    @torch.library.custom_op("tests_export::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    program = torch.export.export(of(torch, lambda x: twice(x) + 1), (torch.ones(2),))
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert targets == ["tests_export.twice.default", "aten.add.Tensor"]
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    assert_close(torch.export.load(file).module()(torch.ones(2)), torch.full((2,), 3.0))


def test_functions_with_atens_arguments() -> None:
    def run(library: Any, x: Any, w: Any, b: Any, m: Any, v: Any) -> Any:
        return library.batch_norm(x, w, b, m, v, True, 0.1, 1e-5, False)

    class Net(nn.Module):
        def forward(self, *arguments: Any) -> Any:
            return run(torch, *arguments)

    values = [oracle.linspace(-1, 1, 6).view(3, 2), *[oracle.tensor(pair) for pair in (
        [1.0, 2.0], [3.0, 4.0], [0.0, 0.5], [1.0, 1.5])]]  # fmt: skip
    program = torch.export.export(Net(), tuple(map(converted, values)))
    assert_close(program.module()(*map(converted, values)), run(oracle, *values))


def test_operations_called_by_name() -> None:
    add = torch.ops.aten.add
    module = of(torch, lambda x: add.Tensor(x, x) + torch.ops.aten.relu(add(x, 1)))
    program = torch.export.export(module, (torch.ones(2),))
    names = [node.name for node in program.graph.nodes]
    assert names == ["x", "add", "add_1", "relu", "add_2", "output"]
    assert_close(program.module()(torch.ones(2)), torch.full((2,), 4.0))


def test_decompositions_of_a_program() -> None:
    table = torch.export.default_decompositions()
    del table[torch.ops.aten.linear.default]
    table[torch.ops.aten.relu.default] = lambda x: torch.clamp(x, min=0)
    program = exported(torch, PROGRAMS["mlp"](torch)).run_decompositions(table)
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert {"aten.linear.default", "aten.clamp.default"} <= names
    assert "aten.relu.default" not in names
    original = PROGRAMS["mlp"](torch).module
    original.load_state_dict(program.state_dict)
    assert_close(program.module()(torch.ones(5, 3)), original(torch.ones(5, 3)))


def test_autocast_is_part_of_the_program() -> None:
    def run(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ x
        return y.float() + x

    program = torch.export.export(of(torch, run), (torch.ones(3, 3),))
    x = torch.linspace(-1, 1, 9).view(3, 3)
    for each in (program, program.run_decompositions()):
        assert "wrap_with_autocast" in str(each)
        assert_close(each.module()(x), run(x))


def test_writes_become_outputs() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(2, 3))

        def forward(self, x: Any) -> Any:
            self.seen[0] += x
            self.seen[:, 1].mul_(2)
            self.seen[:, torch.tensor([2, 0])] = x[:2]
            x.add_(1)
            return self.seen.T.sum(0) + self.seen[1:].view(-1)[0]

    module, other = Net(), Net()
    program = torch.export.export(module, (torch.ones(3),)).run_decompositions()
    signature = program.graph_signature
    assert list(signature.buffers_to_mutate.values()) == ["seen"]
    assert list(signature.user_inputs_to_mutate.values()) == ["x"]
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    assert not any("_." in str(node.target) for node in calls)
    run, x, y = program.module(), torch.ones(3), torch.ones(3)
    for _ in range(2):
        assert_close(run(x), other(y))
    assert_close([x, run.seen], [y, other.seen])


def test_writes_by_indices_and_whole_dimensions() -> None:
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for accumulate in (False, True):
        theirs = oracle.zeros(2, 4), [None, oracle.tensor([1, 1, 3])], oracle.tensor(values.numpy())
        expected = oracle.ops.aten.index_put.default(*theirs, accumulate)
        zeros, indices = torch.zeros(2, 4), [None, torch.tensor([1, 1, 3])]
        for operation in (torch.ops.aten.index_put.default, torch.ops.aten.index_put_.default):
            assert_close(operation(zeros, indices, values, accumulate), expected)


def test_notes_on_nodes() -> None:
    program = exported(torch, PROGRAMS["dynamic_batch"](torch))
    node = program.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)[0]
    value = node.meta["val"]
    assert isinstance(value.shape[0], torch.SymInt)
    assert (str(value.shape[0]), value.shape[1], str(value.device)) == ("s31", 4, "cpu")
    assert "forward" in node.meta["stack_trace"]
    paths = [path for path, _ in node.meta["nn_module_stack"].values()]
    assert paths == ["", "0"]


def test_tensors_elsewhere_are_constants() -> None:
    outside = torch.tensor([1.0, 2.0])
    program = torch.export.export(of(torch, lambda x: x + outside), (torch.ones(2),))
    assert list(program.constants) == ["lifted_tensor_0"]
    assert_close(program.module()(converted(oracle.ones(2))), outside + 1)
