"""Pooling, normalization, aggregations, and dense layers."""

import torch
import torch_geometric.nn as gnn
from steps import step
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import aggr, dense
from torch_geometric.utils import coalesce, to_dense_adj, to_dense_batch

NODES, WIDTH = 14, 8


def batch():
    graphs = []
    for nodes in (5, 4, 5):
        edges = torch.randint(nodes, (2, 4 * nodes))
        graphs.append(Data(x=torch.randn(nodes, WIDTH), edge_index=edges))
    found = Batch.from_data_list(graphs)
    found.x.requires_grad_()
    return found


def gradients(out, x, layer):
    out.square().mean().backward()
    # A gradient that is zero in exact arithmetic is nothing but rounding errors.
    found = [x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]
    return out, [g * (g.norm() > 1e-5) for g in found]


@step("global pooling: sum, mean, max")
def _():
    data = batch()
    out = [
        pool(data.x, data.batch)
        for pool in (gnn.global_add_pool, gnn.global_mean_pool, gnn.global_max_pool)
    ]
    torch.cat(out).square().sum().backward()
    return out, data.x.grad


POOLS = {
    "TopKPooling": lambda: gnn.TopKPooling(WIDTH, 0.5),
    "TopKPooling by a threshold": lambda: gnn.TopKPooling(WIDTH, min_score=0.2),
    "SAGPooling": lambda: gnn.SAGPooling(WIDTH, 0.6, GNN=gnn.GCNConv),
    "ASAPooling": lambda: gnn.ASAPooling(WIDTH, 0.5),
    "EdgePooling": lambda: gnn.EdgePooling(WIDTH),
    "ClusterPooling": lambda: gnn.ClusterPooling(WIDTH),
}

for name in POOLS:

    @step(name, name)
    def _(name):
        data, layer = batch(), POOLS[name]()
        kind = name.split()[0]
        if kind in ("EdgePooling", "ClusterPooling"):
            x, edges, which, _ = layer(data.x, data.edge_index, data.batch)
        else:
            x, edges, _, which, *_ = layer(data.x, data.edge_index, batch=data.batch)
        # Edges are in any order after a product of sparse matrices.
        return gradients(x, data.x, layer), coalesce(edges), which


@step("MemPooling and its loss")
def _():
    data, layer = batch(), gnn.MemPooling(WIDTH, 6, heads=2, num_clusters=3)
    out, assigned = layer(data.x, data.batch)
    return gradients(out, data.x, layer), gnn.MemPooling.kl_loss(assigned)


@step("GraphUNet")
def _():
    data, layer = batch(), gnn.GraphUNet(WIDTH, 8, 4, depth=2)
    return gradients(layer(data.x, data.edge_index, data.batch), data.x, layer)


@step("pooling by given clusters: max_pool, avg_pool, neighbours")
def _():
    data, clusters = batch(), torch.tensor([0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7])
    pooled = [gnn.max_pool(clusters, data).x, gnn.avg_pool(clusters, data).x]
    around = [
        gnn.max_pool_neighbor_x(batch()).x,
        gnn.avg_pool_neighbor_x(batch()).x,
        gnn.max_pool_x(clusters, data.x, data.batch)[0],
        gnn.avg_pool_x(clusters, data.x, data.batch)[0],
    ]
    return pooled, around


@step("dense pooling: diffpool, mincut, DMoN")
def _():
    data = batch()
    x, mask = to_dense_batch(data.x, data.batch)
    adjacency = to_dense_adj(data.edge_index, data.batch)
    found = []
    for pool in (dense.dense_diff_pool, dense.dense_mincut_pool):
        assigned = nn.Linear(WIDTH, 3)(x)
        found.append(pool(x, adjacency, assigned, mask))
    found.append(dense.DMoNPooling(WIDTH, 3)(x, adjacency, mask))
    return found


@step("dense convolutions")
def _():
    data = batch()
    x, mask = to_dense_batch(data.x, data.batch)
    adjacency = to_dense_adj(data.edge_index, data.batch)
    found = []
    for layer in (
        dense.DenseGCNConv(WIDTH, 4),
        dense.DenseSAGEConv(WIDTH, 4),
        dense.DenseGraphConv(WIDTH, 4),
        dense.DenseGINConv(nn.Linear(WIDTH, 4)),
        dense.DenseGATConv(WIDTH, 4, heads=2),
    ):
        found.append(layer(x, adjacency, mask))
    return found


