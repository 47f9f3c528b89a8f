"""What ops cost: the conventions, bytes, and that no op of the table upsets them."""

from __future__ import annotations

from math import log2

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.utils import _op_costs as op_costs
from tensorflow_lite_clone.utils._op_costs import bytes_of, flops_of
from tests.device import DEVICE
from tests.op_db import OPS
from tests.op_db._check import OURS, Trial


def test_names_are_those_of_ops():
    products = op_costs.products.keys()
    gradients = {name for name in products if name.removesuffix("_backward") in products - {name}}
    for name in {*products, *op_costs._others, *op_costs._other_gradients} - gradients:
        assert is_op(TABLE.get(name)), name
    assert not op_costs.products.keys() & op_costs._others.keys()


@parameterized.expand(
    [
        ("add", [(3, 1), (4,)], (3, 4), {}, 12),
        ("gelu", [(3, 4)], (3, 4), {}, 12),
        ("addcmul", [(3, 4)] * 3, (3, 4), {"value": 1}, 36),
        ("sum", [(3, 4)], (3,), {"axis": 1, "keepdims": False}, 12),
        ("var", [(3, 4)], (3,), {"axis": 1}, 48),
        ("softmax", [(3, 4)], (3, 4), {"axis": 1}, 60),
        ("layer_norm", [(3, 4), (4,), None], ((3, 4), (3, 1)), {"ndim": 1}, 84),
        ("max_pool", [(1, 2, 8, 8)], ((1, 2, 4, 4), (0,)), {"kernel": (2, 2)}, 128),
        ("mv", [(3, 4), (4,)], (3,), {}, 24),
        ("dot", [(4,), (4,)], (), {}, 8),
        ("fft_c2c", [(3, 8)], (3, 8), {"axes": (1,)}, 5 * 24 * 3),
        ("fft_r2c", [(3, 8)], (3, 5), {"axes": (1,)}, int(2.5 * 24 * 3)),
        ("fft_c2c", [(3, 1)], (3, 1), {"axes": (1,)}, 0),
        ("cholesky", [(2, 6, 6)], (2, 6, 6), {"upper": False}, 2 * 72),
        ("solve", [(6, 6), (6, 2)], (6, 2), {}, 144 + 2 * 36 * 2),
        ("eq", [(3, 4)], (3, 4), {}, 0),
        ("reshape", [(3, 4)], (12,), {}, 0),
        ("no_such_op", [(3, 4)], (12,), {"what": 3}, 0),
    ]
)
def test_conventions(name, shapes, out, parameters, expected):
    assert flops_of(name, tuple(shapes), parameters, out) == expected
    counted = expected if name in op_costs.products else 0
    assert flops_of(name, tuple(shapes), parameters, out, everything=False) == counted


#: Ops of the table without a cost of their own, by the reason; a `-` before a name says that this
#: is so of the gradient alone, a `+` of the forward alone.
FREE = {
    "moves, fills, converts or takes apart elements": """
        cast cast_to_integers cast_weight cat clone constant_pad copy_into embed +embedding
        embedding_pick fill flip frexp +gather gather_sparse +im2col +index +index_along index_mask
        index_put +index_select make_complex mask_put masked_fill max_pool_indices max_pool_pick
        nothing_pooled one_hot put_along_axis repeat repeat_interleave restride roll scatter stack
        to_device tril triu unsafe_view view_scatter where zero conj_physical lu_permutation
        -scatter_reduce -index_add -scatter_add -col2im -fold_windows -embedding_backward
        -max_pool_backward -avg_pool_backward
    """,
    "compares, counts or sorts": """
        adaptive_max_indices all any check_phases count_integers count_nonzero eq equal_all ge gt
        hamming histc is_in isclose isfinite isinf isnan isneginf isposinf isreal kthvalue le lt
        median_of_all median_with_indices mode nanmedian_of_all nanmedian_with_indices ne nextafter
        search_sorted signbit sort_with_indices topk unique_rows
    """,
    "works on bits, truth values or whole numbers": """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd
        hash_tensor lcm logical_and logical_not logical_or logical_xor
    """,
    "draws random numbers, however many attempts that takes": """
        attention_noise binomial sample_dirichlet sampled standard_gamma dirichlet_grad
        standard_gamma_grad
    """,
    "takes as many products as the values ask for": "lobpcg matrix_exp",
    "has no convention yet": """
        chebyshev cofactors ctc_loss geqrf householder_product ldl_factor ldl_solve least_squares
        ormqr pinv resample +svdvals
    """,
}


def _free(sign: str) -> set[str]:
    names = {name for names in FREE.values() for name in names.split()}
    kept = {name for name in names if name[0] not in "+-"}
    return kept | {name[1:] for name in names if name[0] == sign}


def _calculating(gradients: bool) -> set[str]:
    """Ops that are no views; of `gradients`, those that have one."""
    ops = {name: op for name, op in TABLE.items() if is_op(op) and not op.view}
    if not gradients:
        return {*ops}
    return {name for name in ops if any(part.startswith("backward") for part in vars(ops[name]))}


def test_every_op_has_a_cost_or_a_reason():
    assert _calculating(False) - {*op_costs.products, *op_costs._others} == _free("+")


def test_every_gradient_has_a_cost_or_a_reason():
    found = _calculating(True)
    counted = {name for name in found if f"{name}_backward" in op_costs.products}
    assert found - counted - {*op_costs._other_gradients} == _free("-") & found


