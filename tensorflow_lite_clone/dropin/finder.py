"""What ``import torch.x`` finds: the module of this package that has the same place."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tensorflow_lite_clone import _absent
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.parameter import Parameter

#: Packages that programs import, and what stands for them.
STANDS_FOR = {"torch": "tensorflow_lite_clone", "torchvision": "tensorflow_lite_clone.vision"}

#: Where classes and functions lie in the same places as PyTorch's.
_SAME_PLACES = ("torch.nn.", "torch.optim.", "torch.utils.", "torch.distributions.", "torchvision.")

#: A folder with a `torch` and a `torchvision` that call `install_as_torch`, and the metadata that
#: `importlib.metadata` reads. On the path of another process it does there what was done here.
PATH = Path(__file__).parent / "path"


def _real_name(name: str) -> str | None:
    """`tensorflow_lite_clone.nn` for `torch.nn`; None for what no part of this package is."""
    root, dot, rest = name.partition(".")
    return STANDS_FOR[root] + dot + rest if root in STANDS_FOR else None


def _torch_name(name: str) -> str | None:
    """`torch.nn` for `tensorflow_lite_clone.nn`, as for `torch.nn` itself; None for all else."""
    if name.partition(".")[0] in STANDS_FOR:
        return name
    for root, real in reversed(STANDS_FOR.items()):
        if name == real or name.startswith(real + "."):
            return root + name.removeprefix(real)
    return None


def _share(real: str) -> None:
    """Enter the module `real` of this package under PyTorch's name, too.

    An import that finds its module loaded leaves the parent's attributes alone. This matters where
    a function and a file have one name, as `torch.nn.utils.weight_norm`.
    """
    name = _torch_name(real)
    if name and name != real:
        module = sys.modules[name] = sys.modules[real]
        if name.startswith(_SAME_PLACES):
            _name_members(module, name)


def _name_members(module: ModuleType, name: str) -> None:
    """Let a module's classes and functions say, also in pickles, that they are in PyTorch's."""
    for value in vars(module).values():
        if isinstance(value, (type, FunctionType)) and value.__module__ == module.__name__:
            value.__module__ = name


class _Loader(Loader):
    """Loads `torch.x` by importing the module that stands for it."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what is in sys.modules now for the module that it asked for.
        sys.modules[module.__name__] = importlib.import_module(self.real)

    def get_code(self, name: str) -> CodeType | None:
        """The code of the module, for ``python -m torch.x``."""
        spec = importlib.util.find_spec(self.real)
        loader: Any = spec and spec.loader
        return loader.get_code(self.real)


def _is_only_asked_for() -> bool:
    """Whether the finder's caller wants to know if there is a module, not to import it."""
    return sys._getframe(3).f_code.co_name != "_find_and_load_unlocked"


class _OwnLoader(SourceFileLoader):
    """Loads a module of this package, and shares it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _share(module.__name__)


class Finder(MetaPathFinder):
    """Finds `torch.x` and says of names that are missing why they are."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        real = _real_name(name)
        if real is None:
            return _own_spec(name, path) if _torch_name(name) else None
        if real not in sys.modules:
            found = importlib.util.find_spec(real)
            if found is None:
                if _is_only_asked_for():
                    return None
                raise missing_module(name)
            package = found.submodule_search_locations is not None
        else:
            package = hasattr(sys.modules[real], "__path__")
        return ModuleSpec(name, _Loader(real), origin=real, is_package=package)


def _own_spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path)
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _OwnLoader(spec.loader.name, spec.loader.path)
    return spec


class Absent(MetaPathFinder):
    """The last finder: ``from torch.nn import x`` looks for a module `x` when all else failed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if _torch_name(name) and not _is_only_asked_for():
            raise missing_module(name)
        return None


def missing_module(name: str) -> ModuleNotFoundError:
    """What importing `name`, which PyTorch may have, raises."""
    asked = _torch_name(name) or name
    message = f"No module or name '{asked}' in {__package__.partition('.')[0]}"
    # With `name` itself in the error, ``from torch import x`` would replace it by one that says
    # less.
    return ModuleNotFoundError(f"{message} ({_absent.reason(asked)})", name=asked + " ")


def explain(error: BaseException) -> None:
    """Add to an error about a name that a module or a tensor lacks why it lacks it."""
    name = ""
    if isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError):
        module = _torch_name(error.name or "")
        lacking = str(error).split("'")
        if module and len(lacking) > 1:
            name = f"{module}.{lacking[1]}"
    elif isinstance(error, AttributeError) and type(error.obj).__name__ == "Tensor":
        name = f"torch.Tensor.{error.name}"
    if name:
        error.add_note(f"{name}: {_absent.reason(name)}")


def _is_stand_in(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", "")).startswith(str(PATH))


def install_as_torch() -> None:
    """Make ``import torch`` and ``import torchvision`` mean this package.

    This holds for all modules of this process from now on, and for Python processes that it starts
    (through the environment variable ``PYTHONPATH``). An installed PyTorch is never imported. A
    name that is missing raises an error that says whether it is planned, left out or unknown.

    Raises:
        RuntimeError: PyTorch or torchvision has been imported already.
    """
    for root, real in STANDS_FOR.items():
        module = sys.modules.get(root)
        if module not in (None, sys.modules.get(real)) and not _is_stand_in(module):
            raise RuntimeError(
                f"{root} is already imported from {getattr(module, '__file__', 'somewhere')}: "
                "install_as_torch() must come before"
            )
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, Finder())
    sys.meta_path.append(Absent())
    sys.modules.pop("torchvision", None)
    for kind, place, word in (
        (Tensor, "torch", "Tensor"),
        (Size, "torch", "Size"),
        (DType, "torch", "dtype"),
        (Device, "torch", "device"),
        (Parameter, "torch.nn.parameter", "Parameter"),
    ):
        kind.__module__, kind.__qualname__ = place, word
    for name in list(sys.modules):
        _share(name)
    sys.modules[STANDS_FOR["torch"]].__name__ = "torch"  # packages look names up below it
    stand_ins = str(PATH)
    if stand_ins not in sys.path:
        sys.path.insert(0, stand_ins)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if stand_ins not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([stand_ins, *filter(None, paths)])
    _explain_uncaught()


def _explain_uncaught() -> None:
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        explain(error)
        previous(kind, error, trace)

    sys.excepthook = hook
