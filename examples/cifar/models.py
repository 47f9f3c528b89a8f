"""Networks for pictures of 32 x 32 pixels."""

from collections.abc import Callable

import tensorflow_lite_clone as torch

nn = torch.nn
Norm = Callable[[int], nn.Module]


class Shortcut(nn.Module):
    """Every `stride`-th pixel, with channels of zeros added on both sides.

    Option A of He et al. 2015, which their networks for CIFAR-10 have: (N, C, H, W) to
    (N, `channels`, H / stride, W / stride) without parameters.
    """

    def __init__(self, stride: int, added: int) -> None:
        super().__init__()
        self.stride, self.added = stride, added

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = self.added // 2
        x = x[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(x, (0, 0, 0, 0, half, self.added - half))

    def extra_repr(self) -> str:
        return f"stride={self.stride}, added={self.added}"


class Projection(nn.Sequential):
    """Every `stride`-th pixel through a linear layer: option B of He et al. 2015."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: Norm) -> None:
        super().__init__(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))


class Block(nn.Module):
    """Two 3 x 3 convolutions, and what came in added to what they make of it.

    `norm` makes the layer after a convolution from its channels. Where size or channels change, the
    shortcut has no parameters, or with `project` is a convolution.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        norm: Norm = nn.BatchNorm2d,
        project: bool = False,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = norm(outputs)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = norm(outputs)
        self.shortcut: nn.Module
        if stride == 1 and inputs == outputs:
            self.shortcut = nn.Identity()
        elif project:
            self.shortcut = Projection(inputs, outputs, stride, norm)
        else:
            self.shortcut = Shortcut(stride, outputs - inputs)
        self.relu2 = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu2(y + self.shortcut(x))


class ResNet(nn.Module):
    """The residual networks of He et al. 2015, section 4.2: (N, 3, 32, 32) -> (N, `classes`).

    Three stages of `blocks` blocks with 16, 32 and 64 channels, of which the second and third
    begin by halving the picture: ``6 * blocks + 2`` layers with weights.
    """

    def __init__(self, blocks: int, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu1 = nn.ReLU()
        self.layer1 = stage(blocks, 16, 16, stride=1)
        self.layer2 = stage(blocks, 16, 32, stride=2)
        self.layer3 = stage(blocks, 32, 64, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.flatten(self.pool(x)))


def stage(blocks: int, inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """Blocks in a row, the first of which changes size and channels."""
    first = Block(inputs, outputs, stride)
    return nn.Sequential(first, *(Block(outputs, outputs, 1) for _ in range(blocks - 1)))


class StudyNet(nn.Module):
    """A wide residual network that learns much in few epochs: (N, 3, 32, 32) -> (N, `classes`).

    A convolution to `width` channels and a pooling to 16 x 16 pixels; three stages of two blocks
    with 2, 4 and 8 times as many channels, of which the second and third begin by halving the
    picture, to 8 and 4 pixels (the first does not: of 2 x 2 pixels in the end less can be learnt);
    the mean of the 16 pixels; a linear layer. 14 layers with weights, as He et al. 2015 count, and
    11 million parameters.
    """

    def __init__(self, norm: Norm = nn.BatchNorm2d, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), norm(width), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.layer1 = wide_stage(width, 2 * width, 1, norm)
        self.layer2 = wide_stage(2 * width, 4 * width, 2, norm)
        self.layer3 = wide_stage(4 * width, 8 * width, 2, norm)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, classes)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer3(self.layer2(self.layer1(self.stem(images)))))


def wide_stage(
    inputs: int, outputs: int, stride: int, norm: Norm = nn.BatchNorm2d
) -> nn.Sequential:
    """Two blocks, the first of which changes size and channels and projects its shortcut."""
    return nn.Sequential(
        Block(inputs, outputs, stride, norm, project=True), Block(outputs, outputs, 1, norm)
    )


def resnet20() -> ResNet:
    """Twenty layers, 0.27 million parameters; 91.25 % of the test pictures in the paper."""
    return ResNet(blocks=3)


def resnet18() -> nn.Sequential:
    """The 18 layers of He et al. 2015, table 1, for small pictures: 11.2 million parameters.

    Its first convolution is 3 x 3, on all pixels, and no pooling follows: the four stages see 32,
    16, 8 and 4 pixels.
    """
    stem = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
    wider = [wide_stage(width, 2 * width, 2) for width in (64, 128, 256)]
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    return nn.Sequential(*stem, stage(2, 64, 64, 1), *wider, *head)


MODELS: dict[str, Callable[[], nn.Module]] = {"resnet20": resnet20, "resnet18": resnet18}
