"""Cross-entropy of class indices and of probabilities, and the negative log-likelihood."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_first_output
from tensorflow_lite_clone.core.dtypes import float32, int64, uint8
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.nn._losses import finish, reduction_of
from tensorflow_lite_clone.ops.nn.softmax import log_softmax
from tensorflow_lite_clone.ops.pointwise._operands import expect_constant, refuse
from tensorflow_lite_clone.tensor import Tensor


def _cross_entropy_label(node: Any) -> str:
    """PyTorch's name for the last of the ops that it makes a cross entropy of."""
    return "Add" if node.parameters["smoothing"] else "NllLoss"


class CrossEntropy(Op):
    """``-w[t] * log_softmax(x)[t]`` of class indices t, smoothed and reduced; and logsumexp(x).

    `axis` is that of the classes, which the targets lack. The logarithm of the sum of exponentials
    is for the gradient only: with x it gives the softmax, and it is one number per target.
    """

    cost = costs.loss_of_logarithms
    label = _cross_entropy_label
    nondifferentiable = (1,)
    auxiliary_outputs = (1,)

    def forward(F, x, target, weight, *, axis, reduction, ignore_index, smoothing):
        dtype = x.dtype
        classes = x.shape[axis]
        F.check_labels(target, classes, ignore_index)
        if dtype.itemsize == 2:
            x = F.astype(x, float32)
        top = F.max(x, axis=axis, keepdims=True)
        x = x - top
        total = F.log(F.sum(F.exp(x), axis=axis, keepdims=True))
        label, w = _labels_and_weights(F, target, weight, ignore_index, x.dtype)
        picked = F.take_along_axis(x, F.expand_dims(label, axis=axis), axis=axis)
        ignored = target == ignore_index
        loss = F.where(ignored, 0, w * F.squeeze(total - picked, axis=axis))
        if smoothing:
            x = total - x  # now the negative logarithm of the softmax
            if weight is not None:
                x = x * F.reshape(weight, _class_shape(x, axis))
            smooth = F.where(ignored, 0, F.sum(x, axis=axis))
            loss = loss * (1 - smoothing) + smooth * (smoothing / classes)
        if reduction != "none":
            loss = F.sum(loss) / F.sum(w) if reduction == "mean" else F.sum(loss)
        return F.astype(loss, dtype), F.squeeze(total + top, axis=axis)

    def backward_x(F, g, x, target, weight, out1, *, axis, reduction, ignore_index, smoothing):
        if out1 is None:
            out1 = F.logsumexp(x, axis=(axis,), keepdims=False, shape=x.shape)
        return F.cross_entropy_backward(
            g,
            x,
            out1,
            target,
            weight,
            axis=axis,
            reduction=reduction,
            ignore_index=ignore_index,
            smoothing=smoothing,
        )


@composite
def cross_entropy_backward(
    F, g, x, lse, target, weight, *, axis, reduction, ignore_index, smoothing
):
    """``gx = g * (y * sum(q) - q)``: y is the softmax, q what each class is wanted to have.

    q is ``w[t]`` at the target, and ``(1 - smoothing) * q + smoothing / C * w`` when smoothed.
    """
    y = F.exp(x - F.expand_dims(lse, axis=axis))
    y = y / F.sum(y, axis=axis, keepdims=True)  # which is 1, but for the rounding of a large lse
    label, w = _labels_and_weights(F, target, weight, ignore_index, y.dtype)
    if reduction == "mean":
        g = g / _total(F, w)
    hot = F.expand_dims(label, axis=axis) == _class_numbers(F, y, axis)
    if not smoothing:
        gx = (y - F.astype(hot, y.dtype)) * F.expand_dims(g * w, axis=axis)
        return F.astype(gx, x.dtype, copy=False)
    classes = y.shape[axis]
    weighted = F.astype(hot, y.dtype) * F.expand_dims(w, axis=axis) * (1 - smoothing)
    valid = F.astype(F.expand_dims(target != ignore_index, axis=axis), y.dtype)
    smooth = valid * (smoothing / classes)
    if weight is not None:
        smooth = smooth * F.reshape(weight, _class_shape(y, axis))
    weighted = weighted + smooth
    g = F.expand_dims(g, axis=axis) if reduction == "none" else g
    gx = (y * F.sum(weighted, axis=axis, keepdims=True) - weighted) * g
    return F.astype(gx, x.dtype, copy=False)


class NllLoss(Op):
    """``-w[t] * x[t]`` of log-probabilities x and class indices t, reduced."""

    cost = costs.Cost(costs.per_operand(position=1), costs.per_operand(position=2))
    constant_in = ("x",)

    def forward(F, x, target, weight, *, axis, reduction, ignore_index):
        F.check_labels(target, x.shape[axis], ignore_index)
        label, w = _labels_and_weights(F, target, weight, ignore_index, x.dtype)
        index = F.expand_dims(label, axis=axis)
        picked = F.squeeze(F.take_along_axis(x, index, axis=axis), axis=axis)
        loss = F.where(w == 0, 0, -picked * w)
        if reduction != "none":
            loss = F.sum(loss) / F.sum(w) if reduction == "mean" else F.sum(loss)
        return loss

    def backward_x(F, g, x, target, weight, *, axis, reduction, ignore_index):
        return F.nll_loss_backward(
            g,
            target,
            weight,
            axis=axis,
            classes=x.shape[axis],
            reduction=reduction,
            ignore_index=ignore_index,
        )


