"""What each op means: a file per family with generic forward, gradient and public function."""

from __future__ import annotations

from tensorflow_lite_clone.ops import (  # noqa: F401  importing a family enters it into the table
    arithmetic,
    convert,
    create,
    properties,
    random,
    reduce,
    update,
)
