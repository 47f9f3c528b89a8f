"""lightning: a Trainer with checkpoints, early stopping and a schedule, and from a checkpoint."""

import logging
import os
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.INFO)

import lightning as L  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


class Net(L.LightningModule):
    def __init__(self, rate=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3)
        )

    def training_step(self, batch, index):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("held_out", F.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


L.seed_everything(7)
x = torch.randn(64, 8)
data = TensorDataset(x, x[:, :3].argmax(1))
quiet = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False}
quiet["enable_model_summary"] = False
with tempfile.TemporaryDirectory() as folder:
    keep = ModelCheckpoint(folder, monitor="held_out", filename="{epoch}", save_last=True)
    calls = [keep, EarlyStopping("held_out", patience=3)]
    trainer = L.Trainer(max_epochs=4, callbacks=calls, gradient_clip_val=1.0, **quiet)
    trainer.fit(Net(), DataLoader(data, 16, shuffle=True), DataLoader(data, 16))
    print({name: value.item() for name, value in trainer.callback_metrics.items()})
    print(trainer.global_step, sorted(os.listdir(folder)), keep.best_model_score.item())
    last = os.path.join(folder, "last.ckpt")
    trainer = L.Trainer(max_epochs=6, enable_checkpointing=False, **quiet)
    again = DataLoader(data, 16, shuffle=True)
    trainer.fit(Net(), again, DataLoader(data, 16), ckpt_path=last, weights_only=False)
    print({name: value.item() for name, value in trainer.callback_metrics.items()})
