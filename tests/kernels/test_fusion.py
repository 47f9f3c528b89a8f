"""Pointwise formulas as expressions, walks and source text; nothing here needs a GPU."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

from tensorflow_lite_clone.backends.cupy.fusion import formula, source
from tensorflow_lite_clone.backends.cupy.fusion.launch import header
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk, walk, width
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.fuse.formula import trace
from tensorflow_lite_clone.fuse.symbol import NotPointwise

F32 = np.dtype(np.float32)
BF16 = next(native for dtype, native in NATIVE.items() if dtype.name == "bfloat16")


def traced(body: Any, *kinds: Any, **parameters: Any) -> Any:
    shapes = ((4,),) * len(kinds)
    return trace(body, formula.NAMESPACE, kinds, shapes, parameters, widened=True)


@pytest.mark.parametrize("word", ["add", "multiply", "maximum", "less", "divide"])
def test_dtypes_are_those_of_numpy(word: str) -> None:
    kinds = [np.dtype(kind) for kind in ("bool", "int8", "uint8", "int32", "int64", "f4", "f8")]
    values = [*[np.ones(3, kind) for kind in kinds], 2, 2.5]
    for left, right in product(values, values):
        if not isinstance(left, np.ndarray):
            continue
        if isinstance(right, np.ndarray):
            made = traced(lambda F, x, y: getattr(F, word)(x, y), left.dtype, right.dtype)
        else:
            made = traced(lambda F, x, *, y: getattr(F, word)(x, y), left.dtype, y=right)
        true = getattr(np, word)(left, right).dtype
        if word == "divide" and true.kind == "f":
            assert made.results[0].dtype.kind == "f"  # CuPy divides small integers in float64
        else:
            assert made.results[0].dtype == true, (left.dtype, right)


def test_fusion_refuses_formulas_that_are_not_pointwise() -> None:
    for body in (
        lambda F, x: F.sum(x, axis=0),
        lambda F, x: x[0],
        lambda F, x: F.reshape(x, (2, 2)),
        lambda F, x: x if x > 0 else -x,
        lambda F, x: F.zeros_like(x),
        lambda F, x: x,
        lambda F, x: F.backend.generator,
        lambda F, x: F.matmul(x, x),
        lambda F, x: x + 1j,
    ):
        with pytest.raises((NotPointwise, TypeError)):
            traced(body, F32)


def test_composites_are_inlined() -> None:
    made = traced(lambda F, g, x: F.gelu_backward(g, x), F32, F32)
    assert made.names == ("g", "x") and len(made.operands) == 2


def test_numbers_beside_two_byte_operands_are_rounded_for_comparisons() -> None:
    made = traced(lambda F, x, *, low: F.where(x > low, x, 0), BF16, low=0.1)
    compared = made.results[0].operands[0]
    assert compared.operands[1].value == float(BF16.type(0.1))
    scaled = traced(lambda F, x, *, by: x * by, BF16, by=0.1).results[0]
    assert scaled.operands[1].value == float(np.float32(0.1))


def form(made: Any, dtype: Any, walked: Walk) -> source.Form:
    results = tuple([symbol.dtype for symbol in made.results])
    count = len(made.names)
    sizes = [dtype.itemsize] * count + [result.itemsize for result in results]
    steps = tuple([tuple([s if s in (0, 1) else 2 for s in own]) for own in walked.steps])
    many = width(walked, sizes)
    return source.Form(
        (dtype,) * count, results, (False,) * count, steps, len(walked.sizes), many, 2, False
    )


def compiled(code: str, architecture: str) -> str:
    """The PTX of a source."""
    from cupy._core import core
    from cupy.cuda import nvrtc

    from tensorflow_lite_clone.backends.cupy.kernel import OPTIONS

    options = (
        *core.assemble_cupy_compiler_options(OPTIONS),
        "--device-as-default-execution-space",
        f"-arch={architecture}",
    )
    program: Any = nvrtc.createProgram(code, "pointwise.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        return nvrtc.getPTX(program).decode()
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    "name", ["add", "gelu", "lerp", "remainder", "floor_divide", "lt", "logaddexp", "sgn"]
)
def test_sources_compile(name: str, architecture: str) -> None:
    from tensorflow_lite_clone.kernels.check import missing

    if reason := missing():
        pytest.skip(reason)
    entry: Any = TABLE[name]
    count = len(entry.inputs)
    for dtype in (F32, BF16):
        made = traced(entry.forward, *[dtype] * count)
        for shape, strides in (((4096,), (1,)), ((4, 8, 16), (128, 1, 8)), ((4, 8), (16, 1))):
            text = source.write(
                name, made, form(made, dtype, walk([shape] * count, [strides] * count, 1))
            )
            ptx = compiled(text.code.replace('#include "pointwise.cuh"', header()), architecture)
            assert text.name in ptx and ".f64" not in ptx


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "int64", "uint8", "bool"])
def test_casts_compile(target: str) -> None:
    from tensorflow_lite_clone.kernels.check import missing

    if reason := missing():
        pytest.skip(reason)
    kinds = [native for dtype, native in NATIVE.items() if dtype.kind != "c"]
    wanted = next(native for native in kinds if native.name == target)
    for native in kinds:
        if native == wanted:
            continue
        made = trace(
            lambda F, x, *, dtype: F.astype(x, dtype), formula.NAMESPACE, (native,), ((9,),),
            {"dtype": wanted}, widened=False,
        )  # fmt: skip
        text = source.write("cast", made, form(made, native, walk([(9,)], [(1,)], 1)))
        compiled(text.code.replace('#include "pointwise.cuh"', header()), "sm_90")


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("columns", [64, 5])
def test_sums_compile(architecture: str, columns: int) -> None:
    from tensorflow_lite_clone.kernels.check import missing

    if reason := missing():
        pytest.skip(reason)

    def body(F: Any, g: Any, y: Any, mean: Any) -> tuple:
        masked = F.where(y > 0, g, 0)
        return masked, masked + 0, masked * (y - mean)

    for dtype in (F32, BF16):
        made = traced(body, dtype, dtype, F32)
        w = walk([(9, columns)] * 2 + [(columns,)], [(columns, 1)] * 2 + [(1,)], 1)
        narrow = form(made, dtype, w)._replace(operands=(dtype, dtype, F32), results=(dtype,))
        assert narrow.steps == ((1, 2), (1, 2), (1, 0), (1, 2))
        text = source.write("sums", made, narrow)
        ptx = compiled(text.code.replace('#include "pointwise.cuh"', header()), architecture)
        assert text.name in ptx and ".f64" not in ptx and ".local" not in ptx


def offsets(shape: tuple, strides: tuple) -> np.ndarray:
    """Where the elements of an array lie."""
    made = np.zeros(shape, int)
    for axis, (size, step) in enumerate(zip(shape, strides)):
        places = [-1 if other == axis else 1 for other in range(len(shape))]
        made = made + (np.arange(size) * step).reshape(places)
    return made


def walked_pairs(w: Walk) -> dict[int, list[int]]:
    """Per element of the result where the operands' elements lie, as the kernels walk."""
    many = width(w, [4] * len(w.steps)) if not w.flat else 1
    found = {}
    for i in range(w.elements // many):
        rest, places = i, []
        for axis, size in enumerate(w.sizes[:-1]):
            rest, place = divmod(rest, size // many if axis == 0 else size)
            places.append(place)
        places.append(rest)
        places[0] *= many
        base = [sum([j * s for j, s in zip(places, own)]) for own in w.steps]
        for lane in range(many):
            *operands, result = [at + lane * own[0] for at, own in zip(base, w.steps)]
            found[result] = operands
        assert many == 1 or not any([at % many for at, own in zip(base, w.steps) if own[0]])
    return found


def test_walks_pair_the_elements_that_broadcasting_pairs() -> None:
    chance = random.Random(0)
    for _ in range(500):
        full = [chance.choice([1, 2, 3, 4, 8]) for _ in range(chance.randint(0, 5))]
        shapes, strides = [], []
        for _ in range(chance.randint(1, 3)):
            shape = [size if chance.random() < 0.8 else 1 for size in full]
            if chance.random() < 0.2:
                shape = shape[chance.randint(0, len(shape)) :]
            order = list(range(len(shape)))
            if chance.random() < 0.5:
                chance.shuffle(order)
            steps, step = [0] * len(shape), 1
            for axis in order:
                steps[axis] = step if chance.random() < 0.9 else 0
                step *= shape[axis] * chance.choice([1, 1, 1, 2])
            shapes.append(tuple(shape))
            strides.append(tuple(steps))
        made = walk(shapes, strides, 1)
        results = offsets(made.shape, made.strides).ravel()
        assert sorted(results) == list(range(made.elements))
        sources = [
            np.broadcast_to(offsets(s, t), made.shape).ravel() for s, t in zip(shapes, strides)
        ]
        pairs = walked_pairs(made)
        assert [pairs[result] for result in results] == [list(at) for at in zip(*sources)]


def test_results_lie_as_their_operands() -> None:
    shape, last, rows = (2, 4, 4, 6), (96, 1, 24, 4), (96, 24, 6, 1)
    assert walk([shape, shape], [last, last], 1).strides == last
    assert walk([shape, shape], [last, rows], 1).strides == last
    assert walk([shape, shape], [last, rows], 1, leader=1).strides == rows
    assert walk([(4, 1, 1), shape], [(1, 1, 1), last], 1).strides == last
