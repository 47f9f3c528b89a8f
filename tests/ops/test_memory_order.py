"""How results and gradients lie in memory, for every row and the ways in which inputs may lie.

PyTorch on the CPU decides. Shapes and strides are compared, and what is drawn for a result's shape
in the order of its memory. The strides of dimensions of size one, and of tensors without elements,
are not: neither `view` nor `is_contiguous` looks at them, and NumPy gives them as it likes.
"""

from __future__ import annotations

import unittest

import numpy as np

from tests.op_db import OPS
from tests.op_db._case import HostTensor, TensorSpec, draw, materialize, tree_leaves
from tests.op_db._check import OURS, TORCH, failure_note, flatten, parametrize_rows, representable
from tests.op_db._layouts import stepped, transposed
from tests.ops.test_layout import REFUSALS, alike, expanded

_MKL = "PyTorch's transform in several steps, each of which orders the dimensions anew"
#: row -> why PyTorch's layout is not followed
GAPS = {
    "complex.angle": "PyTorch has another function for angles of complex numbers, row-major",
    "angle.of_parts": "PyTorch has another function for angles of complex numbers, row-major",
    "complex.conj": "PyTorch's is a lazy view: docs/differences.md",
    "fft.ihfft2": _MKL,
    "fft.ihfft2.real": _MKL,
    "fft.ihfftn": _MKL,
    "fft.ihfftn.real": _MKL,
    "histogramdd": "PyTorch returns the given edges as they lie, here they are copied",
    "linalg.lstsq": "PyTorch's result is a part of the larger right-hand side",
    "linalg.lstsq.deficient": "PyTorch's result is a part of the larger right-hand side",
    "triangular_solve": "PyTorch's copy of the matrix is column-major, here it is the matrix",
}
#: (row, layout) -> likewise
GAPS_OF_LAYOUTS = {
    ("fft.fft", "expanded"): _MKL,
    ("fft.ifft", "expanded"): _MKL,
    ("F.scaled_dot_product_attention", "outer"): "the row's PyTorch is not fused: TestAttention",
}


def contiguous(side, array, dtype):
    return side.tensor(array, dtype)


def last_two(side, array, dtype):
    """The last two dimensions exchanged."""
    if array.ndim < 2:
        return side.tensor(array, dtype)
    return side.tensor(array.swapaxes(-1, -2), dtype).transpose(-1, -2)


def channels_last(side, array, dtype):
    if array.ndim not in (4, 5):
        return side.tensor(array, dtype)
    order = (0, array.ndim - 1, *range(1, array.ndim - 1))
    return side.tensor(np.moveaxis(array, 1, -1), dtype).permute(order)


def inner(side, array, dtype):
    """The inside of longer lines."""
    if not array.ndim:
        return side.tensor(array, dtype)
    buffer = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    buffer[..., 2:-1] = array
    return side.tensor(buffer, dtype)[..., 2:-1]


def outer(side, array, dtype):
    """Every second row of a transposed tensor: neither dense nor in order."""
    if array.ndim < 2:
        return side.tensor(array, dtype)
    buffer = np.zeros((array.shape[1], 2 * array.shape[0], *array.shape[2:]), array.dtype)
    buffer[:, 1::2] = array.swapaxes(0, 1)
    return side.tensor(buffer, dtype)[:, 1::2].transpose(0, 1)


