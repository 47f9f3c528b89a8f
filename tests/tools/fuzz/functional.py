"""`nn.functional` with random sizes and keyword arguments: results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.op_db import OPS
from tests.op_db._check import flatten
from tests.op_db._device import Side
from tests.tools.fuzz.drawing import Drawn, one_of, tensor
from tests.tools.fuzz.judging import dtype_tolerance
from tests.tools.fuzz.plain import PlainCall, Random

ROWS = {op.name: op for op in OPS}
Options = dict[str, Any]


def some(rng: Random, **choices: Any) -> Options:
    """A random part of the options, each with one of its choices."""
    return {name: one_of(rng, of) for name, of in choices.items() if rng.random() < 0.5}


def x(rng: Random, *shape: int) -> Drawn:
    return tensor(rng, shape, "float64", grad=rng.random() < 0.8)


def size(rng: Random, low: int = 1, high: int = 6) -> int:
    return int(rng.integers(low, high))


def per_dim(rng: Random, dims: int, low: int, high: int) -> Any:
    """One number, or one for each dimension."""
    if rng.random() < 0.6:
        return size(rng, low, high)
    return tuple(size(rng, low, high) for _ in range(dims))


def classes(rng: Random, shape: tuple[int, ...], count: int) -> Drawn:
    low = -1 if rng.random() < 0.03 else 0
    return Drawn(rng.integers(low, max(count, 1), shape), "int64")


def convolution(rng: Random, dims: int, transposed: bool) -> tuple[list[Any], Options]:
    groups = 2 if rng.random() < 0.2 else 1
    inner, outer = groups * size(rng, 1, 3), groups * size(rng, 1, 3)
    batch = [] if rng.random() < 0.15 else [size(rng, 0, 3)]
    spatial = [size(rng, 2, 7) for _ in range(dims)]
    kernel = [size(rng, 1, 4) for _ in range(dims)]
    weight = [inner, outer // groups] if transposed else [outer, inner // groups]
    arguments = [x(rng, *batch, inner, *spatial), x(rng, *weight, *kernel)]
    options: Options = {"groups": groups}
    if rng.random() < 0.5:
        options["bias"] = x(rng, outer)
    if rng.random() < 0.5:
        options["stride"] = per_dim(rng, dims, 0 if rng.random() < 0.05 else 1, 4)
    if rng.random() < 0.5:
        options["padding"] = per_dim(rng, dims, -1 if rng.random() < 0.05 else 0, 3)
        if not transposed and rng.random() < 0.2:
            options["padding"] = one_of(rng, ["same", "valid", "wrong"])
    if rng.random() < 0.4:
        options["dilation"] = per_dim(rng, dims, 1, 3)
    if transposed and rng.random() < 0.4:
        options["output_padding"] = per_dim(rng, dims, 0, 2)
    return arguments, options


def pool(rng: Random, dims: int, kind: str) -> tuple[list[Any], Options]:
    lead = [size(rng, 1, 3) for _ in range(int(rng.integers(1, 3)))]
    arguments: list[Any] = [x(rng, *lead, *(size(rng, 1, 8) for _ in range(dims)))]
    if kind == "adaptive":
        return [*arguments, per_dim(rng, dims, 0, 5)], {}
    if kind == "lp":
        norm = float(one_of(rng, [1, 2, 3]))
        # Of one dimension PyTorch takes a number only.
        kernel = per_dim(rng, dims, 1, 4) if dims > 1 else size(rng, 1, 4)
        return [*arguments, norm, kernel], some(rng, stride=(1, 2, 3), ceil_mode=(True, False))
    options = some(rng, stride=(1, 2, 3), padding=(0, 1, 2), ceil_mode=(True, False))
    if kind == "max":
        options |= some(rng, dilation=(1, 2), return_indices=(True, False))
    else:
        options |= some(rng, count_include_pad=(True, False))
        options |= some(rng, divisor_override=(1, 3, 0)) if dims > 1 else {}
    return [*arguments, per_dim(rng, dims, 1, 4)], options


def padded(rng: Random) -> tuple[list[Any], Options]:
    dims = size(rng, 1, 4)
    mode = one_of(rng, ["constant", "reflect", "replicate", "circular"])
    lead = [size(rng, 0, 3) for _ in range(int(rng.integers(1, 3)))]
    count = 2 * dims if rng.random() < 0.9 else 2 * dims + 2 * size(rng, 0, 2) - 1
    low = 0 if mode == "circular" else -2  # PyTorch's has random values then
    pads = [int(rng.integers(low, 4)) for _ in range(count)]
    options: Options = {"mode": mode}
    if mode == "constant":
        options |= some(rng, value=(0, 1.5, -2))
    return [x(rng, *lead, *(size(rng, 1, 6) for _ in range(dims))), pads], options


def interpolated(rng: Random) -> tuple[list[Any], Options]:
    dims = size(rng, 1, 4)
    modes = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[dims]
    mode = one_of(rng, ["nearest", "nearest-exact", "area", *modes])
    options: Options = {"mode": mode}
    if rng.random() < 0.5:
        options["size"] = per_dim(rng, dims, 1, 7)
    else:
        options["scale_factor"] = one_of(rng, [0.5, 1.5, 2, 2.5, 3.0])
        options |= some(rng, recompute_scale_factor=(True, False))
    if mode in modes or rng.random() < 0.05:
        options |= some(rng, align_corners=(True, False))
        options |= some(rng, antialias=(True, False)) if dims == 2 else {}
    return [x(rng, size(rng, 1, 3), size(rng, 1, 3), *(size(rng) for _ in range(dims)))], options


def loss(rng: Random, name: str) -> tuple[list[Any], Options]:
    shape = [size(rng, 0 if rng.random() < 0.1 else 1, 5) for _ in range(int(rng.integers(0, 3)))]
    options = some(rng, reduction=("none", "mean", "sum", "mean", "wrong")[: 5 if shape else 4])
    given = x(rng, *shape)
    target: Any = x(rng, *shape)
    if name == "huber_loss":
        options |= some(rng, delta=(0.5, 2.0, 1))
    elif name == "smooth_l1_loss":
        options |= some(rng, beta=(0.5, 2.0, 0.0))
    elif name == "kl_div":
        target = tensor(rng, tuple(shape), "float64")
        target = Drawn(np.abs(target.array) + 0.1, "float64", target.layout)
        options |= some(rng, log_target=(True, False))
    elif name in ("soft_margin_loss", "hinge_embedding_loss"):
        signs = np.where(rng.random(shape) < 0.5, -1.0, 1.0)
        target = Drawn(np.asarray(signs), "float64")
        options |= some(rng, margin=(0.5, 2.0)) if name == "hinge_embedding_loss" else {}
    elif name == "poisson_nll_loss":
        target = Drawn(np.abs(tensor(rng, tuple(shape), "float64").array), "float64")
        options |= some(rng, log_input=(True,), full=(True, False), eps=(1e-6, 1e-2))
    elif name == "binary_cross_entropy_with_logits":
        target = Drawn(np.asarray(rng.random(shape)), "float64")
        options |= {"weight": x(rng, *shape)} if rng.random() < 0.3 else {}
        options |= {"pos_weight": x(rng, *shape[-1:])} if rng.random() < 0.3 else {}
    return [given, target], options


def class_loss(rng: Random, name: str) -> tuple[list[Any], Options]:
    count = size(rng, 1, 5)
    batch = [] if rng.random() < 0.2 else [size(rng, 1, 4)]
    rest = [] if name in ("multi_margin_loss",) or not batch else [2] * int(rng.integers(3))
    options = some(rng, reduction=("none", "mean", "sum"))
    target = classes(rng, (*batch, *rest), count)
    if rng.random() < 0.3:
        options["weight"] = tensor(rng, (count,), "float64")
    if name == "multi_margin_loss":
        options |= some(rng, p=(1, 2), margin=(0.5, 2.0))
    else:
        options |= some(rng, ignore_index=(-100, 0, 1))
    if name == "cross_entropy":
        options |= some(rng, label_smoothing=(0.0, 0.2, 1.0))
        if rng.random() < 0.2:
            options.pop("ignore_index", None)
            target = Drawn(rng.random((*batch, count, *rest)), "float64")
    return [x(rng, *batch, count, *rest), target], options


def norm(rng: Random, name: str) -> tuple[list[Any], Options]:
    channels = 2 * size(rng, 1, 3)
    spatial = [size(rng, 1, 4) for _ in range(int(rng.integers(0, 3)))]
    given = x(rng, size(rng, 1, 4), channels, *spatial)
    scale = {}
    if rng.random() < 0.5:
        scale = {"weight": x(rng, channels), "bias": x(rng, channels)}
        if name == "batch_norm":  # PyTorch reads beyond what has gaps
            scale = {key: Drawn(v.array, v.dtype, 0, v.grad) for key, v in scale.items()}
    if name == "group_norm":
        return [given, one_of(rng, [1, 2, channels, 3])], scale | some(rng, eps=(1e-5, 1e-2))
    if name == "layer_norm":
        return [given, list((channels, *spatial)[-size(rng, 1, 3) :])], some(rng, eps=(1e-5, 1e-2))
    if name == "rms_norm":
        return [given, list((channels, *spatial)[-1:])], some(rng, eps=(1e-5, 1e-2))
    if name == "instance_norm":
        return [given], scale | some(rng, eps=(1e-5, 1e-2))
    if name == "local_response_norm":
        return [given, size(rng, 1, 4)], some(rng, alpha=(1e-4, 0.5), beta=(0.75, 2.0), k=(1.0, 2))
    # PyTorch's gradients in evaluation are wrong where the layouts of input and result differ.
    given = Drawn(given.array, "float64", 0, given.grad)
    mean, var = (Drawn(tensor(rng, (channels,), "float64").array, "float64") for _ in range(2))
    var = Drawn(np.abs(var.array) + 0.2, "float64")
    return [given, mean, var], scale | some(
        rng, training=(True, False), momentum=(0.1, 0.5, None), eps=(1e-5, 1e-2)
    )


def along(rng: Random, name: str) -> tuple[list[Any], Options]:
    shape = [size(rng, 1, 5) for _ in range(int(rng.integers(0, 4)))]
    dim = int(rng.integers(-len(shape) - 1, len(shape) + 1))
    if name == "normalize":
        return [x(rng, *shape)], some(rng, p=(1, 2.0, 3), eps=(1e-12, 0.5)) | {"dim": dim}
    if name == "glu":
        return [x(rng, *shape)], some(rng, dim=(dim,))
    return [x(rng, *shape)], {"dim": dim}


def activation(rng: Random, name: str) -> tuple[list[Any], Options]:
    shape = [size(rng, 0, 5) for _ in range(int(rng.integers(0, 4)))]
    options: Options = {
        "elu": {"alpha": (0.5, 2, -1.0)}, "celu": {"alpha": (0.5, 2)}, "selu": {},
        "leaky_relu": {"negative_slope": (0.2, 0, -0.5)}, "gelu": {"approximate": ("tanh", "none")},
        "softplus": {"beta": (0.5, 3), "threshold": (1, 20)},
        "hardtanh": {"min_val": (-2, -0.5), "max_val": (0.5, 3)},
        "softshrink": {"lambd": (0.2, 1, -1)}, "hardshrink": {"lambd": (0.2, 1)},
    }  # fmt: skip
    return [x(rng, *shape)], some(rng, **options.get(name, {}))


def folds(rng: Random, name: str) -> tuple[list[Any], Options]:
    options = some(rng, dilation=(1, 2), padding=(0, 1), stride=(1, 2))
    kernel = [size(rng, 1, 4), size(rng, 1, 4)]
    sizes = [size(rng, 2, 7), size(rng, 2, 7)]
    batch = [] if rng.random() < 0.2 else [size(rng, 1, 3)]
    if name == "unfold":
        return [x(rng, *batch, size(rng, 1, 3), *sizes), kernel], options
    dilation, pad = options.get("dilation", 1), options.get("padding", 0)
    stride = options.get("stride", 1)
    blocks = [
        (whole + 2 * pad - dilation * (k - 1) - 1) // stride + 1
        for whole, k in zip(sizes, kernel, strict=True)
    ]
    columns = max(blocks[0], 0) * max(blocks[1], 0) + (rng.random() < 0.1)
    rows = size(rng, 1, 3) * kernel[0] * kernel[1]
    return [x(rng, *batch, rows, columns), sizes, kernel], options


def sampled(rng: Random) -> tuple[list[Any], Options]:
    dims = size(rng, 2, 4)
    batch = size(rng, 1, 3)
    given = x(rng, batch, size(rng, 1, 3), *(size(rng, 1, 5) for _ in range(dims)))
    shape = (batch, *(size(rng, 1, 4) for _ in range(dims)), dims)
    grid = Drawn(rng.uniform(-1.4, 1.4, shape), "float64", grad=bool(rng.integers(2)))
    return [given, grid], some(
        rng,
        mode=("bilinear", "nearest", *(["bicubic"] if dims == 2 else [])),
        padding_mode=("zeros", "border", "reflection"),
        align_corners=(True, False),
    )


def embedded(rng: Random, name: str) -> tuple[list[Any], Options]:
    rows = size(rng, 1, 6)
    if name == "one_hot":
        shape = tuple(size(rng, 0, 4) for _ in range(int(rng.integers(0, 3))))
        return [classes(rng, shape, rows)], some(rng, num_classes=(-1, rows, rows + 2, 1))
    weight = x(rng, rows, size(rng, 1, 4))
    if name == "embedding":
        shape = tuple(size(rng, 0, 4) for _ in range(int(rng.integers(0, 3))))
        options = some(rng, padding_idx=(0, -1, rows), scale_grad_by_freq=(True, False))
        return [classes(rng, shape, rows), weight], options
    options = some(rng, mode=("sum", "mean", "max"), padding_idx=(0, -1))
    options |= some(rng, include_last_offset=(True, False))
    count = size(rng, 1, 6)
    # PyTorch crashes where the only offset is the last one.
    last = bool(options.get("include_last_offset"))
    offsets = np.sort(rng.integers(0, count + 1, size(rng, 1 + last, 4)))
    offsets[0] = 0
    if last:
        offsets[-1] = count
    return [classes(rng, (count,), rows), weight, Drawn(offsets, "int64")], options


def pairs(rng: Random, name: str) -> tuple[list[Any], Options]:
    shape = [size(rng, 1, 4) for _ in range(int(rng.integers(1, 3)))]
    if name == "cosine_similarity":
        return [x(rng, *shape), x(rng, *shape)], some(rng, dim=(0, -1), eps=(1e-8, 1.0))
    if name == "pairwise_distance":
        options = some(rng, p=(1.0, 2.0, 3.0), keepdim=(True, False), eps=(1e-6, 0.1))
        return [x(rng, *shape), x(rng, *shape)], options
    if name == "bilinear":
        left, right, out = (size(rng, 1, 4) for _ in range(3))
        return [x(rng, *shape, left), x(rng, *shape, right), x(rng, out, left, right)], {}
    if name == "linear":
        bias = [x(rng, 3)] if rng.random() < 0.5 else []
        return [x(rng, *shape), x(rng, 3, shape[-1]), *bias], {}
    if name == "pdist":
        # PyTorch crashes on the gradient of no rows.
        return [x(rng, size(rng, 1, 5), size(rng, 1, 4))], some(rng, p=(0.5, 1.0, 2.0, 3.0))
    if name == "triplet_margin_loss":
        options = some(rng, margin=(0.5, 2.0), p=(1, 2.0), swap=(True, False), reduction=("none",))
        return [x(rng, *shape), x(rng, *shape), x(rng, *shape)], options
    signs = np.where(rng.random(shape[:1]) < 0.5, -1.0, 1.0)
    if name == "margin_ranking_loss":
        both = [x(rng, *shape[:1]), x(rng, *shape[:1])]
    else:
        both = [x(rng, shape[0], 3), x(rng, shape[0], 3)]
    options = some(rng, margin=(0.1, 0.5), reduction=("none", "sum", "mean"))
    return [*both, Drawn(signs, "float64")], options


def attention(rng: Random) -> tuple[list[Any], Options]:
    lead = [size(rng, 1, 3) for _ in range(int(rng.integers(1, 3)))]
    queries, keys, width, out = (size(rng, 1, 5) for _ in range(4))
    options = some(rng, is_causal=(True, False), scale=(0.3, 1.0))
    if not options.get("is_causal") and rng.random() < 0.5:
        mask = rng.random((queries, keys)) < 0.8
        options["attn_mask"] = (
            Drawn(mask, "bool") if rng.random() < 0.5 else tensor(rng, mask.shape, "float64")
        )
    shapes = ((queries, width), (keys, width), (keys, out))
    return [x(rng, *lead, *shape) for shape in shapes], options


def shuffled(rng: Random, name: str) -> tuple[list[Any], Options]:
    factor, height, width = (size(rng, 1, 4) for _ in range(3))
    if name == "pixel_shuffle":
        channels = factor**2 * size(rng, 1, 3) + (rng.random() < 0.05)
        return [x(rng, size(rng, 1, 3), channels, height, width), factor], {}
    if name == "pixel_unshuffle":
        return [x(rng, size(rng, 1, 3), 2, factor * height, factor * width), factor], {}
    return [x(rng, 1, factor * 2, height, width), one_of(rng, [1, 2, factor, 5])], {}


def _with(function: Callable[..., Any], *arguments: Any) -> Callable[[Random], Any]:
    return lambda rng: function(rng, *arguments)


MAKERS: dict[str, Callable[[Random], tuple[list[Any], Options]]] = {
    **{f"conv{n}d": _with(convolution, n, False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _with(convolution, n, True) for n in (1, 2, 3)},
    **{f"{kind}_pool{n}d": _with(pool, n, kind)
        for n in (1, 2, 3) for kind in ("max", "avg", "lp")},
    **{f"adaptive_{kind}_pool{n}d": _with(pool, n, "adaptive")
        for n in (1, 2, 3) for kind in ("avg", "max")},
    "pad": padded, "interpolate": interpolated, "grid_sample": sampled,
    "scaled_dot_product_attention": attention,
    **{name: _with(loss, name) for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss",
        "kl_div", "soft_margin_loss", "hinge_embedding_loss", "poisson_nll_loss",
        "binary_cross_entropy_with_logits")},
    **{name: _with(class_loss, name)
        for name in ("cross_entropy", "nll_loss", "multi_margin_loss")},
    **{name: _with(norm, name) for name in ("batch_norm", "group_norm", "layer_norm", "rms_norm",
        "instance_norm", "local_response_norm")},
    **{name: _with(along, name)
        for name in ("softmax", "log_softmax", "softmin", "normalize", "glu")},
    **{name: _with(activation, name) for name in ("elu", "celu", "selu", "leaky_relu", "gelu",
        "softplus", "hardtanh", "softshrink", "hardshrink", "relu", "relu6", "silu", "mish",
        "hardswish", "hardsigmoid", "logsigmoid", "tanhshrink", "softsign")},
    **{name: _with(folds, name) for name in ("fold", "unfold")},
    **{name: _with(embedded, name) for name in ("one_hot", "embedding", "embedding_bag")},
    **{name: _with(pairs, name) for name in ("cosine_similarity", "pairwise_distance", "bilinear",
        "linear", "pdist", "triplet_margin_loss", "margin_ranking_loss", "cosine_embedding_loss")},
    **{name: _with(shuffled, name) for name in ("pixel_shuffle", "pixel_unshuffle",
        "channel_shuffle")},
}  # fmt: skip


class Functional(PlainCall):
    """A function of nn.functional in double precision, and its gradients."""

    def __init__(self, rng: Random) -> None:
        name = one_of(rng, list(MAKERS))
        arguments, options = MAKERS[name](rng)
        super().__init__(name, *arguments, **options)

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """That of the function's row; gradients are sums of products, as in `Trial.compare`."""
        row = ROWS.get(f"F.{self.name}")
        relative, absolute = row.tolerance(dtype) if row else dtype_tolerance(dtype)
        return 10 * relative, 10 * absolute

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        results = getattr(side.module.nn.functional, self.name)(*arguments, **options)
        inputs = [
            a for a in (*arguments, *options.values())
            if side.is_tensor(a) and a.requires_grad
        ]  # fmt: skip
        for result in flatten(results):
            if side.is_tensor(result) and result.requires_grad:
                weights = np.cos(np.arange(result.numel())).reshape(tuple(result.shape))
                result.backward(side.tensor(weights, "float64"), retain_graph=True)
        return results, [a.grad for a in inputs]
