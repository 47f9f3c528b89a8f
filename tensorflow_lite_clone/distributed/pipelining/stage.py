"""A part of a model that one process runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tensorflow_lite_clone.autograd.gradients import backward
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.distributed.distributed_c10d import get_rank, get_world_size
from tensorflow_lite_clone.distributed.pipelining.exchange import (
    PipeliningMetadataError,
    Values,
    layouts_of,
)
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parallel._containers import tensors_in
from tensorflow_lite_clone.nn.parallel.distributed import DistributedDataParallel
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["PipelineStage"]


class PipelineStage:
    """Stage `stage_index` of `num_stages`, which this process of `group` runs on `device`.

    Stage i is the business of process i modulo the group's size. What a stage's forward gives, a
    tensor or a tuple or list of tensors, are the arguments of the next stage's; those of the first,
    and keyword arguments of any, are given to the schedule's `step`. The last one may give what the
    loss function takes. Tensors in `input_args` and `output_args`, where given, say what the first
    micro-batch's inputs and outputs must be; `output_grads` and `input_grads` are accepted.

    Raises ValueError for a `stage_index` out of range, RuntimeError where there are fewer stages
    than processes.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Tensor | Sequence[Tensor] | None = None,
        output_args: Tensor | Sequence[Tensor] | None = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None or get_mesh is not None:
            raise NotImplementedError("dw_builder and get_mesh of a PipelineStage")
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = Device(device)
        self.group = group
        self.group_rank, self.group_size = get_rank(group), get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages "
                f"{num_stages}"
            )
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self._expected = {"input": input_args, "output": output_args}
        # Of each micro-batch on its way: what came in, and what went out.
        self._on_the_way: dict[int, tuple[Values, Values]] = {}

    @property
    def is_first(self) -> bool:
        """Whether this stage takes the model's arguments."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether this stage gives the model's result."""
        return self.stage_index == self.num_stages - 1

    def forward(
        self, microbatch: int, args: Sequence[Any], kwargs: dict[str, Any], keep: bool
    ) -> Any:
        """What the module gives for a micro-batch. `keep` keeps what `backward` needs.

        PipeliningMetadataError for what cannot go to the next stage.
        """
        if not self.is_first:
            self._expect("input", microbatch, args)
        with self._apart():
            result = self.submod(*args, **kwargs)
        outputs = tuple(result) if isinstance(result, (list, tuple)) else (result,)
        if not self.is_last and not all(isinstance(output, Tensor) for output in outputs):
            raise PipeliningMetadataError(
                f"Stage {self.stage_index}: a stage gives a tensor, or a tuple or list of tensors, "
                f"to the next, not {type(result).__name__}"
            )
        self._expect("output", microbatch, outputs)
        if keep:
            self._on_the_way[microbatch] = args, outputs
        return result if self.is_last else outputs

    def backward(
        self, microbatch: int, loss: Tensor | None, gradients: Values, last: bool
    ) -> Values:
        """Walk a micro-batch's graph back, from its loss or with gradients of its outputs.

        `last`: of this step. Gives the gradients of the inputs; None for those that want none.
        """
        inputs, outputs = self._on_the_way.pop(microbatch)
        with self._sharing(outputs, last):
            if loss is not None:
                loss.backward()
            else:
                pairs = zip(outputs, gradients, strict=True)
                targets = [
                    (output, g) for output, g in pairs if output is not None and g is not None
                ]
                if targets:
                    backward([output for output, _ in targets], [g for _, g in targets])
        return [] if self.is_first else [x.grad for x in inputs if x is not None]

    def clear(self) -> None:
        """Forget micro-batches that are on their way."""
        self._on_the_way.clear()

    def _apart(self) -> AbstractContextManager:
        """Where a wrapped module keeps its gradients to itself."""
        return self.submod.no_sync() if hasattr(self.submod, "no_sync") else nullcontext()

    def _sharing(self, outputs: Values, last: bool) -> AbstractContextManager:
        """Where a wrapped module shares its gradients with other processes if this is the last
        backward pass of a step, from these outputs."""
        module = self.submod
        if hasattr(module, "set_requires_gradient_sync"):
            module.set_requires_gradient_sync(last)
        if not last:
            return self._apart()
        if isinstance(module, DistributedDataParallel):
            module.reducer.prepare(tensors_in(outputs))
            module.reducer.syncs_buffers = module.forward_sync_buffers
        return nullcontext()

    def _expect(self, kind: str, microbatch: int, values: Sequence[Any]) -> None:
        expected = self._expected[kind]
        if microbatch or expected is None:
            return
        expected_layouts = layouts_of([expected] if isinstance(expected, Tensor) else expected)
        found = layouts_of(values)
        if [x and x[:2] for x in found] != [x and x[:2] for x in expected_layouts]:
            raise PipeliningMetadataError(
                f"Stage {self.stage_index} {kind}: "
                f"expected [{', '.join(map(str, expected_layouts))}], "
                f"got [{', '.join(map(str, found))}]"
            )
