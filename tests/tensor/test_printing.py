"""`repr` and `format` of tensors and the print options, against torch.

The formatter is tested by itself: `Stand` has the attributes of a Tensor that printing reads, over
a host array taken from a torch tensor, so that both print the same numbers.
"""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch
from parameterized import parameterized

from tensorflow_lite_clone import _tensor_str as printing
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.shape import Size

NAN, INF = math.nan, math.inf
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
INTEGERS = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]
torch_printoptions = torch._tensor_str.printoptions


class AnyDType(NamedTuple):
    """A dtype that only torch has, as printing sees it."""

    name: str
    is_floating_point: bool
    is_complex: bool

    def __repr__(self) -> str:
        return f"torch.{self.name}"


def our_dtype(dtype: torch.dtype):
    name = str(dtype).removeprefix("torch.")
    try:
        return dtypes.dtype_by_name(name)
    except KeyError:
        return AnyDType(name, dtype.is_floating_point, dtype.is_complex)


def host_array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


class Stand:
    """The attributes of a Tensor that printing reads."""

    def __init__(self, tensor: torch.Tensor, device: str = "cpu") -> None:
        self.copied: list[int] = []
        self._storage = SimpleNamespace(array=host_array(tensor), backend=self)
        self.shape = tensor.shape
        self.ndim = tensor.ndim
        self.dtype = our_dtype(tensor.dtype)
        self.device = Device(device)
        self.requires_grad = tensor.requires_grad
        self.grad_fn = tensor.grad_fn

    def numbers(self, array: np.ndarray) -> np.ndarray:
        self.copied.append(array.size)
        return array

    def item(self):
        return self._storage.array.item()

    def __repr__(self) -> str:
        return printing.tensor_repr(self)

    def __format__(self, format_spec: str) -> str:
        return printing.tensor_format(self, format_spec)


# Printing tells Tensor and its own subclasses apart by their names.
Tensor = type("Tensor", (Stand,), {})
Parameter = type("Parameter", (Tensor,), {})
Measured = type("Measured", (Tensor,), {})
Weight = type("Weight", (Parameter,), {})


@pytest.fixture(autouse=True)
def defaults_afterwards():
    yield
    torch.set_printoptions(profile="default")
    printing.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)
    dtypes.set_default_dtype(dtypes.float32)


def set_both(**options) -> None:
    torch.set_printoptions(profile="default")
    printing.set_printoptions(profile="default")
    torch.set_printoptions(**options)
    printing.set_printoptions(**options)


def check(tensor: torch.Tensor, **options) -> None:
    set_both(**options)
    assert repr(Tensor(tensor)) == repr(tensor)


# ------------------------------------------------------------------------ what it looks like


