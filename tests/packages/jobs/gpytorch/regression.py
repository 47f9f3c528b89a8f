"""Gaussian processes: exact, variational, deep, multitask; every kernel."""

import gpytorch
import torch
from gpytorch import kernels as K
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.likelihoods import (
    BernoulliLikelihood,
    DirichletClassificationLikelihood,
    FixedNoiseGaussianLikelihood,
    GaussianLikelihood,
    MultitaskGaussianLikelihood,
    SoftmaxLikelihood,
    StudentTLikelihood,
)
from gpytorch.means import ConstantMean, LinearMean, MultitaskMean, ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood, PredictiveLogLikelihood, VariationalELBO
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    LMCVariationalStrategy,
    MeanFieldVariationalDistribution,
    NaturalVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from steps import step

torch.set_default_dtype(torch.float64)
X = torch.linspace(0, 1, 15)
Y = torch.sin(6 * X) + 0.1 * torch.cos(30 * X)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel=None, mean=None):
        super().__init__(x, y, likelihood)
        self.mean_module = mean or ConstantMean()
        self.covar_module = kernel or K.ScaleKernel(K.RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def fitted(model, likelihood, x=X, y=Y, steps=5, rate=0.1, mll=None):
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    mll = mll or ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -mll(model(x), y).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    return losses


@step("exact regression: losses, hyperparameters, prediction, samples")
def _():
    likelihood = GaussianLikelihood()
    model = Exact(X, Y, likelihood)
    losses = fitted(model, likelihood)
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.linspace(0, 1.2, 7)))
        return (
            losses,
            found.mean,
            found.variance,
            found.confidence_region(),
            dict(model.named_parameters()),
            model(X[:3]).sample(torch.Size([2])),
        )


KERNELS = {
    "RBF, ARD": lambda: K.RBFKernel(ard_num_dims=2),
    "Matern 1/2": lambda: K.MaternKernel(0.5),
    "Matern 3/2": lambda: K.MaternKernel(1.5),
    "Matern 5/2": lambda: K.MaternKernel(2.5, ard_num_dims=2),
    "Periodic": lambda: K.PeriodicKernel(),
    "Cosine": lambda: K.CosineKernel(),
    "Linear": lambda: K.LinearKernel(),
    "Polynomial": lambda: K.PolynomialKernel(2),
    "RQ": lambda: K.RQKernel(),
    "PiecewisePolynomial": lambda: K.PiecewisePolynomialKernel(q=2),
    "SpectralMixture": lambda: K.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=2),
    "RFF": lambda: K.RFFKernel(num_samples=4, num_dims=2),
    "Constant": lambda: K.ConstantKernel(),
    "Arc": lambda: K.ArcKernel(K.MaternKernel(2.5), ard_num_dims=2),
    "Cylindrical": lambda: K.CylindricalKernel(3, K.MaternKernel(2.5)),
    "sum": lambda: K.RBFKernel() + K.LinearKernel(),
    "product": lambda: K.RBFKernel() * K.PeriodicKernel(),
    "additive structure": lambda: K.AdditiveStructureKernel(K.RBFKernel(), 2),
    "product structure": lambda: K.ProductStructureKernel(K.RBFKernel(), 2),
    "Newton-Girard": lambda: K.NewtonGirardAdditiveKernel(K.RBFKernel(), 2),
    "interpolated grid": lambda: K.GridInterpolationKernel(
        K.RBFKernel(), grid_size=8, num_dims=2, grid_bounds=[(-0.1, 1.1)] * 2
    ),
    "inducing points": lambda: K.InducingPointKernel(
        K.RBFKernel(), torch.rand(4, 2), GaussianLikelihood()
    ),
    "with gradients": lambda: K.RBFKernelGrad(),
    "with second gradients": lambda: K.RBFKernelGradGrad(),
    "Matern with gradients": lambda: K.Matern52KernelGrad(),
    "polynomial with gradients": lambda: K.PolynomialKernelGrad(2),
    "multitask": lambda: K.MultitaskKernel(K.RBFKernel(), num_tasks=2),
    "LCM": lambda: K.LCMKernel([K.RBFKernel(), K.MaternKernel()], num_tasks=2),
    "Hamming": lambda: K.HammingIMQKernel(vocab_size=2),
    "distributions": lambda: K.GaussianSymmetrizedKLKernel(),
}

