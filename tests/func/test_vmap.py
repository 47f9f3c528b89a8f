"""vmap against PyTorch's."""

from __future__ import annotations

import warnings

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.func.batching import backend as backend_module
from tensorflow_lite_clone.func.batching.words import warned
from tests.autograd.against_torch import attempt, raises, same


def matrix(lib, grad=False):
    rows = [[0.3, 0.7, 1.2], [-0.5, 0.2, 2.0]]
    return lib.tensor(rows, dtype=lib.float64, requires_grad=grad)


def vmap(lib, function, *args, **options):
    return lib.func.vmap(function, **options)(*args)


CALLS = [
    ("in_dims", lambda lib, x: vmap(lib, lambda a: a * a.sum(), x, in_dims=1)),
    ("negative", lambda lib, x: vmap(lib, lambda a: a * a.sum(), x, in_dims=-1)),
    ("out_dims", lambda lib, x: vmap(lib, lambda a: a.outer(a), x, out_dims=1)),
    ("last", lambda lib, x: vmap(lib, lambda a: a.outer(a), x, out_dims=-1)),
    ("two", lambda lib, x: vmap(lib, lambda a, b: a @ b, x, x.T, in_dims=(0, 1))),
    ("shared", lambda lib, x: vmap(lib, lambda a, b: a * b, x, x[0], in_dims=(0, None))),
    ("number", lambda lib, x: vmap(lib, lambda a, b: a * b, x, 3, in_dims=(0, None))),
    ("keyword", lambda lib, x: lib.func.vmap(lambda a, *, k: a + k)(x, k=x)),
    ("tree", lambda lib, x: vmap(
        lib, lambda d: {"y": d["a"] + d["b"][0], "z": (d["a"],)}, {"a": x, "b": [x[0]]},
        in_dims=({"a": 0, "b": None},), out_dims={"y": 0, "z": (1,)})),
    ("prefix", lambda lib, x: vmap(lib, lambda p: (p[0], p[1] * 2), (x, x), out_dims=1)),
    ("several out_dims", lambda lib, x: vmap(lib, lambda a: (a, a), x, out_dims=(0, 1))),
    ("constant", lambda lib, x: vmap(lib, lambda a: lib.ones(2), x)),
    ("constant aside", lambda lib, x: vmap(lib, lambda a: lib.ones(2), x, out_dims=None)),
    ("closed over", lambda lib, x: vmap(lib, lambda a: x @ a, x)),
    ("nested", lambda lib, x: vmap(
        lib, lambda a: vmap(lib, lambda b: (a * b).sum(), x), x)),
    ("nested dims", lambda lib, x: vmap(
        lib, lambda a: vmap(lib, lambda b, c: b * c, a, x, in_dims=(0, 1), out_dims=-1),
        x, out_dims=1)),
    ("nested twice", lambda lib, x: lib.func.vmap(
        lib.func.vmap(lib.func.vmap(lambda a, b: a + b, in_dims=(None, 0)), in_dims=(0, None)),
        in_dims=(0, None))(x, x)),
    ("same level twice", lambda lib, x: vmap(
        lib, lambda a: vmap(lib, lambda b: b * 2, a) + vmap(lib, lambda b: b + a[0], a), x)),
    ("chunks", lambda lib, x: vmap(
        lib, lambda a, b: (a * b, a.sum()), x, x, in_dims=1, out_dims=(1, 0), chunk_size=2)),
    ("chunks of all", lambda lib, x: vmap(lib, lambda a: a * 2, x, chunk_size=7)),
    ("no samples", lambda lib, x: vmap(lib, lambda a: a.sum(), x[:0])),
    ("write", lambda lib, x: (vmap(lib, lambda a: a.mul_(2).add_(a), x), x)),
    ("write part", lambda lib, x: (vmap(lib, lambda a: put(a.clone(), a), x), x)),
    ("write to a view", lambda lib, x: vmap(lib, lambda a: doubled(a.clone()), x)),
    ("new memory", lambda lib, x: vmap(lib, lambda a: a.new_zeros(3).add_(a), x)),
    ("memory alike", lambda lib, x: vmap(lib, lambda a: lib.zeros_like(a).copy_(a), x)),
    ("index", lambda lib, x: vmap(lib, lambda a, i: a[i], x, lib.tensor([2, 0]))),
    ("index shared", lambda lib, x: vmap(
        lib, lambda a, i: a[i], x, lib.tensor([[2, 0], [1, 1]]), in_dims=(None, 0))),
    ("index inside", lambda lib, x: vmap(lib, lambda i: x[:, i], lib.tensor([[2, 0], [1, 1]]))),
    ("index around", lambda lib, x: vmap(
        lib, lambda i: x.expand(4, 2, 3)[i, :, i], lib.tensor([[2, 0], [1, 1]]))),
    ("index pair", lambda lib, x: vmap(
        lib, lambda a, i: a.outer(a)[i, :], x, lib.tensor([2, 0]))),
    ("put", lambda lib, x: vmap(
        lib, lambda a, i: a.index_put((i,), a[:2]), x, lib.tensor([[2, 0], [1, 0]]))),
    ("put accumulated", lambda lib, x: vmap(
        lib, lambda a, i: a.index_put((i,), a[:2], accumulate=True), x,
        lib.tensor([[2, 2], [1, 0]]))),
    ("scatter", lambda lib, x: vmap(
        lib, lambda a, i: lib.zeros(3, dtype=a.dtype).scatter(0, i, a), x,
        lib.tensor([[2, 0, 1], [1, 0, 2]]))),
    ("add at places", lambda lib, x: vmap(
        lib, lambda a, i: x.index_add(1, i, a.outer(a)[:2]), x,
        lib.tensor([[2, 2, 1], [1, 0, 2]]))),
    ("draws of one's own", lambda lib, x: vmap(
        lib, lambda a: lib.rand(2, generator=lib.Generator().manual_seed(1)), x,
        randomness="different")),
    ("mask", lambda lib, x: vmap(lib, lambda a: a.masked_fill(a > 0.4, 0.0), x)),
    ("shape", lambda lib, x: vmap(
        lib, lambda a: a * a.numel() + a.dim() + len(a) + a.shape[0] + a.size(0), x)),
    ("iterate", lambda lib, x: vmap(lib, lambda a: sum(list(a)), x)),
    ("cast", lambda lib, x: vmap(lib, lambda a: (a * 3).long().to(lib.float32), x)),
    ("print", lambda lib, x: [
        texts := [], vmap(lib, lambda a: texts.append(repr(a)) or a.sum(), x.float())]),
    ("print nested", lambda lib, x: [texts := [], vmap(
        lib, lambda a: vmap(lib, lambda b: texts.append(repr(b)) or b, a), x.float())]),
    ("print constant", lambda lib, x: [
        texts := [], vmap(lib, lambda a: texts.append(str(lib.ones(2))) or a, x)]),
    ("same", lambda lib, x: vmap(
        lib, lambda a: spread(lib, lib.rand(2)), x, randomness="same")),
    ("different", lambda lib, x: [
        seeded(lib), vmap(lib, lambda a: lib.rand(2) + 0 * a[0], x, randomness="different"),
        seeded(lib), lib.rand(2, 2)]),
    ("same draws", lambda lib, x: [
        seeded(lib), vmap(lib, lambda a: lib.rand(2) + 0 * a[0], x, randomness="same")]),
    ("different permutations", lambda lib, x: vmap(
        lib, lambda a: lib.randperm(9).sort()[0], x, randomness="different")),
    ("dropout", lambda lib, x: [seeded(lib), (vmap(
        lib, lambda a: lib.nn.functional.dropout(a, 0.5), x, randomness="different") == 0
    ).sum() >= 0]),
]  # fmt: skip


