"""Result dtypes of every pair of dtypes, for dimensioned, zero-dim and Python operands."""

from __future__ import annotations

import operator

from parameterized import parameterized

from tests.autograd.against_torch import attempt, same

DTYPES = """bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64
complex128""".split()
SCALARS = [True, 3, 2.5, 1 + 2j]

OPERATIONS = {
    "add": lambda lib, x, y: x + y,
    "sub": lambda lib, x, y: x - y,
    "mul": lambda lib, x, y: x * y,
    "div": lambda lib, x, y: x / y,
    "floor_divide": lambda lib, x, y: x // y,
    "remainder": lambda lib, x, y: x % y,
    "pow": lambda lib, x, y: x**y,
    "eq": lambda lib, x, y: x == y,
    "lt": lambda lib, x, y: x < y,
    "and": lambda lib, x, y: x & y,
    "shift": lambda lib, x, y: x << y,
    "where": lambda lib, x, y: lib.where(lib.tensor([True]), x, y),
    "maximum": lambda lib, x, y: lib.maximum(x, y),
    "atan2": lambda lib, x, y: lib.atan2(x, y),
    "result_type": lambda lib, x, y: lib.result_type(x, y),
    "logical_and": lambda lib, x, y: lib.logical_and(x, y),
    "iadd": lambda lib, x, y: operator.iadd(x.clone(), y),
    "itruediv": lambda lib, x, y: operator.itruediv(x.clone(), y),
    "div trunc": lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"),
    "fmod": lambda lib, x, y: lib.fmod(x, y),
}


def kind(lib, function, *arguments):
    """The dtype of a result, or how it is refused; NotImplementedError is a RuntimeError."""
    if complex32(lib, arguments):
        return "complex32"
    result = attempt(function, lib, *arguments)
    if isinstance(result, RuntimeError):
        return "RuntimeError"
    if isinstance(result, Exception):
        return type(result).__name__
    return str(result.dtype) if isinstance(result, lib.Tensor) else str(result)


def complex32(lib, arguments):
    """Whether float16 meets a complex number: PyTorch answers in complex32, we do not."""
    types = [x.dtype if isinstance(x, lib.Tensor) else type(x) for x in arguments]
    half = lib.float16 in types
    return half and any(t in (complex, lib.complex64, lib.complex128) for t in types)


def values(lib, name):
    dtype = getattr(lib, name)
    return lib.ones(2, dtype=dtype), lib.tensor(1, dtype=dtype)


@parameterized.expand([(name,) for name in OPERATIONS])
def test_pairs_of_tensors(name):
    function = OPERATIONS[name]

    def script(lib):
        return {
            f"{a} {b} {i} {j}": kind(lib, function, x, y)
            for a in DTYPES
            for b in DTYPES
            for i, x in enumerate(values(lib, a))
            for j, y in enumerate(values(lib, b))
        }

    same(script)


@parameterized.expand([(name,) for name in OPERATIONS if name not in ("maximum", "atan2")])
def test_tensors_and_numbers(name):
    function = OPERATIONS[name]

    def script(lib):
        found = {}
        for dtype in DTYPES:
            for number in SCALARS:
                for place, x in enumerate(values(lib, dtype)):
                    key = f"{dtype} {number} {place}"
                    found[key] = kind(lib, function, x, number)
                    if not name.startswith("i") and name != "fmod":
                        found[f"reflected {key}"] = kind(lib, function, number, x)
        return found

    same(script)


def test_three_operands():
    def script(lib):
        found = {}
        for a in DTYPES:
            for b in DTYPES:
                x, _ = values(lib, a)
                y, zero_dim = values(lib, b)
                found[f"{a} {b}"] = [
                    kind(lib, lambda lib, *t: lib.cat(t), x, y),
                    kind(lib, lambda lib, *t: lib.stack(t), x, y),
                    kind(lib, lambda lib, *t: lib.stack(t), x, zero_dim.expand(2)),
                    kind(lib, lambda lib, *t: lib.cat(t), x, y, x),
                    kind(lib, lambda lib, x, y: lib.where(x != 0, x, y), x, zero_dim),
                    kind(lib, lambda lib, x, y: lib.addcmul(x, y, y), x, y),
                    kind(lib, lambda lib, x, y: lib.add(x, y, alpha=2), x, y),
                    kind(lib, lambda lib, x, y: lib.add(x, y, alpha=2.5), x, y),
                ]
        return found

    same(script)


def test_reductions_and_functions():
    def script(lib):
        found = {}
        for name in DTYPES:
            x, zero_dim = values(lib, name)
            for function in """sum prod mean max min argmax any all cumsum cumprod std var norm exp
            sqrt sin abs neg sign floor round reciprocal sigmoid tanh relu square erf rsqrt
            logsumexp isnan real angle logical_not bitwise_not median sort clone float trace
            amax count_nonzero log1p diff""".split():
                arguments = (0,) if function in ("cumsum", "cumprod", "logsumexp") else ()
                result = attempt(lambda: getattr(x, function)(*arguments))  # noqa: B023
                result = result[0] if isinstance(result, tuple) else result
                if isinstance(result, Exception):
                    found[f"{name} {function}"] = "refused"
                else:
                    found[f"{name} {function}"] = str(result.dtype)
        return found

    same(script, warned=False)


def test_default_dtypes():
    def script(lib):
        found = {}
        try:
            for default in ("float64", "float32"):
                lib.set_default_dtype(getattr(lib, default))
                for name in DTYPES:
                    for place, x in enumerate(values(lib, name)):
                        found[f"{default} {name} {place}"] = [
                            kind(lib, OPERATIONS[op], x, y)
                            for op in ("add", "div", "pow", "where")
                            for y in SCALARS
                        ] + [str(x.sqrt().dtype)]
        finally:
            lib.set_default_dtype(lib.float32)
        return found

    same(script)


def test_results_of_numbers():
    def script(lib):
        return (
            lib.tensor([1, 2]) * 2.5,
            lib.tensor([1, 2], dtype=lib.uint8) + 300 - 300,
            lib.tensor([1, 2], dtype=lib.uint8) - 3,
            lib.tensor([100], dtype=lib.int8) + 100,
            lib.tensor([1.5], dtype=lib.float16) * 1e5,
            lib.tensor([2**53 + 1]) + 0.0,
            lib.tensor([True]) + True,
            lib.tensor([True]) * 2,
            attempt(lambda: lib.tensor([True]) - True),
            attempt(lambda: -lib.tensor([True])),
            attempt(lambda: lib.tensor([1], dtype=lib.uint8) * 2**70),
            lib.tensor([7, -7]) // 2,
            lib.tensor([7, -7]) % 3,
            lib.tensor([7, -7]) / 2,
            attempt(lambda: lib.tensor([1]) // 0),
            lib.tensor([1.0]) // 0,
            2 ** lib.tensor([3, 4]),
            attempt(lambda: lib.tensor([2]) ** -1),
            lib.tensor([2.0]) ** -1,
            5 - lib.tensor([1, 2]),
            5 / lib.tensor([1, 2]),
            5 // lib.tensor([2, 3]),
            5 % lib.tensor([2, 3]),
            1 << lib.tensor([2, 3]),
            3 & lib.tensor([2, 5]),
        )

    same(script, words=("",))
