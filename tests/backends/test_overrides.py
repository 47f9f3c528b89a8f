"""Overrides are of what exists, take what is given, and are imported.

Those of CUDA are read from the text of their modules, which need CuPy to be imported.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import pytest

import tensorflow_lite_clone.func
import tensorflow_lite_clone.optim  # noqa: F401  whose steps are composites
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tests.tools.markdown import ROOT

ROOM = "tensorflow_lite_clone.backends"


def trees(room: str) -> dict[str, ast.Module]:
    """The modules of a backend by their names below `ROOM`."""
    folder = ROOT.joinpath(*ROOM.split("."))
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts): ast.parse(path.read_text())
        for path in (folder / room).rglob("*.py")
    }


Entry = tuple[str, ast.FunctionDef]  # what is overridden, and by which function


def of_cuda(tree: ast.Module) -> Iterator[Entry]:
    """The overrides of a module: decorators, also in functions that are given a name, and calls."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    loops: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            loops[node.target.id] = node.iter
        if isinstance(node, ast.FunctionDef):
            for name in decorations(node):
                if isinstance(name, ast.Constant):
                    yield name.value, node
        if isinstance(node, ast.Call) and is_override(node.func):
            name, function = node.func.args[0], functions[node.args[0].id]  # type: ignore[attr-defined]
            several = loops[name.id] if isinstance(name, ast.Name) else ast.Tuple([name])
            yield from [(each, function) for each in ast.literal_eval(several)]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions:
            for inner in ast.walk(functions[node.func.id]):  # type: ignore[attr-defined]
                if isinstance(inner, ast.FunctionDef):
                    named = [name for name in decorations(inner) if isinstance(name, ast.Name)]
                    yield from [(ast.literal_eval(node.args[0]), inner) for _ in named]


def decorations(function: ast.FunctionDef) -> list[ast.expr]:
    """What a function says by decorators that it overrides: names, or a variable's."""
    return [call.args[0] for call in function.decorator_list if is_override(call)]  # type: ignore[attr-defined]


def is_override(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "override"


CUDA = [entry for tree in trees("cupy").values() for entry in of_cuda(tree)]


def test_all_overrides_of_cuda_are_read() -> None:
    calls = [
        node for tree in trees("cupy").values() for node in ast.walk(tree) if is_override(node)
    ]
    assert len(CUDA) >= len(calls) > 50


def test_overrides_of_the_cpu_are_of_what_exists() -> None:
    """Those for NumPy and for Numba, which need not be installed, and the rules of `vmap`."""
    names = {
        node.args[0].value
        for tree in [*trees("numpy").values(), *trees("numba").values()]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("override", "compiled")
        if isinstance(node.args[0], ast.Constant)
    } | {name for name, layer in table.overrides if layer in ("numpy", "batched")}
    assert len(names) > 80
    assert names <= TABLE.keys() | PRIMITIVES.keys()


def test_fused_steps_are_of_what_exists() -> None:
    names = {
        node.args[0].value
        for tree in trees("cupy").values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("fused_step", "_by_rule")
        if isinstance(node.args[0], ast.Constant)
    }
    assert len(names) > 7
    assert names <= TABLE.keys()


@pytest.mark.parametrize(("name", "function"), CUDA)
def test_an_override_of_cuda_takes_what_is_given(name: str, function: ast.FunctionDef) -> None:
    """As many arrays as the generic form, and parameters of its names."""
    entry = TABLE[name]
    body = entry.forward if is_op(entry) else entry
    # A step of an optimizer is made of a rule for one parameter, and takes lists.
    generic = inspect.signature(body, follow_wrapped=False).parameters.values()
    own = function.args
    if own.vararg is None and not any([p.kind is p.VAR_POSITIONAL for p in generic]):
        most = len(own.args)
        least = most - len(own.defaults)
        arrays = [p for p in generic if p.kind is p.POSITIONAL_OR_KEYWORD]
        required = [p for p in arrays if p.default is p.empty]
        assert least <= len(required) and len(arrays) <= most
    if own.kwarg is None and not any([p.kind is p.VAR_KEYWORD for p in generic]):
        parameters = {p.name for p in generic if p.kind is p.KEYWORD_ONLY}
        assert {arg.arg for arg in own.kwonlyargs} == parameters


def imported(module: str, every: dict[str, ast.Module], seen: set[str]) -> set[str]:
    """The modules of a backend that importing one of them imports."""
    for name in (module, f"{module}.__init__"):
        if name in every and name not in seen:
            seen.add(name)
            for node in ast.walk(every[name]):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM):
                    inside = str(node.module).removeprefix(f"{ROOM}.")
                    for other in (inside, *[f"{inside}.{alias.name}" for alias in node.names]):
                        imported(other, every, seen)
    return seen


@pytest.mark.parametrize("backend", ["numpy", "numba", "cupy"])
def test_modules_with_overrides_are_imported(backend: str) -> None:
    """A module that nothing imports would override nothing, and nobody would notice."""
    every = trees(backend)
    called = {"override", "compiled", "Kernel"}
    concerned = {
        name
        for name, tree in every.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in called
    }
    assert len(concerned) > 9
    assert concerned - imported(backend, every, set()) == set()
