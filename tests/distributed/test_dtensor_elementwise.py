"""Functions of elements over DTensors against the same over whole tensors, values and gradients."""

from __future__ import annotations

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.distributed.device_mesh import init_device_mesh
from tensorflow_lite_clone.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)
from tests.distributed.process_groups import HERE, world_here

F = torch.nn.functional
CALLS = {
    "exp": lambda x, y, row: x.exp(),
    "gelu": lambda x, y, row: F.gelu(x),
    "clamp": lambda x, y, row: torch.clamp(x, -0.5, max=0.5),
    "ndtr": lambda x, y, row: torch.special.ndtr(x),
    "minus": lambda x, y, row: -x,
    "add": lambda x, y, row: torch.add(x, y, alpha=2),
    "operators": lambda x, y, row: (2 - x) * y / 3 + x**2,
    "broadcast": lambda x, y, row: x * row + row,
    "where": lambda x, y, row: torch.where(x > y, x, row),
    "lerp": lambda x, y, row: torch.lerp(x, y, 0.25),
    "frexp": lambda x, y, row: torch.frexp(x)[0] * y,
    "addcmul": lambda x, y, row: torch.addcmul(x, y, row, value=0.5),
}
WHOLE, ROWS, COLUMNS = Replicate(), Shard(0), Shard(1)
PLACEMENTS = [(WHOLE, WHOLE), (ROWS, WHOLE), (WHOLE, COLUMNS), (ROWS, COLUMNS), (COLUMNS, COLUMNS)]


def operands():
    torch.manual_seed(3)
    return [
        torch.randn(*shape, dtype=torch.float64, device=HERE) for shape in ((5, 6), (5, 6), (6,))
    ]


def distributed(value, mesh, placements):
    """A whole as a leaf, and the DTensor that is made of it."""
    leaf = value.clone().requires_grad_()
    whole = DTensor.from_local(leaf, mesh, [Replicate()] * mesh.ndim)
    return leaf, whole.redistribute(placements=placements)


def compare(rank, size):
    mesh = init_device_mesh(HERE, (2, 2))
    wrong = []
    for name, call in CALLS.items():
        for number, first in enumerate(PLACEMENTS):
            second = PLACEMENTS[(2 * number + 1) % len(PLACEMENTS)]
            wholes = [value.requires_grad_() for value in operands()]
            expected = call(*wholes)
            (expected * expected).sum().backward()
            row = [ROWS if placement == COLUMNS else WHOLE for placement in first]
            made = [
                distributed(value, mesh, list(placements))
                for value, placements in zip(operands(), (first, second, row))
            ]
            leaves, given = zip(*made)
            found = call(*given).full_tensor()
            (found * found).sum().backward()
            if not torch.allclose(found, expected):
                wrong.append((name, first, second, "value"))
            for leaf, whole in zip(leaves, wholes):
                if whole.grad is not None and not torch.allclose(leaf.grad, whole.grad):
                    wrong.append((name, first, second, "gradient"))
    return wrong


def test_calls():
    assert world_here(4).run(compare) == [[]] * 4


def others(rank, size):
    mesh = init_device_mesh(HERE, (4,))
    x = torch.arange(6.0, device=HERE)
    cut = distribute_tensor(x, mesh, [Shard(0)])
    terms = DTensor.from_local(x, mesh, [Partial()])
    seen = [(terms.exp().placements, torch.allclose(terms.exp().full_tensor(), (4 * x).exp()))]
    seen.append(((cut + terms).placements, (cut + terms).full_tensor().tolist()))
    same = cut
    cut += 1
    cut.mul_(cut)
    seen.append((same is cut, cut.placements, cut.full_tensor().tolist()))
    weight = torch.nn.Parameter(distribute_tensor(x, mesh, [Shard(0)]))
    seen.append((weight.dtensor * 2).full_tensor().tolist())
    for call in (lambda: cut + x, lambda: terms.add_(1), lambda: cut.sum(), lambda: cut @ cut):
        try:
            call()
        except Exception as error:
            known = isinstance(error, NotImplementedError)
            seen.append((NotImplementedError if known else type(error), str(error)))
    return seen


def test_placements_writes_and_refusals():
    squares = [float((n + 1) ** 2) for n in range(6)]
    for seen in world_here(4).run(others):
        assert seen[:4] == [
            ((Replicate(),), True),
            ((Shard(0),), [5.0 * n for n in range(6)]),
            (True, (Shard(0),), squares),
            [2.0 * n for n in range(6)],
        ]
        kinds = [error[0] for error in seen[4:]]
        assert kinds == [RuntimeError] * 2 + [NotImplementedError] * 2
        assert "mixed torch.Tensor and DTensor" in seen[4][1]
