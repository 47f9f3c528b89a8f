"""Matrices in compressed rows and columns: PyTorch's results, layouts, indices and errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.sparse.against_torch import LIBRARIES, device_of, outcome, same

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of beta state

# In these A and B are in CSR (3, 4), I too with int32 indices, C in CSC, O in coordinates, D has
# blocks (4, 4), M is a batch of A and another, H has values of two elements; Z is A dense, x and X
# fit it from the right.
EXPRESSIONS = """
    A, I, C, O, D, M, H
    csr([0, 0], none, none, (1, 3)), csr([0], none, none, (0, 3))
    csr([0, 2, 2], [0, 1], [1.0, 2.0])
    csr([0, 2], [1, 0], [1, 2], (1, 3)), csr([0, 2], [1, 2], [1, 2], dtype=lib.float64)
    csr([[0, 1], [0, 1]], [[0], [1]], [[1.0], [2.0]]), csr([0, 1], [0], [[1.0, 2.0]])
    csr([0, 2], [1, 1], [1.0, 2.0], (1, 3)).to_dense()
    lib.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2)).to_dense()
    lib.sparse_bsc_tensor([0, 1, 2], [0, 1], [[[1.0, 2.0]]] * 2)
    lib.sparse_bsr_tensor([0, 1], [0], [[[1, 2], [3, 4]]])
    lib.sparse_csr_tensor(crow_indices=[0, 1], col_indices=[1], values=[1.0])
    lib.sparse_csc_tensor(ccol_indices=[0, 1], row_indices=[1], values=[1.0])
    lib.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1))
    lib.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1), layout=lib.sparse_coo)
    lib.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), layout=lib.sparse_csc)
    A.is_sparse, A.is_sparse_csr, C.is_sparse_csr, A._nnz(), M._nnz(), D._nnz(), H.dense_dim()
    A.sparse_dim(), M.sparse_dim(), A.numel(), A.dim(), len(A), A.size(1), A.element_size()
    A.ccol_indices()
    C.crow_indices()
    A.indices()
    A.coalesce()
    A.is_coalesced()
    O.crow_indices()
    Z.crow_indices()
    A.type()
    A.numpy()
    A.tolist()
    A.item()
    bool(A)
    A.to_dense(lib.float64)
    A.is_contiguous()
    A.reshape(4, 3)
    A[None]
    A.exp()
    A / 2
    A - A
    A ** 2
    A + 1
    A + C
    A + O
    O + A
    O * A
    A + A.double()
    A @ lib.ones(3, 2)
    A @ O.t()
    A @ X.double()
    lib.bmm(M, lib.ones(2, 4, 2))
    M @ lib.ones(2, 4, 2)
    lib.cat([A, A])
    A == A
    A.max()
    lib.utils.data.default_collate([A, A])
    lib.utils.data.default_collate([O, O])
    A.to_sparse(1)
    D.to_sparse_csr()
    D.to_sparse_csc()
    Z.to_sparse_bsr((2, 2))
    Z.to_sparse(layout=lib.sparse_bsr)
    Z.to_sparse_csr(1)
    lib.stack([Z, Z * (Z > 1)]).to_sparse_csr()
    lib.zeros(0, 3, 3).to_sparse_csr()
    lib.eye(2)[None].to_sparse().to_sparse_csr()
    A.to_dense(), C.to_dense(), D.to_dense(), M.to_dense(), H.to_dense(), E.to_dense()
    A.to_sparse(), C.to_sparse(), D.to_sparse(), M.to_sparse(), H.to_sparse(), E.to_sparse()
    A.to_sparse_csc(), C.to_sparse_csr(), M.to_sparse_csc(), H.to_sparse_csc(), I.to_sparse_csc()
    A.to_sparse_csr() is A, A.to_sparse(layout=lib.sparse_csr) is A, A.to_sparse_coo()
    A.to_sparse_bsr((1, 2)), A.to_sparse_bsc((3, 2)), C.to_sparse_bsr((1, 4))
    D.to_sparse_bsc((2, 2))
    O.to_sparse_csr(), O.to_sparse_csc(), O.to_sparse_bsr((1, 2))
    O.to_sparse(layout=lib.sparse_bsc, blocksize=(3, 1))
    Z.to_sparse_csr(), Z.to_sparse_csc(), Z.to_sparse_bsr((1, 2)), Z.to_sparse_bsc((3, 2))
    lib.eye(2).to_sparse_bsr(1)
    lib.stack([Z, Z])[None].to_sparse_csr(), lib.stack([Z, Z]).to_sparse_bsr((3, 2))
    lib.stack([Z, Z], -1).to_sparse_bsr((1, 2), 1)
    lib.zeros(0, 3).to_sparse_csr(), lib.zeros(3, 0).to_sparse_csc()
    lib.zeros(2, 0, 3).to_sparse_csr(), lib.zeros(2, 3).to_sparse_csr()
    lib.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], [1.0, 2.0, 3.0], (2, 2)).to_sparse_csr()
    (Z > 1).to_sparse_csr(), Z.int().to_sparse_csr(), (Z + 1j).to_sparse_csr()
    Z.half().to_sparse_csc()
    A * 2, 2 * A, A * lib.tensor(2.0), A.long() * 2.5, -A, +A, abs(A), D * 2, M * 2, I * 2
    A * A, A * B, A * Z, Z * A, A * C, A * O, A * A.long(), I * I
    A * lib.tensor([[0.0, 1, 1, 1]] * 3)
    A * x
    A + A, A + B, lib.add(A, B, alpha=2), I + I, I + B, B + I, C + C, D + D, M + M
    A.add(A, alpha=2)
    A + Z, Z + A, lib.add(Z, A, alpha=2), Z.add_(A), Z
    A.mul_(2), A, A.neg_(), A, A.sin_(), A
    A.add_(B), A
    A.fill_(2), A, A.zero_(), A
    B.copy_(B * 3), B
    A.copy_(B)
    A.copy_(Z)
    Z.copy_(A)
    A.sum(), D.sum(), A.bool().sum(), A.sum(dtype=lib.float64), lib.sum(C)
    A.sum(1, keepdim=True), A.sum(0, keepdim=True), A.sum((0, 1), keepdim=True)
    A.sum((), keepdim=True), I.sum(1, keepdim=True)
    A.sum(0)
    C.sum(0, keepdim=True)
    M.sum(1, keepdim=True)
    A.t(), C.t(), A.transpose(0, 1), A.mT, A.H, D.t(), M.transpose(1, 2), A.transpose(0, 0)
    (A * 1j).mH
    H.t()
    H.transpose(0, 1)
    M.transpose(0, 1)
    A.permute(1, 0)
    A[0], A[-1], A[1], A[:, 1], A[..., 1], A[0, 1], A[0, 2], C[0], C[:, 1], lib.select(A, 0, 2)
    A.unbind(), list(A)
    M[0], M[1, 0], M[0, 1, 1]
    M[:, 1]
    D[0]
    A[5]
    A.select(2, 0)
    A[0:1]
    A @ X, A @ x, A.mm(X), A.mv(x), lib.mm(X.t(), A.t()), x @ A.t(), lib.ones(2, 3) @ A
    lib.ones(2, 3) @ C, C @ X, C @ x, I @ X
    D @ lib.ones(4, 2), D @ lib.ones(4), A @ A.t(), A @ B.t(), C.t() @ C, A.t() @ A
    lib.sparse.mm(A, B.t().to_sparse_csr()), lib.spmm(A, X)
    lib.sparse.mm(A, X, "sum"), lib.sparse.mm(A, X, "mean"), lib.sparse.mm(A, X, "amax")
    lib.sparse.mm(A, -X, "amin"), lib.sparse.mm(A, X, "max")
    lib.sparse.mm(A.half(), X.half(), "mean")
    lib.sparse.mm(lib.zeros(2, 4).to_sparse_csr(), X, "amax")
    lib.sparse.mm(A, X, "prod")
    lib.sparse.mm(C, X, "sum")
    lib.sparse.mm(O, X, "sum")
    lib.sparse.mm(A, x, "sum")
    lib.sparse.mm(A, X.double(), "mean")
    lib.addmm(lib.ones(3, 2), A, X, beta=2, alpha=3), lib.addmm(lib.ones(2), A, X)
    lib.addmv(lib.ones(3), A, x), lib.sparse.addmm(lib.ones(3, 2), C, X)
    lib.addmm(A @ A.t(), A, A.t(), beta=2, alpha=2), lib.addmm(lib.ones(3, 3), A, A.t())
    lib.addmm(lib.ones(2, 3), X.t(), A.t())
    lib.nn.functional.linear(lib.ones(2, 4), A)
    lib.nn.functional.linear(lib.ones(2, 4), A, lib.ones(3)), lib.nn.functional.relu(A)
    sampled(A, lib.ones(3, 2), lib.ones(2, 4))
    sampled(A, lib.ones(3, 2), lib.ones(2, 4), beta=2, alpha=3)
    sampled(M, lib.ones(2, 3, 2), lib.ones(2, 2, 4))
    sampled(A, lib.ones(3, 2), lib.ones(2, 4), beta=0)
    sampled(A, lib.ones(3, 2), lib.ones(3, 4))
    sampled(A, lib.ones(4, 2), lib.ones(2, 4))
    sampled(C, lib.ones(3, 2), lib.ones(2, 4))
    sampled(O, lib.ones(3, 2), lib.ones(2, 4))
    sampled(A, lib.ones(3, 2).double(), lib.ones(2, 4))
    lib._convert_indices_from_coo_to_csr(lib.tensor([0, 0, 2]), 4)
    lib._convert_indices_from_coo_to_csr(lib.tensor([0, 0, 2]).int(), 4, out_int32=True)
    lib._convert_indices_from_coo_to_csr(lib.tensor([0, 0, 2])[:0], 2)
    lib._convert_indices_from_coo_to_csr(lib.tensor([[0]]), 4)
    lib._convert_indices_from_coo_to_csr(lib.tensor([0.0]), 4)
    lib._convert_indices_from_csr_to_coo(A.crow_indices(), A.col_indices())
    lib._convert_indices_from_csr_to_coo(I.crow_indices(), I.col_indices(), out_int32=True)
    lib._convert_indices_from_csr_to_coo(A.crow_indices(), A.col_indices(), transpose=True)
    lib.zeros_like(A), lib.zeros_like(C), lib.zeros_like(D), lib.zeros_like(M), lib.ones_like(A)
    lib.empty_like(A)._nnz()
    lib.zeros(3, 4, layout=lib.sparse_csr), lib.zeros(2, 3, 4, layout=lib.sparse_csc)
    lib.zeros_like(Z, layout=lib.sparse_csr), A.new_zeros(2, 3)
    lib.zeros(2, layout=lib.sparse_csr)
    lib.zeros(2, 2, layout=lib.sparse_bsr)
    lib.rand(2, 2, layout=lib.sparse_csr)
    A.sparse_mask(B), Z.sparse_mask(A), Z.sparse_mask(C), O.sparse_mask(A)
    lib.stack([Z, Z]).sparse_mask(M)
    A.float() is A, A.to(lib.float32) is A, A.to(lib.float32, copy=True) is A, A.double()
    A.type_as(A.double()), A.to(lib.int32), A.cpu() is A, A.is_pinned()
    A.clone(), A.detach(), A.data, lib.clone(A), A.requires_grad_().requires_grad, (A * 2).is_leaf
    lib.sparse.spdiags(lib.ones(2, 3), lib.tensor([0, 1]), (3, 3), layout=lib.sparse_csr)
    lib.sparse.spdiags(lib.ones(2, 3), lib.tensor([0, 1]), (3, 3), layout=lib.sparse_csc)