class Costs:
    """What runs inside costs, by the names of ops and nodes."""

    def __init__(self):
        self.flops, self.bytes = {}, {}

    def __enter__(self):
        hooks.add(self._op)
        hooks.backwards.append(self._gradient)
        return self

    def __exit__(self, *error):
        hooks.backwards.remove(self._gradient)
        hooks.remove(self._op)

    def _op(self, op, backend, call):
        def run(*arrays, **parameters):
            result = call(*arrays, **parameters)
            flops = flops_of(op.name, arrays, parameters, result)
            self._note(op.name, flops, bytes_of(op.name, arrays, result))
            return result

        return run

    def _gradient(self, node, call, grads):
        results = call(grads)
        flops = op_costs.flops_of_gradient(node, tuple([r is not None for r in results]))
        self._note(node.name(), flops, op_costs.bytes_of_gradient(node, grads, results))
        bytes_of(node.name(), tuple(grads), results)
        return results

    def _note(self, name, flops, size):
        assert type(flops) is type(size) is int
        assert min(flops, size) >= 0
        self.flops[name] = self.flops.get(name, 0) + flops
        self.bytes[name] = self.bytes.get(name, 0) + size


def test_every_op():
    """All rows of the table, forwards and backwards, of the first and the second order."""
    rows = [op for op in OPS if op.grad and "float64" in op.dtypes]
    with Costs() as costs:
        for number, op in enumerate(rows):
            for sample in op.samples:
                trial = Trial(op, sample)
                if trial.inputs and sample.mode in ("full", "torch"):
                    twice = op.order2 is True and sample.mode == "full" and number % 5 == 0
                    trial.derivative(OURS, 2 if twice else 1)
    assert len(costs.flops) > 400
    assert costs.flops["ConvolutionBackward0"] > costs.flops["conv"] > 0


def test_gradients():
    x = tlc.ones(5, 4, device=DEVICE, requires_grad=True)
    w = tlc.ones(3, 4, device=DEVICE, requires_grad=True)
    with Costs() as costs:
        tlc.nn.functional.linear(x, w).relu().softmax(1).sum().backward()
    assert costs.flops == {
        "linear": 120, "relu": 15, "softmax": 75, "sum": 15, "SumBackward0": 15,
        "SoftmaxBackward0": 60, "ReluBackward0": 15, "AddmmBackward0": 240,
    }  # fmt: skip
    assert costs.bytes["linear"] == 4 * (20 + 12 + 15)
    assert costs.bytes["AddmmBackward0"] == 4 * (15 + 2 * (20 + 12))  # g; x and w, and theirs
    assert costs.bytes["SoftmaxBackward0"] == 4 * (1 + 15 + 15)  # g is one number, expanded


def test_a_recorded_pass_counts_what_formulas_call():
    x = tlc.ones(3, 3, device=DEVICE, requires_grad=True)
    with Costs() as costs:
        y = x @ x
        tlc.autograd.grad(y.sum(), x, create_graph=True)
        tlc.func.grad(lambda x: (x @ x).sum())(x)
    assert costs.flops["mm"] + costs.flops.get("bmm", 0) == 2 * 3 * 54
    assert costs.flops["MmBackward0"] == 0


def test_bytes():
    x = tlc.ones(6, 4, device=DEVICE)
    rows = tlc.tensor([0, 1], device=DEVICE)
    with Costs() as costs:
        x.t()
        x[1:3]
        x + x[:, :1].expand(6, 4)
        x.index_select(0, rows)
        tlc.full_like(x, 3.0)
    assert costs.bytes["transpose"] == costs.bytes["slice"] == 0
    assert costs.bytes["add"] == 4 * (24 + 24 + 6)  # what is expanded is read once
    assert costs.bytes["index_select"] == 2 * 8 + 4 * (8 + 8)  # of x only what is taken
    assert costs.flops["index_select"] == 0


def test_attention_and_transforms_are_what_their_products_are():
    x = tlc.ones(2, 16, device=DEVICE)
    q = tlc.ones(2, 8, 4, device=DEVICE)
    with Costs() as costs:
        tlc.fft.fft(tlc.complex(x, x))
        tlc.nn.functional.scaled_dot_product_attention(q, q, q)
    assert costs.flops["fft_c2c"] == 5 * 32 * log2(16)
    assert costs.flops["attention"] == 2 * (2 * 2 * 8 * 8 * 4)


def test_an_op_without_a_formula_is_cheap_to_ask():
    with pytest.raises(KeyError):
        op_costs.products["relu_of_everything"]
    assert flops_of("relu_of_everything", (object(), None), {"x": 3}, None) == 0
    assert bytes_of("relu_of_everything", (object(), None), None) == 0


@parameterized.expand(
    [
        ("det", lambda x: tlc.linalg.det(x), 2 * 6**3),
        ("slogdet", lambda x: tlc.linalg.slogdet(x)[1], 2 * 6**3),
        ("cholesky", lambda x: tlc.linalg.cholesky(x), 4 * 6**3),
        ("eigh", lambda x: tlc.linalg.eigh(x)[1], 6 * 6**3),
        ("qr", lambda x: tlc.linalg.qr(x)[0], 7 * 6**3),
        ("svd", lambda x: tlc.linalg.svd(x)[1], 10 * 6**3),
        ("lu_factor", lambda x: tlc.linalg.lu_factor(x)[0], 6 * 6**3),
    ]
)
def test_gradients_of_factorizations(name, call, expected):
    x = (tlc.eye(6) * tlc.arange(1.0, 7)).to(DEVICE).requires_grad_()
    found = call(x).sum()
    with Costs() as costs:
        found.backward()
    assert expected in costs.flops.values()


def test_the_loss_of_class_indices():
    x = tlc.ones(5, 4, device=DEVICE, requires_grad=True)
    with Costs() as costs:
        tlc.nn.functional.nll_loss(x, tlc.zeros(5, dtype=tlc.int64, device=DEVICE)).backward()
    assert costs.flops == {"nll_loss": 5, "NllLossBackward0": 5}