def put(a, b):
    a[1:] = b[:2]
    a[0] = 7
    return a


def doubled(a):
    a[1:].mul_(2)
    return a


def seeded(lib):
    lib.manual_seed(3)


def spread(lib, drawn):
    return drawn.shape[0] * lib.ones(1)


@parameterized.expand(CALLS)
def test_call(name, f):
    same(lambda lib: f(lib, matrix(lib)))


ERRORS = [
    ("number", lambda lib, x: vmap(lib, lambda a: a, 3)),
    ("nothing", lambda lib, x: vmap(lib, lambda: 3)),
    ("no in_dims", lambda lib, x: vmap(lib, lambda a: a, x, in_dims=None)),
    ("only None", lambda lib, x: vmap(lib, lambda a: a, x, in_dims=(None,))),
    ("in_dims structure", lambda lib, x: vmap(lib, lambda a: a, x, in_dims=(0, 1))),
    ("in_dims range", lambda lib, x: vmap(lib, lambda a: a, x, in_dims=2)),
    ("in_dims low", lambda lib, x: vmap(lib, lambda a: a, x, in_dims=-3)),
    ("in_dims word", lambda lib, x: vmap(lib, lambda a: a, x, in_dims="a")),
    ("in_dims words", lambda lib, x: vmap(lib, lambda a: a, x, in_dims=("a",))),
    ("in_dims list", lambda lib, x: vmap(lib, lambda a, b: a, x, x, in_dims=[0, 0])),
    ("in_dims of a number", lambda lib, x: vmap(lib, lambda a, b: a, x, 3, in_dims=(0, 0))),
    ("zero-dim", lambda lib, x: vmap(lib, lambda a: a, x[0, 0])),
    ("sizes", lambda lib, x: vmap(lib, lambda a, b: a, x, x, in_dims=(0, 1))),
    ("output", lambda lib, x: vmap(lib, lambda a: 3, x)),
    ("outputs", lambda lib, x: vmap(lib, lambda a: (a, 3), x)),
    ("out_dims range", lambda lib, x: vmap(lib, lambda a: a, x, out_dims=3)),
    ("out_dims word", lambda lib, x: vmap(lib, lambda a: a, x, out_dims="a")),
    ("out_dims structure", lambda lib, x: vmap(lib, lambda a: (a, a), x, out_dims=(0,))),
    ("out_dims None", lambda lib, x: vmap(lib, lambda a: a, x, out_dims=None)),
    ("randomness", lambda lib, x: vmap(lib, lambda a: a, x, randomness="a")),
    ("chunk_size", lambda lib, x: vmap(lib, lambda a: a, x, chunk_size=0)),
    ("item", lambda lib, x: vmap(lib, lambda a: a.sum().item(), x)),
    ("float", lambda lib, x: vmap(lib, lambda a: float(a[0]), x)),
    ("if", lambda lib, x: vmap(lib, lambda a: a if a.sum() > 0 else -a, x)),
    ("tolist", lambda lib, x: vmap(lib, lambda a: a.tolist(), x)),
    ("nonzero", lambda lib, x: vmap(lib, lambda a: a.nonzero(), x)),
    ("mask", lambda lib, x: vmap(lib, lambda a: a[a > 0], x)),
    ("rand", lambda lib, x: vmap(lib, lambda a: lib.rand(2), x)),
    ("dropout", lambda lib, x: vmap(lib, lambda a: lib.nn.functional.dropout(a), x)),
    ("copy into a constant", lambda lib, x: vmap(lib, lambda a: lib.zeros(3).copy_(a), x)),
    ("put into a constant", lambda lib, x: vmap(lib, lambda a: put(lib.zeros(3), a), x)),
]  # fmt: skip