"""
LINES = [line.strip() for line in EXPRESSIONS.strip().splitlines()]


OPERANDS = {
    "none": lambda of: of.lib.zeros(0, dtype=of.lib.int64, device=of.place),
    "csr": lambda of: of.lib.sparse_csr_tensor,
    "sampled": lambda of: of.lib.sparse.sampled_addmm,
    "starts": lambda of: of.lib.tensor([0, 2, 2, 4], device=of.place),
    "columns": lambda of: of.lib.tensor([0, 1, 1, 3], device=of.place),
    "values": lambda of: of.lib.tensor([1.0, 2.0, 3.0, 4.0], device=of.place),
    "A": lambda of: of.lib.sparse_csr_tensor(of["starts"], of["columns"], of["values"], (3, 4)),
    "B": lambda of: of.lib.eye(3, 4, device=of.place).to_sparse_csr(),
    "C": lambda of: of["Z"].to_sparse_csc(),
    "D": lambda of: of.lib.arange(16.0, device=of.place).reshape(4, 4).to_sparse_bsr((2, 2)),
    "E": lambda of: of["Z"].to_sparse_bsc((3, 2)),
    "H": lambda of: of.lib.stack([of["Z"], of["Z"] * 2], -1).to_sparse_csr(dense_dim=1),
    "I": lambda of: of.lib.sparse_csr_tensor(
        of["starts"].int(), of["columns"].int(), of["values"], (3, 4)
    ),
    "M": lambda of: of.lib.stack([of["Z"], of["Z"] + (of["Z"] != 0)]).to_sparse_csr(),
    "O": lambda of: of["Z"].to_sparse(),
    "X": lambda of: of.lib.arange(8.0, device=of.place).reshape(4, 2),
    "Z": lambda of: of["A"].to_dense(),
    "x": lambda of: of.lib.arange(4.0, device=of.place),
}


class Operands(dict):
    """The names that an expression may use, each made when it is."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.place = lib, device_of(lib)

    def __missing__(self, name: str) -> Any:
        if name not in OPERANDS:
            raise KeyError(name)
        self[name] = OPERANDS[name](self)
        return self[name]


