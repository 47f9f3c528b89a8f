"""A traced formula as CUDA C++: a line for every symbol, and a kernel around them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.cupy.fusion.target import CUDA
from tensorflow_lite_clone.fuse.formula import Trace
from tensorflow_lite_clone.fuse.symbol import Symbol, in_order
from tensorflow_lite_clone.fuse.target import FLOAT32
from tensorflow_lite_clone.kernels.signature import C_TYPES

BLOCK = 256
RESIDENT = 2  # blocks of sums on a multiprocessor


class Form(NamedTuple):
    """What a kernel is made for beside its formula."""

    operands: tuple[Any, ...]  # per operand the dtype in memory
    results: tuple[Any, ...]  # per result the dtype in memory
    numbers: tuple[bool, ...]  # per operand whether it is a number, given by value
    steps: tuple[tuple[int, ...], ...]  # per array, 1: consecutive, 0: one element, else 2
    axes: int  # merged axes; 1 with steps of 0 and 1 alone makes the flat kernel
    width: int  # elements that a thread takes at once
    packs: int  # how often it does
    wide: bool  # offsets are of 64 bits

    @property
    def flat(self) -> bool:
        """Whether every array is one run of elements, or one element."""
        return self.axes == 1 and all([step[0] < 2 for step in self.steps])


class Text(NamedTuple):
    """The kernel, and the numbers it takes after the operands given by value."""

    name: str
    code: str
    constants: tuple[tuple[str, Any], ...]  # C type and value


def c_type(dtype: Any) -> str:
    """The C type of a dtype."""
    return C_TYPES[dtype.name]


def _literal(value: Any, dtype: Any) -> str:
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        suffix = {"i8": "ll", "u8": "ull", "u4": "u"}.get(dtype.kind + str(dtype.itemsize), "")
        if value == np.iinfo(dtype).min != 0:
            return f"as<{c_type(dtype)}>({value + 1}{suffix} - 1)"
        return f"as<{c_type(dtype)}>({value}{suffix})"
    ending = "f" if dtype.itemsize == 4 else ""
    if value != value:
        return f'nan{ending}("")'
    if value in (float("inf"), float("-inf")):
        sign = "-" if value < 0 else ""
        bits = "__int_as_float(0x7f800000)"
        return f"{sign}{bits}" if ending else f"{sign}double({bits})"
    return repr(float(str(dtype.type(value)))) + ending


def _cast(value: str, source: Any, target: Any) -> str:
    """`value` in another dtype."""
    if target.kind == "b":
        return f"as<float>({value}) != 0" if source.itemsize == 2 else f"{value} != 0"
    if target == np.uint8 and source.kind in "fV":  # wraps around
        value = f"as<long long>({value})"
    elif target.kind in "fV" and target.itemsize == 2 and source != np.float32:
        value = f"as<float>({value})"  # the only way to and from two-byte floats
    return f"as<{c_type(target)}>({value})"


def _comes_back(symbol: Symbol) -> bool:
    """Whether a symbol is float32 that was rounded to two bytes in between."""
    if symbol.name != "astype" or symbol.dtype != FLOAT32:
        return False
    (narrow,) = symbol.operands
    is_narrow = narrow.dtype.itemsize == 2 and narrow.dtype.kind in "fV"
    return is_narrow and narrow.name == "astype" and narrow.operands[0].dtype == FLOAT32


class _Lines:
    """The symbols of a trace, each computed once, in the order of first use."""

    def __init__(self, trace: Trace, names: list[str]) -> None:
        self.trace, self.names = trace, names
        self.lines: list[str] = []
        self.constants: list[tuple[str, Any]] = []
        self._known: dict[Any, str] = {}

    def expression(self, symbol: Symbol) -> str:
        """The expression that holds the symbol's value, after the lines that compute it."""
        if symbol.name == "operand":
            return self.names[symbol.value]
        key: Any = id(symbol)
        if symbol.name == "number":
            if self.trace.literal or symbol.dtype.kind == "b":
                return _literal(symbol.value, symbol.dtype)
            key = (symbol.dtype, repr(symbol.value))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._line(symbol)
        return known

    def _line(self, symbol: Symbol) -> str:
        kind = c_type(symbol.dtype)
        if symbol.name == "number":
            self.constants.append((kind, symbol.value))
            return f"c{len(self.constants)}"
        values = [self.expression(operand) for operand in symbol.operands]
        source = symbol.operands[-1].dtype
        if _comes_back(symbol):
            narrow = symbol.operands[0]
            text = f"rounded<{c_type(narrow.dtype)}>({self.expression(narrow.operands[0])})"
        elif symbol.name == "astype":
            text = _cast(values[0], source, symbol.dtype)
        else:
            text = CUDA.kinds(symbol.name)[source.kind].format(*values)
        name = f"v{len(self.lines) + 1}"
        self.lines.append(f"  const {kind} {name} = {text};")
        return name