for name in KERNELS:

    @step(f"kernel {name}: matrix, diagonal, gradients", name)
    def _(name):
        kernel = KERNELS[name]()
        x, z = torch.rand(6, 2), torch.rand(4, 2)
        if name == "Hamming":
            x, z = (x > 0.5).double().repeat(1, 1), (z > 0.5).double()
        if name == "Cylindrical":
            x, z = x / 2, z / 2
        x.requires_grad_()
        if name in ("inducing points", "with second gradients"):
            kernel.eval()
            z = x
        matrix, cross = kernel(x).to_dense(), kernel(x, z).to_dense()
        (matrix.sin().sum() + cross.sum()).backward()
        diagonal = None if name == "product structure" else kernel(x, diag=True)
        return (
            matrix,
            cross,
            diagonal,
            x.grad,
            [p.grad for p in kernel.parameters()],
        )


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points, distribution=CholeskyVariationalDistribution, whitened=True):
        strategy = VariationalStrategy if whitened else UnwhitenedVariationalStrategy
        super().__init__(
            strategy(self, points, distribution(points.size(0)), learn_inducing_locations=True)
        )
        self.mean_module = ConstantMean()
        self.covar_module = K.ScaleKernel(K.RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def variational(model, likelihood, y, loss=VariationalELBO):
    mll = loss(likelihood, model, num_data=len(X))
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        value = -mll(model(X), y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = model(X[:5])
    return losses, found.mean, found.variance


for name, arguments in {
    "Cholesky": (),
    "mean field": (MeanFieldVariationalDistribution,),
    "unwhitened": (CholeskyVariationalDistribution, False),
}.items():

    @step(f"variational regression, {name}: losses, prediction", arguments)
    def _(arguments):
        return variational(Variational(X[::3].clone(), *arguments), GaussianLikelihood(), Y)


@step("the predictive likelihood; Student's t")
def _():
    return (
        variational(Variational(X[::3].clone()), GaussianLikelihood(), Y, PredictiveLogLikelihood),
        variational(Variational(X[::3].clone()), StudentTLikelihood(), Y),
    )


@step("natural gradients")
def _():
    model = Variational(X[::3].clone(), NaturalVariationalDistribution)
    likelihood = GaussianLikelihood()
    natural = gpytorch.optim.NGD(model.variational_parameters(), num_data=len(X), lr=0.1)
    other = torch.optim.Adam([*model.hyperparameters(), *likelihood.parameters()], lr=0.01)
    mll = VariationalELBO(likelihood, model, num_data=len(X))
    losses = []
    for _ in range(4):
        natural.zero_grad()
        other.zero_grad()
        loss = -mll(model(X), Y)
        loss.backward()
        natural.step()
        other.step()
        losses.append(loss.item())
    return losses


@step("classification: Bernoulli, softmax, Dirichlet")
def _():
    labels = (Y > 0).double()
    found = variational(Variational(X[::3].clone()), BernoulliLikelihood(), labels)
    softmax = SoftmaxLikelihood(num_features=2, num_classes=3)
    latent = MultitaskMultivariateNormal(torch.randn(5, 2), torch.eye(10))
    chances = softmax(latent).probs.mean(0).sum(-1)
    dirichlet = DirichletClassificationLikelihood(labels.long(), learn_additional_noise=True)
    return found, chances, dirichlet.transformed_targets


@step("multitask regression: losses, prediction")
def _():
    class Multitask(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = MultitaskMean(ConstantMean(), num_tasks=2)
            self.covar_module = K.MultitaskKernel(K.RBFKernel(), num_tasks=2, rank=1)

        def forward(self, x):
            return MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))

    y = torch.stack([Y, Y.flip(0)], -1)
    likelihood = MultitaskGaussianLikelihood(num_tasks=2)
    model = Multitask(X, y, likelihood)
    losses = fitted(model, likelihood, X, y)
    with torch.no_grad():
        found = likelihood(model(X[:4]))
    return losses, found.mean, found.variance


@step("a linear model of coregionalization, variational")
def _():
    class Shared(gpytorch.models.ApproximateGP):
        def __init__(self):
            points = torch.rand(2, 4, 1)
            distribution = CholeskyVariationalDistribution(4, batch_shape=torch.Size([2]))
            super().__init__(
                LMCVariationalStrategy(
                    VariationalStrategy(self, points, distribution), 3, num_latents=2
                )
            )
            self.mean_module = ConstantMean(batch_shape=torch.Size([2]))
            self.covar_module = K.RBFKernel(batch_shape=torch.Size([2]))

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    y = torch.stack([Y, -Y, Y.flip(0)], -1)
    return variational(Shared(), MultitaskGaussianLikelihood(num_tasks=3), y)


@step("a deep kernel: losses, gradients of its network")
def _():
    class Deep(Exact):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.features = torch.nn.Sequential(
                torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
            )
            self.scale = gpytorch.utils.grid.ScaleToBounds(-1.0, 1.0)

        def forward(self, x):
            return super().forward(self.scale(self.features(x)))

    likelihood = GaussianLikelihood()
    model = Deep(X[:, None], Y, likelihood)
    losses = fitted(model, likelihood, X[:, None], Y)
    return losses, [p.grad for p in model.features.parameters()]


@step("a deep Gaussian process")
def _():
    from gpytorch.mlls import DeepApproximateMLL
    from gpytorch.models.deep_gps import DeepGP, DeepGPLayer

    class Layer(DeepGPLayer):
        def __init__(self, width, out):
            shape = torch.Size([out]) if out else torch.Size([])
            points = torch.randn(*shape, 6, width)
            distribution = CholeskyVariationalDistribution(6, batch_shape=shape)
            super().__init__(VariationalStrategy(self, points, distribution), width, out)
            self.mean_module = LinearMean(width) if out else ConstantMean()
            self.covar_module = K.ScaleKernel(
                K.RBFKernel(batch_shape=shape, ard_num_dims=width), batch_shape=shape
            )

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Deep(DeepGP):
        def __init__(self):
            super().__init__()
            self.hidden, self.last = Layer(1, 2), Layer(2, None)
            self.likelihood = GaussianLikelihood()

        def forward(self, x):
            return self.last(self.hidden(x))

    model = Deep()
    mll = DeepApproximateMLL(VariationalELBO(model.likelihood, model, len(X)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    with gpytorch.settings.num_likelihood_samples(3):
        for _ in range(3):
            optimizer.zero_grad()
            loss = -mll(model(X[:, None]), Y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@step("fixed noise, fantasies, leave-one-out")
def _():
    likelihood = FixedNoiseGaussianLikelihood(torch.full((15,), 0.01))
    model = Exact(X, Y, likelihood)
    loo = gpytorch.mlls.LeaveOneOutPseudoLikelihood(likelihood, model)
    losses = fitted(model, likelihood, mll=loo)
    model(X[:2])
    fantasy = model.get_fantasy_model(
        torch.tensor([[1.1]]), torch.tensor([0.3]), noise=torch.tensor([0.01])
    )
    with torch.no_grad():
        return losses, fantasy(torch.tensor([[1.05]])).mean


@step("conjugate gradients and Lanczos instead of Cholesky")
def _():
    likelihood = GaussianLikelihood()
    model = Exact(X, Y, likelihood)
    with (
        gpytorch.settings.max_cholesky_size(1),
        gpytorch.settings.num_trace_samples(50),
        gpytorch.settings.cg_tolerance(1e-6),
        gpytorch.settings.max_preconditioner_size(5),
    ):
        losses = fitted(model, likelihood, steps=2)
        with torch.no_grad():
            return losses, model(X[:3] + 0.01).mean


@step("priors, constraints, means; saved and loaded")
def _():
    kernel = K.ScaleKernel(
        K.RBFKernel(
            lengthscale_prior=gpytorch.priors.GammaPrior(3.0, 6.0),
            lengthscale_constraint=gpytorch.constraints.Interval(0.05, 2.0),
        ),
        outputscale_prior=gpytorch.priors.LogNormalPrior(0.0, 1.0),
    )
    likelihood = GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-3))
    model = Exact(X, Y, likelihood, kernel, LinearMean(1))
    model.initialize(**{"covar_module.base_kernel.lengthscale": 0.3, "likelihood.noise": 0.1})
    losses = fitted(model, likelihood)
    torch.save(model.state_dict(), "gp.pt")
    again = Exact(X, Y, GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-3)),
                  K.ScaleKernel(K.RBFKernel(), None), LinearMean(1))  # fmt: skip
    again.load_state_dict(torch.load("gp.pt"), strict=False)
    with torch.no_grad():
        return losses, model(X[:3]).mean, dict(again.named_parameters())


