"""What a row of the op table says, and how its samples become values.

A row is one statement: `Op("softmax", S(T(3, 4), 1), S(T(5), dim=0), errors=[E(T(3), 4)])`. The
name is the function's (`"max.dim"`: the row `dim` of the function `max`; `"F.relu"`: the one in
`nn.functional`), the oracle is the same call in PyTorch. `call=lambda torch, x: ...` replaces the
call where a name does not say it.
"""

from __future__ import annotations

import functools
import zlib
from typing import NamedTuple

import numpy as np
import torch

FLOATS = ("float64", "float32", "float16", "bfloat16")
WIDE = ("float64", "float32")
INTS = ("int64", "int32", "uint8")
COMPLEX = ("complex128", "complex64")
BOOL = ("bool",)
NUMBERS = FLOATS + INTS
ALL = NUMBERS + BOOL

# How far a result in a dtype may be from the float64 oracle: (relative, absolute).
TOLERANCE = {
    "float64": (1e-10, 1e-11),
    "float32": (1e-5, 2e-6),
    "float16": (3e-3, 2e-3),
    "bfloat16": (2e-2, 1e-2),
    "complex128": (1e-10, 1e-11),
    "complex64": (1e-5, 2e-6),
}


class Domain:
    """A set of values to draw from; integers get an image of it, or a set of their own."""

    def __init__(self, floats, ints=None, distinct=False):
        self.floats, self.ints, self.distinct = floats, ints, distinct

    def draw(self, rng, shape, dtype: str) -> np.ndarray:
        if dtype == "bool":
            return rng.random(shape) < 0.5
        if "int" in dtype:
            values = self.ints(rng, shape) if self.ints else np.rint(3 * self.floats(rng, shape))
            return (np.abs(values) if dtype == "uint8" else values).astype(np.int64)
        if dtype.startswith("complex"):
            return self.floats(rng, shape) + 1j * self.floats(rng, shape)
        return self.floats(rng, shape)


def between(low: float, high: float) -> Domain:
    return Domain(lambda rng, shape: rng.uniform(low, high, shape))


def away(*kinks: float, low=-4.0, high=4.0, gap=0.12) -> Domain:
    """Uniform values that keep their distance from the points where a function has a kink."""

    def floats(rng, shape):
        values = np.asarray(rng.uniform(low, high, shape))
        for kink in kinks:
            near = np.abs(values - kink) < gap
            values = np.where(near, kink + np.where(values < kink, -gap, gap), values)
        return values

    return Domain(floats)


def whole(low: int, high: int) -> Domain:
    """Whole numbers in [low, high), also in the floating dtypes: equal pairs are likely."""
    return Domain(*2 * (lambda rng, shape: rng.integers(low, high, shape).astype(np.float64),))


def _shuffled(rng, shape):
    size = int(np.prod(shape))
    return rng.permutation(size).reshape(shape) - size // 2


NORMAL = Domain(lambda rng, shape: rng.standard_normal(shape))
POSITIVE = between(0.3, 3.0)
UNIT = between(0.05, 0.95)
SIGNED_UNIT = between(-0.9, 0.9)
NONZERO = away(0.0, gap=0.3)
STEPS = away(*np.arange(-4, 4.5, 0.5))
DISTINCT = Domain(lambda rng, shape: 0.37 * _shuffled(rng, shape) + 0.1, _shuffled, distinct=True)


class Arg(NamedTuple):
    """A tensor to be made: drawn from a domain, or with the values of `literal`."""

    shape: tuple[int, ...] = ()
    domain: Domain | None = None  # None: the row's
    dtype: str | None = None  # None: the dtype under test
    grad: bool = True
    literal: object = None

    def __repr__(self):
        what = repr(self.literal) if self.literal is not None else str(self.shape)
        return f"{self.dtype or 'T'}{what}"


def T(*shape, of=None, dtype=None, grad=True):
    """A tensor of the dtype under test (or of `dtype`)."""
    return Arg(shape, of, dtype, grad)


def C(*shape, of=None, dtype=None):
    """As T, but a constant: no gradient is asked for."""
    return Arg(shape, of, dtype, False)


def N(*shape, high=3, low=0, dtype="int64"):
    """A tensor of integers in [low, high)."""
    return Arg(shape, whole(low, high), dtype, False)


def B(*shape):
    """A boolean tensor."""
    return Arg(shape, NORMAL, "bool", False)


def V(values, dtype=None, grad=True):
    """A tensor with these values; dtype None: the one under test."""
    return Arg((), None, dtype, grad, values)


def V64(values):
    """A tensor of int64 with these values."""
    return Arg((), None, "int64", False, values)


class Name(NamedTuple):
    """An attribute of either framework, such as a dtype."""

    name: str


class Here(NamedTuple):
    """The device under test."""


class Sample(NamedTuple):
    args: tuple
    kwargs: dict
    mode: str = "full"  # "forward": no gradient; "torch": gradient against PyTorch only

    def __repr__(self):
        words = [repr(arg) for arg in self.args]
        words += [f"{key}={value!r}" for key, value in self.kwargs.items()]
        return f"({', '.join(words)})"


def S(*args, **kwargs):
    """A sample: everything is checked with it."""
    return Sample(args, kwargs)


def Forward(*args, **kwargs):
    """A sample whose gradient is not asked for (infinities, NaN, empty results)."""
    return Sample(args, kwargs, "forward")


def Kink(*args, **kwargs):
    """A sample on a kink: gradients are PyTorch's choice, differences would not find them."""
    return Sample(args, kwargs, "torch")


