"""PyTorch's names of this package's classes, which pickles carry, and the way back."""

from __future__ import annotations

import importlib
from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.qscheme import SCHEMES, QScheme
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.strides import MemoryFormat
from tensorflow_lite_clone.quantized.linear import PackedLinear
from tensorflow_lite_clone.quantized.recurrent import CellParameters
from tensorflow_lite_clone.serialization import _rebuild
from tensorflow_lite_clone.serialization._kinds import KINDS, UNTYPED, StorageKind
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.parameter import Buffer, Parameter
from tensorflow_lite_clone.tensor.uninitialized import UninitializedBuffer, UninitializedParameter

PACKAGE = __name__.partition(".")[0]

#: What stands in nearly every file: PyTorch's names and what they mean here.
KNOWN: dict[tuple[str, str], Any] = {
    ("torch", "Tensor"): Tensor,
    ("torch", "Size"): Size,
    ("torch", "device"): Device,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch.nn.parameter", "Buffer"): Buffer,
    ("torch.storage", "UntypedStorage"): UNTYPED,
    ("torch.serialization", "_get_layout"): _rebuild.layout,
    ("torch._utils", "_rebuild_qtensor"): _rebuild.rebuild_quantized_tensor,
    ("torch._utils", "_rebuild_sparse_tensor"): _rebuild.rebuild_sparse_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild.rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild.rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild.rebuild_tensor_v3,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _rebuild.rebuild_meta_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild.rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild.rebuild_parameter_with_state,
    ("torch._utils", "_rebuild_wrapper_subclass"): _rebuild.rebuild_wrapper_subclass,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild.rebuild_from_type,
}
KNOWN.update({("torch", name): dtype for name, dtype in dtypes.NAMES.items()})
KNOWN.update({("torch", dtype.name): dtype for dtype in (*dtypes.ALL, *dtypes.FLOAT8)})
KNOWN.update({("torch", name): scheme for name, scheme in SCHEMES.items()})
_NAMES = {id(value): key for key, value in KNOWN.items() if not isinstance(value, DType)}
for _class in (UninitializedBuffer, UninitializedParameter):
    _NAMES[id(_class)] = "torch.nn.parameter", _class.__name__
for _packed in (CellParameters, PackedLinear):
    _NAMES[id(_packed)] = "torch", "ScriptObject"
for _kind in KINDS.values():
    KNOWN["torch", _kind.name] = KNOWN["torch.cuda", _kind.name] = _kind

#: Where functions of PyTorch's are that pickles know by their place in its C++ part.
_ALIASES = {"torch._C._nn": "torch.nn.functional"}
#: Classes that PyTorch keeps in another file than this package: file -> names.
_FILES = {
    "torch.nn.modules.loss": "CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss "
    "MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
    "torch.optim": "Adafactor Muon",
}
#: Rooms whose classes PyTorch has in packages of the same names.
_SHARED_ROOMS = (
    "torch.ao.",
    "torch.distributed.checkpoint.",
    "torch.distributions.",
    "torch.nn.",
    "torch.optim.",
    "torch.return_types",
    "torch.utils.",
)
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}


def name_of(value: Any, name: str | None = None) -> tuple[str, str] | None:
    """The module and name under which PyTorch has a global of this package; None for others."""
    key = _NAMES.get(id(value))
    if key is not None:
        return key
    if isinstance(value, (DType, MemoryFormat, QScheme)):
        return "torch", value.name
    if isinstance(value, StorageKind):
        return "torch", value.name
    name = name or getattr(value, "__qualname__", None) or ""
    module = getattr(value, "__module__", None) or ""
    if module.partition(".")[0] not in (PACKAGE, "torch"):  # as `install_as_torch` names classes
        return None
    file = module.replace(PACKAGE, "torch", 1)
    if file.startswith("torch.ops."):
        return _function(value, name)
    if not file.startswith(_SHARED_ROOMS):
        return None
    if file.startswith("torch.optim.lr_scheduler."):
        file = "torch.optim.lr_scheduler"
    elif file.startswith("torch.distributions._transform"):
        file = "torch.distributions.transforms"
    elif file.startswith(("torch.nn.modules", "torch.optim._")):
        file = _FILE_OF.get(name, file)
    try:
        found = find(file, name)
    except (ImportError, AttributeError):
        return None
    return (file, name) if found is value else None


def _function(value: Any, name: str) -> tuple[str, str] | None:
    """The place from which PyTorch exports a function or class, too."""
    for place, file in {"functional": "torch.nn.functional", "torch": "torch"}.items():
        if EXPORTS[place].get(name) is value:
            return file, name
    return None


def find(module: str, name: str) -> Any:
    """What PyTorch's global stands for here, for a module ``torch`` or below it.

    A class may lie in another file here: then the packages around PyTorch's file are searched.
    Raises AttributeError when there is no such name.
    """
    known = KNOWN.get((module, name))
    if known is not None:
        return known
    parts = _ALIASES.get(module, module).split(".")[1:]
    for count in range(len(parts), -1, -1):
        here = ".".join([PACKAGE, *parts[:count]])
        try:
            value: Any = importlib.import_module(here)
        except ModuleNotFoundError as error:
            if not here.startswith(str(error.name)):
                raise
            continue
        try:
            for part in name.split("."):
                value = getattr(value, part)
        except AttributeError:
            continue
        return value
    raise AttributeError(f"Can't get attribute '{name}' on module '{module}': it is not here")


def is_torch(module: str) -> bool:
    """Whether a module of a pickle is one of PyTorch's."""
    return module == "torch" or module.startswith("torch.")


def full_name(value: Any) -> str:
    """The name by which a pickle written here or by PyTorch refers to a class or function."""
    known = name_of(value)
    return ".".join(known or (value.__module__, value.__qualname__))