NORMS = {
    "BatchNorm": lambda: gnn.BatchNorm(WIDTH),
    "InstanceNorm": lambda: gnn.InstanceNorm(WIDTH, affine=True, track_running_stats=True),
    "LayerNorm of graphs": lambda: gnn.LayerNorm(WIDTH),
    "LayerNorm of nodes": lambda: gnn.LayerNorm(WIDTH, mode="node"),
    "GraphNorm": lambda: gnn.GraphNorm(WIDTH),
    "GraphSizeNorm": lambda: gnn.GraphSizeNorm(),
    "PairNorm": lambda: gnn.PairNorm(),
    "PairNorm, each": lambda: gnn.PairNorm(scale_individually=True),
    "MeanSubtractionNorm": lambda: gnn.MeanSubtractionNorm(),
    "DiffGroupNorm": lambda: gnn.DiffGroupNorm(WIDTH, 3),
    "MessageNorm": lambda: gnn.MessageNorm(learn_scale=True),
    "HeteroBatchNorm": lambda: gnn.HeteroBatchNorm(WIDTH, 2),
    "HeteroLayerNorm": lambda: gnn.HeteroLayerNorm(WIDTH, 2),
}

for name in NORMS:

    @step(name, name)
    def _(name):
        data, layer = batch(), NORMS[name]()
        if name.startswith("Hetero"):
            out = layer(data.x, torch.arange(NODES) % 2)
        elif name == "MessageNorm":
            out = layer(data.x, torch.randn(NODES, WIDTH))
        elif name in ("BatchNorm", "DiffGroupNorm"):
            out = layer(data.x)
        else:
            out = layer(data.x, data.batch)
        (out * torch.randn(NODES, WIDTH)).sum().backward()
        return out, data.x.grad, dict(layer.named_buffers())


AGGREGATIONS = {
    "Sum": lambda: aggr.SumAggregation(),
    "Mean": lambda: aggr.MeanAggregation(),
    "Max": lambda: aggr.MaxAggregation(),
    "Min": lambda: aggr.MinAggregation(),
    "Mul": lambda: aggr.MulAggregation(),
    "Var": lambda: aggr.VarAggregation(),
    "Std": lambda: aggr.StdAggregation(),
    "Softmax": lambda: aggr.SoftmaxAggregation(learn=True),
    "Softmax of each channel": lambda: aggr.SoftmaxAggregation(learn=True, channels=WIDTH),
    "PowerMean": lambda: aggr.PowerMeanAggregation(p=2.0, learn=True),
    "Median": lambda: aggr.MedianAggregation(),
    "Quantile": lambda: aggr.QuantileAggregation([0.25, 0.75]),
    "LSTM": lambda: aggr.LSTMAggregation(WIDTH, 6),
    "GRU": lambda: aggr.GRUAggregation(WIDTH, 6),
    "Set2Set": lambda: aggr.Set2Set(WIDTH, 3),
    "Sort": lambda: aggr.SortAggregation(3),
    "GraphMultisetTransformer": lambda: aggr.GraphMultisetTransformer(WIDTH, 3, heads=2),
    "Attentional": lambda: aggr.AttentionalAggregation(nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 6)),
    "Equilibrium": lambda: aggr.EquilibriumAggregation(WIDTH, 6, [8], grad_iter=2),
    "MLP": lambda: aggr.MLPAggregation(WIDTH, 6, 5, num_layers=2, hidden_channels=8, norm=None),
    "DeepSets": lambda: aggr.DeepSetsAggregation(nn.Linear(WIDTH, 6), nn.Linear(6, 4)),
    "SetTransformer": lambda: aggr.SetTransformerAggregation(WIDTH, 2, heads=2),
    "LCM": lambda: aggr.LCMAggregation(WIDTH, 6),
    "VariancePreserving": lambda: aggr.VariancePreservingAggregation(),
    "PatchTransformer": lambda: aggr.PatchTransformerAggregation(WIDTH, 6, 2, 8, heads=2),
    "DegreeScaler": lambda: aggr.DegreeScalerAggregation(
        ["mean", "max"], ["identity", "linear", "inverse_linear"], torch.tensor([1, 2, 3, 2])
    ),
    "several, concatenated": lambda: aggr.MultiAggregation(["mean", "std", "softmax"]),
    "several, attended": lambda: aggr.MultiAggregation(
        ["mean", "max"],
        mode="attn",
        mode_kwargs={"in_channels": WIDTH, "out_channels": 6, "num_heads": 2},
    ),
}

for name in AGGREGATIONS:

    @step(f"aggregation: {name}", name)
    def _(name):
        data, layer = batch(), AGGREGATIONS[name]()
        return gradients(layer(data.x, data.batch), data.x, layer)


@step("an index that is not sorted", refused=True)
def _():
    data = batch()
    aggr.LSTMAggregation(WIDTH, 6)(data.x, data.batch.flip(0))


@step("an aggregation that nothing is called", refused=True)
def _():
    try:
        gnn.SAGEConv(WIDTH, 4, aggr="mode")
    except ValueError as error:  # it goes on with a set of names, in any order
        raise ValueError(str(error).partition("{")[0]) from error
