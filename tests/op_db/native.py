"""Rows of the functions that layers and losses are made of, under their signatures in `torch`."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import POSITIVE, UNIT, V64, WIDE, C, E, N, Op, S, T, Told, V, away, between

NORMS = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}
WHY = "sums of products of rounded numbers"
SIGNS = V([1.0, -1.0, 1.0], grad=False)

LOSSES = [
    Op("hinge_embedding_loss", *[S(T(3, of=away(1.0)), SIGNS, 1.0, r) for r in (0, 1, 2, 5)],
        S(T(3, of=away(1.0)), SIGNS), S(T(3, of=away(2.0)), SIGNS, margin=2.0, reduction=2),
        dtypes=WIDE, errors=[E(T(3), T(3), 1.0, "mean")]),
    Op("margin_ranking_loss", *[S(T(3), T(3), SIGNS, 0.5, r) for r in (0, 1, 2)],
        S(T(3), T(3), SIGNS), S(T(2, 3), T(3), SIGNS, margin=0.3, reduction=0), dtypes=WIDE,
        errors=[E(T(3), T(3), SIGNS, 0.0, "mean")]),
    Op("cosine_embedding_loss", *[S(T(3, 4), T(3, 4), SIGNS, -0.9, r) for r in (0, 1, 2)],
        S(T(3, 4), T(3, 4), SIGNS), dtypes=WIDE,
        errors=[E(T(3, 4), T(3, 4), T(3, 4)), E(T(3), T(3), SIGNS)]),
    Op("triplet_margin_loss", *[S(T(3, 4), T(3, 4), T(3, 4), 1.0, 2.0, 1e-6, False, r)
        for r in (0, 1, 2)], S(T(3, 4), T(3, 4), T(3, 4), margin=0.5, swap=True),
        S(T(4), T(4), T(4), reduction=0), dtypes=WIDE,
        errors=[E(T(3, 4), T(4), T(3, 4)), E(T(3), T(3), T(3), reduction="mean")]),
    Op("poisson_nll_loss", *[S(T(3, 4, of=POSITIVE), C(3, 4, of=POSITIVE), log, False, 1e-8, r)
        for log, r in ((True, 0), (True, 1), (False, 2))],
        S(T(5, of=POSITIVE), C(5, of=between(1.2, 4.0)), True, True, 1e-8, 1), dtypes=WIDE,
        errors=[E(T(3), T(3)), E(T(3), T(3), True, False, 1e-8, "mean")]),
    Op("kl_div", *[S(T(3, 4), T(3, 4, of=UNIT), r) for r in (0, 1, 2)], S(T(4), T(4, of=UNIT)),
        S(T(3, 4), T(3, 4), log_target=True), S(T(4), T(4), 2, log_target=True), dtypes=WIDE,
        errors=[E(T(3), T(3), "mean"), E(T(3), T(4))]),
    Op("binary_cross_entropy_with_logits", *[S(T(3, 4), C(3, 4, of=UNIT), None, None, r)
        for r in (0, 1, 2)], S(T(3, 4), C(3, 4, of=UNIT), C(4, of=POSITIVE), C(4, of=POSITIVE)),
        S(T(4), C(4, of=UNIT), pos_weight=C(4, of=POSITIVE), reduction=0), dtypes=WIDE,
        errors=[E(T(3), T(4)), E(T(3), T(3), None, None, "mean")]),
    Op("ctc_loss", *[S(T(6, 2, 4), V64([[1, 2, 2], [3, 1, 1]]), V64([6, 5]), V64([3, 2]), 0, r)
        for r in (0, 1, 2)], S(T(6, 2, 4), V64([1, 2, 3, 3]), (6, 6), (3, 1)),
        S(T(2, 1, 4), V64([[1, 1]]), V64([2]), V64([2]), zero_infinity=True),
        call=lambda torch, x, *args, **kw: torch.ctc_loss(torch.log_softmax(x, -1), *args, **kw),
        dtypes=WIDE, torch_orders=1, layout=False, tol={"float32": (5e-5, 1e-5)},
        why="long sums of exponentials", accidents=("empty",),
        errors=[E(T(6, 2, 4), V64([[1], [1]]), V64([6]), V64([1, 1]))]),
]

NORMALIZATIONS = [
    Op("batch_norm", S(T(3, 2, 4), T(2), T(2), None, None, True, 0.1, 1e-5, True),
        S(T(3, 2), None, None, C(2), C(2, of=POSITIVE), False, 0.1, 1e-5, False),
        S(T(3, 2, 2, 2), T(2), None, None, None, True, 0.1, 1e-3, False), tol=NORMS, why=WHY,
        torch_orders=2, accidents=("empty", "zero_dim"),
        errors=[E(T(3), None, None, None, None, True, 0.1, 1e-5, True),
        E(T(3, 2), T(3), None, None, None, True, 0.1, 1e-5, True),
        E(T(3, 2), None, None, None, None, False, 0.1, 1e-5, True), E(T(3, 2))]),
    Op("native_batch_norm", S(T(3, 2, 4), T(2), T(2), None, None, True, 0.1, 1e-5),
        S(T(3, 2), None, None, C(2), C(2, of=POSITIVE), False, 0.1, 1e-5), tol=NORMS, why=WHY,
        torch_orders=2, accidents=("empty", "zero_dim"), errors=[E(T(3, 2))]),
    Op("instance_norm", S(T(3, 2, 4), T(2), T(2), None, None, True, 0.1, 1e-5, True),
        S(T(3, 2, 2), None, None, C(2), C(2, of=POSITIVE), False, 0.1, 1e-5, False), tol=NORMS,
        why=WHY, torch_orders=2, accidents=("empty", "zero_dim"),
        errors=[E(T(3, 2, 4), None, None, None, None, False, 0.1, 1e-5, True), E(T(3, 2, 2))]),
    Op("native_layer_norm", S(T(3, 4), [4], T(4), T(4), 1e-5), S(T(2, 3, 4), (3, 4), None, None,
        1e-3), S(T(4), [4], T(4), None, 1e-5), tol=NORMS, why=WHY, torch_orders=2,
        accidents=("empty", "zero_dim"),
        errors=[E(T(3, 4), [3], None, None, 1e-5), E(T(3, 4), [], None, None, 1e-5), E(T(3, 4))]),
    Op("native_group_norm", S(T(3, 4, 2), T(4), T(4), 3, 4, 2, 2, 1e-5), S(T(2, 6, 2, 2), None,
        None, 2, 6, 4, 3, 1e-3), call=lambda torch, *args: torch.native_group_norm(*args)[0],
        tol=NORMS, why=WHY, torch_orders=2, accidents=("empty", "zero_dim", "resized", "layouts"),
        errors=[E(T(3, 4, 2), None, None, 3, 4, 2, 3, 1e-5)]),
    Op("native_group_norm.statistics", S(T(3, 4, 2), T(4), T(4), 3, 4, 2, 2, 1e-5), S(T(2, 6, 2, 2),
        None, None, 2, 6, 4, 3, 1e-3), grad=False, tol=NORMS, why=WHY,
        accidents=("empty", "zero_dim", "resized", "layouts")),
    Op("norm_except_dim", S(T(2, 4, 3)), S(T(2, 4, 3), 2, 1), S(T(2, 4, 3), 1, 2),
        S(T(2, 3), pow=2, dim=-1), S(T(4)), dtypes=WIDE, accidents=("empty", "zero_dim"),
        errors=[E(T(2, 3), 2, 5)]),
]

OTHERS = [
    Op("native_dropout", S(T(3, 4), 0.5, False), S(T(3, 4), 0.0, True), S(T(3, 4), 1.0, True),
        S(T(0, 2), 0.3, None), accidents=("zero_dim",), errors=[E(T(3), 1.5, True), E(T(3))]),
    Op("native_channel_shuffle", S(T(2, 6, 3), 2), S(T(1, 4, 2, 2), 4), accidents=("zero_dim",),
        torch_orders=0,
        errors=[E(T(2, 6, 3), 4)]),
    # To which bags the summands went, PyTorch says for some dtypes and layouts only.
    *(Op(f"embedding_bag.{mode}", S(T(6, 2), V64([0, 2, 2, 5]), V64([0, 1, 1]), False, mode),
        S(T(6, 2), V64([0, 2, 2, 5]), V64([0, 1, 4]), False, mode, False, None, True),
        S(T(6, 2), V64([0, 2, 2, 5]), V64([0, 1, 1]), False, mode, False, None, False, 2),
        S(T(6, 2), N(3, high=6), V64([0]), mode=mode), dtypes=WIDE, torch_orders=1,
        call=(lambda torch, *args, **kw: torch.embedding_bag(*args, **kw)[0]) if not mode else None,
        accidents=("empty", "zero_dim"),
        errors=[Told(T(6, 2), V64([0, 9]), V64([0]), False, mode)]) for mode in (0, 1, 2)),
    Op("embedding_bag", S(T(6, 2), V64([0, 2, 2, 5]), V64([0, 1, 1])),
        S(T(6, 2), V64([0, 2, 5]), V64([0, 1]), False, 0, False, T(3)), dtypes=WIDE,
        call=lambda torch, *args: torch.embedding_bag(*args)[0], torch_orders=1,
        accidents=("empty", "zero_dim"),
        errors=[E(T(6, 2), V64([0]), V64([0]), False, 3),
        E(T(6, 2), V64([0]), V64([0]), False, 1, False, T(1)), E(T(6, 2), V64([0]))]),
    Op("embedding_renorm_", S(T(4, 3), V64([0, 2, 2]), 0.5, 2.0), S(T(4, 3), V64([[3]]), 1.0, 1.0),
        call=lambda torch, w, *args: torch.embedding_renorm_(w.clone(), *args), dtypes=WIDE,
        grad=False, accidents=("empty", "zero_dim"),
        errors=[E(T(4, 3), V64([5]), 1.0, 2.0), E(T(4, 3), V([1.0]), 1.0, 2.0),
        E(T(4), V64([1]), 1.0, 2.0)]),
    # PyTorch refuses upstream gradients that are not contiguous; that of a batch of one is.
    Op("conv_tbc", S(T(4, 1, 2), T(4, 2, 3), T(3), pad=2), S(T(5, 2, 3), T(2, 3, 4), T(4)),
        S(T(5, 2, 3), T(3, 3, 4), T(4), 1), tol=NORMS, why=WHY, torch_orders=2,
        accidents=("empty", "zero_dim"),
        errors=[E(T(5, 2, 3), T(2, 2, 4), T(4)), E(T(5, 2), T(2, 2, 4), T(4)),
        E(T(5, 2, 3), T(2, 3, 4), T(3)), E(T(5, 2, 3), T(2, 3, 4), T(1, 4)),
        E(T(5, 2, 3), T(9, 3, 4), T(4)), E(T(5, 2, 3), T(2, 3), T(4)),
        E(T(5, 2, 3), T(2, 3, 4), None)]),
    Op("convolution", S(T(1, 2, 5), T(3, 2, 2), T(3), [1], [0], [1], False, [0], 1),
        S(T(1, 2, 5), T(2, 3, 2), None, [2], [0], [1], True, [1], 1),
        S(T(2, 4, 5, 5), T(4, 2, 2, 2), None, [2], [1, 0], [1], False, [0], 2),
        S(T(1, 2, 3, 3, 3), T(2, 2, 2, 2, 2), T(2), [1, 2, 1], [0], [1], False, [0], 1),
        tol=NORMS, why=WHY, dtypes=WIDE, accidents=("empty", "zero_dim"),
        errors=[E(T(2, 5), T(3, 2, 2), None, [1], [0], [1], False, [0], 1),
        E(T(1, 2, 5), T(3, 2, 2), None, [1, 1], [0], [1], False, [0], 1), E(T(1, 2, 5)),
        E(T(1, 3, 5), T(3, 2, 2), None, [1], [0], [1], False, [0], 1)]),
    Op("grid_sampler_2d", *[S(T(1, 2, 4, 3), T(1, 3, 2, 2, of=between(-0.85, 0.85)), mode, pad,
        corners) for mode, pad, corners in ((0, 0, False), (0, 1, True), (2, 2, False))],
        dtypes=WIDE, torch_orders=1, accidents=("empty", "zero_dim"), tol={"float32": (1e-4, 1e-5)},
        why="weights of places that are rounded first",
        errors=[E(T(1, 1, 2, 2), T(1, 1, 1, 3), 0, 0, False),
        E(T(1, 1, 2, 2, 2), T(1, 1, 1, 1, 3), 0, 0, False)]),
    Op("grid_sampler_3d", S(T(1, 2, 3, 4, 3), T(1, 2, 3, 2, 3, of=between(-0.85, 0.85)), 0, 0,
        False), dtypes=WIDE, torch_orders=1, accidents=("empty", "zero_dim"),
        errors=[E(T(1, 1, 2, 2), T(1, 1, 1, 2), 0, 0, False)]),
    Op("F.upsample_nearest", S(T(1, 2, 3, 4), 5), S(T(1, 2, 3), scale_factor=2), dtypes=WIDE,
        accidents=("empty", "zero_dim"), errors=[E(T(2, 3), 4), E(T(1, 2, 3))]),
    Op("F.upsample_bilinear", S(T(1, 2, 3, 4), 5), S(T(1, 2, 3, 2), scale_factor=2), dtypes=WIDE,
        accidents=("empty", "zero_dim"), errors=[E(T(1, 2, 3), 4)]),
]

OPS = LOSSES + NORMALIZATIONS + OTHERS
