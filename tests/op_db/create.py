"""Rows of functions that make tensors from numbers."""

# fmt: off
from __future__ import annotations

import numpy as np

from tests.op_db._case import ALL, WIDE, C, E, Here, Name, Op, S, T, V

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
STEPS = {"float32": (1e-5, 1e-5)}


def made(name, *samples, errors=(), **options):
    """A row of a factory: it has no inputs, and is made on the device under test."""
    there = [sample._replace(kwargs=sample.kwargs | {"device": Here()}) for sample in samples]
    bad = [sample._replace(kwargs=sample.kwargs | {"device": Here()}) for sample in errors]
    return Op(name, *there, dtypes=("float32",), grad=False, layout=False, errors=bad, **options)


def like(name, *more, **options):
    """A row of a factory that takes shape, dtype and device from a tensor."""
    samples = [S(T(3, 4)), S(T()), S(T(0, 2))]
    samples += [S(T(2), dtype=Name(dtype)) for dtype in ("float64", "int64", "bool")]
    return Op(name, *samples, *more, dtypes=ALL, grad=False, **options)


def text(torch, x):
    """The representation, without the name of a device that PyTorch has not."""
    return repr(x).replace(f", device='{x.device.type}:0'", "")


FILLED = [
    *(made(name, S(3), S(3, 4), S((2, 3)), S([2, 0]), S(()), S(size=(2,)),
        *(S(2, dtype=Name(dtype)) for dtype in DTYPES), S(2, requires_grad=True),
        errors=[E(-1), E("x"), E(2.5)]) for name in ("zeros", "ones")),
    made("full", S((2, 3), 1.5), S((2,), 7), S((2,), True), S((), 2.0),
        S([2], 3, dtype=Name("float64")), S((2,), fill_value=1.5, dtype=Name("int64")),
        S((2,), 2 + 1j), errors=[E((-1,), 1.0), E((2,), "x")]),
    like("zeros_like"), like("ones_like"),
    like("full_like", call=lambda torch, x, **kw: torch.full_like(x, 1, **kw)),
    Op("empty_like", S(T(3, 4)), S(T(2), dtype=Name("int64")),
        call=lambda torch, x, **kw: torch.empty_like(x, **kw).fill_(1), dtypes=ALL, grad=False),
    made("empty", S(3, 4), S((2, 0)), S(2, dtype=Name("int64")),
        call=lambda torch, *args, **kw: torch.empty(*args, **kw).zero_()),
    *(Op(f"Tensor.new_{name}", S(T(2), (3, 4)), S(T(2), 3), S(T(2), (2,), dtype=Name("float64")),
        call=lambda torch, x, *args, name=name, **kw: getattr(x, f"new_{name}")(*args, **kw),
        dtypes=ALL, grad=False) for name in ("zeros", "ones")),
    Op("Tensor.new_full", S(T(2), (3, 4), 2), S(T(2), (2,), 1.5, dtype=Name("float64")),
        call=lambda torch, x, *args, **kw: x.new_full(*args, **kw), dtypes=ALL, grad=False),
    Op("Tensor.new_tensor", S(T(2), [1.0, 2.0]), S(T(2), 3, dtype=Name("int64")),
        call=lambda torch, x, *args, **kw: x.new_tensor(*args, **kw), dtypes=ALL, grad=False),
    Op("Tensor.new_empty", S(T(2), (3, 4)),
        call=lambda torch, x, *args: x.new_empty(*args).fill_(1), dtypes=ALL, grad=False),
]

