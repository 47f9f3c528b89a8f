"""Functions of sparse tensors: PyTorch's places, in its order, coalesced where its are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sparse.against_torch import LIBRARIES, device_of, matrix, outcome, rows, same

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of beta state

# In these S makes rows (6, 2), A and B are matrices (3, 4); x, y and z are dense.
EXPRESSIONS = """
    S([5, 1, 1, 0]) + S([4, 5, 1], 10.0)
    A[:, 1]
    A[..., 1]
    A[1, :]
    A[None]
    A[:, None, 2]
    A[lib.tensor(1, device=place)]
    A.narrow_copy(0, 1, 2)
    lib.narrow_copy(A, 1, 0, 3)
    S([5, 1, 1]).narrow_copy(1, 1, 1)
    S([5, 1, 1]).narrow_copy(0, 1, 9)
    lib.stack([A, B]).bmm(lib.stack([z.t(), z.t() * 2]))
    lib.bmm(lib.stack([A, B]), lib.stack([z, z]))
    lib.ones(1, 1, device=place).to_sparse().item()
    float(lib.ones(1, device=place).to_sparse())
    int(lib.ones(1, device=place).to_sparse())
    A.item()
    lib.tensor(3.0, device=place).to_sparse()
    lib.sparse_coo_tensor(lib.ones(0, 3, device=place).long(), z[0, :3], ()).coalesce()
    lib.sparse_coo_tensor(lib.ones(0, 2, device=place).long(), z[:2], (4,)).coalesce()
    lib.sparse_coo_tensor(2, 3)
    lib.sparse_coo_tensor([0, 1], [3.0, 4.0])
    lib.sparse.spdiags(z, lib.tensor([0, 2, -1], device=place), (4, 4))
    lib.sparse.spdiags(z, lib.tensor([1, 3, -2], device=place), (3, 10))
    lib.sparse.spdiags(z[0], lib.tensor(1, device=place), (4, 5), layout=lib.sparse_coo)
    lib.sparse.spdiags(z, lib.tensor([0, 0, 1], device=place), (4, 4))
    lib.sparse.spdiags(z, lib.tensor([0, 1], device=place), (4, 4))
    lib.sparse.spdiags(z, lib.tensor([0, 1, 2], device=place).int(), (4, 4))
    lib.sparse.spdiags(z, lib.tensor([0, 1, 2], device=place), (4, 4, 4))
    lib.sparse.spdiags(z[None], lib.tensor([0, 1, 2], device=place), (4, 4))
    lib.sparse.spdiags(z, lib.tensor([0, 1, 2], device=place), (4, 4), layout=lib.strided)
    S([5, 1, 1, 0]).add(S([4, 5, 1], 10.0), alpha=2)
    S([5, 1, 1, 0]).coalesce() + S([4, 5, 1], 10.0).coalesce()
    S([1, 3, 5]).coalesce() + S([4, 5, 1], 10.0)
    gaps(S([5, 1, 1])) + S([4, 5, 1])
    S([5, 1, 1]) + gaps(S([4, 5, 1]))
    S([5, 1, 1]) - S([1])
    S([5, 1]) + lib.sparse_coo_tensor(size=(6, 2), device=place)
    lib.add(S([5, 1]), S([5, 1]), alpha=3)
    S([5, 1]).add_(S([4, 5, 1]))
    S([5, 1]).sub_(S([4, 5, 1]), alpha=2)
    S([5, 1]).add_(x)
    S([5, 1]) + x
    S([5, 1]) - x
    S([5, 1]) - 1
    1 - S([5, 1])
    lib.add(1, S([5, 1]))
    S([5, 1]) + A
    A + B
    B + A
    A.long() + A
    A.long().add_(A)
    A.half() + A
    x + S([5, 1, 1])
    x - S([5, 1, 1])
    lib.add(x, S([5, 1, 1]), alpha=2)
    lib.sub(x, S([5, 1, 1]))
    x.add(S([5, 1, 1]))
    x.add_(S([5, 1, 1]), alpha=-0.5)
    x.sub_(S([5, 1]))
    z.add_(A, alpha=2)
    z.long() + A
    z.half() + A
    z.long().add_(A)
    z.double() + A
    z[0] + A
    z.mul_(A)
    z * A
    lib.mul(z, A)
    A * z
    A * z[0]
    A * y
    y * A
    A.mul_(z)
    A.mul_(A)
    A * B
    B * A
    A.coalesce() * B
    B * A.coalesce()
    A.coalesce() * B.coalesce()
    S([5, 1, 1]) * S([5, 1])
    S([5, 1, 3]) * S([5, 1, 2])
    S([5, 1, 3]).coalesce() * S([2, 1])
    S([2]) * S([5, 1])
    S([5, 1]) * lib.sparse_coo_tensor(size=(6, 2), device=place)
    A * 2, 2 * A, A * True, A * 2.5j, A.long() * 2.5, A.multiply(2), lib.mul(2, A)
    A * lib.tensor(2.0, device=place)
    lib.tensor(2.0, device=place) * A
    A.mul_(2), A.div_(2), A.neg_(), A.mul_(lib.tensor(0.5, device=place))
    A / 2, A.div(2), A.long() / 2, lib.true_divide(A, 2), A / lib.tensor(2.0, device=place)
    A // 2, A.floor_divide(2), A.div(2, rounding_mode="trunc"), A.div_(2, rounding_mode="floor")
    A / A
    z / A
    2 / A
    A / z
    A ** 2, A.pow(0.5), lib.pow(A, 2), A ** -1, A.square()
    A ** 0
    -A, +A, abs(A), lib.neg(A), A.negative()
    A.abs(), lib.abs(A), A.sign(), A.sgn(), A.sqrt(), A.relu(), lib.relu(A), A.floor(), A.ceil()
    A.sin(), A.sinh(), A.tan(), A.tanh(), (A / 9).asin(), A.asinh(), A.atan(), (A / 9).atanh()
    A.expm1(), A.log1p(), A.round(), A.trunc(), A.frac(), A.deg2rad(), A.rad2deg()
    A.isnan(), A.isinf(), A.isposinf(), A.isneginf(), A.signbit(), lib.isnan(A), lib.nan_to_num(A)
    A.isnan().any(), A.any(), lib.any(A), (A * 0).any()
    A.coalesce().abs_(), A.coalesce().sqrt_()
    A.abs_()
    A.exp()
    A.clamp(0, 1)
    A == A
    A.norm(), A.norm(1), A.norm(float("inf")), A.norm(0), lib.norm(A), S([5, 1, 1]).norm()
    A.norm(2, 0)
    A.sum(), A.sum(0), A.sum(-1), A.sum((0, 1)), A.sum(0, keepdim=True), A.sum(1, dtype=lib.float64)
    lib.sum(A), lib.sum(A, 0), lib.sum(A, dtype=lib.float64), A.long().sum(), A.long().sum(0)
    S([5, 1]).sum(0), S([5, 1]).sum(1), S([5, 1]).sum((0, 1)), S([5, 1]).sum(0, keepdim=True)
    lib.sparse.sum(S([5, 1]), 1), lib.sparse.sum(S([5, 1]), 0), lib.sparse.sum(A.coalesce(), 1)
    A.t(), A.coalesce().t(), lib.t(A), A.T, A.mT, A.transpose(0, 1), lib.transpose(A, -1, 0)
    A.permute(1, 0), A.coalesce().permute(0, 1), lib.permute(A, (1, 0))
    S([5, 1]).t()
    S([5, 1]).permute(1, 0)
    A.unsqueeze(1), A.unsqueeze(-1), lib.unsqueeze(A, 0), S([5, 1]).unsqueeze(2)
    S([5, 1]).coalesce().unsqueeze(0)
    A.select(0, 2), A[2], A[2, 1], A.select(1, 1), S([5, 1])[1], S([5, 1]).select(1, 0), A[-1]
    A[3]
    A.unbind(), list(S([5, 1])), A.unbind(1)
    A.index_select(1, i), A.coalesce().index_select(1, i), lib.index_select(A, 0, i[1:2])
    S([5, 1]).index_select(0, i), S([5, 1]).index_select(1, i[1:] * 0 + 1), A.index_select(0, i[:0])
    A.index_select(0, i)
    lib.cat([A, B], 1), lib.cat([A, B], -2), lib.cat([S([5, 1]), S([2])], 1), lib.concat((A, B))
    lib.stack([A, B]), lib.stack([A, B], 1), lib.stack([A, B], -1), lib.stack([S([5]), S([1])])
    lib.cat([A, z])
    lib.stack([A, S([1])])
    lib.zeros_like(A), lib.empty_like(A), lib.zeros_like(A, dtype=lib.float64)
    lib.zeros_like(S([1])), A.new_zeros(3, 4), A.new_empty((3, 4)), A.new_tensor([1, 2])
    lib.ones_like(A)
    A.new(), A.new(3, 2), A.new(lib.Size((3, 2))), A.new(i[None], lib.arange(3.0).to(place), (9,))
    A.copy_(B), A.zero_(), A.zero_()._nnz(), A.clone(), A.coalesce().clone(), lib.clone(A)
    A.copy_(z)
    z.copy_(A)
    A.resize_as_(B), z.resize_as_(A), A.sparse_resize_((4, 5), 2, 0)
    A.sparse_resize_and_clear_((5, 2, 3), 2, 1), A.is_same_size(B), A.is_same_size(x)
    z.sparse_mask(A), A.sparse_mask(B.coalesce()), S([5, 1, 1]).sparse_mask(S([1]).coalesce())
    S([5, 1, 1]).sparse_mask(S([2])), S([]).sparse_mask(S([2, 1])), A.sparse_mask(A + B)
    A.float() is A, A.to(lib.float32) is A, A.to(lib.float64), A.to(A), A.bool(), A.to_sparse() is A
    A.to_sparse(1)
    A.numel(), lib.numel(A), A.element_size(), A.is_contiguous(), A.is_floating_point(), A._dimI()
    A.numpy()
    A.detach_(), A.data.mul_(2), A, A.data.div_(2), A, A._coalesced_(True)
    lib.addmm(z[:, :2], A, z.t()[:, :2]), lib.sparse.addmm(z[:, :2], A, z.t()[:, :2], alpha=2)
    lib.sparse_coo_tensor([[0]], 1.0, (4,)), lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (4,))
    lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (4,), is_coalesced=True)
    lib.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (4,), is_coalesced=True)
    lib.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (4,), is_coalesced=True, check_invariants=True)
    lib.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (4,), check_invariants=True)
"""
LINES = [line.strip() for line in EXPRESSIONS.strip().splitlines()]


def gaps(x: Any) -> Any:
    """The same rows, whose values do not lie one after the other in memory."""
    values = x._values().t().contiguous().t()
    return x.new(x._indices(), values, x.shape)


def program(line: str) -> Any:
    def run(lib: Any) -> Any:
        place = device_of(lib)
        scope = {
            "lib": lib,
            "place": place,
            "S": lambda *args, **options: rows(lib, *args, **options),
            "A": matrix(lib, [[2, 0, 2], [1, 3, 1]]),
            "B": matrix(lib, [[2, 1], [1, 0]], 5.0),
            "gaps": gaps,
            "i": lib.tensor([3, 1, 1], device=place),
            "x": (lib.arange(12.0) + 1).reshape(6, 2).to(place),
            "y": lib.arange(24.0).reshape(2, 3, 4).to(place),
            "z": lib.arange(12.0).reshape(3, 4).to(place),
        }
        return eval(line, scope)

    return run


@pytest.mark.parametrize("line", LINES)
def test_an_expression(line: str) -> None:
    mine, reference = (outcome(lib, program(line)) for lib in LIBRARIES)
    same(mine, reference)
