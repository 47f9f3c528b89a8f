"""Reinforcement learning: every algorithm, saved and loaded."""

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize
from steps import step


def weights(model):
    return [(name, p) for name, p in model.policy.state_dict().items()][:6]


def evaluated(model, env):
    model.policy.set_training_mode(False)
    observation = env.observation_space.high.clip(-1, 1) * 0.1
    action, _ = model.predict(observation, deterministic=True)
    return weights(model), action


@step("PPO on CartPole: weights, an episode, saved and loaded")
def _():
    env = gym.make("CartPole-v1")
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=2, seed=1, device="cpu")
    model.learn(128)
    model.save("ppo")
    again = PPO.load("ppo", env=env, device="cpu")
    reward = evaluate_policy(model, env, n_eval_episodes=2)
    observation = np.array([0.1, 0.2, 0.05, -0.1], dtype=np.float32)
    obs = torch.as_tensor(observation)[None]
    again.learn(64)
    return (
        weights(model),
        model.policy.predict_values(obs),
        model.policy.get_distribution(obs).distribution.logits,
        reward,
        weights(again),
    )


@step("A2C with a vectorized, normalized environment")
def _():
    env = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1))
    model = A2C("MlpPolicy", env, seed=1, device="cpu")
    model.learn(60)
    env.save("normalized.pkl")
    return weights(model), env.obs_rms.mean


@step("DQN")
def _():
    env = gym.make("CartPole-v1")
    model = DQN("MlpPolicy", env, learning_starts=20, buffer_size=200, batch_size=16, seed=1,
                target_update_interval=30, device="cpu")  # fmt: skip
    model.learn(80)
    return evaluated(model, env)


for algorithm in (SAC, TD3, DDPG):

    @step(f"{algorithm.__name__} on Pendulum, with its replay buffer saved", algorithm)
    def _(algorithm):
        env = gym.make("Pendulum-v1")
        noise = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
        model = algorithm(
            "MlpPolicy",
            env,
            learning_starts=20,
            buffer_size=200,
            batch_size=16,
            seed=1,
            action_noise=noise,
            policy_kwargs={"net_arch": [32, 32]},
            device="cpu",
        )
        model.learn(60)
        model.save_replay_buffer("buffer")
        model.load_replay_buffer("buffer")
        return evaluated(model, env), model.replay_buffer.size()


class Reach(gym.Env):
    """Move a point to its goal."""

    def __init__(self):
        box = spaces.Box(-1, 1, (2,), np.float32)
        self.observation_space = spaces.Dict(
            {"observation": box, "achieved_goal": box, "desired_goal": box}
        )
        self.action_space = spaces.Box(-0.2, 0.2, (2,), np.float32)

    def _observed(self):
        return {"observation": self.at, "achieved_goal": self.at, "desired_goal": self.goal}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.zeros(2, np.float32)
        self.goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.count = 0
        return self._observed(), {}

    def compute_reward(self, achieved, desired, info):
        return -(np.linalg.norm(achieved - desired, axis=-1) > 0.1).astype(np.float32)

    def step(self, action):
        self.at = np.clip(self.at + action, -1, 1).astype(np.float32)
        self.count += 1
        reward = float(self.compute_reward(self.at, self.goal, {}))
        return self._observed(), reward, reward == 0, self.count >= 10, {}


@step("hindsight replay of SAC with dictionaries of observations")
def _():
    from stable_baselines3 import HerReplayBuffer

    model = SAC(
        "MultiInputPolicy",
        Reach(),
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 2, "goal_selection_strategy": "future"},
        learning_starts=20,
        batch_size=16,
        buffer_size=200,
        seed=1,
        policy_kwargs={"net_arch": [32]},
        device="cpu",
    )
    model.learn(50)
    return weights(model)


@step("a convolutional policy of images")
def _():
    class Pictures(gym.Env):
        observation_space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
        action_space = spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            self.count = 0
            return self._observed(), {}

        def _observed(self):
            return np.full((36, 36, 1), (self.count * 30) % 256, np.uint8)

        def step(self, action):
            self.count += 1
            return self._observed(), float(action), self.count > 6, False, {}

    model = PPO("CnnPolicy", Pictures(), n_steps=16, batch_size=8, n_epochs=1, seed=1,
                policy_kwargs={"features_extractor_kwargs": {"features_dim": 16}},
                device="cpu")  # fmt: skip
    model.learn(32)
    return weights(model)


@step("callbacks: checkpoints, evaluation, schedules, a logger of CSV")
def _():
    from stable_baselines3.common.logger import configure

    env = gym.make("CartPole-v1")
    model = PPO("MlpPolicy", env, learning_rate=lambda left: 3e-4 * left, n_steps=32,
                batch_size=16, n_epochs=1, seed=1, use_sde=False, device="cpu")  # fmt: skip
    model.set_logger(configure("logs", ["csv", "tensorboard"]))
    checkpoint = CheckpointCallback(32, "saved")
    evaluation = EvalCallback(gym.make("CartPole-v1"), eval_freq=32, n_eval_episodes=1, verbose=0)
    model.learn(64, callback=[checkpoint, evaluation])
    again = PPO.load("saved/rl_model_64_steps", device="cpu")
    return weights(again), evaluation.last_mean_reward


@step("parameters set from another model, exported")
def _():
    env = gym.make("CartPole-v1")
    one = A2C("MlpPolicy", env, seed=1, device="cpu")
    other = A2C("MlpPolicy", env, seed=2, device="cpu")
    other.set_parameters(one.get_parameters())
    return weights(other), other.policy.optimizer.state_dict()["param_groups"][0]["lr"]


@step("state-dependent exploration, multiple discrete actions")
def _():
    class Many(gym.Env):
        observation_space = spaces.Box(-1, 1, (3,), np.float32)
        action_space = spaces.MultiDiscrete([2, 3])

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(3, np.float32), {}

        def step(self, action):
            return np.full(3, action.sum() / 3, np.float32).clip(-1, 1), 1.0, False, True, {}

    first = PPO("MlpPolicy", Many(), n_steps=16, batch_size=8, n_epochs=1, seed=1, device="cpu")
    first.learn(16)
    second = A2C("MlpPolicy", gym.make("Pendulum-v1"), use_sde=True, seed=1, device="cpu")
    second.learn(20)
    return weights(first), weights(second)


@step("a policy for an action space that it has not", refused=True)
def _():
    SAC("MlpPolicy", gym.make("CartPole-v1"), device="cpu")


@step("observations of another shape", refused=True)
def _():
    model = A2C("MlpPolicy", gym.make("CartPole-v1"), device="cpu")
    model.predict(np.zeros(7, np.float32))


@step("parameters of another architecture", refused=True)
def _():
    env = gym.make("CartPole-v1")
    small = A2C("MlpPolicy", env, policy_kwargs={"net_arch": [8]}, device="cpu")
    A2C("MlpPolicy", env, device="cpu").set_parameters(small.get_parameters())
