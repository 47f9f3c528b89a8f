"""Rows of normalisation, embedding, dropout in evaluation, attention."""

# fmt: off
from __future__ import annotations

from math import inf

from tests.op_db._case import POSITIVE, V64, WIDE, B, C, E, Kink, N, Op, S, T, Told, V

HALVES = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1), "float32": (2e-5, 2e-5)}
WHY = "statistics of rounded numbers"
MEAN, VARIANCE = C(3), C(3, of=POSITIVE)


def norm(name, *samples, **options):
    return Op("F." + name, *samples, tol=HALVES, why=WHY, **options)


def batch_norm_training(torch, x, mean, variance, *args, **kw):
    """The result and the running statistics that it left."""
    mean, variance = mean.clone(), variance.clone()
    y = torch.nn.functional.batch_norm(x, mean, variance, *args, training=True, **kw)
    return y, mean, variance


def instance_norm_running(torch, x, mean, variance, **kw):
    mean, variance = mean.clone(), variance.clone()
    return torch.nn.functional.instance_norm(x, mean, variance, **kw), mean, variance


NORMS = [
    norm("batch_norm", S(T(4, 3), MEAN, VARIANCE), S(T(2, 3, 4), MEAN, VARIANCE, T(3), T(3)),
        S(T(2, 3, 2, 2), MEAN, VARIANCE, T(3), T(3), False, 0.1, 1e-3),
        S(T(2, 3, 2, 2, 2), MEAN, VARIANCE), S(T(0, 3), MEAN, VARIANCE), S(T(0), None, None),
        S(T(0, 3), None, None, T(3), T(3), True), S(T(0, 3), None, None),
        accidents=("sizes",), errors=[E(T(4, 3), C(2), C(2)), E(T(4, 3), None, None),
        E(T(4, 3), MEAN, VARIANCE, T(2), T(2)), E(T(0, 3), None, None, None, None, True, 0.1, -1.0),
        E(T(4, 3), MEAN, VARIANCE, T(2), T(2), True, 0.1, 0.0)]),
    norm("batch_norm.training", S(T(4, 3), MEAN, VARIANCE), S(T(2, 3, 4), MEAN, VARIANCE, T(3),
        T(3)), S(T(2, 3, 2, 2), MEAN, VARIANCE, T(3), T(3), momentum=0.3, eps=1e-3),
        S(T(2, 3, 2, 2), MEAN, VARIANCE, momentum=0.0), call=batch_norm_training,
        errors=[E(T(1, 3), MEAN, VARIANCE)], order3=False, accidents=("sizes",)),
    norm("batch_norm.no_statistics", S(T(4, 3)), S(T(2, 3, 2, 2), T(3), T(3)),
        call=lambda torch, x, w=None, b=None: torch.nn.functional.batch_norm(x, None, None, w, b,
        True), errors=[E(T(1, 3))], accidents=("sizes",)),
    norm("layer_norm", S(T(3, 4), (4,)), S(T(2, 3, 4), (3, 4), T(3, 4), T(3, 4)),
        S(T(3, 4), [4], T(4)), S(T(3, 4), (4,), T(4), T(4), 1e-2), S(T(4), (4,)), S(T(0, 4), (4,)),
        Kink(T(3, 4), (4,), None, T(4)), order3=True, torch_orders=2,
        errors=[E(T(3, 4), (3,)), E(T(3, 4), (4,), T(3)), E(T(3, 4), ())]),
    norm("group_norm", S(T(2, 6, 3), 3), S(T(2, 6, 2, 2), 2, T(6), T(6)), S(T(2, 6), 1),
        S(T(2, 6, 2), 6, T(6), T(6), 1e-2), S(T(2, 6, 2), num_groups=2, weight=T(6)),
        accidents=("sizes",), errors=[E(T(2, 6, 3), 4), E(T(2, 6, 3), 3, T(5))]),
    norm("instance_norm", S(T(2, 3, 4)), S(T(2, 3, 2, 3), weight=T(3), bias=T(3)),
        S(T(2, 3, 4), eps=1e-2), S(T(2, 3, 2, 2, 2)), accidents=("empty",), errors=[E(T(2, 3, 1)),
        E(T(1, 1, 4), C(2), C(2)), E(T(2, 3, 4), weight=T(1))]),
    norm("instance_norm.running", S(T(2, 3, 4), MEAN, VARIANCE),
        S(T(2, 3, 2, 3), MEAN, VARIANCE, weight=T(3), bias=T(3), momentum=0.3),
        S(T(2, 3, 4), MEAN, VARIANCE, use_input_stats=False), accidents=("empty",),
        call=instance_norm_running),
    Op("F.rms_norm.complex", S(T(3, 4, dtype="complex128"), (4,), T(4, dtype="complex128")),
        dtypes=("float64",), layout=False),
    norm("rms_norm", S(T(3, 4), (4,)), S(T(2, 3, 4), (3, 4), T(3, 4)), S(T(3, 4), (4,), T(4), 1e-2),
        errors=[E(T(3, 4), (3,)), E(T(3, 4), (4,), T(3))]),
    norm("local_response_norm", S(T(2, 5, 3), 3), S(T(2, 5, 3, 2), 2, 1e-2, 0.5, 2.0), dtypes=WIDE,
        accidents=("dtypes",),
        errors=[E(T(2, 5), 3)]),
    norm("normalize.matrix", S(T(2, 3, 4), p=2, dim=(1, 2))),
]

