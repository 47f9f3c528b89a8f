"""A training step: as it is, or as one CUDA graph."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import tensorflow_lite_clone as torch

nn = torch.nn
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
WARMUP = 11  # DistributedDataParallel settles its buckets and its statistics in the first ones


def autocast(device: torch.device, dtype: torch.dtype) -> torch.autocast:
    """A context whose matrix products and convolutions are of `dtype`."""
    return torch.autocast(device.type, dtype, enabled=dtype != torch.float32)


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    dtype: torch.dtype,
) -> Step:
    """A function of images and labels that trains and gives the loss, without waiting for it."""

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with autocast(device, dtype):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@contextmanager
def aside(device: torch.device) -> Iterator[None]:
    """On a GPU, what is within is queued on a stream of its own, between what is around it."""
    if device.type != "cuda":
        yield
        return
    stream, outside = torch.cuda.Stream(device), torch.cuda.current_stream(device)
    stream.wait_stream(outside)
    with torch.cuda.stream(stream):
        yield
    outside.wait_stream(stream)


class Captured:
    """A step that runs as it is at first, and is then captured as one CUDA graph and replayed.

    All batches have one shape.
    """

    def __init__(self, step: Step, device: torch.device) -> None:
        self.step, self.device = step, device
        self.calls = 0
        self.graph = torch.cuda.CUDAGraph()

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls <= WARMUP:
            with aside(self.device):
                return self.step(images, labels)
        if self.calls == WARMUP + 1:
            self.images, self.labels = images.clone(), labels.clone()
            with torch.cuda.graph(self.graph):
                self.loss = self.step(self.images, self.labels)
        self.images.copy_(images)
        self.labels.copy_(labels)
        self.graph.replay()
        return self.loss.clone()
