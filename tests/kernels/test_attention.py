"""Attention on the GPU: masks, head sizes, layouts, shared heads, dropout, orders of gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core.flags import flags
from tests.kernels.gpu import Laid, as_good, needs_gpu, on_device, run_override

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

HALVES = ("float16", "bfloat16")
ALL = ("float32", *HALVES)
# Single precision is a sum of three products of shorter numbers.
SLACK = {"float32": 32.0, "float16": 8.0, "bfloat16": 8.0}


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def heads(x: np.ndarray, dtype: str, layout: str) -> Any:
    """(B, H, L, E) on the device: contiguous, a view of (B, L, H, E), or of a packed projection."""
    if layout in ("contiguous", "offset", "sliced", "transposed", "expanded"):
        return on_device(Laid(x, layout), dtype)
    y = on_device(x.swapaxes(1, 2), dtype)
    if layout == "packed":
        wide = cupy.zeros((*y.shape[:2], 3, *y.shape[2:]), y.dtype)
        wide[:, :, 1] = y
        y = wide[:, :, 1]
    return y.swapaxes(1, 2)


def exact(x: Any) -> Any:
    if x is None or x.dtype.kind == "b":
        return None if x is None else x.get()
    return (x.astype(np.float32) if x.dtype.name == "bfloat16" else x).get().astype(np.float64)


def body(name: str, backend: Any) -> Any:
    """The generic form of an op or composite as `backend` runs it."""
    from tensorflow_lite_clone.dispatch.op import TABLE

    entry: Any = TABLE[name]
    generic: Any = getattr(entry, "forward", entry)
    return backend.adapted(entry, lambda *a, **p: generic(backend.F, *a, **p))


def compare(
    sizes: tuple[int, ...],
    dtype: str,
    *,
    layout: str = "contiguous",
    mask: np.ndarray | None = None,
    causal: bool = False,
    groups: int = 1,
    scale: float | None = None,
    needs: tuple[bool, ...] = (True, True, True, False),
    slack: float | None = None,
) -> tuple:
    """Forward and backward of (B, H, L, S, E, Ev): as good as the generic form."""
    from tensorflow_lite_clone import backends

    cpu, gpu = backends.load("cpu"), backends.load("cuda:0")
    b, h, rows, columns, width, value_width = sizes
    q = heads(draw(b, h, rows, width), dtype, layout)
    k = heads(draw(b, h // groups, columns, width, seed=1), dtype, layout)
    v = heads(draw(b, h // groups, columns, value_width, seed=2), dtype, layout)
    g = heads(draw(b, h, rows, value_width, seed=3), dtype, layout)
    m = None if mask is None else on_device(mask, dtype)
    scale = scale or 1 / math.sqrt(width)
    options: dict[str, Any] = {"scale": scale, "causal": causal, "groups": groups}
    mine = run_override("attention", [q, k, v, m], options)
    assert mine is not NotImplemented, "declined"
    plain = body("attention", gpu)(q, k, v, m, **options)
    wide = [exact(x) for x in (q, k, v, m)]
    true = body("attention", cpu)(*wide, **options)
    options["needs"] = needs
    gradients = run_override("attention_backward", [g, q, k, v, m, *mine], options)
    assert gradients is not NotImplemented, "declined"
    plain += body("attention_backward", gpu)(g, q, k, v, m, *plain, **options)
    true += body("attention_backward", cpu)(exact(g), *wide, *true, **options)
    names = ("out", "lse", "gq", "gk", "gv", "gmask")
    for name, x, p, t in zip(names, (*mine, *gradients), plain, true, strict=True):
        if t is None:
            assert x is None, name
            continue
        assert (x.shape, x.dtype) == (p.shape, p.dtype), name
        if name in ("gq", "gk", "gmask"):
            # Differences of terms as large as these: with few keys hardly more than rounding stays.
            terms = np.abs(exact(g)).max() * np.abs(wide[2]).max() * math.sqrt(value_width)
            t, ours, other = (np.append(y, terms / 8) for y in (t, exact(x), exact(p)))
        else:
            ours, other = exact(x), exact(p)
        as_good(f"{name} {dtype}", x, ours, other, t, slack or SLACK[dtype])
    return (*mine, *gradients)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [1, 8, 20, 32, 40, 64, 72, 96, 100, 128])
def test_attention_of_any_head_size_matches_generic(width: int, causal: bool, dtype: str) -> None:
    compare((2, 2, 70, 75, width, width), dtype, causal=causal)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "lengths",
    [(1, 1), (1, 70), (70, 1), (15, 16), (17, 33), (63, 64), (64, 64), (65, 63), (128, 128),
     (129, 127), (200, 40), (40, 200), (64, 192), (300, 310)],
)  # fmt: skip
def test_attention_of_any_length_matches_generic(
    lengths: tuple[int, int], causal: bool, dtype: str
) -> None:
    compare((1, 2, *lengths, 64, 64), dtype, causal=causal)
    compare((1, 1, *lengths, 32, 48), dtype, causal=causal)


def masks(kind: str, b: int, h: int, rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    if kind == "keep":
        keep = rng.random((rows, columns)) < 0.6
        keep[0] = False
        return keep
    if kind == "padding":
        return np.arange(columns) < np.arange(1, b + 1)[:, None, None, None] * columns // b
    if kind == "transposed":
        return (rng.random((b, h, columns, rows)) < 0.6).swapaxes(-1, -2)
    bias = rng.standard_normal({"add": (h, rows, columns), "row": (columns,)}[kind])
    if kind == "add":
        bias[:, rows // 2] = -np.inf
        bias[..., 0] = -np.inf
    return bias


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("kind", ["keep", "padding", "transposed", "add", "row"])
@pytest.mark.parametrize("sizes", [(2, 3, 9, 8), (1, 2, 130, 65)])
@pytest.mark.parametrize("width", [16, 64, 128])
def test_attention_with_masks_matches_generic(
    width: int, sizes: tuple[int, ...], kind: str, dtype: str
) -> None:
    floating = kind in ("add", "row")
    compare(
        (*sizes, width, width), dtype, mask=masks(kind, *sizes),
        needs=(True, True, True, floating),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(
    "layout", ["heads", "packed", "offset", "sliced", "transposed", "expanded"]
)
def test_attention_of_strided_operands_matches_generic(layout: str, dtype: str) -> None:
    out, _, gq, gk, gv, _ = compare((2, 3, 70, 40, 64, 64), dtype, layout=layout, causal=True)
    if layout in ("heads", "packed"):  # so that merging the heads again copies nothing
        for x in (out, gq, gk, gv):
            assert x.swapaxes(1, 2).flags.c_contiguous
    elif layout == "offset":
        assert all(x.flags.c_contiguous for x in (out, gq, gk, gv))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("groups", [2, 3, 6])
def test_attention_with_grouped_heads_matches_generic(groups: int, dtype: str) -> None:
    for causal in (False, True):
        compare((2, 6, 70, 90, 64, 32), dtype, groups=groups, causal=causal, layout="heads")
    keep = masks("transposed", 2, 6, 33, 20)
    compare((2, 6, 33, 20, 16, 16), dtype, groups=groups, mask=keep)


@pytest.mark.parametrize(
    "needs", [(True, False, False, False), (False, True, False, False), (False, False, True, True)]
)
def test_attention_gradients_are_only_those_needed(needs: tuple[bool, ...]) -> None:
    compare((1, 2, 20, 30, 16, 16), "float32", mask=draw(20, 30, seed=9), needs=needs)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(
    "needs", [(True, False, False, False), (False, True, False, False), (False, False, True, False)]
)
def test_attention_gradients_of_long_rows_are_only_those_needed(
    needs: tuple[bool, ...], dtype: str
) -> None:
    compare((1, 2, 150, 170, 64, 64), dtype, needs=needs)


@pytest.mark.parametrize("dtype", HALVES)
def test_attention_with_negative_scale_matches_generic(dtype: str) -> None:
    compare((1, 2, 70, 80, 64, 64), dtype, scale=-0.2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("width", [64, 128])
def test_attention_in_sections_of_heads_matches_generic(
    width: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More heads than work at a time, and no whole number of sections."""
    from tensorflow_lite_clone.backends.cupy.tuning import tuning

    monkeypatch.setattr(tuning, "attention_l2_bytes", 1 << 20)
    compare((2, 9, 300, 280, width, width), dtype, causal=True, layout="heads")