RANGES = [
    made("arange", S(5), S(2, 5), S(0, 1, 0.25), S(5, 0, -2), S(2.5), S(0), S(3, 3),
        S(1, 6, 2, dtype=Name("float32")), S(5, dtype=Name("float64")), S(end=4),
        S(start=1, end=4, step=2), S(0, 1, 0.1), S(5, dtype=Name("int32")),
        S(5, dtype=Name("bfloat16")), errors=[E(0, 5, -1), E(5, 0), E(0, 5, 0), E("x")], tol=STEPS,
        why="float32 steps"),
    made("linspace", S(0, 1, 5), S(-2.0, 3.0, 4), S(3, 1, steps=3), S(0, 1, 1), S(0, 1, 0),
        S(0, 10, 5, dtype=Name("int64")), S(0, 1, 7, dtype=Name("float64")),
        S(-1.5, 4.9, 4, dtype=Name("int32")), S(0, -2, 5, dtype=Name("uint8")),
        errors=[E(0, 1, -1), E(0, 1), E(0, -0.5, 3, dtype=Name("uint8")),
        E(0, 300, 3, dtype=Name("int8"))], tol=STEPS, why="float32 steps"),
    made("logspace", S(0, 2, 5), S(-1.0, 1.0, 3, 2.0), S(0, 1, 1),
        S(0, 1, 4, base=3, dtype=Name("float64")), S(0, 3, 10, dtype=Name("int64")),
        S(-1.5, 3.9, 6, 2.0, dtype=Name("int32")), errors=[E(0, 1, -1)],
        tol={"float32": (3e-5, 1e-5)}, why="powers of float32 steps"),
    made("eye", S(3), S(2, 4), S(4, 2), S(0), S(3, dtype=Name("int64")), S(2, m=3),
        errors=[E(-1), E(2, -1)]),
    made("tril_indices", S(3, 3), S(3, 4, 1), S(4, 2, -1), S(0, 2), S(3, 3, offset=5)),
    made("triu_indices", S(3, 3), S(3, 4, 1), S(4, 2, -1), S(0, 2)),
    made("range", S(0, 4), S(1, 2, 0.5), S(5, 1, -2), S(0, 4.5, dtype=Name("int64")),
        S(1, 0.5, -1.7, dtype=Name("int64")), S(0, 0.9, 0.3, dtype=Name("float16")),
        errors=[E(0, 4, 0), E(0, 4, -1)]),
    *(made(f"{name}_window", S(5), S(6, periodic=False), S(1), S(0), S(4, dtype=Name("float64")),
        S(4, requires_grad=True), errors=[E(-1), E(2.5), E(3, dtype=Name("int64"))],
        tol={"float32": (2e-5, 1e-6)}, why="cosines of float32 steps")
        for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")),
]

FROM_DATA = [
    made("tensor", S(3), S(2.5), S(True), S([1, 2, 3]), S([[1.0, 2.0], [3.0, 4.0]]), S([]),
        S([[], []]), S([True, False]), S([1, 2.5]), S([1, True]), S((1, 2)),
        S([1, 2], dtype=Name("float64")), S([1.5, 0.0], dtype=Name("int64")),
        S([0.0, 2.0], dtype=Name("bool")), S([1 + 2j]), S([1.5], dtype=Name("bfloat16")),
        S([1.0], requires_grad=True), S([2 ** 40]), S([float("inf"), float("nan")]), S(range(3)),
        errors=[E([1, [2]]), E([[1, 2], [3]]), E("x"), E(["a"]), E([1], requires_grad=True),
        E(None), E({})]),
    made("tensor.numpy", *[S(d) for d in ("float64", "float32", "int64", "int32", "uint8", "bool",
        "float16")], call=lambda torch, d, **kw: torch.tensor(np.ones((2, 3), d), **kw)),
    made("as_tensor", S([1.0, 2.0]), S(3), S([1], dtype=Name("float64"))),
    made("asarray", S([1.0, 2.0]), S(3), S([1], dtype=Name("float64"))),
    Op("as_tensor.tensor", S(T(2, 3)), S(T(2, 3), dtype=Name("float64")),
        call=lambda torch, x, **kw: torch.as_tensor(x, **kw), dtypes=WIDE, grad=False),
    made("scalar_tensor", S(3), S(2.5, dtype=Name("float64"))),
    Op("Tensor.repr", S(V([1.0, 2.5])), S(T(2, 3)), S(V(3)), S(T(0)), S(V([1e-8, 1.0])),
        S(V([1e10, 1.0])), S(V([float("nan"), float("inf"), 1.0])), S(C(3, 3, 3)),
        call=text, dtypes=("float32", "float64"), grad=False, layout=False),
    Op("Tensor.repr.int", S(V([1, 25])), S(T(2, 3)), S(T(0)), S(T(1200)),
        call=text, dtypes=("int64", "bool", "int32"), grad=False, layout=False),
    Op("Tensor.numpy", S(T(2, 3)), S(T()), call=lambda torch, x: x.cpu().numpy().tolist(),
        dtypes=("float64", "float32", "int64", "bool"), grad=False, layout=False),
]

OPS = FILLED + RANGES + FROM_DATA
