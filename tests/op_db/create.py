"""Rows of functions that make tensors from numbers."""

# fmt: off
from __future__ import annotations

import numpy as np

from tests.op_db._case import (
    ALL,
    WIDE,
    Attribute,
    DeviceUnderTest,
    OpInfo,
    constant,
    error,
    literal,
    sample,
    tensor,
)

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
STEPS = {"float32": (1e-5, 1e-5)}


def factory(name, *samples, errors=(), **options):
    """A row of a factory: it has no inputs, and is made on the device under test."""
    there = [sample._replace(kwargs=sample.kwargs | {"device": DeviceUnderTest()}) for sample
        in samples]
    bad = [sample._replace(kwargs=sample.kwargs | {"device": DeviceUnderTest()}) for sample
        in errors]
    return OpInfo(name, *there, dtypes=("float32",), supports_autograd=False, check_layouts=False,
        errors=bad, **options)


def like(name, *more, **options):
    """A row of a factory that takes shape, dtype and device from a tensor."""
    samples = [sample(tensor(3, 4)), sample(tensor()), sample(tensor(0, 2))]
    samples += [sample(tensor(2), dtype=Attribute(dtype)) for dtype in ("float64", "int64", "bool")]
    return OpInfo(name, *samples, *more, dtypes=ALL, supports_autograd=False, **options)


def text(torch, x):
    """The representation, without the name of a device that PyTorch has not."""
    return repr(x).replace(f", device='{x.device.type}:0'", "")


FILLED = [
    *(factory(name, sample(3), sample(3, 4), sample((2, 3)), sample([2, 0]), sample(()),
        sample(size=(2,)), *(sample(2, dtype=Attribute(dtype)) for dtype in DTYPES),
        sample(2, requires_grad=True), errors=[error(-1), error("x"),
        error(2.5)]) for name in ("zeros", "ones")),
    factory("full", sample((2, 3), 1.5), sample((2,), 7), sample((2,), True), sample((), 2.0),
        sample([2], 3, dtype=Attribute("float64")),
        sample((2,), fill_value=1.5, dtype=Attribute("int64")), sample((2,), 2 + 1j),
        errors=[error((-1,), 1.0), error((2,), "x")]),
    like("zeros_like"), like("ones_like"),
    like("full_like", call=lambda torch, x, **kw: torch.full_like(x, 1, **kw)),
    OpInfo("empty_like", sample(tensor(3, 4)), sample(tensor(2), dtype=Attribute("int64")),
        call=lambda torch, x, **kw: torch.empty_like(x, **kw).fill_(1), dtypes=ALL,
        supports_autograd=False),
    factory("empty", sample(3, 4), sample((2, 0)), sample(2, dtype=Attribute("int64")),
        call=lambda torch, *args, **kw: torch.empty(*args, **kw).zero_()),
    *(OpInfo(f"Tensor.new_{name}", sample(tensor(2), (3, 4)), sample(tensor(2), 3),
        sample(tensor(2), (2,), dtype=Attribute("float64")),
        call=lambda torch, x, *args, name=name, **kw: getattr(x, f"new_{name}")(*args, **kw),
        dtypes=ALL, supports_autograd=False) for name in ("zeros", "ones")),
    OpInfo("Tensor.new_full", sample(tensor(2), (3, 4), 2),
        sample(tensor(2), (2,), 1.5, dtype=Attribute("float64")),
        call=lambda torch, x, *args, **kw: x.new_full(*args, **kw), dtypes=ALL,
        supports_autograd=False),
    OpInfo("Tensor.new_tensor", sample(tensor(2), [1.0, 2.0]),
        sample(tensor(2), 3, dtype=Attribute("int64")),
        call=lambda torch, x, *args, **kw: x.new_tensor(*args, **kw), dtypes=ALL,
        supports_autograd=False),
    OpInfo("Tensor.new_empty", sample(tensor(2), (3, 4)),
        call=lambda torch, x, *args: x.new_empty(*args).fill_(1), dtypes=ALL,
        supports_autograd=False),
]

