"""Write Tensor's type stub from what is bound to it: `python -m tests.tools.stubs`.

Editors and type checkers see methods that `_bind` attaches at run time only there; a house test
checks that the committed file is fresh.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from typing import Any

import tensorflow_lite_clone  # noqa: F401  binds everything
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.tensor import Tensor
from tests.tools.markdown import ROOT

TARGET = ROOT / "tensorflow_lite_clone" / "tensor" / "tensor.pyi"
HEADER = '''# Generated from the functions bound to Tensor: python -m tests.tools.stubs
import builtins
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.storage import Storage

class View:
    base: Tensor
    last: tuple[Any, ...] | None
    restriction: str | None
    version: int
    def __init__(
        self, base: Tensor, last: tuple[Any, ...] | None, version: int, restriction: str | None
    ) -> None: ...
    @property
    def chain(self) -> tuple[Any, ...]: ...

def new_tensor(storage: Storage) -> Tensor: ...

class Tensor:
    _storage: Storage
    _edge: tuple[Any, builtins.int] | None
    _view: View | None
    _grad: Tensor | None
    _backward_hooks: Any
    _post_accumulate_hooks: Any
    _retains_grad: builtins.bool
    name: str | None
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
'''
#: Words an annotation may consist of; any other annotation is written as Any.
KNOWN = {"Any", "DType", "Device", "None", "Size", "Tensor", "bool", "complex"}
KNOWN |= {"dict", "float", "int", "list", "object", "str", "tuple"}
#: Attributes whose accessor says nothing about their type.
ATTRIBUTES = {
    "data": "Tensor",
    "device": "Device",
    "dtype": "DType",
    "grad": "Tensor | None",
    "is_leaf": "builtins.bool",
    "ndim": "builtins.int",
    "requires_grad": "builtins.bool",
    "shape": "Size",
    "T": "Tensor",
    "mT": "Tensor",
    "H": "Tensor",
    "mH": "Tensor",
    "real": "Tensor",
    "imag": "Tensor",
}
#: Operators that answer NotImplemented to strangers, which no annotation can say.
BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def annotation(value: Any) -> str:
    """An annotation's text if a reader of the stub knows all its words, else Any."""
    if not isinstance(value, str) or value is inspect.Parameter.empty:
        return "Any"
    try:
        tree = ast.parse(value, mode="eval")
    except SyntaxError:
        return "Any"
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    simple = not any(isinstance(node, ast.Attribute) for node in ast.walk(tree))
    if not (names <= KNOWN and simple):
        return "Any"
    # Tensor has methods of these names, which would be meant inside the class
    return re.sub(r"\b(bool|int|float|complex)\b", r"builtins.\1", value)


def parameter(entry: inspect.Parameter) -> str:
    """One parameter; its default is an ellipsis."""
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    prefix = stars.get(entry.kind.name, "")
    text = f"{prefix}{entry.name}: {annotation(entry.annotation)}"
    return text if entry.default is entry.empty else f"{text} = ..."


def method(name: str, function: Any) -> str:
    """A method's stub; the first parameter becomes self."""
    signature = inspect.signature(function)
    entries = list(signature.parameters.values())
    if entries and entries[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        entries = entries[1:]
    parts = ["self"]
    starred = False
    for entry in entries:
        if entry.kind is entry.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or entry.kind in (entry.KEYWORD_ONLY, entry.VAR_POSITIONAL)
        parts.append(parameter(entry))
    result = annotation(signature.return_annotation)
    if name.strip("_").removeprefix("r").removeprefix("i") in BINARY and name.startswith("__"):
        result = "Tensor"
    if name in ("__eq__", "__ne__"):
        return f"    def {name}(self, other: object) -> Tensor: ...  # type: ignore[override]"
    line = f"    def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) <= 100:
        return line
    inner = "".join(f"        {part},\n" for part in parts)
    return f"    def {name}(\n{inner}    ) -> {result}: ..."


def stub() -> str:
    """The whole stub."""
    lines = [HEADER.rstrip("\n")]
    accessors = {
        name: value for name, value in vars(Tensor).items() if isinstance(value, property)
    }
    for name, accessor in sorted(accessors.items()):
        kind = ATTRIBUTES.get(name) or annotation(accessor.fget.__annotations__.get("return"))
        lines.append(f"    @property\n    def {name}(self) -> {kind}: ...")
        if accessor.fset is not None:
            lines.append(f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...")
        if accessor.fdel is not None:
            lines.append(f"    @{name}.deleter\n    def {name}(self) -> None: ...")
    skipped = {*accessors, "__reduce_ex__"}  # object's own signature serves the latter
    methods = {name: value for name, value in EXPORTS["method"].items() if name not in skipped}
    lines += [method(name, function) for name, function in sorted(methods.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the stub."""
    TARGET.write_text(stub())
    return 0


if __name__ == "__main__":
    sys.exit(main())
