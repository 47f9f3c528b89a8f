"""`transforms.functional` beside torchvision's, on PIL images and tensors."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision.transforms import functional as ours
from tests.device import DEVICE
from tests.vision.pictures import ARRAYS, HEIGHT, PILS, PIXELS, WIDTH, assert_same, both, outcome

import torchvision.transforms.functional as theirs  # isort: skip  (the oracle comes first)

INPUTS = (*PILS, *ARRAYS)
# Bytes between pixels are weighted sums, rounded: where the sum lies half way between two
# integers, its last bit decides. A GPU adds in another order in all functions.
WEIGHTED = re.compile("BILINEAR|perspective|resize|blur|sharpness" if DEVICE == "cpu" else "")
RING = [[0, 0], [WIDTH - 1, 0], [WIDTH - 1, HEIGHT - 1], [0, HEIGHT - 1]]
MOVED = [[3, 2], [28, 1], [27, 20], [1, 19]]
ADJUSTED = ("brightness", "contrast", "saturation", "sharpness")
MODES = ("NEAREST", "BILINEAR", "BICUBIC")
# Python text over F, the library's functional, and x, the picture.
CALLS = [
    *(
        f"F.resize(x, {size}, F.InterpolationMode.{mode})"
        for size, mode in product((10, (12, 9), [7]), MODES)
    ),
    "F.resize(x, (40, 50), F.InterpolationMode.NEAREST_EXACT)",
    "F.resize(x, 40, antialias=False)",
    "F.resize(x, 20, max_size=22)",
    "F.resize(x, 20, max_size=20)",
    "F.resize(x, (20, 20), max_size=30)",
    "F.resize(x, (1, 2, 3))",
    "F.resize(x, (23, 31))",
    "F.resize(x, 5, 2)",
    "F.resize(x, 5, 'bilinear')",
    *(
        f"F.pad(x, {padding}, 0, '{mode}')"
        for padding, mode in product(
            (2, (1, 2), (1, 2, 3, 4)), ("constant", "edge", "reflect", "symmetric")
        )
    ),
    "F.pad(x, -3)",
    "F.pad(x, [3], 7)",
    "F.pad(x, (1, 2, 3))",
    "F.pad(x, 1, padding_mode='other')",
    "F.pad(x, 'a')",
    "F.crop(x, 2, 3, 5, 7)",
    "F.crop(x, -3, -4, 10, 10)",
    "F.crop(x, 20, 25, 10, 10)",
    *(f"F.center_crop(x, {size})" for size in (10, (11, 8), (40, 20), (20, 50), [41, 52], [9])),
    "F.hflip(x)",
    "F.vflip(x)",
    "F.five_crop(x, 10)",
    "F.five_crop(x, 99)",
    "F.ten_crop(x, (10, 7))",
    "F.ten_crop(x, (10, 7), True)",
    "F.resized_crop(x, 1, 2, 10, 12, (8, 9))",
    *(
        f"F.rotate(x, {angle}, F.InterpolationMode.{mode}, {rest})"
        for angle, mode, rest in product((30, -77.5, 90), MODES, ("False", "True", "center=(3, 4)"))
    ),
    "F.rotate(x, 30, fill=5)",
    "F.rotate(x, 30, F.InterpolationMode.BILINEAR, fill=[9])",
    "F.rotate(x, 'a')",
    *(
        f"F.affine(x, {amounts}, interpolation=F.InterpolationMode.{mode})"
        for amounts, mode in product(
            ("30, (2, 3), 1.2, (5, 7)", "-45.5, (-3, 2), 0.7, 10.0", "0, [1, 1], 1.0, [3]"),
            MODES,
        )
    ),
    "F.affine(x, 30, (2, 3), 1.2, (5, 7), fill=3, center=[3, 4])",
    "F.affine(x, 30, (2,), 1.2, (5, 7))",
    "F.affine(x, 30, (2, 3), 0, (5, 7))",
    f"F.perspective(x, {RING}, {MOVED})",
    f"F.perspective(x, {RING}, {MOVED}, F.InterpolationMode.NEAREST, 4)",
    "F.perspective(x, [[0, 0]], [[1, 1]])",
    *(f"F.adjust_{name}(x, {factor})" for name, factor in product(ADJUSTED, (0, 0.4, 2))),
    *(f"F.adjust_hue(x, {turn})" for turn in (-0.5, -0.2, 0, 0.13, 0.6)),
    "F.adjust_gamma(x, 2.2)",
    "F.adjust_gamma(x, 0.5, 1.5)",
    "F.adjust_gamma(x, -1)",
    "F.invert(x)",
    "F.autocontrast(x)",
    "F.equalize(x)",
    "F.posterize(x, 3)",
    "F.posterize(x, 9)",
    "F.solarize(x, 0.5)",
    "F.solarize(x, 300)",
    *(f"F.rgb_to_grayscale(x, {channels})" for channels in (1, 2, 3)),
    "F.to_grayscale(x, 3)",
    "F.gaussian_blur(x, 3)",
    "F.gaussian_blur(x, (3, 5), (0.5, 2))",
    "F.gaussian_blur(x, 2)",
    "F.gaussian_blur(x, 3, -1)",
    "F.erase(x, 1, 2, 3, 4, 7)",
    "F.to_tensor(x)",
    "F.pil_to_tensor(x)",
    "F.to_pil_image(x)",
    "F.to_pil_image(F.pil_to_tensor(x), x.mode)",
    "[F.get_dimensions(x), F.get_image_size(x), F.get_image_num_channels(x)]",
]


@pytest.mark.parametrize("call", CALLS)
def test_functions(call):
    for name in INPUTS:
        here, there = both(name)
        made = [outcome(eval, call, {"F": f, "x": x}) for f, x in ((ours, here), (theirs, there))]
        levels = 1 if name in ARRAYS and WEIGHTED.search(call) else 0
        assert_same(*made, levels=levels, floats=2e-5)


@pytest.mark.parametrize("fill", [None, 3, [1.0, 2.0, 3.0]])
def test_elastic_transform(fill):
    field = (np.random.default_rng(0).random((1, HEIGHT, WIDTH, 2), np.float32) - 0.5) * 0.3
    for name in ("RGB", "bytes", "floats"):
        here, there = both(name)
        assert_same(
            ours.elastic_transform(here, tlc.from_numpy(field.copy()).to(DEVICE), fill=fill),
            theirs.elastic_transform(there, torch.from_numpy(field.copy()), fill=fill),
            levels=int(name in ARRAYS),
        )


KINDS = "uint8 int16 int32 int64 float32 float64 bool".split()


@pytest.mark.parametrize("old", KINDS)
def test_convert_image_dtype(old):
    for new in KINDS:
        made = []
        for library, f in ((tlc, ours), (torch, theirs)):
            values = library.tensor([[[0, 1, 0.5 if "float" in old else 100]]])
            picture = values.to(getattr(library, old))
            made.append(outcome(f.convert_image_dtype, picture, getattr(library, new)))
        assert_same(*made, floats=1e-7)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", "uint8 int16 int32 float32 float64 bool uint16".split())
def test_to_pil_image(kind, channels):
    rng = np.random.default_rng(channels)
    values = (
        rng.uniform(-1, 1, (4, 5, channels))
        if "float" in kind
        else (rng.integers(0, 99, (4, 5, channels)))
    )
    array = values.astype(kind)
    for source in (array, array[:, :, 0], array[None, None]):
        made = [outcome(f.to_pil_image, source) for f in (ours, theirs)]
        assert_same(*made)
    planes = np.ascontiguousarray(array.transpose(2, 0, 1))
    for mode in (None, "L", "RGB", "HSV", "F", "CMYK", "LA"):
        made = [
            outcome(f.to_pil_image, library.from_numpy(planes), mode)
            for library, f in ((tlc, ours), (torch, theirs))
        ]
        assert_same(*made)


@pytest.mark.parametrize("mode", "1 L LA P I F I;16 RGB RGBA CMYK YCbCr HSV".split())
def test_images_of_every_mode(mode):
    image = PILS["RGB"].convert("L") if mode == "I;16" else PILS["RGB"]
    image = image.convert(mode)
    for name in ("to_tensor", "pil_to_tensor"):
        assert_same(getattr(ours, name)(image), getattr(theirs, name)(image))


def test_gradients_pass_through_tensors():
    x = tlc.from_numpy(ARRAYS["floats"].copy()).requires_grad_()
    y = torch.from_numpy(ARRAYS["floats"].copy()).requires_grad_()
    for f, picture in ((ours, x), (theirs, y)):
        turned = f.rotate(picture, 20.0, f.InterpolationMode.BILINEAR)
        f.adjust_contrast(f.resize(turned, 12), 1.5).square().sum().backward()
    assert_same(x.grad, y.grad, floats=1e-4)


def test_pictures_are_left_as_they_were():
    here, _ = both("bytes")
    for call in ("F.erase(x, 1, 2, 3, 4, 7)", "F.hflip(x)", "F.adjust_sharpness(x, 2)"):
        eval(call, {"F": ours, "x": here})
    assert (here.cpu().numpy() == PIXELS.transpose(2, 0, 1)).all()
    assert ours.erase(here, 0, 0, 1, 1, 7, inplace=True) is here and here[0, 0, 0] == 7
