"""A Trainer: fit, validate, predict, checkpoints, callbacks, loggers, precision, processes."""

import csv
import logging
import os
import subprocess
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.INFO)

import lightning as L  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch import callbacks, loggers, tuner  # noqa: E402
from steps import python, step  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}


class Net(L.LightningModule):
    def __init__(self, rate=0.05, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, width),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(width, 3),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        loss = F.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("held_out", F.cross_entropy(self(batch[0]), batch[1]), prog_bar=True)

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0]).softmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


class Data(L.LightningDataModule):
    def __init__(self, size=16):
        super().__init__()
        self.size = size

    def setup(self, stage):
        x = torch.randn(64, 8, generator=torch.Generator().manual_seed(5))
        self.data = TensorDataset(x, x[:, :3].argmax(1))

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=self.size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.data, batch_size=self.size)

    test_dataloader = predict_dataloader = val_dataloader


def trainer(**options):
    return L.Trainer(**{"max_epochs": 3, **QUIET, **options})


def metrics(runner):
    return {name: value.item() for name, value in runner.callback_metrics.items()}


@step("fit with a data module, then validate, test and predict")
def _():
    L.seed_everything(7)
    runner, net, data = trainer(), Net(), Data()
    runner.fit(net, data)
    found = metrics(runner), runner.global_step
    return found, runner.validate(net, data), runner.test(net, data), runner.predict(net, data)


@step("checkpoints of the best and the last, early stopping, resuming")
def _():
    keep = callbacks.ModelCheckpoint("kept", monitor="held_out", filename="{epoch}", save_last=True)
    stop = callbacks.EarlyStopping("held_out", patience=3)
    first = trainer(enable_checkpointing=True, callbacks=[keep, stop], gradient_clip_val=1.0)
    first.fit(Net(), Data())
    again = trainer(max_epochs=6)
    again.fit(Net(), Data(), ckpt_path="kept/last.ckpt", weights_only=False)
    return metrics(first), sorted(os.listdir("kept")), keep.best_model_score, metrics(again)


@step("load_from_checkpoint with hyperparameters, and other ones")
def _():
    runner, net = trainer(max_epochs=1), Net(width=12)
    runner.fit(net, Data())
    runner.save_checkpoint("net.ckpt")
    loaded = Net.load_from_checkpoint("net.ckpt", rate=0.5, weights_only=False).eval()
    return loaded.hparams.width, loaded.hparams.rate, loaded(torch.ones(2, 8))


@step("Trainer.init_module and a model made within it")
def _():
    runner = trainer(max_epochs=1, precision="64-true")
    with runner.init_module():
        net = Net()
    runner.fit(net, DataLoader(TensorDataset(torch.randn(32, 8).double(), torch.arange(32) % 3), 8))
    return net.net[0].weight


for precision in ("bf16-mixed", "bf16-true", "64-true", "16-mixed"):

    @step(f"precision {precision}", precision)
    def _(precision):
        class Plain(Net):
            def training_step(self, batch, index):
                x = batch[0].to(self.net[0].weight.dtype)
                return F.cross_entropy(self(x).float(), batch[1])

        net = Plain()
        runner = trainer(
            precision=precision, limit_val_batches=0, limit_train_batches=1, max_epochs=1
        )
        runner.fit(net, Data())
        return net.net[0].weight.float().abs().mean(), net(torch.ones(1, 8).to(net.dtype)).dtype


@step("accumulated gradients, their scheduler, clipping by value")
def _():
    net = Net()
    schedule = callbacks.GradientAccumulationScheduler({0: 2, 2: 4})
    runner = trainer(
        callbacks=[schedule], gradient_clip_val=0.05, gradient_clip_algorithm="value", max_epochs=4
    )
    runner.fit(net, Data())
    return net.net[0].weight, runner.global_step


@step("stochastic weight averaging and weights averaged by EMA")
def _():
    one, other = Net(), Net()
    trainer(max_epochs=6, callbacks=[callbacks.StochasticWeightAveraging(1e-2, 2)]).fit(one, Data())
    ema = callbacks.EMAWeightAveraging(decay=0.9)
    trainer(callbacks=[ema]).fit(other, Data())
    return one.net[0].weight, other.net[0].weight


