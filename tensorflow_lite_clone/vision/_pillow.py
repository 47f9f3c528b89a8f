"""Pillow, which is optional: imported when a PIL image is asked for, and not before."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


@cache
def pillow() -> Any:
    """The package PIL, with the modules that are used here; ImportError says how to get it."""
    try:
        import PIL.Image
        import PIL.ImageColor
        import PIL.ImageDraw
        import PIL.ImageEnhance
        import PIL.ImageFont
        import PIL.ImageOps
    except ImportError as error:
        raise ImportError("PIL images need Pillow: pip install pillow") from error
    return PIL


def open_image(file: Any, formats: tuple[str, ...]) -> Any:
    """The PIL image in a file or stream, which must be of one of Pillow's formats named.

    Left to itself Pillow asks all of its plugins. Some read far more than pictures, and the one
    for EPS starts Ghostscript, a whole programming language: what a file may start must not be
    the file's choice. Raises what Pillow raises.
    """
    return pillow().Image.open(file, formats=formats)


@cache
def has_pillow() -> bool:
    """Whether Pillow can be imported."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        return False
    return True


def is_pil(value: Any) -> bool:
    """Whether `value` is a PIL image; it asks without importing PIL."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)
