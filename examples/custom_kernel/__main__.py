"""Check the op: `python -m examples.custom_kernel --device cuda` (or cpu)."""

from __future__ import annotations

import argparse

import tensorflow_lite_clone as torch
from examples.custom_kernel.swiglu import swiglu
from tensorflow_lite_clone.dispatch import table


def main() -> None:
    """Compare with separate functions, and the gradients with central differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    device = parser.parse_args().device

    torch.manual_seed(0)
    x = torch.randn(300, 70, device=device, requires_grad=True)
    w = torch.randn(300, 70, device=device, requires_grad=True)
    g = torch.randn(300, 70, device=device)
    y = swiglu(x, w)
    expected = torch.nn.functional.silu(x) * w
    assert torch.allclose(y, expected, atol=1e-6)
    for mine, theirs in zip(
        torch.autograd.grad(y, (x, w), g), torch.autograd.grad(expected, (x, w), g), strict=True
    ):
        assert torch.allclose(mine, theirs, atol=1e-5)
    print("agrees with silu(x) * w, gradients as well")

    x = torch.randn(3, 5, dtype=torch.float64, device=device, requires_grad=True)
    w = torch.randn(3, 5, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(swiglu, (x, w))
    assert torch.autograd.gradgradcheck(swiglu, (x, w))
    print("gradients of first and second order are right")

    for name in ("swiglu", "swiglu_backward"):
        served, declined = (counts[name, "cupy"] for counts in (table.served, table.declined))
        print(f"{name}: {served} calls were served by the kernel, {declined} declined")
        assert bool(served) == (torch.device(device).type == "cuda")


if __name__ == "__main__":
    main()
