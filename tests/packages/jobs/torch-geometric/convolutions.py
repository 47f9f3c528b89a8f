"""Every convolution that runs without compiled extensions: output and gradients."""

import torch
import torch_geometric.nn as gnn
from steps import step
from torch import nn

NODES, EDGES, WIDTH = 12, 40, 8


def graph():
    edges = torch.randint(NODES, (2, EDGES))
    return torch.randn(NODES, WIDTH, requires_grad=True), edges


def mlp(width=WIDTH, out=WIDTH):
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, out))


def gradients(out, x, layer):
    out = out[0] if isinstance(out, tuple) else out
    out.square().mean().backward()
    # A gradient that is zero in exact arithmetic is nothing but rounding errors.
    found = [x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]
    return out, [g * (g.norm() > 1e-5) for g in found]


PLAIN = {
    "SimpleConv": lambda: gnn.SimpleConv("mean", combine_root="sum"),
    "GCNConv": lambda: gnn.GCNConv(WIDTH, 4),
    "GCNConv, improved": lambda: gnn.GCNConv(WIDTH, 4, improved=True, add_self_loops=True),
    "ChebConv": lambda: gnn.ChebConv(WIDTH, 4, K=3),
    "SAGEConv": lambda: gnn.SAGEConv(WIDTH, 4, normalize=True, project=True),
    "SAGEConv of a list of aggregations": lambda: gnn.SAGEConv(WIDTH, 4, ["mean", "max", "std"]),
    "SAGEConv by an LSTM": lambda: gnn.SAGEConv(WIDTH, 4, "softmax"),
    "GraphConv": lambda: gnn.GraphConv(WIDTH, 4, aggr="max"),
    "GatedGraphConv": lambda: gnn.GatedGraphConv(WIDTH, 3),
    "ResGatedGraphConv": lambda: gnn.ResGatedGraphConv(WIDTH, 4),
    "GATConv": lambda: gnn.GATConv(WIDTH, 4, heads=2),
    "GATConv, residual and dropout": lambda: gnn.GATConv(
        WIDTH, 4, heads=2, concat=False, residual=True, dropout=0.2
    ),
    "GATv2Conv": lambda: gnn.GATv2Conv(WIDTH, 4, heads=2, share_weights=True),
    "TransformerConv": lambda: gnn.TransformerConv(WIDTH, 4, heads=2, beta=True),
    "AGNNConv": lambda: gnn.AGNNConv(),
    "TAGConv": lambda: gnn.TAGConv(WIDTH, 4),
    "GINConv": lambda: gnn.GINConv(mlp(), train_eps=True),
    "ARMAConv": lambda: gnn.ARMAConv(WIDTH, 4, num_stacks=2, num_layers=2),
    "SGConv": lambda: gnn.SGConv(WIDTH, 4, K=2),
    "SSGConv": lambda: gnn.SSGConv(WIDTH, 4, alpha=0.1, K=2),
    "APPNP": lambda: gnn.APPNP(K=3, alpha=0.1),
    "MFConv": lambda: gnn.MFConv(WIDTH, 4, max_degree=4),
    "DNAConv": lambda: gnn.DNAConv(WIDTH, heads=2),
    "EdgeConv": lambda: gnn.EdgeConv(mlp(2 * WIDTH, 4)),
    "FeaStConv": lambda: gnn.FeaStConv(WIDTH, 4, heads=2),
    "HypergraphConv": lambda: gnn.HypergraphConv(WIDTH, 4),
    "LEConv": lambda: gnn.LEConv(WIDTH, 4),
    "PNAConv": lambda: gnn.PNAConv(
        WIDTH,
        4,
        ["mean", "min", "max", "std"],
        ["identity", "amplification", "attenuation"],
        torch.tensor([1, 2, 4, 3, 2]),
    ),
    "ClusterGCNConv": lambda: gnn.ClusterGCNConv(WIDTH, 4, diag_lambda=0.5),
    "GENConv": lambda: gnn.GENConv(WIDTH, 4, learn_t=True),
    "GENConv by powers": lambda: gnn.GENConv(WIDTH, 4, aggr="powermean", learn_p=True),
    "FiLMConv": lambda: gnn.FiLMConv(WIDTH, 4),
    "SuperGATConv": lambda: gnn.SuperGATConv(WIDTH, 4, heads=2, attention_type="SD"),
    "EGConv": lambda: gnn.EGConv(WIDTH, 8, ["sum", "mean", "var", "symnorm"], num_heads=2),
    "GeneralConv": lambda: gnn.GeneralConv(WIDTH, 8, attention=True, heads=2),
    "LGConv": lambda: gnn.LGConv(),
    "WLConvContinuous": lambda: gnn.WLConvContinuous(),
    "GPSConv": lambda: gnn.GPSConv(WIDTH, gnn.GINConv(mlp()), heads=2),
    "GPSConv by a performer": lambda: gnn.GPSConv(
        WIDTH, gnn.GCNConv(WIDTH, WIDTH), heads=2, attn_type="performer"
    ),
    "AntiSymmetricConv": lambda: gnn.AntiSymmetricConv(WIDTH, num_iters=2),
    "DirGNNConv": lambda: gnn.DirGNNConv(gnn.SAGEConv(WIDTH, 4)),
    "MixHopConv": lambda: gnn.MixHopConv(WIDTH, 4, powers=[0, 1, 2]),
    "SignedConv": lambda: gnn.SignedConv(WIDTH, 4, first_aggr=True),
}

