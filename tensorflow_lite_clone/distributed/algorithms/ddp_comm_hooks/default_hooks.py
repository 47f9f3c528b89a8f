"""Hooks that average gradients, in their own dtype or in one of half the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, bfloat16, float16
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.distributed_c10d import get_world_size
from tensorflow_lite_clone.distributed.grad_bucket import GradBucket
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _average(group: Any, tensor: Tensor) -> Future[Any]:
    """A Future of a list of the tensor, which is divided before it is summed up in place."""
    tensor.div_(get_world_size(group))
    work: Any = all_reduce(tensor, group=group, async_op=True)
    return work.get_future()


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """What is done without a hook: the average. `process_group` None is the default group."""
    return _average(process_group, bucket.buffer()).then(lambda done: done.value()[0])


def _compressed(dtype: DType, group: Any, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()

    def widened(done: Future[Any]) -> Tensor:
        buffer.copy_(done.value()[0])
        return buffer

    return _average(group, buffer.to(dtype)).then(widened)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The average of the gradients rounded to float16, in their own dtype."""
    return _compressed(float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The average of the gradients rounded to bfloat16, in their own dtype."""
    return _compressed(bfloat16, process_group, bucket)


def _wrapped(dtype: DType, hook: Hook) -> Hook:
    def wrapper(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def widened(done: Future[Tensor]) -> Tensor:
            buffer.copy_(done.value())
            return buffer

        return hook(hook_state, bucket).then(widened)

    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that hands the gradients to `hook` in float16, and its result on in their dtype."""
    return _wrapped(float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that hands the gradients to `hook` in bfloat16, and its result on in their dtype."""
    return _wrapped(bfloat16, hook)
