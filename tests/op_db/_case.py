"""What a row of the op table says, and how its samples become values.

A row is one statement:

    OpInfo("softmax", sample(tensor(3, 4), 1), sample(tensor(5), dim=0),
        errors=[error(tensor(3), 4)])

The name is the function's (`"max.dim"`: the row `dim` of the function `max`; `"F.relu"`: the one
in `nn.functional`), the oracle is the same call in PyTorch. `call=lambda torch, x: ...` replaces
the call where a name does not say it.
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


def uniform(low: float, high: float) -> Domain:
    return Domain(lambda rng, shape: rng.uniform(low, high, shape))


def away_from(*kinks: float, low=-4.0, high=4.0, gap=0.12) -> Domain:
    """Uniform values that keep their distance from the points where a function has a kink."""

    def floats(rng, shape):
        values = np.asarray(rng.uniform(low, high, shape))
        for kink in kinks:
            near = np.abs(values - kink) < gap
            values = np.where(near, kink + np.where(values < kink, -gap, gap), values)
        return values

    return Domain(floats)


def integer_valued(low: int, high: int) -> Domain:
    """Whole numbers in [low, high), also in the floating dtypes: equal pairs are likely."""
    return Domain(*2 * (lambda rng, shape: rng.integers(low, high, shape).astype(np.float64),))


def _shuffled(rng, shape):
    size = int(np.prod(shape))
    return rng.permutation(size).reshape(shape) - size // 2


NORMAL = Domain(lambda rng, shape: rng.standard_normal(shape))
POSITIVE = uniform(0.3, 3.0)
UNIT = uniform(0.05, 0.95)
SIGNED_UNIT = uniform(-0.9, 0.9)
NONZERO = away_from(0.0, gap=0.3)
AWAY_FROM_HALVES = away_from(*np.arange(-4, 4.5, 0.5))
DISTINCT = Domain(lambda rng, shape: 0.37 * _shuffled(rng, shape) + 0.1, _shuffled, distinct=True)


class TensorSpec(NamedTuple):
    """A tensor of a sample: drawn from a domain, or with the values of `literal`."""

    shape: tuple[int, ...] = ()
    domain: Domain | None = None  # None: the row's
    dtype: str | None = None  # None: the dtype under test
    requires_grad: bool = True
    literal: object = None

    def __repr__(self):  # with the row's name the seed of the values, see `draw`
        what = repr(self.literal) if self.literal is not None else str(self.shape)
        return f"{self.dtype or 'T'}{what}"


def tensor(*shape, domain=None, dtype=None, requires_grad=True):
    """A random tensor of the dtype under test (or of `dtype`)."""
    return TensorSpec(shape, domain, dtype, requires_grad)


def constant(*shape, domain=None, dtype=None):
    """As `tensor`, but no gradient is asked for."""
    return TensorSpec(shape, domain, dtype, False)


def integers(*shape, high=3, low=0, dtype="int64"):
    """A tensor of integers in [low, high)."""
    return TensorSpec(shape, integer_valued(low, high), dtype, False)


def booleans(*shape):
    """A boolean tensor."""
    return TensorSpec(shape, NORMAL, "bool", False)


def literal(values, dtype=None, requires_grad=True):
    """A tensor with these values; dtype None: the one under test."""
    return TensorSpec((), None, dtype, requires_grad, values)


def int64(values):
    """A tensor of int64 with these values."""
    return TensorSpec((), None, "int64", False, values)


class Attribute(NamedTuple):
    """An attribute of either framework, such as a dtype."""

    name: str


class DeviceUnderTest(NamedTuple):
    """The device under test."""


class Sample(NamedTuple):
    """The arguments of one call, and what is checked with it.

    `mode`: "full" is everything; "forward", no gradient; "torch", the gradient against PyTorch's
    but not against differences; "cpu_only" and "async", errors that a CUDA device does not raise,
    or raises later.
    """

    args: tuple
    kwargs: dict
    mode: str = "full"

    def __repr__(self):
        words = [repr(arg) for arg in self.args]
        words += [f"{key}={value!r}" for key, value in self.kwargs.items()]
        return f"({', '.join(words)})"


def sample(*args, **kwargs):
    """A call whose values and gradients are checked."""
    return Sample(args, kwargs)


def forward_sample(*args, **kwargs):
    """A sample whose gradient is not asked for (infinities, NaN, empty results)."""
    return Sample(args, kwargs, "forward")


def subgradient_sample(*args, **kwargs):
    """A sample at a kink: the subgradient is PyTorch's choice, differences would not find it."""
    return Sample(args, kwargs, "torch")


def error(*args, **kwargs):
    """A call that raises; PyTorch decides which exception."""
    return Sample(args, kwargs, "forward")


def cpu_only_error(*args, **kwargs):
    """An error in values, which a CUDA device does not read back to see."""
    return Sample(args, kwargs, "cpu_only")


def async_error(*args, **kwargs):
    """An error in values, which a CUDA device reports when the host next waits for it."""
    return Sample(args, kwargs, "async")


