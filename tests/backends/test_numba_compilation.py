"""When kernels of Numba are compiled: after enough work, in no small network's first step."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch import table
from tests.backends.test_numba import CPU, child, compiled, pytestmark, random  # noqa: F401

FIRST_STEPS = """
import sys
import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.backends import load

assert load("cpu").accelerators == ("numba",)
C, P = nn.Conv2d, {"padding": 1}
cnn = nn.Sequential(
    C(3, 16, 3, **P), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    C(16, 32, 3, **P), nn.GroupNorm(4, 32), nn.SiLU(),
    C(32, 32, 3, groups=32, **P), nn.ConvTranspose2d(32, 64, 2, 2),
    C(64, 64, 3, **P), nn.Sigmoid(), nn.Flatten(2),  # by Winograd
)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, activation="gelu"), 2)
tables = nn.Embedding(1000, 64), nn.Linear(64, 1000)
lstm, gru = nn.LSTM(64, 64), nn.GRU(64, 64)
words = torch.randint(1000, (32, 16))
hidden = tables[1](gru(lstm(encoder(tables[0](words)))[0])[0])
losses = nn.functional.cross_entropy(hidden.reshape(-1, 1000), words.reshape(-1))
losses = losses + cnn(torch.rand(8, 3, 32, 32)).mean()
losses.backward()
parameters = [p for m in (cnn, encoder, *tables, lstm, gru) for p in m.parameters()]
torch.optim.AdamW(parameters).step()
torch.optim.SGD(parameters, momentum=0.9).step()
print(any(name.partition(".")[0] in ("numba", "llvmlite") for name in sys.modules))
"""


def test_first_steps_of_small_networks_compile_nothing() -> None:
    assert child("-c", FIRST_STEPS, TENSORFLOW_LITE_CLONE_NUMBA="1").strip() == "False"


@compiled
def test_an_op_is_compiled_once_its_calls_repay_it(monkeypatch) -> None:
    x = random(50, 70)
    counted = x.size + tuning.compiled_call
    monkeypatch.setattr(tuning, "compiled_after", 2 * counted + 1)
    served: list[int] = []

    def call() -> None:
        before = table.served["silu", "numba"]
        CPU.F.silu(x)
        CPU.F.silu(x.astype(float))  # which no kernel could serve
        served.append(table.served["silu", "numba"] - before)

    call()
    monkeypatch.setattr(flags, "deterministic", True)
    call()
    monkeypatch.setattr(flags, "deterministic", False)
    call()
    call()
    assert served == [0, 1, 1, 1]


@compiled
@pytest.mark.parametrize("forward", ["NumPy", "Numba"])
def test_a_gradient_may_follow_the_other_kind_of_forward(forward: str, monkeypatch) -> None:
    """As it does in the step in which kernels come."""
    torch.manual_seed(0)
    convolutional = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.GroupNorm(4, 64), nn.SiLU(), nn.MaxPool2d(3, 1, 1),
        nn.Conv2d(64, 64, 3, padding=1), nn.GELU(), nn.Flatten(2),
    )  # fmt: skip
    lstm, norm, rms = nn.LSTM(64, 64), nn.LayerNorm(64), nn.RMSNorm(64)
    modules = nn.ModuleList([convolutional, lstm, norm, rms])
    x, target = torch.rand(4, 3, 32, 32), torch.arange(1024) % 64

    def gradients(*compiled_after: int) -> tuple:
        monkeypatch.setattr(tuning, "compiled_after", compiled_after[0])
        hidden = norm(lstm(rms(convolutional(x).permute(2, 0, 1)))[0]).softmax(-1).log_softmax(-1)
        loss = nn.functional.cross_entropy(hidden.reshape(-1, 64), target)
        monkeypatch.setattr(tuning, "compiled_after", compiled_after[1])
        modules.zero_grad()
        loss.backward()
        return loss, *[p.grad for p in modules.parameters()]

    never = 1 << 60
    expected = gradients(never, never)
    got = gradients(*((never, 0) if forward == "NumPy" else (0, never)))
    for mine, other in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=2e-5 * float(other.abs().max()))
