"""Ready models, utilities of graphs, and transforms."""

import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
import torch_geometric.transforms as T
import torch_geometric.utils as U
from steps import step
from torch import nn
from torch_geometric.data import Data

NODES, EDGES, WIDTH = 12, 40, 8


def graph():
    edges = U.coalesce(torch.randint(NODES, (2, EDGES)))
    data = Data(x=torch.randn(NODES, WIDTH), edge_index=edges, pos=torch.randn(NODES, 3))
    data.edge_attr = torch.rand(edges.size(1), 3)
    data.y = torch.arange(NODES) % 3
    return data


def gradients(out, layer):
    kept = out.detach().clone()  # GroupAddRev frees its output in the backward pass
    out.square().mean().backward()
    # A gradient that is zero in exact arithmetic is nothing but rounding errors.
    found = [p.grad for p in layer.parameters() if p.grad is not None]
    return kept, [g * (g.norm() > 1e-5) for g in found]


@step("Node2Vec: walks without the compiled sampler", refused=True)
def _():
    gnn.Node2Vec(graph().edge_index, 8, 5, 3)


@step("SchNet, its energy and forces from distances given")
def _():
    def around(pos, batch):
        row, col = (~torch.eye(len(pos), dtype=torch.bool)).nonzero().t()
        return torch.stack([row, col]), (pos[row] - pos[col]).norm(dim=-1)

    model = gnn.SchNet(16, 16, 2, 10, cutoff=5.0, interaction_graph=around)
    pos = torch.randn(6, 3, requires_grad=True)
    energy = model(torch.tensor([6, 1, 1, 8, 6, 1]), pos)
    (force,) = torch.autograd.grad(energy.sum(), pos, create_graph=True)
    force.square().sum().backward()
    return energy, force, [p.grad for p in model.parameters() if p.grad is not None]


@step("AttentiveFP, NeuralFingerprint, LINKX, LightGCN, DeepGCN, SignedGCN")
def _():
    data, batch = graph(), torch.zeros(NODES, dtype=torch.long)
    found = []
    layer = gnn.AttentiveFP(WIDTH, 8, 2, 3, 2, 2).double()
    found.append(
        gradients(layer(data.x.double(), data.edge_index, data.edge_attr.double(), batch), layer)
    )
    layer = gnn.models.NeuralFingerprint(WIDTH, 8, 2, 2)
    found.append(gradients(layer(data.x, data.edge_index, batch), layer))
    layer = gnn.LINKX(NODES, WIDTH, 8, 3, 2)
    found.append(gradients(layer(data.x, data.edge_index), layer))
    layer = gnn.DeepGCNLayer(
        gnn.GENConv(WIDTH, WIDTH), gnn.LayerNorm(WIDTH), nn.ReLU(), block="res+"
    )
    found.append(gradients(layer(data.x, data.edge_index), layer))
    return found


@step("LightGCN: losses and recommendations")
def _():
    data = graph()
    model = gnn.LightGCN(NODES, 8, 2)
    rank = model(data.edge_index, torch.randint(NODES, (2, 6)))
    loss = model.recommendation_loss(rank[:3], rank[3:], lambda_reg=1e-3)
    loss.backward()
    return loss, model.embedding.weight.grad, model.recommend(data.edge_index, k=2)


@step("PNA, GroupAddRev, GPS-like transformers: SGFormer, Polynormer")
def _():
    data, batch = graph(), torch.zeros(NODES, dtype=torch.long)
    pna = gnn.PNA(
        WIDTH, 8, 2, 3, aggregators=["mean", "std"], scalers=["identity"], deg=torch.arange(1, 6)
    )
    reversible = gnn.GroupAddRev(gnn.SAGEConv(4, 4), num_groups=2)
    sgformer = gnn.models.SGFormer(WIDTH, 8, 3, trans_num_layers=1, gnn_num_layers=2)
    polynormer = gnn.models.Polynormer(WIDTH, 8, 3, local_layers=1, global_layers=1)
    return (
        gradients(pna(data.x, data.edge_index), pna),
        gradients(reversible(data.x.requires_grad_(), data.edge_index), reversible),
        gradients(sgformer(data.x.detach(), data.edge_index, batch), sgformer),
        gradients(polynormer(data.x.detach(), data.edge_index, batch), polynormer),
    )