def results(line: str, describe: Any = None) -> tuple[Any, Any]:
    """What an expression gives here and in PyTorch."""

    def program(lib: Any) -> Any:
        found = eval(line, {"lib": lib}, Operands(lib))
        return found if describe is None else describe(found)

    mine, reference = (outcome(lib, program) for lib in LIBRARIES)
    return mine, reference


@pytest.mark.skipif(device_of(tlc) == "cuda", reason="operands are made on the CPU")
@pytest.mark.parametrize("line", LINES)
def test_an_expression(line: str) -> None:
    same(*results(line))


@pytest.mark.parametrize(
    "name",
    """abs absolute angle arcsin arcsinh arctan arctanh asin asinh atan atanh ceil conj_physical cos
    deg2rad erf erfinv exp expm1 floor frac isinf isnan isneginf isposinf log1p neg negative
    positive rad2deg relu reciprocal round rsqrt sgn sigmoid sign signbit sin sinh sqrt square tan
    tanh trunc""".split(),
)
def test_functions_of_each_element(name: str) -> None:
    for line in (f"lib.{name}(A * 0.1)", f"M.{name}()", f"A.long().{name}()"):
        same(*results(line), rel=1e-5)
    if hasattr(torch.Tensor, f"{name}_"):
        same(*results(f"(A * 0.1).{name}_()"), rel=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "A", "I", "C", "D", "E", "M", "H", "A.double()", "A.long()", "A.bool()",
        "A.half()", "A * 1j", "lib.zeros(2, 3).to_sparse_csr()", "A.detach().requires_grad_()",
        "A.detach().requires_grad_() * 2", "csr([0, 2], [1, 0], [1, 2], (1, 3))",
        "lib.zeros(200, 30).fill_(1.5).to_sparse_csr()", "O.double().requires_grad_()", "O * 1j",
        "O.bool()",
    ],
)  # fmt: skip
def test_how_it_prints(line: str) -> None:
    mine, reference = results(line, repr)
    assert mine == reference.replace("device='cuda:0', ", "")


