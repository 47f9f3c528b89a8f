"""Random functions under vmap: the same for all samples, different, or refused."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import Failure, raises, same
from tests.device import DEVICE

# Function of the sample: with it as the input, and of a tensor that is not mapped over.
OF_TENSORS = [
    ("dropout", lambda lib, x: lib.nn.functional.dropout(x, 0.5)),
    ("alpha_dropout", lambda lib, x: lib.nn.functional.alpha_dropout(x, 0.5, training=True)),
    ("rand_like", lambda lib, x: lib.rand_like(x)),
    ("randn_like", lambda lib, x: lib.randn_like(x)),
    ("bernoulli", lambda lib, x: lib.bernoulli(x)),
    ("poisson", lambda lib, x: lib.poisson(x * 4)),
    ("normal", lambda lib, x: lib.normal(x, 1.0)),
    ("normal std", lambda lib, x: lib.normal(2.0, x)),
    ("native_dropout", lambda lib, x: lib.native_dropout(x, 0.5, True)[0]),
]
IN_PLACE = [
    ("normal_", ()), ("uniform_", ()), ("bernoulli_", (0.5,)), ("exponential_", ()),
    ("random_", (0, 5)), ("cauchy_", ()), ("log_normal_", ()), ("geometric_", (0.5,)),
]  # fmt: skip
CREATED = [
    ("rand", lambda lib: lib.rand(4)),
    ("randn", lambda lib: lib.randn(4)),
    ("randint", lambda lib: lib.randint(0, 9, (4,))),
    ("randperm", lambda lib: lib.randperm(4)),
    ("normal", lambda lib: lib.normal(0.0, 1.0, (4,))),
]


def halves(lib):
    return lib.full((3, 4), 0.5)


def mapped(lib, f, mode):
    lib.manual_seed(3)
    return lib.func.vmap(f, randomness=mode)(halves(lib))


def compared(script):
    """The results are PyTorch's on the CPU; on other devices what is equal among samples is."""
    if DEVICE == "cpu":
        return same(script)

    def pattern(lib):
        y = script(lib)
        return list(y.shape), bool((y == y[0]).all())

    return same(pattern)


MODES = ("same", "different", "error")


@parameterized.expand([
    (f"{name} {mode} {'mapped' if inside else 'shared'}", f, mode, inside)
    for name, f in OF_TENSORS
    for mode in MODES
    for inside in (True, False)
    # PyTorch draws no equal numbers for parameters that differ, and none for a shared one in place.
    if not (mode == "same" and inside and name in ("poisson", "bernoulli", "normal", "normal std"))
    and not (mode == "different" and not inside and name in (
        "alpha_dropout", "bernoulli", "native_dropout"))
])  # fmt: skip
def test_of_tensors(name, f, mode, inside):
    def script(lib):
        shared = lib.full((4,), 0.5)
        return mapped(lib, lambda x: f(lib, x) if inside else f(lib, shared) + 0 * x, mode)

    assert isinstance(compared(script), Failure) is (mode == "error")


@parameterized.expand([
    (f"{name} {mode} {'mapped' if inside else 'shared'}", name, arguments, mode, inside)
    for name, arguments in IN_PLACE
    for mode in MODES
    for inside in (True, False)
])  # fmt: skip
def test_in_place(_, name, arguments, mode, inside):
    def script(lib):
        def call(x):
            target = x.clone() if inside else lib.zeros(4)
            return getattr(target, name)(*arguments) + 0 * x

        return mapped(lib, call, mode)

    refused = mode == "error" or (mode == "different" and not inside)
    assert isinstance(compared(script), Failure) is refused


@parameterized.expand([
    (f"{name} {mode}", f, mode) for name, f in CREATED for mode in MODES
])  # fmt: skip
def test_created(name, f, mode):
    result = compared(lambda lib: mapped(lib, lambda x: f(lib) + 0 * x, mode))
    assert isinstance(result, Failure) is (mode == "error")


NESTED = [
    ("same in different", "same", "different"),
    ("different in same", "different", "same"),
    ("error in same", "error", "same"),
    ("same in error", "same", "error"),
]


@parameterized.expand(NESTED)
def test_nested(name, inner, outer):
    def script(lib):
        def row(x):
            return lib.func.vmap(lambda y: y * 0 + lib.rand(()), randomness=inner)(x)

        return mapped(lib, row, outer)

    assert isinstance(compared(script), Failure) is ("error" in (inner, outer))


def test_out_of_place_of_what_is_not_mapped_over():
    raises(lambda lib: mapped(lib, lambda x: lib.add(x, 1, out=lib.zeros(4)), "same"),
           "work on out= or view ops")  # fmt: skip
