"""SVI with every guide, HMC and NUTS, enumeration, prediction."""

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.distributions import constraints
from pyro.infer import (
    HMC,
    MCMC,
    NUTS,
    SVI,
    EmpiricalMarginal,
    Importance,
    Predictive,
    RenyiELBO,
    Trace_ELBO,
    TraceEnum_ELBO,
    TraceGraph_ELBO,
    TraceMeanField_ELBO,
    config_enumerate,
    infer_discrete,
)
from pyro.infer.autoguide import (
    AutoDelta,
    AutoDiagonalNormal,
    AutoGaussian,
    AutoGuideList,
    AutoLaplaceApproximation,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
    AutoStructured,
)
from pyro.infer.mcmc.util import summary
from pyro.optim import Adam, ClippedAdam, ExponentialLR
from steps import step

X = torch.linspace(-1, 1, 20)
Y = 2 * X + 0.5 + 0.1 * torch.sin(20 * X)


def regression(x, y=None):
    slope = pyro.sample("slope", dist.Normal(0.0, 2.0))
    offset = pyro.sample("offset", dist.Normal(0.0, 2.0))
    scale = pyro.sample("scale", dist.LogNormal(-1.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("obs", dist.Normal(slope * x + offset, scale), obs=y)


def fitted(model, guide, *data, elbo=None, steps=12, rate=0.03):
    pyro.clear_param_store()
    svi = SVI(model, guide, Adam({"lr": rate}), elbo or Trace_ELBO())
    losses = [svi.step(*data) for _ in range(steps)]
    return losses, {name: value for name, value in pyro.get_param_store().items()}


GUIDES = {
    "AutoNormal": AutoNormal,
    "AutoDelta": AutoDelta,
    "AutoDiagonalNormal": AutoDiagonalNormal,
    "AutoMultivariateNormal": AutoMultivariateNormal,
    "AutoLowRankMultivariateNormal": lambda model: AutoLowRankMultivariateNormal(model, rank=2),
    "AutoGaussian": AutoGaussian,
    "AutoStructured": AutoStructured,
}

for name in GUIDES:

    @step(f"SVI by {name}: losses and parameters", name)
    def _(name):
        pyro.clear_param_store()
        guide = GUIDES[name](regression)
        found = fitted(regression, guide, X, Y)
        return found, guide.median() if hasattr(guide, "median") else None


@step("the Laplace approximation")
def _():
    pyro.clear_param_store()
    guide = AutoLaplaceApproximation(regression)
    fitted(regression, guide, X, Y, steps=200, rate=0.1)
    posterior = guide.laplace_approximation(X, Y).get_posterior()
    return posterior.mean, posterior.covariance_matrix


@step("a list of guides, of parts of the model")
def _():
    guide = AutoGuideList(regression)
    guide.append(AutoDelta(poutine.block(regression, expose=["scale"])))
    guide.append(AutoNormal(poutine.block(regression, expose=["slope", "offset"])))
    return fitted(regression, guide, X, Y)


for name in ("TraceGraph_ELBO", "TraceMeanField_ELBO", "RenyiELBO", "several particles"):

    @step(f"SVI by a guide written out, {name}", name)
    def _(name):
        def guide(x, y=None):
            mean = pyro.param("mean", torch.zeros(2))
            scale = pyro.param("spread", torch.ones(2), constraint=constraints.positive)
            pyro.sample("slope", dist.Normal(mean[0], scale[0]))
            pyro.sample("offset", dist.Normal(mean[1], scale[1]))
            center = pyro.param("center", torch.tensor(-1.0))
            pyro.sample("scale", dist.LogNormal(center, 0.1))

        elbo = {
            "TraceGraph_ELBO": TraceGraph_ELBO(),
            "TraceMeanField_ELBO": TraceMeanField_ELBO(),
            "RenyiELBO": RenyiELBO(alpha=0.5, num_particles=2),
            "several particles": Trace_ELBO(num_particles=3, vectorize_particles=True),
        }[name]
        return fitted(regression, guide, X, Y, elbo=elbo)


for kernel in ("HMC", "NUTS"):

    @step(f"{kernel}: samples, diagnostics", kernel)
    def _(kernel):
        model = dict(
            HMC=lambda: HMC(regression, step_size=0.05, num_steps=4),
            NUTS=lambda: NUTS(regression, step_size=0.05, max_tree_depth=4),
        )[kernel]()
        mcmc = MCMC(model, num_samples=6, warmup_steps=6, disable_progbar=True)
        mcmc.run(X, Y)
        means = summary(mcmc.get_samples(group_by_chain=True))
        return mcmc.get_samples(), {name: found["mean"] for name, found in means.items()}


@step("NUTS in double precision with a dense mass matrix")
def _():
    def model():
        return pyro.sample("x", dist.MultivariateNormal(torch.zeros(2).double(), covariance))

    covariance = torch.tensor([[1.0, 0.5], [0.5, 2.0]], dtype=torch.float64)
    mcmc = MCMC(NUTS(model, full_mass=True), num_samples=8, warmup_steps=8, disable_progbar=True)
    mcmc.run()
    return mcmc.get_samples()["x"]


@step("prediction from a guide and from samples")
def _():
    guide = AutoNormal(regression)
    fitted(regression, guide, X, Y)
    found = Predictive(regression, guide=guide, num_samples=5)(X)
    samples = {"slope": torch.ones(3), "offset": torch.zeros(3), "scale": torch.ones(3)}
    again = Predictive(regression, samples, parallel=True)(X)
    prior = Predictive(regression, num_samples=3)(X)
    return found["obs"], again["obs"], prior["slope"]


@step("a mixture by enumeration: losses, assignments")
def _():
    data = torch.tensor([0.0, 0.3, 0.2, 4.8, 5.1, 5.3])

    @config_enumerate
    def model(data):
        weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
        with pyro.plate("components", 2):
            locs = pyro.sample("locs", dist.Normal(2.0, 5.0))
        with pyro.plate("data", len(data)):
            which = pyro.sample("which", dist.Categorical(weights))
            pyro.sample("obs", dist.Normal(locs[which], 0.5), obs=data)
        return which

    guide = AutoDelta(
        poutine.block(model, expose=["weights", "locs"]),
        init_loc_fn=lambda site: (
            torch.tensor([0.0, 4.0]) if site["name"] == "locs" else torch.tensor([0.5, 0.5])
        ),
    )
    losses = fitted(model, guide, data, elbo=TraceEnum_ELBO(max_plate_nesting=1))
    trained = poutine.replay(model, trace=poutine.trace(guide).get_trace(data))
    found = infer_discrete(trained, temperature=0, first_available_dim=-2)(data)
    return losses, found


@step("a hidden Markov model by enumeration, and by NUTS over its parameters")
def _():
    data = torch.tensor([0.1, 0.2, 2.9, 3.2, 3.0])

    @config_enumerate
    def model(data):
        stay = pyro.sample("stay", dist.Beta(2.0, 2.0))
        state = 0
        for t in pyro.markov(range(len(data))):
            first = torch.stack([stay, 1 - stay])
            chances = torch.stack([first, first.flip(0)])
            state = pyro.sample(f"state{t}", dist.Categorical(chances[state]))
            loc = torch.tensor([0.0, 3.0])[state]
            pyro.sample(f"obs{t}", dist.Normal(loc, 1.0), obs=data[t])

    kernel = NUTS(model, step_size=0.1, max_tree_depth=3)
    mcmc = MCMC(kernel, num_samples=4, warmup_steps=4, disable_progbar=True)
    mcmc.run(data)
    guide = AutoDelta(poutine.block(model, expose=["stay"]))
    losses = fitted(model, guide, data, elbo=TraceEnum_ELBO(max_plate_nesting=0))
    return mcmc.get_samples(), losses


@step("importance sampling, its marginal; traces, conditions, replay")
def _():
    conditioned = pyro.condition(regression, data={"obs": Y})
    found = Importance(conditioned, num_samples=20).run(X)
    marginal = EmpiricalMarginal(found, "slope")
    trace = poutine.trace(conditioned).get_trace(X)
    doubled = poutine.scale(conditioned, scale=2.0)
    return (
        marginal.mean,
        trace.log_prob_sum(),
        poutine.trace(poutine.replay(doubled, trace=trace)).get_trace(X).log_prob_sum(),
        pyro.do(regression, data={"slope": torch.tensor(1.0)})(X),
    )


@step("PyroModule: a Bayesian network")
def _():
    from pyro.nn import PyroModule, PyroSample

    class Net(PyroModule):
        def __init__(self):
            super().__init__()
            self.first = PyroModule[torch.nn.Linear](1, 4)
            self.first.weight = PyroSample(dist.Normal(0.0, 1.0).expand([4, 1]).to_event(2))
            self.last = PyroModule[torch.nn.Linear](4, 1)

        def forward(self, x, y=None):
            mean = self.last(self.first(x[:, None]).tanh()).squeeze(-1)
            with pyro.plate("data", len(x)):
                pyro.sample("obs", dist.Normal(mean, 0.1), obs=y)
            return mean

    pyro.clear_param_store()
    torch.manual_seed(0)
    model = Net()
    guide = AutoDiagonalNormal(model)
    return fitted(model, guide, X, Y), Predictive(model, guide=guide, num_samples=2)(X)["obs"]


@step("pyro.module: a variational autoencoder with a plate of a batch")
def _():
    pyro.clear_param_store()
    decoder, encoder = torch.nn.Linear(2, 6), torch.nn.Linear(6, 4)

    def model(x):
        pyro.module("decoder", decoder)
        with pyro.plate("data", len(x)):
            z = pyro.sample("z", dist.Normal(torch.zeros(len(x), 2), 1.0).to_event(1))
            pyro.sample("obs", dist.Bernoulli(logits=decoder(z)).to_event(1), obs=x)

    def guide(x):
        pyro.module("encoder", encoder)
        with pyro.plate("data", len(x)):
            loc, scale = encoder(x).chunk(2, -1)
            pyro.sample("z", dist.Normal(loc, scale.exp()).to_event(1))

    return fitted(model, guide, (torch.rand(8, 6) > 0.5).float())


@step("optimizers: clipped Adam, schedules; parameters saved and loaded")
def _():
    pyro.clear_param_store()
    guide = AutoNormal(regression)
    schedule = ExponentialLR(
        {"optimizer": torch.optim.SGD, "optim_args": {"lr": 1e-3}, "gamma": 0.9}
    )
    svi = SVI(regression, guide, schedule, Trace_ELBO())
    losses = []
    for _ in range(4):
        losses.append(svi.step(X, Y))
        schedule.step()
    pyro.get_param_store().save("params.pt")
    before = {k: v.clone() for k, v in pyro.get_param_store().items()}
    pyro.clear_param_store()
    pyro.get_param_store().load("params.pt")
    clipped = SVI(regression, guide, ClippedAdam({"lr": 0.01, "clip_norm": 1.0}), Trace_ELBO())
    return losses, before, dict(pyro.get_param_store().items()), clipped.step(X, Y)


@step("a model that samples a name twice", refused=True)
def _():
    def model():
        pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("x", dist.Normal(0.0, 1.0))

    poutine.trace(model).get_trace()


@step("a distribution with a negative scale", refused=True)
def _():
    dist.Normal(torch.zeros(2), torch.tensor([1.0, -1.0]))


@step("data out of the support", refused=True)
def _():
    def model():
        pyro.sample("x", dist.Beta(1.0, 1.0), obs=torch.tensor(2.0))

    poutine.trace(model).get_trace().compute_log_prob()


@step("a shape that does not fit its plate", refused=True)
def _():
    def model():
        with pyro.plate("data", 3):
            pyro.sample("x", dist.Normal(torch.zeros(4), 1.0))

    poutine.trace(model).get_trace()
