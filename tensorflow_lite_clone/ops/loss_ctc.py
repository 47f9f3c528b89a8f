"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._losses import finish
from tensorflow_lite_clone.ops._samples import per_sample
from tensorflow_lite_clone.ops.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor

#: The logarithm of an impossible path: finite, so that gradients are.
_NEVER = -1e30


@public("functional")
@per_sample("targets", "input_lengths", "target_lengths")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """``-log`` of the probability that frames spell their targets.

    `log_probs` is (T, N, C) or (T, C); `targets` is (N, S), (S,) or all concatenated. Lengths
    are per sequence. 'mean' divides each loss by its target's length first. Losses of targets
    that do not fit are infinite, or zero with `zero_infinity`. (Graves et al., 2006.)
    """
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    batch = log_probs.shape[1]
    steps = _lengths(input_lengths)
    lengths = _lengths(target_lengths)
    for name, found in (("input_lengths", steps), ("target_lengths", lengths)):
        if len(found) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    if max(steps, default=0) > log_probs.shape[0]:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {log_probs.shape[0]}, but got value "
            f"{max(steps)}"
        )
    labels = _extended(targets, lengths, blank)
    states = len(labels[0])
    index = targets.new_tensor(labels, dtype=int64)
    frames = log_probs.gather(2, index.expand(log_probs.shape[0], batch, states))
    # A path may skip a blank between two different labels.
    skips = [[i > 1 and row[i] != blank and row[i] != row[i - 2] for i in range(states)]
             for row in labels]  # fmt: skip
    no_skip = targets.new_tensor([[not skip for skip in row] for row in skips]).bool()
    running = targets.new_tensor([[t < n for n in steps] for t in range(log_probs.shape[0])])
    starts = targets.new_tensor([[i > 1 for i in range(states)]] * batch).bool()
    alpha = frames[0].masked_fill(starts, _NEVER)
    one, two = (alpha.new_full((batch, i), _NEVER) for i in (1, 2))
    for t in range(1, max(steps, default=0)):
        step = cat([one, alpha[:, :-1]], 1)
        skip = cat([two, alpha[:, :-2]], 1)[:, :states].masked_fill(no_skip, _NEVER)
        after = stack([alpha, step, skip]).logsumexp(0) + frames[t]
        alpha = after.where(running[t].bool().unsqueeze(1), alpha)
    ends = [[2 * n, max(2 * n - 1, 0)] for n in lengths]
    last = alpha.gather(1, targets.new_tensor(ends, dtype=int64))
    empty = targets.new_tensor([[False, n == 0] for n in lengths]).bool()
    losses = -last.masked_fill(empty, _NEVER).logsumexp(1)
    losses = losses.masked_fill(losses > -_NEVER / 2, 0 if zero_infinity else float("inf"))
    if reduction == "mean":
        losses = losses / losses.new_tensor([max(n, 1) for n in lengths])
    return losses.squeeze(0) if single and reduction == "none" else finish(losses, reduction)


def _lengths(lengths: Any) -> list[int]:
    if isinstance(lengths, Tensor):
        lengths = lengths.tolist()
    return [lengths] if isinstance(lengths, int) else list(lengths)


def _extended(targets: Tensor, lengths: list[int], blank: int) -> list[list[int]]:
    """Per sequence its labels with blanks between and around, padded with blanks."""
    flat = targets.tolist()
    if targets.ndim == 1:
        starts = [sum(lengths[:i]) for i in range(len(lengths))]
        rows = [flat[start : start + n] for start, n in zip(starts, lengths)]
    else:
        rows = [row[:n] for row, n in zip(flat, lengths)]
    width = 2 * max(lengths, default=0) + 1
    labels = []
    for row in rows:
        extended = [blank]
        for label in row:
            extended += [label, blank]
        labels.append(extended + [blank] * (width - len(extended)))
    return labels