class HostTensor(NamedTuple):
    """A drawn tensor on the host."""

    array: np.ndarray
    dtype: str
    requires_grad: bool
    dtype_varies: bool  # its dtype is the one under test, so the oracle widens it
    spec: TensorSpec


class OpInfo:
    """A row of the table; its fields are explained where they are set."""

    def __init__(
        self,
        name,
        *samples,
        call=None,
        dtypes=FLOATS,
        domain=NORMAL,
        supports_autograd=True,
        supports_gradgrad=True,
        check_third_order=False,
        torch_grad_orders=3,
        errors=(),
        inplace_variant=None,
        torch_inplace_grad=True,
        supports_out=False,
        is_view=False,
        tolerances=None,
        tolerance_reason="",
        check_layouts=True,
        skip_undefined_behavior=(),
        same_dtype_oracle=False,
    ):
        self.name = name
        self.samples = samples
        self.call = call  # call(torch, *args, **kwargs)
        self.dtypes = dtypes
        self.domain = domain  # of its tensors
        self.supports_autograd = supports_autograd
        self.supports_gradgrad = supports_gradgrad  # or the reason why it has no second derivative
        self.check_third_order = check_third_order
        # Orders of derivatives that PyTorch has, and has right: beyond, differences judge alone.
        self.torch_grad_orders = torch_grad_orders
        self.errors = errors  # samples that raise as in PyTorch
        self.inplace_variant = inplace_variant  # name of the method that writes into its first arg
        self.torch_inplace_grad = torch_inplace_grad  # whether PyTorch differentiates that method
        self.supports_out = supports_out  # takes `out=`
        self.is_view = is_view  # shares its first argument's memory, with PyTorch's strides
        self.tolerances = tolerances or {}  # dtype -> (relative, absolute), with a reason
        self.tolerance_reason = tolerance_reason
        self.check_layouts = check_layouts  # False: values decide the result's shape or order
        # Where PyTorch's answer is an accident: "empty" batches, "sizes" of zero anywhere,
        # "zero_dim" inputs, the "gradient" of sizes of zero, "odd" values (NaN, infinities), other
        # "dtypes" than the row's, an "out" of another dtype, "expanded" tensors that are written
        # to, sizes that do not fit each other, "resized". Where it reads memory that is not its
        # own: again "resized", and "layouts".
        self.skip_undefined_behavior = skip_undefined_behavior
        self.same_dtype_oracle = same_dtype_oracle  # its limits show in the result
        if tolerances and not tolerance_reason:
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
        return self.tolerances.get(dtype) or TOLERANCE.get(dtype, (0.0, 0.0))


def tree_map(function, tree):
    """`function` on every leaf of nested tuples, lists and dicts."""
    if isinstance(tree, (TensorSpec, HostTensor, Attribute, DeviceUnderTest)):
        return function(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)([tree_map(function, item) for item in tree])
    if isinstance(tree, dict):
        return {key: tree_map(function, item) for key, item in tree.items()}
    return function(tree)


def tree_leaves(tree, kind) -> list:
    """All leaves of a kind, in order."""
    found = []
    tree_map(lambda leaf: found.append(leaf) if isinstance(leaf, kind) else None, tree)
    return found


def round_to_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest values that the dtype has, in the widest dtype of its kind."""
    if dtype in FLOATS + COMPLEX:
        return (
            torch.as_tensor(array)
            .to(getattr(torch, dtype))
            .to(getattr(torch, oracle_dtype(dtype)))
            .numpy()
        )
    return np.asarray(array)


def oracle_dtype(dtype: str) -> str:
    """The dtype in which the oracle computes."""
    return {
        "float32": "float64",
        "float16": "float64",
        "bfloat16": "float64",
        "complex64": "complex128",
    }.get(dtype, dtype)


def draw(op: OpInfo, sample: Sample, dtype: str) -> tuple[tuple, dict]:
    """The sample's arguments with every Arg replaced by a Value; the same ones on every call."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name}{sample!r}".encode()))

    def value(leaf):
        if not isinstance(leaf, TensorSpec):
            return leaf
        kind = leaf.dtype or dtype
        if leaf.literal is None:
            array = (leaf.domain or op.domain).draw(rng, leaf.shape, kind)
        else:
            array = np.array(leaf.literal, np.dtype(oracle_dtype(kind)))
        grad = leaf.requires_grad and kind in FLOATS + COMPLEX
        return HostTensor(
            round_to_dtype(np.asarray(array), kind), kind, grad, leaf.dtype is None, leaf
        )

    return tree_map(value, (sample.args, sample.kwargs))


def materialize(drawn, side, widen=False, make=None):
    """Values become tensors of `side` (by `make(value, dtype)` if given), names its attributes."""

    def leaf(item):
        if isinstance(item, HostTensor):
            dtype = oracle_dtype(item.dtype) if widen and item.dtype_varies else item.dtype
            return make(item, dtype) if make else side.tensor(item.array, dtype)
        if isinstance(item, DeviceUnderTest):
            return side.device
        return getattr(side.module, item.name) if isinstance(item, Attribute) else item

    return tree_map(leaf, drawn)