class Adversarial(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.maker, self.judge = torch.nn.Linear(4, 2), torch.nn.Linear(2, 1)

    def training_step(self, batch, index):
        make, judge = self.optimizers()
        noise = torch.randn(len(batch[0]), 4)
        self.toggle_optimizer(judge)
        loss = self.judge(self.maker(noise).detach()).mean() - self.judge(batch[0]).mean()
        judge.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(judge, 0.1, "norm")
        judge.step()
        self.untoggle_optimizer(judge)
        self.toggle_optimizer(make)
        other = -self.judge(self.maker(noise)).mean()
        make.zero_grad()
        self.manual_backward(other)
        make.step()
        self.untoggle_optimizer(make)
        self.log_dict({"judge": loss, "maker": other})
        for scheduler in self.lr_schedulers():
            scheduler.step()

    def configure_optimizers(self):
        both = [torch.optim.RMSprop(m.parameters(), 0.01) for m in (self.maker, self.judge)]
        return both, [torch.optim.lr_scheduler.ExponentialLR(each, 0.9) for each in both]


@step("manual optimization of two networks")
def _():
    net, runner = Adversarial(), trainer(max_epochs=2)
    runner.fit(net, DataLoader(TensorDataset(torch.randn(32, 2)), 8))
    return metrics(runner), net.maker.weight, net.judge.weight


@step("the tuner finds a rate and a size of batches")
def _():
    runner = trainer(max_epochs=1)
    found = tuner.Tuner(runner).lr_find(Net(), Data(), num_training=20, attr_name="rate")
    data, other = Data(4), trainer(max_epochs=1)
    size = tuner.Tuner(other).scale_batch_size(
        Net(), datamodule=data, batch_arg_name="size", max_trials=2, steps_per_trial=1
    )
    return found.results, found.suggestion(), size


@step("loggers: CSV and TensorBoard, and the rates of a LearningRateMonitor")
def _():
    both = [loggers.CSVLogger("logs"), loggers.TensorBoardLogger("logs", name="board")]
    monitor = callbacks.LearningRateMonitor("epoch")
    runner = trainer(logger=both, callbacks=[monitor], log_every_n_steps=2)
    runner.fit(Net(), Data())
    with open("logs/lightning_logs/version_0/metrics.csv") as file:
        rows = [list(map(float, filter(None, row.values()))) for row in csv.DictReader(file)]
    return rows, len(os.listdir("logs/board/version_0"))


@step("callbacks of one's own, a timer, a summary, the finetuning of a backbone")
def _():
    seen = []

    class Watch(callbacks.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            seen.append(outputs["loss"].item())

        def on_before_optimizer_step(self, trainer, module, optimizer):
            seen.append(
                sum(p.grad.norm().item() for p in module.parameters() if p.grad is not None)
            )

    class Thaw(callbacks.BaseFinetuning):
        def freeze_before_training(self, module):
            self.freeze(module.net[0])

        def finetune_function(self, module, epoch, optimizer):
            if epoch == 1:
                self.unfreeze_and_add_param_group(module.net[0], optimizer, lr=0.01)

    net = Net()
    runner = trainer(callbacks=[Watch(), Thaw(), callbacks.Timer("00:01:00:00")])
    runner.fit(net, Data())
    from lightning.pytorch.utilities.model_summary import ModelSummary

    return seen, net.net[0].weight, ModelSummary(net, max_depth=2).total_parameters


@step("a profiler, one batch alone, overfitting, limits")
def _():
    fast = trainer(fast_dev_run=True)
    fast.fit(Net(), Data())
    over = trainer(overfit_batches=1, max_epochs=5)
    over.fit(Net(), Data())
    few = trainer(limit_train_batches=2, limit_val_batches=0.5, profiler="simple")
    few.fit(Net(), Data())
    return [metrics(each) for each in (fast, over, few)], few.global_step


@step("a compiled module")
def _():
    class Quiet(Net):
        def training_step(self, batch, index):
            return F.cross_entropy(self(batch[0]), batch[1])

        def validation_step(self, batch, index):
            return None

    net = Quiet()
    trainer(max_epochs=1).fit(torch.compile(net, backend="eager"), Data())
    return net.net[0].weight


PROGRAM = """
import logging, warnings, torch
if "+tlc" not in torch.__version__:
    from tests.vision.declared import imported
    imported()
import lightning as L
warnings.filterwarnings("ignore"); logging.disable(logging.INFO)
from torch.utils.data import DataLoader, TensorDataset

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, index):
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss, on_epoch=True, on_step=False, sync_dist=True)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    L.seed_everything(1)
    data = DataLoader(TensorDataset(torch.randn(32, 4)), 4)
    net = Net()
    runner = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
        enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False)
    runner.fit(net, data)
    if runner.is_global_zero:
        print("FOUND", runner.callback_metrics["loss"].item(), runner.world_size,
            *net.layer.weight.flatten().tolist())
"""


@step("two processes (ddp): the loss and the weights")
def _():
    with open("two.py", "w") as file:
        file.write(PROGRAM)
    done = subprocess.run([*python(), "two.py"], capture_output=True, text=True, timeout=300)
    line = [each for each in done.stdout.splitlines() if each.startswith("FOUND")]
    if not line:
        raise RuntimeError(done.stderr[-1500:])
    return list(map(float, line[0].split()[1:]))


@step("a checkpoint of another width is refused", refused=True)
def _():
    runner = trainer(max_epochs=1)
    runner.fit(Net(width=12), Data())
    runner.save_checkpoint("twelve.ckpt")
    trainer().fit(Net(width=16), Data(), ckpt_path="twelve.ckpt", weights_only=False)


@step("a checkpoint that is not there is refused", refused=True)
def _():
    trainer().fit(Net(), Data(), ckpt_path="absent.ckpt")


@step("a module without an optimizer's step is refused", refused=True)
def _():
    trainer().fit(L.LightningModule(), Data())


@step("early stopping by a metric that nobody logs is refused", refused=True)
def _():
    trainer(callbacks=[callbacks.EarlyStopping("nothing")]).fit(Net(), Data())
