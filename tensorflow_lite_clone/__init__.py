"""A deep-learning framework in pure Python with PyTorch's face.

``import tensorflow_lite_clone as torch``: NumPy arrays on the CPU, CuPy arrays and hand-written
CUDA kernels on the GPU.
"""

from __future__ import annotations

from tensorflow_lite_clone import _command as _command  # isort: skip  (it cleans the path)
from tensorflow_lite_clone.core.gc_control import disable_gc as _disable_gc  # isort: skip

with _disable_gc():  # what is imported stays: looking through it takes a tenth of the time
    from tensorflow_lite_clone import _bind, autograd, ops
    from tensorflow_lite_clone import python_dispatch as _python_dispatch  # noqa: F401  binds

from importlib import import_module as _import_module
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone._tensor_str import set_printoptions
from tensorflow_lite_clone.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tensorflow_lite_clone.core import compat_path as _compat_path
from tensorflow_lite_clone.core import dtypes as _dtypes
from tensorflow_lite_clone.core import late_bound as _late_bound
from tensorflow_lite_clone.core.device import Device as device
from tensorflow_lite_clone.core.device import get_default_device, set_default_device
from tensorflow_lite_clone.core.dtypes import (
    DType as dtype,
)
from tensorflow_lite_clone.core.dtypes import (
    can_cast,
    get_default_dtype,
    promote_types,
    set_default_dtype,
)
from tensorflow_lite_clone.core.errors import AcceleratorError, OutOfMemoryError
from tensorflow_lite_clone.core.limits import finfo, iinfo
from tensorflow_lite_clone.core.public import public as _public
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.torch_version import __version__ as __version__

_compat_path.mount_compat(__path__, __name__)

newaxis = None

if TYPE_CHECKING:  # a function of the face and a package of the same name
    tensor: Any


@_public("method", names=("render",))
def _render(self: Tensor, filename: Any, params: Any = None, **options: Any) -> Any:
    """Draw the graph that made this tensor into a picture file; see `viz.render`."""
    return _import_module(f"{__name__}.viz").render(self, filename, params, **options)


def compile(model: Any = None, **options: Any) -> Any:
    """Capture a function or module in a CUDA graph and replay it; see `compiler.compile`."""
    return _import_module(f"{__name__}.compiler").compile(model, **options)


def install_as_torch() -> None:
    """Make ``import torch`` mean this package; see `dropin.install_as_torch`."""
    _import_module(f"{__name__}.dropin").install_as_torch()


_bind.bind_tensor()
_bind.bind_storage()
globals().update(_dtypes.NAMES, chalf=_dtypes.complex32, complex32=_dtypes.complex32)
globals().update(_bind.names_of("torch"))

#: Parts that are imported when first named, so that the face itself imports fast.
_LAZY = tuple(
    "_C __config__ __future__ _dynamo _functorch _inductor _jit_internal _ops _tensor _utils "
    "accelerator amp ao array_api classes compiler cpu cuda distributed "
    "distributions export fft func functional futures fx hub jit library linalg masked "
    "multiprocessing nn onnx optim overrides profiler quantization quasirandom random "
    "return_types serialization signal sparse special testing types "
    "utils vision viz watch".split()
)


#: Names of the face that live in such a part: the words of autocast.
_AUTOCAST = tuple(
    "autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache "
    "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled "
    "is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled "
    "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
    "set_autocast_gpu_dtype".split()
)
#: Names of the face that live in `sparse`, and where they are there.
_SPARSE = {
    "dsmm": ("sparse", "mm"),
    "spmm": ("sparse", "mm"),
    "sparse_coo_tensor": ("sparse", "sparse_coo_tensor"),
    **{
        f"sparse_{kind}_tensor": ("sparse.construct", f"sparse_{kind}_tensor")
        for kind in ("bsc", "bsr", "compressed", "csc", "csr")
    },
    **{
        name: ("sparse.conversions", name)
        for name in ("_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo")
    },
}
#: Names of the face that live in `quantized`.
_QUANTIZED = tuple(
    "ScriptObject _choose_qparams_per_tensor _empty_affine_quantized "
    "_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor per_channel_affine "
    "per_channel_symmetric per_tensor_affine per_tensor_symmetric qscheme quantize_per_channel "
    "quantize_per_tensor quantize_per_tensor_dynamic".split()
)


def vmap(
    func: Any,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Any:
    """Map a function of one sample over a dimension of its inputs; see `func.vmap`."""
    mapped = _import_module(f"{__name__}.func").vmap
    return mapped(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


def _provide(declared: _late_bound.LateBound, room: str, name: str) -> None:
    """Bind a function of a room that is imported when it is first called."""

    @declared.provide
    def first(*args: Any, **kwargs: Any) -> Any:
        declared.provide(getattr(_import_module(f"{__name__}.{room}"), name))
        return declared(*args, **kwargs)


for _declared, _room, _name in (
    (_late_bound.standard_function, "array_api", "_find"),
    (_late_bound.array_namespace, "array_api", "_namespace"),
    (_late_bound.compile, "compiler", "compile"),
    (_late_bound.vmap, "func", "vmap"),
    (_late_bound.empty_sparse, "sparse.conversions", "empty"),
    (_late_bound.sparse_tensor, "sparse", "SparseTensor"),
    (_late_bound.to_sparse, "sparse.conversions", "from_dense"),
    (_late_bound.compile_kernel, "backends.cupy.kernel", "Instance"),
    (_late_bound.launch_step, "backends.cupy.tensor_lists", "launch_step"),
):
    _provide(_declared, _room, _name)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    if name == "torch":  # PyTorch's face has itself as a name, which packages found
        return _import_module(__name__)
    if name == "get_device_module":
        return _import_module(f"{__name__}.accelerator").get_device_module
    if name in ("load", "save"):
        return getattr(_import_module(f"{__name__}.serialization"), name)
    if name in ("Event", "Stream"):
        return getattr(_import_module(f"{__name__}.cuda"), name)
    if name in ("mps", "mtia", "xpu"):
        return getattr(_import_module(f"{__name__}.absent_devices"), name)
    if name == "Future":
        return _import_module(f"{__name__}.futures").Future
    if name == "GradScaler":
        return _import_module(f"{__name__}.amp").GradScaler
    if name in (
        "DisableTorchFunction",
        "DisableTorchFunctionSubclass",
        "PyTorchFileReader",
        "TensorType",
    ):
        return getattr(_import_module(f"{__name__}._C"), name)
    if name in ("ScriptFunction", "ScriptModule"):
        return getattr(_import_module(f"{__name__}.jit"), name)
    if name in _SPARSE:
        room, attribute = _SPARSE[name]
        return getattr(_import_module(f"{__name__}.{room}"), attribute)
    if name in _QUANTIZED:
        return getattr(_import_module(f"{__name__}.quantized"), name)
    if name in _AUTOCAST:
        return getattr(_import_module(f"{__name__}.amp.autocast"), name)
    raise _import_module(f"{__name__}._absent").error(f"module '{__name__}'", "torch", name)


def __dir__() -> list[str]:
    others = "Event Future GradScaler Stream get_device_module load mps mtia save xpu".split()
    return sorted({*globals(), *_LAZY, *_AUTOCAST, *_QUANTIZED, *_SPARSE, *others})
