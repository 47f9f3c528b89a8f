"""Node and graph classification, link prediction, hetero graphs, loaders, explainers."""

import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
import torch_geometric.transforms as T
from steps import step
from torch import nn
from torch_geometric.data import Data, HeteroData, InMemoryDataset, TemporalData
from torch_geometric.datasets import FakeDataset, FakeHeteroDataset
from torch_geometric.explain import Explainer, GNNExplainer, PGExplainer
from torch_geometric.loader import (
    ClusterData,
    DataLoader,
    ImbalancedSampler,
    LinkNeighborLoader,
    NeighborLoader,
    RandomNodeLoader,
    TemporalDataLoader,
)
from torch_geometric.utils import (
    add_self_loops,
    degree,
    negative_sampling,
    scatter,
    softmax,
    stochastic_blockmodel_graph,
)


def citations(nodes=60, width=16, classes=3):
    """A graph as Planetoid has them: words, classes and masks."""
    sizes = [nodes // classes] * classes
    inside = [[0.3 if i == j else 0.02 for j in range(classes)] for i in range(classes)]
    y = torch.arange(classes).repeat_interleave(nodes // classes)
    x = (torch.rand(nodes, width) < 0.1 + 0.5 * F.one_hot(y, width)).float()
    data = Data(x=x, y=y, edge_index=stochastic_blockmodel_graph(sizes, inside))
    return T.RandomNodeSplit(num_val=12, num_test=12)(T.NormalizeFeatures()(data))


class GCN(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv1, self.conv2 = gnn.GCNConv(width, 16), gnn.GCNConv(16, out)

    def forward(self, x, edge_index, edge_weight=None):
        x = F.dropout(self.conv1(x, edge_index, edge_weight).relu(), 0.5, self.training)
        return self.conv2(x, edge_index, edge_weight)


def trained(model, data, epochs=15):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@step("node classification by a GCN: losses and accuracy")
def _():
    data = citations()
    model = GCN(16, 3)
    losses = trained(model, data)
    found = model.eval()(data.x, data.edge_index).argmax(1)
    return losses, (found == data.y)[data.test_mask].float().mean()


for name in ("GCN", "GAT", "GraphSAGE", "GIN", "EdgeCNN"):

    @step(f"node classification by {name}, jumping knowledge", name)
    def _(name):
        data = citations()
        model = getattr(gnn, name)(16, 8, 2, 3, dropout=0.1, jk="cat", norm="LayerNorm")
        return trained(model, data, 6), model.eval()(data.x, data.edge_index)


@step("graph classification with batches: losses and logits")
def _():
    dataset = FakeDataset(num_graphs=12, avg_num_nodes=8, num_channels=8, num_classes=3)
    model = nn.ModuleList([gnn.GIN(8, 16, 2), nn.Linear(16, 3)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        for batch in DataLoader(dataset, batch_size=4, shuffle=True):
            hidden = gnn.global_mean_pool(model[0](batch.x, batch.edge_index), batch.batch)
            loss = F.cross_entropy(model[1](hidden), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, model[1].weight


@step("a custom MessagePassing with an edge update")
def _():
    class Convolution(gnn.MessagePassing):
        def __init__(self):
            super().__init__(aggr="add", node_dim=0)
            self.lin, self.att = nn.Linear(16, 4), nn.Linear(8, 1)

        def forward(self, x, edge_index):
            edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
            row, col = edge_index
            scale = degree(col, x.size(0)).pow(-0.5)
            x = self.lin(x)
            alpha = self.edge_updater(edge_index, x=x)
            return self.propagate(edge_index, x=x, norm=scale[row] * scale[col], alpha=alpha)

        def edge_update(self, x_i, x_j, index):
            return softmax(self.att(torch.cat([x_i, x_j], -1)), index)

        def message(self, x_j, norm, alpha):
            return alpha * norm.view(-1, 1) * x_j

        def update(self, out):
            return out.tanh()

    data, layer = citations(), Convolution()
    out = layer(data.x, data.edge_index)
    out.square().sum().backward()
    # That of the attention's bias is zero in exact arithmetic.
    return out, [p.grad for name, p in layer.named_parameters() if name != "att.bias"]


@step("link prediction by a graph autoencoder: losses, AUC")
def _():
    data = citations()
    split = T.RandomLinkSplit(
        is_undirected=True, split_labels=True, add_negative_train_samples=False
    )
    train, _, test = split(data)
    model = gnn.GAE(GCN(16, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        z = model.encode(train.x, train.edge_index)
        negative = negative_sampling(train.edge_index, num_nodes=60, num_neg_samples=50)
        loss = model.recon_loss(z, train.pos_edge_label_index, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    z = model.eval().encode(test.x, test.edge_index)
    return losses, model.test(z, test.pos_edge_label_index, test.neg_edge_label_index)


@step("VGAE, ARGVA, deep graph infomax: losses")
def _():
    data = citations()

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.mu, self.logstd = gnn.GCNConv(16, 4), gnn.GCNConv(16, 4)

        def forward(self, x, edges):
            return self.mu(x, edges), self.logstd(x, edges)

    vgae = gnn.VGAE(Encoder())
    z = vgae.encode(data.x, data.edge_index)
    loss = vgae.recon_loss(z, data.edge_index) + vgae.kl_loss() / 60
    argva = gnn.ARGVA(Encoder(), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    z = argva.encode(data.x, data.edge_index)
    infomax = gnn.DeepGraphInfomax(
        8,
        encoder=gnn.GCNConv(16, 8),
        summary=lambda z, *args, **kwargs: z.mean(0).sigmoid(),
        corruption=lambda x, edges: (x[torch.randperm(len(x))], edges),
    )
    return (
        loss,
        argva.reg_loss(z),
        argva.discriminator_loss(z),
        infomax.loss(*infomax(data.x, data.edge_index)),
    )


@step("a heterogeneous graph: to_hetero of GraphSAGE, trained")
def _():
    data = FakeHeteroDataset(num_graphs=1, avg_num_nodes=12, num_classes=3)[0]
    model = gnn.to_hetero(gnn.GraphSAGE((-1, -1), 8, 2, 3), data.metadata())
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        out = model(data.x_dict, data.edge_index_dict)["v0"]
        loss = F.cross_entropy(out, data["v0"].y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, out


@step("HeteroData: to_homogeneous, to_undirected, batches")
def _():
    data = HeteroData()
    data["author"].x, data["paper"].x = torch.randn(4, 3), torch.randn(6, 3)
    data["author", "writes", "paper"].edge_index = torch.stack(
        [torch.randint(4, (8,)), torch.randint(6, (8,))]
    )
    data = T.ToUndirected()(data)
    flat = data.to_homogeneous()
    batch = next(iter(DataLoader([data, data], batch_size=2)))
    return (
        flat.edge_index,
        flat.x,
        flat.node_type,
        batch["author"].batch,
        batch.edge_index_dict[("paper", "rev_writes", "author")],
    )


@step("Sequential, DataParallel lists, saved and loaded weights")
def _():
    data = citations()
    model = gnn.Sequential(
        "x, edge_index",
        [
            (gnn.GCNConv(16, 8), "x, edge_index -> x"),
            nn.ReLU(),
            (gnn.GATConv(8, 3), "x, edge_index -> x"),
        ],
    )
    torch.save(model.state_dict(), "model.pt")
    torch.save(data, "data.pt")
    again = torch.load("data.pt", weights_only=False)
    model.load_state_dict(torch.load("model.pt"))
    return model(again.x, again.edge_index), again.edge_index


@step("InMemoryDataset processed on disk, filters and transforms")
def _():
    class Made(InMemoryDataset):
        def __init__(self, root, transform=None, pre_transform=None):
            super().__init__(root, transform, pre_transform)
            self.load(self.processed_paths[0])

        @property
        def processed_file_names(self):
            return ["data.pt"]

        def process(self):
            graphs = [
                Data(x=torch.full((n, 2), float(n)), edge_index=torch.randint(n, (2, 6)), y=n % 2)
                for n in (3, 4, 5)
            ]
            self.save([self.pre_transform(each) for each in graphs], self.processed_paths[0])

    dataset = Made("made", T.Constant(), T.ToUndirected())
    again = Made("made", T.Constant(), T.ToUndirected())
    return [(d.x, d.edge_index, d.y) for d in again], again.num_classes, len(dataset[:2])


@step("loaders: random nodes, clusters refused, imbalanced, temporal")
def _():
    data = citations()
    parts = [(part.x.sum(), part.edge_index) for part in RandomNodeLoader(data, 3, shuffle=True)]
    sampler = ImbalancedSampler(torch.tensor([0] * 9 + [1]))
    events = TemporalData(
        src=torch.arange(6), dst=torch.arange(6).flip(0), t=torch.arange(6), msg=torch.rand(6, 2)
    )
    return parts, list(sampler), [b.msg for b in TemporalDataLoader(events, batch_size=4)]


@step("NeighborLoader without its compiled sampler", refused=True)
def _():
    next(iter(NeighborLoader(citations(), [3, 2], batch_size=4)))


@step("LinkNeighborLoader without its compiled sampler", refused=True)
def _():
    next(iter(LinkNeighborLoader(citations(), [3], batch_size=4, neg_sampling_ratio=1.0)))


@step("ClusterData without METIS", refused=True)
def _():
    ClusterData(citations(), num_parts=2)


for name in ("model", "phenomenon"):

    @step(f"GNNExplainer of the {name}: masks", name)
    def _(name):
        data = citations()
        model = GCN(16, 3)
        trained(model, data, 5)
        explainer = Explainer(
            model=model.eval(),
            algorithm=GNNExplainer(epochs=8),
            explanation_type=name,
            node_mask_type="attributes",
            edge_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "node",
                "return_type": "raw",
            },
        )
        found = explainer(
            data.x, data.edge_index, index=10, target=data.y if name == "phenomenon" else None
        )
        return found.node_mask, found.edge_mask


@step("PGExplainer, CaptumExplainer: masks")
def _():
    data = citations()
    model = GCN(16, 3)
    trained(model, data, 5)
    explainer = Explainer(
        model=model.eval(),
        algorithm=PGExplainer(epochs=2, lr=0.003),
        explanation_type="phenomenon",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    losses = []
    for epoch in range(2):
        for index in (1, 20, 40):
            losses.append(
                explainer.algorithm.train(
                    epoch, model, data.x, data.edge_index, target=data.y, index=index
                )
            )
    return losses, explainer(data.x, data.edge_index, index=10, target=data.y).edge_mask


@step("CaptumExplainer: integrated gradients of nodes and edges")
def _():
    from torch_geometric.explain import CaptumExplainer

    data = citations()
    model = GCN(16, 3)
    trained(model, data, 5)
    explainer = Explainer(
        model=model.eval(),
        algorithm=CaptumExplainer("IntegratedGradients"),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    found = explainer(data.x, data.edge_index, index=10)
    return found.node_mask, found.edge_mask


@step("an adjacency as a CSR tensor: GCN, SAGE, gradients")
def _():
    data = citations()
    sparse = T.ToSparseTensor(layout=torch.sparse_csr)(data)
    model = gnn.Sequential(
        "x, adj_t",
        [
            (gnn.GCNConv(16, 8), "x, adj_t -> x"),
            nn.ReLU(),
            (gnn.SAGEConv(8, 3), "x, adj_t -> x"),
        ],
    )
    out = model(sparse.x, sparse.adj_t)
    out.square().mean().backward()
    return sparse.adj_t.to_dense(), out, [p.grad for p in model.parameters()]


@step("an adjacency as a COO tensor: GCN, gradients")
def _():
    data = citations()
    sparse = T.ToSparseTensor(layout=torch.sparse_coo)(data)
    model = gnn.GCN(16, 8, 2, 3)
    out = model(sparse.x, sparse.adj_t)
    out.square().mean().backward()
    return out, [p.grad for p in model.parameters()]


@step("torch.compile of a model gives what it gave")
def _():
    data = citations()
    model = gnn.GraphSAGE(16, 8, 2, 3)
    compiled = torch.compile(model, backend="eager")
    return model(data.x, data.edge_index), compiled(data.x, data.edge_index)


@step("scatter of every kind and segment softmax")
def _():
    index = torch.tensor([0, 0, 1, 3, 3, 3])
    x = torch.randn(6, 3, requires_grad=True)
    out = [scatter(x, index, 0, 4, kind) for kind in ("sum", "mean", "min", "max", "mul")]
    out.append(softmax(x, index, num_nodes=4))
    sum((each * torch.randn_like(each)).sum() for each in out).backward()
    return out, x.grad


@step("a batch of graphs with other attributes", refused=True)
def _():
    next(iter(DataLoader([Data(x=torch.ones(2, 1)), Data(z=torch.ones(2, 1))], batch_size=2)))


@step("weights of another architecture", refused=True)
def _():
    GCN(16, 3).load_state_dict(gnn.GAT(16, 8, 2, 3).state_dict())