INVALID = """
    ([0, 2], [1, 0], [1.0, 2.0], (1, 3)), ([0, 2], [1, 1], [1.0, 2.0], (1, 3))
    ([0, 2], [1, 5], [1.0, 2.0], (1, 3)), ([0, 2], [1, -1], [1.0, 2.0], (1, 3))
    ([1, 2], [1, 2], [1.0, 2.0], (1, 3)), ([0, 3], [1, 2], [1.0, 2.0], (1, 3))
    ([0, 2, 1, 2], [1, 2], [1.0, 2.0], (3, 3)), ([0, 2], [1, 2], [1.0, 2.0], (2, 3))
    ([0, 2], [1, 2], [1.0, 2.0], (3,)), ([0, 2], [1, 2, 0], [1.0, 2.0], (1, 3))
    ([0.0, 2], [1.0, 2], [1.0, 2.0], (1, 3)), ([[0, 2]], [1, 2], [1.0, 2.0], (1, 3))
    (0, [1, 2], [1.0, 2.0], (1, 3)), ([0, 2], [1, 2], 1.0, (1, 3))
    ([[0, 1], [0, 1]], [[0], [1]], [[1.0], [2.0]], (3, 1, 2))
    ([[0, 1], [0, 1]], [[0], [1]], [[1.0]], (2, 1, 2)), ([0, 1], [0], [[1.0, 2.0]], (1, 1, 2))
    ([0, 1, 2], [0, 1], [[[1.0, 2.0]]] * 2, (4, 5)), ([0, 1, 2], [0, 1], [[[1.0, 2.0]]] * 2, (2, 4))
    ([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), ([0, 0, 2], [0, 1], [1.0, 2.0], (2, 2))
"""


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "bsc"])
def test_indices_are_checked_where_that_is_asked(kind: str) -> None:
    def message(lib: Any, arguments: tuple) -> str:
        make = getattr(lib, f"sparse_{kind}_tensor")
        try:
            make(*arguments, check_invariants=True)
        except RuntimeError as error:
            with lib.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError):
                make(*arguments)
            if kind in ("csr", "csc"):
                assert make(*arguments)._nnz() >= 0
            return str(error)
        return "fits"

    cases = [case for line in INVALID.strip().splitlines() for case in eval(f"[{line}]")]
    messages = {message(torch, case) for case in cases}
    assert [message(tlc, case) for case in cases] == [message(torch, case) for case in cases]
    assert len(messages) > 5


