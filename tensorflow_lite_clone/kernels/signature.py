"""Reads the parameters of a kernel from its source, and writes template arguments for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, NamedTuple

#: C types of the dtypes; here and nowhere else.
C_TYPES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int16": "short",
    "uint32": "unsigned int",
    "int32": "int",
    "uint64": "unsigned long long",
    "int64": "long long",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
}
_SAME = {
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "size_t": "unsigned long long",
    "ptrdiff_t": "long long",
    "long": "long long",
    "unsigned long": "unsigned long long",
    "half": "__half",
    "unsigned": "unsigned int",
    "char": "signed char",
    "acc_t<double>": "double",  # of common.cuh
}
_NOISE = re.compile(r"\b(const|__restrict__|volatile|__grid_constant__)\b|\bstd::")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CLOSING = {"(": ")", "<": ">", "[": "]", "{": "}"}
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


class Parameter(NamedTuple):
    """One parameter: its name, its C type with template names put in, whether it is a pointer, and
    to what the kernel only reads."""

    name: str
    type: str
    pointer: bool
    constant: bool = False


def c_type(value: Any) -> str:
    """How a template argument is written: a dtype, bool, int, or text as it is."""
    if isinstance(value, str):
        return value
    if type(value).__name__ in ("bool", "bool_"):  # Python's or NumPy's
        return "true" if value else "false"
    try:
        return str(index(value))
    except TypeError:
        pass
    name = getattr(value, "name", None)
    if name in C_TYPES:
        return C_TYPES[name]
    raise TypeError(f"no C type for the template argument {value!r}")


def template_parameters(text: str, name: str) -> list[tuple[str, str | None]]:
    """Names and defaults of a kernel's template parameters; ValueError when there is no kernel."""
    code = _COMMENT.sub("", text)
    return _template(code, _head(code, name).start())


def parameters(text: str, name: str, arguments: Sequence[str] = ()) -> list[Parameter]:
    """The parameters of the kernel `name` in a source, for template arguments given in order.

    Raises ValueError when the kernel is not there, or has other template parameters.
    """
    code = _COMMENT.sub("", text)
    head = _head(code, name)
    template = _template(code, head.start())
    needed = sum(default is None for _, default in template)
    if not needed <= len(arguments) <= len(template):
        raise ValueError(
            f"'{name}' has the template parameters <{', '.join(word for word, _ in template)}>, "
            f"but <{', '.join(arguments)}> were given"
        )
    types = {word: value for (word, _), value in zip(template, arguments)}
    for word, default in template[len(arguments) :]:
        types[word] = _put_in(default or "", types)
    return [_parameter(part, types) for part in _parts(code, head.end(), ")") if part.strip()]


def _head(code: str, name: str) -> re.Match[str]:
    head = re.search(rf"__global__[^;{{]*?\b{re.escape(name)}\s*\(", code)
    if head is None:
        raise ValueError(f"there is no __global__ function '{name}'")
    return head


def _template(code: str, end: int) -> list[tuple[str, str | None]]:
    """The template parameters of what begins at `end`."""
    start = code.rfind("template", 0, end)
    opened = re.compile(r"template\s*<").match(code, start) if start >= 0 else None
    if opened is None:
        return []
    parts = list(_parts(code, opened.end(), ">"))
    after = opened.end() + sum(map(len, parts)) + len(parts)
    if re.search(r"[;{}]", code[after:end]):
        return []  # it belongs to something before
    found = []
    for part in parts:
        left, equals, right = part.partition("=")
        found.append((left.split()[-1], right.strip() if equals else None))
    return found


def _parts(code: str, start: int, closing: str) -> Iterator[str]:
    """What commas separate, up to the bracket that closes what was opened before `start`."""
    expected = [closing]
    for end in range(start, len(code)):
        character = code[end]
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character in ")]}" or character == expected[-1]:
            while expected and expected.pop() != character:
                pass  # a < that was no bracket
        if not expected or (len(expected) == 1 and character == ","):
            yield code[start:end]
            start = end + 1
        if not expected:
            return


def _put_in(text: str, types: dict[str, str]) -> str:
    """The text with template names replaced."""
    return _WORD.sub(lambda match: types.get(match[0], match[0]), text)


def _parameter(text: str, types: dict[str, str]) -> Parameter:
    constant = re.search(r"\bconst\b[^*]*\*", text) is not None
    text = _NOISE.sub(" ", text.partition("=")[0])
    stars = text.count("*") + text.count("[")
    *words, name = re.sub(r"\*|\[\w*\]", " ", text).split()
    kind = _put_in(" ".join(words), types)
    kind = _SAME.get(kind, kind)
    if re.fullmatch(r"acc_t\s*<.*>", kind):
        kind = "float"
    return Parameter(name, kind + "*" * (stars - 1), stars > 0, constant)
