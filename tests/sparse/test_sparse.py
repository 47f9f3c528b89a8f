"""Sparse tensors in coordinates: what graph networks do with them, as PyTorch does it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)
from tests.device import DEVICE

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of beta state and old names
LIBRARIES = (tlc, torch)
PLACES = [[0, 1, 1, 0], [2, 0, 2, 2]]  # one of them twice
VALUES = [3.0, 4.0, 5.0, 1.0]


def device_of(lib: Any) -> str:
    return DEVICE if lib is tlc else "cpu"


def sparse(lib: Any, **options: Any) -> Any:
    return lib.sparse_coo_tensor(PLACES, VALUES, (2, 3), device=device_of(lib), **options)


def dense(lib: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return (lib.arange(float(count)) - 2).reshape(shape).to(device_of(lib))


def hybrid(lib: Any) -> Any:
    values = [[1.0, 2.0], [3.0, 4.0]]
    return lib.sparse_coo_tensor([[0, 1]], values, (3, 2), device=device_of(lib))


def answer(value: Any, lib: Any) -> Any:
    """A tensor as its dtype, shape and elements; whether it is sparse, and in order."""
    if isinstance(value, lib.Tensor):
        layout = (str(value.layout), value.is_coalesced() if value.is_sparse else None)
        elements = value.to_dense().detach().cpu()
        return layout, str(elements.dtype), tuple(elements.shape), elements.tolist()
    if isinstance(value, (tuple, list)):
        return [answer(item, lib) for item in value]
    return str(value) if type(value).__name__ in ("DType", "dtype", "Layout", "layout") else value


def attempt(lib: Any, program: Callable[[Any], Any]) -> Any:
    try:
        return answer(program(lib), lib)
    except (RuntimeError, TypeError) as error:
        return type(error)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "mm": lambda lib: lib.mm(sparse(lib), dense(lib, 3, 2)),
    "spmm": lambda lib: lib.spmm(sparse(lib), dense(lib, 3, 2)),
    "sparse.mm": lambda lib: lib.sparse.mm(sparse(lib), dense(lib, 3, 2)),
    "matmul": lambda lib: lib.matmul(sparse(lib), dense(lib, 3, 2)),
    "@": lambda lib: sparse(lib) @ dense(lib, 3, 2),
    "@ a vector": lambda lib: sparse(lib) @ dense(lib, 3),
    "mv": lambda lib: lib.mv(sparse(lib), dense(lib, 3)),
    "dense @": lambda lib: dense(lib, 4, 2) @ sparse(lib),
    "mm with dense first": lambda lib: lib.sparse.mm(dense(lib, 4, 2), sparse(lib)),
    "sparse @ sparse": lambda lib: sparse(lib) @ sparse(lib).t(),
    "a power": lambda lib: lib.sparse.mm(
        lib.sparse.mm(sparse(lib), sparse(lib).t()), sparse(lib)
    ),
    "addmm": lambda lib: lib.sparse.addmm(dense(lib, 2, 2), sparse(lib), dense(lib, 3, 2)),
    "shapes that do not fit": lambda lib: sparse(lib) @ dense(lib, 2, 2),
    "dtypes that differ": lambda lib: sparse(lib) @ dense(lib, 3, 2).double(),
    "t": lambda lib: sparse(lib).t(),
    "T": lambda lib: sparse(lib).T,
    "transpose": lambda lib: sparse(lib).transpose(0, 1),
    "times a number": lambda lib: (sparse(lib) * 2, 2 * sparse(lib), sparse(lib).mul(2)),
    "over a number": lambda lib: sparse(lib) / 2,
    "times a dense one": lambda lib: sparse(lib) * dense(lib, 2, 3),
    "times a tensor of no dimensions": lambda lib: sparse(lib) * dense(lib, 1).squeeze(),
    "negative": lambda lib: -sparse(lib),
    "sum of two": lambda lib: sparse(lib).coalesce() + (sparse(lib) * 3).coalesce(),
    "difference of two": lambda lib: (sparse(lib) - sparse(lib)).to_dense(),
    "dense plus": lambda lib: dense(lib, 2, 3) + sparse(lib),
    "plus dense": lambda lib: sparse(lib) + dense(lib, 2, 3),
    "plus a number": lambda lib: sparse(lib) + 1,
    "sum": lambda lib: (sparse(lib).sum(), lib.sparse.sum(sparse(lib))),
    "sum over rows": lambda lib: lib.sparse.sum(sparse(lib), dim=0),
    "sum over columns": lambda lib: (sparse(lib).sum(1), lib.sparse.sum(sparse(lib), dim=1)),
    "sum over both": lambda lib: lib.sparse.sum(sparse(lib), dim=(0, 1)),
    "softmax": lambda lib: lib.sparse.softmax(sparse(lib).double() / 4, 1).values().sum(),
    "coalesce": lambda lib: (sparse(lib).coalesce(), sparse(lib).coalesce().values()),
    "indices": lambda lib: (sparse(lib)._indices(), sparse(lib).coalesce().indices()),
    "values": lambda lib: sparse(lib)._values(),
    "indices too early": lambda lib: sparse(lib).indices(),
    "values too early": lambda lib: sparse(lib).values(),
    "dtypes": lambda lib: (sparse(lib).double(), sparse(lib).to(lib.float16), sparse(lib).int()),
    "clones": lambda lib: (sparse(lib).clone(), copy.deepcopy(sparse(lib)), sparse(lib).detach()),
    "facts": lambda lib: [
        (s.shape, s.size(0), s.ndim, s.dim(), s.dtype, s.layout, s.is_sparse, s.numel(), s._nnz())
        + (s.sparse_dim(), s.dense_dim(), len(s), s.requires_grad, s.is_leaf, lib.is_tensor(s))
        for s in (sparse(lib), hybrid(lib))
    ],
    "types": lambda lib: (sparse(lib).cpu().type(), sparse(lib).type(lib.float64)),
    "data": lambda lib: sparse(lib).data,
    "contiguous": lambda lib: sparse(lib).contiguous(),
    "values of several elements": lambda lib: (hybrid(lib), hybrid(lib).coalesce()),
    "bool": lambda lib: bool(sparse(lib)),
    "numpy": lambda lib: lib.exp(sparse(lib)),
    "view": lambda lib: sparse(lib).view(3, 2),
    "to_sparse": lambda lib: lib.eye(3, device=device_of(lib)).to_sparse(),
    "to_sparse of rows": lambda lib: dense(lib, 3, 2).to_sparse(1),
    "to_sparse of too many": lambda lib: dense(lib, 3, 2).to_sparse(3),
    "to_sparse of none": lambda lib: dense(lib, 3, 2).to_sparse(0),
    "to_sparse_coo": lambda lib: dense(lib, 3, 2).to_sparse_coo().to_sparse(),
    "sparse_mask": lambda lib: dense(lib, 2, 3).sparse_mask(sparse(lib).coalesce()),
    "without a size": lambda lib: lib.sparse_coo_tensor(PLACES, VALUES),
    "empty": lambda lib: (lib.sparse_coo_tensor((2, 3)), lib.sparse_coo_tensor(size=(2, 3))),
    "old constructors": lambda lib: (
        lib.sparse.FloatTensor(lib.tensor(PLACES), lib.tensor(VALUES), lib.Size([2, 4])),
        lib.sparse.DoubleTensor(2, 3),
        isinstance(sparse(lib).cpu(), lib.sparse.FloatTensor),
        isinstance(sparse(lib).cpu(), lib.sparse.LongTensor),
        isinstance(dense(lib, 2).cpu(), lib.sparse.FloatTensor),
    ),
    "a dtype": lambda lib: lib.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2], dtype=lib.float64),
    "too few values": lambda lib: lib.sparse_coo_tensor(PLACES, VALUES[:2], (2, 3)),
    "a size of other length": lambda lib: lib.sparse_coo_tensor(PLACES, VALUES, (2, 3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str) -> None:
    mine, reference = attempt(tlc, PROGRAMS[name]), attempt(torch, PROGRAMS[name])
    if isinstance(reference, type):  # NotImplementedError is a RuntimeError, here and there
        assert isinstance(mine, type) and issubclass(mine, RuntimeError) == issubclass(
            reference, RuntimeError
        )
    else:
        assert mine == reference


@pytest.mark.parametrize("name", ["plain", "coalesced", "double", "grad", "hybrid", "empty"])
@pytest.mark.skipif(DEVICE != "cpu", reason="the device is printed")
def test_printing(name: str) -> None:
    def shown(lib: Any) -> str:
        if name == "coalesced":
            return repr(sparse(lib).coalesce())
        if name == "double":
            return repr(sparse(lib).double())
        if name == "hybrid":
            return repr(hybrid(lib))
        if name == "empty":
            return repr(lib.sparse_coo_tensor(size=(2, 3)))
        return repr(sparse(lib, requires_grad=name == "grad"))

    assert shown(tlc) == shown(torch)


LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mm": lambda lib, a, x: lib.sparse.mm(a, x),
    "dense @": lambda lib, a, x: x[:, :2] @ a,
    "sparse @ sparse": lambda lib, a, x: (a @ a.t()).to_dense(),
    "to_dense": lambda lib, a, x: a.to_dense() * 2,
    "sum of rows": lambda lib, a, x: lib.sparse.sum(a, dim=1).to_dense(),
    "scaled": lambda lib, a, x: (a * 3).coalesce().t() @ x[:2],
    "softmax": lambda lib, a, x: lib.sparse.softmax(a, 1).to_dense(),
    "log_softmax": lambda lib, a, x: lib.sparse.log_softmax(a, 0).to_dense(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str) -> None:
    """To the values, to a leaf that is sparse itself (at its places), and to the dense factor."""
    found = []
    for lib in LIBRARIES:
        for leaf in (True, False):
            values = lib.tensor(VALUES, dtype=lib.float64, device=device_of(lib))
            values.requires_grad_(not leaf)
            places = lib.tensor(PLACES, device=device_of(lib))
            a = lib.sparse_coo_tensor(places, values, (2, 3), requires_grad=leaf)
            x = dense(lib, 3, 3).double().requires_grad_()
            (LOSSES[name](lib, a, x) ** 2).sum().backward()
            g = a.grad.to_dense()[tuple(places)] if leaf else values.grad
            gx = x.grad if x.grad is not None else lib.zeros(3, 3)
            found.append([*g.flatten().tolist(), *gx.flatten().tolist()])
    assert found[0] == pytest.approx(found[2], rel=1e-12)
    assert found[1] == pytest.approx(found[3], rel=1e-12)


def test_values_are_not_made_leaves() -> None:
    values = tlc.tensor(VALUES)
    a = tlc.sparse_coo_tensor(PLACES, values).requires_grad_()
    assert a.requires_grad and not values.requires_grad
    a.to_dense().sum().backward()
    assert a.grad is not None
    a.grad = None
    assert a.grad is None


def test_indices_are_checked() -> None:
    with pytest.raises(RuntimeError, match="size is 2 but found index 2"):
        tlc.sparse_coo_tensor(PLACES, VALUES, (2, 2))
    with pytest.raises(RuntimeError, match="negative index"):
        tlc.sparse_coo_tensor([[-1]], [1.0], (2,))


@pytest.mark.parametrize("name", ["zeros", "empty", "zeros_like", "new_zeros"])
def test_a_layout(name: str) -> None:
    for lib in LIBRARIES:
        x = lib.ones(2)
        call = x.new_zeros if name == "new_zeros" else getattr(lib, name)
        given = x if name == "zeros_like" else (2,)
        assert not call(given, layout=lib.strided).is_sparse
        made = call(given, layout=lib.sparse_coo, dtype=lib.float64)
        assert made.is_sparse and made.is_coalesced() and made._nnz() == 0
        assert tuple(made.shape) == (2,) and made.dtype is lib.float64


def test_a_layout_that_would_be_full() -> None:
    with pytest.raises(NotImplementedError, match="mostly zeros"):
        tlc.ones(2, layout=tlc.sparse_coo)


def test_unsupported_sparse_functions_suggest_to_dense() -> None:
    for call in (tlc.exp, tlc.prod, tlc.softmax, lambda a: a.amax(), lambda a: a.reshape(6)):
        with pytest.raises(NotImplementedError, match="to_dense"):
            call(sparse(tlc))


def test_a_graph_network_trains_as_in_torch() -> None:
    losses = []
    for lib in LIBRARIES:
        lib.manual_seed(0)
        place = device_of(lib)
        edges = lib.tensor([[0, 1, 2, 3, 0, 2, 4, 4], [1, 0, 3, 2, 2, 0, 1, 4]])
        adjacency = lib.sparse_coo_tensor(edges, lib.full((8,), 0.5), (5, 5)).to(place)
        first, second = lib.nn.Linear(4, 6).to(place), lib.nn.Linear(6, 3).to(place)
        x, y = lib.randn(5, 4).to(place), lib.tensor([0, 1, 2, 0, 1]).to(place)
        optimizer = lib.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            hidden = lib.relu(lib.spmm(adjacency, first(x)))
            loss = lib.nn.functional.cross_entropy(lib.spmm(adjacency, second(hidden)), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[:5] == pytest.approx(losses[5:], rel=1e-5)


DENSE: dict[str, Callable[[Any], Any]] = {
    name: lambda lib, name=name: getattr(dense(lib, 2, 2), name)()
    for name in "values indices coalesce is_coalesced crow_indices col_indices ccol_indices "
    "row_indices _indices _values _nnz q_scale q_zero_point int_repr qscheme "
    "q_per_channel_axis sparse_dim dense_dim to_dense dequantize".split()
} | {
    "dequantize integers": lambda lib: dense(lib, 2).long().dequantize(),
    "to_dense in a dtype": lambda lib: dense(lib, 2).to_dense(lib.float64),
    "the same": lambda lib: (lambda x: (x.to_dense() is x, x.dequantize() is x))(dense(lib, 2)),
    "torch.q_scale": lambda lib: lib.q_scale(dense(lib, 2)),
    "strided": lambda lib: dense(lib, 2).to_sparse(layout=lib.strided),
    "padded": lambda lib: dense(lib, 2).to_padded_tensor(0.0),
    "a dense mask": lambda lib: dense(lib, 2).sparse_mask(dense(lib, 2)),
}


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_tensor(name: str) -> None:
    assert attempt(tlc, DENSE[name]) == attempt(torch, DENSE[name])
