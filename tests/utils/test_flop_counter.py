"""Counted operations: PyTorch's counts of the same programs, and published ones."""

from __future__ import annotations

import pytest
import torch
import torch.utils.flop_counter as their_counter
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.flop_counter as our_counter
from tensorflow_lite_clone.utils.flop_counter import FlopCounterMode
from tensorflow_lite_clone.vision import models
from tests.device import DEVICE
from tests.utils.counters import COUNTERS, block, by_module, device, inputs


@pytest.fixture(autouse=True)
def _products_that_are_seen():
    """Without oneDNN: PyTorch's counter does not see the products in its recurrent layers."""
    torch.backends.mkldnn.set_flags(False)
    yield
    torch.backends.mkldnn.set_flags(True)


def totals(lib, program, *tensors):
    """What the forward and the backward pass cost."""
    with COUNTERS[lib].FlopCounterMode(display=False) as forward:
        y = program(lib, *tensors)
    with COUNTERS[lib].FlopCounterMode(display=False) as backward:
        if y.requires_grad:
            y.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def f(name, *args, **kwargs):
    """A function of `nn.functional` on tensors that come before further arguments."""
    return lambda lib, *xs: getattr(lib.nn.functional, name)(*xs, *args, **kwargs)


def t(name, *args):
    return lambda lib, *xs: getattr(lib, name)(*xs, *args)


def e(equation):
    return lambda lib, *xs: lib.einsum(equation, *xs)


