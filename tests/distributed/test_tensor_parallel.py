"""Layers that are cut over processes compute what the whole layers do."""

from __future__ import annotations

import copy
import warnings
from collections import Counter

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed import collectives
from tensorflow_lite_clone.distributed.device_mesh import init_device_mesh
from tensorflow_lite_clone.distributed.tensor import DTensor, Replicate, Shard
from tensorflow_lite_clone.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from tests.distributed.cut_models import (
    WIDTH,
    Attention,
    worst,
)
from tests.distributed.process_groups import HERE, world_here


def counted(rank, size, plan):
    """The collectives of a forward and of a backward pass of two layers, or of attention."""
    mesh = init_device_mesh(HERE, (size,))
    cut = None if plan == "megatron" else Shard(1)
    if plan == "attention":
        model, gather = Attention().to(HERE), Replicate()
        styles = {
            "": PrepareModuleInput(input_layouts=cut, desired_input_layouts=gather),
            "[qkv]": ColwiseParallel(),
            "o": RowwiseParallel(output_layouts=cut),
        }
    else:
        model = nn.Sequential(nn.Linear(WIDTH, 6), nn.ReLU(), nn.Linear(6, 4)).to(HERE)
        styles = {"0": ColwiseParallel(input_layouts=cut), "2": RowwiseParallel(output_layouts=cut)}
    parallelize_module(model, mesh, styles)
    seen = []
    originals = {name: getattr(collectives, name) for name in collectives.__all__}

    def noting(name):
        def call(*args, **kwargs):
            seen.append(name)
            return originals[name](*args, **kwargs)

        return call

    x = torch.randn(2, 4, WIDTH, device=HERE, requires_grad=True)
    try:
        for name in originals:
            setattr(collectives, name, noting(name))
        y = model(x).sum()
        forward = Counter(seen)
        y.backward()
    finally:
        for name, function in originals.items():
            setattr(collectives, name, function)
    return dict(forward), dict(Counter(seen) - forward)


def test_collectives_of_two_layers():
    # Shoeybi et al. 2019, figure 3: one all_reduce forward (g), one backward (f).
    one = {"all_reduce": 1}
    assert world_here(2).run(counted, "megatron") == [(one, one)] * 2
    # Korthikanti et al. 2022, figure 6: an all_gather and a reduce_scatter each way.
    both = {"all_gather_into_tensor": 1, "reduce_scatter_tensor": 1}
    assert world_here(2).run(counted, "along the sequence") == [(both, both)] * 2
    assert world_here(2).run(counted, "attention") == [(both, both)] * 2


def layers(rank, size, make, style, shape, ids=False, kwargs=None):
    """Output and gradients of a layer that is cut, and of the whole one."""
    torch.manual_seed(0)
    whole = getattr(nn, make[0])(*make[1:], **(kwargs or {})).double().to(HERE)
    cut = parallelize_module(copy.deepcopy(whole), init_device_mesh(HERE, (size,)), style)
    values = torch.randint(make[1], shape) if ids else torch.randn(*shape, dtype=torch.float64)
    found = []
    for layer in (cut, whole):
        x = values.to(HERE) if ids else values.to(HERE).requires_grad_()
        y = layer(x)
        if isinstance(y, DTensor):
            y = y.full_tensor()
        (y * torch.arange(y.numel(), device=HERE).view(y.shape)).sum().backward()
        found.append((y, x.grad))
    difference = (found[0][0] - found[1][0]).abs().max().item()
    if not ids:
        difference = max(difference, (found[0][1] - found[1][1]).abs().max().item())
    return max(difference, worst(cut, whole, lambda p: p.grad))


