"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write(target: Path, content: bytes) -> Path:
    """Write a file under another name and move it to its own; returns `target`.

    Raises OSError as the system does (no such folder, no permission, disk full), and then leaves
    what was there before.
    """
    aside = target.with_name(f".{target.name[:200]}.{os.urandom(6).hex()}.tmp")
    try:
        aside.write_bytes(content)
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    return target
