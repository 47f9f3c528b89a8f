"""Kernel files: headers put in, edits followed, signatures read, arguments checked."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.kernels import Kernel, KernelError, sources
from tensorflow_lite_clone.kernels.signature import (
    Parameter,
    c_type,
    parameters,
    template_parameters,
)
from tests.kernels.gpu import needs_gpu

needs_cupy = pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"
)

SCALE = """\
#include "factor.cuh"
template <typename T>
__global__ void scale(const T* __restrict__ x, int n, float w, T* __restrict__ y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = T(x[i] * w * FACTOR);
}
"""
FACTOR = "#define FACTOR 2\n"


def edit(path: Path, text: str) -> None:
    """Write a file at a time that differs from that of its last writing."""
    last = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(last + 1_000_000_000, last + 1_000_000_000))


@pytest.fixture
def scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel file with a header, whose edits are noticed at once."""
    monkeypatch.setattr(sources, "_PATIENCE", -1.0)
    edit(tmp_path / "factor.cuh", FACTOR)
    edit(tmp_path / "scale.cu", SCALE)
    return tmp_path / "scale.cu"


# ---- files


def lines(text: str) -> dict[str, tuple[str, int]]:
    """Where each line of a text with #line comes from: line -> (file, number)."""
    found = {}
    file, number = "", 0
    for line in text.splitlines():
        if line.startswith("#line"):
            _, word, name = line.split()
            file, number = name.strip('"'), int(word)
        else:
            found[line] = (file, number)
            number += 1
    return found


def test_headers_stand_where_they_are_included(tmp_path: Path) -> None:
    (tmp_path / "inner.cuh").write_text("int inner;\n")
    (tmp_path / "outer.cuh").write_text('// outer\n#include "inner.cuh"\nint outer;\n')
    path = tmp_path / "a.cu"
    path.write_text(
        '// a\n#include <cuda_fp16.h>\n  # include "outer.cuh" // once\n#include "inner.cuh"\n'
        'int last;\n#include "none.cuh"\n'
    )
    text = sources.source(path).text
    places = lines(text)
    assert places["int inner;"] == ("inner.cuh", 1)
    assert places["int outer;"] == ("outer.cuh", 3)
    assert places["#include <cuda_fp16.h>"] == ("a.cu", 2)
    assert places["int last;"] == ("a.cu", 5)
    assert places['#include "none.cuh"'] == ("a.cu", 6)  # the compiler complains about it
    assert text.count("int inner;") == 1
    assert text.index("int inner;") < text.index("int outer;") < text.index("int last;")


def test_edits_are_noticed(scale: Path) -> None:
    read = sources.source(scale)
    assert read.refresh() == 1
    edit(scale, SCALE.replace("* w", "/ w"))
    assert read.refresh() == 2
    assert "x[i] / w" in read.text
    edit(scale.with_name("factor.cuh"), "#define FACTOR 3\n")
    assert read.refresh() == 3
    assert "#define FACTOR 3" in read.text
    edit(scale, SCALE.replace("* w", "/ w"))  # saved without a change
    assert read.refresh() == 3
    scale.unlink()  # while an editor replaces it
    assert read.refresh() == 3
    edit(scale, SCALE)
    os.utime(scale, ns=(0, 0))
    assert read.refresh() == 4
    assert sources.source(scale) is read


