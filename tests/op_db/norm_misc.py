"""Rows of normalisation, embedding, dropout in evaluation, attention."""

# fmt: off
from __future__ import annotations

from math import inf

from tests.op_db._case import (
    POSITIVE,
    WIDE,
    OpInfo,
    async_error,
    booleans,
    constant,
    error,
    int64,
    integers,
    literal,
    sample,
    subgradient_sample,
    tensor,
)

HALVES = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1), "float32": (2e-5, 2e-5)}
WHY = "statistics of rounded numbers"
MEAN, VARIANCE = constant(3), constant(3, domain=POSITIVE)


def norm(name, *samples, **options):
    return OpInfo("F." + name, *samples, tolerances=HALVES, tolerance_reason=WHY, **options)


def batch_norm_training(torch, x, mean, variance, *args, **kw):
    """The result and the running statistics that it left."""
    mean, variance = mean.clone(), variance.clone()
    y = torch.nn.functional.batch_norm(x, mean, variance, *args, training=True, **kw)
    return y, mean, variance


def instance_norm_running(torch, x, mean, variance, **kw):
    mean, variance = mean.clone(), variance.clone()
    return torch.nn.functional.instance_norm(x, mean, variance, **kw), mean, variance


NORMS = [
    norm("batch_norm", sample(tensor(4, 3), MEAN, VARIANCE),
        sample(tensor(2, 3, 4), MEAN, VARIANCE, tensor(3), tensor(3)),
        sample(tensor(2, 3, 2, 2), MEAN, VARIANCE, tensor(3), tensor(3), False, 0.1, 1e-3),
        sample(tensor(2, 3, 2, 2, 2), MEAN, VARIANCE), sample(tensor(0, 3), MEAN, VARIANCE),
        sample(tensor(0), None, None), sample(tensor(0, 3), None, None, tensor(3), tensor(3), True),
        sample(tensor(0, 3), None, None), skip_undefined_behavior=("sizes",),
        errors=[error(tensor(4, 3), constant(2), constant(2)), error(tensor(4, 3), None, None),
        error(tensor(4, 3), MEAN, VARIANCE, tensor(2), tensor(2)),
        error(tensor(0, 3), None, None, None, None, True, 0.1, -1.0),
        error(tensor(4, 3), MEAN, VARIANCE, tensor(2), tensor(2), True, 0.1, 0.0)]),
    norm("batch_norm.training", sample(tensor(4, 3), MEAN, VARIANCE),
        sample(tensor(2, 3, 4), MEAN, VARIANCE, tensor(3), tensor(3)),
        sample(tensor(2, 3, 2, 2), MEAN, VARIANCE, tensor(3), tensor(3), momentum=0.3, eps=1e-3),
        sample(tensor(2, 3, 2, 2), MEAN, VARIANCE, momentum=0.0), call=batch_norm_training,
        errors=[error(tensor(1, 3), MEAN, VARIANCE)], check_third_order=False,
        skip_undefined_behavior=("sizes",)),
    norm("batch_norm.no_statistics", sample(tensor(4, 3)),
        sample(tensor(2, 3, 2, 2), tensor(3), tensor(3)),
        call=lambda torch, x, w=None, b=None: torch.nn.functional.batch_norm(x, None, None, w, b,
        True), errors=[error(tensor(1, 3))], skip_undefined_behavior=("sizes",)),
    norm("layer_norm", sample(tensor(3, 4), (4,)),
        sample(tensor(2, 3, 4), (3, 4), tensor(3, 4), tensor(3, 4)),
        sample(tensor(3, 4), [4], tensor(4)),
        sample(tensor(3, 4), (4,), tensor(4), tensor(4), 1e-2), sample(tensor(4), (4,)),
        sample(tensor(0, 4), (4,)), subgradient_sample(tensor(3, 4), (4,), None, tensor(4)),
        check_third_order=True, torch_grad_orders=2, errors=[error(tensor(3, 4), (3,)),
        error(tensor(3, 4), (4,), tensor(3)), error(tensor(3, 4), ())]),
    norm("group_norm", sample(tensor(2, 6, 3), 3),
        sample(tensor(2, 6, 2, 2), 2, tensor(6), tensor(6)), sample(tensor(2, 6), 1),
        sample(tensor(2, 6, 2), 6, tensor(6), tensor(6), 1e-2),
        sample(tensor(2, 6, 2), num_groups=2, weight=tensor(6)), skip_undefined_behavior=("sizes",),
        errors=[error(tensor(2, 6, 3), 4), error(tensor(2, 6, 3), 3, tensor(5))]),
    norm("instance_norm", sample(tensor(2, 3, 4)),
        sample(tensor(2, 3, 2, 3), weight=tensor(3), bias=tensor(3)),
        sample(tensor(2, 3, 4), eps=1e-2), sample(tensor(2, 3, 2, 2, 2)),
        skip_undefined_behavior=("empty",), errors=[error(tensor(2, 3, 1)),
        error(tensor(1, 1, 4), constant(2), constant(2)),
        error(tensor(2, 3, 4), weight=tensor(1))]),
    norm("instance_norm.running", sample(tensor(2, 3, 4), MEAN, VARIANCE),
        sample(tensor(2, 3, 2, 3), MEAN, VARIANCE, weight=tensor(3), bias=tensor(3), momentum=0.3),
        sample(tensor(2, 3, 4), MEAN, VARIANCE, use_input_stats=False),
        skip_undefined_behavior=("empty",), call=instance_norm_running),
    OpInfo("F.rms_norm.complex",
        sample(tensor(3, 4, dtype="complex128"), (4,), tensor(4, dtype="complex128")),
        dtypes=("float64",), check_layouts=False),
    norm("rms_norm", sample(tensor(3, 4), (4,)), sample(tensor(2, 3, 4), (3, 4), tensor(3, 4)),
        sample(tensor(3, 4), (4,), tensor(4), 1e-2), errors=[error(tensor(3, 4), (3,)),
        error(tensor(3, 4), (4,), tensor(3))]),
    norm("local_response_norm", sample(tensor(2, 5, 3), 3),
        sample(tensor(2, 5, 3, 2), 2, 1e-2, 0.5, 2.0), dtypes=WIDE,
        skip_undefined_behavior=("dtypes",), errors=[error(tensor(2, 5), 3)]),
    norm("normalize.matrix", sample(tensor(2, 3, 4), p=2, dim=(1, 2))),
]

