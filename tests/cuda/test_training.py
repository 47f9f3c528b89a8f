"""Training on a GPU: equal to the CPU's, in both memory formats, and without waiting in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import table
from tests.bench.steps import MODELS, training_step

pytestmark = pytest.mark.cuda
nn = tlc.nn
#: What one training step of each model runs; a kernel that declines would show here.
KERNELS = {
    "mlp": "linear linear_backward_weight cross_entropy cross_entropy_backward adam_step",
    "cnn": "conv conv_backward_weight conv_backward_input max_pool max_pool_backward dropout "
    "linear cross_entropy_backward adam_step",
    "vit": "attention_dropout attention_dropout_backward layer_norm layer_norm_backward "
    "linear dropout cross_entropy adam_step",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_step_does_not_wait(name: str) -> None:
    """What waits for the device cannot be captured, and `fullgraph` makes that an error."""
    step = training_step(tlc, name, 32, fullgraph=True)
    losses = [step().item() for _ in range(30)]
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize("name", MODELS)
def test_kernels_serve_a_step(name: str) -> None:
    step = training_step(tlc, name, 32, captured=False)
    step()
    before = table.served.copy()
    step()
    ran = {op for (op, kind), count in table.served.copy().items() if count > before[op, kind]}
    assert set(KERNELS[name].split()) - ran == set()


class Block(nn.Module):
    """A residual block with everything that must keep channels_last."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.short = nn.Conv2d(8, 16, 1, stride=2)
        self.head = nn.Linear(16, 3)

    def activations(self, x: Any) -> list[Any]:
        seen = [x]
        for layer in (self.conv, self.norm, nn.functional.relu, self.depthwise):
            seen.append(layer(seen[-1]))
        seen.append(nn.functional.silu(seen[-1] + self.short(x)))
        seen.append(nn.functional.max_pool2d(seen[-1], 3, 2, 1))
        seen.append(nn.functional.dropout(nn.functional.avg_pool2d(seen[-1], 2), 0.0))
        return seen

    def forward(self, x: Any) -> Any:
        return self.head(self.activations(x)[-1].mean((2, 3)))


def gradients(model: Any, x: Any, device: str, layout: Any) -> tuple[list, Any, list]:
    """Gradients of the parameters and the input, and which activations were channels_last."""
    model = model.to(device).to(memory_format=layout)
    x = x.detach().to(device).contiguous(memory_format=layout).clone().requires_grad_()
    model.zero_grad()
    seen = model.activations(x)
    model.head(seen[-1].mean((2, 3))).square().sum().backward()
    found = [p.grad.detach().cpu().numpy().copy() for p in model.parameters()]
    kept = [y.is_contiguous(memory_format=tlc.channels_last) for y in seen]
    return found, x.grad.detach().cpu().numpy().copy(), kept


@pytest.mark.parametrize("allow_tf32", [False, True])
def test_memory_formats(allow_tf32: bool) -> None:
    tlc.manual_seed(0)
    model, x = Block(), tlc.randn(4, 8, 20, 20)
    expected, expected_x, _ = gradients(model, x, "cpu", tlc.contiguous_format)
    bound = 2e-2 if allow_tf32 else 2e-4  # TF32 keeps 11 bits of each factor
    for layout in (tlc.contiguous_format, tlc.channels_last):
        with tlc.backends.cudnn.flags(allow_tf32=allow_tf32):
            found, found_x, kept = gradients(model, x, "cuda", layout)
        assert all(kept) == (layout is tlc.channels_last)
        for mine, true in zip((*found, found_x), (*expected, expected_x), strict=True):
            np.testing.assert_allclose(mine, true, atol=bound * np.abs(true).max(), rtol=0)


def losses(device: str, steps: int) -> list[float]:
    """The course of a small network's training."""
    tlc.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8 * 49, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 10),
    )  # fmt: skip
    x, y = tlc.randn(64, 1, 14, 14).to(device), tlc.randint(10, (64,)).to(device)
    model = model.to(device)
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    found = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


def test_the_course_of_the_cpu() -> None:
    np.testing.assert_allclose(losses("cuda", 30), losses("cpu", 30), rtol=1e-3)


def test_the_digits_are_read(tmp_path: Any) -> None:
    """The example learns on the GPU what it learns on the CPU."""
    from examples.mnist import training
    from examples.mnist.cnn.train import Network

    options = training.parser("").parse_args(["--device", "cuda", "--epochs", "4"])
    options.output = tmp_path
    tlc.manual_seed(0)
    assert training.run(Network(), options, "mnist_cnn") > 0.97


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision(dtype: str) -> None:
    """A captured step under autocast with loss scaling; a bad step leaves the parameters alone."""
    tlc.manual_seed(0)
    model = Block().cuda().to(memory_format=tlc.channels_last)
    optimizer = tlc.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = tlc.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=5)
    x = tlc.randn(16, 8, 20, 20, device="cuda").contiguous(memory_format=tlc.channels_last)
    y = tlc.randint(3, (16,), device="cuda")

    @tlc.compile(fullgraph=True)
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        with tlc.autocast("cuda", dtype=getattr(tlc, dtype)):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    first = step(x, y).item()
    for _ in range(40):
        last = step(x, y).item()
    assert last < first / 2
    assert scaler.get_scale() == 1024.0 * 2**8
    before = [p.detach().clone() for p in model.parameters()]
    assert not np.isfinite(step(x * float("inf"), y).item())
    assert all(tlc.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert scaler.get_scale() == 1024.0 * 2**7