LAYERS = {
    "columns": (("Linear", 5, 6), ColwiseParallel(output_layouts=Replicate()), (3, 5)),
    "columns_uneven": (("Linear", 5, 7), ColwiseParallel(use_local_output=False), (2, 3, 5)),
    "columns_few": (("Linear", 5, 3), ColwiseParallel(output_layouts=Replicate()), (3, 5)),
    "rows": (("Linear", 6, 5), RowwiseParallel(input_layouts=Replicate()), (3, 6)),
    "rows_uneven": (("Linear", 7, 5), RowwiseParallel(input_layouts=Replicate()), (2, 3, 7)),
    "rows_to_slices": (
        ("Linear", 6, 5),
        RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0), use_local_output=False),
        (3, 6),
    ),
    "table_columns": (
        ("Embedding", 9, 6),
        ColwiseParallel(output_layouts=Replicate()),
        (3, 4),
        True,
    ),
    "table_rows": (("Embedding", 9, 5), RowwiseParallel(input_layouts=Replicate()), (3, 4), True),
    "table_rows_padding": (
        ("Embedding", 10, 5),
        RowwiseParallel(input_layouts=Replicate()),
        (30,),
        True,
        {"padding_idx": 7},
    ),
    "no_bias": (
        ("Linear", 6, 4),
        RowwiseParallel(input_layouts=Replicate()),
        (3, 6),
        False,
        {"bias": False},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("size", [2, 4])
def test_layers(name, size):
    if name == "table_rows" and size == 4:
        size = 2  # 9 rows: the fourth process would have none
    assert max(world_here(size).run(layers, *LAYERS[name])) < 1e-10


class Pair(nn.Module):
    def forward(self, x, flag, y=None):
        self.seen = [type(value).__name__ for value in (x, flag, y)], tuple(x.shape)
        return x, y


def prepared(rank, size):
    mesh = init_device_mesh(HERE, (size,))
    x, y = torch.ones(2, 3, device=HERE) * rank, torch.ones(4, device=HERE)
    found = []
    for local in (False, True):
        style = PrepareModuleInput(
            input_layouts=(Shard(0), None),
            desired_input_layouts=(Replicate(), None),
            input_kwarg_layouts={"y": Replicate()},
            desired_input_kwarg_layouts={"y": Shard(0)},
            use_local_output=local,
        )
        module = parallelize_module(Pair(), mesh, style)
        outputs = module(x, 3, y=y)
        found.append((module.seen, [tuple(z.shape) for z in outputs]))
    style = PrepareModuleOutput(
        output_layouts=(Shard(0), None), desired_output_layouts=(Replicate(), None)
    )
    out = parallelize_module(Pair(), mesh, style)(x, 3)
    style = PrepareModuleInputOutput(
        input_layouts=Shard(0),
        desired_input_layouts=Replicate(),
        use_local_input=True,
        output_layouts=Replicate(),
        desired_output_layouts=Shard(1),
    )
    both = parallelize_module(nn.Identity(), mesh, style)(x)
    return found, (out[0].tolist(), out[1]), both.shape


def test_inputs_and_outputs():
    for rank, (found, out, both) in enumerate(world_here(2).run(prepared)):
        assert found == [
            ((["DTensor", "int", "DTensor"], (4, 3)), [(4, 3), (4,)]),
            ((["Tensor", "int", "Tensor"], (4, 3)), [(4, 3), (2,)]),
        ]
        assert out == ([[0.0] * 3] * 2 + [[1.0] * 3] * 2, None)
        assert both == (4, (2, 1)[rank])


def states(rank, size):
    mesh = init_device_mesh(HERE, (size,))
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6), nn.Linear(6, 2)).to(HERE)
    plan = {
        "0": ColwiseParallel(output_layouts=Replicate()),
        "1": ColwiseParallel(),
        "2": RowwiseParallel(),
    }
    model = parallelize_module(copy.deepcopy(whole), mesh, plan)
    state = model.state_dict()
    kinds = {name: (type(v).__name__, str(v.placements[0]), v.shape) for name, v in state.items()}
    same = all(
        [torch.equal(state[name].full_tensor(), v) for name, v in whole.state_dict().items()]
    )
    frozen = nn.Linear(2, 2).to(HERE).requires_grad_(False)
    parallelize_module(frozen, mesh, ColwiseParallel())
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for value in twin.parameters():
            value.zero_()
    twin.load_state_dict(whole.state_dict())
    ids = torch.tensor([0, 5], device=HERE)
    equal = torch.allclose(twin(ids), whole(ids)) and torch.allclose(model(ids), whole(ids))
    optimizer = torch.optim.Adam(model.parameters())
    model(ids).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    try:
        model[1](torch.ones(3, 5, device=HERE))
    except RuntimeError:
        kept = model[1].weight is model[1]._parameters["weight"]
    return kinds, same, frozen.weight.requires_grad, equal, kept


def test_states_and_copies():
    for kinds, same, wants_gradient, equal, kept in world_here(2).run(states):
        assert kinds == {
            "0.weight": ("DTensor", "S(1)", (6, 4)),
            "1.weight": ("DTensor", "S(0)", (6, 4)),
            "1.bias": ("DTensor", "S(0)", (6,)),
            "2.weight": ("DTensor", "S(1)", (2, 6)),
            "2.bias": ("DTensor", "R", (2,)),
        }
        assert same and not wants_gradient and equal and kept


class Doubling(ParallelStyle):
    """A style that a program defines."""

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda module, inputs, output: output * 2)
        return module


