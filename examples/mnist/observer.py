"""What the MNIST examples log with ``--logdir``, for the live view."""

import time

import tensorflow_lite_clone as torch

SELDOM = 20  # steps between two looks at gradients and speed


def writer_for(folder):
    """A SummaryWriter: that of `torch.utils.runs`, or under PyTorch TensorBoard's."""
    if hasattr(torch.utils, "runs"):
        return torch.utils.runs.SummaryWriter(folder, flush_secs=2)
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(folder, flush_secs=2)


class Observer:
    """Logs a run: losses, learning rate, gradients, speed; after each epoch accuracy, weights and
    predictions."""

    def __init__(self, options, model, optimizer, name: str) -> None:
        self.model, self.optimizer = model, optimizer
        self.writer = writer_for(options.logdir / f"{name}_lr{options.lr}_seed{options.seed}")
        chosen = {key: getattr(options, key) for key in ("lr", "batch_size", "epochs", "seed")}
        self.hyperparameters = {"model": name, **chosen}
        self.score = 0.0
        self.seen, self.since = 0, time.perf_counter()

    def step(self, step: int, loss: float, digits: int) -> None:
        """After an optimizer's step."""
        write = self.writer.add_scalar
        write("loss/train", loss, step)
        write("learning rate", self.optimizer.param_groups[0]["lr"], step)
        self.seen += digits
        if step % SELDOM == 0:
            seconds = time.perf_counter() - self.since
            write("throughput/digits per second", self.seen / seconds, step)
            for name, parameter in self.model.named_parameters():
                write(f"gradient norm/{name}", parameter.grad.norm(), step)
            self.seen, self.since = 0, time.perf_counter()

    def epoch(self, step: int, score: float, figure) -> None:
        """After an epoch; `figure` shows some predictions or is None."""
        self.score = score
        self.writer.add_scalar("accuracy/test", score, step)
        for name, parameter in self.model.named_parameters():
            if parameter.ndim > 1:
                self.writer.add_histogram(f"weights/{name}", parameter, step)
        if figure is not None:
            self.writer.add_figure("predictions", figure, step)
        self.seen, self.since = 0, time.perf_counter()

    def close(self) -> None:
        """At the end."""
        self.writer.add_hparams(self.hyperparameters, {"final accuracy": self.score}, run_name=".")
        self.writer.close()
