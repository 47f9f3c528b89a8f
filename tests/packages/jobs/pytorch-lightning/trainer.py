"""The same Trainer by its older name: an autoencoder, metrics, checkpoints, the command line."""

import logging
import os
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.INFO)

import pytorch_lightning as pl  # noqa: E402
import torch  # noqa: E402
import torchmetrics  # noqa: E402
from pytorch_lightning.callbacks import ModelCheckpoint, RichProgressBar, TQDMProgressBar  # noqa: E402
from steps import step  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset, random_split  # noqa: E402

QUIET = {"accelerator": "cpu", "logger": False, "enable_model_summary": False}


class Autoencoder(pl.LightningModule):
    def __init__(self, hidden: int = 3, rate: float = 0.01):
        super().__init__()
        self.save_hyperparameters()
        self.example_input_array = torch.zeros(1, 8)
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, hidden))
        self.decoder = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 8))
        self.error = torchmetrics.MeanSquaredError()

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, index):
        loss = nn.functional.mse_loss(self(batch[0]), batch[0])
        self.log("train", loss)
        return loss

    def validation_step(self, batch, index, dataloader_idx=0):
        self.error(self(batch[0]), batch[0])
        self.log("error", self.error, on_epoch=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), self.hparams.rate)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.1)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": plateau, "monitor": "error", "interval": "epoch"},
        }


def loaders():
    data = TensorDataset(torch.randn(48, 8))
    first, second = random_split(data, [40, 8])
    return DataLoader(first, 8, shuffle=True), DataLoader(second, 8)


@step("an autoencoder with a metric, a schedule by plateau, the two best checkpoints")
def _():
    keep = ModelCheckpoint(".", monitor="error", save_top_k=2, filename="{epoch}-{step}")
    trainer = pl.Trainer(max_epochs=4, callbacks=[keep], enable_progress_bar=False, **QUIET)
    net = Autoencoder()
    trainer.fit(net, *loaders())
    kept = sorted(each for each in os.listdir(".") if each.endswith(".ckpt"))
    best = Autoencoder.load_from_checkpoint(keep.best_model_path, weights_only=False)
    found = {name: value.item() for name, value in trainer.callback_metrics.items()}
    return found, kept, best(torch.ones(1, 8)), trainer.optimizers[0].param_groups[0]["lr"]


@step("progress bars")
def _():
    for bar in (TQDMProgressBar(refresh_rate=100), RichProgressBar(refresh_rate=100)):
        trainer = pl.Trainer(max_epochs=1, callbacks=[bar], enable_checkpointing=False, **QUIET)
        net = Autoencoder()
        trainer.fit(net, *loaders())
    return trainer.callback_metrics["error"]


@step("to TorchScript and to ONNX")
def _():
    import onnxruntime

    net = Autoencoder().eval()
    net.to_onnx("net.onnx", input_sample=torch.ones(1, 8), dynamo=False)
    session = onnxruntime.InferenceSession("net.onnx")
    x = torch.randn(1, 8)
    traced = net.to_torchscript(method="trace", example_inputs=x)
    return session.run(None, {session.get_inputs()[0].name: x.numpy()}), traced(x)


@step("several loaders for training and validation")
def _():
    class Two(Autoencoder):
        def training_step(self, batch, index):
            return super().training_step([batch["a"][0] + batch["b"][0]], index)

    from pytorch_lightning.utilities import CombinedLoader

    one, other = loaders()
    both = CombinedLoader({"a": one, "b": other}, "max_size_cycle")
    trainer = pl.Trainer(
        max_epochs=1, enable_progress_bar=False, enable_checkpointing=False, **QUIET
    )
    net = Two()
    trainer.fit(net, both, [other, other])
    return net.encoder[0].weight, sorted(trainer.callback_metrics)


@step("the pruning of weights, a lambda as a callback")
def _():
    from pytorch_lightning.callbacks import LambdaCallback, ModelPruning

    seen = []
    calls = [
        ModelPruning("l1_unstructured", amount=0.5, parameter_names=["weight"]),
        LambdaCallback(on_train_epoch_end=lambda trainer, net: seen.append(trainer.current_epoch)),
    ]
    trainer = pl.Trainer(
        max_epochs=2,
        callbacks=calls,
        enable_progress_bar=False,
        enable_checkpointing=False,
        **QUIET,
    )
    net = Autoencoder()
    trainer.fit(net, *loaders())
    return net.encoder[0].weight, seen


@step("NaN in the loss is found by detect_anomaly", refused=True)
def _():
    class Broken(Autoencoder):
        def training_step(self, batch, index):
            return (self(batch[0]) - 1e9).sqrt().sum()

    trainer = pl.Trainer(
        max_epochs=1,
        detect_anomaly=True,
        enable_progress_bar=False,
        enable_checkpointing=False,
        **QUIET,
    )
    trainer.fit(Broken(), *loaders())


@step("more devices than there are is refused for a GPU", refused=True)
def _():
    pl.Trainer(**{**QUIET, "accelerator": "cuda", "devices": 1})


@step("an unknown strategy is refused", refused=True)
def _():
    pl.Trainer(strategy="nonsense", **QUIET)


sys.stdout.flush()
