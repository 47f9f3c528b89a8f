"""Python code of a graph, in the words in which PyTorch writes it."""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._names import qualified_name, torch_name, type_name
from tensorflow_lite_clone.fx._namespace import STANDARD, Namespace
from tensorflow_lite_clone.fx.node import Node, abbreviation, noted_value
from tensorflow_lite_clone.ops.compat.symbols import SymBool, SymFloat, SymInt
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils import _pytree as pytree

TransformCodeFunc = Callable[[list[str]], list[str]]

#: Operators by the names that the module `operator` has for them, and how they are written.
reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

#: Types that `typing` has other names for.
_GENERIC = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}

_COLORS = {"red": "31", "blue": "34", "dim": "2", "dim_blue": "2m\033[34", "dim_green": "2m\033[32"}
_MARK = re.compile(r"# COUNTER: (\d+)")
_LINE_OF_TRACE = re.compile(r'^File "(.+)", line (\d+), in (.+)$')


@compatibility(is_backward_compatible=True)
@dataclass
class PythonCode:
    """The text of a function, and the values of the global names in it.

    `_lineno_map` has for lines of the function the number of the node that each is for.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """How arguments and results are nested, for a graph of their leaves."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


def format_target(base: str, target: str) -> str:
    """The expression for the attribute at a path."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


@compatibility(is_backward_compatible=False)
class CodeGen:
    """What makes the code of a graph. Subclasses change the head, the return, the arguments.

    >>> class Named(torch.fx.CodeGen):
    ...     def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
    ...         return f"def forward(self, *, {', '.join(free_vars)}):"
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The line with ``def``, of parameters as they are written and of the annotation."""
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        head = f"def {self._func_name}("
        if not expanded_def:
            return f"{head}{', '.join(free_vars)}){maybe_return_annotation}:"
        lines = []
        for variable in free_vars:
            text, has_comment, comment = variable.partition("#")
            end = f",  # {comment.lstrip()}" if has_comment else ","
            lines.append(f"    {text.rstrip()}{end}\n")
        return f"{head}\n{''.join(lines)}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        """The line with ``return``, not indented."""
        return f"return {self._result(output_args, descs, repr_fn or repr)}"

    @staticmethod
    def _result(values: Any, descs: Sequence[str] | None, write: Callable[[Any], str]) -> str:
        """A result; where its parts are described, a line for each."""
        if descs is None or not isinstance(values, (list, tuple)):
            return write(values)
        lines = [f"    {write(value)},  # {desc}\n" for value, desc in zip(values, descs)]
        left, right = "()" if isinstance(values, tuple) else "[]"
        return f"{left}\n{''.join(lines)}{right}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph, of those of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function returns, of what the graph does."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More names that the code has, and their values."""
        return []

    def _gen_python_code(
        self, nodes: Iterable[Node], root_module: str, namespace: Namespace, **options: Any
    ) -> PythonCode:
        return _Writer(self, nodes, root_module, namespace, **options).write()


class _PyTreeCodeGen(CodeGen):
    """For a function whose arguments are trees: it takes them apart first."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        spec = self.pytree_info.out_spec
        if spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], spec)

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        own = self.pytree_info.orig_args
        if own[:1] == ["self"]:
            free_vars.insert(0, "self")
        head = super().gen_fn_def(own[:], maybe_return_annotation, expanded_def=expanded_def)
        return head + self.gen_var_bindings(own, free_vars, expanded_def) if free_vars else head

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The lines that take the arguments apart."""
        spec = self.pytree_info.in_spec
        children = spec.children()
        given = f"[{', '.join(fn_args)}]"
        kinds = [child.type for child in children]
        if spec.type is tuple and kinds == [tuple, dict]:
            count = len(children[0].children())
            names = self.pytree_info.orig_args
            pairs = zip(children[1].context, names[count:])
            named = ", ".join([f"'{key}':{name}" for key, name in pairs])
            given = f"([{', '.join(names[:count])}], {{{named}}})"
        annotated = [name for name in free_vars if ":" in name]
        lines = ""
        if annotated:
            each = [f"\n    {name}" for name in annotated]
            joined = "\n    " + "".join([f"{name}; " for name in annotated]) + "\n"
            lines = "".join(each) if expanded_def else joined
        bare = [name.split(":")[0].split("#")[0] for name in free_vars]
        call = f"fx_pytree.tree_flatten_spec({given}, self._in_spec)"
        return f"{lines}\n    {', '.join(bare)}, = {call}"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        text = self._result(output_args, descs, repr_fn or repr)
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        return f"return pytree.tree_unflatten({text}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """For a function that takes a list of its arguments, and empties it."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        head = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars if name != "self"]
        if not names:
            return head
        lines = ["args_iter = iter(args_list)", *[f"{name} = next(args_iter)" for name in names]]
        return "\n    ".join([head, *lines, "args_list.clear()"])