def _named(trace: Trace) -> list[str]:
    """Names for the operands that mean nothing else here."""
    return [f"{name}_" if name in _TAKEN else name for name in trace.names]


_TAKEN = frozenset(
    """across apart chunk end half i inside j me n p part parts rest shared sums tiles total first
    last as read write exp log sin cos tan where int float double bool new this short long char
    signed unsigned union""".split()
)


def write(title: str, trace: Trace, form: Form) -> Text:
    """The kernel of a trace for arrays of a form; `title` is the formula's name.

    What the trace gives beyond the results of the form is summed over the outermost axis.
    """
    title = f"pointwise_{title}"
    names = _named(trace)
    used = [symbol.value for symbol in trace.operands]
    body = _Lines(trace, names)
    for symbol in in_order(trace.results):
        body.expression(symbol)
    found = [body.expression(symbol) for symbol in trace.results]
    several = len(form.results) > 1
    results = [f"result{place}" if several else "result" for place in range(len(form.results))]
    sums = [f"sum{place}" for place in range(len(found) - len(results))]
    inner = {symbol.value: c_type(symbol.dtype) for symbol in trace.operands}
    memory = {place: c_type(form.operands[place]) for place in used}
    stored = [c_type(dtype) for dtype in form.results]
    arrays = [place for place in used if not form.numbers[place]]
    values = [place for place in used if form.numbers[place]]

    given = [(*stored, *["float"] * len(sums)), (*results, *sums)]
    takes = [f"const {inner[place]} {names[place]}" for place in used]
    takes += [f"const {kind} c{place}" for place, (kind, _) in enumerate(body.constants, 1)]
    takes += [f"{kind}& {name}" for kind, name in zip(*given)]
    gives = [f"  {name} = as<{kind}>({value});" for kind, name, value in zip(*given, found)]
    formula = [
        f"__device__ __forceinline__ void formula({', '.join(takes)}) {{",
        *body.lines,
        *gives,
        "}",
    ]

    parameters = [f"const {memory[place]}* {names[place]}_at" for place in arrays]
    parameters += [f"{kind}* {name}_at" for kind, name in zip(stored, results)]
    parameters += ["float* sums_at"] if sums else []
    parameters += [f"const {inner[place]} {names[place]}" for place in values]
    parameters += [f"const {kind} c{place}" for place, (kind, _) in enumerate(body.constants, 1)]
    parameters.append("const int64_t n")
    numbers = [f"c{place}" for place in range(1, len(body.constants) + 1)]

    def call(operands: dict[int, str], into: list[str]) -> str:
        given = [operands.get(place, names[place]) for place in used]
        given = [
            f"as<{inner[place]}>({text})"
            if memory[place] != inner[place] and place in arrays
            else text
            for place, text in zip(used, given)
        ]
        return f"formula({', '.join([*given, *numbers, *into])});"

    if sums:
        lines, extra = _columns(form, names, arrays, memory, results, stored, call, sums)
    else:
        kind = _flat if form.flat else _strided
        lines, extra = kind(form, names, arrays, memory, results, stored, call)
    bounds = f"{BLOCK}, {RESIDENT}" if sums else BLOCK
    head = (
        f'extern "C" __global__ void __launch_bounds__({bounds}) {title}('
        f"{', '.join([*parameters, *extra])}) {{"
    )
    code = "\n".join(['#include "pointwise.cuh"', "", *formula, "", head, *lines, "}", ""])
    return Text(title, code, tuple(body.constants))


def _flat(
    form: Form, names: list, arrays: list, memory: dict, results: list, stored: list, call: Any
) -> tuple[list[str], list[str]]:
    """Runs of elements and single ones: threads take `width` elements `packs` times."""
    width, packs = form.width, form.packs
    single = [place for place, step in zip(arrays, form.steps) if step[0] == 0]
    runs = [place for place in arrays if place not in single]
    lines = [f"  const {memory[p]} {names[p]} = *{names[p]}_at;" for p in single]
    one = call({p: f"{names[p]}_at[i]" for p in runs}, [f"{name}_at[i]" for name in results])
    chunk = BLOCK * width * packs
    lines.append(f"  const int64_t first = int64_t(blockIdx.x) * {chunk};")
    if width == 1 and packs == 1:
        lines += ["  const int64_t i = first + threadIdx.x;", "  if (i < n) {", f"    {one}", "  }"]
        return lines, []
    many = call(
        {p: f"{names[p]}[p].values[j]" for p in runs}, [f"{name}.values[j]" for name in results]
    )
    at = f"first + (p * {BLOCK} + threadIdx.x) * {width}"
    lines += [
        f"  if (first + {chunk} <= n) {{",
        *[f"    Group<{memory[p]}, {width}> {names[p]}[{packs}];" for p in runs],
        "#pragma unroll",
        f"    for (int p = 0; p < {packs}; ++p) {{",
        *[f"      {names[p]}[p] = read<{width}>({names[p]}_at + {at});" for p in runs],
        "    }",
        "#pragma unroll",
        f"    for (int p = 0; p < {packs}; ++p) {{",
        *[f"      Group<{kind}, {width}> {name};" for kind, name in zip(stored, results)],
        "#pragma unroll",
        f"      for (int j = 0; j < {width}; ++j) {many}",
        *[f"      write(&{name}_at[{at}], {name});" for name in results],
        "    }",
        "  } else {",
        f"    for (int64_t i = first + threadIdx.x; i < n; i += {BLOCK}) {one}",
        "  }",
    ]
    return lines, []