@pytest.mark.parametrize("scale", [-0.3, 0.3])
def test_attention_of_other_ranks_broadcasts(scale: float) -> None:
    from tensorflow_lite_clone import backends

    shapes: list[list[tuple[int, ...]]] = [
        [(3, 5), (7, 5), (7, 3)],
        [(4, 70, 16), (4, 20, 16), (4, 20, 16)],
        [(2, 1, 9, 16), (1, 3, 8, 16), (8, 16)],
        [(2, 1, 90, 16), (1, 3, 80, 16), (80, 16)],
    ]
    for given in shapes:
        q, k, v = (on_device(draw(*shape, seed=i), "float32") for i, shape in enumerate(given))
        options: dict[str, Any] = {"scale": scale, "causal": False, "groups": 1}
        true = body("attention", backends.load("cpu"))(*map(exact, (q, k, v)), None, **options)
        mine = run_override("attention", [q, k, v, None], options)
        for x, t in zip(mine, true, strict=True):
            assert x.shape == t.shape
            np.testing.assert_allclose(x.get(), t, atol=1e-5)
        g = cupy.ones_like(mine[0])
        options["needs"] = (True, True, True, False)
        gradients = run_override("attention_backward", [g, q, k, v, None, *mine], options)
        true = body("attention_backward", backends.load("cpu"))(
            exact(g), *map(exact, (q, k, v)), None, *true, **options
        )
        for x, t in zip(gradients[:3], true[:3], strict=True):
            assert x.shape == t.shape
            np.testing.assert_allclose(x.get(), t, atol=1e-5)