EMBEDDING = [
    OpInfo("F.embedding", sample(integers(2, 3, high=5), tensor(5, 4)),
        sample(int64([1, 1, 0]), tensor(5, 4)), sample(int64(2), tensor(5, 4)),
        subgradient_sample(int64([]), tensor(5, 4)),
        sample(integers(3, high=5, dtype="int32"), tensor(5, 4)),
        sample(int64([1, 0, 1]), tensor(5, 4), scale_grad_by_freq=False),
        skip_undefined_behavior=("gradient",),  # PyTorch refuses the second one of no indices
        errors=[async_error(int64([5]), tensor(5, 4)), error(literal([0.5]), tensor(5, 4)),
        error(int64([0]), tensor(5, 4), padding_idx=7), async_error(int64([-1]), tensor(5, 4))]),
    OpInfo("F.embedding.padding",
        subgradient_sample(int64([1, 0, 2, 1]), tensor(5, 4), padding_idx=1),
        subgradient_sample(int64([1, 4]), tensor(5, 4), padding_idx=-1),
        subgradient_sample(int64([1, 0, 1, 1]), tensor(5, 4), scale_grad_by_freq=True),
        dtypes=WIDE),
    *(OpInfo(f"F.embedding_bag.{mode}", sample(integers(2, 3, high=5), tensor(5, 4), mode=mode),
        sample(int64([0, 2, 2, 4]), tensor(5, 4), int64([0, 3]), mode=mode),
        sample(int64([0, 2, 4]), tensor(5, 4), int64([0, 0, 2]), mode=mode),
        sample(int64([0, 2, 4]), tensor(5, 4), int64([0, 2, 3]), mode=mode,
        include_last_offset=True), dtypes=WIDE, torch_grad_orders=1, tolerances=HALVES,
        tolerance_reason=WHY, skip_undefined_behavior=("sizes",),
        errors=[error(int64([0, 2]), tensor(5, 4), mode=mode),
        error(int64([[0]]), tensor(5, 4), int64([0]), mode=mode)]) for mode
        in ("sum", "mean", "max")),
    OpInfo("F.embedding_bag.weights",
        sample(integers(2, 3, high=5), tensor(5, 4), per_sample_weights=tensor(2, 3), mode="sum"),
        dtypes=WIDE, torch_grad_orders=1, skip_undefined_behavior=("sizes",)),
    OpInfo("F.one_hot", sample(int64([0, 2, 1])), sample(int64([[0, 1], [2, 0]]), 4),
        sample(int64(1), 3), sample(int64([]), 3), supports_autograd=False,
        errors=[error(int64([3]), 3), error(int64([-1]), 3), error(literal([1.0]), 3),
        error(int64([]))]),
]

INACTIVE_DROPOUT = [
    *(OpInfo(f"F.{name}.eval", sample(tensor(2, 3, 4), 0.5, False),
        sample(tensor(2, 3, 4), p=0.0, training=True),
        call=lambda torch, x, *args, name=name, **kw: getattr(torch.nn.functional, name)(x, *args,
        **kw), errors=[error(tensor(2, 3, 4), 1.5),
        error(tensor(2, 3, 4), -0.1)]) for name
        in ("dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout")),
    OpInfo("F.dropout2d.eval", sample(tensor(2, 3, 4, 2), 0.5, False), dtypes=WIDE),
    OpInfo("F.dropout3d.eval", sample(tensor(2, 3, 2, 2, 2), 0.5, False), dtypes=WIDE),
    OpInfo("F.dropout.all", sample(tensor(3, 4), 1.0, True), dtypes=WIDE),
    OpInfo("dropout.eval", sample(tensor(3, 4), 0.5, False), dtypes=WIDE),
]

