"""The focal loss."""

from __future__ import annotations

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops.iou_losses import reduced


def sigmoid_focal_loss(
    inputs: Tensor,
    targets: Tensor,
    alpha: float = 0.25,
    gamma: float = 2,
    reduction: str = "none",
) -> Tensor:
    """Binary cross entropy of logits, less for what is already right: `a (1 - p)^gamma ce`.

    `p` is the probability given to the target (0 or 1, same shape), `a` is `alpha` for 1 and
    `1 - alpha` for 0, or 1 if alpha is -1. Raises ValueError for another alpha outside [0, 1].
    Source: Lin et al., Focal Loss for Dense Object Detection, 2017.
    """
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(
            f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore."
        )
    p = inputs.sigmoid()
    entropy = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = entropy * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return reduced(loss, reduction)
