"""Kernel files keep the rules of kernels/README.md that a text can show."""

from __future__ import annotations

import re

import pytest

from tensorflow_lite_clone.kernels.header import (
    FIELDS,
    Instance,
    fields,
    instances,
    kernel_names,
    purpose,
)
from tensorflow_lite_clone.kernels.listing import with_index
from tests.kernels.header import (
    KERNELS,
    body_problems,
    include_problems,
    own_headers,
    own_kernels,
    problems,
)
from tests.kernels.samples import GOOD, HEADERS

OWN = {path.name for path in own_headers()}


def test_a_good_file_has_no_problems() -> None:
    assert problems(GOOD, set(HEADERS)) == []
    assert fields(GOOD)["Math"] == ["y[i] = w * x[i]", "gx[i] = w * g[i]"]
    assert instances(GOOD)[1] == Instance("scale_rows<__half>", 24, 0)
    assert purpose(GOOD) == "Scales rows, forward and backward."
    assert purpose("// Sums over\n// a row. Fast ones.\n\nint i;") == "Sums over a row."


def test_a_kernel_may_have_several_attributes() -> None:
    code = "__global__ void __launch_bounds__(N, 1) __cluster_dims__(2, 1, 1)\n    f(int n) {}"
    assert kernel_names(code) == ["f"]


BAD = {
    "a field is missing": (r"// Limits:.*\n", "", "header fields are"),
    "a field is empty": (r"(// Cost:).*", r"\1", "header fields are"),
    "the order is wrong": (r"(// Types:.*\n)(// Determinism:.*\n)", r"\2\1", "header fields are"),
    "no sentence": (r"\A.*\n", "", "does not open with one sentence"),
    "a section is missing": (r"// -+ device helpers\n", "", "ruled sections are"),
    "an unreadable instance": ("24 registers, 0", "few registers, 0", "found 'scale_rows<float>"),
    "an unknown instance": ("scale_rows<float>", "scale<float>", "Instances name"),
    "a foreign include": ("<cuda_fp16.h>", "<mma.h>", "includes <mma.h>"),
    "an unknown header": ('"common.cuh"', '"other.cuh"', 'includes "other.cuh"'),
    "printf": (r"if \(i < n\)", 'printf("x");', "holds printf"),
    "a global": (r"\ntemplate", "\n__device__ int counter = 0;\ntemplate", "holds a global"),
    "host code": (r"\Z", "void run() { scale_rows<float><<<1, 1>>>(); }", "holds a launch"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_noticed(name: str) -> None:
    pattern, replacement, expected = BAD[name]
    source, count = re.subn(pattern, replacement, GOOD, count=1)
    assert count == 1
    found = problems(source, set(HEADERS))
    assert len(found) == 1
    assert expected in found[0]


def test_the_page_names_the_same_fields() -> None:
    page = (KERNELS / "README.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == FIELDS


def test_kernel_files() -> None:
    found = {path.name: problems(path.read_text(), OWN) for path in own_kernels()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_header_files() -> None:
    found = {
        path.name: include_problems(path.read_text(), OWN) + body_problems(path.read_text())
        for path in own_headers()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_index_is_fresh() -> None:
    page = (KERNELS / "README.md").read_text()
    assert with_index(page, KERNELS) == page, "run python -m tensorflow_lite_clone.kernels index"


def test_a_stale_index_is_noticed() -> None:
    page = (KERNELS / "README.md").read_text()
    assert with_index(page.replace("softmax.cu", "sorftmax.cu"), KERNELS) == page
    with pytest.raises(ValueError, match="has no lines"):
        with_index("# Kernels\n", KERNELS)