for name in PLAIN:

    @step(name, name)
    def _(name):
        x, edges = graph()
        layer = PLAIN[name]()
        if name == "DNAConv":
            return gradients(layer(x.view(NODES, 1, WIDTH).expand(-1, 2, -1), edges), x, layer)
        if name == "SignedConv":
            return gradients(layer(x, edges, edges.flip(0)), x, layer)
        return gradients(layer(x, edges), x, layer)


WITH_FEATURES = {
    "GINEConv": lambda: gnn.GINEConv(mlp(), edge_dim=3),
    "GATConv with features of edges": lambda: gnn.GATConv(WIDTH, 4, heads=2, edge_dim=3),
    "GATv2Conv with features of edges": lambda: gnn.GATv2Conv(WIDTH, 4, edge_dim=3),
    "TransformerConv with features of edges": lambda: gnn.TransformerConv(WIDTH, 4, edge_dim=3),
    "ResGatedGraphConv with features of edges": lambda: gnn.ResGatedGraphConv(WIDTH, 4, edge_dim=3),
    "GMMConv": lambda: gnn.GMMConv(WIDTH, 4, dim=3, kernel_size=2),
    "GMMConv, separate": lambda: gnn.GMMConv(
        WIDTH, 4, dim=3, kernel_size=2, separate_gaussians=True
    ),
    "NNConv": lambda: gnn.NNConv(WIDTH, 4, nn.Linear(3, WIDTH * 4)),
    "CGConv": lambda: gnn.CGConv(WIDTH, dim=3),
    "PDNConv": lambda: gnn.PDNConv(WIDTH, 4, edge_dim=3, hidden_channels=8),
    "GeneralConv with features of edges": lambda: gnn.GeneralConv(WIDTH, 8, in_edge_channels=3),
    "GENConv with features of edges": lambda: gnn.GENConv(WIDTH, 4, edge_dim=3),
}

for name in WITH_FEATURES:

    @step(name, name)
    def _(name):
        x, edges = graph()
        layer = WITH_FEATURES[name]()
        return gradients(layer(x, edges, torch.rand(EDGES, 3)), x, layer)


@step("RGCNConv by bases and blocks, FastRGCNConv, RGATConv")
def _():
    found = []
    for layer in (
        gnn.RGCNConv(WIDTH, 4, num_relations=3, num_bases=2),
        gnn.RGCNConv(WIDTH, 4, num_relations=3, num_blocks=2),
        gnn.FastRGCNConv(WIDTH, 4, num_relations=3),
        gnn.RGATConv(WIDTH, 4, num_relations=3, heads=2),
        gnn.FiLMConv(WIDTH, 4, num_relations=3),
    ):
        x, edges = graph()
        found.append(gradients(layer(x, edges, torch.randint(3, (EDGES,))), x, layer))
    return found


@step("GCN2Conv and FAConv")
def _():
    found = []
    for layer in (
        gnn.GCN2Conv(WIDTH, alpha=0.1, theta=0.5, layer=2),
        gnn.GCN2Conv(WIDTH, alpha=0.1, shared_weights=False),
        gnn.FAConv(WIDTH),
    ):
        x, edges = graph()
        found.append(gradients(layer(x, x.detach() * 2, edges), x, layer))
    return found


@step("convolutions of points: PointNet, PPF, point transformer, PointGNN")
def _():
    found = []
    for layer, extra in (
        (gnn.PointNetConv(mlp(WIDTH + 3), mlp()), 0),
        (gnn.PPFConv(mlp(WIDTH + 4), mlp()), 3),
        (gnn.PointTransformerConv(WIDTH, 4), 0),
        (gnn.PointGNNConv(mlp(WIDTH, 3), mlp(WIDTH + 3), mlp()), 0),
    ):
        x, edges = graph()
        given = [x, torch.rand(NODES, 3)] + ([torch.rand(NODES, 3)] if extra else [])
        found.append(gradients(layer(*given, edges), x, layer))
    return found


