"""Metrics over batches: of classes, numbers, text, pictures, retrieval."""

import pickle

import torch
import torchmetrics as tm
from steps import step
from torchmetrics import classification, clustering, image, nominal, regression, retrieval, text


@step("classification, a collection over three batches")
def _():
    many = tm.MetricCollection(
        [
            classification.MulticlassAccuracy(5),
            classification.MulticlassF1Score(5),
            classification.MulticlassAUROC(5),
            classification.MulticlassAveragePrecision(5),
            classification.MulticlassCalibrationError(5),
            classification.MulticlassCohenKappa(5),
            classification.MulticlassJaccardIndex(5),
            classification.MulticlassMatthewsCorrCoef(5),
            classification.MulticlassConfusionMatrix(5),
            classification.MulticlassHingeLoss(5),
        ]
    )
    for _ in range(3):
        many.update(torch.randn(40, 5).softmax(1), torch.randint(5, (40,)))
    return many.compute()


@step("binary and of many labels")
def _():
    scores, labels = torch.rand(50), torch.randint(2, (50,))
    many, chosen = torch.rand(20, 4), torch.randint(2, (20, 4))
    return (
        classification.BinaryROC(thresholds=5)(scores, labels),
        classification.BinaryPrecisionRecallCurve()(scores, labels),
        classification.BinaryFairness(2)(scores, labels, torch.arange(50) % 2),
        classification.MultilabelRankingLoss(4)(many, chosen),
        classification.MultilabelCoverageError(4)(many, chosen),
        classification.MultilabelF1Score(4, average=None)(many, chosen),
    )


@step("regression")
def _():
    numbers = tm.MetricCollection(
        [
            regression.MeanSquaredError(),
            regression.MeanAbsoluteError(),
            regression.PearsonCorrCoef(),
            regression.SpearmanCorrCoef(),
            regression.KendallRankCorrCoef(),
            regression.R2Score(),
            regression.ExplainedVariance(),
            regression.LogCoshError(),
            regression.ConcordanceCorrCoef(),
            regression.SymmetricMeanAbsolutePercentageError(),
        ]
    )
    for _ in range(3):
        x = torch.randn(30)
        numbers.update(x, x + 0.5 * torch.randn(30))
    kl = regression.KLDivergence()(torch.rand(4, 5).softmax(1), torch.rand(4, 5).softmax(1))
    return numbers.compute(), kl


@step("pictures")
def _():
    a, b = torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)
    return (
        image.PeakSignalNoiseRatio(data_range=1.0)(a, b),
        image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b),
        image.MultiScaleStructuralSimilarityIndexMeasure(data_range=1.0, betas=(0.5, 0.5))(a, b),
        image.TotalVariation()(a),
        image.UniversalImageQualityIndex()(a, b),
        image.SpectralAngleMapper()(a, b),
        image.ErrorRelativeGlobalDimensionlessSynthesis()(a, b),
        image.VisualInformationFidelity()(a, b),
    )


@step("text")
def _():
    said, meant = ["the cat sat on a mat"], [["the cat sat on the mat", "a cat sat down"]]
    one = [meant[0][0]]
    return (
        text.BLEUScore(2)(said, meant),
        text.WordErrorRate()(said, one),
        text.CharErrorRate()(said, one),
        text.CHRFScore()(said, meant),
        text.EditDistance()(said, one),
        text.TranslationEditRate()(said, meant),
        text.Perplexity()(torch.rand(2, 8, 5), torch.randint(5, (2, 8))),
        text.SQuAD()(
            [{"prediction_text": "1976", "id": "a"}],
            [{"answers": {"answer_start": [97], "text": ["1976"]}, "id": "a"}],
        ),
    )


@step("retrieval")
def _():
    scores, hits, queries = torch.rand(12), torch.arange(12) % 3 == 0, torch.arange(12) // 4
    kinds = (
        retrieval.RetrievalMAP,
        retrieval.RetrievalMRR,
        retrieval.RetrievalNormalizedDCG,
        retrieval.RetrievalPrecision,
        retrieval.RetrievalRPrecision,
    )
    return [kind()(scores, hits, indexes=queries) for kind in kinds]


