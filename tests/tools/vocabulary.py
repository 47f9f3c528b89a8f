"""The words of the package's names, beside those that PyTorch, NumPy and SciPy use.

    python -m tests.tools.vocabulary              words that no other framework uses
    python -m tests.tools.vocabulary --overused   words that we use much more often than they
    python -m tests.tools.vocabulary --where WORD the names that have a word
    python -m tests.tools.vocabulary --refresh    make the dictionary anew

Names are those of modules, classes, functions, parameters, attributes and variables, split at
underscores and capitals. `vocabulary.txt` is the dictionary: each word that the names of torch,
torchvision, numpy and scipy have often enough, with how often, and those of their public functions.
`vocabulary_allowed.txt` has words of ours that are right all the same, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.tools.markdown import ROOT

DICTIONARY = Path(__file__).with_name("vocabulary.txt")
ALLOWED = Path(__file__).with_name("vocabulary_allowed.txt")
PACKAGE = ROOT / "tensorflow_lite_clone"
FRAMEWORKS = ("torch", "torchvision", "numpy", "scipy")
#: What is public here is no Python, for the most part: the sources do not have its names.
PUBLIC = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"),
    *("torch.optim", "torch.distributions", "numpy", "numpy.linalg", "scipy.special"),
    "scipy.linalg",
)
SKIPPED = {"tests", "test", "testing", "_vendor", "__pycache__"}
#: Fewer uses may be a slip or a name of one file.
ENOUGH = 5
#: A word is over-used where it is this many times as frequent as elsewhere, and not rare here.
TIMES, USES = 9, 15
#: Added to frequencies per 100,000 names: what is rare in both is no difference.
RARE = 2.0

WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


class Usage(NamedTuple):
    """How often words are used, among how many names."""

    words: Counter[str]
    names: int

    def frequency(self, word: str) -> float:
        """Uses per 100,000 names."""
        return 1e5 * self.words[word] / self.names


class Overused(NamedTuple):
    """A word that is more frequent here than elsewhere."""

    word: str
    uses: int
    ours: float  # per 100,000 names
    theirs: float

    @property
    def times(self) -> float:
        """How many times as frequent."""
        return self.ours / (self.theirs + RARE)

    @property
    def excess(self) -> float:
        """Uses, per 100,000 names, beyond what would still be no over-use."""
        return self.ours - TIMES * (self.theirs + RARE)


def words_of(name: str) -> list[str]:
    """`_saveForBackward2` has `save`, `for`, `backward`; words of one or two letters are left out.

    >>> words_of("GELUBackward_input_x")
    ['gelu', 'backward', 'input']
    """
    return [word.lower() for word in WORDS.findall(name) if len(word) > 2]


def names_in(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives: not those it only uses, which others gave."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def named(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every name that the modules under a folder give, and where; but `__dunder__` names."""
    for path in sorted(folder.rglob("*.py")):
        if SKIPPED.isdisjoint(path.relative_to(folder).parts):
            tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
            module = path.parent if path.stem == "__init__" else path
            for name in (module.stem, *names_in(tree)):
                if not name.startswith("__"):
                    yield name, path


def usage(*folders: Path) -> Usage:
    """The words in the names that folders give."""
    counts: Counter[str] = Counter()
    names = 0
    for folder in folders:
        for name, _ in named(folder):
            names += 1
            counts.update(words_of(name))
    return Usage(counts, names)


@cache
def ours() -> Usage:
    """The words of the package."""
    return usage(PACKAGE)


@cache
def theirs() -> Usage:
    """The words of the dictionary."""
    head, *lines = DICTIONARY.read_text().splitlines()
    pairs = [line.split() for line in lines]
    return Usage(Counter({word: int(count) for word, count in pairs}), int(head.split()[1]))


@cache
def allowed() -> dict[str, str]:
    """Words that are right all the same, each with its reason."""
    found: dict[str, str] = {}
    for line in ALLOWED.read_text().splitlines():
        reason, _, words = line.partition(": ")
        found |= dict.fromkeys(words.split(), reason)
    return found


def unknown() -> list[tuple[str, int]]:
    """Words of ours that are in neither list, the most frequent first."""
    known = theirs().words.keys() | allowed().keys()
    return [
        (word, uses)
        for word, uses in sorted(ours().words.items(), key=lambda item: (-item[1], item[0]))
        if known.isdisjoint((word, word.removesuffix("s"), word.removesuffix("es")))
    ]


def overused() -> list[Overused]:
    """Words that are much more frequent here than elsewhere, the worst first."""
    found = [
        Overused(word, uses, ours().frequency(word), theirs().frequency(word))
        for word, uses in ours().words.items()
        if uses >= USES and word not in allowed()
    ]
    return sorted((item for item in found if item.times >= TIMES), key=lambda item: -item.times)


def refresh() -> None:
    """Make the dictionary from the frameworks that are installed."""
    origins = [importlib.util.find_spec(name) for name in FRAMEWORKS]
    found = usage(*[Path(str(spec.origin)).parent for spec in origins if spec is not None])
    modules = [importlib.import_module(name) for name in PUBLIC]
    spaces = [*modules, importlib.import_module("torch").Tensor]
    public = {word for space in spaces for name in dir(space) for word in words_of(name)}
    words = {word: uses for word, uses in found.words.items() if uses >= ENOUGH or word in public}
    lines = [f"{word} {uses}" for word, uses in sorted((dict.fromkeys(public, 0) | words).items())]
    DICTIONARY.write_text("\n".join([f"names {found.names}", *lines]) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser("python -m tests.tools.vocabulary")
    parser.add_argument("--overused", action="store_true")
    parser.add_argument("--where", metavar="WORD")
    parser.add_argument("--refresh", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.refresh:
        refresh()
    elif chosen.where:
        places = Counter(
            f"{path.relative_to(ROOT)}: {name}"
            for name, path in named(PACKAGE)
            if chosen.where in words_of(name)
        )
        print("\n".join(f"{count:4} {place}" for place, count in sorted(places.items())))
    elif chosen.overused:
        print("uses  times  here  elsewhere  (per 100,000 names)")
        for item in overused():
            print(
                f"{item.uses:4} {item.times:6.0f} {item.ours:5.0f} {item.theirs:6.1f}  {item.word}"
            )
    else:
        print("\n".join(f"{uses:4} {word}" for word, uses in unknown()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