def odd_ones(side, array, dtype):
    """A contiguous tensor whose dimensions of size one have strides that mean nothing."""
    tensor = side.tensor(array, dtype)
    strides = [7 if n == 1 else s for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    return tensor.as_strided(tuple(array.shape), strides) if array.ndim else tensor


LAYOUTS = {
    layout.__name__: (layout, layout)
    for layout in (
        contiguous, last_two, transposed, channels_last, expanded, stepped, inner, outer, odd_ones
    )
}  # fmt: skip
#: The first tensor lies so, the others otherwise.
LAYOUTS |= {
    "first_last_two": (last_two, contiguous),
    "others_last_two": (contiguous, last_two),
    "first_channels_last": (channels_last, contiguous),
    "others_channels_last": (contiguous, channels_last),
}
#: Gradients depend on one rule only, which these tell apart.
LAYOUTS_OF_LEAVES = ("transposed", "channels_last", "outer", "others_last_two")


def chosen(op, dtype):
    """The samples of a row to look at: of each number of dimensions the one with most of size."""
    best = {}
    for sample in op.samples:
        args = tree_leaves((sample.args, sample.kwargs), TensorSpec)
        if not args or not representable(sample, dtype):
            continue
        shapes = [a.shape if a.literal is None else np.shape(a.literal) for a in args]
        score = sum(len(s) for s in shapes if all(n > 1 for n in s)), len(args)
        ndim = max(map(len, shapes))
        if ndim not in best or best[ndim][0] < score:
            best[ndim] = score, sample
    return [best[ndim][1] for ndim in sorted(best, reverse=True)][:2]


def lies(side, value):
    """Shape and strides of a tensor, as far as they are compared."""
    if not side.is_tensor(value):
        return None
    shape = tuple(value.shape)
    if 0 in shape:
        return shape
    return shape, tuple([0 if n == 1 else s for n, s in zip(shape, value.stride(), strict=True)])


def results(side, op, args, kwargs, variables):
    """How what a row's function returns lies."""
    return [lies(side, value) for value in flatten(side.run(op, args, kwargs))]


def gradients(side, op, args, kwargs, variables):
    """How the gradients lie that arrive in ``.grad``."""
    outputs = [
        value
        for value in flatten(side.run(op, args, kwargs))
        if side.is_tensor(value) and value.requires_grad
    ]
    losses = [(abs(y) if y.dtype.is_complex else y).square().sum() for y in outputs]
    if losses:
        side.call(sum(loss.to(losses[0].dtype) for loss in losses).backward)
    return [lies(side, leaf.grad) for leaf in variables]


def outcome(side, op, drawn, pair, look):
    """What `look` sees of a row's call, or the exception with which PyTorch refuses it."""
    made = []
    variables = []

    def make(value, dtype):
        tensor = pair[bool(made)](side, value.array, dtype)
        made.append(tensor)
        if look is gradients and value.requires_grad and "float" in dtype:
            tensor = tensor.detach().requires_grad_(True)
            variables.append(tensor)
        return tensor

    args, kwargs = materialize(drawn, side, make=make)
    side.module.manual_seed(3)
    return look(side, op, args, kwargs, variables)


class TestMemoryOrder(unittest.TestCase):
    maxDiff = None

    def check(self, op, look, layouts):
        """The chosen samples in these layouts; of a row with gaps one at least differs."""
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        differences = []
        for sample in chosen(op, dtype):
            for name in layouts:
                pair = LAYOUTS[name]
                drawn = draw(op, sample, dtype)
                alone = len(tree_leaves(drawn, HostTensor)) < 2
                if (alone and pair[0] is not pair[1]) or (
                    op.domain.distinct and name == "expanded"
                ):
                    continue
                if name == "expanded":
                    drawn = alike(drawn)
                with failure_note(sample, name):
                    try:
                        wanted = outcome(TORCH, op, drawn, pair, look)
                    except REFUSALS:
                        continue  # PyTorch needs another layout here
                    got = outcome(OURS, op, drawn, pair, look)
                    if look is results and (op.name in GAPS or (op.name, name) in GAPS_OF_LAYOUTS):
                        differences.append(got != wanted)
                        continue
                    self.assertEqual(got, wanted)
        if differences:
            self.assertTrue(any(differences), "there is no gap any more")

    @parametrize_rows(OPS)
    def test_results(self, op):
        self.check(op, results, LAYOUTS)

    @parametrize_rows([op for op in OPS if op.supports_autograd and "float32" in op.dtypes])
    def test_gradients(self, op):
        self.check(op, gradients, LAYOUTS_OF_LEAVES)


def numbers(module, shape):
    """Probabilities that differ."""
    count = int(np.prod(shape))
    return ((module.arange(count, dtype=module.float32) % 7 + 1) / 8).reshape(shape)


#: Tensors of a shape, by how they lie.
TENSORS = {
    "contiguous": lambda m, s: numbers(m, s),
    "last_two": lambda m, s: numbers(m, (*s[:-2], *s[:-3:-1])).transpose(-1, -2),
    "transposed": lambda m, s: numbers(m, s[::-1]).permute(*range(len(s) - 1, -1, -1)),
    "expanded": lambda m, s: numbers(m, (1, *s[1:])).expand(s),
    "expanded_last": lambda m, s: numbers(m, (*s[:-1], 1)).expand(s),
    "stepped": lambda m, s: numbers(m, (*s[:-1], 2 * s[-1]))[..., ::2],
    "outer": lambda m, s: numbers(m, (s[1], 2 * s[0], *s[2:]))[:, ::2].transpose(0, 1),
    "inner": lambda m, s: numbers(m, (*s[:-1], s[-1] + 3))[..., 2:-1],
    "empty": lambda m, s: numbers(m, (0, *s)).transpose(0, 1),
}
SHAPES = [(3, 5), (5, 8), (2, 3, 4), (2, 3, 4, 5)]  # some of fewer than 16 numbers
DRAWS = {
    "rand_like": lambda m, x: m.rand_like(x),
    "rand_like_float64": lambda m, x: m.rand_like(x, dtype=m.float64),
    "rand_like_row_major": lambda m, x: m.rand_like(x, memory_format=m.contiguous_format),
    "randn_like": lambda m, x: m.randn_like(x),
    "randn_like_bfloat16": lambda m, x: m.randn_like(x, dtype=m.bfloat16),
    "randint_like": lambda m, x: m.randint_like(x, 2, 9),
    "randint_like_int64": lambda m, x: m.randint_like(x, 2**40, dtype=m.int64),
    "bernoulli": lambda m, x: m.bernoulli(x),
    "bernoulli_of_a_number": lambda m, x: m.bernoulli(x, 0.4),
    "poisson": lambda m, x: m.poisson(5 * x),
    "binomial": lambda m, x: m.binomial(m.full_like(x, 9), x),
    "normal_means": lambda m, x: m.normal(x),
    "normal_both": lambda m, x: m.normal(x, x),
    "dropout": lambda m, x: m.nn.functional.dropout(x, 0.4),
    "dropout_in_place": lambda m, x: m.nn.functional.dropout(x.clone(), 0.4, inplace=True),
    "alpha_dropout": lambda m, x: m.nn.functional.alpha_dropout(x, 0.4, True),
    "feature_alpha_dropout": lambda m, x: m.nn.functional.feature_alpha_dropout(x, 0.4, True),
    "dropout2d": lambda m, x: m.nn.functional.dropout2d(x, 0.4),
    "native_dropout": lambda m, x: m.native_dropout(x, 0.4, True),
    "rrelu": lambda m, x: m.nn.functional.rrelu(-x, training=True),
    "gumbel_softmax": lambda m, x: m.nn.functional.gumbel_softmax(x, dim=-1),
    "after_softmax": lambda m, x: m.nn.functional.dropout(x.softmax(-1), 0.3),
    "after_sum": lambda m, x: m.nn.functional.dropout(x.sum(0), 0.3),
    "after_gelu": lambda m, x: m.nn.functional.dropout(m.nn.functional.gelu(x), 0.3),
    "after_add": lambda m, x: m.nn.functional.dropout(x + numbers(m, tuple(x.shape)), 0.3),
    "uniform_": lambda m, x: x.uniform_(),
    "normal_": lambda m, x: x.normal_(),
    "exponential_": lambda m, x: x.exponential_(),
    "geometric_": lambda m, x: x.geometric_(0.3),
    "log_normal_": lambda m, x: x.log_normal_(),
    "random_": lambda m, x: x.random_(3, 99),
    "bernoulli_": lambda m, x: x.bernoulli_(0.3),
    "bernoulli_of_a_tensor_": lambda m, x: x.bernoulli_(x.clone()),
    "trunc_normal_": lambda m, x: m.nn.init.trunc_normal_(x),
    "kaiming_normal_": lambda m, x: m.nn.init.kaiming_normal_(x),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "full_like": lambda m, x: m.full_like(x, 2.0),
    "ones_like_int64": lambda m, x: m.ones_like(x, dtype=m.int64),
    "clone": lambda m, x: x.clone(),
    "to_float64": lambda m, x: x.to(m.float64),
    "to_row_major": lambda m, x: x.to(m.float64, memory_format=m.contiguous_format),
}


@unittest.skipUnless(OURS.device == "cpu", "PyTorch's random numbers are matched on the CPU alone")
class TestDraws(unittest.TestCase):
    """Numbers are drawn in the order in which PyTorch fills memory, and the stream goes on so."""

    @parametrize_rows(list(DRAWS))
    def test(self, name):
        for layout, make in TENSORS.items():
            for shape in SHAPES:
                with failure_note(layout, shape):
                    self.check(DRAWS[name], make, shape)

    def check(self, call, make, shape):
        seen = []
        for side in (TORCH, OURS):
            module = side.module
            x = make(module, shape)
            module.manual_seed(5)
            try:
                found = flatten(side.call(call, module, x))
            except REFUSALS:
                seen.append(None)
                continue
            after = module.rand(3).tolist()
            seen.append(([lies(side, t) for t in found], after, [side.numpy(t) for t in found]))
        wanted, got = seen
        if wanted is None or got is None:
            self.assertIs(got, wanted)
            return
        self.assertEqual(got[:2], wanted[:2])
        for values, like in zip(got[2], wanted[2], strict=True):
            np.testing.assert_allclose(
                values.astype(np.float64), like.astype(np.float64), rtol=1e-4, atol=1e-5
            )


def heads(projected, count=2):
    """Queries, keys or values as layers split them: (batch, heads, length, size)."""
    return projected.view(*projected.shape[:2], count, -1).transpose(1, 2)


QUERIES = {
    "projected": lambda m: heads(numbers(m, (2, 6, 8))),
    "chunk": lambda m: heads(numbers(m, (2, 6, 24)).chunk(3, -1)[1]),
    "heads_first": lambda m: numbers(m, (2, 2, 6, 4)).transpose(0, 1),
    "contiguous": lambda m: numbers(m, (2, 2, 6, 4)),
    "size_first": lambda m: numbers(m, (2, 2, 4, 6)).transpose(2, 3),
    "one_batch": lambda m: heads(numbers(m, (1, 6, 8))).expand(2, -1, -1, -1),
}


@unittest.skipUnless(OURS.device == "cpu", "PyTorch has other forms of attention on other devices")
class TestAttention(unittest.TestCase):
    """Attention lies as PyTorch's fused form does, so that heads are joined by a view."""

    @parametrize_rows(list(QUERIES))
    def test(self, name):
        for options in ({}, {"is_causal": True}, {"dropout_p": 0.25}):
            for dtype in ("float32", "float64"):
                seen = []
                for side in (TORCH, OURS):
                    m = side.module
                    q = QUERIES[name](m).to(getattr(m, dtype))
                    m.manual_seed(1)
                    y = m.nn.functional.scaled_dot_product_attention(q, q, q, **options)
                    seen.append(lies(side, y))
                with failure_note(options, dtype):
                    self.assertEqual(seen[1], seen[0])

    def test_joined_by_a_view(self):
        q = heads(numbers(OURS.module, (2, 6, 8)))
        y = OURS.module.nn.functional.scaled_dot_product_attention(q, q, q)
        self.assertEqual(tuple(y.transpose(1, 2).view(2, 6, 8).shape), (2, 6, 8))
