"""Imports run downwards only, and each outside library stays in its room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.sources import (
    PACKAGE,
    WILDCARD,
    all_imports,
    arrows,
    arrows_of_packages,
    circles,
    imports,
    is_lazy_loading,
    module_name,
    modules,
    package_of,
    trees,
)

# From the bottom up. A room may import the rooms of lower layers, never one above it or beside it.
# A part of a room that is made of rooms above it, where PyTorch's names put it, stands there, too.
LAYERS: list[set[str]] = [
    {"_absent", "_command", "core", "futures", "version"},
    {"_tensor_str", "dispatch", "torch_version"},
    {"trace"},
    {"fuse"},
    {"kernels"},
    {"backends"},
    {"kernels.check", "kernels.listing", "storage"},
    {"kernels.__main__"},
    {"tensor"},
    {"autograd"},
    {"ops"},
    {"array_api", "_bind", "autograd.graph", "autograd.levels"},
    {
        "autograd.forward_ad",
        "autograd.functional",
        "fft",
        "functional",
        "linalg",
        "masked",
        "python_dispatch",
        "quantized",
        "quasirandom",
        "return_types",
        "signal",
        "sparse",
        "special",
    },  # fmt: skip
    {"cpu", "cuda", "distributions", "multiprocessing", "random", "serialization"},
    {"accelerator"},
    {"nn"},
    {"optim"},
    {"ao"},
    {"hub"},
    {"utils"},
    {"testing"},
    {"amp", "func", "jit", "library", "overrides"},
    {"_subclasses"},
    {"compiler.dynamo.errors", "fx"},
    {"export"},
    {
        "compiler",
        "distributed",
        "onnx",
        "profiler",
        "utils.tensorboard",
        "viz",
        "vision",
        "watch",
    },
    {"nn.parallel.distributed"},
    {"distributed.checkpoint", "distributed.pipelining"},
    {"compat"},
    {"dropin"},
    {"__init__"},
    {"__main__", "dropin.path"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

# (from, to): a room that may import one beside or above it, and why. What lies above is called by
# `core.late_bound`, or registers itself with what lies below.
ALLOWED: dict[tuple[str, str], str] = {}

# Outside library -> the rooms that may import it.
OUTSIDE = {
    "cupy": ("backends.cupy",),
    "cupy_backends": ("backends.cupy",),
    "cupyx": ("backends.cupy",),
    "einops": ("utils.einops",),
    "numpy": (
        "backends.numpy", "backends.numba", "backends.cupy", "backends.meta", "fuse", "onnx",
        "serialization", "utils.data", "utils.runs", "utils.tensorboard", "vision",
    ),
    "ml_dtypes": ("backends.numpy", "backends.cupy", "serialization"),
    "numba": ("backends.numba.kernels", "backends.numba.layer"),
    "llvmlite": ("backends.numba.kernels",),
    "torch": (),
    "scipy": ("backends.numpy", "vision.datasets.svhn"),
    "tensorboard": ("utils.tensorboard",),
}  # fmt: skip

# Modules that may import inside functions: module -> {what: why}.
LOCAL: dict[str, dict[str, str]] = {
    "tensorflow_lite_clone.dropin.run": {
        "tensorflow_lite_clone.utils.collect_env": "programs start without it",
        "tensorflow_lite_clone.watch.command": "programs start without it",
        "tensorflow_lite_clone.dropin.packages": "programs start without it",
    },
    "tensorflow_lite_clone.nn.init": {
        "tensorflow_lite_clone.linalg": "needed by orthogonal initial values only",
    },
    "tensorflow_lite_clone.backends": {
        "importlib.metadata": "slow, and needed for devices of other packages only",
    },
    "tensorflow_lite_clone.backends.numpy.backend": {
        "tensorflow_lite_clone.backends.numpy.random": "numpy.random is a tenth of the start-up",
        "tensorflow_lite_clone.backends.numpy.shared": "multiprocessing is slow to import",
        "tensorflow_lite_clone.backends.numpy.graphs": "needed once something is compiled",
        "tensorflow_lite_clone.backends.numpy.recording": "needed while something is captured",
    },
    "tensorflow_lite_clone.backends.numpy.primitives.incomplete_gamma": {
        "fractions": "imports decimal, and is needed for one function only",
    },
    "tensorflow_lite_clone.backends.numpy.tiles": {
        "tensorflow_lite_clone.backends.numba.chains": "needed where Numba serves only",
    },
    "tensorflow_lite_clone.utils.data.dataloader": {
        "tensorflow_lite_clone.utils.data._multiprocess": "multiprocessing is slow to import",
    },
    "tensorflow_lite_clone.utils.tensorboard.writer": {
        "tensorflow_lite_clone.utils.tensorboard._graph": "exporting is slow to import",
    },
    "tensorflow_lite_clone.vision.datasets.utils": {
        "tensorflow_lite_clone.vision._download": "HTTP is slow to import",
    },
}
# Modules that import others by string: module -> {what, `*` for any: why}. Packages need no entry
# for their own modules: public parts are imported when they are named, so that the face is fast.
BY_STRING: dict[str, dict[str, str]] = {
    "tensorflow_lite_clone.backends": {
        WILDCARD: "the folder of a device is found by the device's name, as are those of others",
    },
    "tensorflow_lite_clone.backends.numba.layer": {
        "numba": "an optional extra",
        WILDCARD: "a module of kernels is imported with Numba, when the first kernel is needed",
    },
    "tensorflow_lite_clone.backends.numpy.loading": {
        "numpy": "imported between settings of its threads, by whoever is first",
    },
    "tensorflow_lite_clone.core.files": {"fcntl": "not on every system"},
    "tensorflow_lite_clone.cuda._devices": {
        "tensorflow_lite_clone.backends.cupy": "needs CuPy",
        "tensorflow_lite_clone.backends.cupy.runtime": "needs CuPy",
    },
    "tensorflow_lite_clone.fx._execution": {
        WILDCARD: "what code of a graph imports below torch",
    },
    "tensorflow_lite_clone.dropin.finder": {
        "tensorflow_lite_clone.vision": "stands for torchvision",
        WILDCARD: "what a program imports below torch",
    },
    "tensorflow_lite_clone.hub": {"hubconf.py": "a file of the user's"},
    "tensorflow_lite_clone.kernels.check": {
        "tensorflow_lite_clone.backends.cupy.nvrtc": "needs CuPy",
    },
    "tensorflow_lite_clone.kernels.listing": {
        "tensorflow_lite_clone.backends.cupy.overrides": "needs CuPy",
    },
    "tensorflow_lite_clone.onnx._program": {WILDCARD: "onnx and onnxruntime, optional extras"},
    "tensorflow_lite_clone.overrides": {
        WILDCARD: "the public namespaces, all of which a program asks for at once",
    },
    "tensorflow_lite_clone.serialization._names": {WILDCARD: "what a checkpoint names"},
}
# These may be imported where they are used, by any module: optional extras, and one that few need.
EXTRAS = {
    "matplotlib", "mpi4py", "tabulate", "tqdm", "cupy", "PIL", "rich", "scipy", "threadpoolctl",
}  # fmt: skip


def room(module: str) -> str:
    """The room a module of the package lives in: the name below the package, or a part of it."""
    parts = module.split(".")[1:] or ["__init__"]
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in LEVEL), parts[0])


def inside(module: str, places: tuple[str, ...]) -> bool:
    """Whether a module is one of `places` or lies below one."""
    return any(f"{module}.".startswith(f"{PACKAGE}.{place}.") for place in places)


def problems(module: str, path: Path, known: set[str]) -> list[str]:
    """What is wrong with a module's imports, a line each."""
    package = package_of(module, path)
    own = room(module)
    if own not in LEVEL:
        return [f"{module}: the room {own!r} has no place in LAYERS"]
    found = []
    for each in imports(ast.parse(path.read_text()), module, package, known):
        target, line, local, typing, string = each
        if is_lazy_loading(module, path, each):
            continue
        how = "imports by string" if string else "imports"
        where = f"{path.name}:{line} ({module}) {how} {target}"
        library = target.partition(".")[0]
        if library in OUTSIDE and not typing and not inside(module, OUTSIDE[library]):
            found.append(f"{where}, which is allowed in {OUTSIDE[library] or 'no room'} only")
        if library == PACKAGE and not typing:
            other = room(target)
            if other != own and LEVEL.get(other, 99) >= LEVEL[own] and (own, other) not in ALLOWED:
                found.append(f"{where}: {own} lies below or beside {other}")
        if string:
            if target not in BY_STRING.get(module, {}):
                found.append(f"{where}, for which BY_STRING has no reason")
        elif local and library not in EXTRAS and target not in LOCAL.get(module, {}):
            found.append(f"{where} inside a function")
    return found


