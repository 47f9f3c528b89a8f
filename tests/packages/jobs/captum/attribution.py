"""Attribution: to inputs, layers and neurons; concepts, metrics, influence."""

import torch
from captum import attr, metrics
from steps import step
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.AvgPool2d(4)
        self.dense = nn.Linear(16, 12)
        self.relu2 = nn.ReLU()
        self.out = nn.Linear(12, 3)

    def forward(self, x):
        x = self.pool(self.relu(self.conv(x))).flatten(1)
        return self.out(self.relu2(self.dense(x)))


def parts():
    torch.manual_seed(1)
    return Net().eval(), torch.randn(2, 1, 8, 8)


INPUTS = {
    "IntegratedGradients": {"n_steps": 20},
    "Saliency": {},
    "InputXGradient": {},
    "DeepLift": {},
    "GuidedBackprop": {},
    "Deconvolution": {},
    "FeatureAblation": {},
    "LRP": {},
    "DeepLiftShap": {"baselines": torch.zeros(3, 1, 8, 8)},
    "GradientShap": {"baselines": torch.zeros(3, 1, 8, 8), "n_samples": 4},
    "Occlusion": {"sliding_window_shapes": (1, 3, 3), "strides": 2},
    "FeaturePermutation": {},
    "ShapleyValueSampling": {
        "n_samples": 2,
        "feature_mask": torch.arange(64).reshape(1, 1, 8, 8) // 16,
    },
    "ShapleyValues": {"feature_mask": torch.arange(64).reshape(1, 1, 8, 8) // 16},
}
for name, options in INPUTS.items():

    @step(f"to inputs: {name}", name, options)
    def _(name, options):
        net, x = parts()
        return getattr(attr, name)(net).attribute(x, target=1, **options)


LAYERS = {
    "LayerIntegratedGradients": {"n_steps": 10},
    "LayerGradientXActivation": {"target": 1},
    "LayerConductance": {"n_steps": 10},
    "LayerActivation": {},
    "LayerGradCam": {},
    "LayerDeepLift": {},
    "InternalInfluence": {"n_steps": 10},
    "LayerFeatureAblation": {},
    "LayerLRP": {},
}
for name, options in LAYERS.items():

    @step(f"to a layer: {name}", name, options)
    def _(name, options):
        net, x = parts()
        options = options if name == "LayerActivation" else {"target": 1, **options}
        return getattr(attr, name)(net, net.conv).attribute(x, **options)


for name in (
    "NeuronGradient",
    "NeuronIntegratedGradients",
    "NeuronConductance",
    "NeuronDeepLift",
    "NeuronGuidedBackprop",
):

    @step(f"to a neuron: {name}", name)
    def _(name):
        net, x = parts()
        options = {"target": 1} if name == "NeuronConductance" else {}
        return getattr(attr, name)(net, net.dense).attribute(x, neuron_selector=2, **options)


@step("NoiseTunnel around gradients; deltas of convergence; several inputs")
def _():
    net, x = parts()
    smooth = attr.NoiseTunnel(attr.Saliency(net)).attribute(
        x, nt_samples=3, nt_type="smoothgrad_sq", target=0, stdevs=0.1
    )
    _, delta = attr.IntegratedGradients(net).attribute(x, target=2, return_convergence_delta=True)
    two = attr.IntegratedGradients(lambda a, b: (a * b).sum(1).square())
    return smooth, delta, two.attribute((x.flatten(1), x.flatten(1) + 1), n_steps=8)


@step("Lime and KernelShap of a linear surrogate")
def _():
    net, x = parts()
    groups = torch.arange(64).reshape(1, 1, 8, 8) // 16
    shap = attr.KernelShap(net).attribute(x[:1], target=1, feature_mask=groups, n_samples=20)
    return shap


@step("embeddings of text: a layer's integrated gradients")
def _():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.out = (
                nn.Embedding(20, 8),
                nn.GRU(8, 8, batch_first=True),
                nn.Linear(8, 2),
            )

        def forward(self, x):
            return self.out(self.rnn(self.embed(x))[1][0])

    net = Words().eval()
    explain = attr.LayerIntegratedGradients(net, net.embed)
    return explain.attribute(
        torch.tensor([[3, 5, 7]]), torch.zeros(1, 3, dtype=torch.long), target=1, n_steps=10
    )


@step("metrics: infidelity and sensitivity")
def _():
    net, x = parts()
    found = attr.Saliency(net).attribute(x, target=0, abs=False)

    def perturb(inputs):
        noise = 0.01 * torch.randn_like(inputs)
        return noise, inputs - noise

    wrong = metrics.infidelity(net, perturb, x, found, target=0, n_perturb_samples=4)
    moved = metrics.sensitivity_max(attr.Saliency(net).attribute, x, target=0, n_perturb_samples=3)
    return wrong, moved


@step("influence of training samples: TracIn")
def _():
    from captum.influence import TracInCPFast

    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    torch.save(net.state_dict(), "point.pt")

    def load(model, path):
        model.load_state_dict(torch.load(path))
        return 1.0

    data = torch.utils.data.TensorDataset(torch.randn(10, 4), torch.arange(10) % 2)
    tracer = TracInCPFast(
        net,
        net[2],
        data,
        ["point.pt"],
        checkpoints_load_func=load,
        batch_size=5,
        loss_fn=nn.CrossEntropyLoss(reduction="sum"),
    )
    return tracer.influence((torch.randn(3, 4), torch.tensor([0, 1, 1])))


@step("robustness: FGSM and PGD")
def _():
    from captum.robust import FGSM, PGD

    net, x = parts()
    labels = torch.tensor([0, 1])
    return (
        FGSM(net).perturb(x, epsilon=0.1, target=labels),
        PGD(net).perturb(x, radius=0.2, step_size=0.05, step_num=3, target=labels),
    )


@step("a target that is not there is refused", refused=True)
def _():
    net, x = parts()
    attr.Saliency(net).attribute(x, target=7)


@step("no target for several outputs is refused", refused=True)
def _():
    net, x = parts()
    attr.Saliency(net).attribute(x)


@step("a baseline of another shape is refused", refused=True)
def _():
    net, x = parts()
    attr.DeepLift(net).attribute(x, torch.zeros(2, 1, 4, 4), target=0)


@step("DeepLift refuses a module used twice", refused=True)
def _():
    net, x = parts()
    net.relu2 = net.relu
    attr.DeepLift(net).attribute(x, target=0)
