"""The package's modules as syntax trees, and what each of them imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.tools.markdown import ROOT

PACKAGE = "tensorflow_lite_clone"


class Import(NamedTuple):
    """One imported module, absolute, and how it is imported."""

    module: str
    line: int
    local: bool  # inside a function
    typing: bool  # under `if TYPE_CHECKING:`


def module_name(path: Path, root: Path = ROOT) -> str:
    """`tensorflow_lite_clone/ops/nn/conv.py` is `tensorflow_lite_clone.ops.nn.conv`."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    """Every module of the package."""
    return {module_name(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _targets(node: ast.Import | ast.ImportFrom, package: str, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, *([base] if base else [])])
    for alias in node.names:
        # `from .. import storage` imports a module, `from ..storage import Storage` a name of one.
        inner = f"{base}.{alias.name}"
        yield inner if inner in known else base


def imports(source: str, package: str, known: set[str]) -> list[Import]:
    """All imports of a module of `package`; `known` are the names that are modules."""
    found: list[Import] = []

    def visit(node: ast.AST, local: bool, typing: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in dict.fromkeys(_targets(node, package, known)):
                found.append(Import(target, node.lineno, local, typing))
            return
        local = local or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if _is_type_checking(node):
            assert isinstance(node, ast.If)
            for statement in node.body:
                visit(statement, local, True)
            for statement in node.orelse:
                visit(statement, local, typing)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, local, typing)

    visit(ast.parse(source), False, False)
    return found
