"""Irreps, tensor products, spherical harmonics, gates, small equivariant networks."""

import e3nn
import torch
from e3nn import io, math, nn, o3
from e3nn.nn import BatchNorm, Dropout, FullyConnectedNet, Gate, NormActivation
from e3nn.util.jit import compile_mode, script
from steps import step


def gradients(out, module):
    out.square().mean().backward()
    return out, [p.grad for p in module.parameters() if p.grad is not None]


@step("irreps: parsing, dimensions, sorting, tensor products of them")
def _():
    irreps = o3.Irreps("16x0e + 8x1o + 4x2e")
    return (
        irreps.dim,
        str((o3.Irreps("1o + 0e + 1o").sort().irreps).simplify()),
        [str(each) for each in o3.Irrep("1o") * o3.Irrep("2e")],
        irreps.randn(2, -1),
        str(irreps.filter(["0e"])),
    )


@step("spherical harmonics and their gradient")
def _():
    x = torch.randn(5, 3, requires_grad=True)
    out = [
        o3.spherical_harmonics(degree, x, normalize=True, normalization=name)
        for degree in range(6)
        for name in ("component", "norm", "integral")
    ]
    torch.cat(out, -1).sin().sum().backward()
    return out, x.grad


@step("spherical harmonics of high degree; their module")
def _():
    module = o3.SphericalHarmonics("0e + 1o + 2e + 8e + 11o", True)
    return module(torch.randn(4, 3))


@step("rotations: Wigner matrices, angles, axes, quaternions")
def _():
    rotation = o3.rand_matrix(2)
    angles = o3.matrix_to_angles(rotation)
    return (
        rotation,
        angles,
        o3.wigner_D(2, *angles),
        o3.wigner_3j(1, 1, 2),
        o3.wigner_3j(2, 2, 2),
        o3.angles_to_quaternion(*angles),
        o3.matrix_to_axis_angle(rotation),
        o3.Irreps("1o + 2e").D_from_matrix(rotation),
        o3.quaternion_to_matrix(o3.rand_quaternion(2)),
    )


PRODUCTS = {
    "FullyConnectedTensorProduct": lambda: o3.FullyConnectedTensorProduct(
        "4x0e + 3x1o", "2x0e + 2x1o", "3x0e + 2x1o + 2x2e"
    ),
    "with weights of the caller": lambda: o3.FullyConnectedTensorProduct(
        "4x0e + 3x1o", "1x0e + 1x1o", "2x0e + 2x1o", internal_weights=False, shared_weights=False
    ),
    "ElementwiseTensorProduct": lambda: o3.ElementwiseTensorProduct("3x0e + 2x1o", "3x0e + 2x1o"),
    "FullTensorProduct": lambda: o3.FullTensorProduct("2x0e + 2x1o", "1x1o + 1x2e"),
    "TensorSquare": lambda: o3.TensorSquare("2x0e + 2x1o"),
    "Norm": lambda: o3.Norm("2x0e + 3x1o + 1x2e"),
    "Linear": lambda: o3.Linear("4x0e + 3x1o", "2x0e + 5x1o", biases=True),
    "instructions": lambda: o3.TensorProduct(
        "4x0e + 4x1o",
        "4x0e + 4x1o",
        "4x0e + 4x1o + 4x1e",
        [
            (0, 0, 0, "uvu", True),
            (0, 1, 1, "uuu", True),
            (1, 1, 2, "uuu", False),
            (1, 1, 0, "uvw", True, 0.5),
            (1, 0, 1, "uvv", True),
        ],
    ),
}

for name in PRODUCTS:

    @step(f"{name}: output, gradients", name)
    def _(name):
        module = PRODUCTS[name]()
        given = [
            irreps.randn(6, -1).requires_grad_()
            for irreps in (
                [module.irreps_in1, module.irreps_in2]
                if name != "TensorSquare" and hasattr(module, "irreps_in2")
                else [module.irreps_in]
            )
        ]
        if name == "with weights of the caller":
            given.append(torch.randn(6, module.weight_numel, requires_grad=True))
        out = module(*given)
        out.square().sum().backward()
        return out, [x.grad for x in given], [p.grad for p in module.parameters()]


