"""The first version's transforms beside torchvision's: reprs, errors, draws and pictures."""

from __future__ import annotations

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import transforms as ours
from tests.vision.pictures import ARRAYS, assert_same, both, outcome, seed

import torchvision.transforms as theirs  # isort: skip  (the oracle comes first)

# Python text over T, the transforms, and torch, either library.
RIGHT = """
T.Resize(3)
T.Resize((13, 14), 2, antialias=None)
T.CenterCrop((3,))
T.Pad((3, 4), fill=7, padding_mode="edge")
T.RandomApply([T.RandomInvert(), T.RandomHorizontalFlip()], 0.3)
T.RandomChoice([T.Resize(5), T.CenterCrop(6), T.Pad(1)])
T.RandomChoice([T.Resize(5), T.CenterCrop(6)], [1, 2])
T.RandomOrder([T.Resize(15), T.CenterCrop(12), T.Pad(1)])
T.RandomCrop(3)
T.RandomCrop((3, 4), padding=1, pad_if_needed=True)
T.RandomCrop(30, padding=5, padding_mode="reflect")
T.RandomCrop((40, 20), pad_if_needed=True)
T.RandomCrop((23, 31))
T.RandomHorizontalFlip()
T.RandomVerticalFlip(0.4)
T.RandomPerspective(p=1.0)
T.RandomResizedCrop(13)
T.RandomResizedCrop((3, 4), scale=(0.1, 1), ratio=(1.0, 2.0))
T.RandomResizedCrop((10, 12), scale=(2, 3))
T.FiveCrop(3)
T.TenCrop((3, 4), True)
T.ColorJitter()
T.ColorJitter(0.1, 0.2, (0.5, 1.5), 0.1)
T.ColorJitter(2)
T.ColorJitter(brightness=(1, 1))
T.RandomRotation(10)
T.RandomRotation((10, 20), expand=True, fill=3)
T.RandomRotation(10, interpolation=T.InterpolationMode.BILINEAR, fill=None, center=(1, 2))
T.RandomAffine(10)
T.RandomAffine(10, (0.1, 0.2), (1, 2), (1, 2), fill=3, center=(1, 2))
T.RandomAffine(10, shear=(1, 2, 3, 4))
T.Grayscale(3)
T.RandomGrayscale(0.5)
T.GaussianBlur((3, 5), (1, 2))
T.GaussianBlur(3, 1)
T.RandomInvert()
T.RandomAdjustSharpness(2)
T.RandomAutocontrast()
T.ElasticTransform([20.0, 10.0], 2.0)
T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip()])
T.Compose([T.Resize(9), T.Compose([T.CenterCrop(4)])])
""".strip().splitlines()
ON_BYTES = """
T.RandomPosterize(4)
T.RandomSolarize(100)
T.RandomEqualize(0.2)
T.AutoAugment()
T.AutoAugment(T.AutoAugmentPolicy.CIFAR10)
T.AutoAugment(T.AutoAugmentPolicy.SVHN, fill=[1, 2, 3])
T.RandAugment()
T.RandAugment(3, 20, fill=5)
T.TrivialAugmentWide()
T.AugMix()
T.AugMix(all_ops=False, severity=10)
""".strip().splitlines()
ON_TENSORS = """
T.RandomErasing()
T.RandomErasing(p=1.0, value="random")
T.RandomErasing(p=1.0, value=(1, 2, 3))
T.RandomErasing(p=1.0, scale=(0.9, 1.0))
T.Normalize((0.5,), (0.25,))
T.ConvertImageDtype(torch.float64)
T.Compose([T.Resize(2), T.LinearTransformation(torch.eye(12) * 3, torch.ones(12))])
""".strip().splitlines()
ON_IMAGES = """
T.ToTensor()
T.PILToTensor()
T.Compose([T.Resize(20), T.CenterCrop(16), T.ToTensor(), T.Normalize([0.5], [0.5])])
T.Compose([T.PILToTensor(), T.ToPILImage()])
""".strip().splitlines()
REFUSED = """
T.Resize((1, 2, 3))
T.Resize(3.5)
T.CenterCrop((3, 4, 5))
T.Pad((1, 2, 3))
T.Pad("a")
T.Pad(1, fill="a")
T.Pad(1, padding_mode="a")
T.Lambda(3)
T.RandomChoice([T.ToTensor()], 0.5)
T.RandomOrder(T.ToTensor())
T.RandomResizedCrop((3, 4), scale=3)
T.RandomResizedCrop((3, 4), ratio=3)
T.LinearTransformation(torch.zeros(2, 3), torch.zeros(2))
T.LinearTransformation(torch.eye(2), torch.zeros(3))
T.LinearTransformation(torch.eye(2), torch.zeros(2).double())
T.ColorJitter(-1)
T.ColorJitter(hue=0.6)
T.ColorJitter(hue=(-0.6, 0))
T.ColorJitter(brightness="a")
T.ColorJitter(brightness=(2, 1))
T.ColorJitter(brightness=(1, 2, 3))
T.RandomRotation(-10)
T.RandomRotation(10, center=(1, 2, 3))
T.RandomRotation((1, 2, 3))
T.RandomAffine(10, shear=(1, 2, 3))
T.RandomAffine(10, translate=(2, 1))
T.RandomAffine(10, translate=2)
T.RandomAffine(10, scale=(-1, 1))
T.RandomErasing(value="x")
T.RandomErasing(value={})
T.RandomErasing(scale=3)
T.RandomErasing(scale=(0, 2))
T.RandomErasing(p=2)
T.GaussianBlur(2)
T.GaussianBlur(3, -1)
T.GaussianBlur(3, (2, 1))
T.GaussianBlur(3, "a")
T.GaussianBlur((3, 3, 3))
T.ElasticTransform(3)
T.ElasticTransform(alpha=[1, 2])
T.ElasticTransform(fill="a")
T.AutoAugment("x")
T.AugMix(severity=11)
""".strip().splitlines()