# Sizes of queries and keys, of values, numbers of rows, and the error allowed.
MAGNITUDES = {
    "ordinary": (1.0, 1.0, 130, 2e-6),
    "many rows": (1.0, 1.0, 1100, 2e-6),
    # Of a logit of 80 about 1e-5 is rounding, and its weight is as uncertain as that.
    "large logits": (4.5, 1e4, 130, 2e-5),
    "large values": (1e-3, 1e30, 130, 2e-6),
    "tiny": (1e-12, 1e-12, 130, 2e-6),
}


def errors_of_single_precision(
    q: Any, k: Any, v: Any, g: Any, causal: bool, rows: slice = slice(None)
) -> dict[str, float]:
    """Norms of what out, lse and the gradients are off, of their own norm; of some rows alone."""
    from tensorflow_lite_clone import backends

    cpu = backends.load("cpu")
    q, k, v, g = (on_device(x, "float32") for x in (q, k, v, g))
    options: dict[str, Any] = {
        "scale": 1 / math.sqrt(q.shape[-1]), "causal": causal, "groups": 1,
    }  # fmt: skip
    mine = run_override("attention", [q, k, v, None], options)
    true = body("attention", cpu)(*map(exact, (q, k, v)), None, **options)
    options["needs"] = (True, True, True, False)
    mine += run_override("attention_backward", [g, q, k, v, None, *mine], options)[:3]
    true += body("attention_backward", cpu)(
        exact(g), *map(exact, (q, k, v)), None, *true, **options
    )[:3]
    found = {}
    for name, x, t in zip(("out", "lse", "gq", "gk", "gv"), mine, true, strict=True):
        wrong, right = (exact(x) - t)[:, :, rows], t[:, :, rows]
        found[name] = float(np.linalg.norm(wrong) / np.linalg.norm(right))
    return found


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("name", MAGNITUDES)
def test_attention_in_float32_matches_generic(name: str, width: int, causal: bool) -> None:
    """Products on tensor cores are as exact as single precision, and so are their long sums."""
    size, value_size, rows, allowed = MAGNITUDES[name]
    q, k, v, g = (draw(1, 2, rows, width, seed=i) for i in range(4))
    errors = errors_of_single_precision(q * size, k * size, v * value_size, g, causal)
    assert max(errors.values()) <= allowed, errors


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [64, 128])
def test_attention_in_float32_of_any_length_matches_generic(width: int, causal: bool) -> None:
    """Neighbouring rows 2^12 times as long as others, and a tile 2^30 times shorter than others."""
    rng = np.random.default_rng(7)
    q, k, v, g = (draw(1, 2, 330, width, seed=i) for i in range(4))
    v *= 2.0 ** rng.integers(-6, 7, (1, 2, 330, 1))
    g *= 2.0 ** rng.integers(-6, 7, (1, 2, 330, 1))
    g[:, :, 128:192] *= 2.0**-30
    errors = errors_of_single_precision(q, k, v, g, causal)
    assert max(errors.values()) <= 2e-6, errors
    of_short_rows = errors_of_single_precision(q, k, v, g, causal, slice(128, 192))
    assert of_short_rows["gq"] <= 4e-6, of_short_rows


@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_float32_of_zeros_is_zero(causal: bool) -> None:
    """No weight is NaN where scores are too small for single precision."""
    q, v, g = (draw(1, 2, 150, 64, seed=i) for i in range(3))
    errors = errors_of_single_precision(1e-40 * q, 1e-30 * q, v, g, causal)
    assert max(errors[name] for name in ("out", "lse", "gv")) <= 2e-6, errors


def test_attention_in_float32_keeps_nan_in_its_rows() -> None:
    """A row that is no number touches only what it is multiplied with."""
    q, k, v = (on_device(draw(1, 1, 200, 64, seed=i), "float32") for i in range(3))
    options: dict[str, Any] = {"scale": 0.125, "causal": True, "groups": 1}
    clean = run_override("attention", [q, k, v, None], options)
    q[0, 0, 70] = k[0, 0, 199] = np.nan
    v[0, 0, 198] = np.inf
    out, lse = run_override("attention", [q, k, v, None], options)
    assert bool(cupy.isnan(out[0, 0, 70]).all())
    assert bool(cupy.isnan(out[0, 0, 199]).all())
    others = [*range(70), *range(71, 128)]
    for x, y in ((out, clean[0]), (lse, clean[1])):
        np.testing.assert_allclose(x[0, 0, others].get(), y[0, 0, others].get(), atol=1e-6)


