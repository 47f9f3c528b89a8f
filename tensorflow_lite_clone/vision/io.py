"""Pictures in files, as uint8 tensors (C, H, W), with torchvision's names; Pillow reads them."""

from __future__ import annotations

import io as _io
import os
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.dtypes import uint8
from tensorflow_lite_clone.ops.create.constructors import from_numpy
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import open_image, pillow
from tensorflow_lite_clone.vision.transforms._convert import pil_to_tensor, to_pil_image

__all__ = [
    "ImageReadMode",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_image",
    "write_file",
    "write_jpeg",
    "write_png",
]

AnyPath = str | os.PathLike


class ImageReadMode(Enum):
    """The channels that are wanted; UNCHANGED are those of the file."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


# What `decode_image` reads, by Pillow's names: torchvision's formats, and no others.
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
# Pillow's modes of those with that number of channels.
PIL_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def read_file(path: AnyPath) -> Tensor:
    """The bytes of a file as a uint8 tensor (N,)."""
    return from_numpy(np.frombuffer(Path(path).read_bytes(), np.uint8).copy())


def write_file(filename: AnyPath, data: Tensor) -> None:
    """Writes a uint8 tensor (N,) as the bytes of a file."""
    if data.dtype != uint8 or data.ndim != 1:
        raise RuntimeError(f"Expected a 1-dimensional uint8 tensor, got {data.dtype} {data.shape}")
    Path(filename).write_bytes(data.cpu().numpy().tobytes())


def decode_image(
    input: Tensor | AnyPath,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """The picture (C, H, W) in a file's bytes (a uint8 tensor), or in a file of that path: JPEG,
    PNG, GIF or WebP. A GIF of several frames gives all of them, (N, C, H, W); see `decode_gif`.

    `mode` is an `ImageReadMode` or its name. `apply_exif_orientation` turns a photograph the way
    the camera was held. Raises RuntimeError for what is no such picture, is damaged, or has more
    than twice `PIL.Image.MAX_IMAGE_PIXELS` pixels (179 million): a few bytes can claim any size.
    """
    content = _content(input) if isinstance(input, Tensor) else Path(input).read_bytes()
    return _decoded(content, FORMATS, mode, apply_exif_orientation)


def _content(input: Tensor) -> bytes:
    """The bytes in a tensor (N,); RuntimeError for another."""
    if input.dtype != uint8 or input.ndim != 1 or not len(input):
        raise RuntimeError(
            "Expected a non empty 1-dimensional uint8 tensor, got "
            f"{input.dtype} {tuple(input.shape)}"
        )
    return input.cpu().numpy().tobytes()


def _decoded(
    content: bytes, formats: tuple[str, ...], mode: ImageReadMode | str, upright: bool
) -> Tensor:
    """The picture in bytes of one of Pillow's formats named, or the frames of a GIF."""
    channels = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    library = pillow()
    try:
        image = open_image(_io.BytesIO(content), formats)
        if image.format == "GIF":
            return _frames(image, channels)
        image.load()
        if upright:
            image = library.ImageOps.exif_transpose(image)
        image = _converted(image, channels)
    except Exception as error:
        # Damaged pictures make Pillow's plugins raise nearly anything: OSError, SyntaxError,
        # ValueError, struct.error, DecompressionBombError, MemoryError, ...
        raise RuntimeError(
            f"the {len(content)} bytes are no picture ({', '.join(formats)}): {error}"
        ) from error
    return pil_to_tensor(image)


def _frames(image: Any, mode: ImageReadMode) -> Tensor:
    """The frames of a GIF as they are shown, RGB unless `mode` says otherwise."""
    limit = pillow().Image.MAX_IMAGE_PIXELS
    pixels = image.n_frames * image.width * image.height
    if limit is not None and pixels > 2 * limit:
        raise RuntimeError(
            f"{image.n_frames} frames of {pixels} pixels: expected at most {2 * limit}"
        )
    channels = ImageReadMode.RGB if mode is ImageReadMode.UNCHANGED else mode
    frames = []
    for index in range(image.n_frames):
        image.seek(index)
        frames.append(pil_to_tensor(_converted(image, channels)))
    return stack(frames) if len(frames) > 1 else frames[0]


def _converted(image: Any, mode: ImageReadMode) -> Any:
    """A PIL image in the channels that are wanted; palettes are always resolved."""
    if mode is not ImageReadMode.UNCHANGED:
        return image.convert(PIL_MODES[mode.value])
    if image.mode == "P":
        return image.convert("RGBA" if "transparency" in image.info else "RGB")
    return image.convert("L") if image.mode == "1" else image


def decode_jpeg(
    input: Tensor,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Tensor:
    """The picture in a JPEG file's bytes, on a device; RuntimeError for all else."""
    return _decoded(_content(input), ("JPEG",), mode, apply_exif_orientation).to(device)


def decode_png(
    input: Tensor,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """The picture in a PNG file's bytes; RuntimeError for all else."""
    return _decoded(_content(input), ("PNG",), mode, apply_exif_orientation)


def decode_gif(input: Tensor) -> Tensor:
    """The picture in a GIF file's bytes, (3, H, W), or its N frames, (N, 3, H, W).

    Frames are as they are shown, on top of what earlier ones left, in RGB. RuntimeError for all
    else.
    """
    return _decoded(_content(input), ("GIF",), ImageReadMode.RGB, False)


def read_image(
    path: AnyPath,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """The picture in a file; see `decode_image`."""
    return decode_image(path, mode, apply_exif_orientation)


def _encoded(input: Tensor, format: str, **options: Any) -> Tensor:
    """The bytes (N,) of a picture in a format of files."""
    if input.dtype != uint8 or input.ndim != 3 or input.shape[0] not in (1, 3):
        raise RuntimeError(
            f"Expected a uint8 tensor (1 or 3, H, W), got {input.dtype} {tuple(input.shape)}"
        )
    buffer = _io.BytesIO()
    to_pil_image(input).save(buffer, format, **options)
    return from_numpy(np.frombuffer(buffer.getvalue(), np.uint8).copy())


def encode_jpeg(input: Tensor, quality: int = 75) -> Tensor:
    """The bytes of a JPEG file of a picture; `quality` is 1 to 100 (else ValueError)."""
    if not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    return _encoded(input, "JPEG", quality=quality)


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file of a picture; `compression_level` is 0 to 9."""
    return _encoded(input, "PNG", compress_level=compression_level)


def write_jpeg(input: Tensor, filename: AnyPath, quality: int = 75) -> None:
    """Writes a JPEG file; see `encode_jpeg`."""
    write_file(filename, encode_jpeg(input, quality))


def write_png(input: Tensor, filename: AnyPath, compression_level: int = 6) -> None:
    """Writes a PNG file; see `encode_png`."""
    write_file(filename, encode_png(input, compression_level))