RANGES = [
    factory("arange", sample(5), sample(2, 5), sample(0, 1, 0.25), sample(5, 0, -2), sample(2.5),
        sample(0), sample(3, 3), sample(1, 6, 2, dtype=Attribute("float32")),
        sample(5, dtype=Attribute("float64")), sample(end=4), sample(start=1, end=4, step=2),
        sample(0, 1, 0.1), sample(5, dtype=Attribute("int32")),
        sample(5, dtype=Attribute("bfloat16")), errors=[error(0, 5, -1), error(5, 0),
        error(0, 5, 0), error("x")], tolerances=STEPS, tolerance_reason="float32 steps"),
    factory("linspace", sample(0, 1, 5), sample(-2.0, 3.0, 4), sample(3, 1, steps=3),
        sample(0, 1, 1), sample(0, 1, 0), sample(0, 10, 5, dtype=Attribute("int64")),
        sample(0, 1, 7, dtype=Attribute("float64")), sample(-1.5, 4.9, 4, dtype=Attribute("int32")),
        sample(0, -2, 5, dtype=Attribute("uint8")), errors=[error(0, 1, -1), error(0, 1),
        error(0, -0.5, 3, dtype=Attribute("uint8")), error(0, 300, 3, dtype=Attribute("int8"))],
        tolerances=STEPS, tolerance_reason="float32 steps"),
    factory("logspace", sample(0, 2, 5), sample(-1.0, 1.0, 3, 2.0), sample(0, 1, 1),
        sample(0, 1, 4, base=3, dtype=Attribute("float64")),
        sample(0, 3, 10, dtype=Attribute("int64")),
        sample(-1.5, 3.9, 6, 2.0, dtype=Attribute("int32")), errors=[error(0, 1, -1)],
        tolerances={"float32": (3e-5, 1e-5)}, tolerance_reason="powers of float32 steps"),
    factory("eye", sample(3), sample(2, 4), sample(4, 2), sample(0),
        sample(3, dtype=Attribute("int64")), sample(2, m=3), errors=[error(-1), error(2, -1)]),
    factory("tril_indices", sample(3, 3), sample(3, 4, 1), sample(4, 2, -1), sample(0, 2),
        sample(3, 3, offset=5)),
    factory("triu_indices", sample(3, 3), sample(3, 4, 1), sample(4, 2, -1), sample(0, 2)),
    factory("range", sample(0, 4), sample(1, 2, 0.5), sample(5, 1, -2),
        sample(0, 4.5, dtype=Attribute("int64")), sample(1, 0.5, -1.7, dtype=Attribute("int64")),
        sample(0, 0.9, 0.3, dtype=Attribute("float16")), errors=[error(0, 4, 0), error(0, 4, -1)]),
    *(factory(f"{name}_window", sample(5), sample(6, periodic=False), sample(1), sample(0),
        sample(4, dtype=Attribute("float64")), sample(4, requires_grad=True), errors=[error(-1),
        error(2.5), error(3, dtype=Attribute("int64"))], tolerances={"float32": (2e-5, 1e-6)},
        tolerance_reason="cosines of float32 steps") for name
        in ("hann", "hamming", "blackman", "bartlett", "kaiser")),
]

FROM_DATA = [
    factory("tensor", sample(3), sample(2.5), sample(True), sample([1, 2, 3]),
        sample([[1.0, 2.0], [3.0, 4.0]]), sample([]), sample([[], []]), sample([True, False]),
        sample([1, 2.5]), sample([1, True]), sample((1, 2)),
        sample([1, 2], dtype=Attribute("float64")), sample([1.5, 0.0], dtype=Attribute("int64")),
        sample([0.0, 2.0], dtype=Attribute("bool")), sample([1 + 2j]),
        sample([1.5], dtype=Attribute("bfloat16")), sample([1.0], requires_grad=True),
        sample([2 ** 40]), sample([float("inf"), float("nan")]), sample(range(3)),
        errors=[error([1, [2]]), error([[1, 2], [3]]), error("x"), error(["a"]),
        error([1], requires_grad=True), error(None), error({})]),
    factory("tensor.numpy",
        *[sample(d) for d in ("float64", "float32", "int64", "int32", "uint8", "bool", "float16")],
        call=lambda torch, d, **kw: torch.tensor(np.ones((2, 3), d), **kw)),
    factory("as_tensor", sample([1.0, 2.0]), sample(3), sample([1], dtype=Attribute("float64"))),
    factory("asarray", sample([1.0, 2.0]), sample(3), sample([1], dtype=Attribute("float64"))),
    OpInfo("as_tensor.tensor", sample(tensor(2, 3)),
        sample(tensor(2, 3), dtype=Attribute("float64")),
        call=lambda torch, x, **kw: torch.as_tensor(x, **kw), dtypes=WIDE, supports_autograd=False),
    factory("scalar_tensor", sample(3), sample(2.5, dtype=Attribute("float64"))),
    OpInfo("Tensor.repr", sample(literal([1.0, 2.5])), sample(tensor(2, 3)), sample(literal(3)),
        sample(tensor(0)), sample(literal([1e-8, 1.0])), sample(literal([1e10, 1.0])),
        sample(literal([float("nan"), float("inf"), 1.0])), sample(constant(3, 3, 3)), call=text,
        dtypes=("float32", "float64"), supports_autograd=False, check_layouts=False),
    OpInfo("Tensor.repr.int", sample(literal([1, 25])), sample(tensor(2, 3)), sample(tensor(0)),
        sample(tensor(1200)), call=text, dtypes=("int64", "bool", "int32"), supports_autograd=False,
        check_layouts=False),
    OpInfo("Tensor.numpy", sample(tensor(2, 3)), sample(tensor()),
        call=lambda torch, x: x.cpu().numpy().tolist(),
        dtypes=("float64", "float32", "int64", "bool"), supports_autograd=False,
        check_layouts=False),
]

OPS = FILLED + RANGES + FROM_DATA
