"""Gradients that travel as products of two thin matrices.

Source: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
Distributed Optimization" (2019).
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
)
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.flat_buffer import FlatBuffer
from tensorflow_lite_clone.distributed.grad_bucket import GradBucket
from tensorflow_lite_clone.distributed.work import ReduceOp
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.ops.create.constructors import empty, zeros
from tensorflow_lite_clone.ops.random.generators import Generator
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_TINY = 1e-30  # of a column's norm, so that zeros stay zeros


class PowerSGDState:
    """What `powerSGD_hook` keeps.

    * `process_group`: over which gradients are averaged; None means all processes.
    * `matrix_approximation_rank`: the number of columns of the thin matrices.
    * `start_powerSGD_iter`: the iteration from which on gradients are compressed.
    * `min_compression_rate`: matrices that would not become that many times smaller travel whole.
    * `use_error_feedback`: what a compression loses is added to the next gradient.
    * `warm_start`: each approximation begins with the last one.
    * `orthogonalization_epsilon`: added to norms that columns are divided by.
    * `random_seed`: of the first approximations, the same in all processes.

    ValueError for a start before the third iteration with `use_error_feedback` or `warm_start`:
    buckets change after the first one. `compression_stats_logging_frequency` and
    `batch_tensors_with_same_shape` are accepted.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,  # noqa: N803  (PyTorch's name)
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = Generator().manual_seed(random_seed)
        self.error_dict: dict[int, list[Tensor]] = {}  # by bucket: what was lost
        self.q_memory_dict: dict[int, list[Tensor]] = {}  # by bucket: the right factors
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        self.iter += bucket.is_last()

    def compression_stats(self) -> tuple[float, int, int]:
        """The rate of compression, and the numbers of elements before and after it."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def count(self, gradients: Tensor, *sent: Tensor) -> None:
        """Count the elements of gradients, and of what is sent in their place."""
        self.total_numel_before_compression += gradients.numel()
        self.total_numel_after_compression += sum([each.numel() for each in sent])

    def compresses(self, gradient: Tensor) -> bool:
        """Whether a gradient, as a matrix, becomes so much smaller that it is worth it."""
        if gradient.ndim < 2 or not gradient.numel():
            return False
        rows = gradient.shape[0]
        thin = (rows + gradient.numel() // rows) * self.matrix_approximation_rank
        return thin * self.min_compression_rate < gradient.numel()

    def first_factor(self, matrix: Tensor) -> Tensor:
        """Random numbers, the same in all processes, where there is no last approximation."""
        columns = min(self.matrix_approximation_rank, *matrix.shape)
        noise = empty(matrix.shape[1], columns, dtype=matrix.dtype).normal_(generator=self.rng)
        return noise.to(matrix.device)


def _orthogonalize(matrix: Tensor, epsilon: float) -> None:
    """Make columns orthonormal in place, by Gram and Schmidt; columns of zeros stay."""
    for place in range(matrix.shape[1]):
        column = matrix[:, place : place + 1]
        column /= (column.norm() + epsilon).clamp(min=_TINY)
        rest = matrix[:, place + 1 :]
        if rest.shape[1]:
            rest -= column @ (column.T @ rest)


@no_grad()
def powerSGD_hook(  # noqa: N802  (PyTorch's name)
    state: PowerSGDState, bucket: GradBucket
) -> Future[Tensor]:
    """The average of gradients M, of which matrices are approximated by P Q^T.

    With the Q of the last iteration, made orthonormal, P = M Q is averaged and made orthonormal,
    then Q = M^T P is averaged. Vectors, and matrices that would not become much smaller, are
    averaged as they are.
    """
    starts = state.iter >= state.start_powerSGD_iter
    state.maybe_increase_iter(bucket)
    if not starts:
        return allreduce_hook(state.process_group, bucket)
    number, epsilon = bucket.index(), state.orthogonalization_epsilon
    matrices: list[Tensor] = []
    whole: list[Tensor] = []
    for part in bucket.gradients():
        (matrices if state.compresses(part) else whole).append(part)
    given = [part.reshape(part.shape[0], -1).clone() for part in matrices]
    for matrix, error in zip(given, state.error_dict.get(number, ())):
        matrix += error
    rights = state.q_memory_dict.get(number)
    if rights is None:
        rights = [state.first_factor(matrix) for matrix in given]
    for q in rights:
        _orthogonalize(q, epsilon)
    parts = [*whole, *[matrix @ q for matrix, q in zip(given, rights)]]
    sent = FlatBuffer(parts)
    sent.fill(parts)
    state.count(bucket.buffer(), sent.memory, *rights)
    work: Any = all_reduce(sent.memory, ReduceOp.AVG, state.process_group, async_op=True)

    @no_grad()
    def finished(_: Future[Any]) -> Tensor:
        for part, average in zip(whole, sent.views):
            part.copy_(average)
        lefts = sent.views[len(whole) :]
        for p in lefts:
            _orthogonalize(p, epsilon)
        if matrices:
            factors = FlatBuffer(rights)
            factors.fill([matrix.T @ p for matrix, p in zip(given, lefts)])
            all_reduce(factors.memory, ReduceOp.AVG, state.process_group)
            products = [p @ q.T for p, q in zip(lefts, factors.views)]
            for part, product in zip(matrices, products):
                part.copy_(product.reshape(part.shape))
            if state.use_error_feedback:
                errors = [matrix - product for matrix, product in zip(given, products)]
                state.error_dict[number] = errors
            if state.warm_start:
                state.q_memory_dict[number] = factors.views
        return bucket.buffer()

    return work.get_future().then(finished)


@no_grad()
def batched_powerSGD_hook(  # noqa: N802  (PyTorch's name)
    state: PowerSGDState, bucket: GradBucket
) -> Future[Tensor]:
    """`powerSGD_hook` of all gradients of a bucket as one square matrix, filled up with zeros.

    Faster, and less exact, for rows and columns of the matrix mean nothing.
    """
    flat = bucket.buffer()
    side = isqrt(max(flat.numel() - 1, 0)) + 1
    matrix = zeros(side, side, dtype=flat.dtype, device=flat.device)
    square = GradBucket(bucket.index(), bucket.is_last(), [0], [matrix])
    square.buffer().zero_()[: flat.numel()] = flat

    @no_grad()
    def finished(_: Future[Any]) -> Tensor:
        return flat.copy_(square.buffer()[: flat.numel()])

    return powerSGD_hook(state, square).then(finished)