def _strided(
    form: Form, names: list, arrays: list, memory: dict, results: list, stored: list, call: Any
) -> tuple[list[str], list[str]]:
    """Any strides: a thread finds its place, and takes `width` elements along the inner axis.

    It does so at `packs` places of the outermost axis, evenly apart: what does not vary along it
    is read, and what depends on that alone computed, once.
    """
    width, packs, outer = form.width, form.packs, form.axes - 1
    index = "int64_t" if form.wide else "int"
    unsigned = "uint64_t" if form.wide else "unsigned"
    extra = [f"const {index} size{axis}" for axis in range(outer)]
    lines = [
        f"  {unsigned} rest = {unsigned}(blockIdx.x) * {BLOCK} + threadIdx.x;",
    ]
    if packs == 1:
        lines.append(f"  if (rest * {width} >= n) return;")
    for axis in range(outer):
        lines.append(f"  const {index} j{axis} = rest % {unsigned}(size{axis});")
        lines.append(f"  rest /= {unsigned}(size{axis});")
    lines.append(f"  const {index} j{outer} = rest;")
    if packs > 1:
        extra += [f"const {index} size{outer}", f"const {index} apart"]
        lines.append(f"  if (j{outer} >= apart) return;")
    strides = {}  # of those that vary along the outermost axis
    for label, steps in zip([*[names[place] for place in arrays], *results], form.steps):
        terms = []
        for axis, step in enumerate(steps):
            scale = f" * {width}" if axis == 0 and width > 1 else ""
            if step == 1:
                terms.append(f"j{axis}{scale}")
            elif step == 2:
                extra.append(f"const {index} {label}_step{axis}")
                terms.append(f"j{axis}{scale} * {label}_step{axis}")
        if steps[outer]:
            strides[label] = "" if steps[outer] == 1 else f" * {label}_step{outer}"
        lines.append(f"  {label}_at += {' + '.join(terms) or '0'};")
    inner = {place: step[0] for place, step in zip(arrays, form.steps)}

    def kind(place: int) -> str:
        wide = width > 1 and inner[place]
        return f"Group<{memory[place]}, {width}>" if wide else memory[place]

    def value(place: int, at: str) -> str:
        return f"read<{width}>({at})" if width > 1 and inner[place] else f"*({at})"

    several = [place for place in arrays if packs > 1 and names[place] in strides]
    for p in arrays:
        if p not in several:
            lines.append(f"  const {kind(p)} {names[p]} = {value(p, f'{names[p]}_at')};")
    given = {}
    for p in arrays:
        one = f"{names[p]}[p]" if p in several else names[p]
        given[p] = f"{one}.values[j]" if width > 1 and inner[p] else one
    into = [f"{name}.values[j]" if width > 1 else name for name in results]
    kinds = [f"Group<{kind}, {width}>" if width > 1 else kind for kind in stored]
    work = [f"{kind} {name};" for kind, name in zip(kinds, results)]
    if width > 1:
        work += ["#pragma unroll", f"for (int j = 0; j < {width}; ++j) {call(given, into)}"]
    else:
        work.append(call(given, into))
    if packs == 1:
        work += [f"{_stored(name, f'{name}_at', width)};" for name in results]
        return [*lines, *[_indented(line, 2) for line in work]], extra
    there = f"j{outer} + p * apart < size{outer}"
    work += [
        f"if ({there}) {_stored(name, f'{name}_at + p * apart{strides[name]}', width)};"
        for name in results
    ]
    at = f"({there} ? p * apart : 0)"  # what is read twice is not written
    lines += [
        *[f"  {kind(p)} {names[p]}[{packs}];" for p in several],
        "#pragma unroll",
        f"  for (int p = 0; p < {packs}; ++p) {{",
        *[
            f"    {names[p]}[p] = {value(p, f'{names[p]}_at + {at}{strides[names[p]]}')};"
            for p in several
        ],
        "  }",
        "#pragma unroll",
        f"  for (int p = 0; p < {packs}; ++p) {{",
        *[_indented(line, 4) for line in work],
        "  }",
    ]
    return lines, extra


