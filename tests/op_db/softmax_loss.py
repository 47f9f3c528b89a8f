"""Rows of softmax and its kin, of losses and of distances."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    DISTINCT,
    FLOATS,
    POSITIVE,
    UNIT,
    V64,
    WIDE,
    B,
    C,
    Domain,
    E,
    Forward,
    Kink,
    N,
    Name,
    Op,
    S,
    T,
    Told,
    V,
    away,
    whole,
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


def soft(name, *more, **options):
    """A row of a softmax over one dimension."""
    room = () if name.startswith("F.") else (S(T(3, 4), -1, dtype=Name("float64")),)
    samples = [
        S(T(3, 4), 1), S(T(2, 3, 4), 0), S(T(2, 3, 4), dim=-2), S(T(5), 0), S(T(), 0),
        S(T(0, 3), 1), S(T(2, 1), 1), S(V([[100.0, 101.0], [-200.0, 3.0]]), 1),
        Forward(V([[0.0, -inf], [1.0, 2.0]]), 1),
    ]
    return Op(name, *samples, *room, *more, tol=HALVES, why=WHY, order3=True,
              errors=[E(T(3), 1), E(T(3), "x"), E(T(2, 3), -3)], **options)


def loss(name, *inputs, options=({},), extra=(), errors=(), **rest):
    """A row of a loss: every reduction times every option, on each tuple of inputs."""
    samples = [S(*args, reduction=how, **option)
               for args in inputs for option in options for how in REDUCTIONS]
    rest.setdefault("dtypes", FLOATS)
    samples += [S(*inputs[0]), *extra]
    errors = [E(*inputs[0], reduction="other"), *errors]
    return Op("F." + name, *samples, errors=errors, tol=HALVES, why=WHY, **rest)


SOFTMAX = [soft("softmax"), soft("log_softmax"), soft("F.softmax"), soft("F.log_softmax"),
    soft("F.softmin"), Op("F.softmax.default", S(T(3, 4)), S(T(4)),
    call=lambda torch, x: torch.nn.functional.softmax(x, dim=-1, dtype=torch.float64), dtypes=WIDE),
    Op("F.gumbel_softmax.shape", S(T(3, 4)),
    call=lambda torch, x: torch.nn.functional.gumbel_softmax(x, hard=True).sum(-1), dtypes=WIDE,
    grad=False)]

CLASSES = N(5, high=4)
CLASSIFY = [
    loss("cross_entropy", (T(5, 4), CLASSES), (T(2, 4, 3), N(2, 3, high=4)),
        (T(2, 4, 3, 2), N(2, 3, 2, high=4)), (T(4), V64(3)), options=({},
        {"weight": C(4, of=POSITIVE)}, {"ignore_index": 1}, {"label_smoothing": 0.2},
        {"weight": C(4, of=POSITIVE), "ignore_index": 2, "label_smoothing": 0.1}),
        accidents=("gradient",),  # PyTorch's second one of nothing is NaN
        extra=[S(T(0, 4), N(0), reduction="sum"), S(T(3, 4), V64([0, -100, 2])),
        S(T(3, 4), V64([0, -100, 2]), reduction="none"), Forward(T(2, 4), V64([-100, -100]))],
        order3=False, errors=[E(T(5, 4), N(4)), Told(T(5, 4), V64([0, 1, 2, 3, 4])),
        E(T(5, 4), N(4, 2)),
        E(T(5, 4), C(5)), E(T(5, 4), CLASSES, weight=C(3)),
        E(T(5, 4), CLASSES, label_smoothing=2.0)]),
    loss("cross_entropy.probabilities", (T(5, 4), T(5, 4, of=PROBABILITIES)),
        (T(2, 4, 3), T(2, 4, 3, of=PROBABILITIES)), (T(4), T(4, of=PROBABILITIES)),
        options=({}, {"label_smoothing": 0.2}, {"weight": C(4, of=POSITIVE)},
        {"weight": C(4, of=POSITIVE), "label_smoothing": 0.1}), errors=[E(T(5, 4), T(5, 3))]),
    loss("nll_loss", (T(5, 4), CLASSES), (T(2, 4, 3), N(2, 3, high=4)),
        (T(2, 4, 3, 2), N(2, 3, 2, high=4)), (T(4), V64(3)), options=({},
        {"weight": C(4, of=POSITIVE)}, {"ignore_index": 1}), errors=[E(T(5, 4), N(4)),
        Told(T(5, 4), V64([0, 1, 2, 3, 4])), E(T(5, 4), C(5)), E(T(5, 4), N(4, 2))],
        accidents=("gradient",)),  # PyTorch's gradient of an empty gradient's sum is NaN
    loss("binary_cross_entropy", (T(3, 4, of=UNIT), T(3, 4, of=UNIT)),
        (T(3, of=UNIT), C(3, of=whole(0, 2))), extra=[S(T(3, 4, of=UNIT), C(3, 4, of=UNIT),
        weight=C(4, of=POSITIVE)), S(T(3, 4, of=UNIT), C(3, 4, of=UNIT), C(3, 4, of=POSITIVE),
        reduction="sum"), Forward(V([0.0, 1.0, 1.0]), V([0.0, 1.0, 0.0]))],
        errors=[E(T(3, 4, of=UNIT), C(4, of=UNIT)), Told(V([2.0]), V([1.0])),
            Told(V([-0.5]), V([1.0]))]),
    loss("binary_cross_entropy_with_logits", (T(3, 4), T(3, 4, of=UNIT)),
        options=({}, {"weight": C(4, of=POSITIVE)}, {"pos_weight": C(4, of=POSITIVE)},
        {"weight": C(3, 1, of=POSITIVE), "pos_weight": C(4, of=POSITIVE)}),
        extra=[S(V([100.0, -100.0, 50.0]), V([1.0, 1.0, 0.0])), S(T(3), T(3, of=UNIT)),
        Kink(V([inf, -inf, inf]), V([0.3, 0.3, 0.0]), reduction="none")],
        errors=[E(T(3, 4), C(4, of=UNIT))]),
    loss("multilabel_soft_margin_loss", (T(3, 4), C(3, 4, of=whole(0, 2))),
        (T(4), C(4, of=whole(0, 2))), (T(3, 4), N(3, 4, high=2)), (T(3, 4), N(4, high=2)),
        options=({}, {"weight": T(4, of=POSITIVE)}), dtypes=WIDE,
        accidents=("gradient",), errors=[E(T(), T()), E(T(3, 4), B(3, 4))]),
    loss("multilabel_margin_loss", (T(2, 4, of=DISTINCT), V64([[0, 2, -1, 1], [3, -1, 0, 0]])),
        (T(4, of=DISTINCT), V64([1, 0, -1, -1])), (T(), V64(0)), (T(), V64([-1])), (T(1), V64(0)),
        dtypes=WIDE, torch_orders=1, accidents=("empty",), errors=[E(T(4), N(4, dtype="int32"))]),
    # PyTorch leaves the loss of no rows uninitialised.
    loss("multi_margin_loss", (T(5, 4), CLASSES), (T(4), V64(3)),
        options=({}, {"p": 2}, {"margin": 0.5}, {"weight": C(4, of=POSITIVE)}), dtypes=WIDE,
        torch_orders=1, accidents=("empty", "zero_dim"), errors=[E(T(5, 4), N(4)),
        E(T(2, 4), N(2, dtype="int32"))]),
    loss("multi_margin_loss.single", (T(4), V64([3])), (T(), V64(0)), (T(1), V64(0)),
        options=({}, {"p": 2}), dtypes=WIDE, torch_orders=1),
    loss("soft_margin_loss", (T(3, 4), C(3, 4, of=SIGNS)), (T(3, 4), C(4, of=SIGNS)), dtypes=WIDE,
        errors=[E(T(4), C(3, 4, of=SIGNS))]),
    loss("hinge_embedding_loss", (T(3, 4, of=away(0, 1, 0.5)), C(3, 4, of=SIGNS)),
        options=({}, {"margin": 0.5}), dtypes=WIDE, accidents=("dtypes",)),
]

COMPARE = [
    loss("mse_loss", (T(3, 4), T(3, 4)), (T(3), T(3)), (T(), T()), order3=True,
        errors=[E(T(3), T(4))], extra=[S(T(0), T(0), reduction="sum"), S(T(3, 4), T(3, 1)),
        S(T(3), T(3), weight=C(3, of=POSITIVE))]),
    loss("l1_loss", (T(3, 4, of=DISTINCT), T(3, 4)), (T(3), T(3)), errors=[E(T(3), T(4))],
        extra=[S(T(3, 4), T(4)), Kink(V([1.0, 2.0]), V([1.0, 3.0])),
        S(T(3), T(3), weight=C(3, of=POSITIVE))]),
    loss("smooth_l1_loss", (T(3, 4), T(3, 4)), options=({}, {"beta": 0.5}, {"beta": 2.0},
        {"beta": 0.0}), extra=[Kink(V([1.0, 2.0]), V([1.0, 3.0])),
        Kink(V([nan, inf, -inf, 1.0]), V([1.0, 1.0, inf, 3.0]), reduction="none")],
        errors=[E(T(3), T(3), beta=-1.0), E(T(3), T(4))]),
    loss("huber_loss", (T(3, 4), T(3, 4)), options=({}, {"delta": 0.5}, {"delta": 2.0}),
        extra=[Kink(V([1.0, 2.0]), V([1.0, 3.0])),
        Kink(V([nan, inf, -inf, 1.0]), V([1.0, 1.0, inf, 3.0]), reduction="none"),
        S(T(3), T(3), weight=C(3, of=POSITIVE))],
        errors=[E(T(3), T(3), delta=-1.0), E(T(3), T(4))]),
    loss("kl_div", (T(3, 4), T(3, 4, of=POSITIVE)), options=({}, {"log_target": True}),
        extra=[S(T(3, 4), T(3, 4, of=POSITIVE), reduction="batchmean"),
        S(T(3, 4), T(3, 4), reduction="batchmean", log_target=True),
        S(T(3, 4), C(3, 4, of=whole(0, 2)), reduction="sum")]),
    loss("poisson_nll_loss", (T(3, 4), T(3, 4, of=POSITIVE)), options=({}, {"log_input": False},
        {"full": True}), of=POSITIVE, extra=[S(T(3), C(3, of=whole(0, 4)), full=True)]),
    loss("gaussian_nll_loss", (T(3, 4), T(3, 4), T(3, 4, of=POSITIVE)),
        (T(3, 4), T(3, 4), T(3, 1, of=POSITIVE)), (T(2, 3, 2, 2), T(2, 3, 2, 2),
        T(2, 1, 2, 2, of=POSITIVE)), (T(3, 4), T(3, 4), T(3, of=POSITIVE)),
        options=({}, {"full": True}), dtypes=WIDE,
        accidents=("dtypes",), errors=[E(T(3), T(3), V([-1.0, 1.0, 1.0])), E(T(3), T(3), T(4)),
        E(T(2, 3), T(2, 3), T(1, 1, of=POSITIVE)), E(T(), T(), T(1, of=POSITIVE))]),
    loss("margin_ranking_loss", (T(5), T(5), C(5, of=SIGNS)), options=({}, {"margin": 0.5}),
        dtypes=WIDE, errors=[E(T(3), T(3), C(2, 3))]),
    loss("cosine_embedding_loss", (T(3, 4), T(3, 4), C(3, of=SIGNS)),
        (T(4), T(4), V(1.0, grad=False)), options=({}, {"margin": 0.2}), dtypes=WIDE,
        errors=[E(T(3, 4), T(3, 4), C(2))]),
    loss("triplet_margin_loss", (T(3, 4), T(3, 4), T(3, 4)), options=({}, {"margin": 0.5, "p": 1.5},
        {"swap": True}), dtypes=WIDE, errors=[E(T(3, 4), T(3, 4), T(4)),
        E(T(3, 4), T(3, 4), T(3, 4), margin=-1.0)]),
    Op("F.triplet_margin_with_distance_loss", S(T(3, 4), T(3, 4), T(3, 4)),
        S(T(3, 4), T(3, 4), T(3, 4), margin=0.5, swap=True, reduction="sum"), dtypes=WIDE,
        errors=[E(T(3, 4), T(4), T(3, 4))]),
]

CTC = [
    Op("F.ctc_loss", *[S(T(6, 2, 4), V64([[1, 2, 2], [3, 1, 1]]), V64([6, 5]), V64([3, 2]),
        reduction=how) for how in REDUCTIONS], S(T(6, 2, 4), V64([1, 2, 3, 3]), (6, 6), (3, 1)),
        S(T(2, 1, 4), V64([[1, 1]]), V64([2]), V64([2]), zero_infinity=True),
        S(T(5, 4), V64([0, 2]), V64(5), V64(2), blank=3),
        call=lambda torch, x, *args, **kw: torch.nn.functional.ctc_loss(torch.log_softmax(x, -1),
        *args, **kw), dtypes=WIDE, torch_orders=1, layout=False, tol={"float32": (5e-5, 1e-5)},
        why="long sums of exponentials", errors=[E(T(6, 2, 4), V64([[1, 2], [3, 1]]), *rest)
        for rest in ((V64([6, -1]), V64([2, 2])), (V64([6, 7]), V64([2, 2])),
        (V64([6, 6]), V64([2, -1])), (V64([6, 6]), V64([2, 3])), ((6,), (2, 2)), ((6, 6), (2,)),
        ((6, 6), (2, 2), 4), ((6, 6), (2, 2), 0, "most"), (V64([6, 6]), V([2.0, 2.0])))] +
        [E(T(6, 2, 4), V64([1, 2, 3]), (6, 6), (1, 1)), E(T(0, 2, 4), V64([[1], [1]]), (0, 0),
        (1, 1)), E(T(6, 2, 4), V64([[1]]), (6, 6), (1, 1))]),
    # Lengths of zero, targets that do not fit, and leaves that are not normalized: there the
    # gradient is PyTorch's, which only a log_softmax in front makes a derivative.
    Op("F.ctc_loss.edges", *[Kink(T(3, 4, 4), V64([[1, 2], [3, 3], [1, 2], [2, 1]]),
        (0, 0, 3, 2), lengths, blank, how, zero) for lengths in ((0, 1, 2, 2), (2, 0, 0, 1))
        for blank in (0, 3) for how in REDUCTIONS for zero in (False, True)],
        Kink(T(3, 1, 4), V64([[1, 1]]), (2,), (2,)), Kink(T(2, 2, 4), V64([]), (2, 0), (0, 0)),
        dtypes=WIDE, order2=False, layout=False),
]

DISTANCES = [
    Op("F.cosine_similarity", S(T(3, 4), T(3, 4)), S(T(3, 4), T(4), dim=-1),
        S(T(2, 3, 4), T(2, 3, 4), 2), S(T(4), T(4), dim=0), S(T(3, 4), T(3, 4), eps=1e-3),
        tol=HALVES, why=WHY, errors=[E(T(3, 4), T(3, 5)), E(T(3), T(3), 1)]),
    Op("F.pairwise_distance", S(T(3, 4), T(3, 4)), S(T(3, 4), T(4), 1),
        S(T(3, 4), T(3, 4), p=3.0, keepdim=True), S(T(4), T(4)), S(T(3, 4), T(3, 4), eps=1e-2),
        tol=HALVES, why=WHY, errors=[E(T(3, 4), T(3, 5))]),
    Op("F.cosine_similarity.zero", Kink(V([[0.0, 0.0]]), V([[1.0, 2.0]])), dtypes=WIDE),
    Op("F.normalize.zero", Kink(V([[0.0, 0.0]])), dtypes=WIDE),
    Op("F.pdist", S(T(4, 3)), S(T(4, 3), 1.0), Kink(V([[0.0, 1], [1, 2], [2, 4]]), inf),
        dtypes=WIDE, torch_orders=1, errors=[E(T(3))],
        accidents=("sizes",)),  # PyTorch crashes on the gradient of no rows
    Op("F.normalize", S(T(3, 4)), S(T(3, 4), p=1), S(T(2, 3, 4), dim=-1), S(T(3, 4), 3.0, 0),
        S(T(3, 4), p=inf), S(T(4), dim=0), S(T(3, 4), eps=10.0), of=DISTINCT, tol=HALVES, why=WHY),
]

OPS = SOFTMAX + CLASSIFY + COMPARE + CTC + DISTANCES
