"""``torch.autograd.profiler``: the profiler with older arguments, and ranges for NVIDIA's tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from tensorflow_lite_clone.cuda import nvtx
from tensorflow_lite_clone.profiler.events import EventList, FunctionEventAvg
from tensorflow_lite_clone.profiler.profiler import ProfilerActivity
from tensorflow_lite_clone.profiler.profiler import profile as _profile
from tensorflow_lite_clone.trace import Observer


class profile(_profile):
    """`profiler.profile` with older arguments; `enabled` False notes nothing."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        **options: Any,
    ) -> None:
        activities = [ProfilerActivity.CPU]
        if use_cuda or use_device == "cuda":
            activities.append(ProfilerActivity.CUDA)
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )
        self.enabled = enabled

    def __enter__(self) -> Self:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            super().__exit__(*error)

    @property
    def function_events(self) -> EventList:
        """All events."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """What all events took on the host."""
        return self.events().self_cpu_time_total

    def table(self, *args: Any, **options: Any) -> str:
        """See `EventList.table`."""
        return self.events().table(*args, **options)

    def total_average(self) -> FunctionEventAvg:
        """One sum of all events."""
        return self.events().total_average()

    def __str__(self) -> str:
        return str(self.events()) if self.enabled else "<unfinished torch.autograd.profile>"


class emit_nvtx(Observer):
    """Context in which each op, and each node's gradients, is a range in NVIDIA's timelines."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> Self:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            super().__exit__(*error)

    def around_op(self, op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        """What runs in place of an op: the op, in a range."""

        def ranged(*arrays: Any, **parameters: Any) -> Any:
            name = op.name
            if self.record_shapes:
                name += f", sizes = {[list(getattr(x, 'shape', ())) for x in arrays]}"
            with nvtx.range(name):
                return call(*arrays, **parameters)

        return ranged

    def around_gradient(self, node: Any, call: Callable[[list], Any], grads: list) -> Any:
        """The gradients of a node, in a range."""
        with nvtx.range(f"{node.name()}, seq = {node.sequence}"):
            return call(grads)
