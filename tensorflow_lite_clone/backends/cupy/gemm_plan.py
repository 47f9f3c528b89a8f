"""What a matrix product needs besides addresses: descriptors, algorithm, handle, workspace."""

from __future__ import annotations

import ctypes
from threading import Lock, get_ident
from typing import Any, NamedTuple

import cupy

from tensorflow_lite_clone.backends.cupy import cublaslt as lt
from tensorflow_lite_clone.backends.cupy.gemm_layout import (
    Ints,
    Matrices,
    Problem,
    arrange,
    mirrored,
)
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.backends.cupy.tuning import tuning

WORKSPACE = 32 << 20  # bytes, what NVIDIA recommends for Hopper
_PER_THREAD_STREAM = 2  # its number is the same in all threads


class Kind(NamedTuple):
    """How products of a dtype are computed."""

    code: int  # cudaDataType
    compute: int
    fast: int  # where TF32 is allowed
    scale: int  # dtype of alpha and beta
    number: Any  # its C type, or pair of numbers
    exact_sums: bool = False  # partial sums must not be rounded to the dtype

    def scalar(self, value: complex) -> Any:
        """alpha or beta in memory."""
        if self.code in (lt.C_32F, lt.C_64F):
            return self.number(complex(value).real, complex(value).imag)
        return self.number(value)


_float, _double = ctypes.c_float, ctypes.c_double
_32F, _64F, _TF32 = lt.COMPUTE_32F, lt.COMPUTE_64F, lt.COMPUTE_32F_FAST_TF32
_NAMED = {
    "float16": Kind(lt.R_16F, _32F, _32F, lt.R_32F, _float, True),
    "bfloat16": Kind(lt.R_16BF, _32F, _32F, lt.R_32F, _float, True),
    "float32": Kind(lt.R_32F, _32F, _TF32, lt.R_32F, _float),
    "float64": Kind(lt.R_64F, _64F, _64F, lt.R_64F, _double),
    "complex64": Kind(lt.C_32F, _32F, _TF32, lt.C_32F, _float * 2),
    "complex128": Kind(lt.C_64F, _64F, _64F, lt.C_64F, _double * 2),
}
KINDS = {native: _NAMED[dtype.name] for dtype, native in NATIVE.items() if dtype.name in _NAMED}
_CONSTANTS = {kind.number: (kind.scalar(1), kind.scalar(0)) for kind in _NAMED.values()}

#: Epilogues of products by name.
EPILOGUES = {
    None: 0,
    "relu": lt.EPILOGUE_RELU,
    "gelu": lt.EPILOGUE_GELU,
    "relu_backward": lt.EPILOGUE_DRELU,
    "gelu_backward": lt.EPILOGUE_DGELU,
    "sums": lt.EPILOGUE_BGRADB,
}


