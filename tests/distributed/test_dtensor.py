"""Tensors on meshes: every change of placements against the definition, values and gradients."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone.distributed import tensor as dtensors
from tensorflow_lite_clone.distributed.device_mesh import init_device_mesh
from tensorflow_lite_clone.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from tests.distributed.process_groups import HERE, world_here

PLACEMENTS = {"R": Replicate(), "S0": Shard(0), "S1": Shard(1), "P": Partial()}
SHAPES = [(5, 7), (2, 8), (1, 3)]  # the last leave processes without anything


def part(whole, place, placements, grid=(2, 2)):
    """The definition: a process's part of `whole`; a k-th share of what is a sum's term."""
    for parts, index, name in zip(grid, place, placements):
        if name[0] == "S":
            dim = int(name[1])
            length = -(-whole.shape[dim] // parts)
            start = min(index * length, whole.shape[dim])
            whole = whole.take(range(start, min(start + length, whole.shape[dim])), dim)
        elif name == "P":
            whole = whole * (index + 1) / (parts * (parts + 1) / 2)
    return whole


def rest(placements):
    return tuple(["R" if name == "P" else name for name in placements])


def mesh_of(rank, *shape):
    mesh = init_device_mesh(HERE, shape, mesh_dim_names=("a", "b")[: len(shape)])
    return mesh, mesh.get_coordinate()


def compare_all(rank, size, shape, grid):
    """All pairs of placements on a grid; gives what is wrong."""
    mesh, place = mesh_of(rank, *grid)
    whole, gradient = np.random.default_rng(0).normal(size=(2, *shape))
    wrong = []
    names = list(itertools.product(PLACEMENTS, repeat=len(grid)))
    for source, target in itertools.product(names, names):
        if any(after == "P" != before for before, after in zip(source, target)):
            continue
        x = torch.tensor(part(whole, place, source, grid), device=HERE).requires_grad_()
        placements = [PLACEMENTS[name] for name in source]
        full = DTensor.from_local(x, mesh, placements, shape=torch.Size(shape), stride=(1, 1))
        moved = full.redistribute(placements=[PLACEMENTS[name] for name in target])
        y = moved.to_local()
        y.backward(torch.tensor(part(gradient, place, rest(target), grid), device=HERE))
        expected = part(whole, place, target, grid)
        g = part(gradient, place, rest(source), grid)
        if y.shape != expected.shape or not np.allclose(y.detach().cpu().numpy(), expected):
            wrong.append((source, target, "value"))
        if x.grad.shape != g.shape or not np.allclose(x.grad.cpu().numpy(), g):
            wrong.append((source, target, "gradient"))
        if moved.shape != torch.Size(shape):
            wrong.append((source, target, "shape"))
    return wrong


@pytest.mark.parametrize("shape", SHAPES)
def test_all_changes_of_placements(shape):
    assert world_here(4).run(compare_all, shape, (2, 2)) == [[]] * 4


@pytest.mark.parametrize("size", [2, 4])
def test_all_changes_along_one_dimension(size):
    assert world_here(size).run(compare_all, (5, 7), (size,)) == [[]] * size


def described(rank, size):
    mesh, place = mesh_of(rank, 2, 2)
    x = torch.arange(40.0, device=HERE).view(10, 4) + 100 * rank
    cut = distribute_tensor(x, mesh, [Shard(0), Shard(-1)])
    own = distribute_tensor(x, mesh, [Replicate(), Shard(0)], src_data_rank=None)
    terms = distribute_tensor(x, mesh, [Partial(), Replicate()])
    return (
        (cut.shape, cut.size(), cut.size(0), cut.ndim, cut.dim(), cut.numel(), cut.stride()),
        (cut.placements, cut.device_mesh == mesh, str(cut.dtype), cut.device.type == HERE),
        (cut.requires_grad, cut.is_leaf, isinstance(cut, torch.Tensor)),
        cut.to_local().cpu().numpy(),
        own.to_local().cpu().numpy(),
        terms.full_tensor().cpu().numpy(),
        cut.full_tensor().cpu().numpy(),
        repr(cut).startswith("DTensor(local_tensor=tensor([["),
        distribute_tensor(x, mesh).placements,
        distribute_tensor(cut, mesh, [Shard(0), Shard(1)]) is cut,
        dtensors._utils.compute_local_shape_and_global_offset((5, 7), mesh, [Shard(0), Shard(0)]),
    )


def test_what_is_known_of_one():
    whole = np.arange(40.0).reshape(10, 4)
    for rank, found in enumerate(world_here(4).run(described)):
        place = divmod(rank, 2)
        assert found[0] == ((10, 4), (10, 4), 10, 2, 2, 40, (4, 1))
        assert found[1] == ((Shard(0), Shard(1)), True, "torch.float32", True)
        assert found[2] == (False, True, True)
        np.testing.assert_array_equal(found[3], part(whole, place, ("S0", "S1")))
        np.testing.assert_array_equal(found[4], part(whole + 100 * rank, place, ("R", "S0")))
        np.testing.assert_array_equal(found[5], whole)
        np.testing.assert_array_equal(found[6], whole)
        assert found[7:10] == (True, (Replicate(), Replicate()), True)
        offsets = {(0, 0): 0, (0, 1): 2, (1, 0): 3, (1, 1): 4}
        sizes = {(0, 0): 2, (0, 1): 1, (1, 0): 1, (1, 1): 1}
        assert found[10] == ((sizes[place], 7), (offsets[place], 0))


def gradients(rank, size):
    mesh, _ = mesh_of(rank, size)
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0], device=HERE) * (rank + 1)
    x = distribute_tensor(torch.zeros(4, device=HERE), mesh, [Shard(0)]).requires_grad_()
    # Each process computes a term from the whole: their gradients are added.
    (x.full_tensor(grad_placements=[Partial()]) * weights).sum().backward()
    g = x.grad
    repeated = distribute_tensor(torch.zeros(4, device=HERE), mesh).requires_grad_()
    (repeated.to_local(grad_placements=[Partial()]) * weights).sum().backward()
    leaf = torch.zeros(2, device=HERE).requires_grad_()
    (DTensor.from_local(leaf, mesh, [Shard(0)]).full_tensor() * weights).sum().backward()
    own = g.placements, g.to_local().tolist()
    return own, repeated.grad.to_local().tolist(), leaf.grad.tolist()


def test_gradients_placed_otherwise():
    for rank, found in enumerate(world_here(2).run(gradients)):
        summed = [3.0, 6.0, 9.0, 12.0]
        part_of_sum = summed[2 * rank : 2 * rank + 2]
        assert found[0] == ((Shard(0),), part_of_sum)
        assert found[1] == summed
        assert found[2] == ([1.0, 2.0], [6.0, 8.0])[rank]


def reductions(rank, size):
    mesh, _ = mesh_of(rank, size)
    x = torch.tensor([rank, -rank, 2], dtype=torch.float64, device=HERE)
    found = {}
    for op in ("sum", "avg", "min", "max", "product"):
        terms = DTensor.from_local(x, mesh, [Partial(op)])
        cut = terms.redistribute(placements=[Shard(0)])
        found[op] = terms.full_tensor().tolist(), cut.full_tensor().tolist()
    return found


def test_reductions():
    for found in world_here(2).run(reductions):
        values = {
            "sum": [1, -1, 4],
            "avg": [0.5, -0.5, 2],
            "min": [0, -1, 2],
            "max": [1, 0, 2],
            "product": [0, 0, 4],
        }
        assert found == {op: (value, value) for op, value in values.items()}


def made_and_changed(rank, size):
    mesh, _ = mesh_of(rank, size)
    torch.manual_seed(rank)
    options = {"device_mesh": mesh, "placements": [Shard(0)]}
    normal = dtensors.randn(3, 2, dtype=torch.float64, **options)
    same = normal.full_tensor()
    dist.broadcast(same, 0)
    x = dtensors.ones(3, 2, **options, requires_grad=True)
    y = dtensors.zeros(3, 2, device_mesh=mesh, placements=[Shard(1)])
    detached = x.detach()
    detached.copy_(y)  # from other slices
    clone = copy.deepcopy(x).double()
    local = torch.full((2,), float(rank), device=HERE)
    checked = DTensor.from_local(local, mesh, [Replicate()], run_check=True)
    return (
        torch.equal(same, normal.full_tensor()),
        dtensors.full((3,), 7.0, **options).full_tensor().tolist(),
        dtensors.empty((4, 3), **options).to_local().shape,
        (x.requires_grad, detached.requires_grad, x.full_tensor().abs().sum().item()),
        (str(clone.dtype), clone.shape, type(clone).__name__, clone.placements),
        checked.to_local().tolist(),
    )


def test_factories_and_conversions():
    for found in world_here(2).run(made_and_changed):
        assert found == (
            True,
            [7.0, 7.0, 7.0],
            (2, 3),
            (True, False, 0.0),
            ("torch.float64", (3, 2), "DTensor", (Shard(0),)),
            [0.0, 0.0],
        )


def in_a_module(rank, size):
    mesh, _ = mesh_of(rank, size)
    torch.manual_seed(rank)

    def cut_rows(name, module, mesh):
        if isinstance(module, torch.nn.Linear):
            whole = distribute_tensor(module.weight, mesh, [Shard(0)])
            module.register_parameter("weight", torch.nn.Parameter(whole))

    def enter(module, inputs, mesh):
        return inputs[0] * 2

    def leave(module, output, mesh):
        gathered = DTensor.from_local(output, mesh, [Shard(1)])
        return gathered.full_tensor()

    module = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False, device=HERE))
    module = distribute_module(module, mesh, cut_rows, enter, leave)
    weight = module[0].weight
    state = module.state_dict()
    whole = state["0.weight"].full_tensor()
    y = module(torch.ones(1, 3, device=HERE))
    copied = copy.deepcopy(module)
    copied.load_state_dict({"0.weight": whole * 2})
    twice = copied.state_dict()["0.weight"].full_tensor()
    copied.load_state_dict(state, assign=True)
    columns = {"0.weight": distribute_tensor(whole * 3, mesh, [Shard(1)])}
    module.load_state_dict(columns)
    return (
        (type(weight).__name__, weight.shape, weight.placements, weight.is_leaf),
        (isinstance(weight, torch.nn.Parameter), type(state["0.weight"]).__name__),
        torch.allclose(y, 2 * whole.sum(1)),
        torch.equal(twice, 2 * whole),
        torch.equal(weight.full_tensor(), 3 * whole),
        (type(copied[0].weight).__name__, torch.equal(copied[0].weight.full_tensor(), whole * 3)),
        weight.to_local() is weight and weight.dtensor.shape == (4, 3),
        repr(weight).endswith("of (4, 3) with placements=(Shard(dim=0),))"),
        whole.cpu().numpy(),
    )


def test_parameters_of_a_module():
    results = world_here(2).run(in_a_module)
    for found in results:
        assert found[:8] == (
            ("LocalParameter", (2, 3), (Shard(0),), True),
            (True, "DTensor"),
            True,
            True,
            True,
            ("LocalParameter", True),  # what is assigned shares memory with what gave it
            True,
            True,
        )
        np.testing.assert_array_equal(found[8], results[0][8])  # the first process's values


def errors(rank, size):
    mesh, _ = mesh_of(rank, 2, 2)
    x = torch.ones(4, 6, device=HERE)
    whole = distribute_tensor(x, mesh)
    small = torch.nn.Linear(2, 2, device=HERE)
    calls = (
        lambda: distribute_tensor(x, mesh, [Shard(0)]),
        lambda: distribute_tensor(x, mesh, [Shard(2), Replicate()]),
        lambda: distribute_tensor(x.requires_grad_() * 2, mesh),
        lambda: distribute_tensor(whole, mesh, [Shard(0), Replicate()]),
        lambda: DTensor.from_local(x, mesh, [Shard(5), Replicate()]),
        lambda: DTensor.from_local(x, mesh, [Replicate()] * 2, shape=x.shape),
        lambda: DTensor.from_local(x, mesh, [Partial("max"), Partial("avg")]),
        lambda: whole.redistribute(),
        lambda: whole.redistribute(placements=[Partial(), Replicate()]),
        lambda: whole.copy_(x),
        lambda: distribute_module(distribute_module(small, mesh), mesh),
        lambda: whole + x,
        lambda: x + whole,
        lambda: whole.sum(),
        lambda: copy.copy(whole),
        lambda: torch.cat([whole, whole]),
        lambda: whole.tolist(),
        lambda: torch.nn.functional.softmax(whole, 0),
        lambda: whole[0],
    )
    found = []
    for call in calls:
        try:
            found.append(repr(call()))
        except NotImplementedError as error:
            found.append(f"NotImplementedError: {error}")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def test_dtensor_unsupported_calls_raise():
    # Those down to distribute_module are PyTorch's, by type and message.
    expected = [
        "ValueError: `placements` must have the same length as `device_mesh.ndim`! Found placements"
        " length: 1, and device_mesh.ndim: 2.",
        "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
        "RuntimeError: `distribute_tensor` should be used to distribute leaf tensors! but found "
        "non-leaf tensor!",
        "ValueError: Cannot distribute a DTensor with placements",
        "RuntimeError: Sharding dim 5 greater than tensor ndim 2 for placement number 0",
        "RuntimeError: ('Found shape:torch.Size([4, 6]), stride:None.', 'Please pass both",
        "ValueError: Mixed Partial reduce types are not supported in the same placement list.",
        "RuntimeError: placements is needed for redistribute!",
        "RuntimeError: Can not redistribute from R to P(sum), redistributing to Partial is for",
        "RuntimeError: copy_ got mixed torch.Tensor and DTensor",
        "RuntimeError: distribute_module should only be called once on a module, but it has",
        "RuntimeError: __add__() got mixed torch.Tensor and DTensor",
        "RuntimeError: __radd__() got mixed torch.Tensor and DTensor",
    ]
    for found in world_here(4).run(errors):
        for message, wanted in zip(found, expected):
            assert message.startswith(wanted), message
        for message in found[len(expected) :]:
            assert message.startswith("NotImplementedError: a DTensor"), message


def test_placements():
    # PyTorch's texts.
    placements = [Shard(1), Replicate(), Partial(), Partial("max")]
    assert repr(placements) == "[Shard(dim=1), Replicate(), Partial(sum), Partial(max)]"
    assert [str(placement) for placement in placements] == ["S(1)", "R", "P(sum)", "P(max)"]
    assert Shard(1).is_shard(dim=1) and not Shard(1).is_shard(0) and not Partial().is_shard()
    assert Partial().is_partial("sum") and not Partial().is_partial("avg")
    assert Shard(0) == Shard(dim=0) and len({Shard(0), Shard(0), Replicate(), Replicate()}) == 2
