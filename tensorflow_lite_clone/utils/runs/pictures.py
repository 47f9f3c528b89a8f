"""Pictures: from arrays in any order of dimensions to PNG and GIF. Most need Pillow."""

from __future__ import annotations

import io
import math
import struct
import zlib
from typing import Any

import numpy as np


def pillow() -> Any:
    """Pillow's module `Image`; ImportError that says what to install."""
    try:
        from PIL import Image, ImageDraw  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need Pillow: pip install pillow") from error
    return Image


def grid(images: np.ndarray, columns: int) -> np.ndarray:
    """Images (N, C, H, W) side by side, `columns` in a row, as one (3, rows * H, columns * W)."""
    n, channels, height, width = images.shape
    if channels == 1:
        images = np.repeat(images, 3, axis=1)
    rows = math.ceil(n / columns)
    whole = np.zeros((3, rows * height, columns * width), images.dtype)
    for i, image in enumerate(images):
        y, x = i // columns * height, i % columns * width
        whole[:, y : y + height, x : x + width] = image
    return whole


def to_hwc(x: np.ndarray, dataformats: str) -> np.ndarray:
    """A picture (H, W, C) of an array whose dimensions `dataformats` names: any order of the
    letters of NCHW, CHW or HW. Several images become a grid of 8 columns."""
    dataformats = dataformats.upper()
    if len(set(dataformats)) != len(dataformats):
        raise AssertionError(f"You can not use the same dimension shordhand twice: {dataformats}")
    if x.ndim != len(dataformats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {x.shape}, "
            f"input_format: {dataformats}"
        )
    expected = {4: "NCHW", 3: "HWC", 2: "HW"}[x.ndim]
    x = x.transpose([dataformats.index(letter) for letter in expected])
    if x.ndim == 4:
        return grid(x, min(len(x), 8)).transpose(1, 2, 0)
    if x.ndim == 2:
        return np.stack([x] * 3, axis=2)
    return np.repeat(x, 3, axis=2) if x.shape[2] == 1 else x


def to_bytes(x: np.ndarray) -> np.ndarray:
    """Values from 0 to 255 of bytes, or of numbers from 0 to 1."""
    scale = 1 if x.dtype == np.uint8 else 255
    return (x.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def draw_boxes(disp_image: Any, boxes: Any, labels: Any = None) -> Any:
    """Draw boxes (left, top, right, bottom) in red on a Pillow image; returns it."""
    pillow()
    from PIL import ImageDraw

    pen = ImageDraw.Draw(disp_image)
    for i, (left, top, right, bottom) in enumerate(boxes):
        edge = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        pen.line(edge, width=2, fill="Red")
        if labels is not None:
            _, _, width, height = pen.textbbox((0, 0), labels[i])
            margin = math.ceil(0.05 * height)
            corner = left, bottom - height - 2 * margin
            pen.rectangle([corner, (left + width, bottom)], fill="Red")
            pen.text((left + margin, bottom - height - margin), labels[i], fill="black")
    return disp_image


def encode_png(x: np.ndarray, rescale: float = 1, boxes: Any = None, labels: Any = None) -> bytes:
    """The PNG of bytes (H, W, C), with boxes drawn in, resized."""
    image = pillow().fromarray(x)
    if boxes is not None:
        image = draw_boxes(image, boxes, labels)
    if rescale != 1:
        size = int(image.width * rescale), int(image.height * rescale)
        image = image.resize(size, pillow().Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


# Channels -> PNG's number of the colour type: gray, gray and alpha, RGB, RGB and alpha.
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def plain_png(x: np.ndarray) -> bytes:
    """The PNG of bytes (H, W, C) with 1 to 4 channels, without Pillow; ValueError for other shapes.

    Each line is stored as it is (filter 0), and all of them deflated (PNG specification, W3C 2003).
    """
    height, width, channels = x.shape
    if channels not in _COLOR_TYPES or not height or not width:
        raise ValueError(f"a picture has 1 to 4 channels and some pixels, not the shape {x.shape}")

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = x.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def encode_gif(frames: np.ndarray, fps: float) -> bytes:
    """An endless animation of frames of bytes (T, H, W, C)."""
    Image = pillow()
    images = [
        Image.fromarray(frame.squeeze(-1) if frame.shape[-1] == 1 else frame) for frame in frames
    ]
    buffer = io.BytesIO()
    images[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=1000 / fps,
        loop=0,
    )
    return buffer.getvalue()


def sheet(images: np.ndarray, count: int) -> np.ndarray:
    """Images (N, C, H, W) as one of bytes (H, W, C), in as many rows as columns; N is `count`."""
    if len(images) != count:
        raise AssertionError("#images should equal with #data points")
    side = math.ceil(math.sqrt(count))
    full = np.zeros((side * side, *images.shape[1:]), images.dtype)
    full[:count] = images
    return to_bytes(grid(full, side)).transpose(1, 2, 0)


def side_by_side(videos: np.ndarray) -> np.ndarray:
    """Videos (N, T, C, H, W) as one (T, rows * H, columns * W, C), in a grid of a power of 2."""
    n, length, channels, height, width = videos.shape
    full = 1 << (n - 1).bit_length()
    if full > n:
        empty = np.zeros((full - n, *videos.shape[1:]), videos.dtype)
        videos = np.concatenate([videos, empty])
    rows = 1 << ((full.bit_length() - 1) // 2)
    videos = videos.reshape(rows, full // rows, length, channels, height, width)
    whole = videos.transpose(2, 0, 4, 1, 5, 3)
    return whole.reshape(length, rows * height, full // rows * width, channels)


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """The pixels (C, H, W) of a figure of Matplotlib's, (N, C, H, W) of a list of them."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1).copy()
    if close:
        pyplot.close(figures)
    return pixels
