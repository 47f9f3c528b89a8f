"""What the detectors share: coding boxes, matching them with the truth, sampling of matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import float32, int64, uint8
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.ops.create.constructors import full, zeros
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.random.sampling import randperm
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops.iou_losses import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
)
from tensorflow_lite_clone.vision.ops.misc import FrozenBatchNorm2d

Target = dict[str, Tensor]


def centres_and_sizes(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The centres (..., 2) and the sides (..., 2) of boxes (..., 4)."""
    sizes = boxes[..., 2:] - boxes[..., :2]
    return boxes[..., :2] + 0.5 * sizes, sizes


def encode_boxes(reference_boxes: Tensor, proposals: Tensor, weights: Tensor) -> Tensor:
    """What `BoxCoder` says of reference boxes (N, 4), seen from proposals (N, 4)."""
    centres, sizes = centres_and_sizes(proposals)
    reference_centres, reference_sizes = centres_and_sizes(reference_boxes)
    offsets = (reference_centres - centres) / sizes
    return weights * cat([offsets, (reference_sizes / sizes).log()], dim=1)


class BoxCoder:
    """Boxes as offsets (dx, dy, dw, dh) from others, times `weights`.

    `dx = (x - xa) / wa, dw = log(w / wa)`, and so on, of centres and sides. Source: Girshick et
    al., Rich Feature Hierarchies, 2014. `bbox_xform_clip` bounds the dw and dh that are decoded.
    """

    def __init__(
        self,
        weights: tuple[float, float, float, float],
        bbox_xform_clip: float = math.log(1000.0 / 16),
    ) -> None:
        self.weights = weights
        self.bbox_xform_clip = bbox_xform_clip

    def encode(
        self, reference_boxes: Sequence[Tensor], proposals: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """The offsets for each picture, of lists of boxes (L, 4)."""
        counts = [len(boxes) for boxes in reference_boxes]
        offsets = self.encode_single(cat(list(reference_boxes)), cat(list(proposals)))
        return offsets.split(counts, 0)

    def encode_single(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        weights = reference_boxes.new_tensor(self.weights)
        return encode_boxes(reference_boxes, proposals, weights)

    def decode(self, rel_codes: Tensor, boxes: Sequence[Tensor]) -> Tensor:
        """The boxes (N, C, 4) of offsets (N, 4 C) from a list of boxes, N together."""
        _assert(isinstance(boxes, list | tuple), "boxes should be a list or tuple of tensors")
        _assert(isinstance(rel_codes, Tensor), "rel_codes should be a tensor")
        anchors = cat(list(boxes))
        return self.decode_single(rel_codes, anchors).unflatten(1, (rel_codes.shape[1] // 4, 4))

    def decode_single(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """The boxes (N, 4 C) of offsets (N, 4 C) from boxes (N, 4)."""
        centres, sizes = centres_and_sizes(boxes.to(rel_codes.dtype)[:, None])
        codes = rel_codes.unflatten(1, (rel_codes.shape[1] // 4, 4))
        codes = codes / codes.new_tensor(self.weights)
        centres = codes[..., :2] * sizes + centres
        half = codes[..., 2:].clamp(max=self.bbox_xform_clip).exp() * sizes * 0.5
        return cat([centres - half, centres + half], dim=-1).flatten(1)


class BoxLinearCoder:
    """Boxes (..., 4) as distances of their edges from the centres of others.

    The distances are (left, top, right, bottom), in sides of the others if `normalize_by_size`.
    Source: Tian et al., FCOS, 2019.
    """

    def __init__(self, normalize_by_size: bool = True) -> None:
        self.normalize_by_size = normalize_by_size

    def _frame(self, boxes: Tensor) -> tuple[Tensor, Tensor | float]:
        centres = 0.5 * (boxes[..., :2] + boxes[..., 2:])
        sizes = boxes[..., 2:] - boxes[..., :2]
        return centres, cat([sizes, sizes], dim=-1) if self.normalize_by_size else 1.0

    def encode(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        """Where the edges of `proposals` are, seen from `reference_boxes`."""
        centres, sizes = self._frame(reference_boxes)
        edges = [centres - proposals[..., :2], proposals[..., 2:] - centres]
        return cat(edges, dim=-1) / sizes

    def decode(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        centres, sizes = self._frame(boxes.to(rel_codes.dtype))
        codes = rel_codes * sizes
        return cat([centres - codes[..., :2], centres + codes[..., 2:]], dim=-1)


class Matcher:
    """Gives each of N predictions the one of M true boxes that it fits best, or none.

    Called with how well each pair fits (M, N), it returns indices (N,), int64, which are
    `BELOW_LOW_THRESHOLD` where the best is below `low_threshold` and `BETWEEN_THRESHOLDS` where it
    is below `high_threshold`. With `allow_low_quality_matches` these do not count for predictions
    that no other fits a true box better than. ValueError where there is nothing to match.
    """

    BELOW_LOW_THRESHOLD = -1
    BETWEEN_THRESHOLDS = -2

    def __init__(
        self, high_threshold: float, low_threshold: float, allow_low_quality_matches: bool = False
    ) -> None:
        _assert(low_threshold <= high_threshold, "low_threshold should be <= high_threshold")
        self.high_threshold = high_threshold
        self.low_threshold = low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        if match_quality_matrix.numel() == 0:
            missing = "proposal" if len(match_quality_matrix) else "ground-truth"
            raise ValueError(f"No {missing} boxes available for one of the images during training")
        quality, best = match_quality_matrix.max(dim=0)
        matches = best.masked_fill(quality < self.high_threshold, self.BETWEEN_THRESHOLDS)
        matches = matches.masked_fill(quality < self.low_threshold, self.BELOW_LOW_THRESHOLD)
        if self.allow_low_quality_matches:
            self.set_low_quality_matches_(matches, best, match_quality_matrix)
        return matches

    def set_low_quality_matches_(
        self, matches: Tensor, all_matches: Tensor, match_quality_matrix: Tensor
    ) -> None:
        """Writes the best match, however bad, of predictions that fit a true box best (or tie)."""
        best_of_each = match_quality_matrix.max(dim=1, keepdim=True).values
        rows = (match_quality_matrix == best_of_each).any(0)
        matches[rows] = all_matches[rows]


class SSDMatcher(Matcher):
    """One threshold; and the prediction that fits a true box best has that box."""

    def __init__(self, threshold: float) -> None:
        super().__init__(threshold, threshold, allow_low_quality_matches=False)

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        matches = super().__call__(match_quality_matrix)
        best = match_quality_matrix.max(dim=1).indices
        matches[best] = arange(len(best), device=best.device)
        return matches


class BalancedPositiveNegativeSampler:
    """Draws `batch_size_per_image` of the matches, at most `positive_fraction` of them positive.

    Called with labels (L,) for each picture, of which those from 1 on are positive and 0 is
    negative, it returns two lists of masks (L,), uint8: of the positive and the negative ones.
    """

    def __init__(self, batch_size_per_image: int, positive_fraction: float) -> None:
        self.batch_size_per_image = batch_size_per_image
        self.positive_fraction = positive_fraction

    def __call__(self, matched_idxs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        most = int(self.batch_size_per_image * self.positive_fraction)
        pairs = []
        for labels in matched_idxs:
            positive, negative = (labels >= 1).nonzero()[:, 0], (labels == 0).nonzero()[:, 0]
            count = min(most, len(positive))
            rest = min(self.batch_size_per_image - count, len(negative))
            pairs.append((_drawn(labels, positive, count), _drawn(labels, negative, rest)))
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _drawn(labels: Tensor, candidates: Tensor, count: int) -> Tensor:
    """A mask of `count` of the candidates."""
    chosen = randperm(len(candidates), device=candidates.device)[:count]
    mask = zeros(labels.shape, dtype=uint8, device=labels.device)
    mask[candidates[chosen]] = 1
    return mask


def overwrite_eps(model: nn.Module, eps: float) -> None:
    """Sets the `eps` of all frozen norms: early weights were learned without one."""
    for module in model.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.eps = eps


def as_levels(features: Tensor | Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The maps by name, of a backbone that may give a single one."""
    return {"0": features} if isinstance(features, Tensor) else features


def retrieve_out_channels(model: nn.Module, size: tuple[int, int]) -> list[int]:
    """How many channels a model's maps have, for a picture of `size` (width, height)."""
    was_training = model.training
    device = next(iter(model.parameters())).device
    with no_grad():
        features = model.eval()(zeros((1, 3, size[1], size[0]), dtype=float32, device=device))
    model.train(was_training)
    return [level.shape[1] for level in as_levels(features).values()]


def _topk_min(input: Tensor, orig_kval: int, axis: int) -> int:
    return min(orig_kval, input.shape[axis])


BOX_LOSSES = {
    "ciou": complete_box_iou_loss,
    "diou": distance_box_iou_loss,
    "giou": generalized_box_iou_loss,
}


def _box_loss(
    type: str,
    box_coder: BoxCoder,
    anchors_per_image: Tensor,
    matched_gt_boxes_per_image: Tensor,
    bbox_regression_per_image: Tensor,
    cnf: Mapping[str, float] | None = None,
) -> Tensor:
    """The sum of a loss of offsets ("l1", "smooth_l1") or of boxes ("ciou", "diou", "giou").

    `cnf` may have a `beta` for the smooth one, an `eps` for those of boxes.
    """
    _assert(type in ("l1", "smooth_l1", *BOX_LOSSES), f"Unsupported loss: {type}")
    given = cnf or {}
    if type in BOX_LOSSES:
        boxes = box_coder.decode_single(bbox_regression_per_image, anchors_per_image)
        loss, eps = BOX_LOSSES[type], given.get("eps", 1e-7)
        return loss(boxes, matched_gt_boxes_per_image, reduction="sum", eps=eps)
    offsets = box_coder.encode_single(matched_gt_boxes_per_image, anchors_per_image)
    if type == "l1":
        return F.l1_loss(bbox_regression_per_image, offsets, reduction="sum")
    beta = given.get("beta", 1.0)
    return F.smooth_l1_loss(bbox_regression_per_image, offsets, reduction="sum", beta=beta)


def matches_of(
    matcher: Matcher, similarity: Callable[[Tensor, Tensor], Tensor], truth: Tensor, boxes: Tensor
) -> Tensor:
    """The true box (M, 4) of each of boxes (L, 4), or why it has none; see `Matcher`."""
    if len(truth) == 0:
        return full((len(boxes),), matcher.BELOW_LOW_THRESHOLD, dtype=int64, device=boxes.device)
    return matcher(similarity(truth, boxes))


def matched(truth: Tensor, matches: Tensor) -> Tensor:
    """What `truth` (M, ...) has for each match (L,); anything for those that are none."""
    if len(truth) == 0:
        return truth.new_zeros((len(matches), *truth.shape[1:]))
    return truth[matches.clamp(min=0)]