@composite
def nll_loss_backward(F, g, target, weight, *, axis, classes, reduction, ignore_index):
    """``gx = -g * w[t]`` at the target, zero elsewhere."""
    label, w = _labels_and_weights(F, target, weight, ignore_index, g.dtype)
    if reduction == "mean":
        g = g / _total(F, w)
    values = F.expand_dims(-g * w, axis=axis)
    index = F.expand_dims(label, axis=axis)
    return F.put_along_axis(values, index, axis=axis, size=classes)


def _labels_and_weights(
    F: Any, target: Any, weight: Any, ignore_index: int, dtype: Any
) -> tuple[Any, Any]:
    """The class indices with ignored ones as 0, and each one's weight: 0 where ignored."""
    valid = target != ignore_index
    label = F.where(valid, target, 0)
    if weight is None:
        return label, F.astype(valid, dtype)
    return label, F.where(valid, F.take(weight, label, axis=0), 0)


def _total(F: Any, w: Any) -> Any:
    """The sum of weights to divide a gradient by: zero gradients, not NaN, if all are ignored."""
    total = F.sum(w)
    return F.where(total == 0, 1, total)


def _class_shape(x: Any, axis: int) -> tuple:
    return (x.shape[axis],) + (1,) * (x.ndim - axis - 1)


def _class_numbers(F: Any, x: Any, axis: int) -> Any:
    return F.reshape(F.arange(x.shape[axis]), _class_shape(x, axis))


def _check_index_targets(input: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The targets as int64, in the shape of `input` without its classes; torch's errors else."""
    dtype = target.dtype
    shape, target_shape = input.shape, target.shape
    if len(shape) == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {len(shape)})")
    batch = target_shape[0] if target_shape else 0
    if len(shape) > 1 and batch != shape[0]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({batch})."
        )
    if len(shape) <= 2 and len(target_shape) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(shape) == 1:
        if len(target_shape) == 1 and target_shape[0] != 1:
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {target_shape[0]}"
            )
        target = target.reshape(())
    elif shape[2:] != target_shape[1:]:
        if len(shape) != 4:
            expected = [shape[0], *shape[2:]]
            raise RuntimeError(f"Expected target size {expected}, got {list(target_shape)}")
        if len(target_shape) != 3:
            raise RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got targets of "
                f"dimension: {len(target_shape)}"
            )
        raise RuntimeError(
            f"size mismatch (got input: {list(shape)} , target: {list(target_shape)}"
        )
    if dtype is not int64:
        if dtype is not uint8:
            raise RuntimeError(
                f"expected target dtype to be Long or Byte, but got {dtype.short_name}"
            )
        target = target.to(int64)
    if weight is not None:
        classes = shape[1] if len(shape) > 1 else shape[0]
        if weight.ndim != 1 or weight.shape[0] != classes:
            raise RuntimeError(
                f"weight tensor should be defined either for all {classes} classes or no classes "
                f"but got weight tensor of shape: {list(weight.shape)}"
            )
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype.short_name} but found {weight.dtype.short_name}"
            )
        expect_constant("nll_loss_forward", "weight", weight)
    return target


@public("functional")
@autocasts("cross_entropy_loss", "nll_loss")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy of unnormalised `input` (N, C, ...) or (C,) and the targets.

    Targets are class indices (int64, the shape without C) or probabilities (floats, the shape of
    `input`). `weight` is a factor per class; 'mean' divides by the sum of the targets' weights,
    for probabilities by N. Raises IndexError for indices out of range, ValueError or RuntimeError
    for shapes and dtypes that do not match.
    """
    if size_average is not None or reduce is not None or reduction != "mean":
        reduction = reduction_of(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    x, t = input._storage.array, target._storage.array
    if x.dtype.kind in "biu":
        refuse("log_softmax_lastdim_kernel_impl", input.dtype)
    if t.shape == x.shape:
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    # The usual case is recognised without asking for anything else.
    if (
        t.ndim != 1
        or x.ndim != 2
        or weight is not None
        or t.shape[0] != x.shape[0]
        or t.dtype.kind != "i"
        or t.dtype.itemsize != 8
    ):
        target = _check_index_targets(input, target, weight)
    if not (x.size or t.size):
        return finish(input.sum(1 if x.ndim > 1 else 0), reduction)
    parameters = {
        "axis": 1 if x.ndim > 1 else 0,
        "reduction": reduction,
        "ignore_index": ignore_index,
        "smoothing": label_smoothing,
    }
    return apply_first_output(CrossEntropy, input, target, weight, parameters)


def _of_probabilities(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    if target.dtype.kind != "f":
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.short_name}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = 1 if input.ndim > 1 else 0
    classes = input.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            "cross_entropy: weight tensor should be defined either for all "
            f"{classes} classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / (classes or 1)
    weighted = target
    if weight is not None:
        weighted = target * weight.reshape((classes,) + (1,) * (input.ndim - axis - 1))
    values = -(weighted * log_softmax(input, axis)).sum(axis)
    if reduction == "mean":
        return values.sum() / (values.numel() if classes else 0)
    return finish(values, reduction)


@public("functional")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[t] * input[t]`` of log-probabilities (N, C, ...) or (C,) and class indices t.

    'mean' divides by the sum of the targets' weights. Raises IndexError for indices out of range,
    ValueError or RuntimeError for shapes and dtypes that do not match.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    target = _check_index_targets(input, target, weight)
    if input.dtype.kind != "f":
        refuse("nll_loss", input.dtype)
    return apply(
        NllLoss,
        input,
        target,
        weight,
        axis=1 if input.ndim > 1 else 0,
        reduction=reduction,
        ignore_index=ignore_index,
    )
