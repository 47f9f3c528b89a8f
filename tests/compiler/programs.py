"""Programs that are compiled here and by PyTorch.

Each is a function of the framework, and gives a function to compile and the arguments of its calls.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

PROGRAMS: dict[str, Any] = {}
Pair = namedtuple("Pair", "left right")


def program(make: Any) -> Any:
    PROGRAMS[make.__name__] = make
    return make


def randn(torch: Any, *shape: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(*shape)


@program
def perceptron(torch: Any) -> Any:
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, [(randn(torch, 3, 4, seed=i),) for i in range(2)]


@program
def convolution_in_training(torch: Any) -> Any:
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(3, 4, 3, padding=1)
            self.normalization = nn.BatchNorm2d(4)
            self.scale = nn.Parameter(torch.ones(4, 1, 1))
            self.register_buffer("shift", torch.zeros(1))

        def forward(self, x: Any) -> Any:
            x = self.normalization(self.convolution(x))
            return torch.relu(x) * self.scale + self.shift

    torch.manual_seed(0)
    return Model(), [(randn(torch, 2, 3, 4, 4, seed=i),) for i in range(2)]


@program
def attention(torch: Any) -> Any:
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
            self.value = nn.Linear(8, 8, bias=False)
            self.register_buffer("mask", torch.tril(torch.ones(5, 5)))

        def forward(self, x: Any) -> Any:
            q, k, v = self.query(x), self.key(x), self.value(x)
            scores = q @ k.transpose(-2, -1) * (1.0 / k.size(-1) ** 0.5)
            scores = scores.masked_fill(self.mask[None] == 0, float("-inf"))
            return torch.softmax(scores, dim=-1) @ v

    torch.manual_seed(0)
    return Attention(), [(randn(torch, 2, 5, 8),)]


@program
def containers(torch: Any) -> Any:
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 1)})

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x).tanh()
            return {"a": self.heads["a"](x), "x": [x, (x, 3)]}

    torch.manual_seed(0)
    return Model(), [(randn(torch, 2, 3),)]


@program
def dropout_and_draws(torch: Any) -> Any:
    drop = torch.nn.Dropout(0.5)

    def f(x: Any) -> Any:
        noise = torch.rand(3)
        return drop(x) + noise

    return f, [(torch.ones(4, 3),), (torch.ones(4, 3),)]


@program
def spellings(torch: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        a = x + 1
        b = a.sin()
        c = torch.cos(b)
        d = c.view(-1).reshape(4, 4)
        e = d @ y
        e = e.add_(1)
        e.mul_(2)
        e += 1
        e[0] = 1
        g = e[1:, None]
        h = torch.cat([e, y], dim=1)
        r = 2 - e
        z = torch.zeros(3)
        values, positions = e.min(1)
        return {"h": h, "r": [-e, r], "z": z}, g, values, positions, e.T, e.shape[0], x > y

    return f, [(randn(torch, 4, 4), randn(torch, 4, 4, seed=1))]


@program
def arguments(torch: Any) -> Any:
    def f(xs: Any, named: Any, pair: Any, *rest: Any, last: Any = None) -> Any:
        return xs[0] + named["a"] + pair.right * rest[0] + last

    x = randn(torch, 2)
    return f, [([x], {"a": x + 1}, Pair(x, x + 2), x + 3, {"last": x + 4})]


@program
def closures(torch: Any) -> Any:
    weight, factor = randn(torch, 3), 2.5

    def inner(x: Any) -> Any:
        scaled = x * weight
        return scaled * factor

    def f(x: Any) -> Any:
        y = inner(x)
        return y, inner(y).sum()

    return f, [(randn(torch, 3, seed=1),)]


@program
def methods(torch: Any) -> Any:
    class Scale:
        def __init__(self) -> None:
            self.weight = torch.ones(2) * 3

        def call(self, x: Any) -> Any:
            return x * self.weight

    return Scale().call, [(torch.ones(2),)]


@program
def branches(torch: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.sin()
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return y

    return f, [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3) / 2,)]


@program
def prints(torch: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        x = a / (torch.abs(a) + 1)
        print("between")
        if b.sum() < 0:
            b = b * -1
        return x * b

    return f, [(torch.ones(3), -torch.ones(3)), (torch.ones(3), -torch.ones(3))]


@program
def printed_tensors(torch: Any) -> Any:
    def f(x: Any) -> Any:
        y, t = x.relu(), x + 1
        print(t)
        return y * t

    return f, [(torch.ones(2),), (torch.zeros(2),)]


@program
def writes_into_arguments(torch: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        x.add_(1)
        y[0] = x[1] * 2
        flat = x.view(-1)
        flat.mul_(2)
        return x + y.sum()

    return f, [(randn(torch, 2, 2), randn(torch, 3, 2, seed=1))]


@program
def without_gradients(torch: Any) -> Any:
    weight = torch.ones(2, requires_grad=True)

    def f(x: Any) -> Any:
        with torch.no_grad():
            total = (weight * x).sum()
        y = weight * x * total
        return y.sum(), total, y.detach()

    return f, [(randn(torch, 2),)]


@program
def autocast(torch: Any) -> Any:
    layer = torch.nn.Linear(4, 4)

    def f(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x)
            with torch.autocast("cpu", enabled=False):
                z = y.float() @ x.t()
            w = y @ x.t()
        return (y * 0).float(), (z * 0).sum(), (w * 0).float()

    return f, [(randn(torch, 2, 4),)]


@program
def disabled_parts(torch: Any) -> Any:
    @torch.compiler.disable
    def inner(x: Any) -> Any:
        print("inner", x.sum().item() > -100)
        return x * 2

    def f(x: Any) -> Any:
        return inner(x + 1) + 1

    return f, [(torch.ones(2),), (torch.ones(2),)]


@program
def other_dtypes_and_flags(torch: Any) -> Any:
    def f(x: Any, double: bool = False) -> Any:
        return x * 2 if double else x + 1

    x = torch.ones(2)
    return f, [(x,), (x.double(),), (x, {"double": True}), (x.clone().requires_grad_(),), (x,)]