def plans(rank, size):
    mesh = init_device_mesh(HERE, (size,))
    make = lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5)).to(HERE)
    few = nn.Embedding(3, 4, max_norm=1.0).to(HERE)
    uneven = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0))
    calls = (
        lambda: parallelize_module(make(), mesh),
        lambda: parallelize_module(make(), mesh, {"9": ColwiseParallel()}),
        lambda: parallelize_module(make(), mesh, {"0.x.y": ColwiseParallel()}),
        lambda: parallelize_module(make(), None, {"0": ColwiseParallel()}),
        lambda: parallelize_module(make(), mesh, 3),
        lambda: parallelize_module(make(), mesh, {"1": ColwiseParallel()}),
        lambda: parallelize_module(make(), mesh, {"1": RowwiseParallel()}),
        lambda: parallelize_module(
            make(), init_device_mesh(HERE, (size, 1)), {"0": ColwiseParallel()}
        ),
        lambda: PrepareModuleInput(input_layouts=Shard(0)),
        lambda: PrepareModuleInput(
            input_layouts=Shard(0), desired_input_layouts=(Shard(0), Shard(0))
        ),
        lambda: PrepareModuleOutput(
            output_layouts=Shard(0), desired_output_layouts=(Shard(0), Shard(0))
        ),
        lambda: parallelize_module(
            nn.Identity(),
            mesh,
            PrepareModuleInput(
                input_layouts=(Shard(0),) * 2, desired_input_layouts=(Shard(0),) * 2
            ),
        )(few.weight),
        lambda: parallelize_module(nn.Embedding(1, 4).to(HERE), mesh, RowwiseParallel()),
        lambda: parallelize_module(few, mesh, RowwiseParallel()),
        lambda: parallelize_module(make()[0], mesh, uneven)(torch.ones(3, 4, device=HERE)),
    )
    found = []
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call()
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
            else:
                found.append(str(caught[0].message))
    styles = [ColwiseParallel(), RowwiseParallel(), SequenceParallel()]
    doubled = parallelize_module(nn.Identity(), mesh, Doubling())(torch.ones(1)).item()
    with mesh:
        parallelize_module(make(), None, {"0": ColwiseParallel()})
    return found, repr(styles), doubled


def test_plans():
    # Those down to module inputs are PyTorch's.
    expected = [
        "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this",
        "Parallelize plan key '9' could not be resolved: no submodule matching token '9' in module",
        "Parallelize plan key 'x.y' could not be resolved: no submodule matching token 'x' in",
        "RuntimeError: No device mesh is currently active!",
        "TypeError: Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, <c",
        "NotImplementedError: ColwiseParallel currently only support nn.Linear and nn.Embedding!",
        "NotImplementedError: RowwiseParallel currently only support nn.Linear and nn.Embedding!",
        "ValueError: `placements` must have the same length as `device_mesh.ndim`!",
        "AssertionError: desired module inputs should not be None!",
        "AssertionError: input_layouts and desired_input_layouts should have same length!",
        "AssertionError: output_layouts and desired_output_layouts should have same length!",
        "ValueError: module inputs and input_layouts should have same length!",
        "ValueError: 1 rows cannot be cut into 2 parts",
        "NotImplementedError: max_norm of an Embedding whose rows are cut",
        "RuntimeError: a dimension of size 3 cannot be cut evenly into 2 plain tensors",
    ]
    for found, styles, doubled in world_here(2).run(plans):
        assert len(found) == len(expected)
        for message, wanted in zip(found, expected):
            assert message.startswith(wanted), message
        assert styles == (
            "[ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), "
            "use_local_output=True), RowwiseParallel(input_layouts=(Shard(dim=-1),), "
            "output_layouts=(Replicate(),), use_local_output=True), "
            "SequenceParallel(sequence_dim=1, use_local_output=False)]"
        )
        assert doubled == 2.0


class Bypass(nn.Module):
    """Two layers that are cut, and a plain way around them."""

    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x):
        around = x.to_local() if isinstance(x, DTensor) else x
        return self.down(self.up(x) * self.gate(x)) + around.sin()


def bypassed(rank, size):
    mesh = init_device_mesh(HERE, (size,))
    torch.manual_seed(0)
    whole = Bypass().double().to(HERE)
    plan = {
        "": PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate()),
        "up": ColwiseParallel(),
        "gate": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    cut = parallelize_module(copy.deepcopy(whole), mesh, plan)
    x = torch.randn(4, 4, dtype=torch.float64).to(HERE).requires_grad_()
    own = x.detach().chunk(size)[rank].clone().requires_grad_()
    y, expected = cut(own), whole(x)
    y.pow(3).sum().backward()
    expected.pow(3).sum().backward()
    gradients = own.grad - x.grad.chunk(size)[rank]
    largest = max((y - expected).abs().max().item(), gradients.abs().max().item())
    return max(largest, worst(cut, whole, lambda p: p.grad))


def test_a_whole_input_may_go_around_the_cut_layers():
    assert max(world_here(2).run(bypassed)) < 1e-10
