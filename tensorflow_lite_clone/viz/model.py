"""What a picture is made of: nodes, edges between them, and groups of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """One box: an operation, a tensor that nothing in the graph made, or a closed module.

    `kind` is "op", "parameter", "buffer", "input", "leaf", "constant", "output" or "module".
    `shape`, `dtype` and `device` are those of the (first) tensor it stands for, `size` its bytes.
    `time` is in microseconds, `memory` in bytes, `gradient` the 2-norm of the gradient that
    arrives here; None where nobody measured. `notes` are further lines for whoever asks for
    details.
    """

    key: str
    label: str
    kind: str = "op"
    group: str = ""  # key of the innermost group, "" outside of all
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    device: str = ""
    size: int = 0
    parameters: int = 0  # elements of parameters in it
    view: bool = False  # shares the memory of its input
    inplace: bool = False  # writes into the memory of its input
    sequence: int = -1  # of the autograd node
    op: str = ""  # the operation's name in a profile
    time: float | None = None
    memory: float | None = None
    gradient: float | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def measure(self, what: str) -> float | None:
        """What the word says: "time", "memory" or "gradient"; None for "kind"."""
        return None if what == "kind" else getattr(self, what)


@dataclass(slots=True, frozen=True)
class Edge:
    """A tensor on its way from `source` to `target`.

    `kind` is "data", "view" (the target shares its memory), "inplace" (the target writes into
    it), "next" (the target, in the next one of the repeats that are drawn once) or "order" (nothing
    flows: the target comes after the source).
    """

    source: str
    target: str
    kind: str = "data"


@dataclass(slots=True)
class Group:
    """A box around nodes and other groups: a module, or a part that comes `repeats` times."""

    key: str
    label: str
    kind: str = ""  # the module's class
    parent: str = ""
    repeats: int = 1
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name and class, and how often it comes."""
        words = [self.label, self.kind] + [f"x {self.repeats}"] * (self.repeats > 1)
        return "  ".join([word for word in words if word])
