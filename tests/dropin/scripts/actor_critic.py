"""Actor and critic on one trunk, namedtuples of saved actions, smooth L1 for the value."""
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

SavedAction = namedtuple('SavedAction', ['log_prob', 'value', 'entropy'])
torch.manual_seed(0)
rng = np.random.RandomState(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 16)
        self.action_head = nn.Linear(16, 1)
        self.log_std = nn.Parameter(torch.zeros(1))
        self.value_head = nn.Linear(16, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = torch.tanh(self.affine1(x))
        return self.action_head(x), self.log_std.exp().expand(1), self.value_head(x)


model = Policy()
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, alpha=0.95, centered=True)
for episode in range(20):
    position, velocity = rng.uniform(-1, 1), 0.0
    for step in range(15):
        mean, std, value = model(torch.as_tensor([position, velocity], dtype=torch.float32))
        pi = Normal(mean, std)
        action = pi.sample()
        model.saved_actions.append(SavedAction(pi.log_prob(action), value, pi.entropy()))
        velocity = 0.9 * velocity + 0.1 * float(action.clamp(-1, 1))
        position += velocity
        model.rewards.append(-position ** 2)
    R, returns = 0, []
    for r in reversed(model.rewards):
        R = r + 0.95 * R
        returns.insert(0, R)
    returns = torch.tensor(returns, dtype=torch.float32)
    policy_losses, value_losses = [], []
    for (log_prob, value, entropy), R in zip(model.saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage - 0.01 * entropy)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad(set_to_none=False)
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), clip_value=1.0)
    optimizer.step()
    print(f"episode {episode:2d} return {sum(model.rewards):9.4f} loss {loss.item():9.4f} "
          f"std {model.log_std.exp().item():.5f}")
    model.saved_actions.clear()
    model.rewards.clear()
