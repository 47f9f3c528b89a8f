"""How tensors print: `repr`, `format` and the options behind `set_printoptions`.

The text is PyTorch's, character for character. Elements of a tensor over the threshold are cut to
the edges while they are still an array on their device, so printing a huge tensor costs no more
than printing a small one; what is left is at most about a thousand Python numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import floor, inf, isfinite, prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core.dtypes import get_default_dtype

if TYPE_CHECKING:
    from tensorflow_lite_clone.tensor.tensor import Tensor

# Beyond these, fixed-point columns get wide or lose the small numbers: scientific notation.
LARGEST_FIXED = 1.0e8
SMALLEST_FIXED = 1.0e-4
WIDEST_FIXED_RATIO = 1000.0

# Classes above this module whose instances print as plain `tensor(...)`.
PLAIN_CLASSES = frozenset({"Tensor", "Parameter", "Buffer"})


_DEFAULT = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80}
PROFILES: dict[str, dict[str, Any]] = {
    "default": _DEFAULT,
    "short": {**_DEFAULT, "precision": 2, "edgeitems": 2},
    "full": {**_DEFAULT, "threshold": inf},
}


class PrintOptions(SimpleNamespace):
    """The options all printing obeys; change them with `set_printoptions`."""


PRINT_OPTS = PrintOptions(**_DEFAULT, sci_mode=None)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, from now on and everywhere.

    Args:
        precision: digits after the decimal point (4).
        threshold: tensors of more elements than this are summarised (1000).
        edgeitems: elements shown at each end of a summarised dimension (3).
        linewidth: characters in a line (80).
        profile: "default", "short" or "full"; the other arguments are applied on top of it.
        sci_mode: True or False forces scientific notation on or off; None, which every call that
            does not name it returns to, lets each tensor decide.
    """
    # PyTorch takes an unknown profile for none.
    changes = dict(PROFILES.get(profile or "", {}))
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes.update((name, value) for name, value in given.items() if value is not None)
    for name, value in changes.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keyword arguments for `set_printoptions`."""
    return dict(vars(PRINT_OPTS))


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """A `with` block under other options; takes the arguments of `set_printoptions`."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# ---------------------------------------------------------------------- from an array to numbers


def _itself(array: Any) -> Any:
    return array


def _join_at(depth: int, head: list, tail: list) -> list:
    """Concatenate two nested lists along the dimension `depth` levels down."""
    if depth == 0:
        return head + tail
    return [_join_at(depth - 1, *pair) for pair in zip(head, tail, strict=True)]


def _edges(data: Any, shape: Sequence[int], fetch: Callable[[Any], Any], axis: int = 0) -> list:
    """The elements of `data` that a summary shows, as nested lists.

    Each long dimension is halved into its two ends, all others taken whole: with k long
    dimensions that is 2**k blocks, each brought to the host in one copy.
    """
    edgeitems = PRINT_OPTS.edgeitems
    while axis < len(shape) and shape[axis] <= 2 * edgeitems:
        axis += 1
    if axis == len(shape):
        elements: list = fetch(data).tolist()
        return elements
    whole = (slice(None),) * axis
    head = data[(*whole, slice(None, edgeitems), ...)]
    tail = data[(*whole, slice(shape[axis] - edgeitems, None), ...)]
    return _join_at(
        axis, _edges(head, shape, fetch, axis + 1), _edges(tail, shape, fetch, axis + 1)
    )


# ----------------------------------------------------------------------- from numbers to strings


def _float_texts(values: list[float]) -> tuple[list[str], int]:
    """Every value's text in one common style, and the column width they are aligned to.

    Zeros, infinities and nans have no say in the style nor, being short as a rule, in the width.
    """
    options = PRINT_OPTS
    magnitudes = [abs(x) for x in values if x != 0 and isfinite(x)]
    integral = all(x.is_integer() for x in magnitudes)
    if not magnitudes:
        scientific = False
    elif options.sci_mode is not None:
        scientific = options.sci_mode
    else:
        largest, smallest = max(magnitudes), min(magnitudes)
        scientific = (
            largest / smallest > WIDEST_FIXED_RATIO
            or largest > LARGEST_FIXED
            or smallest < SMALLEST_FIXED
        )
    if scientific:
        texts = [f"{x:.{options.precision}e}" for x in values]
    elif integral:
        texts = [f"{x:.0f}." if isfinite(x) else f"{x:.0f}" for x in values]
    else:
        texts = [f"{x:.{options.precision}f}" for x in values]
    widths = [len(text) for x, text in zip(values, texts, strict=True) if x != 0 and isfinite(x)]
    width = max(widths, default=1)
    return [text.rjust(width) for text in texts], width


