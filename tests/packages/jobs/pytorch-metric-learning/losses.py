"""Metric learning: losses, miners, distances, reducers, samplers, accuracy, training."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers, samplers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from steps import step

CLASSES = {"num_classes": 4, "embedding_size": 8}
LOSSES = {
    "TripletMargin": lambda: losses.TripletMarginLoss(margin=0.3, smooth_loss=True),
    "Contrastive": losses.ContrastiveLoss,
    "NTXent": lambda: losses.NTXentLoss(0.2),
    "SupCon": losses.SupConLoss,
    "ArcFace": lambda: losses.ArcFaceLoss(**CLASSES),
    "CosFace": lambda: losses.CosFaceLoss(**CLASSES),
    "ProxyNCA": lambda: losses.ProxyNCALoss(**CLASSES),
    "ProxyAnchor": lambda: losses.ProxyAnchorLoss(**CLASSES),
    "SoftTriple": lambda: losses.SoftTripleLoss(**CLASSES, centers_per_class=3),
    "NormalizedSoftmax": lambda: losses.NormalizedSoftmaxLoss(**CLASSES),
    "SphereFace": lambda: losses.SphereFaceLoss(**CLASSES),
    "SubCenterArcFace": lambda: losses.SubCenterArcFaceLoss(**CLASSES),
    "MultiSimilarity": losses.MultiSimilarityLoss,
    "Circle": losses.CircleLoss,
    "LiftedStructure": losses.LiftedStructureLoss,
    "GeneralizedLifted": losses.GeneralizedLiftedStructureLoss,
    "Angular": losses.AngularLoss,
    "NPairs": losses.NPairsLoss,
    "FastAP": losses.FastAPLoss,
    "SNR": losses.SignalToNoiseRatioContrastiveLoss,
    "Tuplet": losses.TupletMarginLoss,
    "IntraPair": losses.IntraPairVarianceLoss,
    "Margin": losses.MarginLoss,
    "NCA": losses.NCALoss,
    "VICReg": lambda: losses.SelfSupervisedLoss(losses.NTXentLoss()),
    "P2S": lambda: losses.P2SGradLoss(descriptors_dim=8, num_classes=4),
    "Instance": lambda: losses.InstanceLoss(0.1),
    "Histogram": lambda: losses.HistogramLoss(n_bins=12),
    "DynamicSoftMargin": losses.DynamicSoftMarginLoss,
    "ManifoldProxy": lambda: losses.ThresholdConsistentMarginLoss(),
    "RankedList": lambda: losses.RankedListLoss(margin=0.5, Tn=0.1),
}
for name, make in LOSSES.items():

    @step(f"loss {name}, and its gradient", name, make)
    def _(name, make):
        x = torch.randn(16, 8, requires_grad=True)
        labels = torch.arange(16) % 4
        if name == "VICReg":
            loss = make()(x, x.detach() + 0.1 * torch.randn(16, 8))
        else:
            loss = make()(x, labels)
        loss.backward()
        return loss, x.grad


for name, make in {
    "triplets": lambda: miners.TripletMarginMiner(0.2, "semihard"),
    "similar": miners.MultiSimilarityMiner,
    "hard": miners.BatchHardMiner,
    "easy and hard": lambda: miners.BatchEasyHardMiner("easy", "semihard"),
    "pairs": miners.PairMarginMiner,
    "uniform": lambda: miners.UniformHistogramMiner(10, 4),
    "angular": lambda: miners.AngularMiner(20),
    "weighted": miners.DistanceWeightedMiner,
}.items():

    @step(f"miner {name}: its tuples and the loss of them", make)
    def _(make):
        x, labels = torch.nn.functional.normalize(torch.randn(12, 6)), torch.arange(12) % 3
        found = make()(x, labels)
        return found, losses.TripletMarginLoss(0.5)(x, labels, found)


@step("miner HDC: its tuples and the loss of them")
def _():
    x, labels = torch.nn.functional.normalize(torch.randn(12, 6)), torch.arange(12) % 3
    found = miners.HDCMiner()(x, labels)
    # It takes the top of a symmetric matrix: every distance is there twice, in either order.
    pairs = [sorted(torch.stack(found[i : i + 2], 1).tolist()) for i in (0, 2)]
    return pairs, losses.TripletMarginLoss(0.5)(x, labels, found)


@step("distances, reducers, regularizers")
def _():
    x, labels = torch.randn(12, 6), torch.arange(12) % 3
    kinds = (
        distances.CosineSimilarity(),
        distances.LpDistance(power=2),
        distances.SNRDistance(),
        distances.DotProductSimilarity(),
    )
    reduced = [
        losses.ContrastiveLoss(reducer=each)(x, labels)
        for each in (
            reducers.MeanReducer(),
            reducers.ThresholdReducer(low=0.1),
            reducers.AvgNonZeroReducer(),
            reducers.ClassWeightedReducer(torch.tensor([1.0, 2.0, 3.0])),
            reducers.PerAnchorReducer(),
        )
    ]
    regular = losses.TripletMarginLoss(embedding_regularizer=regularizers.LpRegularizer())
    return [kind(x) for kind in kinds], reduced, regular(x, labels)


@step("a memory across batches; several losses at once")
def _():
    memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), 8, memory_size=24)
    both = losses.MultipleLosses(
        [losses.NTXentLoss(), losses.TripletMarginLoss()], weights=[1, 0.5]
    )
    return [memory(torch.randn(8, 8), torch.arange(8) % 4) for _ in range(4)], both(
        torch.randn(8, 8), torch.arange(8) % 4
    )


@step("a sampler of m per class; training; accuracy of the nearest neighbours")
def _():
    labels = torch.arange(40) % 4
    x = torch.randn(40, 6) + 2 * torch.nn.functional.one_hot(labels, 6)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, labels),
        16,
        sampler=samplers.MPerClassSampler(labels, 4, 16, 64),
    )
    net, loss, found = torch.nn.Linear(6, 4), losses.ArcFaceLoss(4, 4), []
    optimizer = torch.optim.Adam([*net.parameters(), *loss.parameters()], 0.02)
    for batch, marks in loader:
        value = loss(net(batch), marks)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        found.append(value.item())
    from pytorch_metric_learning.utils.inference import CustomKNN

    judge = AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r"),
        k=9,
        knn_func=CustomKNN(distances.LpDistance()),
    )
    return found, judge.get_accuracy(net(x).detach(), labels)


@step("labels of another length are refused", refused=True)
def _():
    losses.ContrastiveLoss()(torch.randn(4, 3), torch.arange(3))


@step("embeddings of three dimensions are refused", refused=True)
def _():
    losses.TripletMarginLoss()(torch.randn(2, 4, 3), torch.arange(2))


@step("a mean of the wrong width is refused by ArcFace", refused=True)
def _():
    losses.ArcFaceLoss(**CLASSES)(torch.randn(4, 5), torch.arange(4))
