"""`Graph`: what builders fill, and what is drawn."""

from __future__ import annotations

import html
import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.viz import contract, dot, folding, page, profiles
from tensorflow_lite_clone.viz.model import Edge, Group, Node

#: Pictures and pages of which more boxes than this would be open are folded.
LARGE = 300


@dataclass
class Graph:
    """Nodes by their keys in the order in which they were made, edges, and groups by their keys.

    `title` is shown above. `depth` says how many levels of groups are open at first; None: as many
    as stay readable. `colors` is what nodes are coloured by: "kind", "time", "memory" or
    "gradient". Methods give new graphs and leave this one as it is.
    """

    title: str
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    depth: int | None = None
    colors: str = "kind"

    # -- other graphs -------------------------------------------------------------------------

    def fold(self) -> Graph:
        """Repeats drawn once: equal blocks in a row, or equal sequences of operations, as "x 12".

        Times, memory and numbers of parameters are those of all repeats together.
        """
        return folding.fold(self)

    def collapse(self, depth: int | None = None) -> Graph:
        """Only so many levels of groups (modules); each group below is closed into one node.

        None: as many levels as stay readable.
        """
        depth = contract.readable_depth(self) if depth is None else depth
        return contract.collapse(self, depth)

    def color_by(self, what: str, prof: Any = None) -> Graph:
        """The graph coloured by "time", "memory", "gradient" or (as at first) "kind".

        `prof`: a profile, whose ``events()`` are matched to nodes: by the number of the autograd
        node (`sequence_nr`) where the graph and an event have one in common, otherwise the n-th
        event of a name to the n-th operation of that name. Without it nodes have the times that
        `viz.forward` took, and the bytes of their results (in an autograd graph: those kept for
        backward). Colour first and fold afterwards: matching needs every operation.

        Raises ValueError for another word and where there is nothing to colour by.
        """
        return profiles.color(self, what, prof)

    # -- drawing ------------------------------------------------------------------------------

    def to_dot(self) -> str:
        """The graph in Graphviz's language DOT, closed down to `depth`."""
        return dot.text(self.collapse(self.depth))

    def to_html(self) -> str:
        """One page that needs nothing beside it: search, zoom, modules that open and close."""
        shown = self._readable()
        depth = contract.readable_depth(shown) if shown.depth is None else shown.depth
        return page.text(self.title, json.dumps({**shown.to_dict(), "depth": depth}))

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain lists, numbers and words, for JSON."""
        return {
            "title": self.title,
            "depth": self.depth,
            "colors": self.colors,
            "nodes": [_plain(node) for node in self.nodes.values()],
            "edges": [asdict(edge) for edge in self.edges],
            "groups": [{**asdict(group), "title": group.title} for group in self.groups.values()],
        }

    def save(self, path: str | Path) -> Path:
        """Draw into a file whose suffix (.svg, .png, .pdf, .dot, .html, .json) says how.

        Pictures (.svg, .png, .pdf) need Graphviz's program ``dot``. They and pages are folded if
        they would show more than `LARGE` boxes. Returns the path.

        Raises ValueError for another suffix; RuntimeError if ``dot`` is missing or fails, with the
        DOT text saved beside; OSError if the file cannot be written, which leaves no half file.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix in (".svg", ".png", ".pdf"):
            source = self._readable().to_dot()
            try:
                content = dot.run(source, suffix[1:])
            except RuntimeError as error:
                beside = _write(target.with_suffix(".dot"), source.encode())
                raise RuntimeError(
                    f"drawing {target.name}: {error}; the graph is saved as DOT text in {beside}"
                ) from error
        elif suffix == ".dot":
            content = self.to_dot().encode()
        elif suffix == ".html":
            content = self.to_html().encode(errors="replace")
        elif suffix == ".json":
            content = json.dumps(self.to_dict(), indent=1).encode()
        else:
            raise ValueError(
                f"cannot draw a graph as '{target.suffix}': expected .svg, .png, .pdf, .dot, .html "
                "or .json"
            )
        return _write(target, content)

    def _readable(self) -> Graph:
        """The graph itself, or folded where too much of it would be open."""
        return self.fold() if len(self.collapse(self.depth).nodes) > LARGE else self

    # -- notebooks ----------------------------------------------------------------------------

    def _repr_svg_(self) -> str | None:
        """The picture for a notebook; None where it cannot be drawn."""
        try:
            return dot.run(self._readable().to_dot(), "svg").decode()
        except (RuntimeError, OSError):
            return None

    def _repr_html_(self) -> str | None:
        """The interactive page for a notebook, where there is no picture."""
        if dot.available():
            return None
        source = html.escape(self.to_html())
        return f'<iframe srcdoc="{source}" style="width:100%;height:30em;border:0"></iframe>'

    def __repr__(self) -> str:
        return (
            f"<graph of {self.title}: {len(self.nodes)} nodes, {len(self.edges)} edges, "
            f"{len(self.groups)} groups>"
        )


def _plain(node: Node) -> dict[str, Any]:
    """A node without what is empty; JSON has no NaN."""
    found = {key: value for key, value in asdict(node).items() if value not in (None, "", {}, 0)}
    for key, value in found.items():
        if isinstance(value, float) and not math.isfinite(value):
            found[key] = str(value)
    return found


def _write(target: Path, content: bytes) -> Path:
    with whole_file(target, "wb") as file:
        file.write(content)
    return target
