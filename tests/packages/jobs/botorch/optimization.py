"""Bayesian optimization: models, acquisition functions, their optimization, whole rounds."""

import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    PosteriorMean,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qMaxValueEntropy,
    qNoisyExpectedImprovement,
    qProbabilityOfImprovement,
    qSimpleRegret,
    qUpperConfidenceBound,
)
from botorch.acquisition.multi_objective import (
    qExpectedHypervolumeImprovement,
    qLogExpectedHypervolumeImprovement,
)
from botorch.acquisition.objective import GenericMCObjective, LinearMCObjective
from botorch.fit import fit_gpytorch_mll
from botorch.models import (
    MixedSingleTaskGP,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
    SingleTaskMultiFidelityGP,
)
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete, optimize_acqf_mixed
from botorch.sampling import IIDNormalSampler, SobolQMCNormalSampler
from botorch.test_functions import Branin, BraninCurrin, Hartmann
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood
from steps import step

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def data(count=8):
    x = torch.rand(count, 2, dtype=torch.float64)
    return x, -((x - 0.4).square().sum(-1, keepdim=True)) + 0.1 * (5 * x[:, :1]).sin()


def model():
    x, y = data()
    return SingleTaskGP(x, y, outcome_transform=Standardize(1), input_transform=Normalize(2))


def fitted():
    found = model()
    fit_gpytorch_mll(ExactMarginalLogLikelihood(found.likelihood, found))
    return found, found.train_targets.max()


@step("a model fitted: hyperparameters, posterior")
def _():
    found, _ = fitted()
    x = torch.rand(4, 2, dtype=torch.float64)
    posterior = found.posterior(x, observation_noise=True)
    return (
        found.covar_module.lengthscale,
        found.likelihood.noise,
        posterior.mean,
        posterior.variance,
        posterior.rsample(torch.Size([2])),
    )


ANALYTIC = {
    "LogEI": lambda m, b: LogExpectedImprovement(m, b),
    "EI": lambda m, b: ExpectedImprovement(m, b),
    "PI": lambda m, b: ProbabilityOfImprovement(m, b),
    "UCB": lambda m, b: UpperConfidenceBound(m, beta=0.2),
    "mean": lambda m, b: PosteriorMean(m),
}
SAMPLER = {"sample_shape": torch.Size([32]), "seed": 1}
SAMPLED = {
    "qEI": lambda m, b: qExpectedImprovement(m, b, SobolQMCNormalSampler(**SAMPLER)),
    "qLogEI": lambda m, b: qLogExpectedImprovement(m, b, SobolQMCNormalSampler(**SAMPLER)),
    "qNEI": lambda m, b: qNoisyExpectedImprovement(
        m, m.train_inputs[0], SobolQMCNormalSampler(**SAMPLER)
    ),
    "qLogNEI": lambda m, b: qLogNoisyExpectedImprovement(
        m, m.train_inputs[0], SobolQMCNormalSampler(**SAMPLER)
    ),
    "qUCB": lambda m, b: qUpperConfidenceBound(m, 0.2, SobolQMCNormalSampler(**SAMPLER)),
    "qPI": lambda m, b: qProbabilityOfImprovement(m, b, SobolQMCNormalSampler(**SAMPLER)),
    "qSR": lambda m, b: qSimpleRegret(m, IIDNormalSampler(**SAMPLER)),
    "qKG": lambda m, b: qKnowledgeGradient(m, num_fantasies=2),
    "qMES": lambda m, b: qMaxValueEntropy(m, torch.rand(20, 2, dtype=torch.float64)),
}

for name in [*ANALYTIC, *SAMPLED]:

    @step(f"{name}: values, gradients", name)
    def _(name):
        found = model().eval()
        acquisition = {**ANALYTIC, **SAMPLED}[name](found, found.train_targets.max() * 0.5)
        points = {"qKG": 4}.get(name, 1 if name in ANALYTIC or name == "qMES" else 2)
        x = torch.rand(5, points, 2, dtype=torch.float64, requires_grad=True)
        value = acquisition(x)
        value.sum().backward()
        return value, x.grad


@step("optimize_acqf: LogEI")
def _():
    found, best = fitted()
    candidate, value = optimize_acqf(
        LogExpectedImprovement(found, data()[1].max()), BOUNDS, q=1, num_restarts=2, raw_samples=16
    )
    return candidate.round(decimals=3), value.round(decimals=3)


