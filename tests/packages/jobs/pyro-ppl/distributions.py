"""Pyro's own distributions, transforms and normalizing flows, Gaussian processes."""

import pyro
import pyro.contrib.gp as gp
import pyro.distributions as dist
import pyro.distributions.transforms as T
import torch
from steps import step

DISTRIBUTIONS = {
    "Delta": lambda: dist.Delta(torch.ones(2)),
    "BetaBinomial": lambda: dist.BetaBinomial(torch.ones(2), torch.ones(2), 5),
    "GammaPoisson": lambda: dist.GammaPoisson(torch.ones(2), torch.ones(2)),
    "DirichletMultinomial": lambda: dist.DirichletMultinomial(torch.ones(3), total_count=5),
    "ZeroInflatedPoisson": lambda: dist.ZeroInflatedPoisson(torch.ones(2), gate=torch.tensor(0.3)),
    "ZeroInflatedNegativeBinomial": lambda: dist.ZeroInflatedNegativeBinomial(
        torch.ones(2), probs=torch.tensor(0.4), gate=torch.tensor(0.3)
    ),
    "Stable": lambda: dist.Stable(torch.tensor(1.5), torch.tensor(0.1)),
    "SkewLogistic": lambda: dist.SkewLogistic(torch.zeros(2), torch.ones(2)),
    "AsymmetricLaplace": lambda: dist.AsymmetricLaplace(0.0, torch.ones(2), torch.ones(2)),
    "SoftLaplace": lambda: dist.SoftLaplace(torch.zeros(2), torch.ones(2)),
    "InverseGamma": lambda: dist.InverseGamma(torch.ones(2) * 2, torch.ones(2)),
    "LKJ": lambda: dist.LKJCholesky(3, 1.0),
    "VonMises": lambda: dist.VonMises(torch.zeros(2), torch.ones(2)),
    "ProjectedNormal": lambda: dist.ProjectedNormal(torch.ones(3)),
    "MixtureOfDiagNormals": lambda: dist.MixtureOfDiagNormals(
        torch.randn(2, 3), torch.ones(2, 3), torch.zeros(2)
    ),
    "OMTMultivariateNormal": lambda: dist.OMTMultivariateNormal(torch.zeros(2), torch.eye(2)),
    "MultivariateStudentT": lambda: dist.MultivariateStudentT(3.0, torch.zeros(2), torch.eye(2)),
    "OrderedLogistic": lambda: dist.OrderedLogistic(torch.tensor(0.3), torch.tensor([0.0, 1.0])),
    "TruncatedPolyaGamma": lambda: dist.TruncatedPolyaGamma(torch.tensor(1.0)),
    "AffineBeta": lambda: dist.AffineBeta(torch.tensor(2.0), torch.tensor(3.0), 1.0, 2.0),
    "ExtendedBinomial": lambda: dist.ExtendedBinomial(3, probs=torch.tensor(0.4)),
    "Logistic": lambda: dist.Logistic(torch.zeros(2), torch.ones(2)),
    "Pareto": lambda: dist.Pareto(torch.ones(2), torch.ones(2) * 2),
    "Weibull": lambda: dist.Weibull(torch.ones(2), torch.ones(2)),
    "MaskedMixture": lambda: dist.MaskedMixture(
        torch.tensor([True, False]),
        dist.Normal(torch.zeros(2), 1.0),
        dist.Laplace(torch.zeros(2), 1.0),
    ),
    "RelaxedOneHotCategoricalStraightThrough": lambda: dist.RelaxedOneHotCategoricalStraightThrough(
        torch.tensor(0.5), logits=torch.zeros(3)
    ),
    "GaussianHMM": lambda: dist.GaussianHMM(
        dist.MultivariateNormal(torch.zeros(1), torch.eye(1)),
        torch.eye(1),
        dist.MultivariateNormal(torch.zeros(1), torch.eye(1)),
        torch.ones(1, 2),
        dist.MultivariateNormal(torch.zeros(2), torch.eye(2)),
        duration=4,
    ),
}

for name in DISTRIBUTIONS:

    @step(f"{name}: samples and their density", name)
    def _(name):
        made = DISTRIBUTIONS[name]()
        x = made.sample() if name == "GaussianHMM" else made.sample((3,))
        try:
            density = made.log_prob(x)
        except NotImplementedError:
            density = None
        return x, density


@step("a discrete hidden Markov model's density and filter")
def _():
    made = dist.DiscreteHMM(
        torch.zeros(2), torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log(),
        dist.Normal(torch.tensor([0.0, 3.0]), 1.0), duration=4,
    )  # fmt: skip
    x = torch.tensor([0.1, 0.2, 3.0, 2.8])
    return made.log_prob(x), made.filter(x).probs


