"""The interactive page: one file that asks nothing of a server or of the network."""

from __future__ import annotations

import base64
import hashlib
import html
from pathlib import Path

_FOLDER = Path(__file__).parent


def text(title: str, data: str) -> str:
    """The page for a graph given as JSON.

    Its policy lets the browser run the page's own script, known by its hash, and load nothing: so
    no name or setting of a model can bring in code, whatever it contains.
    """
    script = "".join([(_FOLDER / name).read_text("utf-8") for name in ("layout.js", "page.js")])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = (_FOLDER / "page.html").read_text("utf-8")
    parts = {
        "TITLE": html.escape(title),
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "STYLE": (_FOLDER / "page.css").read_text("utf-8"),
        "DATA": data.replace("<", "\\u003c"),
        "SCRIPT": script,
    }
    split = page.split("@@")  # text, NAME, text, NAME, ...
    return "".join([parts[part] if n % 2 else part for n, part in enumerate(split)])