ROWS = [
    ("linear", f("linear"), (3, 4), (5, 4), (5,)),
    ("linear_of_batches", f("linear"), (2, 3, 4), (5, 4), (5,)),
    ("linear_without_bias", f("linear"), (2, 3, 4), (5, 4)),
    ("linear_of_a_vector", f("linear"), (4,), (5, 4), (5,)),
    ("mm", t("mm"), (3, 4), (4, 5)),
    ("vector_and_matrix", t("matmul"), (4,), (4, 5)),
    ("matrix_and_vector", t("matmul"), (3, 4), (4,)),
    ("dot", t("dot"), (4,), (4,)),
    ("outer", t("outer"), (4,), (5,)),
    ("batch_and_matrix", t("matmul"), (2, 3, 4), (4, 5)),
    ("matrix_and_batch", t("matmul"), (3, 4), (2, 4, 5)),
    ("batch_and_vector", t("matmul"), (2, 3, 4), (4,)),
    ("batches_that_broadcast", t("matmul"), (7, 1, 3, 4), (2, 4, 5)),
    ("bmm", t("bmm"), (2, 3, 4), (2, 4, 5)),
    ("addmm", t("addmm"), (5,), (3, 4), (4, 5)),
    ("baddbmm", t("baddbmm"), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    ("tensordot", t("tensordot", 2), (3, 4, 5), (4, 5, 6)),
    ("inner", t("inner"), (3, 4), (5, 4)),
    ("matrix_power", lambda lib, a: lib.linalg.matrix_power(a, 5), (4, 4)),
    ("multi_dot", lambda lib, *xs: lib.linalg.multi_dot(xs), (3, 4), (4, 5), (5, 6)),
    ("einsum_of_batches", e("bij,bjk->bik"), (2, 3, 4), (2, 4, 5)),
    ("einsum_of_matrices", e("ij,jk->ik"), (3, 4), (4, 5)),
    ("einsum_of_elements", e("i,j->ij"), (3,), (4,)),
    ("einsum_of_everything", e("ij,ij->"), (3, 4), (3, 4)),
    ("einsum_of_three", e("ij,jk,kl->il"), (3, 4), (4, 5), (5, 6)),
    ("einsum_bilinear", e("bi,oij,bj->bo"), (3, 4), (6, 4, 5), (3, 5)),
    ("conv1d", f("conv1d"), (2, 3, 10), (6, 3, 3), (6,)),
    ("conv1d_wide", f("conv1d", None, 2, 1, 2), (2, 3, 10), (6, 3, 3)),
    ("conv2d", f("conv2d", None, 2, 1), (2, 4, 8, 8), (6, 4, 3, 3)),
    ("conv2d_of_one", f("conv2d"), (3, 8, 8), (4, 3, 3, 3)),
    ("conv2d_same", f("conv2d", padding="same"), (2, 3, 8, 8), (4, 3, 3, 3)),
    ("conv3d", f("conv3d"), (2, 3, 5, 5, 5), (4, 3, 2, 2, 2)),
    ("conv_transpose1d", f("conv_transpose1d"), (2, 3, 10), (3, 6, 3), (6,)),
    ("conv_transpose2d", f("conv_transpose2d", None, 2, 1, 1), (2, 4, 8, 8), (4, 6, 3, 3)),
    ("conv_transpose3d", f("conv_transpose3d"), (2, 3, 4, 4, 4), (3, 2, 2, 2, 2)),
    ("relu", t("relu"), (3, 4)),
]


@parameterized.expand(ROWS, skip_on_empty=False)
def test_ops(_, program, *shapes):
    counts = [totals(lib, program, *inputs(lib, shapes, "1" * len(shapes))) for lib in COUNTERS]
    assert counts[0] == counts[1]


@parameterized.expand(
    [
        (f"{name}_{wanted}", program, wanted, *shapes)
        for name, program, *shapes in ROWS
        if name in ("linear", "mm", "bmm", "addmm", "baddbmm", "conv2d", "conv_transpose2d")
        for wanted in ("100", "010", "001", "110", "000")
        if "1" not in wanted[len(shapes) :]
    ]
)
def test_gradients_that_are_not_wanted(_, program, wanted, *shapes):
    wanted = wanted[: len(shapes)]
    counts = [totals(lib, program, *inputs(lib, shapes, wanted)) for lib in COUNTERS]
    assert counts[0] == counts[1]


@parameterized.expand(
    [
        ("conv2d", f("conv2d", groups=2), 2, (2, 4, 8, 8), (6, 2, 3, 3)),
        ("depthwise", f("conv2d", None, 1, 1, groups=4), 4, (2, 4, 8, 8), (4, 1, 3, 3)),
        ("transposed", f("conv_transpose2d", groups=2), 2, (2, 4, 8, 8), (4, 3, 3, 3)),
    ]
)
def test_groups(_, program, groups, *shapes):
    """PyTorch counts the gradient of a weight in groups as if every channel met every other."""
    ours, theirs = [totals(lib, program, *inputs(lib, shapes, "11")) for lib in COUNTERS]
    forward = theirs[0]
    assert ours == (forward, 2 * forward)
    assert theirs[1] == (1 + groups) * forward


def test_products_that_pytorch_does_not_see():
    """Of ops of its own that are made of products, PyTorch's counter sees none."""
    shapes = (3, 4), (3, 5), (6, 4, 5)
    ours, theirs = [totals(lib, f("bilinear"), *inputs(lib, shapes, "111")) for lib in COUNTERS]
    forward = 2 * 3 * 6 * 4 * 5 + 2 * 3 * 6 * 5
    assert (ours, theirs) == ((forward, 2 * forward), (0, 0))


@parameterized.expand(
    [
        ("plain", {}, (2, 3, 8, 4), (2, 3, 9, 4), (2, 3, 9, 5)),
        ("causal", {"is_causal": True}, (3, 8, 4), (3, 9, 4), (3, 9, 4)),
        ("dropout", {"dropout_p": 0.1}, (2, 3, 8, 4), (2, 3, 9, 4), (2, 3, 9, 4)),
        ("shared_heads", {"enable_gqa": True}, (2, 6, 8, 4), (2, 3, 9, 4), (2, 3, 9, 5)),
    ]
)
def test_attention(_, options, q, k, v):
    """PyTorch's CPU kernels for it are not counted; its formulas are those of a GPU's kernels."""
    program = f("scaled_dot_product_attention", **options)
    g = (*q[:-1], v[-1])
    four = [(1,) * (4 - len(shape)) + shape for shape in (g, q, k, v)]  # its formulas want heads
    forward = their_counter.sdpa_flop_count(*four[1:])
    backward = their_counter.sdpa_backward_flop_count(*four)
    assert totals(tlc, program, *inputs(tlc, (q, k, v), "111")) == (forward, backward)
    assert our_counter.sdpa_flop_count(q, k, v) == forward
    assert our_counter.sdpa_backward_flop_count(g, q, k, v) == backward


def test_attention_whose_values_alone_want_gradients():
    q, k, v = (2, 8, 4), (2, 9, 4), (2, 9, 5)
    tensors = inputs(tlc, (q, k, v), "001")
    _, backward = totals(tlc, f("scaled_dot_product_attention"), *tensors)
    assert backward == 2 * 2 * 8 * 9 * (4 + 5)  # the scores again, and the values' gradient


@parameterized.expand(
    [
        ("mm_flop", (3, 4), (4, 5)),
        ("bmm_flop", (2, 3, 4), (2, 4, 5)),
        ("addmm_flop", (5,), (3, 4), (4, 5)),
        ("baddbmm_flop", (1,), (2, 3, 4), (2, 4, 5)),
        ("sdpa_flop", (2, 3, 8, 4), (2, 3, 9, 4), (2, 3, 9, 5)),
        ("conv_flop_count", [2, 4, 8, 8], [6, 4, 3, 3], [2, 6, 6, 6]),
        ("conv_flop_count", [2, 4, 8, 8], [4, 6, 3, 3], [2, 6, 10, 10], True),
        ("get_suffix_str", 999),
        ("get_suffix_str", 1_000_000),
        ("get_suffix_str", 10**20),
        ("convert_num_with_suffix", 123_456_789, "M"),
        ("convert_num_with_suffix", 12, ""),
        ("convert_to_percent_str", 1, 3),
        ("convert_to_percent_str", 1, 0),
        ("get_shape", 3),
    ]
)
def test_functions_that_programs_import(name, *arguments):
    expected = getattr(their_counter, name)(*arguments)
    assert getattr(our_counter, name)(*arguments) == expected


# -- modules --------------------------------------------------------------------------------------


def network(lib):
    class Network(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = lib.nn.ModuleList([block(lib), block(lib)])
            self.sequence = lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.Conv1d(1, 2, 3))
            self.shared = self.layers[0]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            x = self.shared(x) @ lib.ones(4, 4, device=device(lib))
            return self.sequence[1](self.sequence[0](x)[:, None])

    return Network()


def recurrent(name, *args, **kwargs):
    return lambda lib: getattr(lib.nn, name)(*args, **kwargs)


def heads(lib):
    class Heads(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = lib.nn.MultiheadAttention(8, 2)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    return Heads()


def residual(lib):
    class Residual(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = lib.nn.Conv2d(3, 8, 3, 1, 1, bias=False)
            self.norm = lib.nn.BatchNorm2d(8)
            self.conv2 = lib.nn.Conv2d(8, 8, 3, 1, 1)
            self.short = lib.nn.Conv2d(3, 8, 1)
            self.head = lib.nn.Linear(8, 10)

        def forward(self, x):
            y = self.conv2(self.norm(self.conv1(x)).relu()) + self.short(x)
            return self.head(lib.nn.functional.max_pool2d(y, 2).mean((2, 3)))

    return Residual()


MODELS = [
    ("network", network, (3, 4)),
    ("residual", residual, (2, 3, 8, 8)),
    ("heads", heads, (5, 2, 8)),
    ("lstm", recurrent("LSTM", 4, 5, 2, bidirectional=True), (7, 3, 4)),
    ("lstm_projected", recurrent("LSTM", 4, 5, proj_size=3), (7, 3, 4)),
    ("gru", recurrent("GRU", 4, 5, batch_first=True), (7, 3, 4)),
    ("rnn", recurrent("RNN", 4, 5), (7, 3, 4)),
    ("lstm_cell", recurrent("LSTMCell", 4, 5), (3, 4)),
    ("gru_cell", recurrent("GRUCell", 4, 5), (3, 4)),
]


#: PyTorch tells from the gradients that arrive at a module's inputs and outputs where its backward
#: is. If an input is used elsewhere, or an output nowhere, it is in a module too long or too short.
ELSEWHERE = {"Residual.short", "LSTMCell"}


def counts_of_training(lib, make, shape, wanted):
    model = make(lib).to(device(lib))
    (x,) = inputs(lib, [shape], wanted)
    with COUNTERS[lib].FlopCounterMode(display=False) as counter:
        y = model(x)
        (y[0] if isinstance(y, tuple) else y).sum().backward()
    return by_module(lib, counter)


@parameterized.expand(
    [(f"{name}_{flag}", make, shape, flag) for name, make, shape in MODELS for flag in "01"]
)
def test_models(_, make, shape, wanted):
    """Forward and backward in one context, all modules; the input wants a gradient or does not."""
    ours, theirs = [counts_of_training(lib, make, shape, wanted) for lib in COUNTERS]
    assert ours.keys() == theirs.keys()
    assert {path for path in ours if ours[path] != theirs[path]} <= ELSEWHERE
    assert ours["Global"] > 0


def test_modules_that_pytorch_leaves_late_or_early():
    ours = counts_of_training(tlc, residual, (2, 3, 8, 8), "0")
    assert ours["Residual.short"] == 2 * (2 * 2 * 8 * 64 * 3)  # forward, the weight's gradient
    ours = counts_of_training(tlc, recurrent("LSTMCell", 4, 5), (3, 4), "1")
    assert ours["LSTMCell"] == ours["Global"]


def test_an_encoder():
    """PyTorch's CPU keeps the scores if there is dropout, and does not compute them again."""

    def make(lib):
        return lib.nn.TransformerEncoderLayer(8, 2, 16)

    ours, theirs = [counts_of_training(lib, make, (5, 2, 8), "1") for lib in COUNTERS]
    again = 2 * 2 * 2 * 5 * 5 * 4  # of 2 samples, 2 heads
    assert {path: ours[path] - theirs[path] for path in ours} == {
        path: again
        * (path in ("Global", "TransformerEncoderLayer", "TransformerEncoderLayer.self_attn"))
        for path in theirs
    }


def test_a_backward_pass_alone_is_in_no_module():
    def counts(lib):
        y = network(lib).to(device(lib))(*inputs(lib, [(3, 4)], "0")).sum()
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            y.backward()
        return by_module(lib, counter)

    assert counts(tlc) == counts(torch)


def test_names_of_modules_seen_before():
    def counts(lib):
        inner = block(lib).to(device(lib))
        (x,) = inputs(lib, [(3, 4)], "0")
        counter = COUNTERS[lib].FlopCounterMode(display=False)
        with counter:
            inner(x)
        found = [by_module(lib, counter)]
        with counter:  # counts begin again, names stay
            lib.nn.Sequential(inner)(x)
        return [*found, by_module(lib, counter)]

    assert counts(tlc) == counts(torch)


def test_one_counter_inside_of_another():
    def counts(lib):
        (x,) = inputs(lib, [(3, 3)], "0")
        with COUNTERS[lib].FlopCounterMode(display=False) as outer:
            x @ x
            with COUNTERS[lib].FlopCounterMode(display=False) as inner:
                x @ x
            x @ x
        return outer.get_total_flops(), inner.get_total_flops()

    assert counts(tlc) == counts(torch) == (3 * 54, 54)


@parameterized.expand([("resnet18", 1.814), ("resnet50", 4.089), ("vit_b_16", 17.564)])
def test_published_counts(name, expected):
    """torchvision's pages give these as GFLOPS; they are multiplications with their additions."""
    with tlc.no_grad(), FlopCounterMode(display=False) as counter:
        getattr(models, name)().eval().to(DEVICE)(tlc.zeros(1, 3, 224, 224, device=DEVICE))
    assert counter.get_total_flops() / 2e9 == pytest.approx(expected, rel=0.01)