def build(text):
    """The transform that a text describes, in both libraries."""
    pairs = ((ours, tlc), (theirs, torch))
    return [outcome(lambda T=T, lib=lib: eval(text, {"T": T, "torch": lib})) for T, lib in pairs]


def compare(text, names, seeds, **tolerance):
    """Builds a transform twice, and compares its reprs, its pictures and what it draws."""
    here, there = build(text)
    assert repr(here) == repr(there).replace("torchvision", "tensorflow_lite_clone")
    for name in names:
        for number in range(seeds):
            x, y = both(name)
            seed(number)
            made = outcome(here, x), outcome(there, y)
            assert_same(*made, **tolerance)
            assert tlc.rand(1).item() == torch.rand(1).item(), "draws"


@pytest.mark.parametrize("text", RIGHT)
def test_transforms_of_images(text):
    compare(text, ("RGB", "L"), 5)


@pytest.mark.parametrize("text", RIGHT)
def test_transforms_of_tensors(text):
    # A sum half way between two bytes may be rounded the other way.
    compare(text, ("bytes", "floats"), 3, levels=1, floats=1e-4)


@pytest.mark.parametrize("text", ON_BYTES)
def test_transforms_of_bytes(text):
    # AugMix adds in float32 with Dirichlet weights that differ in their last bits.
    compare(text, ("RGB",), 4 if "AugMix" in text else 12, levels=int("AugMix" in text))
    # A shear by 0.2 puts every fifth column half way between two pixels, and the last bit decides.
    compare(text, ("bytes",), 4, levels=1, share=0.1)


@pytest.mark.parametrize("text", ON_TENSORS)
def test_transforms_of_tensors_alone(text):
    compare(text, ("floats",), 5)


@pytest.mark.parametrize("text", ON_IMAGES)
def test_conversions(text):
    compare(text, ("RGB", "L"), 1)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    here, there = build(text)
    assert isinstance(there, Exception), there
    assert type(here) is type(there)
    assert str(here) == str(there).replace("torchvision", "tensorflow_lite_clone")


def test_too_small_for_a_crop():
    for name in ("RGB", "bytes"):
        x, y = both(name)
        made = outcome(ours.RandomCrop(40), x), outcome(theirs.RandomCrop(40), y)
        assert isinstance(made[1], ValueError) and str(made[0]) == str(made[1])


def test_transforms_as_layers():
    layers = tlc.nn.Sequential(ours.CenterCrop(10), ours.Normalize([0.5], [0.5]))
    picture = tlc.from_numpy(ARRAYS["floats"])
    expected = theirs.functional.center_crop(torch.from_numpy(ARRAYS["floats"]), 10)
    assert_same(layers(picture), expected.sub(0.5).div(0.5))


def test_names():
    there = {name for name in dir(theirs) if name[0].isupper()}
    assert there - set(dir(ours)) == set()