EMBEDDING = [
    Op("F.embedding", S(N(2, 3, high=5), T(5, 4)), S(V64([1, 1, 0]), T(5, 4)), S(V64(2), T(5, 4)),
        Kink(V64([]), T(5, 4)), S(N(3, high=5, dtype="int32"), T(5, 4)),
        S(V64([1, 0, 1]), T(5, 4), scale_grad_by_freq=False),
        accidents=("gradient",),  # PyTorch refuses the second one of no indices
        errors=[Told(V64([5]), T(5, 4)), E(V([0.5]), T(5, 4)),
        E(V64([0]), T(5, 4), padding_idx=7), Told(V64([-1]), T(5, 4))]),
    Op("F.embedding.padding", Kink(V64([1, 0, 2, 1]), T(5, 4), padding_idx=1),
        Kink(V64([1, 4]), T(5, 4), padding_idx=-1), Kink(V64([1, 0, 1, 1]), T(5, 4),
        scale_grad_by_freq=True), dtypes=WIDE),
    *(Op(f"F.embedding_bag.{mode}", S(N(2, 3, high=5), T(5, 4), mode=mode),
        S(V64([0, 2, 2, 4]), T(5, 4), V64([0, 3]), mode=mode),
        S(V64([0, 2, 4]), T(5, 4), V64([0, 0, 2]), mode=mode),
        S(V64([0, 2, 4]), T(5, 4), V64([0, 2, 3]), mode=mode, include_last_offset=True),
        dtypes=WIDE, torch_orders=1, tol=HALVES, why=WHY, accidents=("sizes",),
        errors=[E(V64([0, 2]), T(5, 4), mode=mode), E(V64([[0]]), T(5, 4), V64([0]), mode=mode)])
        for mode in ("sum", "mean", "max")),
    Op("F.embedding_bag.weights", S(N(2, 3, high=5), T(5, 4), per_sample_weights=T(2, 3),
        mode="sum"), dtypes=WIDE, torch_orders=1, accidents=("sizes",)),
    Op("F.one_hot", S(V64([0, 2, 1])), S(V64([[0, 1], [2, 0]]), 4), S(V64(1), 3), S(V64([]), 3),
        grad=False, errors=[E(V64([3]), 3), E(V64([-1]), 3), E(V([1.0]), 3),
        E(V64([]))]),
]

KEEPING = [
    *(Op(f"F.{name}.eval", S(T(2, 3, 4), 0.5, False), S(T(2, 3, 4), p=0.0, training=True),
        call=lambda torch, x, *args, name=name, **kw: getattr(torch.nn.functional, name)(x, *args,
        **kw), errors=[E(T(2, 3, 4), 1.5), E(T(2, 3, 4), -0.1)])
        for name in ("dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout")),
    Op("F.dropout2d.eval", S(T(2, 3, 4, 2), 0.5, False), dtypes=WIDE),
    Op("F.dropout3d.eval", S(T(2, 3, 2, 2, 2), 0.5, False), dtypes=WIDE),
    Op("F.dropout.all", S(T(3, 4), 1.0, True), dtypes=WIDE),
    Op("dropout.eval", S(T(3, 4), 0.5, False), dtypes=WIDE),
]

