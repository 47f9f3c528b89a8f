"""Deep Q-learning: replay memory, a target network, gather, soft updates, SmoothL1, OrderedDict state."""
import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple('Transition', ('state', 'action', 'next_state', 'reward'))
random.seed(0)
torch.manual_seed(0)


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 24)
        self.layer2 = nn.Linear(24, 24)
        self.advantage, self.value = nn.Linear(24, n_actions), nn.Linear(24, 1)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        a = self.advantage(x)
        return self.value(x) + a - a.mean(dim=1, keepdim=True)


class Corridor:
    """Walk to the right end of a corridor."""

    def reset(self):
        self.x, self.t = 0.3, 0
        return [self.x, 0.0]

    def step(self, action):
        self.x += (-0.1, 0.0, 0.12)[action]
        self.t += 1
        done = self.x >= 1 or self.x <= 0 or self.t > 25
        return [self.x, self.t / 25], (1.0 if self.x >= 1 else -0.05), done


env = Corridor()
policy_net, target_net = DQN(2, 3), DQN(2, 3)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = ReplayMemory(500)
steps_done = 0


def select_action(state):
    global steps_done
    eps_threshold = 0.05 + (0.9 - 0.05) * math.exp(-1. * steps_done / 60)
    steps_done += 1
    if random.random() > eps_threshold:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(3)]], dtype=torch.long)


def optimize_model():
    if len(memory) < 16:
        return None
    batch = Transition(*zip(*memory.sample(16)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_action_values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_state_values = torch.zeros(16)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * 0.95) + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


for i_episode in range(12):
    state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    total, losses = 0.0, []
    while True:
        action = select_action(state)
        observation, reward, done = env.step(action.item())
        total += reward
        next_state = None if done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, next_state, torch.tensor([reward]))
        state = next_state
        loss = optimize_model()
        if loss is not None:
            losses.append(loss)
        target, policy = target_net.state_dict(), policy_net.state_dict()
        for key in policy:
            target[key] = policy[key] * 0.05 + target[key] * (1 - 0.05)
        target_net.load_state_dict(target)
        if done:
            break
    print(i_episode, 'reward', round(total, 4), 'losses', *['%.5f' % v for v in losses[:4]])
