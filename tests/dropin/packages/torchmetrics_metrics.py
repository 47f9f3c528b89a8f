"""torchmetrics: metrics over batches, of classes, of numbers, of text and of pictures."""

import torch
import torchmetrics as tm
from torchmetrics import classification, image, regression, retrieval, text

torch.manual_seed(1)
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
    ]
)
numbers = tm.MetricCollection(
    [
        regression.MeanSquaredError(),
        regression.MeanAbsoluteError(),
        regression.PearsonCorrCoef(),
        regression.SpearmanCorrCoef(),
        regression.R2Score(),
        regression.ExplainedVariance(),
        regression.LogCoshError(),
    ]
)
matrix = classification.MulticlassConfusionMatrix(5)
mean = tm.MeanMetric()
for _ in range(3):
    scores, labels = torch.randn(40, 5).softmax(1), torch.randint(5, (40,))
    many.update(scores, labels)
    matrix.update(scores, labels)
    x, y = torch.randn(30), torch.randn(30)
    numbers.update(x, x + 0.5 * y)
    mean.update(y.mean())
for name, value in {**many.compute(), **numbers.compute()}.items():
    print(name, value.item())
print(matrix.compute().tolist(), mean.compute().item())
roc = classification.BinaryROC(thresholds=5)(torch.rand(50), torch.randint(2, (50,)))
print([part.tolist() for part in roc])
a, b = torch.rand(2, 3, 24, 24), torch.rand(2, 3, 24, 24)
print("psnr", image.PeakSignalNoiseRatio(data_range=1.0)(a, b).item())
print("ssim", image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b).item())
print("variation", image.TotalVariation()(a).item())
said, meant = ["the cat sat on a mat"], [["the cat sat on the mat", "a cat sat down"]]
print("bleu", text.BLEUScore(2)(said, meant).item())
print("words", text.WordErrorRate()(said, meant[0][:1]).item())
hits = retrieval.RetrievalMAP()(torch.rand(12), torch.arange(12) % 3 == 0, torch.arange(12) // 4)
print("retrieved", hits.item())