@parameterized.expand(
    [
        ("scalar", torch.tensor(0.1), "tensor(0.1000)"),
        ("whole", torch.tensor([1.0, -2.0]), "tensor([ 1., -2.])"),
        ("negative_zero", torch.tensor([-0.0, 1.0]), "tensor([-0., 1.])"),
        ("mixed", torch.tensor([1.5, NAN, -INF]), "tensor([1.5000,    nan,   -inf])"),
        ("no_finite", torch.tensor([0.0, INF, NAN, -INF]), "tensor([0., inf, nan, -inf])"),
        ("small", torch.tensor(1e-5), "tensor(1.0000e-05)"),
        ("ratio_1000", torch.tensor([1.0, 1000.0]), "tensor([   1., 1000.])"),
        ("ratio_1001", torch.tensor([1.0, 1001.0]), "tensor([1.0000e+00, 1.0010e+03])"),
        ("bool", torch.tensor([True, False]), "tensor([ True, False])"),
        ("int32", torch.tensor([1, -20], dtype=torch.int32),
         "tensor([  1, -20], dtype=torch.int32)"),
        ("complex", torch.tensor([1 - 2.5j]), "tensor([1.-2.5000j])"),
        ("complex_scalar", torch.tensor(complex(1, -0.0)), "tensor(1.-0.j)"),
        ("empty", torch.empty(0), "tensor([])"),
        ("empty_int", torch.empty(0, dtype=torch.int64), "tensor([], dtype=torch.int64)"),
        ("empty_2d", torch.empty(0, 3), "tensor([], size=(0, 3))"),
        ("leaf", torch.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        ("recorded", torch.tensor([1.0], requires_grad=True) * 2,
         "tensor([2.], grad_fn=<MulBackward0>)"),
        ("levels", torch.arange(8).view(2, 2, 2),
         "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"),
        ("summary", torch.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
        ("suffixes", torch.full((9,), 1.5, dtype=torch.float64, requires_grad=True),
         "tensor([1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000],\n"
         "       dtype=torch.float64, requires_grad=True)"),
    ]
)  # fmt: skip
def test_text(_, tensor, expected):
    assert repr(tensor) == expected  # so says torch
    check(tensor)


def test_size():
    for shape in [(), (3,), (2, 3)]:
        assert repr(Size(shape)) == repr(torch.Size(shape))


@parameterized.expand([(str(d)[6:], d) for d in [torch.bool, *INTEGERS]])
def test_integers(_, dtype):
    if dtype is torch.bool:
        values = [True, False, True]
    else:
        values = [torch.iinfo(dtype).min, 0, torch.iinfo(dtype).max]
    check(torch.tensor(values, dtype=dtype))
    check(torch.tensor(values[0], dtype=dtype))
    check(torch.tensor([[values], [values]], dtype=dtype))
    check(torch.empty((2, 0), dtype=dtype))


@parameterized.expand([(str(d)[6:], d) for d in [*FLOATS, *COMPLEX]])
def test_extremes(_, dtype):
    info = torch.finfo(dtype)
    smallest = info.smallest_normal * info.eps
    for values in [
        [info.max, -1.0],
        [info.max, smallest],
        [info.tiny],
        [0.1, 0.2, 0.3],
        [NAN],
        [NAN, 2.0],
        [-0.0],
    ]:
        check(torch.tensor(values, dtype=dtype))
        check(torch.tensor(values[0], dtype=dtype))


@parameterized.expand([(str(d)[6:], d) for d in FLOATS])
def test_printing_scientific_notation_limits(_, dtype):
    """One step of the dtype to each side of the three limits, alone and together."""

    def neighbours(number: float) -> list[torch.Tensor]:
        x = torch.tensor(number, dtype=torch.float64)
        steps = [x * (1 + k * torch.finfo(dtype).eps) for k in (-1, 0, 1)]
        return [step.to(dtype) for step in steps]

    for base in [1e-4, 0.1, 1.0, 3.0, 33.3, 1e5, 1e8]:
        for ratio in [1.0, 999.0, 1000.0, 1001.0]:
            for x in neighbours(base):
                for y in neighbours(base * ratio):
                    check(torch.stack([x, -y]))
            check(neighbours(base * ratio)[0])


@parameterized.expand([("mode_on", True), ("mode_off", False)])
def test_forced_notation(_, sci_mode):
    for values in [[1.5, -2.0], [1.0, 2e10], [3.0, NAN, 0.0], [0.0], [1e-10], [1 + 2.5e10j]]:
        check(torch.tensor(values), sci_mode=sci_mode)


def test_complex_parts_are_styled_apart():
    check(torch.tensor([complex(1.5, NAN), complex(INF, -INF), complex(-0.0, -0.0)]))
    check(torch.tensor([1 + 1e9j, 2 - 0.5j]))
    check(torch.linspace(-2, 2, 40) + 1j * torch.linspace(1e-6, 3, 40))


# ------------------------------------------------------------------------ layout


def test_wrapping_at_every_length():
    for length in range(1, 40):
        check(torch.arange(length))
        check(torch.full((length,), 1.5, requires_grad=True))
        check(torch.full((2, length), -1.5, dtype=torch.float64))
        for linewidth in (5, 40, 79, 81, 120):
            check(torch.full((length,), 2.5, dtype=torch.float16), linewidth=linewidth)


def test_summaries():
    for shape in [(1001,), (1000,), (7, 150), (2, 600), (600, 2), (3, 400, 2), (9, 9, 9, 9)]:
        tensor = torch.arange(math.prod(shape)).view(shape)
        for dtype in [torch.int64, torch.float32, torch.complex64]:
            check(tensor.to(dtype))
            check(tensor.to(dtype), edgeitems=1, precision=2)
            check(tensor.to(dtype).transpose(0, -1), profile="short")
        check(tensor, threshold=INF)
    check(torch.arange(8.0), threshold=7, edgeitems=4)
    check(torch.tensor(1.0), threshold=0)


def test_no_edge_items():
    for tensor in [torch.ones(6), torch.ones(2, 3, dtype=torch.int32), torch.ones(2)]:
        check(tensor, edgeitems=0, threshold=4)
    check(torch.empty(0), edgeitems=0)
    check(torch.tensor(1.5, requires_grad=True), edgeitems=0)


def test_hidden_elements_have_no_say_in_the_style():
    tensor = torch.ones(2000)
    tensor[1000] = 1e-9
    check(tensor)


def test_a_huge_tensor_is_cut_before_it_is_copied():
    stand = Tensor(torch.tensor(1.0).expand(100, 2, 1_000_000))
    assert repr(stand) == repr(torch.tensor(1.0).expand(100, 2, 1_000_000))
    assert stand.copied == [3 * 2 * 3] * 4


# ------------------------------------------------------------------------ suffixes


def test_default_dtype():
    tensors = [torch.ones(2, dtype=dtype) for dtype in [*FLOATS, *COMPLEX, *INTEGERS]]
    for default in FLOATS:
        torch.set_default_dtype(default)
        dtypes.set_default_dtype(our_dtype(default))
        for tensor in tensors:
            check(tensor)
            check(tensor[:0])


def test_device():
    text = repr(Tensor(torch.ones(2, dtype=torch.float64), device="cuda:1"))
    assert text == "tensor([1., 1.], device='cuda:1', dtype=torch.float64)"
    for shape in [(), (0,), (2, 3)]:
        for dtype in [torch.float32, torch.int64]:
            stand = Tensor(torch.empty(shape, dtype=dtype), device="meta")
            assert repr(stand) == repr(torch.empty(shape, dtype=dtype, device="meta"))
            assert stand.copied == []


def test_grad_fn():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    check(Double.apply(torch.ones(3, requires_grad=True)))

    class Broken(Stand):
        @property
        def grad_fn(self):
            raise RuntimeError("modified by an inplace operation")

        @grad_fn.setter
        def grad_fn(self, value):
            pass

    assert repr(Broken(torch.ones(2))) == "Broken([1., 1.], grad_fn=<Invalid>)"
    unnamed = Tensor(torch.ones(1))
    unnamed.grad_fn = object()
    assert repr(unnamed) == "tensor([1.], grad_fn=<object>)"


def test_tensor_contents():
    for tensor in [torch.ones(2, dtype=torch.int32), torch.empty(0, 3), torch.ones(2)]:
        expected = tensor.__repr__(tensor_contents="abc")
        assert printing.tensor_repr(Tensor(tensor), tensor_contents="abc") == expected


def test_subclasses():
    class TorchMeasured(torch.Tensor):
        pass

    class TorchWeight(torch.nn.Parameter):
        pass

    TorchMeasured.__name__ = "Measured"
    TorchWeight.__name__ = "Weight"
    for tensor in [torch.ones(2, 20) * 1.5, torch.tensor(1.5)]:
        leaf = tensor.clone().requires_grad_()
        heading = "Parameter containing:\n"  # which the class Parameter adds itself
        assert heading + repr(Parameter(leaf)) == repr(torch.nn.Parameter(tensor))
        assert heading + repr(Weight(leaf)) == repr(TorchWeight(tensor))
        assert repr(Measured(tensor)) == repr(tensor.as_subclass(TorchMeasured))


# ------------------------------------------------------------------------ format


@parameterized.expand([(spec or "none", spec) for spec in ["", ".4f", ">12", "8.2e"]])
def test_format_of_a_number(_, spec):
    for tensor in [torch.tensor(0.1), torch.tensor(3), torch.tensor(1 + 2j), torch.tensor(True)]:
        assert format_or_error(Tensor(tensor), spec) == format_or_error(tensor, spec)
    leaf = torch.tensor(2.5, requires_grad=True)
    assert format_or_error(Tensor(leaf), spec) == format_or_error(leaf, spec)
    parameter = torch.nn.Parameter(torch.tensor(2.5))
    # Its str, or the error of a specification for what is no number.
    leaf_text = format_or_error(Parameter(leaf), spec)
    assert leaf_text == format_or_error(parameter, spec).removeprefix("Parameter containing:\n")
    vector = torch.tensor([1.5])
    assert format_or_error(Tensor(vector), spec) == format_or_error(vector, spec)


def format_or_error(tensor, spec: str) -> str:
    try:
        return format(tensor, spec)
    except (TypeError, ValueError) as error:
        return repr(error)


# ------------------------------------------------------------------------ options


@parameterized.expand(
    [
        ("nothing", {}),
        ("each", dict(precision=2, threshold=5, edgeitems=1, linewidth=40, sci_mode=True)),
        ("short", dict(profile="short")),
        ("full", dict(profile="full")),
        ("full_but", dict(profile="full", precision=7, sci_mode=False)),
        ("unknown", dict(profile="Short")),
    ]
)
def test_options(_, options):
    set_both(precision=6, sci_mode=True)
    torch.set_printoptions(**options)
    printing.set_printoptions(**options)
    assert printing.get_printoptions() == torch._tensor_str.get_printoptions()


def test_options_for_a_block():
    printing.set_printoptions(precision=3, sci_mode=True)
    before = printing.get_printoptions()
    with pytest.raises(KeyError), printing.printoptions(precision=1):
        assert repr(Tensor(torch.tensor(0.25))) == "tensor(0.2)"
        raise KeyError
    assert printing.get_printoptions() == before
    with pytest.raises(TypeError, match="bogus"), printing.printoptions(bogus=1):
        pass
    assert printing.get_printoptions() == before
    assert repr(printing.PRINT_OPTS) == (
        "PrintOptions(precision=3, threshold=1000, edgeitems=3, linewidth=80, sci_mode=True)"
    )


# ------------------------------------------------------------------------ fuzz

SPECIALS = [0.0, -0.0, NAN, INF, -INF]
PIVOTS = [1.0, 1000.0, 1001.0, 0.1, 1e-4, 1.0001e-4, 1e8, 1e8 + 8, 99999.99996, 9.99995, 1e-5, 0.5]


class Arbitrary:
    """Random tensors, many of them near the places where the style changes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def shape(self) -> tuple[int, ...]:
        pick = self.random.random()
        if pick < 0.1:
            return ()
        if pick < 0.5:
            return (self.random.choice([0, 1, 2, 3, 7, 10, 13, 40]),)
        if pick < 0.8:
            return (self.random.randrange(8), self.random.randrange(14))
        if pick < 0.95:
            return tuple(self.random.randrange(1, 5) for _ in range(self.random.randrange(3, 6)))
        return self.random.choice([(1001,), (7, 150), (2, 600), (600, 2), (12, 10, 10)])

    def reals(self, size: int) -> np.ndarray:
        choice, uniform = self.random.choice, self.random.uniform
        x = self.numbers.standard_normal(size)
        kind = self.random.randrange(7)
        if kind == 1:
            x = x * 10.0 ** uniform(-8, 10)
        elif kind == 2:
            x = x * 10.0 ** self.numbers.uniform(-uniform(0, 12), uniform(0, 12), size)
        elif kind == 3:
            x = np.round(x * 10.0 ** uniform(0, 10))
        elif kind == 4:
            x = self.numbers.choice(PIVOTS, size)
        elif kind == 5:
            x = 10.0 ** (uniform(-4.2, -3.8) + self.numbers.uniform(0, 3, size))
        elif kind == 6:
            x = self.numbers.integers(-3, 4, size) / choice([1, 2])
        if self.random.random() < 0.3:
            mask = self.numbers.random(size) < choice([0.05, 0.3, 0.9])
            x = np.where(mask, self.numbers.choice(SPECIALS, size), x)
        return x

    def tensor(self) -> torch.Tensor:
        shape = self.shape()
        size = math.prod(shape)
        pick = self.random.random()
        if pick < 0.7:
            x = torch.from_numpy(self.reals(size)).to(self.random.choice(FLOATS))
        elif pick < 0.85:
            x = torch.complex(*(torch.from_numpy(self.reals(size)) for _ in range(2)))
            x = x.to(self.random.choice(COMPLEX))
        else:
            dtype = self.random.choice(INTEGERS)
            info, limit = torch.iinfo(dtype), 10 ** self.random.randrange(1, 18)
            low, high = max(info.min, -limit), min(info.max, limit)
            numpy_dtype = str(dtype).removeprefix("torch.")
            x = torch.from_numpy(self.numbers.integers(low, high, size, numpy_dtype))
        x = x.reshape(shape)
        if x.ndim > 1 and self.random.random() < 0.1:
            x = x.transpose(0, 1)
        if pick < 0.85 and self.random.random() < 0.3:
            x.requires_grad_()
            x = self.random.choice([x, x.clone()])
        return x

    def options(self) -> dict:
        choices = dict(
            profile=["default", "short", "full"],
            sci_mode=[True, False, None],
            precision=[0, 1, 3, 8],
            threshold=[0, 1, 5, 50, INF],
            edgeitems=[0, 1, 2, 5],
            linewidth=[1, 20, 33, 60, 79, 81, 120],
        )
        if self.random.random() < 0.6:
            return {}
        return {
            name: self.random.choice(values)
            for name, values in choices.items()
            if self.random.random() < 0.3
        }


@parameterized.expand([("seed_0", 0), ("seed_1", 1), ("seed_2", 2)])
def test_fuzz(_, seed):
    arbitrary = Arbitrary(seed)
    for _ in range(1000):
        options = arbitrary.options()
        set_both(**options)
        tensor = arbitrary.tensor()
        assert repr(Tensor(tensor)) == repr(tensor), (options, tensor.shape, tensor.dtype)