def test_attention_with_tf32_allowed_is_rounded() -> None:
    flags.matmul_allow_tf32 = True
    try:
        for causal in (False, True):
            for width in (32, 64, 96, 128):
                compare((1, 2, 130, 70, width, width), "float32", causal=causal, slack=2.0**14)
    finally:
        flags.matmul_allow_tf32 = False


@pytest.mark.parametrize("dtype", ALL)
def test_attention_called_twice_gives_the_same_bits(dtype: str) -> None:
    first, second = (compare((2, 3, 200, 210, 64, 64), dtype, causal=True) for _ in range(2))
    for x, y in zip(first[:5], second[:5], strict=True):
        assert bool((x.view(np.uint8) == y.view(np.uint8)).all())


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("variant", ["none", "causal", "keep", "add", "shared"])
@pytest.mark.parametrize("width", [32, 64, 128])
def test_attention_dropout_matches_its_mask(width: int, variant: str, dtype: str) -> None:
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.ops.nn import attention as module

    ops: Any = module
    cpu, p = backends.load("cpu"), 0.3
    b, h, rows, columns = 2, 2, 70, 45
    groups = 2 if variant == "shared" else 1
    q, g = (heads(draw(b, h, rows, width, seed=i), dtype, "heads") for i in (0, 3))
    k, v = (heads(draw(b, h // groups, columns, width, seed=i), dtype, "heads") for i in (1, 2))
    mask = masks(variant, b, h, rows, columns) if variant in ("keep", "add") else None
    m = None if mask is None else on_device(mask, dtype)
    causal = variant == "causal"
    options: dict[str, Any] = {"scale": 0.2, "causal": causal, "groups": groups, "p": p}
    out, lse, ticket = run_override("attention_dropout", [q, k, v, m], options)
    shape = (b, h // groups, groups, rows, columns) if groups > 1 else (b, h, rows, columns)
    noise = run_override("attention_noise", [ticket], {"shape": shape, "p": p})
    factors = noise.get().astype(np.float64)
    assert abs((factors > 0).mean() - (1 - p)) < 0.05
    np.testing.assert_allclose(factors[factors > 0], 1 / (1 - p), rtol=1e-6)
    options["needs"] = needs = (True, True, True, False)
    gradients = run_override(
        "attention_dropout_backward", [g, q, k, v, m, out, lse, ticket], options
    )
    wide = [exact(x) for x in (q, k, v, m)]
    drawn = ops._noise
    ops._noise = lambda *_: factors
    try:
        true = ops._forward(cpu.F, *wide, 0.2, variant == "causal", groups, p)[:2]
    finally:
        ops._noise = drawn
    true += ops._backward(
        cpu.F, exact(g), *wide, *true, factors, 0.2, variant == "causal", groups, needs, p
    )[:3]
    allowed = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 8e-2}[dtype]
    for x, t in zip((out, lse, *gradients[:3]), true, strict=True):
        finite = np.isfinite(t)
        assert np.abs(exact(x) - t)[finite].max() <= allowed * np.abs(t[finite]).max()


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_attention_second_gradients_match_generic(p: float) -> None:
    """Through the public function, against differences of first gradients."""
    attention = tlc.nn.functional.scaled_dot_product_attention
    values = [draw(1, 2, 9, 8, seed=i).astype(np.float32) for i in range(3)]
    *inputs, direction = [tlc.tensor(value, device="cuda") for value in values]

    def first(q: Any, create_graph: bool) -> Any:
        q = q.detach().requires_grad_()
        tlc.manual_seed(4)
        out = attention(q, inputs[1], inputs[1], dropout_p=p)
        return q, tlc.autograd.grad((out * out).sum(), q, create_graph=create_graph)[0]

    q, g = first(inputs[0], True)
    second: Any = tlc.autograd.grad((g * direction).sum(), q)[0]
    step = 1e-2
    ahead, behind = (first(inputs[0] + s * step * direction, False)[1] for s in (1, -1))
    expected = ((ahead - behind) / (2 * step)).cpu().numpy()
    np.testing.assert_allclose(second.cpu().numpy(), expected, atol=2e-3)


def test_attention_declines_unsupported_calls() -> None:
    q = on_device(draw(1, 1, 4, 8), "float64")
    options: dict[str, Any] = {"scale": 1.0, "causal": False, "groups": 1}
    assert run_override("attention", [q, q, q, None], options) is NotImplemented
    wide = on_device(draw(1, 1, 4, 136), "float32")
    assert run_override("attention", [wide, wide, wide, None], options) is NotImplemented
    empty = cupy.zeros((0, 1, 4, 8), np.float32)
    assert run_override("attention", [empty, empty, empty, None], options) is NotImplemented
