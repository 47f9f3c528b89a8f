"""Autocast: floating inputs of ops are cast before the ops are recorded, by lists of ops.

`apply` and the entry of products ask `active` first, so that without autocast it costs one truth
test. Ops on the lower list run in the chosen two-byte dtype, ops on the wide list in float32, ops
on the list of equals in the widest dtype of their inputs; all others in what they are given. The
lists are PyTorch's (its documentation, "Automatic Mixed Precision package").
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import DType, float32

_PRODUCTS = "addmm attention baddbmm bmm conv conv_transpose linear mm prelu"
#: Device type -> ops that run in the chosen dtype.
LOWER = {
    "cuda": frozenset(f"{_PRODUCTS} mv gru_cell_step lstm_cell_step".split()),
    "cpu": frozenset(_PRODUCTS.split()),
}
_LOSSES = """
    binary_cross_entropy_with_logits cross_entropy huber_loss kl_div l1_loss mse_loss nll_loss
    smooth_l1_loss
"""
#: Device type -> ops that run in float32. The CPU's list is shorter, as in PyTorch.
WIDE = {
    "cuda": frozenset(
        f"""
        {_LOSSES}
        acos asin cosh cumprod cumsum erfinv exp expm1 group_norm layer_norm log log10 log1p log2
        log_softmax logsumexp pow pow_scalar prod reciprocal rsqrt sinh softmax softplus sum tan
        vector_norm
        """.split()
    ),
    "cpu": frozenset(
        f"""
        {_LOSSES}
        binary_cross_entropy det eig eigh fft_c2c fft_c2r fft_r2c geqrf householder_product inv
        ormqr qr svd view_as_complex
        """.split()
    ),
}
EQUAL = frozenset("addcdiv addcmul atan2 cat dot index_put linalg_cross scatter_add stack".split())

#: Not empty while a block with autocast is open: the state is asked for only then.
active: list[str] = []


class _State:
    """Per device type the dtype of a block with autocast; casts of leaves made in it."""

    __slots__ = ("cache", "caching", "depth", "dtypes")

    def __init__(self) -> None:
        self.dtypes: dict[str, DType] = {}
        self.caching = True
        self.depth = 0
        self.cache: dict[int, tuple[Any, Any]] = {}


state = _State()


def set_dtypes(dtypes: dict[str, DType]) -> None:
    """Let autocast be on for exactly these device types."""
    state.dtypes = dtypes
    active[:] = list(dtypes)


#: Put here when they are defined: "cast", ops' cast(tensor, dtype), and "weight", that of weights
#: of convolutions.
casters: dict[str, Any] = {}


def cast_inputs(op: Any, inputs: tuple) -> tuple:
    """The inputs of an op as autocast wants them."""
    name = op.name
    if name in EQUAL:
        return _as_widest(inputs)
    return tuple([None if x is None else _cast(x, name) for x in inputs])


def float32_on_cpu(*inputs: Any) -> tuple:
    """The tensors given to a function that autocast runs in float32, on the CPU alone.

    For functions that look at dtypes before an op runs.
    """
    if "cpu" not in state.dtypes:
        return inputs
    return tuple(
        [
            casters["cast"](x, float32)
            if x.dtype.kind == "f" and x.dtype.itemsize == 2 and x.device.type == "cpu"
            else x
            for x in inputs
        ]
    )


def _cast(x: Any, name: str) -> Any:
    dtype, device = x.dtype, x._storage.backend.device.type
    wanted = state.dtypes.get(device)
    if wanted is None or dtype.kind != "f" or dtype.itemsize == 8:
        return x
    if name not in LOWER[device]:
        return casters["cast"](x, float32) if name in WIDE[device] else x
    if dtype is wanted:
        return x
    if not (state.caching and mode.grad and x.is_leaf and x.requires_grad and dtype is float32):
        return casters["cast"](x, wanted)
    kept = state.cache.get(id(x))
    if kept is None:
        caster = casters["weight" if x.ndim == 4 and name == "conv" else "cast"]
        kept = state.cache[id(x)] = x, caster(x, wanted)
    return kept[1]


def _as_widest(inputs: tuple) -> tuple:
    floats = [x for x in inputs if x is not None and x.dtype.kind == "f"]
    if not floats or floats[0]._storage.backend.device.type not in state.dtypes:
        return inputs
    dtypes = {x.dtype for x in floats}
    if len(dtypes) < 2:
        return inputs
    widest = max(dtypes, key=lambda dtype: dtype.itemsize)
    if widest.itemsize == 2:  # float16 beside bfloat16
        widest = float32
    return tuple(
        [casters["cast"](x, widest) if x is not None and x.dtype.kind == "f" else x for x in inputs]
    )
