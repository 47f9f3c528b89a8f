"""Gradients to and through matrices in compressed rows and columns."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.sparse.against_torch import LIBRARIES, described, device_of, same

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of beta state

# Of the values of A, which is in CSR (3, 4), of X (4, 2) and of x (4).
PROGRAMS = """
    (A @ X) ** 2
    (A @ x) ** 2
    (X.t() @ A.t()) ** 2
    (lib.ones(2, 3, device=place) @ A) ** 2
    A.to_dense() ** 2
    A.sum()
    (A * 2).to_dense() ** 2
    A.values() ** 2
    (-A).to_dense() ** 2
    A.relu().to_dense() ** 2
    (A + B).to_dense() ** 2
    (A + A).to_dense() ** 2
    (A * B).to_dense() ** 2
    (A * A).to_dense()
    lib.sparse.mm(A, X, "sum") ** 2
    lib.sparse.mm(A, X, "mean") ** 2
    lib.sparse.mm(A, X, "amax") ** 2
    lib.sparse.mm(A, X, "amin") ** 2
    lib.sparse.mm(A, X * 0 + 1, "amax")
    lib.addmm(lib.ones(3, 2, device=place), A, X, beta=2, alpha=3) ** 2
    lib.addmv(lib.ones(3, device=place), A, x, beta=2, alpha=3) ** 2
    lib.sparse.sampled_addmm(A, X[:3], X.t(), beta=2).to_dense() ** 2
    lib.sparse.sampled_addmm(A, X[:3], X.t(), beta=2).values() ** 2
    A.to_sparse().to_dense() ** 2
    A.to_sparse().coalesce().values() ** 2
    A.to_sparse_csc().to_dense() ** 2
    A.t().to_dense() ** 2
    A[0, 1] ** 2
    A.clone().to_dense() ** 2
    A.double().to_dense() ** 2
    lib.nn.functional.linear(X.t(), A) ** 2
    (A @ X).sum() * A.to_dense().sum()
"""


@pytest.mark.parametrize("line", [line.strip() for line in PROGRAMS.strip().splitlines()])
def test_the_gradients_of_values_and_of_dense_factors(line: str) -> None:
    found = []
    for lib in LIBRARIES:
        place = device_of(lib)
        leaves = [
            (lib.arange(4.0) + 1).to(place),
            lib.arange(8.0).reshape(4, 2).to(place),
            lib.arange(4.0).to(place),
        ]
        values, matrix, vector = [leaf.requires_grad_() for leaf in leaves]
        columns = lib.tensor([0, 1, 1, 3], device=place)
        starts = lib.tensor([0, 2, 2, 4], device=place)
        names = {
            "lib": lib, "place": place, "X": matrix, "x": vector,
            "A": lib.sparse_csr_tensor(starts, columns, values, (3, 4)),
            "B": lib.eye(3, 4, device=place).to_sparse_csr(),
        }  # fmt: skip
        result = eval(line, names)
        result.sum().backward()
        found.append([described(result.detach(), lib), [described(x.grad, lib) for x in leaves]])
    same(*found)


def leaf(lib: Any, kind: str = "csr") -> Any:
    made = lib.tensor([[1.0, 2, 0, 0], [0, 0, 0, 0], [0, 3, 0, 4]], device=device_of(lib))
    return getattr(made, f"to_sparse_{kind}")().requires_grad_()


@pytest.mark.parametrize(
    "line", ["A.to_dense() ** 2", "A.values() ** 2", "lib.sparse.mm(A, X, 'mean')"]
)
def test_the_gradient_of_a_leaf_is_in_its_layout(line: str) -> None:
    found = []
    for lib in LIBRARIES:
        a = leaf(lib)
        names = {"lib": lib, "A": a, "X": lib.arange(8.0).reshape(4, 2).to(device_of(lib))}
        for _ in range(2):
            eval(line, names).sum().backward()
        found.append([described(a.grad, lib), a.is_leaf, a.requires_grad])
    same(*found)


def test_the_gradient_of_a_product_has_the_places_of_the_leaf() -> None:
    """PyTorch's is dense there; elsewhere it is what a product with all elements would get."""
    for kind in ("csr", "csc"):
        gradients = []
        for lib in LIBRARIES:
            a = leaf(lib, kind)
            x = lib.arange(8.0).reshape(4, 2).to(device_of(lib))
            ((a @ x) ** 2).sum().backward()
            gradients.append((a, a.grad))
        (mine, g), (_, reference) = gradients
        assert g.layout is mine.layout and reference.layout is torch.strided
        expected = reference * torch.tensor((mine.detach().to_dense() != 0).tolist())
        assert g.to_dense().tolist() == expected.tolist()
        again = tlc.autograd.grad((mine @ x_of(mine)).sum(), mine)[0]
        assert again.layout is mine.layout


def x_of(a: Any) -> Any:
    return tlc.ones(a.shape[1], 2, device=a.device)


def test_gradients_of_second_order() -> None:
    found = []
    for lib in LIBRARIES:
        place = device_of(lib)
        values = lib.tensor([1.0, 2.0, 3.0], device=place, requires_grad=True)
        x = lib.tensor([[1.0], [2.0], [4.0]], device=place, requires_grad=True)
        starts, columns = lib.tensor([0, 1, 3], device=place), lib.tensor([2, 0, 1], device=place)
        a = lib.sparse_csr_tensor(starts, columns, values, (2, 3))
        g = lib.autograd.grad(((a @ x) ** 3).sum(), x, create_graph=True)[0]
        g.sum().backward()
        found.append([described(g.detach(), lib), described(x.grad, lib)])
    same(*found)


def test_a_leaf_is_not_changed_in_place() -> None:
    a = leaf(tlc)
    for change in (lambda: a.mul_(2), lambda: a.zero_(), lambda: a.sin_(), lambda: a.add_(a)):
        with pytest.raises(RuntimeError, match="leaf"):
            change()


def test_a_layer_over_an_adjacency_matrix_learns_the_same() -> None:
    losses = []
    for lib in LIBRARIES:
        place = device_of(lib)
        adjacency = (lib.arange(25.0).reshape(5, 5) % 3 - 1).clamp(min=0).to(place).to_sparse_csr()
        weight = lib.arange(12.0).reshape(4, 3).div(10).to(place).requires_grad_()
        x = lib.arange(20.0).reshape(5, 4).to(place).sin()
        optimizer = lib.optim.SGD([weight], lr=1.0)
        for _ in range(5):
            optimizer.zero_grad()
            loss = (adjacency @ (x @ weight)).tanh().pow(2).mean()
            loss.backward()
            optimizer.step()
        losses.append([loss.item(), described(weight.detach(), lib)])
    same(*losses, rel=1e-4)
