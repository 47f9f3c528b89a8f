"""Tensors from numbers, sequences, arrays and nothing, against PyTorch's."""

from __future__ import annotations

import math

import numpy as np
from parameterized import parameterized

from tests.autograd.against_torch import attempt, same
from tests.device import DEVICE

DTYPES = """bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64
complex128""".split()
INF, NAN = math.inf, math.nan
KINDS = ("",)  # exceptions are compared by type alone

DATA = [
    ("int", 3),
    ("negative", -3),
    ("float", 2.5),
    ("bool", True),
    ("complex", 1 + 2j),
    ("big", 2**40),
    ("largest", 2**63 - 1),
    ("smallest", -(2**63)),
    ("too large", 2**63),
    ("far too large", 2**70),
    ("too small", -(2**63) - 1),
    ("empty", []),
    ("empty rows", [[], []]),
    ("nested empty", [[[]]]),
    ("tuple", (1, 2)),
    ("range", range(4)),
    ("ints", [1, 2, 3]),
    ("floats", [1.0, 2.5]),
    ("mixed", [1, 2.5]),
    ("mixed, float first", [2.5, 1]),
    ("bools", [True, False]),
    ("bools and ints", [True, 2]),
    ("bools and floats", [True, 2.5]),
    ("complex and float", [1j, 2.0]),
    ("matrix", [[1, 2], [3, 4]]),
    ("matrix of tuples", [(1, 2), (3, 4)]),
    ("cube", [[[1.5]], [[2.5]]]),
    ("infinite", [INF, -INF, NAN]),
    ("numpy scalars", [np.float32(1.5), np.float64(2.5)]),
    ("numpy scalar", np.float64(2.5)),
    ("numpy float32", np.float32(2.5)),
    ("numpy int", np.int32(7)),
    ("numpy bool", np.bool_(True)),
    ("numpy ints", [np.int64(1), np.int64(2)]),
    ("array", np.array([1.5, 2.5])),
    ("array of ints", np.arange(3, dtype=np.int16)),
    ("list of arrays", [np.array([1.0, 2.0]), np.array([3.0, 4.0])]),
    ("unsigned", np.arange(3, dtype=np.uint8)),
    ("half", np.arange(3, dtype=np.float16)),
    ("ragged", [[1, 2], [3]]),
    ("ragged depth", [1, [2]]),
    ("ragged depth, list first", [[1], 2]),
    ("deep ragged", [[[1, 2], [3, 4]], [[5, 6], [7]]]),
    ("string", "abc"),
    ("strings", ["a", "b"]),
    ("none", None),
    ("nones", [None]),
    ("nested none", [[1, None]]),
    ("dict", {"a": 1}),
    ("set", {1, 2}),
    ("object", object),
    ("array of strings", np.array(["a"])),
    ("array of objects", np.array([None, 1], dtype=object)),
    ("generator", "generator"),
]


def data_of(value):
    return (i for i in range(3)) if isinstance(value, str) and value == "generator" else value


@parameterized.expand(DATA)
def test_tensor(name, value):
    same(lambda lib: lib.tensor(data_of(value)), words=KINDS, warned=False)


@parameterized.expand(DATA)
def test_as_tensor(name, value):
    same(lambda lib: lib.as_tensor(data_of(value)), words=KINDS, warned=False)


@parameterized.expand([(dtype,) for dtype in DTYPES])
def test_tensor_of_a_dtype(dtype):
    def script(lib):
        kind = getattr(lib, dtype)
        results = []
        for value in (
            3,
            2.7,
            -1,
            300,
            70000.0,
            True,
            1 + 2j,
            [1, 2.5],
            [True, False],
            [],
            INF,
            NAN,
            np.array([1.7, 2.2]),
            np.array([1, 0]),
            [np.int64(1)],
            1e-300,
            1e39,
            -1.5,
            2**31,
            2**63 - 1,
            lib.tensor([1.5, -2.5]),
            [lib.tensor(True), 2],
        ):
            results.append(attempt(lib.tensor, value, dtype=kind))
            results.append(attempt(lib.as_tensor, value, dtype=kind))
        return results

    same(script, words=KINDS, warned=False)