@step("fully Bayesian, by NUTS of pyro")
def _():
    import pyro
    from pyro.infer import MCMC, NUTS

    likelihood = GaussianLikelihood()
    likelihood.register_prior("noise_prior", gpytorch.priors.UniformPrior(0.01, 0.5), "noise")
    kernel = K.ScaleKernel(K.RBFKernel(lengthscale_prior=gpytorch.priors.UniformPrior(0.01, 0.5)))
    model = Exact(X, Y, likelihood, kernel, ZeroMean())

    def sampled(x, y):
        with gpytorch.settings.fast_computations(False, False, False):
            drawn = model.pyro_sample_from_prior()
            output = drawn.likelihood(drawn(x))
            pyro.sample("obs", output, obs=y)

    mcmc = MCMC(
        NUTS(sampled, max_tree_depth=3), num_samples=3, warmup_steps=3, disable_progbar=True
    )
    mcmc.run(X, Y)
    return mcmc.get_samples()


@step("linear operators: solve, logdet, root, Kronecker, Toeplitz")
def _():
    from linear_operator import operators as O
    from linear_operator import to_linear_operator

    a = torch.randn(4, 4)
    a = a @ a.T + torch.eye(4)
    operator = to_linear_operator(a.requires_grad_())
    b = torch.randn(4, 2)
    quadratic, logdet = operator.inv_quad_logdet(b, logdet=True)
    (quadratic + logdet).backward()
    return (
        operator.solve(b),
        a.grad,
        O.KroneckerProductLinearOperator(operator, operator).diagonal(),
        O.ToeplitzLinearOperator(torch.tensor([2.0, 1.0, 0.5])).to_dense(),
        O.DiagLinearOperator(torch.ones(3)).add_jitter(0.1).to_dense(),
        operator.root_decomposition().root.to_dense(),
    )


@step("training inputs of another shape than the targets", refused=True)
def _():
    model = Exact(X, Y[:-2], GaussianLikelihood())
    fitted(model, model.likelihood, X, Y[:-2], steps=1)


@step("training on other inputs than those given", refused=True)
def _():
    model = Exact(X, Y, GaussianLikelihood())
    model.train()(X + 1)


@step("a matrix that is not positive definite", refused=True)
def _():
    from linear_operator.utils.cholesky import psd_safe_cholesky

    psd_safe_cholesky(-torch.eye(3))


@step("a lengthscale out of its constraint", refused=True)
def _():
    K.RBFKernel(lengthscale_constraint=gpytorch.constraints.Interval(0.1, 1.0)).initialize(
        lengthscale=5.0
    )