Q, K, W = tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 6)
HEADS = (tensor(2, 2, 3, 4), tensor(2, 2, 3, 4), tensor(2, 2, 3, 4))
CROSS = (tensor(2, 3, 3, 4), tensor(2, 3, 5, 4), tensor(2, 3, 5, 6))
SHARED = (tensor(2, 4, 3, 4), tensor(2, 2, 5, 4), tensor(2, 2, 5, 6))
LONG = (tensor(2, 2, 48, 3), tensor(2, 2, 50, 3), tensor(2, 2, 50, 2))
MASK = literal([[True, False, True, True, False], [True, True, True, True, True],
    [False, True, False, False, False]], dtype="bool")
CLOSED = [[0.0, 1.0, -inf, 0.5, 0.0], [-inf] * 5, [0.0] * 5]
NOTHING = literal([[value == 0 for value in row] for row in CLOSED], dtype="bool",
    requires_grad=False)


def attention(torch, *args, **kw):
    """PyTorch's fused kernels have no second derivative: its plain one is the oracle."""
    backend = getattr(torch.nn, "attention", None)
    if torch.__name__ != "torch":
        return torch.nn.functional.scaled_dot_product_attention(*args, **kw)
    with backend.sdpa_kernel(backend.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(*args, **kw)


ATTENTION = [
    OpInfo("F.scaled_dot_product_attention.blocks", subgradient_sample(*LONG),
        subgradient_sample(*LONG, is_causal=True), subgradient_sample(*LONG, booleans(48, 50)),
        subgradient_sample(*LONG, constant(2, 1, 1, 50)),
        subgradient_sample(tensor(1, 4, 48, 3), tensor(1, 2, 50, 3), tensor(1, 2, 50, 3),
        enable_gqa=True), call=attention, dtypes=WIDE, supports_gradgrad="as in smaller samples",
        skip_undefined_behavior=("sizes",)),
    OpInfo("F.scaled_dot_product_attention", sample(Q, K, W), sample(*HEADS),
        sample(*HEADS, is_causal=True), sample(Q, K, W, MASK),
        sample(Q, K, W, attn_mask=tensor(3, 5)), sample(Q, K, W, tensor(2, 1, 5)),
        sample(Q, K, W, scale=0.3), sample(tensor(3, 4), tensor(5, 4), tensor(5, 4)),
        sample(tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 4), is_causal=True),
        sample(tensor(2, 4, 3, 4), tensor(2, 2, 5, 4), tensor(2, 2, 5, 4), enable_gqa=True),
        sample(Q, K, W, dropout_p=0.0), sample(Q, K, W, NOTHING),
        sample(Q, K, W, literal(CLOSED, requires_grad=False)), call=attention, tolerances=HALVES,
        tolerance_reason=WHY, check_third_order=True, skip_undefined_behavior=("sizes",),
        errors=[error(Q, K, W, MASK, is_causal=True), error(Q, tensor(2, 5, 3), W),
        error(Q, K, tensor(2, 4, 4)), error(Q, K, W, tensor(2, 2)),
        error(Q, K, W, tensor(7, 2, 3, 5)), error(tensor(4), tensor(4), tensor(4)),
        error(tensor(2, 4, 3, 4), tensor(2, 3, 5, 4), tensor(2, 3, 5, 4), enable_gqa=True)]),
    OpInfo("F.scaled_dot_product_attention.shapes",
        sample(tensor(2, 5, 4), tensor(2, 3, 4), tensor(2, 3, 2), is_causal=True),
        sample(*CROSS, booleans(2, 1, 1, 5)), sample(*CROSS, tensor(3, 3, 5)),
        sample(*CROSS, tensor(5)),
        sample(tensor(2, 1, 3, 4), tensor(1, 2, 5, 4), tensor(5, 4), scale=-0.4),
        sample(*SHARED, enable_gqa=True, is_causal=True),
        sample(*SHARED, tensor(4, 3, 5), enable_gqa=True),
        sample(*SHARED, booleans(3, 5), enable_gqa=True),
        sample(tensor(2, 4, 3, 4), tensor(2, 2, 5, 4), tensor(2, 1, 5, 4), tensor(2, 1, 3, 5),
        enable_gqa=True), sample(*CROSS, dropout_p=1.0), call=attention, dtypes=WIDE,
        skip_undefined_behavior=("sizes",)),
]

OPS = NORMS + EMBEDDING + INACTIVE_DROPOUT + ATTENTION
