"""Schedulers: time steps, a whole chain of steps, noise added, gradients of a step."""

import diffusers
import torch
from steps import step

NAMES = [
    "CMStochasticIterativeScheduler",
    "CogVideoXDDIMScheduler",
    "CogVideoXDPMScheduler",
    "DDIMParallelScheduler",
    "DDIMScheduler",
    "DDPMParallelScheduler",
    "DDPMScheduler",
    "DEISMultistepScheduler",
    "DPMSolverMultistepScheduler",
    "DPMSolverMultistepInverseScheduler",
    "DPMSolverSinglestepScheduler",
    "EDMDPMSolverMultistepScheduler",
    "EDMEulerScheduler",
    "EulerAncestralDiscreteScheduler",
    "EulerDiscreteScheduler",
    "FlowMatchEulerDiscreteScheduler",
    "FlowMatchHeunDiscreteScheduler",
    "HeunDiscreteScheduler",
    "IPNDMScheduler",
    "KDPM2AncestralDiscreteScheduler",
    "KDPM2DiscreteScheduler",
    "LCMScheduler",
    "LMSDiscreteScheduler",
    "PNDMScheduler",
    "SASolverScheduler",
    "TCDScheduler",
    "UniPCMultistepScheduler",
    "DDPMWuerstchenScheduler",
]


def net(x, t):
    """A denoiser that needs no weights."""
    return torch.tanh(x) * 0.3 + 0.01 * torch.as_tensor(t).float().reshape(-1)[0] / 1000


def chain(scheduler, count=6):
    generator = torch.Generator().manual_seed(0)
    if "generator" in scheduler.step.__code__.co_varnames:
        more = {"generator": generator}
    else:
        more = {}
    scheduler.set_timesteps(count)
    x = torch.randn(1, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    x = x * getattr(scheduler, "init_noise_sigma", 1.0)
    old = None
    for i, t in enumerate(scheduler.timesteps):
        given = scheduler.scale_model_input(x, t) if hasattr(scheduler, "scale_model_input") else x
        if isinstance(scheduler, diffusers.CogVideoXDPMScheduler):
            back = scheduler.timesteps[i - 1] if i > 0 else None
            x, old = scheduler.step(
                net(given, t), old, t, back, x, generator=generator, return_dict=False
            )
        elif isinstance(scheduler, diffusers.DDPMWuerstchenScheduler):
            if i == len(scheduler.timesteps) - 1:
                break
            x = scheduler.step(net(given, t), t.reshape(1), x, **more).prev_sample
        else:
            x = scheduler.step(net(given, t), t, x, **more).prev_sample
    return scheduler.timesteps, x


for name in NAMES:

    @step(f"{name}: steps and samples", name)
    def _(name):
        return chain(getattr(diffusers, name)())


OPTIONS = {
    "DDPMScheduler": [
        {"beta_schedule": "squaredcos_cap_v2", "prediction_type": "v_prediction"},
        {"variance_type": "fixed_large", "thresholding": True},
        {
            "beta_schedule": "sigmoid",
            "timestep_spacing": "trailing",
            "rescale_betas_zero_snr": True,
        },
    ],
    "DDIMScheduler": [
        {"set_alpha_to_one": False, "prediction_type": "sample", "clip_sample": False},
        {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing"},
    ],
    "DPMSolverMultistepScheduler": [
        {"use_karras_sigmas": True, "solver_order": 3},
        {"algorithm_type": "sde-dpmsolver++", "euler_at_final": True},
        {"use_exponential_sigmas": True, "final_sigmas_type": "sigma_min"},
        {"use_beta_sigmas": True},
        {"use_lu_lambdas": True, "lower_order_final": False},
    ],
    "EulerDiscreteScheduler": [
        {"use_karras_sigmas": True},
        {"prediction_type": "v_prediction", "timestep_spacing": "leading", "steps_offset": 1},
        {"timestep_type": "continuous", "rescale_betas_zero_snr": True},
    ],
    "FlowMatchEulerDiscreteScheduler": [
        {"shift": 3.0},
        {"use_karras_sigmas": True},
        {"stochastic_sampling": True},
    ],
    "UniPCMultistepScheduler": [
        {"solver_order": 3, "solver_type": "bh1"},
        {"use_flow_sigmas": True},
    ],
    "HeunDiscreteScheduler": [{"use_karras_sigmas": True, "beta_schedule": "exp"}],
}
for name, variants in OPTIONS.items():

    @step(f"{name}: its options", name, variants)
    def _(name, variants):
        return [chain(getattr(diffusers, name)(**options)) for options in variants]


@step("add_noise, get_velocity, scale_noise, betas")
def _():
    x, noise = torch.randn(3, 2, 4, 4), torch.randn(3, 2, 4, 4)
    t = torch.tensor([1, 400, 990])
    ddpm, ddim = diffusers.DDPMScheduler(), diffusers.DDIMScheduler(beta_schedule="scaled_linear")
    euler = diffusers.EulerDiscreteScheduler()
    euler.set_timesteps(10)
    flow = diffusers.FlowMatchEulerDiscreteScheduler()
    return (
        ddpm.add_noise(x, noise, t),
        ddpm.get_velocity(x, noise, t),
        ddim.add_noise(x, noise, t),
        euler.add_noise(x, noise, euler.timesteps[[0, 4, 9]]),
        flow.scale_noise(x, flow.timesteps[[10, 500, 900]], noise),
        ddim.betas,
        ddim.alphas_cumprod,
    )


@step("gradients through a step; float64; bfloat16")
def _():
    scheduler = diffusers.DDIMScheduler()
    scheduler.set_timesteps(5)
    found = []
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.randn(1, 2, 3, 3, dtype=dtype, requires_grad=True)
        out = scheduler.step(torch.tanh(x), 400, x).prev_sample
        out.float().square().sum().backward()
        found += [out, x.grad]
    return found


@step("saved, loaded, one scheduler from another's config, custom time steps and sigmas")
def _():
    scheduler = diffusers.DDPMScheduler(500, beta_end=0.01)
    scheduler.save_pretrained("scheduler")
    again = diffusers.DDPMScheduler.from_pretrained("scheduler")
    other = diffusers.DPMSolverMultistepScheduler.from_config(again.config, use_karras_sigmas=True)
    euler = diffusers.FlowMatchEulerDiscreteScheduler()
    euler.set_timesteps(sigmas=[1.0, 0.6, 0.3])
    ddim = diffusers.DDPMScheduler()
    ddim.set_timesteps(timesteps=[900, 500, 100])
    return chain(again), chain(other), euler.sigmas, ddim.timesteps


@step("refused: unknown betas", refused=True)
def _():
    diffusers.DDPMScheduler(beta_schedule="none")


@step("refused: more steps than were trained", refused=True)
def _():
    diffusers.DDPMScheduler(10).set_timesteps(20)


@step("refused: a step before set_timesteps", refused=True)
def _():
    diffusers.DDIMScheduler().step(torch.ones(1), 3, torch.ones(1))


@step("refused: an index in place of a time", refused=True)
def _():
    scheduler = diffusers.EulerDiscreteScheduler()
    scheduler.set_timesteps(5)
    scheduler.step(torch.ones(1), 3, torch.ones(1))


@step("refused: an unknown kind of prediction", refused=True)
def _():
    scheduler = diffusers.DDIMScheduler(prediction_type="nothing")
    scheduler.set_timesteps(5)
    scheduler.step(torch.ones(1), 3, torch.ones(1))