@step("equivariance errors of a tensor product and a gate")
def _():
    from e3nn.util.test import equivariance_error

    product = o3.FullyConnectedTensorProduct("2x0e + 2x1o", "1x0e + 1x1o", "2x0e + 2x1o").double()
    errors = equivariance_error(
        product,
        [
            o3.Irreps("2x0e + 2x1o").randn(3, -1).double(),
            o3.Irreps("0e + 1o").randn(3, -1).double(),
        ],
        "2x0e + 2x1o,1x0e + 1x1o".split(","),
        "2x0e + 2x1o",
        ntrials=2,
    )
    return [bool(error < 1e-6) for error in errors.values()]


@step("right products, weight views, visualized shapes")
def _():
    product = o3.FullyConnectedTensorProduct(
        "2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 2x1o", compile_right=True
    )
    y = product.irreps_in2.randn(3, -1)
    return (
        product.right(y),
        product.weight_view_for_instruction(0),
        [each.shape for each in product.weight_views()],
        product.weight_numel,
        repr(product),
    )


@step("Gate, Activation, NormActivation, BatchNorm, Dropout, S2Activation")
def _():
    gate = Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
    x = gate.irreps_in.randn(5, -1)
    norm = BatchNorm("2x0e + 2x1o")
    y = o3.Irreps("2x0e + 2x1o").randn(6, -1)
    sphere = nn.S2Activation("0e + 1o + 2e", torch.tanh, 8)
    return (
        gate(x),
        nn.Activation("4x0e + 2x0o", [torch.relu, torch.tanh])(torch.randn(3, 6)),
        NormActivation("2x0e + 2x1o", torch.sigmoid)(y),
        norm(y),
        norm.running_mean,
        norm.running_var,
        norm.eval()(y),
        Dropout("2x0e + 2x1o", 0.5)(y),
        sphere(o3.Irreps("0e + 1o + 2e").randn(2, -1)),
    )