class _Writer:
    """Writes the code of one graph."""

    def __init__(
        self,
        codegen: CodeGen,
        nodes: Iterable[Node],
        root_module: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> None:
        self.codegen = codegen
        self.nodes = [*nodes]
        self.root = root_module
        self.namespace = namespace
        self.verbose = verbose
        self.include_stride = include_stride
        self.include_device = include_device
        self.colored = colored
        self.expanded_def = expanded_def
        self.additional_meta = additional_meta or []
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self.last_summary = ""
        for name, (_, value) in STANDARD.items():
            self.globals[namespace.create_name(name, value)] = value

    def write(self) -> PythonCode:
        last_uses = self._last_uses()
        for number, node in enumerate(self.nodes):
            if self.verbose and node.op not in ("placeholder", "output"):
                self._summary(node)
            # Which node a line is for is still known when a program has transformed the lines.
            self.body.append(f"# COUNTER: {number}\n")
            self._node(node)
            self._release(node, last_uses.get(node, []))
        body = self.body or ["pass\n"]
        wrapping = ""
        if self.wrapped:
            lines = [f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped]
            wrapping = "\n".join(lines)
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body)
        for name, value in self.codegen.additional_globals():
            self._global(name, value)
        options = {"expanded_def": True} if self.expanded_def else {}
        prologue = self.codegen.gen_fn_def(self.parameters, self.return_annotation, **options)
        lines, line_numbers = self._numbered(body, prologue.count("\n") + 1)
        code = "\n".join(["    " + line for line in "\n".join(lines).lstrip("\n").split("\n")])
        source = f"\n{wrapping}\n\n{prologue}\n{code}"
        return PythonCode(source, self.globals, line_numbers, wrapping.count("\n") + 4)

    @staticmethod
    def _numbered(body: list[str], start: int) -> tuple[list[str], dict[int, int | None]]:
        lines: list[str] = []
        numbers: dict[int, int | None] = {}
        current = None
        for line in "".join(body).split("\n"):
            mark = _MARK.search(line)
            if mark is not None:
                current = int(mark.group(1))
            else:
                numbers[len(lines) + start] = current
                lines.append(line)
        return lines, numbers

    # ------------------------------------------------------------------------------------ nodes

    def _node(self, node: Node) -> None:
        name = repr(node)
        kind, comment = self._annotation(node)
        args, target = node.args, node.target
        if node.op == "placeholder":
            default = f" = {self._repr(args[0])}" if args else ""
            self.parameters.append(f"{target}{kind}{default}{comment}")
            bare = str(target).replace("*", "")
            if bare != name:
                self.body.append(f"{name} = {bare}\n")
        elif node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self._type(node.type)}"
            kwargs = {"descs": node.meta.get("desc")} if self.expanded_def else {}
            line = self.codegen.generate_output(args[0], **kwargs, repr_fn=self._repr)
            self.body.append(line)
        elif node.op == "call_function":
            self.body.append(self._function(node, name, kind))
        elif node.op == "call_method":
            of = format_target(self._repr(args[0]), str(target))
            self.body.append(f"{name}{kind} = {of}({self._arguments(args[1:], node.kwargs)})")
        elif node.op == "call_module":
            called = format_target(self.root, str(target))
            self.body.append(f"{name}{kind} = {called}({self._arguments(args, node.kwargs)})")
        elif node.op == "get_attr":
            self.body.append(f"{name}{kind} = {format_target(self.root, str(target))}")
        else:
            raise NotImplementedError(f"node: {node.op} {target}")

    def _function(self, node: Node, name: str, kind: str) -> str:
        target: Any = node.target
        args = node.args
        if getattr(target, "__module__", "") == "_operator":
            operands = [self._repr(each) for each in args]
            if target.__name__ in magic_methods:
                return f"{name}{kind} = {magic_methods[target.__name__].format(*operands)}"
            if target.__name__ in inplace_methods:
                statement = inplace_methods[target.__name__].format(*operands)
                return f"{statement};  {name}{kind} = {operands[0]}"
        called = self._global(qualified_name(target), target)
        is_attribute = called == "getattr" and len(args) == 2 and isinstance(args[1], str)
        if is_attribute and args[1].isidentifier():
            return f"{name}{kind} = {format_target(self._repr(args[0]), args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(called)
        return f"{name}{kind} = {called}({self._arguments(args, node.kwargs)})"

    def _last_uses(self) -> dict[Node, list[Node]]:
        """Of each node the values that nobody uses after it."""
        seen: set[Node] = set()
        last_uses: dict[Node, list[Node]] = {}
        for node in reversed(self.nodes):
            for used in node._input_nodes:
                if used not in seen:
                    seen.add(used)
                    last_uses.setdefault(node, []).append(used)
        return last_uses

    def _release(self, node: Node, unused: list[Node]) -> None:
        if node.op == "placeholder":
            return
        unused = unused if node.users or node.op == "output" else [*unused, node]
        if unused and node.op != "output":
            text = " = ".join([*map(repr, unused), "None"])
            self.body.append(f";  {self._color('dim', text)}\n")
        else:
            self.body.append("\n")

    # ------------------------------------------------------------------------------- expressions

    def _arguments(self, args: tuple, kwargs: dict[str, Any]) -> str:
        named = [f"{key} = {self._repr(value)}" for key, value in kwargs.items()]
        return ", ".join([*map(self._repr, args), *named])

    def _repr(self, value: Any) -> str:
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                kind = self._global(qualified_name(type(value)), type(value))
                return f"{kind}{tuple(value)!r}"
            items = ", ".join(map(self._repr, value))
            return f"({items},)" if len(value) == 1 else f"({items})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._repr, value))}]"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self._repr, (value.start, value.stop, value.step)))})"
        if isinstance(value, enum.Enum):
            return f"{self._global(type(value).__name__, type(value))}.{value.name}"
        if isinstance(value, Tensor):
            dtype = str(value.dtype).rpartition(".")[2]
            return f"torch.Tensor(size={list(value.size())}, dtype={dtype})"
        if callable(value) and torch_name(value) and not isinstance(value, type):
            return self._global(qualified_name(value), value)
        return self._color("blue", repr(value))

    def _global(self, hint: str, value: Any) -> str:
        """The name by which the code has a function or type."""
        known = torch_name(value)
        if known is not None and value is not Device:
            return known  # reached from `torch`
        name = self.namespace.create_name(hint, value)
        if self.globals.setdefault(name, value) != value:
            raise AssertionError(f"Global name {name} already assigned to different object")
        return name

    def _type(self, kind: Any) -> str:
        if kind == ():  # of `tuple[()]`
            return "()"
        written = type_name(kind)
        if isinstance(kind, types.UnionType) and "|" in written:
            return "|".join(map(self._type, typing.get_args(kind)))
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self._global(written, kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _GENERIC.get(origin, origin)
        name = self._global(type_name(origin), origin)
        parts = ",".join(map(self._type, typing.get_args(kind)))
        return f"{name}[{parts}]" if parts else name

    # --------------------------------------------------------------------------------- verbosity

    def _color(self, color: str, text: str) -> str:
        return f"\033[{_COLORS[color]}m{text}\033[0m" if self.colored else text

    def _annotation(self, node: Node) -> tuple[str, str]:
        """What stands behind the name of a node, and the comment behind a parameter."""
        kind = "" if node.type is None else f" : {self._type(node.type)}"
        comment = ""
        value = noted_value(node) if self.verbose else None
        if isinstance(value, Tensor):
            text = self._color("red", abbreviation(value).partition("[")[0])
            text += self._color("blue", f"[{', '.join(map(str, value.shape))}]")
            strides = f"[{', '.join(map(str, value.stride()))}]" if self.include_stride else ""
            text += self._color("dim_blue", strides)
            text += self._color("dim_green", f"{value.device}" if self.include_device else "")
            is_plain = type(value).__name__ in ("Tensor", "FakeTensor")
            kind = f': "{text}"' if is_plain else f': "{type(value).__name__}({text})"'
        elif hasattr(value, "dtype") and hasattr(value, "shape"):
            kind = f': "{abbreviation(value)}"'
        elif isinstance(value, (SymInt, SymFloat, SymBool)):
            kind = f': "Sym({value})"'
        if self.expanded_def and node.op == "placeholder" and node.meta.get("desc") is not None:
            comment = f"  # {node.meta['desc']}"
        return kind, comment

    def _summary(self, node: Node) -> None:
        """A comment that says where the program made the call, if the one before does not."""
        noted = [f"{key}: {node.meta[key]}" for key in self.additional_meta if key in node.meta]
        more = f"# {', '.join(noted)} " if noted else ""
        custom = {
            key: str(value)[:40] + "..." if len(str(value)) > 40 else value
            for key, value in node.meta.get("custom", {}).items()
        }
        annotation = f" Annotation: {custom}" if custom else ""
        where = _summary_of_trace(node.stack_trace) or "No stacktrace found for following nodes"
        summary = f"\n{self._color('dim', f'{more}#{annotation} {where}')}\n"
        if summary != self.last_summary:
            self.last_summary = summary
            self.body.append(summary)


def _summary_of_trace(trace: str | None) -> str | None:
    lines = trace.strip().split("\n") if trace else []
    for line, code in reversed([*zip(lines, lines[1:])]):
        match = _LINE_OF_TRACE.match(line.strip())
        if match:
            file, number, name = match.groups()
            return f"File: {file}:{number} in {name}, code: {code.strip()}"
    return None