def _columns(
    form: Form,
    names: list,
    arrays: list,
    memory: dict,
    results: list,
    stored: list,
    call: Any,
    sums: list,
) -> tuple[list[str], list[str]]:
    """Two axes: sums over the outer one, one of each for every part of it.

    `across` threads of a block, a power of two, take `width` columns each, the others more rows.
    The order of the sums is that of the parts and rows.
    """
    width, kinds = form.width, dict(zip(results, stored))
    varying, steps, extra = {}, {}, []  # by name
    for label, (inner, outer) in zip([*[names[place] for place in arrays], *results], form.steps):
        steps[label] = inner
        if outer:
            varying[label] = f"{label}_step1"
            extra.append(f"const int {label}_step1")
    each = {names[place]: memory[place] for place in arrays}

    def read(label: str, at: str) -> str:
        return f"read<{width}>({at})" if steps[label] else f"*({at})"

    def kind(label: str) -> str:
        return f"Group<{each[label]}, {width}>" if steps[label] else each[label]

    def rows(count: int) -> list[str]:
        moving = [label for label in each if label in varying]
        there = "(j1 + p * apart)"
        given = {
            place: f"{names[place]}{'[p]' * (names[place] in varying)}"
            f"{'.values[j]' * steps[names[place]]}"
            for place in arrays
        }
        into = [*[f"{name}.values[j]" for name in results], *sums]
        return [
            *[f"    {kind(label)} {label}[{count}];" for label in moving],
            "#pragma unroll",
            f"    for (int p = 0; p < {count}; ++p) {{",
            *[
                f"      {label}[p] = {read(label, f'{label}_at + {there} * {varying[label]}')};"
                for label in moving
            ],
            "    }",
            "#pragma unroll",
            f"    for (int p = 0; p < {count}; ++p) {{",
            *[f"      Group<{kinds[name]}, {width}> {name};" for name in results],
            "#pragma unroll",
            f"      for (int j = 0; j < {width}; ++j) {{",
            f"        float {', '.join(sums)};",
            f"        {call(given, into)}",
            *[f"        total[{k}][j] += {name};" for k, name in enumerate(sums)],
            "      }",
            *[f"      write({name}_at + {there} * {varying[name]}, {name});" for name in results],
            "    }",
        ]

    count, many = len(sums), len(sums) * width
    lines = [
        f"  __shared__ float shared[{many * BLOCK}];",
        f"  const int me = threadIdx.x, apart = {BLOCK} / across, tiles = gridDim.x / parts;",
        "  const int part = blockIdx.x / tiles;",
        "  const int j0 = (blockIdx.x - part * tiles) * across + me % across;",
        "  const bool inside = j0 < size0;",
        "  const int end = part < parts - 1 ? (part + 1) * chunk : size1;",
        "  int j1 = inside ? part * chunk + me / across : size1;",
        *[
            f"  {label}_at += inside ? j0 * {width} : 0;"
            for label in [*each, *results]
            if steps[label]
        ],
        *[
            f"  const {kind(label)} {label} = {read(label, f'{label}_at')};"
            for label in each
            if label not in varying
        ],
        f"  float total[{count}][{width}] = {{}};",
        f"  for (; j1 < end - {form.packs - 1} * apart; j1 += {form.packs} * apart) {{",
        *rows(form.packs),
        "  }",
        "  for (; j1 < end; j1 += apart) {",
        *rows(1),
        "  }",
        "#pragma unroll",
        f"  for (int i = 0; i < {many}; ++i) {{",
        f"    shared[i * {BLOCK} + me] = total[i / {width}][i % {width}];",
        "  }",
        "  for (int half = apart / 2; half > 0; half /= 2) {",
        "    __syncthreads();",
        "    if (me < half * across) {",
        "#pragma unroll",
        f"      for (int i = 0; i < {many}; ++i) {{",
        f"        shared[i * {BLOCK} + me] += shared[i * {BLOCK} + me + half * across];",
        "      }",
        "    }",
        "  }",
        "  if (inside && me < across) {",
        "#pragma unroll",
        f"    for (int i = 0; i < {many}; ++i) {{",
        f"      sums_at[((j0 * {width} + i % {width}) * parts + part) * {count} + i / {width}] =",
        f"          shared[i * {BLOCK} + me];",
        "    }",
        "  }",
    ]
    fixed = [f"const int {name}" for name in ("size0", "size1", "across", "parts", "chunk")]
    return lines, [*fixed, *extra]


def _stored(value: str, at: str, width: int) -> str:
    return f"write({at}, {value})" if width > 1 else f"*({at}) = {value}"


def _indented(line: str, by: int) -> str:
    return line if line.startswith("#") else " " * by + line
