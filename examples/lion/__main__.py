"""Check the optimizer: `python -m examples.lion --device cuda` (or cpu)."""

from __future__ import annotations

import argparse

import numpy as np

import tensorflow_lite_clone as torch
from examples.lion.lion import Lion, lion
from tensorflow_lite_clone.dispatch import table

SHAPES = [(3, 5), (), (4097,), (0, 3), (17, 300)]
OPTIONS = [
    {},
    {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1},
    {"lr": 0.01, "weight_decay": 0.3, "maximize": True},
]


def arrays(seed, dtype="float32"):
    """An array for each parameter."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES]


def by_numpy(values, gradients, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    """The paper's algorithm 2, in float64."""
    result = []
    for i, value in enumerate(values):
        p, m = value.astype("float64"), np.zeros(value.shape)
        for step in gradients:
            g = -step[i] if maximize else step[i]
            c = betas[0] * m + (1 - betas[0]) * g
            p = p - lr * (np.sign(c) + weight_decay * p)
            m = betas[1] * m + (1 - betas[1]) * g
        result.append((p, m))
    return result


def begin(device, dtype="float32", **options):
    """Parameters and an optimizer over them."""
    params = [torch.nn.Parameter(torch.tensor(value, device=device)) for value in arrays(99, dtype)]
    return params, Lion(params, **options)


def run(params, step, seeds):
    for seed in seeds:
        for param, g in zip(params, arrays(seed, str(params[0].dtype).removeprefix("torch."))):
            param.grad = torch.tensor(g, device=param.device)
        step()


def assert_close(tensors, values, dtype="float32"):
    tolerance = {"float32": 1e-5, "float64": 1e-13}[dtype]
    for tensor, value in zip(tensors, values, strict=True):
        np.testing.assert_allclose(tensor.detach().cpu().numpy(), value, tolerance, tolerance)


def raised(kind, call):
    """The message of the error that a call must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def check_numbers(device):
    for dtype in ("float32", "float64"):
        for options in OPTIONS:
            params, optimizer = begin(device, dtype, **options)
            run(params, optimizer.step, range(10))
            gradients = [arrays(seed, dtype) for seed in range(10)]
            expected = by_numpy(arrays(99, dtype), gradients, **options)
            assert_close(params, [p for p, _ in expected], dtype)
            means = [optimizer.state[param]["exp_avg"] for param in params]
            assert_close(means, [m for _, m in expected], dtype)
            # The formula's generic form, as every device without a kernel runs it.
            twins, other = begin("cpu", dtype, **options)
            run(twins, other.step, range(10))
            assert_close(params, [twin.detach().numpy() for twin in twins], dtype)
    print("agrees with a loop in NumPy, and with the generic form")


def check_state_dict(device):
    whole, optimizer = begin(device, **OPTIONS[1])
    run(whole, optimizer.step, range(4))
    params, first = begin(device, **OPTIONS[1])
    run(params, first.step, range(2))
    second = Lion(params)
    second.load_state_dict(first.state_dict())
    run(params, second.step, range(2, 4))
    assert_close(params, [param.detach().cpu().numpy() for param in whole])
    assert second.param_groups[0]["betas"] == (0.8, 0.95)
    assert optimizer.defaults.keys() == {
        "lr", "betas", "weight_decay", "foreach", "maximize", "capturable", "differentiable",
    }  # fmt: skip
    print("goes on from its state_dict")


def check_options(device):
    params, optimizer = begin(device, **OPTIONS[1])
    twins, compiled = begin(device, **OPTIONS[1])
    replay = torch.compile(compiled.step)
    for lr, seeds in ((0.01, range(3)), (0.003, range(3, 6))):
        optimizer.param_groups[0]["lr"] = compiled.param_groups[0]["lr"] = lr
        run(params, optimizer.step, seeds)
        run(twins, replay, seeds)
    assert_close(twins, [param.detach().cpu().numpy() for param in params])

    optimizer.found_inf = torch.tensor(1.0, device=device)  # as loss scaling leaves it
    before = [param.detach().cpu().numpy().copy() for param in params]
    run(params, optimizer.step, [7])
    assert_close(params, before)

    rate = torch.tensor(0.1, device=device, requires_grad=True)
    param = torch.ones(3, device=device).requires_grad_().clone()
    param.grad = torch.tensor([2.0, -1.0, 3.0], device=device)
    Lion([param], lr=rate, differentiable=True).step()
    param.sum().backward()
    assert rate.grad.item() == -1  # - sign(2) - sign(-1) - sign(3)

    tensors = [[torch.ones(2, device=device)] for _ in range(2)]
    means = [torch.zeros(2, device=device)]
    lion(*tensors, means, beta1=0.9, beta2=0.5, lr=0.25, weight_decay=1.0, maximize=True)
    assert tensors[0][0].tolist() == [1.0, 1.0] and means[0].tolist() == [-0.5, -0.5]

    embedding = torch.nn.Embedding(3, 2, sparse=True, device=device)
    embedding(torch.tensor([1], device=device)).sum().backward()
    message = raised(RuntimeError, Lion(embedding.parameters()).step)
    assert message == "Lion does not support sparse gradients"
    message = raised(ValueError, lambda: Lion(params, betas=(0.9, 1.0)))
    assert message == "Invalid beta parameter at index 1: 1.0"
    print("is captured, differentiable, and refuses what it does not serve")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    device = parser.parse_args().device
    check_numbers(device)
    check_state_dict(device)
    check_options(device)
    served, declined = (counts["lion_step", "cupy"] for counts in (table.served, table.declined))
    print(f"lion_step: {served} calls were served by the kernel, {declined} declined")
    assert bool(served) == (torch.device(device).type == "cuda")


if __name__ == "__main__":
    main()
