"""Single steps as functions of lists of tensors, as ``torch.optim._functional``.

Each updates parameters, states and `state_steps` (zero-dim tensors) in place. All tensors of a call
are on one device. What only chooses one of PyTorch's implementations is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.ops import steps, update
from tensorflow_lite_clone.ops.complex_numbers import view_as_real
from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.tensor import Tensor

Tensors = list[Tensor]


def run_step(
    step: Callable[..., Any], *lists: Tensors, differentiable: bool = False, **numbers: Any
) -> None:
    """Run a step of `ops` on parameters, gradients and states; complex ones as pairs of reals."""
    run_step_with(step, lists, numbers, differentiable)


def run_step_with(
    step: Callable[..., Any], lists: tuple[Tensors, ...], numbers: dict, differentiable: bool
) -> None:
    """`run_step` with numbers in a dictionary of its own."""
    for param in lists[0]:
        if param._storage.laid.dtype.kind == "c":
            lists = tuple([[_as_real(tensor) for tensor in tensors] for tensors in lists])
            break
    if differentiable:
        update.update_recorded(step, *lists, **numbers)
    else:
        update.update_with(step, lists, numbers)


def advance(counts: Tensors, found_inf: Tensor | None = None) -> list[Any]:
    """Add 1 to step counts. The new ones: on the CPU as numbers, else the tensors themselves."""
    if not counts or not counts[0].is_cpu:
        update.update(update.count_steps, counts, read=(), found_inf=found_inf)
        return counts
    backend = counts[0]._storage.backend
    steps: list[Any] = backend.F.count_on_host([count._storage.array for count in counts])
    for count in counts:
        count._storage.bump()
    return steps


def _as_real(tensor: Tensor) -> Tensor:
    return view_as_real(tensor) if tensor.is_complex() else tensor


def _advanced(state_steps: Tensors, found_inf: Tensor | None = None) -> list[Any]:
    if not all([isinstance(count, Tensor) for count in state_steps]):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )
    return advance(state_steps, found_inf)


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """`sgd_step`; buffers that are None are made, and put into their list."""
    first, buffers = [], []
    if momentum:
        for i, param in enumerate(params):
            buffer = momentum_buffer_list[i]
            first.append(buffer is None)
            buffers.append(zeros_like(param) if buffer is None else buffer)
        momentum_buffer_list[: len(params)] = buffers
    run_step(
        update.sgd_step,
        params,
        d_p_list,
        buffers,
        lr=lr,
        momentum=momentum,
        dampening=dampening,
        weight_decay=weight_decay,
        nesterov=nesterov,
        maximize=maximize,
        first=first,
        found_inf=found_inf,
    )


def adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """`adam_step`."""
    run_step(
        update.adam_step,
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs if amsgrad else [],
        differentiable=differentiable,
        steps=_advanced(state_steps, found_inf),
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        decoupled=decoupled_weight_decay,
        amsgrad=amsgrad,
        maximize=maximize,
        found_inf=found_inf,
    )


def adamw(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """`adam_step` with decoupled weight decay."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        differentiable=differentiable,
        found_inf=found_inf,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )


def adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """`adagrad_step`."""
    run_step(
        update.adagrad_step,
        params,
        grads,
        state_sums,
        differentiable=differentiable,
        steps=_advanced(state_steps, found_inf),
        lr=lr,
        lr_decay=lr_decay,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        found_inf=found_inf,
    )


def rmsprop(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """`rmsprop_step`."""
    _advanced(state_steps)
    run_step(
        update.rmsprop_step,
        params,
        grads,
        square_avgs,
        grad_avgs if centered else [],
        momentum_buffer_list if momentum else [],
        differentiable=differentiable,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
    )


def adadelta(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    state_steps: Tensors,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """`adadelta_step`."""
    _advanced(state_steps)
    run_step(
        steps.adadelta_step,
        params,
        grads,
        square_avgs,
        acc_deltas,
        differentiable=differentiable,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def adamax(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """`adamax_step`."""
    run_step(
        steps.adamax_step,
        params,
        grads,
        exp_avgs,
        exp_infs,
        differentiable=differentiable,
        steps=_advanced(state_steps),
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """`radam_step`."""
    run_step(
        steps.radam_step,
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        differentiable=differentiable,
        steps=_advanced(state_steps),
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        decoupled=decoupled_weight_decay,
        maximize=maximize,
    )


def rprop(
    params: Tensors,
    grads: Tensors,
    prevs: Tensors,
    step_sizes: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """`rprop_step`."""
    _advanced(state_steps)
    run_step(
        steps.rprop_step,
        params,
        grads,
        prevs,
        step_sizes,
        differentiable=differentiable,
        etas=(etaminus, etaplus),
        step_sizes=(step_size_min, step_size_max),
        maximize=maximize,
    )