def test_tensor_of_tensors():
    def script(lib):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = lib.tensor(x.detach())
        y[0] = 5
        return (
            x,
            y,
            lib.tensor([lib.tensor(1), lib.tensor(2.5)]),
            lib.tensor([[lib.tensor(1.0), 2], [3, lib.tensor([4.0])]]),
            lib.tensor((lib.tensor([1, 2]).sum(), 3)),
            attempt(lib.tensor, [lib.ones(2), lib.ones(2)]),
            attempt(lib.tensor, [lib.ones(2), 1]),
            lib.tensor(lib.ones(2, dtype=lib.int16)),
            lib.as_tensor(x) is x,
            lib.as_tensor(x, dtype=lib.float64),
            lib.as_tensor(x.long()),
        )

    same(script, warned=False, words=("", "only one element tensors"))


def test_options():
    def script(lib):
        x = lib.tensor([1.0], requires_grad=True)
        return (
            x.requires_grad,
            x.is_leaf,
            lib.tensor([1.0], device="cpu").device.type,
            lib.tensor([1.0], pin_memory=False),
            lib.tensor(data=[1]),
            lib.ones(2, layout=lib.strided),
            lib.ones(2).layout == lib.strided,
            repr(lib.strided),
        )

    same(script)


@parameterized.expand(
    [
        ("zeros", ((2, 3),)),
        ("zeros", (2, 3)),
        ("zeros", ([2, 3],)),
        ("zeros", ()),
        ("zeros", ((),)),
        ("zeros", (0,)),
        ("zeros", (2, 0, 3)),
        ("ones", (3,)),
        ("ones", (-1,)),
        ("ones", (2.0,)),
        ("ones", ("a",)),
        ("ones", (None,)),
        ("full", ((2,), 3)),
        ("full", ((2,), 3.5)),
        ("full", ((2,), True)),
        ("full", ((2,), 1j)),
        ("full", ([2, 2], INF)),
        ("full", ((), 7)),
        ("full", (3, 1)),
        ("full", ((2,), 2**40)),
        ("full", ((2,), None)),
        ("full", ((2,), [1, 2])),
        ("eye", (3,)),
        ("eye", (2, 3)),
        ("eye", (3, 2)),
        ("eye", (0,)),
        ("eye", (-1,)),
        ("eye", (2, -1)),
        ("eye", (2.5,)),
        ("scalar_tensor", (3,)),
        ("scalar_tensor", (2.5,)),
        ("arange", (5,)),
        ("arange", (5.0,)),
        ("arange", (2, 7)),
        ("arange", (2, 7, 2)),
        ("arange", (7, 2, -2)),
        ("arange", (1, 2, 0.25)),
        ("arange", (0.5, 3)),
        ("arange", (0,)),
        ("arange", (-3,)),
        ("arange", (3, 0)),
        ("arange", (0, 3, -1)),
        ("arange", (0, 3, 0)),
        ("arange", (2.7,)),
        ("arange", (1, 0.1, -0.3)),
        ("arange", (0, 1, 0.1)),
        ("arange", (True,)),
        ("arange", (INF,)),
        ("arange", (NAN,)),
        ("arange", (2**53, 2**53 + 3)),
        ("arange", (-5, 5, 3)),
        ("arange", ("a",)),
        ("linspace", (0, 1, 5)),
        ("linspace", (-2.5, 10, 7)),
        ("linspace", (3, 3, 3)),
        ("linspace", (0, 1, 1)),
        ("linspace", (0, 1, 0)),
        ("linspace", (5, -5, 11)),
        ("linspace", (0, 1, -1)),
        ("linspace", (0, 1, 2.5)),
        ("linspace", (0, 1)),
        ("linspace", (1j, 2, 3)),
        ("logspace", (0, 3, 4)),
        ("logspace", (0, 3, 4, 2)),
        ("logspace", (-1, 1, 5)),
        ("logspace", (0, 1, 0)),
        ("logspace", (0, 1, 1)),
        ("logspace", (0, 1, -1)),
        ("logspace", (0, 2, 3, 2.5)),
        ("range", (1, 4)),
        ("zeros_like", (3,)),
    ]
)
def test_functions(name, args):
    same(lambda lib: getattr(lib, name)(*args), words=KINDS, warned=False, rtol=1e-6)