@step("clusters and nominal data")
def _():
    one, other = torch.randint(4, (60,)), torch.randint(4, (60,))
    data = torch.randn(60, 3)
    return (
        clustering.MutualInfoScore()(one, other),
        clustering.AdjustedRandScore()(one, other),
        clustering.NormalizedMutualInfoScore()(one, other),
        clustering.VMeasureScore()(one, other),
        clustering.CalinskiHarabaszScore()(data, one),
        clustering.DunnIndex()(data, one),
        nominal.CramersV(4)(one, other),
        nominal.TheilsU(4)(one, other),
    )


@step("means, sums, running and tracked values, and their algebra")
def _():
    mean, total, running = tm.MeanMetric(), tm.SumMetric(), tm.RunningMean(window=2)
    best = tm.MetricTracker(classification.MulticlassAccuracy(3))
    both = mean + 2 * total
    for epoch in range(3):
        best.increment()
        best.update(torch.rand(9, 3), torch.arange(9) % 3)
        for metric in (mean, total, running):
            metric.update(torch.rand(4) + epoch)
    return both.compute(), running.compute(), best.compute_all(), best.best_metric(return_step=True)


@step("wrappers: by class, minima and maxima, bootstrapped, many outputs")
def _():
    accuracy = classification.MulticlassAccuracy(3, average=None)
    named = tm.ClasswiseWrapper(accuracy, labels=["a", "b", "c"])
    spread = tm.MinMaxMetric(classification.MulticlassAccuracy(3))
    scores, labels = torch.rand(30, 3), torch.randint(3, (30,))
    boot = tm.BootStrapper(regression.MeanSquaredError(), 4, sampling_strategy="multinomial")
    boot.update(torch.rand(20), torch.rand(20))
    outputs = tm.MultioutputWrapper(regression.R2Score(), 2)
    outputs.update(torch.rand(10, 2), torch.rand(10, 2))
    return named(scores, labels), spread(scores, labels), boot.compute(), outputs.compute()


class Furthest(tm.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("seen", torch.tensor(0.0), dist_reduce_fx="max")
        self.add_state("all", [], dist_reduce_fx="cat")

    def update(self, x):
        self.seen = torch.maximum(self.seen, x.abs().max())
        self.all.append(x)

    def compute(self):
        return self.seen + tm.utilities.dim_zero_cat(self.all).mean()


@step("a metric of one's own: forward, state_dict, pickle, reset")
def _():
    metric = Furthest()
    metric.persistent(True)
    first = metric(torch.randn(5)), metric(torch.randn(5)), metric.compute()
    again = Furthest()
    again.persistent(True)
    again.load_state_dict(metric.state_dict())
    copied = pickle.loads(pickle.dumps(metric)).compute()
    metric.reset()
    return first, copied, again.seen, metric.seen


@step("gradients through metrics that have them")
def _():
    x = torch.rand(1, 1, 24, 24, requires_grad=True)
    ssim = image.StructuralSimilarityIndexMeasure(data_range=1.0)(x, torch.rand(1, 1, 24, 24))
    ssim.backward()
    return ssim, x.grad


@step("shapes that do not agree are refused", refused=True)
def _():
    regression.MeanSquaredError()(torch.rand(3), torch.rand(4))


@step("labels beyond the classes are refused", refused=True)
def _():
    classification.MulticlassAccuracy(3)(torch.rand(4, 3), torch.tensor([0, 1, 2, 3]))


@step("computing before an update is refused where it has no meaning", refused=True)
def _():
    retrieval.RetrievalMAP(empty_target_action="error")(
        torch.rand(4), torch.zeros(4, dtype=torch.bool), indexes=torch.zeros(4, dtype=torch.long)
    )
