"""Engines: training, evaluating, metrics, handlers, checkpoints, resuming."""

import os

import torch
from ignite import handlers, metrics
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from steps import step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parts(rate=0.05):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x = torch.randn(48, 6)
    data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), 8)
    return net, torch.optim.Adam(net.parameters(), rate), data


@step("a supervised trainer and evaluator with metrics by epoch")
def _():
    net, optimizer, data = parts()
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    names = {
        "accuracy": metrics.Accuracy(),
        "loss": metrics.Loss(nn.CrossEntropyLoss()),
        "precision": metrics.Precision(average=True),
        "f1": metrics.Fbeta(1),
        "top": metrics.TopKCategoricalAccuracy(2),
        "confusion": metrics.ConfusionMatrix(3),
    }
    evaluator, found = create_supervised_evaluator(net, metrics=names), []

    @trainer.on(Events.EPOCH_COMPLETED(every=2))
    def _(engine):
        evaluator.run(data)
        found.append({name: value for name, value in evaluator.state.metrics.items()})

    trainer.run(data, max_epochs=4)
    return found, trainer.state.output


@step("an engine of one's own, running averages, early stopping, a NaN that ends it")
def _():
    net, optimizer, data = parts()

    def update(engine, batch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}

    trainer, seen = Engine(update), []
    metrics.RunningAverage(output_transform=lambda out: out["loss"]).attach(trainer, "smooth")
    stop = handlers.EarlyStopping(2, lambda engine: -engine.state.output["loss"], trainer, 0.1)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, stop)
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED, handlers.TerminateOnNan(lambda o: o["loss"])
    )
    trainer.add_event_handler(
        Events.EPOCH_COMPLETED, lambda e: seen.append(e.state.metrics["smooth"])
    )
    trainer.run(data, max_epochs=8)
    return seen, trainer.state.epoch


@step("checkpoints, the best model, resuming")
def _():
    net, optimizer, data = parts()
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    objects = {"model": net, "optimizer": optimizer, "trainer": trainer}
    saver = handlers.Checkpoint(
        objects,
        handlers.DiskSaver("kept", require_empty=False),
        n_saved=2,
        score_function=lambda engine: -engine.state.output,
        score_name="loss",
        global_step_transform=handlers.global_step_from_engine(trainer),
    )
    every = handlers.ModelCheckpoint("all", n_saved=2, create_dir=True)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, every, objects)
    trainer.run(data, max_epochs=3)
    path = every.last_checkpoint
    net, optimizer, data = parts()
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    objects = {"model": net, "optimizer": optimizer, "trainer": trainer}
    handlers.Checkpoint.load_objects(objects, torch.load(path))
    trainer.run(data, max_epochs=5)
    return len(os.listdir("kept")), trainer.state.epoch, trainer.state.output, net[0].weight


@step("schedules: cosine, pieces, warm-up, by PyTorch's; the search for a rate")
def _():
    net, optimizer, data = parts()
    schedule = handlers.create_lr_scheduler_with_warmup(
        handlers.CosineAnnealingScheduler(optimizer, "lr", 0.1, 0.01, 12),
        0.0,
        4,
        warmup_end_value=0.1,
    )
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
    rates = []
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda e: rates.append(optimizer.param_groups[0]["lr"])
    )
    trainer.run(data, max_epochs=3)
    net, optimizer, data = parts(1e-5)
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    finder = handlers.FastaiLRFinder()
    with finder.attach(
        trainer, {"model": net, "optimizer": optimizer}, num_iter=6, end_lr=1.0
    ) as found:
        found.run(data)
    return rates, finder.get_results()


@step("averaged weights, accumulated gradients, mixed precision by autocast")
def _():
    net, optimizer, data = parts()
    trainer = create_supervised_trainer(
        net, optimizer, nn.CrossEntropyLoss(), gradient_accumulation_steps=2
    )
    ema = handlers.EMAHandler(net, momentum=0.1)
    ema.attach(trainer, name="ema_momentum", event=Events.ITERATION_COMPLETED)
    trainer.run(data, max_epochs=2)
    return net[0].weight, ema.ema_model[0].weight


@step("metrics: regression, pictures, text, sums; algebra of metrics")
def _():
    def run(metric, *batches):
        for batch in batches:
            metric.update(batch)
        return metric.compute()

    x, y = torch.rand(4, 3, 16, 16), torch.rand(4, 3, 16, 16)
    precision, recall = metrics.Precision(), metrics.Recall()
    both = (precision * recall * 2 / (precision + recall)).mean()
    scores, labels = torch.rand(12, 3), torch.arange(12) % 3
    precision.update((scores, labels))
    recall.update((scores, labels))
    return (
        run(metrics.MeanSquaredError(), (x, y)),
        run(metrics.RootMeanSquaredError(), (x, y)),
        run(metrics.SSIM(data_range=1.0), (x, y)),
        run(metrics.PSNR(1.0), (x, y)),
        run(
            metrics.Bleu(ngram=2, smooth="smooth1"),
            ("a cat sat".split(), ["a cat sat down".split()]),
        ),
        run(metrics.Rouge(variants=["L"]), (["a cat sat".split()], [["a dog sat".split()]])),
        run(metrics.Average(), x.mean(), y.mean()),
        run(metrics.IoU(metrics.ConfusionMatrix(3)), (scores, labels)),
        run(
            metrics.MultiLabelConfusionMatrix(3),
            ((scores > 0.5).int(), (torch.rand(12, 3) > 0.5).int()),
        ),
        both.compute(),
    )


@step("deterministic engines, events filtered, a profiler")
def _():
    net, optimizer, data = parts()
    from ignite.engine.deterministic import DeterministicEngine

    def update(engine, batch):
        loss = nn.functional.cross_entropy(net(batch[0]), batch[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item() + torch.rand(1).item()

    trainer, seen = DeterministicEngine(update), []
    profiler = handlers.BasicTimeProfiler()
    profiler.attach(trainer)
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED(event_filter=lambda e, n: n in (1, 5)) | Events.COMPLETED,
        lambda e: seen.append(e.state.output),
    )
    trainer.run(data, max_epochs=2, epoch_length=4)
    return seen, sorted(profiler.get_results())


@step("a tracker of parameters and a logger for TensorBoard")
def _():
    net, optimizer, data = parts()
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    with handlers.TensorboardLogger(log_dir="board") as logger:
        logger.attach_output_handler(
            trainer,
            Events.ITERATION_COMPLETED,
            "training",
            output_transform=lambda loss: {"loss": loss},
        )
        weights = handlers.tensorboard_logger.WeightsHistHandler(net)
        logger.attach(trainer, weights, Events.EPOCH_COMPLETED)
        trainer.run(data, max_epochs=1)
    return len(os.listdir("board")), trainer.state.output


@step("an exception of the update passes to the user", refused=True)
def _():
    Engine(lambda engine, batch: 1 / 0).run([1, 2])


@step("data without an end needs a length", refused=True)
def _():
    Engine(lambda engine, batch: batch).run(None)


@step("labels beyond the classes are refused", refused=True)
def _():
    metrics.ConfusionMatrix(3).update((torch.rand(4, 2), torch.arange(4) % 2))


@step("a checkpoint without a part is refused", refused=True)
def _():
    net, optimizer, _ = parts()
    handlers.Checkpoint.load_objects(
        {"model": net, "optimizer": optimizer}, {"model": net.state_dict()}
    )
