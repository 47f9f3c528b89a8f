"""Every flow, its inverse and gradients; training; conditional and multiscale models."""

import normflows as nf
import torch
from steps import step


def mlp(*widths):
    return nf.nets.MLP(list(widths), init_zeros=False)


FLOWS = {
    "AffineConstFlow": lambda: nf.flows.AffineConstFlow((4,)),
    "ActNorm": lambda: nf.flows.ActNorm((4,)),
    "AffineCouplingBlock": lambda: nf.flows.AffineCouplingBlock(mlp(2, 8, 4)),
    "MaskedAffineFlow": lambda: nf.flows.MaskedAffineFlow(
        torch.tensor([1.0, 0.0, 1.0, 0.0]), mlp(4, 8, 4), mlp(4, 8, 4)
    ),
    "MaskedAffineAutoregressive": lambda: nf.flows.MaskedAffineAutoregressive(4, 8, num_blocks=1),
    "CoupledRationalQuadraticSpline": lambda: nf.flows.CoupledRationalQuadraticSpline(4, 1, 8),
    "AutoregressiveRationalQuadraticSpline": lambda: nf.flows.AutoregressiveRationalQuadraticSpline(
        4, 1, 8, init_identity=False
    ),
    "CircularCoupledRationalQuadraticSpline": lambda: (
        nf.flows.CircularCoupledRationalQuadraticSpline(4, 1, 8, ind_circ=[0], tail_bound=3.0)
    ),
    "LULinearPermute": lambda: nf.flows.LULinearPermute(4, identity_init=False),
    "InvertibleAffine": lambda: nf.flows.InvertibleAffine(4),
    "Permute": lambda: nf.flows.Permute(4, mode="swap"),
    "BatchNorm": lambda: nf.flows.BatchNorm(),
    "Planar": lambda: nf.flows.Planar((4,)),
    "Radial": lambda: nf.flows.Radial((4,)),
    "Residual": lambda: nf.flows.Residual(
        nf.nets.LipschitzMLP([4, 8, 4], init_zeros=False, lipschitz_const=0.9),
        reduce_memory=False,
    ),
    "PeriodicWrap": lambda: nf.flows.PeriodicWrap([0, 1], 2.0),
}


def cleaned(x):
    """Nothing where there are but rounding errors: what is zero in exact arithmetic."""
    return x * (x.norm() > 1e-5)


for name in FLOWS:

    @step(f"{name}: values, determinants, gradients, the inverse", name)
    def _(name):
        flow = FLOWS[name]()
        if name == "Residual":
            flow.eval()
        x = torch.randn(6, 4).requires_grad_()
        y, log = flow(x)
        (y.square().mean() + log.mean()).backward()
        found = [
            y,
            cleaned(log),
            x.grad,
            [cleaned(p.grad) for p in flow.parameters() if p.grad is not None],
        ]
        try:
            back, log = flow.inverse(y.detach())
            found.append((back, cleaned(log)))
        except NotImplementedError:
            found.append("no inverse")
        return found


@step("RealNVP trained on two moons: losses, samples, densities")
def _():
    flows = []
    for _ in range(4):
        flows += [nf.flows.AffineCouplingBlock(mlp(1, 16, 2)), nf.flows.Permute(2, mode="swap")]
    model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), flows)
    target = nf.distributions.TwoMoons()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model.forward_kld(target.sample(64))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save(model.state_dict(), "flow.pt")
    model.load_state_dict(torch.load("flow.pt"))
    z, log = model.sample(5)
    return losses, z, log, model.log_prob(torch.zeros(2, 2))


@step("the reverse divergence, annealed; alpha divergence")
def _():
    flows = [nf.flows.Planar((2,)) for _ in range(4)]
    model = nf.NormalizingFlow(
        nf.distributions.DiagGaussian(2), flows, nf.distributions.TwoModes(2.0, 0.2)
    )
    loss = model.reverse_kld(32, beta=0.5)
    loss.backward()
    return loss, [p.grad for p in model.parameters()], model.reverse_alpha_div(16, alpha=0.5)


@step("Glow: multiscale, with classes")
def _():
    levels, bases, merges, flows = 2, [], [], []
    for i in range(levels):
        each = [
            nf.flows.GlowBlock(3 * 2 ** (levels + 1 - i), 8, split_mode="channel", scale=True)
            for _ in range(2)
        ]
        flows.append([*each, nf.flows.Squeeze()])
        if i > 0:
            merges.append(nf.flows.Merge())
            shape = (3 * 2 ** (levels - i), 8 // 2 ** (levels - i), 8 // 2 ** (levels - i))
        else:
            shape = (3 * 2 ** (levels + 1), 8 // 2**levels, 8 // 2**levels)
        bases.append(nf.distributions.ClassCondDiagGaussian(shape, 3))
    model = nf.MultiscaleFlow(bases, flows, merges, class_cond=True)
    x, y = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
    loss = model.forward_kld(x, y)
    loss.backward()
    return loss, [p.grad for p in model.parameters()][:4]


@step("conditional flows")
def _():
    flows = [
        nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8, num_context_channels=3),
        nf.flows.LULinearPermute(2),
    ]
    model = nf.ConditionalNormalizingFlow(nf.distributions.DiagGaussian(2), flows)
    context = torch.randn(5, 3)
    return model.forward_kld(torch.randn(5, 2), context), model.log_prob(torch.ones(5, 2), context)


@step("stochastic layers: Metropolis-Hastings, Hamiltonian Monte Carlo; targets")
def _():
    target = nf.distributions.TwoModes(2.0, 0.2)
    walk = nf.flows.MetropolisHastings(target, nf.distributions.DiagGaussianProposal((2,), 0.3), 3)
    chain = nf.flows.HamiltonianMonteCarlo(target, 2, torch.zeros(2) - 2, torch.zeros(2))
    x = torch.randn(4, 2)
    return walk(x), chain(x), nf.distributions.RingMixture().log_prob(x)


@step("a base of a mixture, its densities and samples")
def _():
    base = nf.distributions.GaussianMixture(3, 2)
    z, log = base(4)
    log.sum().backward()
    return z, log, [p.grad for p in base.parameters() if p.grad is not None]


@step("inputs of another width", refused=True)
def _():
    nf.flows.MaskedAffineFlow(torch.ones(4), mlp(4, 4), mlp(4, 4))(torch.randn(2, 5))


@step("weights of another flow", refused=True)
def _():
    nf.flows.Planar((2,)).load_state_dict(nf.flows.Radial((2,)).state_dict())