@parameterized.expand([(dtype,) for dtype in DTYPES])
def test_functions_of_a_dtype(dtype):
    def script(lib):
        kind = getattr(lib, dtype)
        return [
            attempt(function, *args, dtype=kind)
            for function, *args in (
                (lib.zeros, 2),
                (lib.ones, (1, 2)),
                (lib.full, (2,), 3),
                (lib.full, (2,), 2.5),
                (lib.full, (2,), True),
                (lib.full, (2,), -1),
                (lib.full, (2,), 300),
                (lib.full, (2,), 1j),
                (lib.full, (2,), 1e300),
                (lib.eye, 2),
                (lib.arange, 5),
                (lib.arange, 0, 3, 0.5),
                (lib.arange, 2.5),
                (lib.arange, 5, 0, -1),
                (lib.linspace, 0, 10, 4),
                (lib.linspace, 0, 1, 5),
                (lib.linspace, 10, 0, 5),
                (lib.linspace, 0.5, 99.5, 7),
                (lib.logspace, 0, 3, 4),
                (lib.logspace, 0, 1, 5),
                (lib.scalar_tensor, 3.7),
                (lib.zeros_like, lib.ones(2)),
                (lib.full_like, lib.ones(2), 2.5),
                (lib.full_like, lib.ones(2), 300),
                (lib.full_like, lib.ones(2), 1j),
            )
        ]

    same(script, words=KINDS, rtol=1e-3 if dtype.endswith("16") else 1e-6, warned=False)


def test_likes_and_news():
    def script(lib):
        x = lib.ones(2, 3, dtype=lib.float16, requires_grad=True)
        t = lib.ones(2, 3).t()
        return (
            lib.zeros_like(x),
            lib.ones_like(x, dtype=lib.int64),
            lib.full_like(x, 2),
            lib.full_like(lib.tensor([1, 2]), 2.9),
            lib.full_like(lib.tensor([True]), 2),
            lib.empty_like(x).shape,
            lib.zeros_like(t).stride(),
            lib.zeros_like(x, requires_grad=True),
            lib.zeros_like(lib.ones(1).expand(3)).stride(),
            lib.empty_like(lib.ones(2, 3, 4, 5).permute(0, 3, 1, 2)).stride(),
            lib.zeros_like(t, memory_format=lib.contiguous_format).stride(),
            x.new_zeros(2),
            x.new_zeros((2, 1)),
            x.new_ones(2, dtype=lib.int32),
            x.new_full((2,), 3),
            x.new_full((2,), 3.7, dtype=lib.int64),
            x.new_empty((0, 2)),
            x.new_tensor([1, 2]),
            lib.tensor([1]).new_tensor([1.5]),
            x.new_tensor([1.0], requires_grad=True),
            x.new_tensor([1, 2], dtype=lib.int64),
            lib.ones(2).new_zeros(3, requires_grad=True),
            lib.empty(2, 3).shape,
            lib.empty((2, 3), dtype=lib.int8).dtype,
            lib.empty_strided((2, 3), (1, 2)).stride(),
            x.new_empty_strided((2, 3), (1, 2)).stride(),
            lib.Tensor(2, 3).shape,
            lib.Tensor([1, 2]),
            lib.Tensor(),
            lib.Tensor(lib.Size([2, 2])).shape,
        )

    same(script, warned=False)