def _complex_texts(values: list[complex]) -> tuple[list[str], int]:
    """As `_float_texts`; real and imaginary parts choose their style apart from each other."""
    reals, real_width = _float_texts([x.real for x in values])
    imaginaries, imaginary_width = _float_texts([x.imag for x in values])
    texts = []
    for real, padded in zip(reals, imaginaries, strict=True):
        imaginary = padded.lstrip()
        sign = "" if imaginary[0] == "-" else "+"
        texts.append(f"{real}{sign}{imaginary}j")
    return texts, real_width + imaginary_width + 1


def _plain_texts(values: list[Any]) -> tuple[list[str], int]:
    """As `_float_texts`, for integers and booleans."""
    texts = [str(x) for x in values]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _element_texts(values: list[Any], dtype: Any) -> tuple[list[str], int]:
    # Lists of low-precision arrays may hold the array library's own scalars: make them Python's.
    if dtype.is_complex:
        return _complex_texts([complex(x) for x in values])
    if dtype.is_floating_point:
        return _float_texts([float(x) for x in values])
    return _plain_texts(values)


# -------------------------------------------------------------------------- from strings to text


def _layout(
    texts: Iterator[str], shape: Sequence[int], indent: int, width: int, summarised: bool
) -> str:
    """Brackets, commas and line breaks around `texts`, which comes in row-major order."""
    size, *rest = shape
    edgeitems = PRINT_OPTS.edgeitems
    elided = summarised and size > 2 * edgeitems
    shown = 2 * edgeitems if elided else size
    margin = "\n" + " " * (indent + 1)
    if rest:
        items = [_layout(texts, rest, indent + 1, width, summarised) for _ in range(shown)]
        if elided:
            items.insert(edgeitems, "...")
        # One blank line more for each level.
        return "[" + ("," + "\n" * (len(rest) - 1) + margin).join(items) + "]"
    items = [next(texts) for _ in range(shown)]
    if elided:
        items.insert(edgeitems, " ...")
    per_line = max(1, floor((PRINT_OPTS.linewidth - indent) / (width + 2)))
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + ("," + margin).join(lines) + "]"


def _contents(
    data: Any, shape: Sequence[int], dtype: Any, indent: int, fetch: Callable[[Any], Any]
) -> str:
    """The elements of a tensor that has some, in brackets (none around a scalar)."""
    summarised = bool(shape) and prod(shape) > PRINT_OPTS.threshold
    if summarised and PRINT_OPTS.edgeitems <= 0:
        return "[...]"
    values = _edges(data, shape, fetch) if summarised else fetch(data).tolist()
    if not shape:
        return _element_texts([values], dtype)[0][0]
    for _ in shape[1:]:
        values = list(chain.from_iterable(values))
    texts, width = _element_texts(values, dtype)
    return _layout(iter(texts), shape, indent, width, summarised)


