"""What holds for every test: the device, the seeds, the number of threads."""

from __future__ import annotations

import os

# Before NumPy is first imported: two threads a process, so that runs side by side do not fight.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")
os.environ.setdefault("MPLBACKEND", "agg")
# The package asks once, too, whether Numba is to compile kernels for the CPU.
os.environ["TENSORFLOW_LITE_CLONE_NUMBA"] = str(int(os.environ.get("DEVICE") == "numba"))
# SciPy asks once, when it is first imported, whether it is to serve other arrays than NumPy's.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import gc  # noqa: E402
import importlib.metadata  # noqa: E402
import importlib.util  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from types import ModuleType  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import tensorflow_lite_clone as tlc  # noqa: E402
from tests.device import ACCELERATED, DEVICE  # noqa: E402
from tests.expected_skips import (  # noqa: E402
    PINNED,
    differs_by_version,
    skip_reason,
    torch_is_pinned,
)

# A shell ignores interrupts for what it runs in the background, and whatever a process starts
# inherits that: tests that interrupt programs would wait in vain.
signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("WITHOUT") == "scipy":
    sys.modules["scipy"] = None  # as if it were not installed
if DEVICE == "cuda":
    # The oracle computes in float32; what TF32 does is tested in tests/kernels.
    tlc.backends.cudnn.allow_tf32 = False
if DEVICE == "strict":
    import tests.strict_backend  # noqa: F401
if ACCELERATED:
    from tensorflow_lite_clone.backends.numba import norms
    from tensorflow_lite_clone.backends.numpy.tuning import tuning
    from tensorflow_lite_clone.dispatch.table import min_sizes

    # The tests' arrays are small, and few.
    tuning.compiled_after = 0
    min_sizes.update({key: 1 for key in min_sizes if key[1] == "numba"})
    norms.LEAST_SPACE = 1


def pytest_collection_finish() -> None:
    """Keep the two million objects that describe the tests out of later garbage collections."""
    gc.freeze()


def pytest_report_header() -> str:
    """Say which device is tested, and whether SciPy is there."""
    scipy = "with" if importlib.util.find_spec("scipy") else "without"
    return f"device: {DEVICE}{' and Numba' * ACCELERATED}, {scipy} SciPy"


def why_no_gpu(wanted: int = 1) -> str | None:
    """Why so many GPUs are not here, or None. It asks CuPy, so that our own faults do not hide."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy  # an optional extra

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU: {error}"
    if count < wanted:
        return f"CuPy finds {count} GPU, and {wanted} are needed" if count else "CuPy finds no GPU"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none: tests marked `cuda`, all with DEVICE=cuda; and
    what needs two, marked `multi_gpu`."""
    everything = DEVICE == "cuda"
    needing = [item for item in items if everything or item.get_closest_marker("cuda")]
    if needing and (reason := why_no_gpu()):
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=reason))
    several = [item for item in items if item.get_closest_marker("multi_gpu")]
    if several and (reason := why_no_gpu(2)):
        for item in several:
            item.add_marker(pytest.mark.skip(reason=reason))
    for item in items:
        if reason := skip_reason(item.nodeid, DEVICE):
            item.add_marker(pytest.mark.skip(reason=reason))
        if what := differs_by_version(item.nodeid):
            item.add_marker("pinned_torch")
            if not torch_is_pinned():
                item.add_marker(pytest.mark.skip(reason=f"PyTorch is not {PINNED}: {what}"))


@pytest.fixture
def device() -> str:
    """The device under test, for tests written with fixtures."""
    return DEVICE


UNCHANGED = {"grad mode": True, "default dtype": "torch.float32", "hooks of all modules": False}


def global_state(lib: ModuleType) -> dict[str, object]:
    """What a test may change for those after it, as `UNCHANGED` names it."""
    return {
        "grad mode": lib.is_grad_enabled(),
        "default dtype": str(lib.get_default_dtype()),
        "hooks of all modules": bool(lib.nn.modules.module._has_any_global_hook()),
    }


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Seed every generator, and make a test that leaves global state changed fail."""
    random.seed(0)
    np.random.seed(0)
    tlc.manual_seed(0)
    if torch := sys.modules.get("torch"):  # the oracle is not imported for tests without one
        torch.manual_seed(0)
    yield
    if DEVICE == "cuda":
        tlc.cuda.synchronize()  # a value out of range belongs to this test
    states = {lib.__name__: global_state(lib) for lib in (tlc, torch) if lib}
    for lib in filter(None, (tlc, torch)):
        lib.set_grad_enabled(True)
        lib.set_default_dtype(lib.float32)
    for name, state in states.items():
        assert state == UNCHANGED, f"the test left global state of {name} changed"
