"""Models on the meta device: built, counted, run, trained, filled from files, and how large."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from examples.model_size import GPT, main, step_cost
from tests.backends.test_meta import agreed, told


def resident() -> int:
    """The bytes of this process's memory that are in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells memory there")
def test_seventy_billion_parameters() -> None:
    layers, width, tokens = 86, 8192, 128
    before, start = resident(), time.perf_counter()
    with tlc.device("meta"):
        model = GPT(layers, width, heads=64, context=tokens, words=50257)
        batch = tlc.zeros(1, tokens, dtype=tlc.int64)
    built = time.perf_counter() - start
    count = sum(p.numel() for p in model.parameters())
    assert 70e9 < count < 70.2e9
    assert built < 2
    cost = step_cost(model, tlc.optim.AdamW, batch, batch)
    assert resident() - before < 200e6
    in_layers = count - model.tokens.weight.numel() - model.positions.weight.numel()
    assert cost.flops / tokens == pytest.approx(6 * in_layers, rel=0.01)
    # Attention multiplies matrices of T x D twice, and in the backward pass five times.
    attention = 14 * layers * width * tokens
    biases_and_norms = sum(p.numel() for p in model.parameters() if p.ndim == 1)
    multiplied = 6 * (in_layers - biases_and_norms)
    assert cost.flops / tokens == pytest.approx(multiplied + attention, rel=1e-9)
    assert cost.weights == cost.gradients == 4 * count
    assert cost.optimizer == pytest.approx(8 * count, rel=1e-6)


def test_costs_are_those_of_the_cpu() -> None:
    tlc.manual_seed(0)
    costs = []
    for device in ("cpu", "meta"):
        model = GPT(2, 32, 4, 16, 50).to(device)
        batch = tlc.zeros(2, 16, dtype=tlc.int64, device=device)
        costs.append(step_cost(model, tlc.optim.SGD, batch, batch))
    kept = [cost.activations for cost in costs]
    costs = [cost._replace(activations=0) for cost in costs]
    assert costs[0] == costs[1]
    assert costs[0].optimizer == 0
    assert 0.8 * kept[0] < kept[1] <= kept[0]  # a kernel may keep a column of a larger array


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--layers", "2", "--width", "64", "--heads", "2", "--context", "8", "--words", "100"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "parameters", "FLOPs", "weights", "gradients", "optimizer", "activations", "together",
    ]  # fmt: skip
    assert lines[0].endswith("113,408")


class Llama:
    """The makings of a decoder in PyTorch's words, over either library."""

    def __init__(self, lib: Any) -> None:
        nn, f = lib.nn, lib.nn.functional

        class Layer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm, self.q = nn.RMSNorm(16), nn.Linear(16, 16, bias=False)
                self.kv, self.out = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
                self.gate, self.down = nn.Linear(16, 48), nn.Linear(24, 16)

            def forward(self, x: Any) -> Any:
                y = self.norm(x)
                q = self.q(y).unflatten(-1, (4, 4)).transpose(1, 2)
                k, v = self.kv(y).unflatten(-1, (2, 2, 4)).unbind(2)
                k, v = (part.transpose(1, 2).repeat_interleave(2, dim=1) for part in (k, v))
                seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out(seen.transpose(1, 2).flatten(2))
                gate, up = self.gate(self.norm(x)).chunk(2, -1)
                return x + self.down(f.silu(gate) * up)

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding, self.head = nn.Embedding(30, 16), nn.Linear(16, 30, bias=False)
                self.layers = nn.ModuleList([Layer(), Layer()])
                self.head.weight = self.embedding.weight
                self.register_buffer("steps", lib.arange(4))

            def forward(self, tokens: Any) -> Any:
                x = self.embedding(tokens)
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)

        self.Model = Model


def test_a_decoder_runs_and_trains() -> None:
    def script(lib: Any) -> list:
        with lib.device("meta"):
            model = Llama(lib).Model()
            tokens = lib.zeros(2, 5, dtype=lib.int64)
        optimizer = lib.optim.AdamW(model.parameters(), lr=0.1)
        logits = model(tokens)
        lib.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
        norm = lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        moments = [optimizer.state[p]["exp_avg"] for p in model.parameters()]
        gradients = [p.grad for p in model.parameters()]
        optimizer.zero_grad()
        held = dict(model.named_parameters()), dict(model.named_buffers()), model.state_dict()
        return told([logits, norm, moments, gradients, *held], lib)

    agreed(script)


