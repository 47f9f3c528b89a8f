"""What the tests' processes do. They start faster without the oracle, so it is not imported."""

from __future__ import annotations

import os
import signal
import sys
import time

import tensorflow_lite_clone as tlc


def fill(i, tensors):
    """Write the process's number into its tensor."""
    with tlc.no_grad():
        tensors[i].fill_(i + 1)


def fails(i, how):
    """Process 1 fails; the others would go on for long."""
    if i != 1:
        time.sleep(60)
    if how == "raise":
        raise ValueError("bad luck")
    if how == "exit":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


def train(rank, model, ready):
    """A few steps on the parameters that all processes share."""
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (model(tlc.ones(4, 3)) - 2).pow(2).mean().backward()
        optimizer.step()
    ready.put(rank)


def answer(requests, answers):
    """Add one to each tensor in place, say which ones are shared, and send them back."""
    while (tensor := requests.get()) is not None:
        answers.put((tensor.is_shared(), type(tensor).__name__, tensor.requires_grad))
        with tlc.no_grad():
            tensor.add_(1)
        answers.put(tensor.detach())