class Device:
    """What all products on one device share."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p(lt.make_handle())
        self.launch = lt.library().cublasLtMatmul
        self.workspaces: dict[Any, Any] = {}
        # Held from the setting of a descriptor's pointers to the launch. The kernels of two
        # threads' products must not alternate on a stream either: they share its workspace.
        self.lock = Lock()

    def workspace(self, stream: int) -> int:
        """The address of the workspace of a stream."""
        key = stream if stream != _PER_THREAD_STREAM else (stream, get_ident())
        try:
            return self.workspaces[key].ptr
        except KeyError:
            memory = self.workspaces[key] = cupy.get_default_memory_pool().malloc(WORKSPACE)
            return memory.ptr


_devices: dict[int, Device] = {}
_making = Lock()
#: (dtype, shapes and strides of x and y, alignment, device, variant, whether TF32 may be used)
plans: dict[tuple, Plan] = {}


def device_state(index: int) -> Device:
    """The state of a device, made when first asked for."""
    state = _devices.get(index)
    if state is None:
        with _making, cupy.cuda.Device(index):
            state = _devices.get(index)
            if state is None:
                state = _devices[index] = Device()
    return state


class Variant(NamedTuple):
    """What a product does beside multiplying."""

    epilogue: str | None = None
    bias: bool = False
    keep: bool = False  # what the epilogue's gradient needs
    addend: int | None = None  # how far apart the rows are of what beta scales
    dtype: Any = None  # the result's, None: the operands'


PLAIN = Variant()
LIKE_THE_RESULT = 0  # said of the rows of an addend


class Plan:
    """A product that can be launched again and again."""

    algorithm: Any = None  # None: cuBLASLt is not used
    operation: Any = None
    arguments: tuple = ()
    swapped = False
    optional = False  # it can be computed in another way
    bias_at = aux_at = 0  # the pointers that the operation's descriptor holds
    parts: tuple = ()  # of a large batch: plans, each followed by the next
    strides = (0, 0, 0)  # bytes from a part to the next in cuBLASLt's A, B and D

    def __init__(self, state: Device, problem: Problem, dtype: Any, variant: Variant) -> None:
        self.state, self.kind = state, KINDS[dtype]
        self.shape, self.x_to, self.y_to = problem.shape, problem.x_to, problem.y_to
        self.rows, self.n = problem.batch * problem.m, problem.n
        self.dtype = dtype if variant.dtype is None else variant.dtype
        # cuBLASLt keeps rows of whole 128 bits of a mask, or of whole 8 elements.
        mask = variant.epilogue in ("relu", "relu_backward")
        self.aux_columns = -(-problem.n // 128) * 16 if mask else -(-problem.n // 8) * 8
        self._layouts: Any = None
        self._answers: list[Any] = []

    def choose(self) -> bool:
        """Take the next best algorithm; False when there is none left."""
        if not self._answers:
            return False
        self._chosen = self._answers.pop(0)
        self.algorithm = ctypes.c_void_p(ctypes.addressof(self._chosen))
        return True

    def fill(self, problem: Problem, variant: Variant, alignment: int, tf32: bool) -> int:
        """Make the descriptors and choose an algorithm; returns the heuristics' status."""
        kind, x, y = self.kind, problem.x, problem.y
        m, n, count = problem.m, problem.n, problem.batch
        assert x is not None and y is not None
        operation = lt.Descriptor("MatmulDesc", kind.fast if tf32 else kind.compute, kind.scale)
        a, b = mirrored(problem) if self.swapped else (y, x)
        operation.set(lt.DESC_TRANSA, ctypes.c_int32(lt.OP_T if a.flipped else lt.OP_N))
        operation.set(lt.DESC_TRANSB, ctypes.c_int32(lt.OP_T if b.flipped else lt.OP_N))
        self._set_epilogue(operation, variant, alignment)
        code = KINDS[self.dtype].code
        result = Matrices(m, 1, m, m, False) if self.swapped else Matrices(n, m, n, m * n, False)
        added = result
        if variant.addend:
            added = result._replace(ld=variant.addend)
        layouts = (
            _layout(kind.code, a, count),
            _layout(kind.code, b, count),
            _layout(code, added, count),
            _layout(code, result, count),
        )
        one, zero = _CONSTANTS[kind.number]
        self.operation, self._layouts = operation, layouts
        self.arguments = tuple(
            ctypes.c_void_p(address)
            for address in (
                operation.address,
                ctypes.addressof(one),
                ctypes.addressof(zero),
                *(layout.address for layout in layouts),
            )
        )
        status, self._answers = lt.heuristics(
            self.state.handle.value or 0,
            operation,
            layouts,
            workspace=WORKSPACE,
            alignment=alignment,
            exact_sums=kind.exact_sums,
        )
        self.choose()
        return status

    def _set_epilogue(self, operation: Any, variant: Variant, alignment: int) -> None:
        number = EPILOGUES[variant.epilogue]
        number |= lt.EPILOGUE_BIAS * variant.bias | lt.EPILOGUE_AUX * variant.keep
        if not number:
            return
        operation.set(lt.DESC_EPILOGUE, ctypes.c_uint32(number))
        # The heuristics look at addresses for their alignment, and do not read what is there.
        place = ctypes.c_uint64((1 << 40) + alignment)
        if variant.bias or variant.epilogue == "sums":
            operation.set(lt.DESC_BIAS_POINTER, place)
            self.bias_at = place.value
        if number & lt.EPILOGUE_AUX:
            mask = variant.epilogue in ("relu", "relu_backward")
            ld = self.aux_columns * 8 if mask else self.aux_columns
            operation.set(lt.DESC_EPILOGUE_AUX_POINTER, place)
            operation.set(lt.DESC_EPILOGUE_AUX_LD, ctypes.c_int64(ld))
            self.aux_at = place.value