FLOWS = {
    "affine_autoregressive": lambda: T.affine_autoregressive(3, [8]),
    "affine_coupling": lambda: T.affine_coupling(3, [8]),
    "batchnorm": lambda: T.batchnorm(3),
    "block_autoregressive": lambda: T.block_autoregressive(3),
    "generalized_channel_permute": lambda: T.generalized_channel_permute(channels=3),
    "householder": lambda: T.householder(3, 2),
    "matrix_exponential": lambda: T.matrix_exponential(3),
    "neural_autoregressive": lambda: T.neural_autoregressive(3, [9]),
    "planar": lambda: T.planar(3),
    "polynomial": lambda: T.polynomial(3, [9]),
    "radial": lambda: T.radial(3),
    "spline": lambda: T.spline(3, count_bins=4),
    "spline, quadratic": lambda: T.spline(3, count_bins=4, order="quadratic"),
    "spline_autoregressive": lambda: T.spline_autoregressive(3, [8], 4),
    "spline_coupling": lambda: T.spline_coupling(3, 1, [8], 4),
    "sylvester": lambda: T.sylvester(3, 2),
}

for name in FLOWS:

    @step(f"flow {name}: values, jacobian, gradients", name)
    def _(name):
        flow = FLOWS[name]()
        channels = name == "generalized_channel_permute"
        x = torch.randn(5, 3, 2, 2) if channels else torch.randn(5, 3)
        y = flow(x)
        jacobian = flow.log_abs_det_jacobian(x, y)
        (y.sin().mean() + jacobian.mean()).backward()
        # That of a permutation is 1, and its logarithm a rounding error.
        jacobian = jacobian * (jacobian.abs().max() > 1e-5)
        return y, jacobian, [p.grad for p in flow.parameters() if p.grad is not None]


@step("density estimation by a flow: losses, samples")
def _():
    base = dist.Normal(torch.zeros(2), torch.ones(2))
    flow = T.spline_coupling(2, 1, [8, 8], count_bins=4)
    made = dist.TransformedDistribution(base, [flow])
    data = torch.randn(40, 2) * 0.5 + torch.tensor([0.5, -0.5])
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = -made.log_prob(data).mean()
        loss.backward()
        optimizer.step()
        made.clear_cache()
        losses.append(loss.item())
    return losses, made.sample((4,))


@step("a conditional flow")
def _():
    flow = T.conditional_affine_autoregressive(2, 1, [8])
    base = dist.Normal(torch.zeros(2), torch.ones(2)).to_event(1)
    made = dist.ConditionalTransformedDistribution(base, [flow]).condition(torch.ones(3, 1))
    x = torch.randn(3, 2)
    return made.log_prob(x), made.sample((3,))


@step("transforms: Haar, cosine, correlations, softplus, ordered")
def _():
    x = torch.randn(2, 8)
    return (
        T.HaarTransform()(x),
        T.DiscreteCosineTransform()(x),
        T.CorrLCholeskyTransform()(torch.randn(2, 3)),
        T.SoftplusTransform()(x),
        T.OrderedTransform()(x),
        T.ELUTransform()(x),
        T.LeakyReLUTransform()(x),
        T.Normalize()(x),
        T.SimplexToOrderedTransform()(x.softmax(-1)),
    )


@step("Gaussian processes of pyro.contrib: fit, predict")
def _():
    pyro.clear_param_store()
    x = torch.linspace(0, 3, 12)
    y = torch.sin(2 * x)
    kernel = gp.kernels.RBF(1, variance=torch.tensor(1.0), lengthscale=torch.tensor(0.5))
    model = gp.models.GPRegression(x, y, kernel, noise=torch.tensor(0.1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = gp.util.train(model, optimizer, num_steps=5)
    sparse = gp.models.VariationalSparseGP(
        x, y, kernel, Xu=x[::3].clone(), likelihood=gp.likelihoods.Gaussian()
    )
    more = gp.util.train(sparse, num_steps=3)
    return losses, model(x[:3], full_cov=True), more


@step("conjugate densities, masks, expanded and reshaped distributions")
def _():
    made = dist.Normal(torch.zeros(3), 1.0)
    x = torch.tensor([0.1, 0.2, 0.3])
    return (
        made.mask(torch.tensor([True, False, True])).log_prob(x),
        made.to_event(1).log_prob(x),
        made.expand([2, 3]).log_prob(x),
        torch.distributions.kl_divergence(dist.Delta(torch.zeros(3)), made),
        torch.distributions.kl_divergence(
            made.to_event(1), dist.Normal(torch.ones(3), 2.0).to_event(1)
        ),
        dist.kl.kl_divergence(made, dist.Normal(1.0, 2.0)),
        repr(made.to_event(1)),
    )


@step("a value of another event shape", refused=True)
def _():
    dist.Normal(torch.zeros(3), 1.0).to_event(1).log_prob(torch.zeros(4))


@step("an unknown spline order", refused=True)
def _():
    T.spline(3, count_bins=4, order="cubic")(torch.randn(2, 3))
