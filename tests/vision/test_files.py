"""`vision.utils` beside torchvision's, and `vision.io` beside Pillow."""

from __future__ import annotations

import builtins
import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import _pillow, datasets, transforms
from tensorflow_lite_clone.vision import io as vision_io
from tensorflow_lite_clone.vision import utils as ours
from tests.vision.pictures import ARRAYS, PILS, PIXELS, PLANES, assert_same, outcome

import torchvision.io as their_io  # isort: skip  (the oracle comes first)
import torchvision.utils as theirs  # isort: skip

DIGITS = Path(__file__).parents[2] / "examples" / "mnist" / "data"
BATCH = np.random.default_rng(0).normal(0, 1, (5, 3, 4, 6)).astype(np.float32)


def made(call, array):
    """What a call gives for an array in both libraries."""
    return [
        outcome(call, module, library.from_numpy(array.copy()))
        for module, library in ((ours, tlc), (theirs, torch))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "U.make_grid(x)",
        "U.make_grid(x, nrow=2, padding=3, pad_value=0.5)",
        "U.make_grid(x, normalize=True)",
        "U.make_grid(x, normalize=True, scale_each=True)",
        "U.make_grid(x, normalize=True, value_range=(-1, 1), nrow=3)",
        "U.make_grid(x, normalize=True, value_range=[-1, 1])",
        "U.make_grid([*x])",
        "U.make_grid(x[:1], padding=0)",
        "U.make_grid(x[:, :1])",
        "U.make_grid(x[0])",
        "U.make_grid(x[0, 0])",
        "U.make_grid(3)",
        "U.make_grid([1, 2])",
        "U.make_grid((x * 50).byte(), nrow=4)",
    ],
)
def test_make_grid(text):
    assert_same(*made(lambda U, x: eval(text, {"U": U, "x": x}), BATCH), floats=1e-6)


@pytest.mark.parametrize("options", [{}, {"nrow": 2, "normalize": True}])
def test_save_image(tmp_path, options):
    for number, array in enumerate((BATCH, ARRAYS["floats"])):
        made(
            lambda U, x, a=array: U.save_image(x, tmp_path / f"{U.__name__}.png", **options), array
        )
        here, there = (
            (tmp_path / f"{module.__name__}.png").read_bytes() for module in (ours, theirs)
        )
        assert here == there and len(here) > 100, number
    stream = io.BytesIO()
    ours.save_image(tlc.from_numpy(BATCH), stream, format="jpeg")
    assert stream.getvalue()[:2] == b"\xff\xd8"


BOXES = [[1, 2, 10, 12], [5, 5, 25, 20]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"colors": "red"},
        {"colors": ["red", (1, 2, 3)], "width": 3},
        {"fill": True, "colors": "#00ff00"},
        {"labels": ["a", None]},
        {"colors": ["red"]},
        {"labels": ["a"]},
    ],
)
@pytest.mark.parametrize("name", ["bytes", "grey", "floats"])
def test_draw_bounding_boxes(name, options):
    def call(U, x):
        library = tlc if U is ours else torch
        return U.draw_bounding_boxes(x, library.tensor(BOXES), **options)

    assert_same(*made(call, ARRAYS[name]), floats=1e-6)


@pytest.mark.parametrize("options", [{}, {"alpha": 0.3, "colors": ["red", "blue"]}])
@pytest.mark.parametrize("name", ["bytes", "floats", "grey"])
def test_draw_segmentation_masks(name, options):
    def call(U, x):
        masks = np.stack([PLANES[0] > 100, PLANES[1] > 150])
        library = tlc if U is ours else torch
        return U.draw_segmentation_masks(x, library.from_numpy(masks), **options)

    # The mixture of two bytes is rounded down, from sums in another order.
    assert_same(*made(call, ARRAYS[name]), levels=1, floats=1e-6)


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "gif"])
@pytest.mark.parametrize("mode", ["UNCHANGED", "GRAY", "RGB", "RGB_ALPHA", "gray_alpha"])
def test_read_image(tmp_path, ending, mode):
    path = tmp_path / f"file.{ending}"
    PILS["RGB"].save(path)
    with _pillow.pillow().Image.open(path) as image:
        wanted = {"GRAY": "L", "gray_alpha": "LA", "RGB_ALPHA": "RGBA"}.get(mode, "RGB")
        expected = np.atleast_3d(np.asarray(image.convert(wanted))).transpose(2, 0, 1)
    kind = vision_io.ImageReadMode[mode] if mode.isupper() else mode
    picture = vision_io.read_image(path, kind)
    assert picture.dtype == tlc.uint8 and (picture.numpy() == expected).all()
    again = vision_io.decode_image(vision_io.read_file(path), kind)
    assert (again.numpy() == expected).all()


