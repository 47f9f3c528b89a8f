"""The networks of the examples, over either library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = "import tensorflow_lite_clone as torch\n"


def network(lib: Any, path: str) -> Any:
    """The class `Network` of an example whose ``torch`` is `lib`."""
    text = (ROOT / path).read_text()
    assert OURS in text, path
    namespace: dict[str, Any] = {"torch": lib, "__name__": f"{path} over {lib.__name__}"}
    exec(compile(text.replace(OURS, "\n"), path, "exec"), namespace)
    return namespace["Network"]
