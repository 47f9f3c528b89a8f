"""Every kernel has a launcher, and launchers fit their kernels."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.kernels import Kernel
from tensorflow_lite_clone.kernels.header import kernel_names
from tensorflow_lite_clone.kernels.signature import C_TYPES, parameters, template_parameters
from tests.kernels.header import KERNELS, instances, own_kernels
from tests.tools.markdown import ROOT

FOLDER = ROOT / "tensorflow_lite_clone" / "backends" / "cupy"
needs_cupy = pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"
)


def pattern(node: ast.expr, constants: dict[str, str]) -> str:
    """A regular expression for what an expression of text may be."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    if isinstance(node, ast.Name) and node.id in constants:
        return re.escape(constants[node.id])
    if isinstance(node, ast.JoinedStr):
        return "".join(pattern(value, constants) for value in node.values)
    if isinstance(node, ast.FormattedValue):
        return r"\w+"
    return r"(?!)"  # nothing: a launcher says what it launches


def launched(source: str) -> list[tuple[str, str]]:
    """Patterns of file and name for each ``Kernel(file, name)`` in a module's text."""
    tree = ast.parse(source)
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    return [
        (pattern(node.args[0], constants), pattern(node.args[1], constants))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Kernel"
        and len(node.args) == 2
    ]


def without_launcher(files: dict[str, str], sources: list[str]) -> list[str]:
    """The kernels of files (name -> text) that no module launches."""
    known = [entry for source in sources for entry in launched(source)]
    return [
        f"{file}: {name}"
        for file, text in files.items()
        for name in kernel_names(text)
        if not any(re.fullmatch(f, file) and re.fullmatch(n, name) for f, n in known)
    ]


def test_every_kernel_has_a_launcher() -> None:
    files = {path.name: path.read_text() for path in own_kernels()}
    sources = [path.read_text() for path in sorted(FOLDER.rglob("*.py"))]
    assert without_launcher(files, sources) == []


def test_a_kernel_without_a_launcher_is_noticed() -> None:
    files = {"a.cu": "__global__ void f() {}\n__global__ void g_long() {}", "b.cu": ""}
    assert without_launcher(files, ['_F = "a.cu"\nKernel(_F, "f")\nKernel(_F, f"g_{x}")']) == []
    assert without_launcher(files, ['Kernel("b.cu", "f")\nKernel("a.cu", f"g_{x}")']) == ["a.cu: f"]


def own_launchers() -> list[Kernel]:
    """Every `Kernel` of the package; for tests that need CuPy."""
    for path in sorted(FOLDER.rglob("*.py")):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        importlib.import_module(".".join(("tensorflow_lite_clone.backends.cupy", *parts)))
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) is Kernel and (KERNELS / thing.file).is_file()
    ]


@needs_cupy
def test_launchers_name_the_template_parameters() -> None:
    wrong = []
    for kernel in own_launchers():
        declared = template_parameters(kernel.source.text, kernel.name)
        names = tuple(name for name, _ in declared)
        if kernel.params != names:
            wrong.append(f"{kernel.file} {kernel.name}<{names}>: launched as {kernel.params}")
    assert wrong == []


def test_signatures_of_the_declared_instances_can_be_read() -> None:
    wrong = []
    for path in own_kernels():
        text = path.read_text()
        structs = set(re.findall(r"\bstruct\s+(?:alignas\(.*?\)\s+)?(\w+)", _with_headers(path)))
        for name, _, _ in instances(text):
            kernel, _, arguments = name.removesuffix(">").partition("<")
            for parameter in parameters(text, kernel, re.split(r",\s*", arguments)):
                known = parameter.type in C_TYPES.values()
                if not (known or parameter.pointer or parameter.type.split("<")[0] in structs):
                    wrong.append(f"{path.name} {name}: {parameter}")
    assert wrong == []


def _with_headers(path: Path) -> str:
    return Kernel(path, "any").source.text


@needs_cupy
def test_data_movement_is_not_upcast() -> None:
    from tensorflow_lite_clone.backends.cupy.backend import CupyBackend

    adapted = CupyBackend.adapted
    body = lambda x: x
    for name in ("transfer", "clone", "permute", "mul"):
        same = adapted(None, TABLE[name], body) is body  # type: ignore[arg-type]
        assert same == (name != "mul")