@step("optimize_acqf: qLogEI of two points, sequential, with linear constraints")
def _():
    found = model().eval()
    acquisition = qLogExpectedImprovement(found, data()[1].max(), SobolQMCNormalSampler(**SAMPLER))
    constrained, value = optimize_acqf(
        acquisition,
        BOUNDS,
        q=1,
        num_restarts=2,
        raw_samples=16,
        inequality_constraints=[(torch.tensor([0, 1]), torch.tensor([-1.0, -1.0]).double(), -0.6)],
    )
    both, _ = optimize_acqf(
        acquisition, BOUNDS, q=2, num_restarts=2, raw_samples=16, sequential=True
    )
    return constrained.round(decimals=3), value.round(decimals=3), both.round(decimals=2)


@step("optimize_acqf: discrete and mixed choices")
def _():
    found = model().eval()
    acquisition = UpperConfidenceBound(found, 0.2)
    choices = torch.rand(12, 2, dtype=torch.float64)
    discrete, value = optimize_acqf_discrete(acquisition, 1, choices)
    mixed, _ = optimize_acqf_mixed(acquisition, BOUNDS, 1, 2, [{0: 0.2}, {0: 0.6}], raw_samples=8)
    return discrete, value, mixed.round(decimals=3)


@step("a round of Bayesian optimization on Branin")
def _():
    problem = Branin(negate=True).to(dtype=torch.float64)
    x = draw_sobol_samples(problem.bounds, 6, 1, seed=0).squeeze(1)
    y = problem(x)[:, None]
    for _ in range(2):
        found = SingleTaskGP(x, y, input_transform=Normalize(2, bounds=problem.bounds))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(found.likelihood, found))
        new, _ = optimize_acqf(
            LogExpectedImprovement(found, y.max()),
            problem.bounds,
            1,
            num_restarts=2,
            raw_samples=16,
        )
        x, y = torch.cat([x, new]), torch.cat([y, problem(new)[:, None]])
    return x.round(decimals=2), y.max().round(decimals=2)


@step("constrained: an outcome that must be negative")
def _():
    x, y = data()
    found = ModelListGP(SingleTaskGP(x, y), SingleTaskGP(x, x.sum(-1, keepdim=True) - 1))
    fit_gpytorch_mll(SumMarginalLogLikelihood(found.likelihood, found))
    acquisition = qLogExpectedImprovement(
        found,
        best_f=y.max(),
        sampler=SobolQMCNormalSampler(**SAMPLER),
        objective=GenericMCObjective(lambda samples, X=None: samples[..., 0]),
        constraints=[lambda samples: samples[..., 1]],
    )
    value = acquisition(torch.rand(4, 1, 2, dtype=torch.float64))
    candidate, _ = optimize_acqf(acquisition, BOUNDS, 1, num_restarts=2, raw_samples=16)
    return value, candidate.round(decimals=2)


@step("several objectives: hypervolume, its expected improvement")
def _():
    from botorch.utils.multi_objective.box_decompositions import (
        DominatedPartitioning,
        FastNondominatedPartitioning,
    )
    from botorch.utils.multi_objective.pareto import is_non_dominated

    problem = BraninCurrin(negate=True).to(dtype=torch.float64)
    x = draw_sobol_samples(problem.bounds, 6, 1, seed=0).squeeze(1)
    y = problem(x)
    found = SingleTaskGP(x, y, outcome_transform=Standardize(2)).eval()
    partitioning = FastNondominatedPartitioning(problem.ref_point, y)
    z = torch.rand(3, 1, 2, dtype=torch.float64, requires_grad=True)
    values = [
        kind(found, problem.ref_point, partitioning, SobolQMCNormalSampler(**SAMPLER))(z)
        for kind in (qExpectedHypervolumeImprovement, qLogExpectedHypervolumeImprovement)
    ]
    values[0].sum().backward()
    volume = DominatedPartitioning(problem.ref_point, y).compute_hypervolume()
    return volume, is_non_dominated(y), values, z.grad