def test_checks_are_switched() -> None:
    for lib in LIBRARIES:
        switch = lib.sparse.check_sparse_tensor_invariants
        assert not switch.is_enabled()
        switch.enable()
        with switch(False):
            assert not switch.is_enabled()
        assert switch.is_enabled()
        switch.disable()

        @switch()
        def inside(switch: Any = switch) -> bool:
            return switch.is_enabled()

        assert inside() and not switch.is_enabled()


@pytest.mark.parametrize(
    "line",
    [
        "A, A.clone()", "A, A * 2", "A, A + 1e-9 * A", "A, Z", "A, A.double()", "A, B", "C, C",
        "D, D",
        "M, M * 2", "I, A", "O, O", "O, O * 2", "A, A.to_sparse_csc()", "O, B.to_sparse()", "A, O",
        "B, lib.eye(3, 4).flip(1).to_sparse_csr()",
    ],
)  # fmt: skip
def test_assert_close(line: str) -> None:
    def message(lib: Any) -> str:
        try:
            lib.testing.assert_close(*eval(line, {"lib": lib}, Operands(lib)))
        except AssertionError as error:
            return str(error)
        return "close"

    assert message(tlc) == message(torch)


def test_assert_close_of_other_layouts() -> None:
    for lib in LIBRARIES:
        of = Operands(lib)
        lib.testing.assert_close(of["A"], of["Z"], check_layout=False)
        with pytest.raises(AssertionError, match="Tensor-likes are not close"):
            lib.testing.assert_close(of["A"] * 2, of["Z"], check_layout=False)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize(
    "call",
    [
        lambda lib, layout: lib.rand(2, 2, layout=layout),
        lambda lib, layout: lib.randint(3, (2, 2), layout=layout),
        lambda lib, layout: lib.arange(3, layout=layout),
        lambda lib, layout: lib.linspace(0, 1, 3, layout=layout),
        lambda lib, layout: lib.eye(2, layout=layout),
    ],
)
def test_functions_that_make_dense_tensors_refuse_other_layouts(call, layout):
    for lib in (torch, tlc):
        with pytest.raises((NotImplementedError, RuntimeError)):
            call(lib, getattr(lib, layout))