@step("FullyConnectedNet: variances kept, training")
def _():
    net = FullyConnectedNet([4, 32, 32, 2], torch.nn.functional.silu)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    x = torch.randn(20, 4)
    for _ in range(5):
        loss = (net(x) - x[:, :2]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@step("soft one-hot lengths in every basis")
def _():
    x = torch.linspace(0.1, 2.9, 6)
    return [
        math.soft_one_hot_linspace(x, 0.0, 3.0, 5, basis, cutoff)
        for basis in ("gaussian", "cosine", "smooth_finite", "fourier", "bessel")
        for cutoff in (True, False)
    ]


class Convolution(torch.nn.Module):
    """The convolution of the guide, without compiled neighbours."""

    def __init__(self, given, sphere, out):
        super().__init__()
        self.sphere = o3.Irreps(sphere)
        self.product = o3.FullyConnectedTensorProduct(given, sphere, out, shared_weights=False)
        self.radial = FullyConnectedNet([6, 16, self.product.weight_numel], torch.relu)

    def forward(self, x, pos, row, col):
        vector = pos[col] - pos[row]
        harmonics = o3.spherical_harmonics(self.sphere, vector, True, "component")
        basis = math.soft_one_hot_linspace(vector.norm(dim=1), 0, 4, 6, "smooth_finite", True)
        message = self.product(x[row], harmonics, self.radial(basis.mul(6**0.5)))
        return torch.zeros(len(pos), message.shape[1]).index_add(0, col, message).div(3**0.5)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate("4x0e + 4x0o", [torch.relu, torch.tanh], "4x0e", [torch.sigmoid], "4x1o")
        self.first = Convolution("0e", "0e + 1o + 2e", self.gate.irreps_in)
        self.last = Convolution(self.gate.irreps_out, "0e + 1o + 2e", "0e + 1o")

    def forward(self, pos):
        row, col = (~torch.eye(len(pos), dtype=torch.bool)).nonzero().t()
        x = self.gate(self.first(torch.ones(len(pos), 1), pos, row, col))
        return self.last(x, pos, row, col).mean(0)


@step("an equivariant network: losses, weights, equivariance")
def _():
    net, pos = Network(), torch.randn(5, 3)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(3):
        loss = (net(pos) - torch.tensor([1.0, 0.0, 1.0, 0.0])).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    rotation = o3.rand_matrix()
    turned = net(pos @ rotation.T)
    expected = net(pos) @ o3.Irreps("0e + 1o").D_from_matrix(rotation).T
    return losses, turned, bool((turned - expected).abs().max() < 1e-4)


@step("a network saved and loaded, and copied")
def _():
    import copy

    net = Network()
    torch.save(net.state_dict(), "net.pt")
    again = Network()
    again.load_state_dict(torch.load("net.pt"))
    pos = torch.randn(4, 3)
    return net(pos), again(pos), copy.deepcopy(net)(pos)


for flags in (
    {"jit_script_fx": False},
    {"optimize_einsums": False},
    {"specialized_code": False},
    {"jit_mode": "eager"},
):

    @step(f"generated code with {flags}", flags)
    def _(flags):
        before = e3nn.get_optimization_defaults()
        try:
            e3nn.set_optimization_defaults(**flags)
            module = o3.FullyConnectedTensorProduct("3x0e + 2x1o", "2x0e + 2x1o", "2x0e + 2x1o")
            return gradients(
                module(module.irreps_in1.randn(4, -1), module.irreps_in2.randn(4, -1)), module
            )
        finally:
            e3nn.set_optimization_defaults(**before)


@step("script of a module gives what it gave")
def _():
    @compile_mode("script")
    class Twice(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    linear = o3.Linear("2x0e + 1x1o", "1x0e + 1x1o")
    x = linear.irreps_in.randn(3, -1)
    return script(Twice())(x), script(linear)(x), linear(x)


@step("the gradient of a spherical harmonic's second order")
def _():
    x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    y = o3.spherical_harmonics(3, x, False)
    (g,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
    g.square().sum().backward()
    return g, x.grad


@step("Cartesian tensors, spherical signals")
def _():
    tensor = io.CartesianTensor("ij=-ji")
    symmetric = io.CartesianTensor("ij=ji")
    t = torch.randn(2, 3, 3)
    spherical = io.SphericalTensor(2, 1, -1)
    signal = spherical.sum_of_diracs(torch.randn(3, 3), torch.ones(3))
    return (
        str(symmetric),
        symmetric.from_cartesian(t + t.mT),
        tensor.from_cartesian(t - t.mT),
        signal,
        spherical.signal_xyz(signal, torch.randn(4, 3)),
    )


@step("grids of the sphere, reduced tensor products, experimental full product")
def _():
    to_grid = o3.ToS2Grid(3, 8, "component")
    from_grid = o3.FromS2Grid(8, 3, "component")
    x = torch.randn(2, 16)
    reduced = o3.ReducedTensorProducts("ij=ji", i="1x0e + 1x1o")
    y = o3.Irreps("1x0e + 1x1o").randn(2, -1)
    return to_grid(x), from_grid(to_grid(x)), str(reduced.irreps_out), reduced(y, y)


@step("irreps that do not parse", refused=True)
def _():
    o3.Irreps("2x1x")


@step("features of another dimension", refused=True)
def _():
    o3.Linear("2x0e + 1x1o", "1x0e")(torch.randn(3, 6))


@step("a path that parity forbids", refused=True)
def _():
    o3.TensorProduct("1x1o", "1x1o", "1x1o", [(0, 0, 0, "uvw", True)])


@step("weights of another network", refused=True)
def _():
    o3.Linear("2x0e", "3x0e").load_state_dict(o3.Linear("2x0e", "4x0e").state_dict())
