"""The study's network, cut in two parts on two GPUs, trained by one process.

    python -m examples.cifar.modelpar --data DIR --device cuda --pipeline 4

Without --pipeline one GPU waits while the other works. With it a batch is cut into smaller ones,
and while the second part looks at one of them, the first part looks at the next. The program then
has as many more operations to queue, which takes longer than small batches take on a large GPU:
with --graphs each part's forward and backward pass are queued as a whole.
"""

import tensorflow_lite_clone as torch
from examples.cifar import study
from examples.cifar.train import positive
from examples.world import alone

nn = torch.nn


class Share(nn.Module):
    """A module as one part of a batch sees it, which has graphs of its own."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.module(images)


class Split(nn.Module):
    """The network, whose stem and first stage are on one device, and all else on another.

    The stem's pictures are the largest, so that these are about half of the work. A batch goes
    through in `parts`: since devices work through what is queued for them while the program goes
    on, the first device has the next part to do while the second one looks at this one. The
    backward pass goes through the parts from last to first, in the same way.
    """

    def __init__(
        self,
        model: study.StudyNet,
        first: torch.device,
        second: torch.device,
        parts: int,
        graphs: bool = False,
    ) -> None:
        super().__init__()
        self.front = nn.Sequential(model.stem, model.layer1).to(first)
        self.back = nn.Sequential(model.layer2, model.layer3, model.head).to(second)
        self.fronts = nn.ModuleList(Share(self.front) for _ in range(parts))
        self.backs = nn.ModuleList(Share(self.back) for _ in range(parts))
        self.second, self.graphs = second, graphs

    def capture(self, images: torch.Tensor) -> None:
        """Let forward and backward pass of each part be CUDA graphs, for batches like this one."""
        parts = images.chunk(len(self.fronts))
        between = [self.front(part).detach().to(self.second).requires_grad_() for part in parts]
        for shares, inputs in ((self.fronts, parts), (self.backs, between)):
            torch.cuda.make_graphed_callables(tuple(shares), tuple((each,) for each in inputs))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.graphs and self.training:
            self.graphs = False
            self.capture(images)
        between = None
        answers = []
        for i, part in enumerate(images.chunk(len(self.fronts))):
            if between is not None:
                answers.append(self.backs[i - 1](between))
            between = self.fronts[i](part).to(self.second, non_blocking=True)
        answers.append(self.backs[-1](between))
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
    command.add_argument("--graphs", action="store_true", help="of each part, on GPUs")
    options = study.chosen(command)
    first, second = places(options.device)
    model = Split(study.network(options), first, second, options.pipeline, options.graphs)
    name = f"modelpar, {options.pipeline} parts" if options.pipeline > 1 else "modelpar"
    study.run(name, model, alone(first), options, labels_to=second)


if __name__ == "__main__":
    main()
