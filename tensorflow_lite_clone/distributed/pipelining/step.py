"""One pass of micro-batches through the stages of a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow_lite_clone.distributed.pipelining.exchange import Exchange, Values
from tensorflow_lite_clone.distributed.pipelining.plan import FORWARD, Action, Tick, taker
from tensorflow_lite_clone.distributed.pipelining.stage import PipelineStage
from tensorflow_lite_clone.tensor import Tensor

#: The loss of a micro-batch, of its number and the model's output.
Loss = Callable[[int, Any], Tensor]


class Step:
    """Runs ticks: `args` and `kwargs` are those of each micro-batch.

    With `training`, losses are divided by `scale` before their graphs are walked back.
    """

    def __init__(
        self,
        stages: Mapping[int, PipelineStage],
        exchange: Exchange,
        args: Sequence[tuple],
        kwargs: Sequence[dict[str, Any]],
        loss: Loss | None,
        training: bool,
        scale: int,
        keep_outputs: bool,
    ) -> None:
        self._stages = stages
        self._exchange = exchange
        self._args, self._kwargs = args, kwargs
        self._loss = loss
        self._training = training
        self._scale = scale
        self._keep_outputs = keep_outputs
        #: The model's outputs and losses by micro-batch, where the last stage is in this process.
        self.outputs: dict[int, Any] = {}
        self.losses: dict[int, Tensor] = {}
        # What actions that are to come take from actions of this process.
        self._results: dict[Action, Values] = {}

    def run(self, ticks: Sequence[Tick]) -> None:
        """Do what the ticks say. What a stage raises is told with its place in the pipeline."""
        last = {tick.action.stage: tick.action for tick in ticks if tick.action}
        for tick in ticks:
            action = tick.action
            try:
                if action is not None and action.kind == FORWARD:
                    self._forward(action)
                elif action is not None:
                    self._backward(action, action == last[action.stage])
                self._exchange.post(tick, self._results)
            except Exception as error:
                if action is not None:
                    what = "forward" if action.kind == FORWARD else "backward"
                    error.add_note(
                        f"In the {what} of microbatch {action.microbatch} in pipeline stage "
                        f"{action.stage}."
                    )
                raise
        self._exchange.finish()

    def _forward(self, action: Action) -> None:
        stage, index = self._stages[action.stage], action.microbatch
        args = self._args[index] if stage.is_first else self._inputs(action)
        result = stage.forward(index, args, self._kwargs[index], self._training)
        if stage.is_last:
            if self._keep_outputs:
                self.outputs[index] = result
            if self._loss is not None:
                self.losses[index] = self._loss(index, result)
        else:
            self._give(action, stage, result if self._training else [x.detach() for x in result])

    def _backward(self, action: Action, last: bool) -> None:
        stage, index = self._stages[action.stage], action.microbatch
        if stage.is_last:
            loss = self.losses[index]
            self.losses[index] = loss.detach()  # lets go of the graph
            gradients = stage.backward(index, loss / self._scale, [], last)
        else:
            gradients = stage.backward(index, None, self._inputs(action), last)
        if not stage.is_first:
            self._give(action, stage, gradients)

    def _give(self, action: Action, stage: PipelineStage, values: Values) -> None:
        taken = taker(action, stage.num_stages - 1)
        assert taken is not None
        self._results[taken] = values

    def _inputs(self, action: Action) -> Values:
        """What an action takes, from this process or another. Activations start a graph anew."""
        if action not in self._results:
            return self._exchange.take(action)
        values = self._results.pop(action)
        if action.kind == FORWARD:
            return [x.detach().requires_grad_(x.requires_grad) for x in values if x is not None]
        return values