@step("temporal graph memory: messages and its state")
def _():
    memory = gnn.TGNMemory(
        NODES,
        4,
        6,
        5,
        message_module=gnn.models.tgn.IdentityMessage(4, 6, 5),
        aggregator_module=gnn.models.tgn.LastAggregator(),
    )
    source, target = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 0])
    memory.update_state(source, target, torch.tensor([1, 2, 3]), torch.rand(3, 4))
    memory.eval()
    return memory(torch.arange(5))


@step("label propagation, correct and smooth")
def _():
    data = graph()
    mask = torch.arange(NODES) < 6
    spread = gnn.LabelPropagation(num_layers=3, alpha=0.9)(data.y, data.edge_index, mask)
    soft = torch.rand(NODES, 3).softmax(-1)
    model = gnn.CorrectAndSmooth(2, 0.8, 2, 0.8)
    soft = model.correct(soft, data.y[mask], mask, data.edge_index)
    return spread, model.smooth(soft, data.y[mask], mask, data.edge_index)


@step("MetaLayer with edge, node and global models")
def _():
    class Edge(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2 * WIDTH + 3 + 2, 3)

        def forward(self, source, target, edge_attr, u, batch):
            return self.lin(torch.cat([source, target, edge_attr, u[batch]], 1))

    class Node(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(WIDTH + 3, WIDTH)

        def forward(self, x, edge_index, edge_attr, u, batch):
            around = U.scatter(edge_attr, edge_index[1], 0, x.size(0), "mean")
            return self.lin(torch.cat([x, around], 1))

    class Whole(nn.Module):
        def forward(self, x, edge_index, edge_attr, u, batch):
            return u + U.scatter(x, batch, 0, reduce="mean")[:, :2]

    data = graph()
    layer = gnn.MetaLayer(Edge(), Node(), Whole())
    batch = torch.zeros(NODES, dtype=torch.long)
    return layer(data.x, data.edge_index, data.edge_attr, torch.ones(1, 2), batch)


@step("utilities: subgraph, k hops, laplacian, dense, degrees, loops, trees")
def _():
    data = graph()
    edges = data.edge_index
    return {
        "subgraph": U.subgraph(torch.tensor([0, 1, 2, 3]), edges, relabel_nodes=True)[0],
        "hops": U.k_hop_subgraph(2, 2, edges),
        "laplacian": U.get_laplacian(edges, normalization="sym"),
        "dense": U.to_dense_adj(edges),
        "sparse": U.dense_to_sparse(U.to_dense_adj(edges)[0])[0],
        "degree": U.degree(edges[0], NODES),
        "loops": U.contains_self_loops(edges),
        "undirected": U.to_undirected(edges),
        "coalesced": U.coalesce(edges.repeat(1, 2), torch.ones(2 * edges.size(1))),
        "isolated": U.contains_isolated_nodes(edges, NODES),
        "homophily": U.homophily(edges, data.y, method="node"),
        "assortativity": U.assortativity(edges),
        "negative": U.negative_sampling(edges, NODES, 6),
        "dropped": U.dropout_edge(edges, 0.4)[0],
        "mask": U.index_to_mask(torch.tensor([1, 3]), NODES),
        "scipy": U.to_scipy_sparse_matrix(edges).toarray(),
        "unbatch": U.unbatch(data.x, torch.arange(NODES) // 4),
        "grid": U.grid(2, 3),
    }


@step("sparse tensors of edges, their product and networkx")
def _():
    data = graph()
    adjacency = U.to_torch_coo_tensor(data.edge_index, data.edge_attr[:, 0], NODES)
    networkx = U.to_networkx(data, to_undirected=True)
    return U.spmm(adjacency, data.x), U.from_networkx(networkx).edge_index, adjacency


TRANSFORMS = {
    "features": [T.NormalizeFeatures(), T.OneHotDegree(20), T.Constant(), T.LocalDegreeProfile()],
    "structure": [T.ToUndirected(), T.AddSelfLoops(), T.RemoveIsolatedNodes(), T.GCNNorm()],
    "encodings": [T.AddLaplacianEigenvectorPE(2, is_undirected=False), T.VirtualNode()],
    "wider neighbourhoods": [T.TwoHop(), T.LargestConnectedComponents()],
    "random walks": [T.AddRandomWalkPE(3)],
    "SIGN": [T.SIGN(2)],
    "diffusion": [T.GDC(sparsification_kwargs={"method": "threshold", "eps": 0.05})],
    "line graph": [T.LineGraph()],
    "positions": [T.Center(), T.NormalizeScale(), T.Cartesian(), T.Distance(), T.Spherical()],
    "rotations": [T.RandomRotate(30), T.RandomScale((0.5, 2)), T.NormalizeScale()],
    "jitter": [T.RandomJitter(0.1), T.RandomFlip(0), T.RandomShear(0.2), T.LocalCartesian()],
    "SVD": [T.SVDFeatureReduction(3)],
    "dense": [T.ToDense(15)],
    "half hop": [T.HalfHop(alpha=0.5)],
    "propagated": [T.FeaturePropagation(torch.eye(NODES, WIDTH) > 0, 3)],
    "lambda": [T.LaplacianLambdaMax("sym")],
    "fixed points": [T.FixedPoints(5)],
    "padding": [T.Pad(20, 60)],
    "split": [T.RandomNodeSplit(num_val=2, num_test=2)],
    "links": [T.RandomLinkSplit()],
}

for name in TRANSFORMS:

    @step(f"transforms: {name}", name)
    def _(name):
        data = graph()
        if name in ("encodings",):
            # Eigenvectors have either sign.
            found = TRANSFORMS[name][0](data)
            return found.laplacian_eigenvector_pe.abs(), TRANSFORMS[name][1](graph()).to_dict()
        if name == "SVD":
            return TRANSFORMS[name][0](data).x.abs()
        # TwoHop sorts edges, equal ones in any order, and leaves their features where they are.
        if name in ("diffusion", "half hop", "propagated", "wider neighbourhoods"):
            del data.edge_attr
        for transform in TRANSFORMS[name]:
            data = transform(data)
        if name == "links":
            return [each.to_dict() for each in data]
        return {k: v for k, v in data.to_dict().items() if k != "adj"}


@step("meshes: faces to edges, normals, sampled points")
def _():
    data = Data(pos=torch.rand(5, 3), face=torch.tensor([[0, 1, 2], [1, 2, 3], [2, 3, 4]]))
    data = T.GenerateMeshNormals()(data)
    sampled = T.SamplePoints(6)(data.clone())
    return data.norm, sampled.pos, T.FaceToEdge()(data).edge_index


@step("KNNGraph without the compiled search", refused=True)
def _():
    T.KNNGraph(3)(graph())


@step("summary of a model; MLP, JumpingKnowledge")
def _():
    mlp = gnn.MLP([WIDTH, 16, 3], norm="layer_norm", dropout=0.1)
    out = mlp(torch.randn(5, WIDTH))
    hidden = [torch.randn(5, 6) for _ in range(3)]
    lstm = gnn.JumpingKnowledge("lstm", 6, 3)
    F.cross_entropy(out, torch.arange(5) % 3).backward()
    text = gnn.summary(mlp, torch.randn(5, WIDTH))
    return out, lstm(hidden), gnn.JumpingKnowledge("max")(hidden), text


@step("EdgeIndex: sorting, CSR, a product")
def _():
    from torch_geometric import EdgeIndex

    index = EdgeIndex([[0, 1, 1, 2], [1, 0, 2, 1]], sort_order="row", is_undirected=True)
    (rowptr, col), perm = index.get_csr()
    return rowptr, col, index.matmul(torch.arange(6.0).view(3, 2)), index.flip(0).sort_order


@step("an edge index with three rows", refused=True)
def _():
    Data(x=torch.ones(3, 1), edge_index=torch.zeros(3, 4, dtype=torch.long)).validate()