def test_read_modes_are_torchvisions():
    here = {mode.name: mode.value for mode in vision_io.ImageReadMode}
    assert here == {mode.name: mode.value for mode in their_io.ImageReadMode}


def test_write_and_read(tmp_path):
    picture = tlc.from_numpy(PLANES.copy())
    vision_io.write_png(picture, tmp_path / "file.png")
    assert (vision_io.read_image(tmp_path / "file.png") == picture).all()
    vision_io.write_jpeg(picture, tmp_path / "file.jpg", quality=95)
    read = vision_io.read_image(str(tmp_path / "file.jpg")).float()
    assert (read - picture.float()).abs().mean() < 8
    assert (vision_io.decode_png(vision_io.encode_png(picture[:1])) == picture[:1]).all()


def test_photographs_are_turned(tmp_path):
    image = PILS["RGB"].copy()
    exif = image.getexif()
    exif[0x0112] = 6  # turned to the right
    image.save(tmp_path / "file.png", exif=exif)
    turned = vision_io.read_image(tmp_path / "file.png", apply_exif_orientation=True)
    assert (turned.numpy() == np.rot90(PIXELS, -1).transpose(2, 0, 1)).all()


def test_no_pictures(tmp_path):
    (tmp_path / "file.png").write_bytes(b"nothing of the kind")
    with pytest.raises(RuntimeError, match="no picture"):
        vision_io.read_image(tmp_path / "file.png")
    with pytest.raises(RuntimeError, match="uint8"):
        vision_io.write_png(tlc.zeros(3, 4, 4), tmp_path / "other.png")
    with pytest.raises(ValueError, match="between 1 and 100"):
        vision_io.encode_jpeg(tlc.from_numpy(PLANES.copy()), 101)


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
DECODERS = [vision_io.decode_image, vision_io.decode_jpeg, vision_io.decode_png]


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program `gs` on the path; the file that is there once it was started."""
    started, program = tmp_path / "started", tmp_path / "gs"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # where Pillow remembers what it has
    return started


def test_the_program_that_must_not_start_would_start(ghostscript):
    with pytest.raises(OSError):
        _pillow.pillow().Image.open(io.BytesIO(EPS)).load()
    assert ghostscript.exists()


@pytest.mark.parametrize("decode", DECODERS)
def test_no_file_starts_a_program(ghostscript, decode):
    with pytest.raises(RuntimeError, match="no picture"):
        decode(tlc.tensor(list(EPS), dtype=tlc.uint8))
    assert not ghostscript.exists()


@pytest.mark.parametrize("read", [vision_io.read_image, vision_io.decode_image])
def test_no_file_of_another_name_starts_a_program(tmp_path, ghostscript, read):
    path = tmp_path / "file.png"
    path.write_bytes(EPS)
    with pytest.raises(RuntimeError, match="no picture"):
        read(path)
    with pytest.raises(_pillow.pillow().UnidentifiedImageError):
        datasets.folder.pil_loader(path)
    assert not ghostscript.exists()


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "ICO", "EPS"])
def test_formats_are_torchvisions(decode, kind):
    stream = io.BytesIO()
    PILS["RGB"].save(stream, kind)
    content = tlc.frombuffer(bytearray(stream.getvalue()), dtype=tlc.uint8)
    read = {
        vision_io.decode_image: ("PNG", "JPEG", "GIF", "WEBP"),
        vision_io.decode_jpeg: ("JPEG",),
        vision_io.decode_png: ("PNG",),
    }[decode]
    if kind in read:
        assert decode(content).shape == (3, *PIXELS.shape[:2])
    else:
        with pytest.raises(RuntimeError, match="no picture"):
            decode(content)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_damaged_pictures(kind):
    """Cut anywhere, or with a byte changed: a picture or RuntimeError, and nothing else."""
    stream = io.BytesIO()
    PILS["RGB"].save(stream, kind)
    whole = np.frombuffer(stream.getvalue(), np.uint8)
    draw, refused = np.random.default_rng(0), 0
    for place in draw.integers(0, len(whole), 60):
        changed = whole.copy()
        changed[place] = draw.integers(256)
        for content in (whole[:place].copy(), changed):
            try:
                vision_io.decode_image(tlc.from_numpy(content))
            except RuntimeError:
                refused += 1
    assert refused >= 50


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF"])
def test_a_claim_of_many_pixels_is_refused(kind):
    stream = io.BytesIO()
    PILS["RGB"].save(stream, kind)
    content = bytearray(stream.getvalue())
    height, width = PIXELS.shape[:2]
    order, size = ("<", "H") if kind == "GIF" else (">", "I" if kind == "PNG" else "H")
    sides = (height, width) if kind == "JPEG" else (width, height)
    claim, many = (struct.pack(f"{order}2{size}", *pair) for pair in (sides, (65_500, 65_500)))
    assert claim in content
    content = content.replace(claim, many)
    if kind == "PNG":  # whose header has a sum
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    with pytest.raises(RuntimeError, match="no picture.*decompression bomb"):
        vision_io.decode_image(tlc.frombuffer(content, dtype=tlc.uint8))


@pytest.mark.parametrize("decode", DECODERS)
def test_bytes_of_another_kind(decode):
    for wrong in (
        tlc.zeros(3),
        tlc.zeros(3, 3, dtype=tlc.uint8),
        tlc.zeros(0, dtype=tlc.uint8),
    ):
        with pytest.raises(RuntimeError, match="uint8 tensor, got"):
            decode(wrong)


@pytest.fixture
def no_pillow(monkeypatch):
    """As if Pillow were not installed."""
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("PIL"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for function in (_pillow.pillow, _pillow.has_pillow):
        function.cache_clear()
    yield
    _pillow.has_pillow.cache_clear()


def test_without_pillow(no_pillow):
    with pytest.raises(ImportError, match="pip install pillow"):
        transforms.ToPILImage()(tlc.zeros(3, 4, 4))
    with pytest.raises(ImportError, match="pip install pillow"):
        datasets.FakeData()[0]
    assert transforms.ToTensor()(PIXELS).shape == (3, 23, 31)
    image, label = datasets.MNIST(DIGITS, train=False)[0]
    assert isinstance(image, np.ndarray) and image.shape == (28, 28) and label == 7


def test_digits_are_the_same_with_and_without_pillow():
    digits = datasets.MNIST(DIGITS, train=False)
    image, _ = digits[3]
    assert isinstance(image, _pillow.pillow().Image.Image) and image.mode == "L"
    plain = transforms.functional.to_tensor(digits.data[3].numpy())
    assert (transforms.functional.to_tensor(image) == plain).all()


def test_vision_import_loads_no_optional_libraries():
    """Neither Pillow nor what reads files from the network comes with the import."""
    script = (
        "import sys; import tensorflow_lite_clone.vision as v; assert 'PIL' not in sys.modules; "
        "assert not any('vision.' in name for name in sys.modules if 'lite_clone' in name); "
        "v.transforms, v.datasets, v.utils, v.io, v.transforms.v2; "
        "assert 'PIL' not in sys.modules and 'http.client' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_frame_of_a_gif(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="pictures are read by Pillow")
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [image.new("RGB", (5, 4), color) for color in colors]
    path = tmp_path / "three.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=10)
    content = vision_io.read_file(path)
    for found in (
        vision_io.decode_gif(content),
        vision_io.decode_image(content),
        vision_io.read_image(path),
    ):
        assert found.shape == (3, 3, 4, 5) and found.dtype is tlc.uint8
        assert [tuple(frame[:, 2, 3].tolist()) for frame in found] == colors
    assert vision_io.decode_image(content, "GRAY").shape == (3, 1, 4, 5)
    frames[1].save(path)
    single = vision_io.decode_gif(vision_io.read_file(path))
    assert single.shape == (3, 4, 5) and single[:, 0, 0].tolist() == [0, 255, 0]
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 29)  # a frame has 20, all of them 60
    with pytest.raises(RuntimeError, match="3 frames"):
        vision_io.decode_gif(content)
