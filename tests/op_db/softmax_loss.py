"""Rows of softmax and its kin, of losses and of distances."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    DISTINCT,
    FLOATS,
    POSITIVE,
    UNIT,
    WIDE,
    Attribute,
    Domain,
    OpInfo,
    async_error,
    away_from,
    booleans,
    constant,
    error,
    forward_sample,
    int64,
    integer_valued,
    integers,
    literal,
    sample,
    subgradient_sample,
    tensor,
)

inf, nan = math.inf, math.nan
HALVES = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}
WHY = "sums of rounded terms"
REDUCTIONS = ("mean", "sum", "none")
SIGNS = Domain(lambda rng, shape: rng.choice([-1.0, 1.0], shape))
PROBABILITIES = Domain(lambda rng, shape: _rows_of_one(rng.uniform(0.1, 1.0, shape)))


def _rows_of_one(values):
    """Sum one along dimension 1 (or 0 of a vector)."""
    return values / values.sum(1 if values.ndim > 1 else 0, keepdims=True)


def softmax_row(name, *more, **options):
    """A row of a softmax over one dimension."""
    room = () if name.startswith("F.") else (sample(tensor(3, 4), -1, dtype=Attribute("float64")),)
    samples = [sample(tensor(3, 4), 1), sample(tensor(2, 3, 4), 0), sample(tensor(2, 3, 4), dim=-2),
        sample(tensor(5), 0), sample(tensor(), 0), sample(tensor(0, 3), 1), sample(tensor(2, 1), 1),
        sample(literal([[100.0, 101.0], [-200.0, 3.0]]), 1),
        forward_sample(literal([[0.0, -inf], [1.0, 2.0]]), 1)]
    return OpInfo(name, *samples, *room, *more, tolerances=HALVES, tolerance_reason=WHY,
              check_third_order=True, errors=[error(tensor(3), 1), error(tensor(3), "x"),
              error(tensor(2, 3), -3)], **options)


def loss(name, *inputs, options=({},), extra=(), errors=(), **rest):
    """A row of a loss: every reduction times every option, on each tuple of inputs."""
    samples = [sample(*args, reduction=how, **option)
               for args in inputs for option in options for how in REDUCTIONS]
    rest.setdefault("dtypes", FLOATS)
    samples += [sample(*inputs[0]), *extra]
    errors = [error(*inputs[0], reduction="other"), *errors]
    return OpInfo("F." + name, *samples, errors=errors, tolerances=HALVES, tolerance_reason=WHY,
        **rest)


SOFTMAX = [softmax_row("softmax"), softmax_row("log_softmax"), softmax_row("F.softmax"),
    softmax_row("F.log_softmax"), softmax_row("F.softmin"), OpInfo("F.softmax.default",
    sample(tensor(3, 4)), sample(tensor(4)),
    call=lambda torch, x: torch.nn.functional.softmax(x, dim=-1, dtype=torch.float64), dtypes=WIDE),
    softmax_row("_safe_softmax", subgradient_sample(literal([[-inf, -inf], [-inf, 2.0]]), 1),
        sample(tensor(2, 1), 1, None), forward_sample(literal([[nan, -inf], [inf, 2.0]]), 1)),
    OpInfo("F.gumbel_softmax.shape", sample(tensor(3, 4)),
    call=lambda torch, x: torch.nn.functional.gumbel_softmax(x, hard=True).sum(-1), dtypes=WIDE,
    supports_autograd=False)]

CLASSES = integers(5, high=4)
CLASSIFY = [
    loss("cross_entropy", (tensor(5, 4), CLASSES), (tensor(2, 4, 3), integers(2, 3, high=4)),
        (tensor(2, 4, 3, 2), integers(2, 3, 2, high=4)), (tensor(4), int64(3)),
        options=({}, {"weight": constant(4, domain=POSITIVE)}, {"ignore_index": 1},
        {"label_smoothing": 0.2}, {"weight": constant(4, domain=POSITIVE), "ignore_index": 2,
        "label_smoothing": 0.1}), skip_undefined_behavior=("gradient",),
        # PyTorch's second one of nothing is NaN
        extra=[sample(tensor(0, 4), integers(0), reduction="sum"),
        sample(tensor(3, 4), int64([0, -100, 2])),
        sample(tensor(3, 4), int64([0, -100, 2]), reduction="none"),
        forward_sample(tensor(2, 4), int64([-100, -100]))], check_third_order=False,
        errors=[error(tensor(5, 4), integers(4)), async_error(tensor(5, 4), int64([0, 1, 2, 3, 4])),
        error(tensor(5, 4), integers(4, 2)), error(tensor(5, 4), constant(5)),
        error(tensor(5, 4), CLASSES, weight=constant(3)),
        error(tensor(5, 4), CLASSES, label_smoothing=2.0)]),
    loss("cross_entropy.probabilities", (tensor(5, 4), tensor(5, 4, domain=PROBABILITIES)),
        (tensor(2, 4, 3), tensor(2, 4, 3, domain=PROBABILITIES)),
        (tensor(4), tensor(4, domain=PROBABILITIES)),
        options=({}, {"label_smoothing": 0.2}, {"weight": constant(4, domain=POSITIVE)},
        {"weight": constant(4, domain=POSITIVE), "label_smoothing": 0.1}),
        errors=[error(tensor(5, 4), tensor(5, 3))]),
    loss("nll_loss", (tensor(5, 4), CLASSES), (tensor(2, 4, 3), integers(2, 3, high=4)),
        (tensor(2, 4, 3, 2), integers(2, 3, 2, high=4)), (tensor(4), int64(3)),
        options=({}, {"weight": constant(4, domain=POSITIVE)}, {"ignore_index": 1}),
        errors=[error(tensor(5, 4), integers(4)), async_error(tensor(5, 4), int64([0, 1, 2, 3, 4])),
        error(tensor(5, 4), constant(5)), error(tensor(5, 4), integers(4, 2))],
        skip_undefined_behavior=("gradient",)),
        # PyTorch's gradient of an empty gradient's sum is NaN
    loss("binary_cross_entropy", (tensor(3, 4, domain=UNIT), tensor(3, 4, domain=UNIT)),
        (tensor(3, domain=UNIT), constant(3, domain=integer_valued(0, 2))),
        extra=[sample(tensor(3, 4, domain=UNIT), constant(3, 4, domain=UNIT),
        weight=constant(4, domain=POSITIVE)),
        sample(tensor(3, 4, domain=UNIT), constant(3, 4, domain=UNIT),
        constant(3, 4, domain=POSITIVE), reduction="sum"),
        forward_sample(literal([0.0, 1.0, 1.0]), literal([0.0, 1.0, 0.0]))],
        errors=[error(tensor(3, 4, domain=UNIT), constant(4, domain=UNIT)),
        async_error(literal([2.0]), literal([1.0])), async_error(literal([-0.5]), literal([1.0]))]),
    loss("binary_cross_entropy_with_logits", (tensor(3, 4), tensor(3, 4, domain=UNIT)),
        options=({}, {"weight": constant(4, domain=POSITIVE)},
        {"pos_weight": constant(4, domain=POSITIVE)},
        {"weight": constant(3, 1, domain=POSITIVE), "pos_weight": constant(4, domain=POSITIVE)}),
        extra=[sample(literal([100.0, -100.0, 50.0]), literal([1.0, 1.0, 0.0])),
        sample(tensor(3), tensor(3, domain=UNIT)),
        subgradient_sample(literal([inf, -inf, inf]), literal([0.3, 0.3, 0.0]), reduction="none")],
        errors=[error(tensor(3, 4), constant(4, domain=UNIT))]),
    loss("multilabel_soft_margin_loss", (tensor(3, 4), constant(3, 4, domain=integer_valued(0, 2))),
        (tensor(4), constant(4, domain=integer_valued(0, 2))),
        (tensor(3, 4), integers(3, 4, high=2)), (tensor(3, 4), integers(4, high=2)),
        options=({}, {"weight": tensor(4, domain=POSITIVE)}), dtypes=WIDE,
        skip_undefined_behavior=("gradient",), errors=[error(tensor(), tensor()),
        error(tensor(3, 4), booleans(3, 4))]),
    loss("multilabel_margin_loss",
        (tensor(2, 4, domain=DISTINCT), int64([[0, 2, -1, 1], [3, -1, 0, 0]])),
        (tensor(4, domain=DISTINCT), int64([1, 0, -1, -1])), (tensor(), int64(0)),
        (tensor(), int64([-1])), (tensor(1), int64(0)), dtypes=WIDE, torch_grad_orders=1,
        skip_undefined_behavior=("empty",), errors=[error(tensor(4), integers(4, dtype="int32"))]),
    # PyTorch leaves the loss of no rows uninitialised.
    loss("multi_margin_loss", (tensor(5, 4), CLASSES), (tensor(4), int64(3)),
        options=({}, {"p": 2}, {"margin": 0.5}, {"weight": constant(4, domain=POSITIVE)}),
        dtypes=WIDE, torch_grad_orders=1, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(5, 4), integers(4)), error(tensor(2, 4), integers(2, dtype="int32"))]),
    loss("multi_margin_loss.single", (tensor(4), int64([3])), (tensor(), int64(0)),
        (tensor(1), int64(0)), options=({}, {"p": 2}), dtypes=WIDE, torch_grad_orders=1),
    loss("soft_margin_loss", (tensor(3, 4), constant(3, 4, domain=SIGNS)),
        (tensor(3, 4), constant(4, domain=SIGNS)), dtypes=WIDE,
        errors=[error(tensor(4), constant(3, 4, domain=SIGNS))]),
    loss("hinge_embedding_loss",
        (tensor(3, 4, domain=away_from(0, 1, 0.5)), constant(3, 4, domain=SIGNS)),
        options=({}, {"margin": 0.5}), dtypes=WIDE, skip_undefined_behavior=("dtypes",)),
]

COMPARE = [
    loss("mse_loss", (tensor(3, 4), tensor(3, 4)), (tensor(3), tensor(3)), (tensor(), tensor()),
        check_third_order=True, errors=[error(tensor(3), tensor(4))],
        extra=[sample(tensor(0), tensor(0), reduction="sum"), sample(tensor(3, 4), tensor(3, 1)),
        sample(tensor(3), tensor(3), weight=constant(3, domain=POSITIVE))]),
    loss("l1_loss", (tensor(3, 4, domain=DISTINCT), tensor(3, 4)), (tensor(3), tensor(3)),
        errors=[error(tensor(3), tensor(4))], extra=[sample(tensor(3, 4), tensor(4)),
        subgradient_sample(literal([1.0, 2.0]), literal([1.0, 3.0])),
        sample(tensor(3), tensor(3), weight=constant(3, domain=POSITIVE))]),
    loss("smooth_l1_loss", (tensor(3, 4), tensor(3, 4)),
        options=({}, {"beta": 0.5}, {"beta": 2.0}, {"beta": 0.0}),
        extra=[subgradient_sample(literal([1.0, 2.0]), literal([1.0, 3.0])),
        subgradient_sample(literal([nan, inf, -inf, 1.0]), literal([1.0, 1.0, inf, 3.0]),
        reduction="none")], errors=[error(tensor(3), tensor(3), beta=-1.0),
        error(tensor(3), tensor(4))]),
    loss("huber_loss", (tensor(3, 4), tensor(3, 4)), options=({}, {"delta": 0.5}, {"delta": 2.0}),
        extra=[subgradient_sample(literal([1.0, 2.0]), literal([1.0, 3.0])),
        subgradient_sample(literal([nan, inf, -inf, 1.0]), literal([1.0, 1.0, inf, 3.0]),
        reduction="none"), sample(tensor(3), tensor(3), weight=constant(3, domain=POSITIVE))],
        errors=[error(tensor(3), tensor(3), delta=-1.0), error(tensor(3), tensor(4))]),
    loss("kl_div", (tensor(3, 4), tensor(3, 4, domain=POSITIVE)),
        options=({}, {"log_target": True}),
        extra=[sample(tensor(3, 4), tensor(3, 4, domain=POSITIVE), reduction="batchmean"),
        sample(tensor(3, 4), tensor(3, 4), reduction="batchmean", log_target=True),
        sample(tensor(3, 4), constant(3, 4, domain=integer_valued(0, 2)), reduction="sum")]),
    loss("poisson_nll_loss", (tensor(3, 4), tensor(3, 4, domain=POSITIVE)),
        options=({}, {"log_input": False}, {"full": True}), domain=POSITIVE,
        extra=[sample(tensor(3), constant(3, domain=integer_valued(0, 4)), full=True)]),
    loss("gaussian_nll_loss", (tensor(3, 4), tensor(3, 4), tensor(3, 4, domain=POSITIVE)),
        (tensor(3, 4), tensor(3, 4), tensor(3, 1, domain=POSITIVE)),
        (tensor(2, 3, 2, 2), tensor(2, 3, 2, 2), tensor(2, 1, 2, 2, domain=POSITIVE)),
        (tensor(3, 4), tensor(3, 4), tensor(3, domain=POSITIVE)), options=({}, {"full": True}),
        dtypes=WIDE, skip_undefined_behavior=("dtypes",),
        errors=[error(tensor(3), tensor(3), literal([-1.0, 1.0, 1.0])),
        error(tensor(3), tensor(3), tensor(4)),
        error(tensor(2, 3), tensor(2, 3), tensor(1, 1, domain=POSITIVE)),
        error(tensor(), tensor(), tensor(1, domain=POSITIVE))]),
    loss("margin_ranking_loss", (tensor(5), tensor(5), constant(5, domain=SIGNS)),
        options=({}, {"margin": 0.5}), dtypes=WIDE,
        errors=[error(tensor(3), tensor(3), constant(2, 3))]),
    loss("cosine_embedding_loss", (tensor(3, 4), tensor(3, 4), constant(3, domain=SIGNS)),
        (tensor(4), tensor(4), literal(1.0, requires_grad=False)), options=({}, {"margin": 0.2}),
        dtypes=WIDE, errors=[error(tensor(3, 4), tensor(3, 4), constant(2))]),
    loss("triplet_margin_loss", (tensor(3, 4), tensor(3, 4), tensor(3, 4)),
        options=({}, {"margin": 0.5, "p": 1.5}, {"swap": True}), dtypes=WIDE,
        errors=[error(tensor(3, 4), tensor(3, 4), tensor(4)),
        error(tensor(3, 4), tensor(3, 4), tensor(3, 4), margin=-1.0)]),
    OpInfo("F.triplet_margin_with_distance_loss", sample(tensor(3, 4), tensor(3, 4), tensor(3, 4)),
        sample(tensor(3, 4), tensor(3, 4), tensor(3, 4), margin=0.5, swap=True, reduction="sum"),
        dtypes=WIDE, errors=[error(tensor(3, 4), tensor(4), tensor(3, 4))]),
]

CTC = [
    OpInfo("F.ctc_loss",
        *[sample(tensor(6, 2, 4), int64([[1, 2, 2], [3, 1, 1]]), int64([6, 5]), int64([3, 2]),
        reduction=how) for how in REDUCTIONS],
        sample(tensor(6, 2, 4), int64([1, 2, 3, 3]), (6, 6), (3, 1)),
        sample(tensor(2, 1, 4), int64([[1, 1]]), int64([2]), int64([2]), zero_infinity=True),
        sample(tensor(5, 4), int64([0, 2]), int64(5), int64(2), blank=3),
        call=lambda torch, x, *args, **kw: torch.nn.functional.ctc_loss(torch.log_softmax(x, -1),
        *args, **kw), dtypes=WIDE, torch_grad_orders=1, check_layouts=False,
        tolerances={"float32": (5e-5, 1e-5)}, tolerance_reason="long sums of exponentials",
        errors=[error(tensor(6, 2, 4), int64([[1, 2], [3, 1]]), *rest) for rest
        in ((int64([6, -1]), int64([2, 2])), (int64([6, 7]), int64([2, 2])),
        (int64([6, 6]), int64([2, -1])), (int64([6, 6]), int64([2, 3])), ((6,), (2, 2)),
        ((6, 6), (2,)), ((6, 6), (2, 2), 4), ((6, 6), (2, 2), 0, "most"),
        (int64([6, 6]), literal([2.0, 2.0])))]
        + [error(tensor(6, 2, 4), int64([1, 2, 3]), (6, 6), (1, 1)),
        error(tensor(0, 2, 4), int64([[1], [1]]), (0, 0), (1, 1)),
        error(tensor(6, 2, 4), int64([[1]]), (6, 6), (1, 1))]),
    # Lengths of zero, targets that do not fit, and leaves that are not normalized: there the
    # gradient is PyTorch's, which only a log_softmax in front makes a derivative.
    OpInfo("F.ctc_loss.edges",
        *[subgradient_sample(tensor(3, 4, 4), int64([[1, 2], [3, 3], [1, 2], [2, 1]]), (0, 0, 3, 2),
        lengths, blank, how, zero) for lengths in ((0, 1, 2, 2), (2, 0, 0, 1)) for blank in (0, 3)
        for how in REDUCTIONS for zero in (False, True)],
        subgradient_sample(tensor(3, 1, 4), int64([[1, 1]]), (2,), (2,)),
        subgradient_sample(tensor(2, 2, 4), int64([]), (2, 0), (0, 0)), dtypes=WIDE,
        supports_gradgrad=False, check_layouts=False),
]

DISTANCES = [
    OpInfo("F.cosine_similarity", sample(tensor(3, 4), tensor(3, 4)),
        sample(tensor(3, 4), tensor(4), dim=-1), sample(tensor(2, 3, 4), tensor(2, 3, 4), 2),
        sample(tensor(4), tensor(4), dim=0), sample(tensor(3, 4), tensor(3, 4), eps=1e-3),
        tolerances=HALVES, tolerance_reason=WHY, errors=[error(tensor(3, 4), tensor(3, 5)),
        error(tensor(3), tensor(3), 1)]),
    OpInfo("F.pairwise_distance", sample(tensor(3, 4), tensor(3, 4)),
        sample(tensor(3, 4), tensor(4), 1), sample(tensor(3, 4), tensor(3, 4), p=3.0, keepdim=True),
        sample(tensor(4), tensor(4)), sample(tensor(3, 4), tensor(3, 4), eps=1e-2),
        tolerances=HALVES, tolerance_reason=WHY, errors=[error(tensor(3, 4), tensor(3, 5))]),
    OpInfo("F.cosine_similarity.zero",
        subgradient_sample(literal([[0.0, 0.0]]), literal([[1.0, 2.0]])), dtypes=WIDE),
    OpInfo("F.normalize.zero", subgradient_sample(literal([[0.0, 0.0]])), dtypes=WIDE),
    OpInfo("F.pdist", sample(tensor(4, 3)), sample(tensor(4, 3), 1.0),
        subgradient_sample(literal([[0.0, 1], [1, 2], [2, 4]]), inf), dtypes=WIDE,
        torch_grad_orders=1, errors=[error(tensor(3))], skip_undefined_behavior=("sizes",)),
        # PyTorch crashes on the gradient of no rows
    OpInfo("F.normalize", sample(tensor(3, 4)), sample(tensor(3, 4), p=1),
        sample(tensor(2, 3, 4), dim=-1), sample(tensor(3, 4), 3.0, 0), sample(tensor(3, 4), p=inf),
        sample(tensor(4), dim=0), sample(tensor(3, 4), eps=10.0), domain=DISTINCT,
        tolerances=HALVES, tolerance_reason=WHY),
]

OPS = SOFTMAX + CLASSIFY + COMPARE + CTC + DISTANCES
