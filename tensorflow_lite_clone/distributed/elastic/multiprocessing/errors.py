"""`record`, by which a program's main function tells the launcher of its errors."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["ChildFailedError", "record"]


class ChildFailedError(Exception):
    """A process that a launcher started has failed."""


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """`fn`, whose errors are also written to the file ``TORCHELASTIC_ERROR_FILE``, if it is set."""

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except Exception as error:
            path = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if path:
                told = {
                    "message": f"{type(error).__name__}: {error}",
                    "extraInfo": {
                        "py_callstack": traceback.format_exc(),
                        "timestamp": str(int(time.time())),
                    },
                }
                with open(path, "w", encoding="utf-8") as file:
                    json.dump({"message": told}, file)
            raise

    return wrapper
