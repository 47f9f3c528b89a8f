"""The second version's transforms beside torchvision's, on nests of images, boxes and masks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils.data import default_collate
from tensorflow_lite_clone.vision import tv_tensors
from tensorflow_lite_clone.vision.transforms import v2 as ours
from tests.device import DEVICE
from tests.vision.pictures import ARRAYS, PLANES, assert_same, both, outcome, sample, seed

import torchvision.transforms.v2 as theirs  # isort: skip  (the oracle comes first)
import torchvision.tv_tensors as their_tensors  # isort: skip

# Python text over T, the transforms, V, the tensors with a kind, and torch, either library.
GEOMETRIC = """
T.Resize(13)
T.Resize((11, 17), "bicubic")
T.Resize(None, max_size=13)
T.CenterCrop((15, 40))
T.Pad((1, 2, 3, 4))
T.Pad(2, fill={V.Image: 9, "others": 0})
T.RandomCrop(13)
T.RandomCrop((13, 24), padding=3, pad_if_needed=True)
T.RandomCrop((40, 20), pad_if_needed=True)
T.RandomHorizontalFlip()
T.RandomVerticalFlip(0.4)
T.RandomPerspective(p=1.0)
T.RandomResizedCrop(13)
T.RandomResizedCrop((13, 14), scale=(0.1, 1), ratio=(1.0, 2.0))
T.RandomRotation(30)
T.RandomRotation((10, 20), expand=True, fill=3)
T.RandomRotation(30, interpolation="bilinear", center=(1, 2))
T.RandomAffine(10)
T.RandomAffine(30, (0.1, 0.2), (0.8, 1.2), (1, 5, 3, 7), "nearest", 3, (1, 2))
T.RandomApply([T.RandomHorizontalFlip(), T.RandomVerticalFlip()])
T.RandomChoice([T.Resize(5), T.CenterCrop(6)], [1, 2])
T.RandomOrder([T.Resize(15), T.CenterCrop(12), T.Pad(1)])
T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip()])
T.RandomResize(10, 20)
T.RandomShortestSize([10, 14, 18], 22)
T.RandomShortestSize(12)
T.ScaleJitter((20, 24))
T.RandomZoomOut(fill=7, p=0.7)
T.Identity()
T.ToPureTensor()
T.ConvertBoundingBoxFormat("XYWH")
""".strip().splitlines()
COLOURS = """
T.ColorJitter()
T.ColorJitter(0.1, 0.2, (0.5, 1.5), 0.1)
T.Grayscale(3)
T.RGB()
T.RandomGrayscale(0.5)
T.GaussianBlur((3, 5), (1, 2))
T.RandomInvert()
T.RandomPosterize(4)
T.RandomSolarize(1.0)
T.RandomAdjustSharpness(2)
T.RandomAutocontrast()
T.RandomEqualize(0.2)
T.RandomPhotometricDistort()
T.RandomChannelPermutation()
T.RandomErasing()
T.RandomErasing(p=1.0, value="random")
T.RandomErasing(p=1.0, value=(1, 2, 3))
""".strip().splitlines()
ON_TENSORS = """
T.GaussianNoise()
T.ToDtype(torch.float32, scale=True)
T.ToDtype({V.Image: torch.float64, V.Mask: torch.int64, "others": None})
T.ConvertImageDtype(torch.float64)
T.ToImage()
""".strip().splitlines()
POLICIES = """
T.AutoAugment()
T.RandAugment()
T.TrivialAugmentWide(fill=3)
T.AugMix()
""".strip().splitlines()
REFUSED = """
T.Resize((1, 2, 3))
T.Resize(None)
T.Compose([])
T.Compose(3)
T.RandomHorizontalFlip(3)
T.ColorJitter(-1)
T.RandomErasing(p=2)
T.ToDtype(3)
T.ToDtype({V.Image: torch.float32})(V.Mask(torch.zeros(3, 3)))
T.Normalize([0.5], [0.5])(T.ToPILImage()(torch.zeros(3, 4, 4)))
T.RandomCrop(9)(torch.zeros(3, 4, 4))
T.MixUp()(torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64))
T.MixUp(num_classes=3)(torch.zeros(2, 4, 4), torch.zeros(2, dtype=torch.int64))
T.MixUp(num_classes=3)(torch.zeros(2, 3, 4, 4), torch.zeros(3, dtype=torch.int64))
V.Image(torch.zeros(3))
V.BoundingBoxes([[1, 2, 3, 4]], format="other", canvas_size=(3, 3))
T.functional.horizontal_flip("x")
T.functional.adjust_brightness(V.Mask(torch.zeros(3, 3)), 1.0)
T.functional.to_image("x")
""".strip().splitlines()


def build(text):
    """What a text describes, in both libraries."""
    spaces = (
        {"T": ours, "V": tv_tensors, "torch": tlc},
        {"T": theirs, "V": their_tensors, "torch": torch},
    )
    return [outcome(lambda space=space: eval(text, space)) for space in spaces]


def compare(text, inputs, seeds, **tolerance):
    """Builds a transform twice, and compares its reprs, its results and what it draws."""
    here, there = build(text)
    if "{" not in text:
        assert repr(here) == repr(there)
    for number in range(seeds if "p=1.0" in text or "Random" in text or "Aug" in text else 1):
        x, y = inputs()
        seed(number)
        made = outcome(here, x), outcome(there, y)
        assert_same(*made, **tolerance)
        assert tlc.rand(1).item() == torch.rand(1).item(), "draws"


@pytest.mark.parametrize("kind", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("text", GEOMETRIC)
def test_samples(text, kind):
    # A sum half way between two bytes may be rounded the other way.
    compare(text, lambda: sample(kind), 4, levels=1, floats=1e-4)


@pytest.mark.filterwarnings("ignore:RandomErasing")  # passes boxes and masks
@pytest.mark.parametrize("text", COLOURS + ON_TENSORS)
def test_colours(text):
    if DEVICE != "cpu" and "Noise" in text:
        pytest.skip("PyTorch's random numbers are matched on the CPU alone")
    compare(text, lambda: sample("XYXY"), 4, levels=1, floats=1e-4)
    compare(text, lambda: both("floats"), 4, levels=1, floats=1e-4)


@pytest.mark.parametrize("text", GEOMETRIC + COLOURS)
def test_images(text):
    # v2 has Pillow's matrix from other roundings in affine transforms.
    compare(text, lambda: both("RGB"), 3, levels=int("Affine" in text))


@pytest.mark.parametrize("text", POLICIES)
def test_policies(text):
    # AugMix adds with Dirichlet weights that differ in their last bits.
    compare(text, lambda: both("RGB"), 4, levels=2 * int("AugMix" in text))
    # Nearest pixels half way between two, as in tests/vision/test_transforms.py.
    compare(text, lambda: both("bytes"), 3, levels=2, share=0.1)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    here, there = build(text)
    assert isinstance(there, Exception), there
    assert type(here) is type(there), (here, there)


@pytest.mark.parametrize("options", [{}, {"min_size": 5}, {"min_area": 30}])
@pytest.mark.parametrize("getter", ["default", None])
def test_sanitized_boxes(options, getter):
    corners = [[1, 2, 3, 3], [0, 0, 30, 23], [5, 5, 10, 11], [-1, 2, 9, 9], [9, 9, 40, 20]]
    made = []
    for library, T, V in ((tlc, ours, tv_tensors), (torch, theirs, their_tensors)):
        boxes = V.BoundingBoxes(library.tensor(corners), format="XYXY", canvas_size=(23, 31))
        sample = {"boxes": boxes, "labels": library.arange(5), "other": library.zeros(5)}
        sample["mask"] = V.Mask(library.arange(60).reshape(5, 3, 4))
        transform = T.SanitizeBoundingBoxes(**options, labels_getter=getter)
        made.append([transform(sample), repr(transform)])
    assert_same(*made)


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
@pytest.mark.parametrize("number", range(4))
def test_mixes(name, number):
    rng = np.random.default_rng(number)
    pictures, labels = rng.random((4, 3, 8, 9), np.float32), np.array([1, 0, 4, 2])
    made = []
    for library, T in ((tlc, ours), (torch, theirs)):
        seed(number)
        mix = getattr(T, name)(alpha=0.4, num_classes=5)
        batch = library.from_numpy(pictures.copy()), library.from_numpy(labels.copy())
        assert repr(mix) == f"{name}(alpha=0.4, num_classes=5)"
        made.append([mix(*batch), mix({"x": batch[0], "label": batch[1]})])
    # The weight is a beta number, whose last bits differ.
    assert_same(*made, floats=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "V.Image(torch.zeros(1, 2, 2, dtype=torch.uint8))",
        "V.Image([[1.0, 2.0], [3.0, 4.0]])",
        "V.Mask(torch.arange(4).reshape(2, 2))",
        "T.functional.to_image(numpy.arange(12, dtype='uint8').reshape(2, 2, 3))",
    ],
)
def test_reprs_of_tensors(text):
    space = {"numpy": np}
    here = eval(text, space | {"T": ours, "V": tv_tensors, "torch": tlc})
    there = eval(text, space | {"T": theirs, "V": their_tensors, "torch": torch})
    # torchvision leaves a comma where an image's attributes would be.
    assert repr(here) == repr(there).replace(", )", ")")


def test_tv_tensor_type_survives_clone_detach_to():
    for V, library in ((tv_tensors, tlc), (their_tensors, torch)):
        image = V.Image(library.zeros(3, 4, 5))
        boxes = V.BoundingBoxes([1, 2, 3, 4], format="xywh", canvas_size=(9, 8))
        for tensor in (image, boxes):
            for kept in (tensor.clone(), tensor.detach(), tensor.to(library.float64)):
                assert type(kept) is type(tensor)
            assert type(tensor + 1) is type(tensor[0]) is library.Tensor
            assert type(V.wrap(tensor + 1, like=tensor)) is type(tensor)
        assert boxes.clone().canvas_size == (9, 8) and boxes.format.value == "XYWH"
        assert boxes.shape == (1, 4)


def test_copies_and_pickles():
    boxes = tv_tensors.BoundingBoxes([[1, 2, 3, 4]], format="XYWH", canvas_size=(9, 8))
    for again in (copy.deepcopy(boxes), pickle.loads(pickle.dumps(boxes))):
        assert repr(again) == repr(boxes)
    batch = default_collate([tv_tensors.Image(tlc.ones(3, 2, 2))] * 2)
    assert type(batch) is tlc.Tensor and batch.shape == (2, 3, 2, 2)
    pipeline = ours.Compose([ours.RandomHorizontalFlip(), ours.AutoAugment(), ours.Resize(3)])
    assert repr(pickle.loads(pickle.dumps(pipeline))) == repr(pipeline)


@pytest.mark.parametrize("T", [ours, theirs])
def test_a_transform_of_ones_own(T):
    class Scaled(T.Transform):
        def make_params(self, flat_inputs):
            return {"factor": len(flat_inputs)}

        def transform(self, inpt, params):
            return inpt * params["factor"]

    picture = (tlc if T is ours else torch).ones(1, 1, 1)
    result, text = Scaled()(picture, "text")
    assert text == "text" and repr(Scaled()) == "Scaled()"
    assert result.item() == 1  # of the leaves, only those that are transformed


def test_plain_tensors_beside_a_picture_are_left():
    picture, other = tlc.from_numpy(PLANES.copy()), tlc.zeros(7)
    first, second, third = ours.Resize(4)(picture, other, "text")
    assert first.shape == (3, 4, 5) and second is other and third == "text"
    image, plain = ours.Resize(4)(tv_tensors.Image(picture), picture)
    assert image.shape == (3, 4, 5) and plain is picture


def test_erasing_warns_of_what_it_passes():
    for T, V, library in ((ours, tv_tensors, tlc), (theirs, their_tensors, torch)):
        with pytest.warns(UserWarning, match="passing through inputs of type tv_tensors.Mask"):
            T.RandomErasing(p=1.0)(V.Image(library.zeros(3, 9, 9)), V.Mask(library.zeros(9, 9)))


def test_names():
    """What torchvision has and this version has not: made for detection, video and files."""
    there = {name for name in dir(theirs) if name[0].isupper()}
    assert there - set(dir(ours)) == set(
        "ClampKeyPoints JPEG RandomIoUCrop SanitizeKeyPoints SetClampingMode "
        "UniformTemporalSubsample".split()
    )
    functions = {name for name in ours.functional.__all__ if name[0].islower()}
    assert functions - set(dir(theirs.functional)) == set()


def test_to_tensor_is_deprecated():
    with pytest.warns(UserWarning, match="deprecated"):
        transform = ours.ToTensor()
    image, _ = both("RGB")
    assert_same(transform(image), torch.from_numpy(ARRAYS["floats"]))
