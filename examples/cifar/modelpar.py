"""The study's network, cut in two parts on two GPUs, trained by one process.

    python -m examples.cifar.modelpar --data DIR --device cuda --pipeline 4

Without --pipeline one GPU waits while the other works. With it a batch is cut into smaller ones,
and while the second part looks at one of them, the first part looks at the next.
"""

import tensorflow_lite_clone as torch
from examples.cifar import study
from examples.cifar.train import positive
from examples.world import alone

nn = torch.nn


class Split(nn.Module):
    """The network, whose stem and first stage are on one device, and all else on another.

    The stem's pictures are the largest, so that these are about half of the work. A batch goes
    through in `parts`: since devices work through what is queued for them while the program goes
    on, the first device has the next part to do while the second one looks at this one. The
    backward pass goes through the parts from last to first, in the same way.
    """

    def __init__(
        self, model: study.StudyNet, first: torch.device, second: torch.device, parts: int
    ) -> None:
        super().__init__()
        self.front = nn.Sequential(model.stem, model.layer1).to(first)
        self.back = nn.Sequential(model.layer2, model.layer3, model.head).to(second)
        self.second, self.parts = second, parts

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        between = None
        answers = []
        for part in images.chunk(self.parts):
            if between is not None:
                answers.append(self.back(between))
            between = self.front(part).to(self.second, non_blocking=True)
        answers.append(self.back(between))
        return torch.cat(answers)


def places(device: str) -> tuple[torch.device, torch.device]:
    """Where the two parts are: two GPUs, or twice the CPU."""
    if device == "cpu":
        return torch.device("cpu"), torch.device("cpu")
    if torch.cuda.device_count() < 2:
        raise SystemExit(f"two parts need two GPUs, there is {torch.cuda.device_count()}")
    return torch.device("cuda", 0), torch.device("cuda", 1)


def main() -> None:
    command = study.parser(__doc__)
    command.add_argument(
        "--pipeline", type=positive, default=1, metavar="PARTS", help="so many parts of a batch"
    )
    options = study.chosen(command)
    first, second = places(options.device)
    model = Split(study.network(options), first, second, options.pipeline)
    name = f"modelpar, {options.pipeline} parts" if options.pipeline > 1 else "modelpar"
    study.run(name, model, alone(first), options, labels_to=second)


if __name__ == "__main__":
    main()
