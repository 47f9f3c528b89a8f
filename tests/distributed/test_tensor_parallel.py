"""Layers that are cut over processes compute what the whole layers do."""

from __future__ import annotations

import copy
import warnings
from collections import Counter

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed import collectives
from tensorflow_lite_clone.distributed.device_mesh import init_device_mesh
from tensorflow_lite_clone.distributed.fsdp import fully_shard, whole_state_dict
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
from tests.distributed.on_device import KIND, processes

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, WORDS = 4, 4, 8, 4, 6, 10


class Attention(nn.Module):
    """Causal attention that computes with as many heads as its maps give it."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]

    def forward(self, x):
        def heads(y):
            return y.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, hidden), nn.Linear(hidden, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class Language(nn.Module):
    """A transformer of one block with a table of words in front and a map to words behind."""

    def __init__(self, hidden=HIDDEN):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=1)
        self.blocks = nn.ModuleList([Block(hidden)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def megatron():
    """Activations are whole between the layers."""
    return {
        "words": RowwiseParallel(input_layouts=Replicate()),
        "blocks.*.attention.[qkv]": ColwiseParallel(),
        "blocks.*.attention.o": RowwiseParallel(),
        "blocks.*.up": ColwiseParallel(),
        "blocks.*.down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }


def along_the_sequence():
    """Between the layers each process has a slice of the sequence."""
    cut = Shard(1)
    norm = SequenceParallel(use_local_output=True)
    return {
        "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=cut),
        "blocks.*.before": norm,
        "blocks.*.after": norm,
        "blocks.*.attention.[qkv]": ColwiseParallel(input_layouts=cut),
        "blocks.*.attention.o": RowwiseParallel(output_layouts=cut),
        "blocks.*.up": ColwiseParallel(input_layouts=cut),
        "blocks.*.down": RowwiseParallel(output_layouts=cut),
        "norm": SequenceParallel(),  # gives a DTensor
        "head": ColwiseParallel(output_layouts=Replicate()),
    }


PLANS = {"megatron": megatron, "along_the_sequence": along_the_sequence}


def step(model, optimizer, ids, groups=()):
    """One step with clipping; the loss and the norm, averaged over groups that share the batch."""
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    loss = loss.detach()
    for group in groups:
        for value in (loss, *[p.grad for p in model.parameters()]):
            dist.all_reduce(value, dist.ReduceOp.AVG, group)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss.item(), norm.item()


def worst(model, whole, what):
    """The largest difference between a cut model's values, put together, and the whole model's."""
    others = dict(whole.named_parameters())
    found = 0.0
    for name, parameter in model.named_parameters():
        value, expected = what(parameter), what(others[name])
        if hasattr(parameter, "dtensor"):
            layout = parameter.device_mesh, parameter.placements
            shape = {"shape": expected.shape, "stride": expected.stride()}
            value = DTensor.from_local(value.detach(), *layout, **shape).full_tensor()
        found = max(found, (value - expected).abs().max().item())
    return found


def trained(rank, size, plan, grid, hidden):
    """Losses of ten steps of the whole and of the cut model; the differences after them."""
    torch.manual_seed(rank)  # the plan takes the first process's values
    model = Language(hidden).double().to(KIND)
    mesh = init_device_mesh(KIND, grid, mesh_dim_names=("dp", "tp")[-len(grid) :])
    whole = copy.deepcopy(model)
    for value in whole.parameters():
        dist.broadcast(value.data, 0)
    groups = []
    if "dp" in mesh.mesh_dim_names:
        groups = [mesh.get_group("dp")]
        for value in model.parameters():
            dist.broadcast(value.data, 0)
    parallelize_module(model, mesh["tp"], PLANS[plan]())
    torch.manual_seed(5)
    ids = torch.randint(WORDS, (BATCH, LENGTH + 1)).to(KIND)
    rows = BATCH // (mesh.size(0) if groups else 1)
    start = rows * mesh.get_local_rank("dp") if groups else 0
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, whole)]
    cut, expected, gradients = [], [], []
    for _ in range(10):
        cut.append(step(model, optimizers[0], ids[start : start + rows], groups))
        expected.append(step(whole, optimizers[1], ids))
        gradients.append(worst(model, whole, lambda p: p.grad))
    values = worst(model, whole, lambda p: p.data)
    parts = sum([p.numel() for p in model.parameters()])
    return (
        cut,
        expected,
        max(gradients),
        values,
        parts,
        sum([p.numel() for p in whole.parameters()]),
    )


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("grid", [(2,), (4,), (2, 2)])
def test_a_transformer_trains_as_on_one_process(plan, grid):
    size = 4 if grid == (2, 2) else grid[0]
    hidden = 7 if plan == "megatron" and grid == (4,) else HIDDEN  # 2, 2, 2 and 1
    for cut, expected, gradients, values, part, whole in processes(size).run(
        trained, plan, grid, hidden
    ):
        for here, there in zip(cut, expected):
            assert here == pytest.approx(there, rel=0, abs=1e-10)
        assert gradients < 1e-10
        assert values < 1e-8  # AdamW divides by roots of small numbers
        assert part < 0.8 * whole
        assert expected[-1][0] < expected[0][0]


def over_data(rank, size, plan, wrapper):
    """Losses and norms of a model that is cut, under a wrapper over the data, and of the whole."""
    torch.manual_seed(0)
    model = Language().double().to(KIND)
    whole = copy.deepcopy(model)
    mesh = init_device_mesh(KIND, (2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], PLANS[plan]())
    if wrapper == "ddp":
        model = nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group("dp"))
    else:
        for module in (*model.blocks, model):
            fully_shard(module, mesh=mesh["dp"])
    torch.manual_seed(5)
    ids = torch.randint(WORDS, (BATCH, LENGTH + 1)).to(KIND)
    own = ids.chunk(2)[mesh.get_local_rank("dp")]
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, whole)]
    found = []
    for _ in range(5):
        loss, norm = step(model, optimizers[0], own)
        mean = torch.tensor(loss, device=KIND, dtype=torch.float64)
        dist.all_reduce(mean, dist.ReduceOp.AVG, mesh.get_group("dp"))
        found.append(((mean.item(), norm), step(whole, optimizers[1], ids)))
    if wrapper == "ddp":
        return found, None
    state, expected = whole_state_dict(model), whole.state_dict()
    same = [torch.allclose(state[name], expected[name], rtol=0, atol=1e-8) for name in expected]
    boxes = {name: value.__shards__() for name, value in model.state_dict().items()}
    covered = torch.zeros(expected["blocks.0.down.weight"].shape, device=KIND)
    shape, own = boxes["blocks.0.down.weight"]
    for (row, column), part in own:
        covered[row : row + part.shape[0], column : column + part.shape[1]] += 1
    dist.all_reduce(covered)
    with torch.no_grad():
        for value in model.parameters():
            value.zero_()
    model.load_state_dict(expected)
    logits = model(ids[:, :-1]) - whole(ids[:, :-1])
    return found, (
        all(same),
        shape == covered.shape,
        covered.unique().tolist(),
        logits.abs().max().item(),
    )


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp"])
def test_under_wrappers_over_the_data(plan, wrapper):
    for steps, states in processes(4).run(over_data, plan, wrapper):
        for here, there in steps:
            assert here == pytest.approx(there, rel=0, abs=1e-10)
        if states is not None:
            same, shape, times, difference = states
            assert same and shape and times == [1.0] and difference < 1e-10


def counted(rank, size, plan):
    """The collectives of a forward and of a backward pass of two layers."""
    mesh = init_device_mesh(KIND, (size,))
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4)).to(KIND)
    cut = None if plan == "megatron" else Shard(1)
    styles = {"0": ColwiseParallel(input_layouts=cut), "2": RowwiseParallel(output_layouts=cut)}
    parallelize_module(model, mesh, styles)
    seen = []
    originals = {name: getattr(collectives, name) for name in collectives.__all__}

    def noting(name):
        def call(*args, **kwargs):
            seen.append(name)
            return originals[name](*args, **kwargs)

        return call

    x = torch.randn(2, 4, 4, device=KIND, requires_grad=True)
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
    assert processes(2).run(counted, "megatron") == [(one, one)] * 2
    # Korthikanti et al. 2022, figure 6: an all_gather and a reduce_scatter each way.
    both = {"all_gather_into_tensor": 1, "reduce_scatter_tensor": 1}
    assert processes(2).run(counted, "along the sequence") == [(both, both)] * 2


def layers(rank, size, make, style, shape, ids=False, kwargs=None):
    """Output and gradients of a layer that is cut, and of the whole one."""
    torch.manual_seed(0)
    whole = getattr(nn, make[0])(*make[1:], **(kwargs or {})).double().to(KIND)
    cut = parallelize_module(copy.deepcopy(whole), init_device_mesh(KIND, (size,)), style)
    values = torch.randint(make[1], shape) if ids else torch.randn(*shape, dtype=torch.float64)
    found = []
    for layer in (cut, whole):
        x = values.to(KIND) if ids else values.to(KIND).requires_grad_()
        y = layer(x)
        if isinstance(y, DTensor):
            y = y.full_tensor()
        (y * torch.arange(y.numel(), device=KIND).view(y.shape)).sum().backward()
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
    assert max(processes(size).run(layers, *LAYERS[name])) < 1e-10


class Pair(nn.Module):
    def forward(self, x, flag, y=None):
        self.seen = [type(value).__name__ for value in (x, flag, y)], tuple(x.shape)
        return x, y


def prepared(rank, size):
    mesh = init_device_mesh(KIND, (size,))
    x, y = torch.ones(2, 3, device=KIND) * rank, torch.ones(4, device=KIND)
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
    for rank, (found, out, both) in enumerate(processes(2).run(prepared)):
        assert found == [
            ((["DTensor", "int", "DTensor"], (4, 3)), [(4, 3), (4,)]),
            ((["Tensor", "int", "Tensor"], (4, 3)), [(4, 3), (2,)]),
        ]
        assert out == ([[0.0] * 3] * 2 + [[1.0] * 3] * 2, None)
        assert both == (4, (2, 1)[rank])


def states(rank, size):
    mesh = init_device_mesh(KIND, (size,))
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6), nn.Linear(6, 2)).to(KIND)
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
    frozen = nn.Linear(2, 2).to(KIND).requires_grad_(False)
    parallelize_module(frozen, mesh, ColwiseParallel())
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for value in twin.parameters():
            value.zero_()
    twin.load_state_dict(whole.state_dict())
    ids = torch.tensor([0, 5], device=KIND)
    equal = torch.allclose(twin(ids), whole(ids)) and torch.allclose(model(ids), whole(ids))
    optimizer = torch.optim.Adam(model.parameters())
    model(ids).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    try:
        model[1](torch.ones(3, 5, device=KIND))
    except RuntimeError:
        kept = model[1].weight is model[1]._parameters["weight"]
    return kinds, same, frozen.weight.requires_grad, equal, kept


def test_states_and_copies():
    for kinds, same, wants_gradient, equal, kept in processes(2).run(states):
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
    mesh = init_device_mesh(KIND, (size,))
    make = lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5)).to(KIND)
    few = nn.Embedding(3, 4, max_norm=1.0).to(KIND)
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
            make(), init_device_mesh(KIND, (size, 1)), {"0": ColwiseParallel()}
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
        lambda: parallelize_module(nn.Embedding(1, 4).to(KIND), mesh, RowwiseParallel()),
        lambda: parallelize_module(few, mesh, RowwiseParallel()),
        lambda: parallelize_module(make()[0], mesh, uneven)(torch.ones(3, 4, device=KIND)),
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
    for found, styles, doubled in processes(2).run(plans):
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
