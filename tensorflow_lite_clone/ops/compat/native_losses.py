"""Losses under the signatures that they have in `torch`: reductions are numbers.

1 is 'mean', 2 'sum'; without one, or with any other, nothing is reduced, as in PyTorch. What is
computed stands at the functions of `nn.functional`; checks that PyTorch makes only there are
left out here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.ops._samples import per_sample
from tensorflow_lite_clone.ops.linalg.norms import pairwise_distance
from tensorflow_lite_clone.ops.nn import loss_ctc, loss_elementwise, loss_margin
from tensorflow_lite_clone.ops.nn._losses import finish
from tensorflow_lite_clone.tensor import Tensor


def _word(function: str, reduction: Any) -> str:
    """The name of a reduction; TypeError unless it is given as a number."""
    if not isinstance(reduction, int):
        raise TypeError(
            f"{function}(): argument 'reduction' must be int, not {type(reduction).__name__}"
        )
    return {1: "mean", 2: "sum"}.get(reduction, "none")


@public("torch")
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    word = _word("hinge_embedding_loss", reduction)
    return loss_margin.hinge_embedding_loss(input, target, margin, reduction=word)


@public("torch")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``, the three broadcast."""
    word = _word("margin_ranking_loss", reduction)
    return finish((-target * (input1 - input2) + margin).clamp_min(0), word)


@public("torch")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    word = _word("cosine_embedding_loss", reduction)
    return loss_margin.cosine_embedding_loss(input1, input2, target, margin, reduction=word)


@public("torch")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` in `pairwise_distance`."""
    word = _word("triplet_margin_loss", reduction)
    distance = partial(pairwise_distance, p=p, eps=eps)
    return loss_margin.triplet(distance, anchor, positive, negative, margin, swap, word)


@public("torch")
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """``exp(input) - target * input``, or ``input - target * log(input + eps)``."""
    word = _word("poisson_nll_loss", reduction)
    return loss_margin.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=word)


@public("torch")
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """``target * (log(target) - input)``; `log_target` says that the target is a logarithm."""
    word = _word("kl_div", reduction)
    values = loss_elementwise.kl_div(input, target, reduction="none", log_target=log_target)
    return finish(values, word)


@public("torch")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """The cross-entropy between ``sigmoid(input)`` and probabilities."""
    word = _word("binary_cross_entropy_with_logits", reduction)
    shape = broadcast_shapes(input.shape, target.shape)
    return loss_elementwise.binary_cross_entropy_with_logits(
        input.expand(shape), target.expand(shape), weight, reduction=word, pos_weight=pos_weight
    )


@public("torch")
@per_sample("targets", "input_lengths", "target_lengths")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """``-log`` of the probability that frames spell their targets; see `nn.functional.ctc_loss`."""
    word = _word("ctc_loss", reduction)
    return loss_ctc.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, word, zero_infinity
    )