@parameterized.expand(ERRORS)
def test_error(name, f):
    raises(lambda lib: f(lib, matrix(lib)))


def test_unique():
    raises(lambda lib: vmap(lib, lambda a: a.unique(), matrix(lib)), "can output dynamic shape")


def test_write_into_a_constant():
    """PyTorch's message is that of shapes which do not broadcast; what is wrong is said here."""

    def script(lib):
        zeros = lib.zeros(3, dtype=lib.float64)
        return type(attempt(vmap, lib, lambda a: zeros.add_(a), matrix(lib))), zeros

    same(script)


GRADIENTS = [
    ("map", lambda lib, x, w: vmap(lib, lambda a: a.sin() * a.sum(), x)),
    ("constant", lambda lib, x, w: vmap(lib, lambda a: (a @ w).exp(), x)),
    ("scatter", lambda lib, x, w: vmap(
        lib, lambda a, i: w.scatter(0, i[:, None], a[:, None] * 2), x,
        lib.tensor([[2, 0, 1], [1, 0, 2]]))),
    ("only constant", lambda lib, x, w: vmap(lib, lambda a: w * 2, x)),
    ("nested", lambda lib, x, w: vmap(
        lib, lambda a: vmap(lib, lambda b: (a * b).sum() * w.sum(), x), x)),
    ("nested matrix", lambda lib, x, w: vmap(
        lib, lambda a: vmap(lib, lambda b: a @ w * b.sum(), x, out_dims=1), x)),
    ("columns", lambda lib, x, w: vmap(lib, lambda a: a.softmax(0), x, in_dims=1, out_dims=1)),
    ("index", lambda lib, x, w: vmap(
        lib, lambda a, i: a[i] * w[i, 0], x, lib.tensor([[0, 0], [2, 1]]))),
    ("aside", lambda lib, x, w: vmap(lib, lambda a: w * 2, x, out_dims=None)),
    ("written", lambda lib, x, w: vmap(lib, lambda a: put(a.clone(), a * a), x)),
]  # fmt: skip


