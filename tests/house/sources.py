"""The package's modules as syntax trees, what each of them imports, and circles of these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.tools.markdown import ROOT

PACKAGE = "tensorflow_lite_clone"


class Import(NamedTuple):
    """One imported module, absolute, and how it is imported."""

    module: str
    line: int
    local: bool  # inside a function
    typing: bool  # under `if TYPE_CHECKING:`
    string: bool = False  # by ``import_module("...")``


def module_name(path: Path, root: Path = ROOT) -> str:
    """`tensorflow_lite_clone/ops/nn/conv.py` is `tensorflow_lite_clone.ops.nn.conv`."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Every module of the package."""
    return {module_name(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package as a syntax tree."""
    return {module: ast.parse(path.read_text()) for module, path in modules().items()}


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def module_name_of_import(node: ast.ImportFrom, package: str) -> str:
    """The absolute name of what a statement imports from."""
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, *([base] if base else [])])
    return base


def _targets(node: ast.Import | ast.ImportFrom, package: str, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = module_name_of_import(node, package)
    for alias in node.names:
        # `from .. import storage` imports a module, `from ..storage import Storage` a name of one.
        inner = f"{base}.{alias.name}"
        yield inner if inner in known else base


#: Stands for the part of a module's name that is known when the program runs only.
WILDCARD = "*"


class _Strings:
    """The module names that a file gives to `import_module`, or keeps in a table.

    Of a name that is put together, as ``f"{__name__}.{name}"``, the part that can be read is taken;
    the rest may be any word of the file's strings that makes the name of a module of it.
    """

    def __init__(self, tree: ast.Module, module: str, package: str, known: set[str]) -> None:
        self._known, self._package = known, package
        self._values = {"__name__": module, "__package__": package}
        strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        self._words = {word for value in strings for word in str(value).split()}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                for target in statement.targets:
                    self._values[ast.unparse(target)] = str(statement.value.value)

    def _text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.JoinedStr):
            return "".join(map(self._text, node.values))
        if isinstance(node, ast.FormattedValue):
            return self._text(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._text(node.left) + self._text(node.right)
        return self._values.get(ast.unparse(node), WILDCARD)

    def called(self, node: ast.Call) -> list[str]:
        """What a call imports: absolute names, `WILDCARD` for one that cannot be read."""
        function = ast.unparse(node.func).rpartition(".")[2].strip("_")
        if function not in ("import_module", "import") or not node.args:
            return []
        text = self._text(node.args[0])
        if text.startswith("."):
            level = len(text) - len(text.lstrip("."))
            above = self._package.split(".")
            text = ".".join([*above[: len(above) - level + 1], text[level:]])
        if not text.strip(WILDCARD):
            return [WILDCARD]
        if WILDCARD not in text:
            return [text]
        fitting = {text.replace(WILDCARD, word) for word in self._words} & self._known
        return sorted(fitting) or [text.partition(WILDCARD)[0].rstrip(".")]

    def kept(self, node: ast.AST) -> list[str]:
        """The full names of modules among the entries of a table."""
        entries: list[Any] = []
        if isinstance(node, ast.Dict):
            entries = [*node.keys, *node.values]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            entries = node.elts
        names = [entry.value for entry in entries if isinstance(entry, ast.Constant)]
        return [name for name in names if name in self._known and name != PACKAGE]


def imports(tree: ast.Module, module: str, package: str, known: set[str]) -> list[Import]:
    """All imports of a module of `package`; `known` are the names that are modules."""
    found: list[Import] = []
    strings = _Strings(tree, module, package, known)

    def visit(node: ast.AST, local: bool, typing: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in dict.fromkeys(_targets(node, package, known)):
                found.append(Import(target, node.lineno, local, typing))
            return
        by_string = strings.called(node) if isinstance(node, ast.Call) else strings.kept(node)
        line = getattr(node, "lineno", 0)
        found.extend([Import(target, line, local, typing, True) for target in by_string])
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

    visit(tree, False, False)
    return list(dict.fromkeys(found))


@cache
def all_imports() -> dict[str, list[Import]]:
    """What each module of the package imports when it runs, not for types only."""
    paths = modules()
    return {
        module: [
            found
            for found in imports(trees()[module], module, package_of(module, path), set(paths))
            if not found.typing
        ]
        for module, path in paths.items()
    }


def package_of(module: str, path: Path) -> str:
    """The package that a module's relative imports start from."""
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def is_lazy_loading(module: str, path: Path, found: Import) -> bool:
    """Whether a package loads one of its own modules by string: its public parts, when named."""
    own = f"{found.module}.".startswith(f"{module}.")
    return found.string and own and path.name == "__init__.py"


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of several nodes, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        path.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
            if other in path:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == index[node]:
            start = path.index(node)
            component = sorted(path[start:])
            del path[start:]
            if len(component) > 1:
                found.append(component)

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def arrows_of_packages() -> dict[str, set[str]]:
    """`arrows` at module level, and to the packages that an imported module lies in.

    They run before the module does; those that the importing module lies in run already.
    """
    found: dict[str, set[str]] = {}
    for module, targets in arrows(strings=False).items():
        found[module] = set(targets)
        for target in targets:
            parts = target.split(".")
            for count in range(2, len(parts)):
                package = ".".join(parts[:count])
                if not module.startswith(f"{package}.") and module != package:
                    found[module].add(package)
    return found


def arrows(strings: bool) -> dict[str, set[str]]:
    """Module -> the modules that it imports: at module level, or also in functions and by string.

    What is loaded when it is named (see `is_lazy_loading`) is left out.
    """
    known = modules()
    return {
        module: {
            each.module
            for each in found
            if each.module in known
            and each.module != module
            and (strings or not (each.local or each.string))
            and not is_lazy_loading(module, known[module], each)
        }
        for module, found in all_imports().items()
    }