def test_looking_is_rare(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    edit(path, "int a;\n")
    read = sources.source(path)
    edit(path, "int b;\n")
    assert read.refresh() == 1


def test_the_package_has_its_kernels() -> None:
    assert sources.source("softmax.cu").path == sources.package_folder() / "softmax.cu"
    assert "int64_t" in sources.source("softmax.cu").text  # of common.cuh
    with pytest.raises(FileNotFoundError, match="no kernel file 'nowhere.cu' in /.*kernels, /"):
        sources.source("nowhere.cu")
    with pytest.raises(FileNotFoundError, match="no kernel file './nowhere/a.cu' in "):
        sources.source("./nowhere/a.cu")


def test_a_folder_of_the_user_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORFLOW_LITE_CLONE_KERNELS", str(tmp_path))
    (tmp_path / "softmax.cu").write_text('#include "common.cuh"\n#include "mine.cuh"\n')
    (tmp_path / "mine.cuh").write_text("int mine;\n")
    read = sources.source("softmax.cu")
    assert read.path == tmp_path / "softmax.cu"
    places = lines(read.text)
    assert places["int mine;"] == ("mine.cuh", 1)
    assert places["typedef long long int64_t;"][0] == "common.cuh"  # the package's
    assert sources.source("amp.cu").path == sources.package_folder() / "amp.cu"


def test_a_folder_at_work_hides_no_kernel_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax.cu").write_text("int mine;\n")
    (tmp_path / "other.cu").write_text("int other;\n")
    assert sources.source("softmax.cu").path == sources.package_folder() / "softmax.cu"
    assert sources.source("other.cu").path == tmp_path / "other.cu"
    assert sources.source(tmp_path / "softmax.cu").path == tmp_path / "softmax.cu"


# ---- signatures

SIGNATURES = """
// __global__ void commented(int wrong);
template <typename T> struct Other { T value; };
template <typename T, typename A = acc_t<T>, int VEC = 4, bool LAST = (2 > 1)>
__global__ void __launch_bounds__(VEC < 2 ? 128 : 256)
    wide(const T* __restrict__ x, /* the sizes, */ int64_t rows, const int columns,
         const std::uint32_t* flags,  // a, b
         A scale, const __grid_constant__ Pair<T, 4> pair, const T* const* lists,
         T out[], bool last = true);
template <typename T> __global__ void wide_not(T x) {}
extern "C" __global__ void plain() {}
__global__ void numbers(unsigned int a, unsigned long long b, unsigned c, size_t d, half e,
                        float f[4], const void* g) {}
"""


def test_signatures() -> None:
    found = parameters(SIGNATURES, "wide", ("__half",))
    assert [p.name for p in found if p.constant] == ["x", "flags", "lists"]
    assert [p._replace(constant=False) for p in found] == [
        Parameter("x", "__half", True),
        Parameter("rows", "long long", False),
        Parameter("columns", "int", False),
        Parameter("flags", "unsigned int", True),
        Parameter("scale", "float", False),
        Parameter("pair", "Pair<__half, 4>", False),
        Parameter("lists", "__half*", True),
        Parameter("out", "__half", True),
        Parameter("last", "bool", False),
    ]
    assert parameters(SIGNATURES, "wide", ("double",))[4].type == "double"
    assert parameters(SIGNATURES, "wide", ("float", "double", "1"))[4].type == "double"
    assert parameters(SIGNATURES, "wide_not", ("int",)) == [Parameter("x", "int", False)]
    assert parameters(SIGNATURES, "plain") == []
    assert [(p.type, p.pointer) for p in parameters(SIGNATURES, "numbers")] == [
        ("unsigned int", False),
        ("unsigned long long", False),
        ("unsigned int", False),
        ("unsigned long long", False),
        ("__half", False),
        ("float", True),
        ("void", True),
    ]


def test_template_parameters() -> None:
    assert template_parameters(SIGNATURES, "wide") == [
        ("T", None),
        ("A", "acc_t<T>"),
        ("VEC", "4"),
        ("LAST", "(2 > 1)"),
    ]
    assert template_parameters(SIGNATURES, "plain") == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("commented", (), "there is no __global__ function 'commented'"),
        ("Other", ("int",), "there is no __global__ function 'Other'"),
        ("wide", (), "'wide' has the template parameters <T, A, VEC, LAST>, but <> were given"),
        ("wide_not", ("int", "4"), "<T>, but <int, 4> were given"),
        ("plain", ("int",), "<>, but <int> were given"),
    ],
)
def test_signatures_that_do_not_fit(name: str, arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameters(SIGNATURES, name, arguments)


def test_template_arguments() -> None:
    given: Any
    for given, expected in [
        (np.dtype(np.float32), "float"),
        (dtypes.bfloat16, "__nv_bfloat16"),
        (True, "true"),
        (np.False_, "false"),
        (4, "4"),
        (np.int64(-4), "-4"),
        ("Relu", "Relu"),
    ]:
        assert c_type(given) == expected
    for given in (dtypes.complex64, 1.5, None):
        with pytest.raises(TypeError, match="no C type for the template argument"):
            c_type(given)
    with pytest.raises(TypeError, match=r"scale takes the template arguments \('T',\), but"):
        Kernel("scale.cu", "scale", params=("T",))[4, 4]


# ---- arguments


@needs_cupy
def test_arguments_are_checked() -> None:
    from tensorflow_lite_clone.backends.cupy.signature import converter

    def made(kind: str, value: Any, pointer: bool = False) -> Any:
        return converter(Parameter("n", kind, pointer), "f<float>")(value)

    assert made("int", 3) == 3
    assert made("int", True).dtype == np.int32
    assert made("long long", np.int32(7)).dtype == np.int64
    assert made("float", 1).dtype == np.float32
    assert made("double", np.float32(0.5)).dtype == np.float64
    assert made("bool", False).dtype == np.bool_
    assert made("__nv_bfloat16", 1.0).dtype.name == "bfloat16"
    assert made("float", None, True) is None
    packed = np.zeros(3, np.int64)
    assert made("Tensors<2>", packed).tobytes() == packed.tobytes()
    assert made("Tensors<2>", packed).size == 1  # which CuPy passes by value
    for kind, value, message in [
        ("int", 1.0, "f<float>: argument 'n' must be int, not 1.0"),
        ("int", 1 << 31, "must be int, not 2147483648"),
        ("int", np.int64(1 << 40), "must be int, not "),
        ("unsigned int", -1, "must be unsigned int, not -1"),
        ("int", None, "must be int, not None"),
        ("float", "1.5", "must be float, not '1.5'"),
        ("float", np.ones(2), "must be float, not a host array of float64"),
        ("Pair", 3, "must be Pair, not 3"),
    ]:
        with pytest.raises(TypeError, match=message):
            made(kind, value)
    with pytest.raises(TypeError, match="a CUDA array of float32, or None, not a host array of f"):
        made("float", np.ones(2, np.float32), True)
    with pytest.raises(TypeError, match="must be a CUDA array of float32, or None, not 5"):
        made("float", 5, True)


# ---- compiling, without a GPU: CuPy's part is played


class Played:
    """Stands for CuPy's function object; notes what is compiled and launched."""

    num_regs = 8
    max_dynamic_shared_size_bytes = 0

    def __init__(self, log: list) -> None:
        self.log = log

    def __call__(self, grid: tuple, block: tuple, args: tuple, shared_mem: int = 0) -> None:
        self.log.append((grid, block, args, shared_mem))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list:
    """What was compiled (text and name) and launched."""
    pytest.importorskip("cupy")
    import cupy
    from cupy.cuda.compiler import CompileException

    from tensorflow_lite_clone.backends.cupy.signature import Packer

    log: list = []

    class Module:
        def __init__(self, code: str, options: tuple, name_expressions: tuple) -> None:
            self.code = code

        def get_function(self, name: str) -> Any:
            if "error" in self.code:
                raise CompileException('scale.cu(5): error: "y"', self.code, "name", ())
            log.append((name, "#define FACTOR 3" in self.code))
            return Played(log)

    monkeypatch.setattr(cupy, "RawModule", Module)
    # The function above takes arguments as CuPy's do; packed ones would go to the driver.
    monkeypatch.setattr(Packer, "pack", lambda self, args: False)
    return log


def test_compiled_once_and_after_edits(scale: Path, played: list) -> None:
    kernel = Kernel(scale, "scale", params=("T",))
    instance = kernel[np.dtype(np.float32)]
    assert kernel[np.dtype(np.float32)] is instance
    assert played == []
    for _ in range(2):
        instance(4, 256, None, 5, 2.0, None)
    launch = ((4,), (256,), (None, 5, 2.0, None), 0)
    assert played == [("scale<float>", False), launch, launch]
    edit(scale.with_name("factor.cuh"), "#define FACTOR 3\n")
    instance((4, 2), (32, 8), None, 5, 2.0, None, shared=128)
    assert played[3:] == [("scale<float>", True), ((4, 2), (32, 8), (None, 5, 2.0, None), 128)]
    edit(scale, SCALE.replace("float w, ", "", 1))  # the signature follows
    with pytest.raises(TypeError, match="scale<float> takes 3 arguments, but 4 were given"):
        instance(4, 256, None, 5, 2.0, None)
    instance(4, 256, None, 5, None)


def test_kernel_compile_error_repeats_until_mended(scale: Path, played: list) -> None:
    instance = Kernel(scale, "scale", params=("T",))["float"]
    edit(scale, SCALE + "// error\n")
    for _ in range(2):
        with pytest.raises(KernelError) as caught:
            instance(4, 256, None, 5, 2.0, None)
        message = str(caught.value)
        assert message.startswith(f"{scale} does not compile as scale<float>:\nscale.cu(5): error")
        assert caught.value.__cause__ is None and caught.value.__suppress_context__
    edit(scale, SCALE)
    instance(4, 256, None, 5, 2.0, None)
    assert played[0] == ("scale<float>", False)


def test_missing_kernels_files_and_parameters_raise(scale: Path, played: list) -> None:
    with pytest.raises(KernelError, match="scale.cu: there is no __global__ function 'scales'"):
        Kernel(scale, "scales")(1, 1)
    with pytest.raises(KernelError, match="has the template parameters <T>, but <> were given"):
        Kernel(scale, "scale")(1, 1)
    with pytest.raises(FileNotFoundError, match="there is no kernel file 'nowhere.cu' in "):
        Kernel("nowhere.cu", "scale")(1, 1)


@needs_cupy
def test_a_file_for_another_device_says_so(
    scale: Path, played: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorflow_lite_clone.backends.cupy import kernel as loader
    from tensorflow_lite_clone.backends.cupy.device_facts import Facts

    path = scale.with_name("scale_sm90.cu")
    path.write_text(SCALE)
    monkeypatch.setattr(loader, "here", lambda: Facts("a B200", 100, 148, 232448))
    message = "scale_sm90.cu is for sm_90a alone, and the current device, a B200, is sm_100"
    with pytest.raises(KernelError, match=message):
        Kernel(path, "scale", params=("T",))["float"](1, 1, None, 5, 2.0, None)
    assert played == []


# ---- on a GPU


def on_gpu(test: Callable) -> Callable:
    """Marks a test that launches kernels."""
    for mark in needs_gpu:
        test = mark(test)
    return test


@on_gpu
def test_edits_reach_a_running_process(scale: Path) -> None:
    import cupy

    kernel = Kernel(scale, "scale", params=("T",))
    x = cupy.arange(5, dtype=np.float32)
    y = cupy.empty_like(x)

    def result() -> list:
        kernel[x.dtype](1, 32, x, 5, 10.0, y)
        return y.tolist()

    assert result() == [0.0, 20.0, 40.0, 60.0, 80.0]
    edit(scale, SCALE.replace("* w", "+ w"))
    assert result() == [i + 20.0 for i in range(5)]
    edit(scale.with_name("factor.cuh"), "#define FACTOR 3\n")
    assert result() == [i + 30.0 for i in range(5)]
    edit(scale, SCALE.replace("T(x[i]", "T(nothing(x[i])"))
    with pytest.raises(KernelError) as caught:
        result()
    message = str(caught.value)
    assert 'scale.cu(5): error: identifier "nothing" is undefined' in message
    assert "CompileException" not in message and "cupy" not in message.lower()
    edit(scale, SCALE)
    assert result() == [i * 30.0 for i in range(5)]


@on_gpu
def test_errors_in_headers_name_the_header(scale: Path) -> None:
    edit(scale.with_name("factor.cuh"), "#define FACTOR 2\n\nint wrong = none;\n")
    with pytest.raises(KernelError, match=r"factor\.cuh\(3\): error: identifier \"none\""):
        Kernel(scale, "scale", params=("T",))["float"](1, 32, None, 0, 1.0, None)


@on_gpu
def test_arguments_that_do_not_fit_are_refused(scale: Path) -> None:
    import cupy

    launch = Kernel(scale, "scale", params=("T",))["float"]
    x = cupy.ones(5, np.float32)
    y = cupy.zeros(5, np.float32)
    with pytest.raises(TypeError, match="scale<float> takes 4 arguments, but 3 were given"):
        launch(1, 32, x, 5, y)
    wrong = r"scale<float>: argument 'y' must be a CUDA array of float32, or None, not a CUDA array"
    with pytest.raises(TypeError, match=wrong + " of float64"):
        launch(1, 32, x, 5, 1.0, y.astype(np.float64))
    with pytest.raises(TypeError, match="argument 'n' must be int, not a CUDA array of int64"):
        launch(1, 32, x, cupy.array(5), 1.0, y)
    with pytest.raises(TypeError, match="argument 'w' must be float, not a CUDA array of float64"):
        launch(1, 32, x, 5, cupy.ones((), np.float64), y)
    assert y.tolist() == [0.0] * 5


@on_gpu
def test_much_shared_memory(tmp_path: Path) -> None:
    import cupy

    edit(
        tmp_path / "reverse.cu",
        "__global__ void reverse(int* x, int n) {\n  extern __shared__ int held[];\n"
        "  held[threadIdx.x + n] = x[threadIdx.x];\n  __syncthreads();\n"
        "  x[threadIdx.x] = held[n + blockDim.x - 1 - threadIdx.x];\n}\n",
    )
    x = cupy.arange(32, dtype=np.int32)
    Kernel(tmp_path / "reverse.cu", "reverse")(1, 32, x, 15000, shared=15032 * 4)
    assert x.tolist() == list(range(31, -1, -1))