def test_real_weights_take_the_place_of_none() -> None:
    def script(lib: Any) -> list:
        lib.manual_seed(0)
        real, tokens = Llama(lib).Model(), lib.arange(10).view(2, 5)
        state = real.state_dict()
        with lib.device("meta"):
            model = Llama(lib).Model()
        results = [model.load_state_dict(state, assign=True), model.head.weight is not None]
        results += [lib.allclose(model(tokens), real(tokens), rtol=1e-5, atol=1e-6)]
        with lib.device("meta"):
            model = Llama(lib).Model()
        untied = {**dict(real.named_parameters()), **dict(real.named_buffers())}
        called = lib.func.functional_call(model, untied, (tokens,))
        results += [lib.allclose(called, real(tokens), rtol=1e-5, atol=1e-6)]
        model.to_empty(device="cpu")
        model.load_state_dict(state)
        results += [lib.allclose(model(tokens), real(tokens), rtol=1e-5, atol=1e-6)]
        before = real.embedding.weight
        real.to("meta")
        results += [real.embedding.weight is before, real.embedding.weight.requires_grad]
        return told(results, lib)

    agreed(script, rtol=1e-4)


def test_ways_to_make_modules_without_memory() -> None:
    def script(lib: Any) -> list:
        nn = lib.nn
        original = nn.Module.register_parameter

        def register_on_meta(module: Any, name: str, parameter: Any) -> None:
            original(module, name, parameter)
            if parameter is not None:
                cls, options = type(module._parameters[name]), module._parameters[name].__dict__
                options = {**options, "requires_grad": parameter.requires_grad}
                moved = module._parameters[name].to("meta")
                module._parameters[name] = cls(moved, requires_grad=options["requires_grad"])

        nn.Module.register_parameter = register_on_meta
        try:
            patched = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
        finally:
            nn.Module.register_parameter = original
        skipped = nn.utils.skip_init(nn.Linear, 3, 4, device="meta")
        lazy = nn.LazyLinear(4, device="meta")
        x, parametrizations = lib.ones(2, 3, device="meta"), nn.utils.parametrizations
        results = [patched(x), skipped(x), lazy(x), lazy.weight]
        for name in ("weight_norm", "spectral_norm"):
            module = getattr(parametrizations, name)(nn.Linear(3, 3, device="meta"))
            results += [module(x), module.weight]
        held, other = nn.Parameter(x[0]), nn.Parameter(lib.zeros(3))
        lib.utils.swap_tensors(held, other)
        results += [held, other, nn.utils.parameters_to_vector(patched.parameters())]
        results += [str(nn.utils.skip_init(nn.Linear, 3, 4).weight.device)]
        return told(results, lib)

    agreed(script)


@pytest.mark.parametrize(
    "name", "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam Rprop ASGD".split()
)
def test_optimizers(name: str) -> None:
    model = tlc.nn.Linear(3, 4, device="meta")
    optimizer = getattr(tlc.optim, name)(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(tlc.ones(2, 3, device="meta")).sum().backward()
        optimizer.step()
    assert {p.device.type for p in model.parameters()} == {"meta"}
    for state in optimizer.state_dict()["state"].values():
        shapes = [tuple(value.shape) for value in state.values() if isinstance(value, tlc.Tensor)]
        assert set(shapes) <= {(), (4, 3), (4,)}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's of its own torch.jit
def test_compiled_and_mapped() -> None:
    x = tlc.ones(2, 3, device="meta")
    module = tlc.nn.Sequential(tlc.nn.Linear(3, 4, device="meta"), tlc.nn.GELU())
    compiled = tlc.compile(module)
    for _ in range(3):
        assert told(compiled(x), tlc) == told(module(x), tlc)
    for function in (
        lambda lib, x: lib.vmap(lambda row: row * 2)(x),
        lambda lib, x: lib.func.grad(lambda x: (x**2).sum())(x),
        lambda lib, x: lib.func.jacrev(lambda x: x**2)(x),
        lambda lib, x: lib.func.jvp(lambda x: x**2, (x,), (x,)),
        lambda lib, x: lib.func.vmap(lib.func.grad(lambda x: (x**2).sum()))(x),
    ):
        ours, theirs = (
            told(function(lib, lib.ones(2, 3, device="meta")), lib) for lib in (tlc, torch)
        )
        assert ours == theirs
