"""Imports run downwards only, and each outside library stays in its room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, imports, module_name, modules

# From the bottom up. A room may import the rooms of lower layers, never one above it or beside it.
LAYERS: list[set[str]] = [
    {"_command", "absent_devices", "core", "futures", "version"},
    {"dispatch", "torch_version"},
    {"kernels"},
    {"backends"},
    {"storage"},
    {"tensor"},
    {"autograd"},
    {"ops"},
    {"array_api", "_bind"},
    {
        "fft",
        "functional",
        "linalg",
        "masked",
        "python_dispatch",
        "quasirandom",
        "return_types",
        "signal",
        "sparse",
        "special",
    },  # fmt: skip
    {"cuda", "distributions", "multiprocessing", "nn", "optim", "random", "serialization"},
    {"hub"},
    {"utils"},
    {"cpu", "testing", "types"},
    {"accelerator"},
    {"amp", "compiler", "func", "jit", "library", "overrides"},
    {"_subclasses"},
    {"fx"},
    {"compiler", "distributed", "onnx", "profiler", "viz", "vision", "watch"},
    {
        "_C",
        "_utils",
        "__config__",
        "__future__",
        "_dynamo",
        "_functorch",
        "_inductor",
        "_jit_internal",
        "_ops",
        "_tensor_str",
    },
    {"dropin"},
    {"__init__"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

# (from, to): a room that may import one beside or above it, and why.
ALLOWED: dict[tuple[str, str], str] = {
    ("autograd", "profiler"): "torch.autograd.profiler is an older name of parts of torch.profiler",
    ("cuda", "amp"): "torch.cuda.amp is an older name of parts of torch.amp",
    ("dropin", "__init__"): "what stands for PyTorch on the path of a process starts the package",
    ("cuda", "nn"): "torch.cuda.comm is an older name of torch.nn.parallel.comm",
    ("nn", "accelerator"): "DataParallel is on the devices that there are",
    ("nn", "distributed"): "DistributedDataParallel is in the group that there is",
    ("nn", "func"): "gradients per sample and functions of scores are mapped calls",
    ("optim", "nn"): "optim.swa_utils averages modules",
    ("nn", "linalg"): "orthogonal initial values need a QR decomposition",
}

# Outside library -> the rooms that may import it.
OUTSIDE = {
    "cupy": ("backends.cupy",),
    "cupy_backends": ("backends.cupy",),
    "cupyx": ("backends.cupy",),
    "einops": ("utils.einops",),
    "numpy": (
        "backends.numpy", "backends.numba", "backends.cupy", "backends.meta", "onnx",
        "serialization", "utils.data", "utils.runs", "utils.tensorboard", "vision",
    ),
    "ml_dtypes": ("backends.numpy", "backends.cupy", "serialization"),
    "numba": ("backends.numba.kernels",),
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
    },
    "tensorflow_lite_clone.nn.init": {
        "tensorflow_lite_clone.linalg": "needed by orthogonal initial values only",
    },
    "tensorflow_lite_clone.nn.modules.batchnorm": {
        "tensorflow_lite_clone.distributed.sync_batch_norm": "needed where there is a group only",
    },
    "tensorflow_lite_clone.nn.attention._block_mask": {
        "tensorflow_lite_clone.func": "vmap lies above, and is needed by few",
    },
    "tensorflow_lite_clone.nn.utils._per_sample_grad": {
        "tensorflow_lite_clone.func": "vmap lies above, and is needed by few",
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
    "tensorflow_lite_clone.vision.datasets.utils": {
        "tensorflow_lite_clone.vision._download": "HTTP is slow to import",
    },
}
# These may be imported where they are used, by any module: optional extras, and one that few need.
EXTRAS = {
    "matplotlib", "mpi4py", "tabulate", "tqdm", "cupy", "PIL", "rich", "scipy", "threadpoolctl",
}  # fmt: skip


def room(module: str) -> str:
    """The room a module of the package lives in: the name below the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def inside(module: str, places: tuple[str, ...]) -> bool:
    """Whether a module is one of `places` or lies below one."""
    return any(f"{module}.".startswith(f"{PACKAGE}.{place}.") for place in places)


def problems(module: str, path: Path, known: set[str]) -> list[str]:
    """What is wrong with a module's imports, a line each."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    own = room(module)
    if own not in LEVEL:
        return [f"{module}: the room {own!r} has no place in LAYERS"]
    found = []
    for target, line, local, typing in imports(path.read_text(), package, known):
        where = f"{path.name}:{line} ({module}) imports {target}"
        library = target.partition(".")[0]
        if library in OUTSIDE and not typing and not inside(module, OUTSIDE[library]):
            found.append(f"{where}, which is allowed in {OUTSIDE[library] or 'no room'} only")
        if library == PACKAGE and not typing:
            other = room(target)
            if other != own and LEVEL.get(other, 99) >= LEVEL[own] and (own, other) not in ALLOWED:
                found.append(f"{where}: {own} lies below or beside {other}")
        if local and library not in EXTRAS and target not in LOCAL.get(module, {}):
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
    assert len(found) == 1
    assert expected in found[0]


def test_imports_for_types_only_are_free(tmp_path: Path) -> None:
    path = tmp_path / PACKAGE / "core" / "shape.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..tensor import Tensor\n"
    )
    assert problems(f"{PACKAGE}.core.shape", path, set()) == []


def test_every_exception_is_in_use() -> None:
    stale = [
        f"{module} no longer imports {target} inside a function"
        for module, targets in LOCAL.items()
        for target in targets
        if not any(
            found.local and found.module == target
            for found in imports(
                MODULES[module].read_text(),
                module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0],
                set(MODULES),
            )
        )
    ]
    assert stale == []
