"""Train XOR with an installed package: a script of its own, which imports nothing else of ours."""

from __future__ import annotations

import sys

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn, optim

torch.manual_seed(0)
x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = optim.Adam(model.parameters(), lr=0.05)
for _ in range(300):
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

right = int(((model(x) > 0) == (y > 0)).sum())
print(f"{right} of 4 right, loss {loss.item():.4f}, from {torch.__file__}")
sys.exit(right != 4)
