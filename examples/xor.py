"""The smallest training run: a two-layer network learns exclusive or.

    python -m examples.xor

With ``import torch`` in place of the first import it runs under PyTorch and prints the same losses.
"""

import argparse

import tensorflow_lite_clone as torch

nn = torch.nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=500, help="print the loss every so many steps")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    inputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=options.device)
    targets = torch.tensor([[0.0], [1.0], [1.0], [0.0]], device=options.device)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
    model.to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)

    for step in range(1, options.steps + 1):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.every == 0 or step == options.steps:
            print(f"step {step:5d}  loss {loss.item():.8f}")

    with torch.no_grad():
        for pair, output in zip(inputs.tolist(), model(inputs).squeeze(1).tolist(), strict=True):
            print(f"{pair[0]:.0f} xor {pair[1]:.0f} = {output:.3f}")


if __name__ == "__main__":
    main()
