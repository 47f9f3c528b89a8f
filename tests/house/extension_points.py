"""Module-level containers that other rooms fill in, and functions that they bind."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.house.sources import PACKAGE, module_name_of_import, modules, package_of, trees

#: Declares a function that a room above binds: see `core.late_bound`.
_DECLARES = "LateBound("
_CHANGES = frozenset("add append clear extend insert pop remove setdefault update".split())
_MADE_BY = ("set(", "dict(", "list(", "OrderedDict(", "WeakSet(", "WeakKeyDictionary(")

Container = tuple[str, str]  # module, name
#: Whose attributes are entered by rooms above.
INTERPRETERS = (f"{PACKAGE}.autograd.interpreters", "interpreters")


def containers(tree: ast.Module) -> dict[str, bool]:
    """The lists, dictionaries and sets that a module defines, and whether they are empty then."""
    found = {}
    for statement in tree.body:
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and value is not None:
            text = ast.unparse(value).rpartition("weakref.")[2]
            if isinstance(value, ast.List | ast.Dict | ast.Set) or text.startswith(_MADE_BY):
                targets: list[ast.expr] = getattr(statement, "targets", [])
                if isinstance(statement, ast.AnnAssign):
                    targets = [statement.target]
                for target in targets:
                    found[ast.unparse(target)] = text in ("[]", "{}") or text.endswith("()")
    return found


def declared(tree: ast.Module) -> set[str]:
    """The functions that a module declares and other rooms bind."""
    return {
        ast.unparse(statement.targets[0])
        for statement in tree.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith(_DECLARES)
    }


def changed(tree: ast.Module, package: str, known: set[str]) -> dict[Container, bool]:
    """What a module changes of what it has imported; or (False) hands on in a pair or a table."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = module_name_of_import(node, package)
            names.update(
                {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
            )

    def resolved(node: ast.expr | None) -> Container | None:
        if isinstance(node, ast.Name) and node.id in names and names[node.id] not in known:
            module, _, name = names[node.id].rpartition(".")
            return module, name
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id, "")
            return (module, node.attr) if module in known else None
        return None

    found: dict[Container | None, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.Dict):
            entries = node.elts[:1] if isinstance(node, ast.Tuple) else node.values
            for entry in entries:
                found.setdefault(resolved(entry), False)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _CHANGES:
                found[resolved(node.func.value)] = True
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found[resolved(node.value)] = True
    return {each: whether for each, whether in found.items() if each is not None}


@cache
def filled_in() -> dict[Container, list[str]]:
    """Container -> the modules of other rooms that fill it in."""
    known = modules()
    defined = {module: containers(tree) for module, tree in trees().items()}
    found: dict[Container, list[str]] = defaultdict(list)
    for module, tree in trees().items():
        uses = changed(tree, package_of(module, known[module]), set(known))
        for (target, name), changes in uses.items():
            other = target.split(".")[1:2] != module.split(".")[1:2]
            empty = defined.get(target, {}).get(name)
            if other and empty is not None and (changes or empty):
                found[target, name].append(module)
    return dict(found)


def points() -> set[Container]:
    """All that the table of extension points has to name."""
    late = f"{PACKAGE}.core.late_bound"
    functions = declared(trees()[late])
    return {*filled_in(), *((late, name) for name in functions), INTERPRETERS}


def table(page: Path) -> set[Container]:
    """The containers that the table "Extension points" of a page names."""
    _, _, section = page.read_text(encoding="utf-8").partition("\n## Extension points\n")
    rows = [line.split("|") for line in section.partition("\n## ")[0].splitlines() if "|" in line]
    found = set()
    for row in rows[2:]:
        path = row[2].strip().strip("`")
        module = f"{PACKAGE}.{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
        found |= {(module, name.strip().strip("`")) for name in row[1].split(",")}
    return found
