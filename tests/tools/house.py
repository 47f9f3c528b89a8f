"""The size and shape of the package in numbers: ``python -m tests.tools.house``.

Each number is computed from the syntax trees of the checkout. `tests/house/test_numbers.py` holds
them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tests.house.extension_points import filled_in
from tests.house.sources import (
    PACKAGE,
    all_imports,
    arrows,
    circles,
    is_lazy_loading,
    modules,
    trees,
)
from tests.house.test_layers import LEVEL, room
from tests.tools.markdown import ROOT

#: The rooms that make up the core.
CORE = "core dispatch autograd storage tensor trace fuse".split()
#: From so many names on a literal is a table of ops, if they are half of what it says.
_TABLE = 10


class Row(NamedTuple):
    """A number: what it is called, what this count was at revision 24670ff, and how it is found."""

    name: str
    before: int
    measure: Callable[[], int]


def _words(node: ast.AST) -> set[str]:
    """The words of strings, and of keywords, in a statement."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.update(each.value.split())
        elif isinstance(each, ast.keyword) and each.arg:
            found.add(each.arg)
    return found


def tables_of_ops() -> list[str]:
    """Literals at module level that list ops by name; their definitions left out."""
    names = {name.rpartition(".")[2] for name in {*TABLE, *PRIMITIVES}}
    found = []
    for module, tree in trees().items():
        for statement in tree.body:
            if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.For):
                continue
            words, line = _words(statement), getattr(statement, "lineno", 0)
            listed = len(words & names)
            exports = ast.unparse(statement).startswith("__all__")
            if not exports and listed >= _TABLE and 2 * listed >= len(words):
                found.append(f"{module}:{line}")
    return [each for each in found if not each.startswith(f"{PACKAGE}.dispatch.primitives:")]


def _lines_with(text: str, *rooms: str) -> Iterator[str]:
    for module, path in modules().items():
        if module.split(".")[1:2] not in [[each] for each in rooms]:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if text in line:
                    yield f"{module}:{number}"


def recorders() -> list[str]:
    """Where ops are wrapped to see what runs, outside of the room that records."""
    return list(_lines_with("hooks.add(", "trace"))


def fusers() -> list[str]:
    """Classes that say which formulas are pointwise: each fuser has one."""
    return list(_lines_with("class NotPointwise"))


def apply_paths() -> list[str]:
    """Where the callable of an op is looked up by backend."""
    return list(_lines_with("calls[backend]"))


def arrows_upwards(string: bool) -> list[str]:
    """Imports of rooms above or beside the importing one, by statement or by string."""
    return [
        f"{module} -> {each.module}"
        for module, found in all_imports().items()
        for each in found
        if each.module in modules()
        and each.string is string
        and not is_lazy_loading(module, modules()[module], each)
        and room(module) != room(each.module)
        and LEVEL[room(each.module)] >= LEVEL[room(module)]
    ]


def _is_trivial(function: ast.FunctionDef) -> bool:
    """Whether a function only gives a constant or raises."""
    body = [each for each in function.body if not isinstance(each, ast.Expr | ast.Pass)]
    given = getattr(body[0], "value", None) if body else None
    simple = given is None or isinstance(given, ast.Constant)
    return not body or (len(body) == 1 and isinstance(body[0], ast.Raise | ast.Return) and simple)


def names_only() -> list[str]:
    """Modules outside of `compat` that no other imports, and that do nothing but have names."""
    imported = {
        each.module
        for module, found in all_imports().items()
        for each in found
        if each.module != module and not is_lazy_loading(module, modules()[module], each)
    }
    found = []
    for module, tree in trees().items():
        inner = module.split(".")[1:]
        functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
        mostly = 2 * sum(map(_is_trivial, functions)) >= len(functions)
        classes = any([isinstance(each, ast.ClassDef) for each in tree.body])
        is_package = modules()[module].name == "__init__.py"
        if mostly and not (classes or is_package or module in imported or "compat" in inner[:1]):
            found.append(module)
    return [each for each in found if not each.endswith("__main__") and ".dropin.path" not in each]


#: What tests may set: sizes and switches that are read at each call.
_KNOBS = ("tuning.tuning.", "core.flags.flags.")


@cache
def _tests() -> dict[str, ast.Module]:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}


def _imported_by(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """What a test imports from the package: its name there, its full name, the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}", node.lineno


def private_imports_of_tests() -> list[str]:
    """Private names that tests import, or modules of which a part is private."""
    return [
        f"{path}:{line}: {full}"
        for path, tree in _tests().items()
        for _, full, line in _imported_by(tree)
        if any([part.startswith("_") and part != "__main__" for part in full.split(".")])
    ]


def patches_of_internals() -> list[str]:
    """Where tests replace an attribute of what lies below the public face, but sizes and flags."""
    found = []
    for path, tree in _tests().items():
        modules = {name: full for name, full, _ in _imported_by(tree)}
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".setattr")):
                continue
            target, *rest = [ast.unparse(each).strip("'") for each in node.args]
            root, dot, inner = target.partition(".")
            if root in modules:
                target = f"{modules[root]}{dot}{inner}.{rest[0]}"
            internal = target.startswith(f"{PACKAGE}.") and target.count(".") > 2
            if internal and not any([knob in target for knob in _KNOBS]):
                found.append(f"{path}:{node.lineno}: {target}")
    return found


def lines(*rooms: str) -> int:
    """Lines of the package's Python files, or of some rooms of it."""
    wanted = [path for name, path in modules().items() if not rooms or room(name) in rooms]
    return sum([len(path.read_text().splitlines()) for path in wanted])


def flat_files() -> list[Path]:
    """Files that lie in `ops` itself."""
    return sorted((ROOT / PACKAGE / "ops").glob("*.py"))


ROWS = [
    Row("hand-kept tables of ops", 13, lambda: len(tables_of_ops())),
    Row("recorders beside trace/", 8, lambda: len(recorders())),
    Row("fusers", 2, lambda: len(fusers())),
    Row("lookups of an op's callable", 15, lambda: len(apply_paths())),
    Row("circles of imports", 3, lambda: len(circles(arrows(strings=True)))),
    Row("arrows upwards", 9, lambda: len(arrows_upwards(False))),
    Row("upward imports by string", 4, lambda: len(arrows_upwards(True))),
    Row("containers that other rooms fill in", 22, lambda: len(filled_in())),
    Row("modules of names outside compat/", 15, lambda: len(names_only())),
    Row("files in ops/ itself", 127, lambda: len(flat_files())),
    Row("private imports of tests", 46, lambda: len(private_imports_of_tests())),
    Row("patches of internals by tests", 120, lambda: len(patches_of_internals())),
    Row("lines of the package", 145_179, lines),
    Row("lines of the core", 7_833, lambda: lines(*CORE)),
]


def main() -> None:
    """Print the table."""
    print("| | revision 24670ff | now |\n| --- | --- | --- |")
    for row in ROWS:
        print(f"| {row.name} | {row.before:,} | {row.measure():,} |")


if __name__ == "__main__":
    main()
