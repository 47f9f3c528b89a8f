"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._samples import expect_values, integers, per_sample
from tensorflow_lite_clone.ops.nn._losses import finish, reduction_of
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.tensor import Tensor

#: The logarithm of an impossible path: finite, so that its difference from another one is.
_NEVER = -1e30


class CtcLoss(Op):
    """``-log`` of the sum over all paths through the states of each sequence.

    `x` is (T, N, C), `labels` (N, S) the class of each state. `starts`, `skips` and `ends` (N, S)
    are 0 where a path may start, may come from the last state but one, and may end; elsewhere
    `_NEVER`. `running` (T, N, 1) is true for the frames of a sequence.
    """

    def forward(F, x, labels, starts, skips, ends, running, *, zero_infinity):
        if x.dtype.itemsize == 2:
            word = "Half" if x.dtype.kind == "f" else "BFloat16"
            raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{word}'")
        alphas = _alphas(F, _frames(F, x, labels), starts, skips, running)
        losses = -_sum(F, alphas[-1] + ends, 1)
        return F.where(losses > -_NEVER / 2, 0 if zero_infinity else math.inf, losses)

    def backward_x(F, g, x, labels, starts, skips, ends, running, *, zero_infinity):
        return F.ctc_loss_backward(
            g, x, labels, starts, skips, ends, running, zero_infinity=zero_infinity
        )


@composite
def ctc_loss_backward(F, g, x, labels, starts, skips, ends, running, *, zero_infinity):
    """``gx = g * (exp(x) - p)``, p the probability of a class in a frame, given the target.

    The derivative is ``-g * p``. PyTorch adds exp(x), which makes it the gradient of the scores
    that x is the log_softmax of; a log_softmax hands it on as it is.
    """
    frames = _frames(F, x, labels)
    alphas = _alphas(F, frames, starts, skips, running)
    losses = F.expand_dims(-_sum(F, alphas[-1] + ends, 1), axis=1)
    betas = [ends]
    for t in range(len(alphas) - 2, 0, -1):
        beta = _after(F, betas[-1] + frames[t], skips)
        betas.append(F.where(running[t], beta, betas[-1]))
    impossible = losses > -_NEVER / 2
    paths = F.stack(alphas[1:], axis=0) + F.stack(betas[::-1], axis=0) + losses
    paths = F.exp(F.where(impossible, _NEVER, paths))
    index = F.broadcast_to(labels, frames.shape)
    gx = F.exp(x) - F.scatter_add(F.zeros_like(x), index, paths, axis=2)
    gx = F.where(impossible, 0 if zero_infinity else math.nan, F.expand_dims(g, axis=1) * gx)
    return F.where(running, gx, 0)


def _frames(F: Any, x: Any, labels: Any) -> Any:
    """(T, N, S): what x has for the class of each state, at least `_NEVER`."""
    index = F.broadcast_to(labels, (x.shape[0], *labels.shape))
    return F.maximum(F.gather(x, index, axis=2, shape=x.shape), _NEVER)


def _alphas(F: Any, frames: Any, starts: Any, skips: Any, running: Any) -> list:
    """Before the first frame and after each: log-sums over the paths that have come to a state."""
    alphas = [starts]
    for t in range(frames.shape[0]):
        alpha = _before(F, alphas[-1], skips) + frames[t]
        alphas.append(F.where(running[t], alpha, alphas[-1]))
    return alphas


def _before(F: Any, alpha: Any, skips: Any) -> Any:
    """Log-sums over the states that a path may come from: this one and the two before it."""
    one, two = [F.concat([_never(F, alpha, n), alpha], axis=1)[:, : alpha.shape[1]] for n in (1, 2)]
    return _sum(F, F.stack([alpha, one, F.maximum(two + skips, _NEVER)], axis=0), 0)


def _after(F: Any, beta: Any, skips: Any) -> Any:
    """Log-sums over the states that a path may go to: this one and the two after it."""
    skipped = F.maximum(beta + skips, _NEVER)
    one, two = [F.concat([x, _never(F, x, n)], axis=1)[:, n:] for n, x in ((1, beta), (2, skipped))]
    return _sum(F, F.stack([beta, one, two], axis=0), 0)


def _never(F: Any, x: Any, count: int) -> Any:
    return F.full((x.shape[0], count), _NEVER, dtype=x.dtype)


