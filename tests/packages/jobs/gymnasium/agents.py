"""Agents written by hand: REINFORCE, PPO and DQN in the shape of single-file scripts."""

import gymnasium as gym
import numpy as np
import torch
from steps import step
from torch import nn, optim
from torch.distributions import Categorical, Normal


@step("REINFORCE on CartPole: returns, weights")
def _():
    env = gym.make("CartPole-v1")
    policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    returns = []
    for episode in range(5):
        state, _ = env.reset(seed=episode)
        logs, rewards, done = [], [], False
        while not done:
            drawn = Categorical(logits=policy(torch.from_numpy(state)))
            action = drawn.sample()
            logs.append(drawn.log_prob(action))
            state, reward, ended, cut, _ = env.step(action.item())
            rewards.append(reward)
            done = ended or cut
        total, discounted = 0.0, []
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            discounted.insert(0, total)
        goal = torch.tensor(discounted)
        goal = (goal - goal.mean()) / (goal.std() + 1e-8)
        loss = -(torch.stack(logs) * goal).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        returns.append(sum(rewards))
    return returns, policy[0].weight


def initialized(layer, std=2**0.5, bias=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self, envs):
        super().__init__()
        width = int(np.prod(envs.single_observation_space.shape))
        self.critic = nn.Sequential(
            initialized(nn.Linear(width, 32)), nn.Tanh(), initialized(nn.Linear(32, 1), 1.0)
        )
        actions = envs.single_action_space
        self.discrete = isinstance(actions, gym.spaces.Discrete)
        out = actions.n if self.discrete else int(np.prod(actions.shape))
        self.actor = nn.Sequential(
            initialized(nn.Linear(width, 32)), nn.Tanh(), initialized(nn.Linear(32, out), 0.01)
        )
        self.log_std = nn.Parameter(torch.zeros(1, out))

    def act(self, x, action=None):
        out = self.actor(x)
        if self.discrete:
            drawn = Categorical(logits=out)
            action = drawn.sample() if action is None else action
            return action, drawn.log_prob(action), drawn.entropy(), self.critic(x)
        drawn = Normal(out, self.log_std.expand_as(out).exp())
        action = drawn.sample() if action is None else action
        return action, drawn.log_prob(action).sum(1), drawn.entropy().sum(1), self.critic(x)


for name in ("CartPole-v1", "Pendulum-v1"):

    @step(f"PPO on {name}: losses, weights", name)
    def _(name):
        envs = gym.vector.SyncVectorEnv([lambda: gym.make(name)] * 2)
        agent = Agent(envs)
        optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
        steps, found = 16, []
        state = torch.Tensor(envs.reset(seed=1)[0])
        done = torch.zeros(2)
        for _ in range(2):
            kept = {k: [] for k in ("obs", "actions", "logs", "rewards", "dones", "values")}
            for _ in range(steps):
                with torch.no_grad():
                    action, log, _, value = agent.act(state)
                after, reward, ended, cut, _ = envs.step(action.numpy())
                for key, each in zip(
                    kept, (state, action, log, torch.tensor(reward).float(), done, value.flatten())
                ):
                    kept[key].append(each)
                state = torch.Tensor(after)
                done = torch.Tensor(np.logical_or(ended, cut).astype(np.float32))
            obs, actions, logs, rewards, dones, values = map(torch.stack, kept.values())
            with torch.no_grad():
                following = agent.critic(state).reshape(-1)
                advantages, last = torch.zeros_like(rewards), 0
                for t in reversed(range(steps)):
                    alive = 1.0 - (done if t == steps - 1 else dones[t + 1])
                    after = following if t == steps - 1 else values[t + 1]
                    delta = rewards[t] + 0.99 * after * alive - values[t]
                    advantages[t] = last = delta + 0.99 * 0.95 * alive * last
                returns = advantages + values
            flat = [each.flatten(0, 1) for each in (obs, actions, logs, advantages, returns)]
            order = np.arange(2 * steps)
            np.random.shuffle(order)
            for start in range(0, 2 * steps, 16):
                o, a, old, advantage, goal = (each[order[start : start + 16]] for each in flat)
                _, new, entropy, value = agent.act(o, a)
                ratio = (new - old).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clipped = torch.clamp(ratio, 0.8, 1.2)
                loss = torch.max(-advantage * ratio, -advantage * clipped).mean()
                loss = loss - 0.01 * entropy.mean() + 0.5 * (value.view(-1) - goal).square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
                found.append(loss.item())
        return found, agent.actor[0].weight


@step("DQN on CartPole: losses, weights, a target network, saved and loaded")
def _():
    env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))

    def network():
        return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))

    online, target = network(), network()
    target.load_state_dict(online.state_dict())
    optimizer = optim.Adam(online.parameters(), lr=1e-3)
    memory, losses = [], []
    state, _ = env.reset(seed=1)
    env.action_space.seed(1)
    for t in range(80):
        if np.random.rand() < max(0.1, 1 - t / 50):
            action = env.action_space.sample()
        else:
            action = online(torch.as_tensor(state)).argmax().item()
        after, reward, ended, cut, _ = env.step(action)
        memory.append((state, action, reward, after, ended))
        state = env.reset(seed=t)[0] if ended or cut else after
        if t >= 20 and t % 4 == 0:
            batch = [memory[i] for i in np.random.randint(len(memory), size=16)]
            s, a, r, n, d = (torch.as_tensor(np.array(each)) for each in zip(*batch))
            with torch.no_grad():
                goal = r.float() + 0.99 * target(n).max(1).values * (1 - d.float())
            chosen = online(s).gather(1, a[:, None]).squeeze()
            loss = nn.functional.smooth_l1_loss(chosen, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            for slow, fast in zip(target.parameters(), online.parameters()):
                slow.data.copy_(0.1 * fast.data + 0.9 * slow.data)
    torch.save({"model": online.state_dict(), "optimizer": optimizer.state_dict()}, "dqn.pt")
    kept = torch.load("dqn.pt")
    again = network()
    again.load_state_dict(kept["model"])
    return losses, again[0].weight, kept["optimizer"]["state"][0]["exp_avg"], target[2].bias


@step("a REINFORCE batch with masks of episodes padded")
def _():
    lengths = torch.tensor([5, 3])
    policy = nn.GRU(4, 8, batch_first=True)
    states = torch.randn(2, 5, 4)
    packed = nn.utils.rnn.pack_padded_sequence(states, lengths, batch_first=True)
    out, _ = nn.utils.rnn.pad_packed_sequence(policy(packed)[0], batch_first=True)
    mask = torch.arange(5) < lengths[:, None]
    loss = (Categorical(logits=out[..., :2]).entropy() * mask).sum() / mask.sum()
    loss.backward()
    return loss, policy.weight_ih_l0.grad


@step("an action that the environment has not", refused=True)
def _():
    env = gym.make("CartPole-v1")
    env.reset(seed=1)
    env.step(torch.tensor(5).item())


@step("a state of another width", refused=True)
def _():
    envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")])
    Agent(envs).act(torch.zeros(1, 7))
