"""Metrics that need no network: scripts of one's own, combined, in a training loop."""

from pathlib import Path

import evaluate
import torch
from steps import step

SCRIPT = """
import datasets
import evaluate


class {name}(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(
            description="d",
            citation="c",
            inputs_description="i",
            features=datasets.Features(
                {{"predictions": datasets.Value("{kind}"), "references": datasets.Value("{kind}")}}
            ),
        )

    def _compute(self, predictions, references{extra}):
        {body}
"""
SCRIPTS = {
    "accuracy": (
        "int64",
        "",
        "return {'accuracy': sum(map(int.__eq__, predictions, references)) / len(references)}",
    ),
    "error": (
        "float32",
        ", squared=True",
        "errors = [abs(a - b) for a, b in zip(predictions, references)]\n"
        "        return {'error': sum(e**2 if squared else e for e in errors) / len(errors)}",
    ),
    "exact": (
        "string",
        "",
        "return {'exact': sum(a == b for a, b in zip(predictions, references)) / len(references)}",
    ),
}
for name, (kind, extra, body) in SCRIPTS.items():
    folder = Path("metrics") / name
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(
        SCRIPT.format(name=name.title(), kind=kind, extra=extra, body=body)
    )


def loaded(name):
    return evaluate.load(f"./metrics/{name}/{name}.py")


@step("compute from lists, arrays, tensors")
def _():
    metric = loaded("accuracy")
    logits = torch.randn(20, 3)
    labels = torch.randint(0, 3, (20,))
    return (
        metric.compute(predictions=[0, 1, 2], references=[0, 1, 1]),
        metric.compute(predictions=logits.argmax(-1), references=labels),
        metric.compute(predictions=logits.argmax(-1).numpy(), references=labels.tolist()),
    )


@step("add and add_batch in a loop of evaluation")
def _():
    metric, error = loaded("accuracy"), loaded("error")
    net = torch.nn.Linear(4, 3).eval()
    x = torch.randn(30, 4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :3].argmax(1)), 7)
    with torch.no_grad():
        for a, b in loader:
            metric.add_batch(predictions=net(a).argmax(-1), references=b)
            error.add_batch(predictions=net(a)[:, 0], references=b.float())
    metric.add(prediction=torch.tensor(1), reference=torch.tensor(1))
    return metric.compute(), error.compute(squared=False)


@step("combine, save, info")
def _():
    both = evaluate.combine([loaded("accuracy"), loaded("accuracy")])
    found = both.compute(predictions=torch.tensor([1, 0]), references=torch.tensor([1, 1]))
    path = evaluate.save("results", **{"loss": 0.5})
    return found, path.exists(), loaded("error").description, sorted(loaded("exact").features)


@step("strings; an option of the metric")
def _():
    return (
        loaded("exact").compute(predictions=["a", "b"], references=["a", "c"]),
        loaded("error").compute(predictions=torch.tensor([1.0, 3.0]), references=torch.zeros(2)),
    )


@step("Trainer's compute_metrics with a metric")
def _():
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    metric = loaded("accuracy")
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=30,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
        )
    )
    data = [{"input_ids": torch.arange(5) + i, "labels": i % 2} for i in range(12)]
    trainer = Trainer(
        model,
        TrainingArguments("out", use_cpu=True, report_to=[], disable_tqdm=True),
        eval_dataset=data,
        compute_metrics=lambda p: metric.compute(
            predictions=p.predictions.argmax(-1), references=p.label_ids
        ),
    )
    found = trainer.evaluate()
    return found["eval_accuracy"], found["eval_loss"]


@step("refused: other numbers of predictions than of references", refused=True)
def _():
    loaded("accuracy").compute(predictions=torch.tensor([1, 0]), references=torch.tensor([1]))


@step("refused: text for numbers", refused=True)
def _():
    loaded("accuracy").compute(predictions=["a"], references=["b"])


@step("refused: nothing added", refused=True)
def _():
    loaded("accuracy").compute()


@step("refused: an evaluator of an unknown task", refused=True)
def _():
    evaluate.evaluator("nothing")