MODULES = modules()


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downwards(module: str) -> None:
    assert problems(module, MODULES[module], set(MODULES)) == []


SAMPLES = {
    "ops.conv": ("from ..nn import Linear\n", "below or beside nn"),
    "nn.linear": ("from ..optim import SGD\n", "below or beside optim"),
    "core.shape": ("import numpy as np\n", "allowed in"),
    "ops.pool": ("import cupy\n", "allowed in"),
    "nn.conv": ("def f():\n    from ..core import shape\n", "inside a function"),
    "storage": ("import tensorflow_lite_clone.tensor\n", "below or beside tensor"),
    "attic.old": ("x = 1\n", "no place in LAYERS"),
    "core": ("from . import device\nfrom .. import ops\n", "below or beside ops"),
    "tensor": ('importlib.import_module("tensorflow_lite_clone.ops")\n', "below or beside ops"),
    "autograd": ('import_module(f"{__package__}.ops.{name}")\n', "below or beside ops"),
    "dispatch": ('LATER = {"sum": "tensorflow_lite_clone.ops"}\n', "below or beside ops"),
    "vision": ("import_module(name)\n", "BY_STRING has no reason"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_wrong_import_is_noticed(name: str, tmp_path: Path) -> None:
    source, expected = SAMPLES[name]
    path = tmp_path / PACKAGE / (name.replace(".", "/") + ".py")
    if name == "core":
        path = path.with_suffix("") / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    known = {f"{PACKAGE}.ops", f"{PACKAGE}.core.device"}
    found = problems(module_name(path, tmp_path), path, known)
    assert len(found) == 1 + (" by string " in found[0] and "BY_STRING" not in found[0])
    assert expected in found[0]


def test_imports_for_types_only_are_free(tmp_path: Path) -> None:
    path = tmp_path / PACKAGE / "core" / "shape.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tensor import Tensor\n"
    )
    assert problems(f"{PACKAGE}.core.shape", path, set()) == []


def test_protocols_are_for_type_checkers_alone() -> None:
    protocols = f"{PACKAGE}.core.protocols"
    importers = {
        (name, found.typing)
        for name in MODULES
        for found in imports(trees()[name], name, name.rpartition(".")[0], set(MODULES))
        if found.module == protocols
    }
    assert importers and all(typing for _, typing in importers), importers


def test_every_exception_is_in_use() -> None:
    stale = (
        [
            f"{module} no longer imports {target} inside a function"
            for module, targets in LOCAL.items()
            for target in targets
            if not any(each.local and each.module == target for each in all_imports()[module])
        ]
        + [
            f"{module} no longer imports {target} by string"
            for module, targets in BY_STRING.items()
            for target in targets
            if not any(each.string and each.module == target for each in all_imports()[module])
        ]
        + [
            f"{low} no longer imports {high}"
            for low, high in ALLOWED
            if not any(
                room(module) == low and room(each.module) == high
                for module, found in all_imports().items()
                for each in found
            )
        ]
    )
    assert stale == []


@pytest.mark.parametrize("strings", [False, True])
def test_no_modules_import_each_other(strings: bool) -> None:
    """At module level; and when imports in functions and by string are counted, too."""
    assert circles(arrows(strings)) == []


def test_no_packages_import_each_other() -> None:
    """But two, whose files lie as PyTorch's do: recurrent layers take what is packed by a utility
    of nn, where others are functions of modules."""
    (circle,) = circles(arrows_of_packages())
    assert {f"{PACKAGE}.nn.modules.rnn", f"{PACKAGE}.nn.utils"} < set(circle)
    assert all([module.startswith(f"{PACKAGE}.nn.") for module in circle])


def test_circles_are_noticed() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(circles(graph)) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}}) == []
