"""What the properties are tested with: shapes, values, indices, equations."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip

sizes = st.integers(0, 4)
shapes = st.lists(sizes, max_size=4).map(tuple)
dtypes = st.sampled_from(DTYPES)


@st.composite
def broadcastable(draw, count=2):
    """`count` shapes; mostly they broadcast together."""
    full = draw(st.lists(st.integers(1, 4), max_size=4))
    result = []
    for _ in range(count):
        kept = full[draw(st.integers(0, len(full))) :]
        result.append(tuple(draw(st.sampled_from((n, n, 1))) for n in kept))
    if draw(st.integers(0, 9)) == 0:  # and sometimes they do not
        result[0] = (*result[0], 7)
    return tuple(result)


def values(shape, dtype="float64", seed=0):
    """Small numbers that every dtype can hold, the same for every call."""
    rng = np.random.default_rng([seed, *shape])
    numbers = rng.integers(-3, 4, shape)
    if dtype == "bool":
        return numbers > 0
    return np.abs(numbers) if dtype == "uint8" else numbers


@st.composite
def basic_index(draw, shape):
    """An integer, a slice with a positive step, None or an ellipsis per dimension."""
    entries: list = []
    ellipsis = False
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(("int", "slice", "slice", "none", "ellipsis")))
        if kind == "int" and size:
            entries.append(draw(st.integers(-size, size - 1)))
        elif kind == "none":
            entries += [None, slice(None)]
        elif kind == "ellipsis" and not ellipsis:
            entries.append(Ellipsis)
            ellipsis = True
            break
        else:
            bounds = st.none() | st.integers(-size - 1, size + 1)
            step = draw(st.none() | st.integers(1, 3))
            entries.append(slice(draw(bounds), draw(bounds), step))
    return tuple(entries)


@st.composite
def any_index(draw, shape):
    """Basic entries mixed with integer arrays and masks, as nested lists."""
    entries: list = []
    length = draw(st.integers(1, 3))
    position = 0
    while position < len(shape):
        size = shape[position]
        kind = draw(st.sampled_from(("array", "slice", "int", "mask", "none", "stop")))
        position += 1
        if kind == "array" and size:
            entries.append([draw(st.integers(-size, size - 1)) for _ in range(length)])
        elif kind == "int" and size:
            entries.append(draw(st.integers(-size, size - 1)))
        elif kind == "mask" and not any(isinstance(entry, list) for entry in entries):
            entries.append([draw(st.booleans()) for _ in range(size)])
        elif kind == "none":
            entries += [None, slice(None)]
        elif kind == "stop":
            break
        else:
            entries.append(slice(None, None, draw(st.integers(1, 2))))
    return tuple(entries)


def index_for(lib, index):
    """Lists of an index as the library's tensors."""
    converted = []
    for entry in index:
        if isinstance(entry, list):
            entry = lib.tensor(entry, dtype=lib.bool if _is_mask(entry) else lib.int64)
        converted.append(entry)
    return tuple(converted)


def _is_mask(entry):
    return not entry or isinstance(entry[0], bool)


@st.composite
def equations(draw):
    """An einsum equation with the shapes of its operands."""
    letters = "abcd"
    extents = {letter: draw(st.integers(1, 3)) for letter in letters}
    operands = [
        "".join(draw(st.lists(st.sampled_from(letters), max_size=3)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    present = sorted({letter for operand in operands for letter in operand})
    output = draw(st.permutations(present))[: draw(st.integers(0, len(present)))]
    equation = f"{','.join(operands)}->{''.join(output)}"
    return equation, [tuple(extents[letter] for letter in operand) for operand in operands]


#: A view function as (name, function of a tensor and a number drawn).
VIEWS = [
    ("transpose", lambda x, n: x.transpose(0, -1) if x.ndim else x),
    ("reverse", lambda x, n: x.permute(tuple(reversed(range(x.ndim))))),
    ("row", lambda x, n: x[n % x.shape[0]] if x.ndim and x.shape[0] else x),
    ("step", lambda x, n: x[:: 1 + n % 2] if x.ndim else x),
    ("tail", lambda x, n: x[..., n % (x.shape[-1] + 1) :] if x.ndim else x),
    ("unsqueeze", lambda x, n: x.unsqueeze(n % (x.ndim + 1))),
    ("squeeze", lambda x, n: x.squeeze()),
    ("narrow", lambda x, n: x.narrow(0, 0, n % (x.shape[0] + 1)) if x.ndim else x),
    ("diagonal", lambda x, n: x.diagonal() if x.ndim >= 2 else x),
    ("flatten", lambda x, n: x.view(-1) if x.is_contiguous() and x.numel() else x),
]
view_chains = st.lists(
    st.tuples(st.sampled_from(range(len(VIEWS))), st.integers(0, 5)), min_size=1, max_size=4
)


def dtype_of(lib, name):
    """The library's dtype called `name`."""
    return getattr(lib, name)


__all__ = [
    "DTYPES", "VIEWS", "any_index", "basic_index", "broadcastable", "dtype_of", "dtypes",
    "equations", "index_for", "shapes", "sizes", "values", "view_chains",
]  # fmt: skip