def test_out():
    def script(lib):
        x = lib.empty(3)
        y = lib.zeros(3, out=x)
        z = lib.empty(0, dtype=lib.int64)
        return (
            y is x,
            x,
            lib.ones(3, out=x) is x,
            lib.arange(3, out=x),
            lib.arange(4, out=z) is z,
            z,
            lib.linspace(0, 1, 3, out=x),
            lib.eye(2, out=lib.empty(2, 2)),
            lib.full((3,), 2.0, out=x),
        )

    same(script, warned=False)


def test_default_dtype():
    def script(lib):
        seen = []
        try:
            for name in ("float64", "float32"):
                lib.set_default_dtype(getattr(lib, name))
                seen += [
                    lib.get_default_dtype(),
                    lib.tensor(1.5).dtype,
                    lib.tensor([1.5, 2]).dtype,
                    lib.tensor(1j).dtype,
                    lib.tensor(1).dtype,
                    lib.zeros(1).dtype,
                    lib.arange(1.0).dtype,
                    lib.arange(1).dtype,
                    lib.linspace(0, 1, 2).dtype,
                    lib.full((1,), 1.5).dtype,
                    lib.full((1,), 1j).dtype,
                    lib.full((1,), 1).dtype,
                    lib.rand(1).dtype,
                    lib.randn(1).dtype,
                    lib.eye(1).dtype,
                    (lib.tensor(1) / 2).dtype,
                    (lib.tensor([1, 2]) * 1.5).dtype,
                    lib.tensor([1, 2]).sqrt().dtype,
                    (lib.tensor([1, 2]) + 1j).dtype,
                    lib.tensor(np.float64(1)).dtype,
                    lib.tensor(np.array(1.0)).dtype,
                    lib.as_tensor([1.0]).dtype,
                    lib.scalar_tensor(1).dtype,
                    lib.Tensor([1]).dtype,
                    lib.finfo().dtype,
                    lib.nn.Linear(1, 1).weight.dtype,
                ]
        finally:
            lib.set_default_dtype(lib.float32)
        return seen, [
            attempt(lib.set_default_dtype, d) for d in (lib.int64, lib.complex64, "float32", None)
        ]

    same(script, words=("only floating-point types are supported", ""))


def test_default_device():
    def script(lib):
        seen = [lib.get_default_device().type]
        with lib.device("cpu"):
            seen.append(lib.zeros(1).device.type)
        lib.set_default_device("cpu")
        seen.append(lib.zeros(1).device.type)
        lib.set_default_device(None)
        return seen

    if DEVICE == "cpu":
        same(script)


@parameterized.expand(
    [
        ("type", ("cpu",)),
        ("type and index", ("cuda:1",)),
        ("two", ("cuda", 0)),
        ("index twice", ("cuda:0", 0)),
        ("nonsense", ("nonsense",)),
        ("bad index", ("cuda:x",)),
        ("leading zero", ("cuda:01",)),
        ("negative", ("cuda:-1",)),
        ("empty", ("",)),
        ("none", (None,)),
        ("float", (1.5,)),
        ("cpu 0", ("cpu:0",)),
        ("cpu, 0", ("cpu", 0)),
        ("no index", ("cuda:",)),
        ("meta", ("meta",)),
        ("number", (1,)),
    ]
)
def test_devices(name, args):
    if name in ("nonsense", "number"):  # devices are found by name; 1 needs an accelerator
        return
    same(
        lambda lib: [
            (d, str(d), d.type, d.index, hash(d) == hash(lib.device(*args)))
            for d in [lib.device(*args)]
        ],
        words=KINDS,
    )


def test_equal_devices():
    def script(lib):
        d = lib.device
        return (
            d("cpu") == d("cpu"),
            d("cpu") == d("cpu:0"),
            d("cuda") == d("cuda:0"),
            d("cuda:0") == d("cuda", 0),
            d("cpu") == "cpu",
            d("cpu") != d("cuda"),
            len({d("cpu"), d("cpu"), d("cuda:0")}),
            d(d("cuda:1")),
            lib.device(type="cuda", index=1),
        )

    same(script)