E = Forward  # an error row: PyTorch decides which exception it is


def Unread(*args, **kwargs):
    """An error row whose fault is in values; a CUDA device does not read them back to see it."""
    return Sample(args, kwargs, "unread")


def Told(*args, **kwargs):
    """An error row whose fault is in values; a CUDA device tells it when the host next waits."""
    return Sample(args, kwargs, "told")


class Value(NamedTuple):
    """A drawn tensor on the host."""

    array: np.ndarray
    dtype: str
    grad: bool
    follows: bool  # its dtype is the one under test, so the oracle widens it
    arg: Arg


class Op:
    """A row of the table; its fields are explained where they are set."""

    def __init__(
        self,
        name,
        *samples,
        call=None,
        dtypes=FLOATS,
        of=NORMAL,
        grad=True,
        order2=True,
        order3=False,
        torch_orders=3,
        errors=(),
        inplace=None,
        torch_inplace=True,
        out=False,
        view=False,
        tol=None,
        why="",
        layout=True,
        accidents=(),
        same=False,
    ):
        self.name = name
        self.samples = samples
        self.call = call  # call(torch, *args, **kwargs)
        self.dtypes = dtypes
        self.of = of  # the domain of its tensors
        self.grad = grad
        self.order2 = order2  # or the reason why there is no second derivative
        self.order3 = order3
        # Orders of derivatives that PyTorch has, and has right: beyond, differences judge alone.
        self.torch_orders = torch_orders
        self.errors = errors  # samples that raise as in PyTorch
        self.inplace = inplace  # name of the method that writes into its first argument
        self.torch_inplace = torch_inplace  # whether PyTorch differentiates that method
        self.out = out  # takes `out=`
        self.view = view  # shares its first argument's memory, with PyTorch's strides
        self.tol = tol or {}  # dtype -> (relative, absolute), with a reason
        self.why = why
        self.layout = layout  # False: the values matter to the result's shape or order
        # Where PyTorch's answer is not meant: "empty" batches, "sizes" of zero anywhere,
        # "zero_dim" inputs, the "gradient" of sizes of zero, "odd" values (NaN, infinities), other
        # "dtypes" than the row's, an "out" of another dtype, "expanded" tensors that are written
        # to, sizes that do not fit each other, "resized". Where it reads memory that is not its
        # own: again "resized", and "layouts".
        self.accidents = accidents
        self.same = same  # the oracle has the same dtype, whose limits show in the result
        if tol and not why:
            raise ValueError(f"{name}: a tolerance of its own needs a reason")

    def __repr__(self):
        return self.name

    @property
    def function(self) -> str:
        """The public function's name, without room and variant."""
        return self.name.removeprefix("F.").split(".")[0]

    def resolve(self, module):
        room = module.nn.functional if self.name.startswith("F.") else module
        return getattr(room, self.function)

    def run(self, module, args, kwargs):
        call = functools.partial(self.call, module) if self.call else self.resolve(module)
        return call(*args, **kwargs)

    def tolerance(self, dtype: str) -> tuple[float, float]:
        return self.tol.get(dtype) or TOLERANCE.get(dtype, (0.0, 0.0))


def tree_map(function, tree):
    """`function` on every leaf of nested tuples, lists and dicts."""
    if isinstance(tree, (Arg, Value, Name, Here)):
        return function(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)([tree_map(function, item) for item in tree])
    if isinstance(tree, dict):
        return {key: tree_map(function, item) for key, item in tree.items()}
    return function(tree)


def leaves(tree, kind) -> list:
    """All leaves of a kind, in order."""
    found = []
    tree_map(lambda leaf: found.append(leaf) if isinstance(leaf, kind) else None, tree)
    return found


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest values that the dtype has, in the widest dtype of its kind."""
    if dtype in FLOATS + COMPLEX:
        return (
            torch.as_tensor(array).to(getattr(torch, dtype)).to(getattr(torch, wide(dtype))).numpy()
        )
    return np.asarray(array)


def wide(dtype: str) -> str:
    """The dtype in which the oracle computes."""
    return {
        "float32": "float64",
        "float16": "float64",
        "bfloat16": "float64",
        "complex64": "complex128",
    }.get(dtype, dtype)


def draw(op: Op, sample: Sample, dtype: str) -> tuple[tuple, dict]:
    """The sample's arguments with every Arg replaced by a Value; the same ones on every call."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name}{sample!r}".encode()))

    def value(leaf):
        if not isinstance(leaf, Arg):
            return leaf
        kind = leaf.dtype or dtype
        if leaf.literal is None:
            array = (leaf.domain or op.of).draw(rng, leaf.shape, kind)
        else:
            array = np.array(leaf.literal, np.dtype(wide(kind)))
        grad = leaf.grad and kind in FLOATS + COMPLEX
        return Value(rounded(np.asarray(array), kind), kind, grad, leaf.dtype is None, leaf)

    return tree_map(value, (sample.args, sample.kwargs))


def place(drawn, side, widen=False, make=None):
    """Values become tensors of `side` (by `make(value, dtype)` if given), names its attributes."""

    def leaf(item):
        if isinstance(item, Value):
            dtype = wide(item.dtype) if widen and item.follows else item.dtype
            return make(item, dtype) if make else side.tensor(item.array, dtype)
        if isinstance(item, Here):
            return side.device
        return getattr(side.module, item.name) if isinstance(item, Name) else item

    return tree_map(leaf, drawn)