@parameterized.expand(GRADIENTS)
def test_gradient(name, f):
    def script(lib):
        x = matrix(lib, True)
        w = lib.tensor([[0.1, 0.2], [0.3, -0.4], [0.5, 1.0]], dtype=lib.float64, requires_grad=True)
        y = f(lib, x, w)
        first = lib.autograd.grad((y * y).sum(), (x, w), create_graph=True, allow_unused=True)
        total = sum([(g * g).sum() for g in first if g is not None])
        return first, lib.autograd.grad(total, (x, w), allow_unused=True)

    same(script)


# PyTorch records nothing inside; here it is as in a loop over the samples.
INSIDE = [
    ("sample", lambda a, w: tlc.autograd.grad((a @ w).exp().sum(), a)[0]),
    ("constant", lambda a, w: tlc.autograd.grad((a @ w).exp().sum(), w)[0]),
    ("leaf", lambda a, w: by_own_leaf(tlc, a.detach())),
    ("second", lambda a, w: tlc.autograd.grad(
        tlc.autograd.grad((a @ w).exp().sum(), w, create_graph=True)[0].sum(), w)[0]),
]  # fmt: skip

ROWS = [
    ("of a product", lambda lib, x, w: (w * w).sum(0)),
    ("of a map", lambda lib, x, w: vmap(lib, lambda a: (a @ w).exp().sum(), x)),
]


def weights(lib):
    values = [[0.1, 0.2], [0.3, -0.4], [0.5, 1.0]]
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


def by_own_leaf(lib, a):
    leaf = lib.ones(3, dtype=lib.float64, requires_grad=True)
    return lib.autograd.grad((leaf * a).exp().sum(), leaf)[0]


@parameterized.expand(INSIDE)
def test_autograd_inside(name, f):
    x, w = matrix(tlc, True), weights(tlc)
    expected = tlc.stack([f(sample, w) for sample in x])
    assert tlc.allclose(vmap(tlc, lambda a: f(a, w), x), expected, rtol=1e-12)


@parameterized.expand(ROWS)
def test_autograd_by_samples_of_gradients(name, f):
    def script(lib):
        w = weights(lib)
        y = f(lib, matrix(lib), w)

        def row(v):
            return lib.autograd.grad(y, w, v, retain_graph=True)[0]

        return vmap(lib, row, lib.eye(2, dtype=lib.float64))

    same(script)


def test_a_word_without_a_rule_is_said_once():
    warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        places = tlc.tensor([0, 1, 1])
        for _ in range(2):
            found = tlc.func.vmap(lambda w: tlc.bincount(places, w))(matrix(tlc))
    assert found.tolist() == [[0.3, 1.9], [-0.5, 2.2]]
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 1
    assert "batching rule for bincount" in messages[0]


def test_numbers_of_levels_are_given_again():
    """Words of F are looked up once per level and size, not once per call."""
    before = len(backend_module._backends)
    for _ in range(5):
        x = matrix(tlc, True)
        tlc.func.vmap(lambda a: a * 3)(x).sum().backward()
    assert len(backend_module._backends) <= before + 1


def test_a_level_known_to_a_graph_is_not_given_again():
    x = matrix(tlc, True)
    y = tlc.func.vmap(lambda a: a * a.sum())(x)  # its graph is alive below

    def row(v):
        return tlc.autograd.grad(y, x, v, retain_graph=True)[0]

    basis = tlc.eye(6, dtype=tlc.float64).reshape(6, 2, 3)
    expected = tlc.stack([row(v) for v in basis])
    jacobian = tlc.func.jacrev(lambda x: tlc.func.vmap(lambda a: a * a.sum())(x))(x)
    assert tlc.equal(jacobian.reshape(6, 2, 3), expected)


def test_convolutions_take_the_samples_into_their_batch():
    x = tlc.randn(3, 2, 4, 6, 6)
    weight = tlc.randn(5, 4, 3, 3)

    def call(x):
        return tlc.nn.functional.conv2d(x, weight)

    before = table.served["conv", "batched"]
    found = tlc.func.vmap(call)(x)
    assert table.served["conv", "batched"] == before + 1
    assert tlc.allclose(found, tlc.stack([call(sample) for sample in x]), atol=1e-5)