Q, K, W = T(2, 3, 4), T(2, 5, 4), T(2, 5, 6)
HEADS = (T(2, 2, 3, 4), T(2, 2, 3, 4), T(2, 2, 3, 4))
CROSS = (T(2, 3, 3, 4), T(2, 3, 5, 4), T(2, 3, 5, 6))
SHARED = (T(2, 4, 3, 4), T(2, 2, 5, 4), T(2, 2, 5, 6))
LONG = (T(2, 2, 48, 3), T(2, 2, 50, 3), T(2, 2, 50, 2))
MASK = V([[True, False, True, True, False], [True, True, True, True, True],
    [False, True, False, False, False]], dtype="bool")
CLOSED = [[0.0, 1.0, -inf, 0.5, 0.0], [-inf] * 5, [0.0] * 5]
NOTHING = V([[value == 0 for value in row] for row in CLOSED], dtype="bool", grad=False)


def attention(torch, *args, **kw):
    """PyTorch's fused kernels have no second derivative: its plain one is the oracle."""
    backend = getattr(torch.nn, "attention", None)
    if torch.__name__ != "torch":
        return torch.nn.functional.scaled_dot_product_attention(*args, **kw)
    with backend.sdpa_kernel(backend.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(*args, **kw)


ATTENTION = [
    Op("F.scaled_dot_product_attention.blocks", Kink(*LONG), Kink(*LONG, is_causal=True),
        Kink(*LONG, B(48, 50)), Kink(*LONG, C(2, 1, 1, 50)), Kink(T(1, 4, 48, 3), T(1, 2, 50, 3),
        T(1, 2, 50, 3), enable_gqa=True), call=attention, dtypes=WIDE,
        order2="as in smaller samples", accidents=("sizes",)),
    Op("F.scaled_dot_product_attention", S(Q, K, W), S(*HEADS), S(*HEADS, is_causal=True),
        S(Q, K, W, MASK), S(Q, K, W, attn_mask=T(3, 5)), S(Q, K, W, T(2, 1, 5)),
        S(Q, K, W, scale=0.3), S(T(3, 4), T(5, 4), T(5, 4)), S(T(2, 3, 4), T(2, 5, 4), T(2, 5, 4),
        is_causal=True), S(T(2, 4, 3, 4), T(2, 2, 5, 4), T(2, 2, 5, 4), enable_gqa=True),
        S(Q, K, W, dropout_p=0.0), S(Q, K, W, NOTHING), S(Q, K, W, V(CLOSED, grad=False)),
        call=attention, tol=HALVES, why=WHY, order3=True, accidents=("sizes",),
        errors=[E(Q, K, W, MASK, is_causal=True), E(Q, T(2, 5, 3), W), E(Q, K, T(2, 4, 4)),
        E(Q, K, W, T(2, 2)), E(Q, K, W, T(7, 2, 3, 5)), E(T(4), T(4), T(4)),
        E(T(2, 4, 3, 4), T(2, 3, 5, 4), T(2, 3, 5, 4), enable_gqa=True)]),
    Op("F.scaled_dot_product_attention.shapes", S(T(2, 5, 4), T(2, 3, 4), T(2, 3, 2),
        is_causal=True), S(*CROSS, B(2, 1, 1, 5)), S(*CROSS, T(3, 3, 5)), S(*CROSS, T(5)),
        S(T(2, 1, 3, 4), T(1, 2, 5, 4), T(5, 4), scale=-0.4), S(*SHARED, enable_gqa=True,
        is_causal=True), S(*SHARED, T(4, 3, 5), enable_gqa=True), S(*SHARED, B(3, 5),
        enable_gqa=True), S(T(2, 4, 3, 4), T(2, 2, 5, 4), T(2, 1, 5, 4), T(2, 1, 3, 5),
        enable_gqa=True), S(*CROSS, dropout_p=1.0),
        call=attention, dtypes=WIDE, accidents=("sizes",)),
]

OPS = NORMS + EMBEDDING + KEEPING + ATTENTION