def _sum(F: Any, x: Any, axis: int) -> Any:
    return F.logsumexp(x, axis=(axis,), keepdims=False, shape=x.shape)


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

    `log_probs` is (T, N, C) or (T, C), normalized along C; `targets` is (N, S), (S,) or all
    concatenated. Lengths are per sequence. 'mean' divides each loss by its target's length first.
    Losses of targets that do not fit are infinite, and their gradients NaN; or zero with
    `zero_infinity`. The gradient is that of the scores whose log_softmax `log_probs` is. Raises
    RuntimeError for sizes, lengths and labels out of range.
    """
    reduction = reduction_of(None, None, reduction)
    if log_probs.dtype.kind != "f":
        refuse("ctc_loss_cpu", log_probs.dtype)
    single = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    if x.ndim != 3:
        raise RuntimeError(f"Expected log_probs of 2 or 3 dimensions, but got {list(x.shape)}")
    if not x.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    frames, batch, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range, 0 to {classes - 1}, but got {blank}")
    steps = _lengths("input_lengths", input_lengths, batch, frames)
    lengths = _lengths("target_lengths", target_lengths, batch, None)
    rows = _rows(targets, lengths, classes)
    width = 2 * max(lengths) + 1
    labels = [[blank] * width for _ in rows]
    for states, row in zip(labels, rows):
        states[1 : 2 * len(row) : 2] = row  # blanks between them and around
    # A path may leave out the blank between two different labels.
    skips = [[i > 1 and row[i] != row[i - 2] for i in range(width)] for row in labels]
    starts = [[not i for i in range(width)]] * batch
    ends = [[2 * n - 1 <= i <= 2 * n for i in range(width)] for n in lengths]
    running = [[[t < n] for n in steps] for t in range(frames)]
    gates = [x.new_tensor([[0 if is_open else _NEVER for is_open in row] for row in gate])
             for gate in (starts, skips, ends)]  # fmt: skip
    losses = apply(
        CtcLoss,
        x,
        targets.new_tensor(labels, dtype=int64),
        *gates,
        targets.new_tensor(running).bool(),
        zero_infinity=zero_infinity,
    )
    if reduction == "mean":
        losses = losses / losses.new_tensor([max(n, 1) for n in lengths])
    return losses.squeeze(0) if single and reduction == "none" else finish(losses, reduction)


def _lengths(name: str, lengths: Any, batch: int, most: int | None) -> list[int]:
    """One per sequence, in [0, most]; RuntimeError for others."""
    if isinstance(lengths, Tensor):
        if lengths.dtype.kind not in "iu":
            raise RuntimeError(f"{name} must be integral, but got {lengths.dtype}")
        expect_values("_ctc_loss.Tensor", lengths)
        lengths = lengths.reshape(-1).tolist()
    found = [lengths] if is_int(lengths) else list(lengths)
    if not all([is_int(n) for n in found]):
        raise TypeError(f"ctc_loss(): argument '{name}' must be tuple of ints, but got {found}")
    found = [n.__index__() for n in found]
    if len(found) != batch:
        raise RuntimeError(f"{name} must be of size batch_size, {batch}, but got {len(found)}")
    for n in found:
        if n < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {n}")
        if most is not None and n > most:
            raise RuntimeError(f"Expected {name} to have value at most {most}, but got value {n}")
    return found


def _rows(targets: Tensor, lengths: list[int], classes: int) -> list[list[int]]:
    """The labels of each sequence; RuntimeError where there are too few, too many, or others."""
    shape = tuple(targets.shape)
    if len(shape) not in (1, 2):
        raise RuntimeError(f"Expected targets of 1 or 2 dimensions, but got {list(shape)}")
    flat = integers(targets)
    if len(shape) == 1:
        if shape[0] != sum(lengths):
            raise RuntimeError(
                f"Expected {sum(lengths)} targets, the sum of target_lengths, but got {shape[0]}"
            )
        starts = [sum(lengths[:i]) for i in range(len(lengths))]
        rows = [flat[start : start + n] for start, n in zip(starts, lengths)]
    else:
        if shape[0] != len(lengths) or shape[1] < max(lengths):
            raise RuntimeError(
                f"Expected targets of size {len(lengths)} x at least {max(lengths)}, the batch and "
                f"the largest target length, but got {list(shape)}"
            )
        rows = [row[:n] for row, n in zip(flat, lengths)]
    for row in rows:
        for label in row:
            if not 0 <= label < classes:
                raise RuntimeError(f"Expected targets in [0, {classes}), but got the label {label}")
    return rows
