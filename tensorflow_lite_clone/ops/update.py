"""Optimizer steps and what is done to all gradients: composites over lists of arrays.

A step takes parallel lists of arrays (parameters, gradients, states) and numbers, and returns the
new values of all lists but those it only reads; a device may override it with one fused kernel
that writes in place and returns None. They are the only composites that own what they are given.

Numbers that change from step to step may be zero-dim arrays on the device: step counts (Python
floats on the CPU), a learning rate, and `found_inf`, which makes a step change nothing where it is
not zero. So a step can be captured once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.autograd.inplace import write
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode, no_grad
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.tensor import Tensor

_PLAIN = (float, int, bool, type(None))


def update(
    step: Callable[..., Any],
    *lists: list[Tensor],
    read: tuple[int, ...] = (1,),
    **numbers: Any,
) -> None:
    """Run `step` on lists of tensors of one device, and write what it returns back into them.

    Lists at the positions `read` are only read. Numbers may be tensors, or lists of them.
    """
    update_with(step, lists, numbers, read)


def update_with(
    step: Callable[..., Any],
    lists: tuple[list[Tensor], ...],
    numbers: dict[str, Any],
    read: tuple[int, ...] = (1,),
) -> None:
    """`update` with numbers in a dictionary of its own."""
    if not lists[0]:
        return
    if mode.dispatching and (mode.dispatch_modes or _is_dispatched(lists)):
        with no_grad():
            if interpreters.dispatch.update(step, lists, numbers) is NotImplemented:
                update_recorded(step, *lists, read=read, **numbers)
        return
    backend = lists[0][0]._storage.backend
    for name, value in numbers.items():
        if value.__class__ not in _PLAIN:
            numbers[name] = _operand(value, backend)
    arrays = [[t._storage.array for t in tensors] for tensors in lists]
    results = getattr(backend.F, step.__name__)(*arrays, **numbers)
    if results is None:
        for i, tensors in enumerate(lists):
            if tensors and i not in read:
                count_writes(tensors)
        return
    written = [tensors for i, tensors in enumerate(lists) if i not in read]
    for tensors, values in zip(written, results, strict=True):
        for tensor, value in zip(tensors, values, strict=True):
            write(tensor, value)


def _is_dispatched(lists: tuple[list[Tensor], ...]) -> bool:
    """Whether a class says what operations on some of the tensors do."""
    return any([t._storage.backend.dispatches for tensors in lists for t in tensors])


def count_writes(tensors: list[Tensor]) -> None:
    """Give tensors that a device has written to their next versions."""
    for tensor in tensors:
        storage = tensor._storage
        if hooks.on_memory_write:
            storage.bump()
        else:
            (storage.root or storage).version += 1


def update_recorded(
    step: Callable[..., Any],
    *lists: list[Tensor],
    read: tuple[int, ...] = (1,),
    **numbers: Any,
) -> None:
    """`update` as a part of the graph, for which numbers may be tensors that want gradients.

    Raises RuntimeError if a tensor that is written is a leaf that wants a gradient.
    """
    if not lists[0]:
        return
    F = recorded(lists[0][0]._storage.backend)
    # What is written in the end may be needed in the backward pass.
    values = [
        tensors if i in read else [t.clone() for t in tensors] for i, tensors in enumerate(lists)
    ]
    results = getattr(F, step.__name__)(*values, **numbers)
    written = [tensors for i, tensors in enumerate(lists) if i not in read]
    for tensors, news in zip(written, results, strict=True):
        for tensor, new in zip(tensors, news, strict=True):
            tensor.copy_(new)


def _operand(value: Any, backend: Any) -> Any:
    """Tensors as arrays of `backend`, from another device as numbers; what is none as it is."""
    if isinstance(value, Tensor):
        storage = value._storage
        return storage.array if storage.backend is backend else value.item()
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        return [tensor._storage.array for tensor in value]
    return value


def by_device(tensors: list[Tensor]) -> list[list[Tensor]]:
    """The tensors in one list per device."""
    if not tensors:
        return []
    backend = tensors[0]._storage.backend
    for tensor in tensors:
        if tensor._storage.backend is not backend:
            break
    else:
        return [tensors]
    parts: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        parts.setdefault(tensor._storage.backend, []).append(tensor)
    return list(parts.values())


def of_one_kind(tensors: list[Tensor]) -> bool:
    """Whether tensors are not empty, real floating-point, of one dtype and on one device.

    Those of classes with `__torch_dispatch__` are of no kind that is known here.
    """
    if not tensors:
        return False
    first = tensors[0]._storage
    if first.backend.dispatches:
        return False
    kinds = {(t._storage.physical.dtype, t._storage.backend) for t in tensors}
    floating = first.backend.dtypes[first.array.dtype].kind == "f"
    return len(kinds) == 1 and floating and all([t._storage.physical.size for t in tensors])


@composite
def count_steps(F, steps, *, found_inf=None):
    """t = t + 1."""
    one = 1 if found_inf is None else F.astype(found_inf == 0, float32)
    return ([step + one for step in steps],)


@composite
def count_on_host(F, steps):
    """t = t + 1 in the arrays themselves; the new counts as Python numbers."""
    counts = []
    for step in steps:
        count = float(step.item()) + 1  # it may have dimensions
        F.backend.write(step, count)
        counts.append(count)
    return counts


@composite
def read_on_host(F, numbers):
    """Zero-dim arrays as Python numbers."""
    return [float(number.item()) for number in numbers]


@composite
def zero_each(F, tensors):
    """Zeros."""
    return ([0] * len(tensors),)


@composite
def copy_each(F, targets, sources):
    """The sources, in the places of the targets."""
    return (list(sources),)


@composite
def clamp_each(F, tensors, *, low, high):
    """Every element in [low, high]; NaN stays."""
    return ([F.clip(x, low, high) for x in tensors],)


@composite
def grad_norm(F, tensors, *, order):
    """The norm of all elements of all tensors together."""
    norms = F.stack([_norm(F, x, order) for x in tensors])
    return _norm(F, norms, order)


def _norm(F: Any, x: Any, order: float) -> Any:
    return F.vector_norm(x, ord=order, axis=tuple(range(x.ndim)), keepdims=False, shape=x.shape)


def total_norm(tensors: list[Tensor], order: float) -> Tensor:
    """`grad_norm` of tensors of one kind, zero-dim, in their dtype and on their device."""
    backend = tensors[0]._storage.backend
    result = backend.F.grad_norm([t._storage.array for t in tensors], order=order)
    return wrap(backend.asarray(result), backend)


@composite
def clip_to_norm(F, tensors, totals, *, max_norm):
    """x = x min(1, max_norm / (total + 1e-6)), `total` being the one element of `totals`.

    An infinite or NaN total is not caught.
    """
    (total,) = totals
    dtype = total.dtype  # every operation is rounded to it, as if on tensors
    factor = F.astype(max_norm / F.astype(total + 1e-6, dtype), dtype)
    factor = F.clip(factor, None, 1.0)
    return ([x * factor for x in tensors],)


@composite
def amp_unscale(F, grads, found, *, inv_scale):
    """g = g inv_scale; the one element of `found` becomes 1 if any g is infinite or NaN."""
    (flag,) = found
    for g in grads:
        flag = F.where(F.all(F.isfinite(g)), flag, 1.0)
    return [g * inv_scale for g in grads], [flag]


@composite
def amp_update_scale(
    F, scale, tracker, *, found_inf, growth_factor, backoff_factor, growth_interval
):
    """The loss scale s (the one element of `scale`) and its count n of good steps in a row.

    After a bad step s = s backoff_factor and n = 0. After a good one n = n + 1, and when that is
    growth_interval s = s growth_factor, unless that is infinite, and n = 0.
    """
    (s,), (n,) = scale, tracker
    bad = found_inf != 0
    successful = n + 1
    due = successful == growth_interval
    grown = s * growth_factor
    good = F.where(F.logical_and(due, F.isfinite(grown)), grown, s)
    new = F.where(bad, s * backoff_factor, good)
    return [new], [F.where(F.logical_or(bad, due), 0, successful)]


def unscale(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """`amp_unscale` on tensors of one device: all in place, `found_inf` and `inv_scale` zero-dim.

    ``torch._amp_foreach_non_finite_check_and_unscale_``, with gradients of any floating dtypes.
    """
    update(amp_unscale, grads, [found_inf], read=(), inv_scale=inv_scale)


def update_scale(
    scale: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> None:
    """`amp_update_scale` on zero-dim tensors, float32 and int32: ``torch._amp_update_scale_``."""
    update(
        amp_update_scale,
        [scale],
        [growth_tracker],
        read=(),
        found_inf=found_inf,
        growth_factor=growth_factor,
        backoff_factor=backoff_factor,
        growth_interval=growth_interval,
    )