def _add_suffixes(
    tensor_str: str, suffixes: list[str], indent: int, force_newline: bool = False
) -> str:
    """Close the parenthesis behind `suffixes`, each on a new line where it does not fit.

    The first one is on a new line in any case with `force_newline`. PyTorch Geometric's tensors
    print themselves by it.
    """
    parts = [tensor_str]
    # Room for the comma and the space before the first suffix is counted twice, as in PyTorch.
    column = len(tensor_str) - (tensor_str.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if force_newline or column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            force_newline = False
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def format_tensor(
    data: Any,
    *,
    shape: Sequence[int],
    dtype: Any,
    default_dtype: Any = None,
    device: Any = "cpu",
    requires_grad: bool = False,
    grad_fn: str | None = None,
    prefix: str = "tensor",
    contents: str | None = None,
    fetch: Callable[[Any], Any] = _itself,
) -> str:
    """The text `repr` gives for a tensor, written from its parts.

    Args:
        data: the array, of any device; must know basic slicing. Not read on the device "meta".
        shape: its shape.
        dtype: its dtype (`name`, `is_floating_point` and `is_complex` are read).
        default_dtype: the floating-point dtype that goes without saying (the one in force).
        device: a device or its name.
        requires_grad: whether to say so, if there is no `grad_fn`.
        grad_fn: the name of the function that made the tensor.
        prefix: what stands before the parenthesis.
        contents: what to print in place of the elements.
        fetch: copies a slice of `data` to the host; its result must have `tolist`.
    """
    shape = tuple(shape)
    place = str(device)
    device_type = place.partition(":")[0]
    indent = len(prefix) + 1
    default_name = (default_dtype or get_default_dtype()).name
    telling_dtypes = {default_name}
    if device_type == "meta":
        show_size, text = True, "..."
    elif 0 in shape:
        show_size, text = len(shape) != 1, "[]"
    else:
        # Elements of these dtypes show by themselves what they are.
        complex_name = "complex128" if default_name == "float64" else "complex64"
        telling_dtypes |= {"int64", "bool", complex_name}
        show_size = PRINT_OPTS.edgeitems == 0
        text = _contents(data, shape, dtype, indent, fetch) if contents is None else ""
    if contents is not None:
        text = contents

    suffixes = []
    if device_type != "cpu":
        suffixes.append(f"device='{place}'")
    if show_size:
        suffixes.append(f"size={shape}")
    if dtype.name not in telling_dtypes:
        suffixes.append(f"dtype={dtype!r}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return _add_suffixes(f"{prefix}({text}", suffixes, indent)


# ---------------------------------------------------------------------------- the Tensor's methods


def grad_fn_name(tensor: Tensor) -> str | None:
    """What `repr` calls the function that made a tensor; None for a leaf."""
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view whose history an in-place write has made meaningless
        return "Invalid"
    if grad_fn is None:
        return None
    name = getattr(grad_fn, "name", None)
    return name().rpartition(":")[2] if callable(name) else type(grad_fn).__name__


def tensor_repr(tensor: Tensor, *, tensor_contents: str | None = None) -> str:
    """`repr` of a Tensor; `tensor_contents`, if given, is printed in place of the elements.

    A subclass prints under its own name, and one of Parameter inside `Parameter(...)`.
    """
    storage = tensor._storage
    kind = type(tensor)
    plain = kind.__name__ in PLAIN_CLASSES
    text = format_tensor(
        storage.array,
        shape=tensor.shape,
        dtype=tensor.dtype,
        device=tensor.device,
        requires_grad=tensor.requires_grad,
        grad_fn=grad_fn_name(tensor),
        prefix="tensor" if plain else kind.__name__,
        contents=tensor_contents,
        fetch=storage.backend.numbers,
    )
    if not plain and (
        any(base.__name__ == "Parameter" for base in kind.__mro__)
        or getattr(tensor, "_is_param", False)
    ):
        return f"Parameter({text})"
    return text


_str_intern = tensor_repr  # PyTorch Geometric's HashTensor prints itself by it


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements of a tensor alone as `repr` shows them, lines `indent` spaces in."""
    if 0 in self.shape:
        return "[]"
    storage = self._storage
    shape = tuple(self.shape)
    return _contents(storage.array, shape, self.dtype, indent, storage.backend.numbers)


def tensor_format(tensor: Tensor, format_spec: str) -> str:
    """`format(tensor, format_spec)`: a plain tensor of no dimensions formats as its number.

    Any other takes the empty specification alone, for which it gives its `str`.

    Raises:
        TypeError: a specification for a tensor that has dimensions, or is of a subclass.
    """
    is_number = tensor.ndim == 0 and type(tensor).__name__ == "Tensor"
    if is_number and not str(tensor.device).startswith("meta"):
        return format(tensor.item(), format_spec)
    return object.__format__(tensor, format_spec)
