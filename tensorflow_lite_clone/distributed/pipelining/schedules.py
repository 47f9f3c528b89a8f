"""Schedules: the orders in which stages run micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from traceback import format_exception_only
from typing import Any

from tensorflow_lite_clone.distributed.distributed_c10d import _get_default_group
from tensorflow_lite_clone.distributed.pipelining import plan
from tensorflow_lite_clone.distributed.pipelining.exchange import (
    Exchange,
    PipeliningMetadataError,
)
from tensorflow_lite_clone.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from tensorflow_lite_clone.distributed.pipelining.stage import PipelineStage
from tensorflow_lite_clone.distributed.pipelining.step import Step

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
]


_numbers = count()


class _Schedule:
    """Runs `orders` for the stages of this process."""

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        orders: plan.Orders,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        own, rank = {stage.stage_index: stage for stage in stages}, stages[0].group_rank
        expected = {action.stage for action in orders[rank]}
        if {*own} != expected:
            raise ValueError(
                f"Process {rank} of {len(orders)} runs the stages {sorted(expected)}, got "
                f"{sorted(own)}"
            )
        self._stages = own
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._scale = n_microbatches if scale_grads else 1
        self._group = stages[0].group or _get_default_group()
        # Processes make schedules, and call them, in the same order.
        self._number, self._runs = next(_numbers), 0
        programs = plan.program(orders), plan.program(plan.forwards_only(orders))
        #: What each process does in each tick of a step; None where it waits.
        self.pipeline_order = {
            number: [tick.action for tick in ticks] for number, ticks in enumerate(programs[0])
        }
        # Activations want gradients in one and not in the other, so each learns its own layouts.
        self._training, self._evaluation = [
            (program[rank], Exchange(stages[0].device, self._group)) for program in programs
        ]

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """A forward and a backward pass of a whole batch, cut into micro-batches.

        Every process of the group calls it: that of the first stage with the model's arguments,
        that of the last with `target` and, to be told the losses ``loss_fn(output, target,
        **loss_kwargs)`` of the micro-batches, a list `losses`; each with the keyword arguments of
        its own stages. Gradients are added to those of the parameters. Without a loss function
        there is no backward pass.

        Gives the output of the whole batch in the process of the last stage, unless
        `return_outputs` is False, and None in others.

        The first step tells each process what it will receive: shapes and dtypes, for each
        micro-batch. In later steps they must be the same: PipeliningMetadataError. ValueError
        where the batch has fewer rows than there are micro-batches.
        """
        with self._failing_together():
            return self._run(
                self._loss_fn is not None,
                args,
                kwargs,
                target,
                losses,
                return_outputs,
                loss_kwargs or {},
            )

    def eval(
        self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any
    ) -> Any:
        """As `step`, with forward passes only; without a target there are no losses.

        Its first call learns shapes and dtypes of its own.
        """
        with self._failing_together():
            return self._run(False, args, kwargs, target, losses, True, {})

    @contextmanager
    def _failing_together(self) -> Iterator[None]:
        """Where one process fails, others wait for it in vain: all tell the error of the first."""
        self._runs += 1
        try:
            yield
        except Exception as error:
            text = f"process {self._group.rank()}: {''.join(format_exception_only(error))}"
            key = f"{self._group.group_name}/pipelining/{self._number}/{self._runs}"
            try:
                first = self._group.store.compare_set(key, "", text).decode()
            except Exception:  # the store has ended with the process that served it
                raise error from None
            if first != text:
                raise RuntimeError(f"The pipeline failed in {first}") from error
            raise
        finally:
            for stage in self._stages.values():
                stage.clear()

    def _run(
        self,
        training: bool,
        args: tuple,
        kwargs: dict[str, Any],
        target: Any,
        losses: list | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any],
    ) -> Any:
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        stages = self._stages.values()
        first = any(stage.is_first for stage in stages)
        last = any(stage.is_last for stage in stages)
        if training and last and target is None:
            raise PipeliningMetadataError(
                f"Stage {max(self._stages)}: loss_fn and target required for last stage"
            )
        loss = None
        if last and self._loss_fn is not None and target is not None:
            loss = self._loss(target, loss_kwargs)
        ticks, exchange = self._training if training else self._evaluation
        step = Step(
            self._stages,
            exchange,
            *self._chunks(args if first else (), kwargs, self._args_chunk_spec if first else None),
            loss=loss,
            training=training,
            scale=self._scale,
            keep_outputs=return_outputs,
        )
        step.run(ticks)
        numbers = range(self._n_microbatches)
        if losses is not None and last:
            losses[:] = [step.losses[index] for index in numbers] if loss else []
        if not last or not return_outputs:
            return None
        return merge_chunks([step.outputs[index] for index in numbers], self._output_merge_spec)

    def _loss(self, target: Any, loss_kwargs: dict[str, Any]) -> Callable[[int, Any], Any]:
        targets, _ = self._chunks((target,), {})
        loss_fn = self._loss_fn
        assert loss_fn is not None
        return lambda index, output: loss_fn(output, *targets[index], **loss_kwargs)

    def _chunks(
        self, args: tuple, kwargs: dict[str, Any], args_chunk_spec: tuple | None = None
    ) -> tuple[list[tuple], list[dict]]:
        found = split_args_kwargs_into_chunks(
            args, kwargs, self._n_microbatches, args_chunk_spec, self._kwargs_chunk_spec
        )
        if len(found[0]) != self._n_microbatches:
            raise ValueError(
                f"Expecting {self._n_microbatches} microbatches but got {len(found[0])}: the batch "
                f"has too few rows"
            )
        return found


class PipelineScheduleSingle(_Schedule):
    """A schedule of one stage per process: as many stages as the group has processes.

    The batch is cut into `n_microbatches` as the chunk specs say (`split_args_kwargs_into_chunks`),
    and the outputs are joined as `output_merge_spec` says (`merge_chunks`). With `scale_grads` the
    gradients are averaged over the micro-batches: right for losses that are means over samples, and
    equal to the gradients of the whole batch if all micro-batches are of one size.

    ValueError for another number of stages, or too few micro-batches.
    """

    #: The orders for numbers of processes and micro-batches.
    _orders: Callable[[int, int], plan.Orders]
    #: Whether there must be as many micro-batches as stages.
    _fills: bool

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        _expect_microbatches(n_microbatches, stage.num_stages if self._fills else 1)
        if stage.num_stages != stage.group_size:
            raise ValueError(
                f"{type(self).__name__} has one stage per process: got {stage.num_stages} stages "
                f"for {stage.group_size} processes"
            )
        super().__init__(
            [stage],
            type(self)._orders(stage.num_stages, n_microbatches),
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )


def _expect_microbatches(number: int, least: int) -> None:
    if number < least:
        raise ValueError(
            f"Number of microbatches ({number}) must be greater than or equal to {least}."
        )


class ScheduleGPipe(PipelineScheduleSingle):
    """All forwards, then all backwards (GPipe, Huang et al. 2019).

    Each process keeps the activations of all micro-batches.
    """

    _orders = staticmethod(plan.gpipe)
    _fills = False


class Schedule1F1B(PipelineScheduleSingle):
    """A forward and a backward by turns (PipeDream-flush, Narayanan et al. 2021).

    As fast as `ScheduleGPipe`; a process keeps the activations of as many micro-batches as there
    are stages from its own to the last, however many there are.
    """

    _orders = staticmethod(plan.one_forward_one_backward)
    _fills = True


class PipelineScheduleMulti(_Schedule):
    """A schedule of several stages per process: process r of p has stages r, r + p, r + 2p, ...

    Other arguments are those of `PipelineScheduleSingle`. ValueError for other stages.
    """

    #: The orders for numbers of processes, micro-batches, and stages per process.
    _orders: Callable[[int, int, int], plan.Orders]

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        _expect_microbatches(n_microbatches, 1)
        if not stages or stages[0].num_stages != len(stages) * stages[0].group_size:
            raise ValueError(
                f"{type(self).__name__} has the same number of stages in each process: got "
                f"{len(stages)} stages here"
            )
        super().__init__(
            stages,
            type(self)._orders(stages[0].group_size, n_microbatches, len(stages)),
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """`Schedule1F1B` with several stages per process (Narayanan et al. 2021).

    The bubble shrinks by the number of stages per process, and there is as many times more to send.
    ValueError unless the number of micro-batches is a multiple of ``max(1, n // processes)``.
    """

    _orders = staticmethod(plan.interleaved)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """`ScheduleGPipe` with several stages per process, one after another (Lamy-Poirier 2022)."""

    _orders = staticmethod(plan.looped)