@step("models: mixed, multitask, multi-fidelity, fixed noise, batched, variational")
def _():
    from botorch.models import SingleTaskVariationalGP

    x, y = data()
    kinds = (x[:, :1] > 0.5).double()
    found = [
        MixedSingleTaskGP(torch.cat([x, kinds], 1), y, cat_dims=[2]),
        MultiTaskGP(torch.cat([x, kinds], 1), y, task_feature=2),
        SingleTaskMultiFidelityGP(torch.cat([x, kinds], 1), y, data_fidelities=[2]),
        SingleTaskGP(x, y, train_Yvar=torch.full_like(y, 0.01)),
        SingleTaskGP(x.expand(2, 8, 2), torch.stack([y, -y])),
        SingleTaskVariationalGP(x, y, inducing_points=4),
    ]
    means = []
    for each in found:
        width = each.train_inputs[0].shape[-1] if hasattr(each, "train_inputs") else 2
        given = torch.rand(3, width, dtype=torch.float64).round(decimals=0)
        if isinstance(each, MultiTaskGP):
            given = given[:, :2]
        posterior = each.eval().posterior(given)
        means.append((posterior.mean, posterior.variance))
    return means


@step("conditioned and fantasized models, cross validation")
def _():
    from botorch.cross_validation import batch_cross_validation, gen_loo_cv_folds

    found, x = model().eval(), torch.rand(2, 2, dtype=torch.float64)
    found.posterior(x)
    more = found.condition_on_observations(x, found.posterior(x).mean.detach())
    x, y = data(5)
    folds = gen_loo_cv_folds(x, y)
    checked = batch_cross_validation(
        SingleTaskGP, ExactMarginalLogLikelihood, folds, fit_args={"optimizer_kwargs": {}}
    )
    return more.posterior(x).mean, checked.posterior.mean


@step("samples: Sobol, polytopes, Thompson's, pathwise")
def _():
    from botorch.generation import MaxPosteriorSampling
    from botorch.sampling.pathwise import draw_matheron_paths
    from botorch.utils.sampling import sample_hypersphere, sample_simplex

    found = model().eval()
    choices = torch.rand(20, 2, dtype=torch.float64)
    chosen = MaxPosteriorSampling(found)(choices, num_samples=3)
    paths = draw_matheron_paths(found, torch.Size([2]))
    return (
        draw_sobol_samples(BOUNDS, 4, 2, seed=3),
        sample_hypersphere(3, 4, qmc=True, seed=1),
        sample_simplex(3, 4, qmc=True, seed=1),
        chosen,
        paths(choices),
    )


@step("test functions")
def _():
    return (
        Hartmann()(torch.rand(3, 6)),
        Branin()(torch.rand(3, 2)),
        BraninCurrin()(torch.rand(3, 2)),
    )


@step("objectives: linear, scalarized, risk of noise")
def _():
    from botorch.acquisition.risk_measures import CVaR, VaR
    from botorch.utils.multi_objective.scalarization import get_chebyshev_scalarization

    samples = torch.randn(4, 6, 2, dtype=torch.float64)
    scalar = get_chebyshev_scalarization(torch.tensor([0.3, 0.7]).double(), samples[0])
    return (
        LinearMCObjective(torch.tensor([0.2, 0.8]).double())(samples),
        scalar(samples),
        CVaR(0.5, 3)(samples[..., :1]),
        VaR(0.5, 3)(samples[..., :1]),
    )


@step("fully Bayesian (SAAS) without JAX", refused=True)
def _():
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

    x, y = data(6)
    found = SaasFullyBayesianSingleTaskGP(x, y, outcome_transform=Standardize(1))
    fit_fully_bayesian_model_nuts(
        found, warmup_steps=4, num_samples=4, thinning=2, disable_progbar=True, max_tree_depth=3
    )
    return found.covar_module.lengthscale, found.posterior(x[:2]).mean


@step("a model saved and loaded")
def _():
    found = model()
    torch.save(found.state_dict(), "model.pt")
    x, y = data()
    again = SingleTaskGP(x, y, outcome_transform=Standardize(1), input_transform=Normalize(2))
    again.load_state_dict(torch.load("model.pt"))
    z = torch.rand(3, 2, dtype=torch.float64)
    return found.eval().posterior(z).mean, again.eval().posterior(z).mean


@step("targets without a dimension of outputs", refused=True)
def _():
    x, y = data()
    SingleTaskGP(x, y.squeeze(-1))


@step("more points than an analytic acquisition takes", refused=True)
def _():
    found = model().eval()
    LogExpectedImprovement(found, 0.0)(torch.rand(5, 2, 2, dtype=torch.float64))


@step("bounds of another dimension", refused=True)
def _():
    found = model().eval()
    optimize_acqf(
        LogExpectedImprovement(found, 0.0), torch.rand(3, 2).double(), 1, 1, raw_samples=4
    )


@step("inputs that are not numbers", refused=True)
def _():
    x, y = data()
    SingleTaskGP(x * float("nan"), y)