@step("heterogeneous: HEATConv, HGTConv, HANConv, HeteroConv")
def _():
    x, edges = graph()
    heat = gnn.HEATConv(WIDTH, 4, 2, 3, 4, 3, 4, heads=2)
    kinds = torch.randint(2, (NODES,)), torch.randint(3, (EDGES,))
    found = [gradients(heat(x, edges, *kinds, torch.rand(EDGES, 3)), x, heat)]
    metadata = ["a", "b"], [("a", "to", "b"), ("b", "to", "a"), ("a", "like", "a")]
    nodes = {"a": torch.randn(5, WIDTH), "b": torch.randn(4, WIDTH)}
    edges = {
        kind: torch.stack(
            [torch.randint(len(nodes[kind[0]]), (9,)), torch.randint(len(nodes[kind[2]]), (9,))]
        )
        for kind in metadata[1]
    }
    for layer in (
        gnn.HGTConv(WIDTH, 8, metadata, heads=2),
        gnn.HANConv(WIDTH, 8, metadata, heads=2),
        gnn.HeteroConv({kind: gnn.SAGEConv((-1, -1), 6) for kind in metadata[1]}, aggr="mean"),
        gnn.HeteroConv(
            {kind: gnn.GATConv((-1, -1), 6, add_self_loops=False) for kind in metadata[1]}
        ),
    ):
        out = layer(nodes, edges)
        sum(each.square().mean() for each in out.values()).backward()
        grads = [p.grad for p in layer.parameters()]
        found.append((out, [g * (g.norm() > 1e-5) for g in grads]))
    return found


@step("bipartite graphs: two widths of nodes")
def _():
    found = []
    for layer in (
        gnn.SAGEConv((6, WIDTH), 4),
        gnn.GATConv((6, WIDTH), 4, add_self_loops=False),
        gnn.GraphConv((6, WIDTH), 4),
        gnn.TransformerConv((6, WIDTH), 4),
        gnn.NNConv((6, WIDTH), 4, nn.Linear(2, 24)),
    ):
        source, target = torch.randn(9, 6), torch.randn(NODES, WIDTH, requires_grad=True)
        edges = torch.stack([torch.randint(9, (EDGES,)), torch.randint(NODES, (EDGES,))])
        more = [torch.rand(EDGES, 2)] if isinstance(layer, gnn.NNConv) else []
        found.append(gradients(layer((source, target), edges, *more), target, layer))
    return found


@step("hypergraph attention, Weisfeiler-Lehman colours, mesh convolution")
def _():
    x, edges = graph()
    layer = gnn.HypergraphConv(WIDTH, 4, use_attention=True, heads=2)
    hyperedges = torch.stack([torch.randint(NODES, (EDGES,)), torch.randint(5, (EDGES,))])
    found = [gradients(layer(x, hyperedges, hyperedge_attr=torch.randn(5, WIDTH)), x, layer)]
    colours = gnn.WLConv()
    start = torch.randint(3, (NODES,))
    found.append((colours(colours(start, edges), edges), colours.histogram(start)))
    mesh = gnn.MeshCNNConv(WIDTH, 4)
    around = torch.stack([torch.arange(NODES).repeat_interleave(4), torch.randint(NODES, (48,))])
    x = torch.randn(NODES, WIDTH, requires_grad=True)
    found.append(gradients(mesh(x, around), x, mesh))
    return found


@step("weights of edges, caching and double precision")
def _():
    x, edges = graph()
    weight = torch.rand(EDGES, dtype=torch.float64, requires_grad=True)
    layer = gnn.GCNConv(WIDTH, 4, cached=True).double()
    first = layer(x.double(), edges, weight)
    first.square().sum().backward()
    return first, layer(x.double(), edges), weight.grad


@step("attention weights returned; a graph of another dtype of indices")
def _():
    x, edges = graph()
    _, (index, alpha) = gnn.GATConv(WIDTH, 4, heads=2)(x, edges, return_attention_weights=True)
    return index, alpha


COMPILED = {
    "PANConv": lambda x, edges: gnn.PANConv(WIDTH, 4, filter_size=2)(x, edges),
    "SplineConv": lambda x, edges: gnn.SplineConv(WIDTH, 4, dim=3, kernel_size=3),
    "XConv": lambda x, edges: gnn.XConv(WIDTH, 4, dim=3, kernel_size=3),
    "DynamicEdgeConv": lambda x, edges: gnn.DynamicEdgeConv(mlp(2 * WIDTH, 4), 3),
    "GravNetConv": lambda x, edges: gnn.GravNetConv(WIDTH, 4, 3, 4, 2),
}

for name in COMPILED:

    @step(f"{name} without its compiled extension", name, refused=True)
    def _(name):
        COMPILED[name](*graph())


@step("features of another width", refused=True)
def _():
    _, edges = graph()
    gnn.GCNConv(WIDTH, 4)(torch.randn(NODES, WIDTH + 1), edges)


@step("an edge to a node that is not there", refused=True)
def _():
    x, _ = graph()
    gnn.SAGEConv(WIDTH, 4)(x, torch.tensor([[0, 1], [2, NODES + 3]]))


@step("edges that are floating point", refused=True)
def _():
    x, edges = graph()
    gnn.SAGEConv(WIDTH, 4)(x, edges.float())


@step("a state of another convolution", refused=True)
def _():
    gnn.GATConv(WIDTH, 4).load_state_dict(gnn.GATConv(WIDTH, 4, heads=2).state_dict())