def make_plan(key: tuple) -> Plan:
    """The plan of a key, made by one thread at a time and kept."""
    state = device_state(key[6])
    with _making:
        plan = plans.get(key)
        if plan is None:
            plan = _make(key, state)
            if plan.optional and plan.algorithm is None and capturing():
                return plan  # with a chance to be fused later
            if len(plans) >= tuning.gemm_plans:
                del plans[next(iter(plans))]
            plans[key] = plan
    return plan


def _make(key: tuple, state: Device) -> Plan:
    dtype, x_shape, x_strides, y_shape, y_strides, alignment, _, variant, tf32 = key
    x_steps, y_steps = _elements(x_strides, dtype.itemsize), _elements(y_strides, dtype.itemsize)
    problem = arrange(x_shape, x_steps, y_shape, y_steps)
    plan = Plan(state, problem, dtype, variant)
    plan.swapped = problem.n == 1 and problem.m > 1 and variant == PLAIN
    if problem.x is None:
        return plan
    plan.optional = bool(variant.epilogue or variant.bias or variant.dtype is not None)
    separate = variant.keep or variant.epilogue in ("relu_backward", "gelu_backward", "sums")
    if separate and problem.batch > 1:
        return plan
    if problem.batch > tuning.gemm_matrices:
        status = _divide(plan, problem, dtype, variant, alignment, tf32)
    else:
        status = plan.fill(problem, variant, alignment, tf32)
    if plan.algorithm is None and not plan.optional:
        hint = ""
        if capturing():
            hint = "; while a stream is captured only products that ran before can be queued"
        raise RuntimeError(
            f"cuBLASLt has no algorithm for the product of {dtype} arrays of shapes {x_shape} and "
            f"{y_shape}, strides {x_strides} and {y_strides}: {lt.status_name(status)}{hint}"
        )
    return plan


def _divide(
    plan: Plan, problem: Problem, dtype: Any, variant: Variant, alignment: int, tf32: bool
) -> int:
    """Give the plan of a large batch its parts; returns the heuristics' status."""
    whole, rest = divmod(problem.batch, tuning.gemm_matrices)
    status, made = 0, []
    for count in (tuning.gemm_matrices, rest):
        part = Plan(plan.state, problem._replace(batch=max(1, count)), dtype, variant)
        part.swapped, part.optional = plan.swapped, plan.optional
        status = part.fill(problem._replace(batch=max(1, count)), variant, alignment, tf32)
        if part.algorithm is None:
            return status
        made.append(part)
    x, y = problem.x, problem.y
    assert x is not None and y is not None
    a, b = (x, y) if plan.swapped else (y, x)
    size = tuning.gemm_matrices * dtype.itemsize
    out_size = tuning.gemm_matrices * plan.dtype.itemsize * problem.m * problem.n
    plan.parts = (made[0],) * whole + (made[1],) * bool(rest)
    plan.strides = (size * a.stride, size * b.stride, out_size)
    plan.algorithm = made[0].algorithm
    return status


def _elements(strides: Ints, itemsize: int) -> Ints:
    """Strides in elements; -1, which no product reads, where they are no whole number."""
    return tuple([-1 if stride % itemsize else stride // itemsize for stride in strides])


def _layout(code: int, matrices: Matrices, count: int) -> lt.Descriptor:
    return lt.matrix(code, *matrices[:3], count, matrices.stride)


def capturing() -> bool:
    """Whether the current stream is being captured."""
    return cupy.cuda.get_current_stream().is_capturing()
