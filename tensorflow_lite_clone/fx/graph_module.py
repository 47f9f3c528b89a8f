"""A module made of a graph: its ``forward`` is the code of the graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tensorflow_lite_clone.core.errors import PACKAGE_FOLDER, level_outside
from tensorflow_lite_clone.fx._attributes import (
    _assign_attr,
    _copy_attr,
    _del_attr,
    _get_attr,
    _has_attr,
)
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._execution import function_of_source
from tensorflow_lite_clone.fx._names import torch_name, torch_path
from tensorflow_lite_clone.fx._namespace import STANDARD
from tensorflow_lite_clone.fx._tracer import Tracer
from tensorflow_lite_clone.fx.graph import Graph, PythonCode, _BoxedCodeGen, _PyTreeCodeGen
from tensorflow_lite_clone.nn.modules.module import Module, _addindent
from tensorflow_lite_clone.serialization import save

__all__ = [
    "GraphModule",
    "_assign_attr",
    "_copy_attr",
    "_del_attr",
    "_get_attr",
    "_has_attr",
    "reduce_graph_module",
]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
#: Hooks, each a list: of nodes that are replaced, made and erased, and of copies.
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_COPIED = (
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", *_HOOKS,
)  # fmt: skip
#: Modules that `to_folder` writes as code; others go into files.
_WRITTEN = frozenset("Linear Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d".split())


class _CodeOnlyModule(Module):
    """A module that has the attributes of another, and a function for ``forward``."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


# ---------------------------------------------------------------------------------------- files


def _import_line(name: str, value: Any) -> str:
    if name in STANDARD:
        return STANDARD[name].imported
    if torch_name(value) is not None:
        return "import torch"
    module = torch_path(value.__module__)
    return f"from {module} import {value.__qualname__} as {name}"


def _import_block(names: dict[str, Any]) -> str:
    return "\n".join(sorted({_import_line(name, value) for name, value in names.items()}))


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """The `GraphModule` of a file, which has its attributes and code: that is traced again."""
    source = import_block + (body.get("_code") or body["code"])
    forward = function_of_source(source, {})
    kind = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})
    tracer: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer):
        """What enters no module: none was entered when the graph was made."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    root = kind(body)
    graph = KeepModules().trace(root, **body.get("_tracer_extras", {}))
    traces = body.pop("_graphmodule_graph_node_meta_stack_trace", None) or {}
    for node in graph.nodes:
        if traces.get(node.name) is not None:
            node.stack_trace = traces[node.name]
    graph._tracer_cls = tracer
    module = GraphModule(root, graph, body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(module, name):
            setattr(module, name, value)
    return module


# --------------------------------------------------------------------------------------- calling


class _WrappedCall:
    """Calls a module; an error of a line of its code is printed with the lines around it."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame: traceback.FrameSummary) -> str:
        number, line = frame.lineno or 0, frame.line or ""
        lines = linecache.getlines(frame.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {number} of the traced Module's generated "
                "forward function:",
                "".join(lines[number - 2 : number]),
                f"{'~' * len(line)}~~~ <--- HERE",
                "\n".join(lines[number : number + 2]),
            ]
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[arg-type]
        except Exception as error:
            frames = [each for each in traceback.extract_tb(error.__traceback__) if _is_seen(each)]
            if frames and "eval_with_key" in frames[-1].filename:
                print(self._generate_error_message(frames[-1]), file=sys.stderr)
                raise error.with_traceback(None)  # noqa: B904
            raise


def _is_seen(frame: traceback.FrameSummary) -> bool:
    """Whether PyTorch has such a frame: it has none of functions, only of code and of modules."""
    file = frame.filename
    if file.startswith("<"):
        return "eval_with_key" in file
    return not file.startswith(PACKAGE_FOLDER) or f"{os.sep}nn{os.sep}modules" in file


@compatibility(is_backward_compatible=True)
class GraphModule(Module):
    """A module whose ``forward`` is the code of a graph.

    Parameters, buffers and modules that the graph names come from `root`: a module, or a
    dictionary of paths. Setting `graph` makes new code; a graph that was changed needs
    `recompile`. RuntimeError for a path that a dictionary lacks.

    >>> graph = torch.fx.Graph()
    >>> result = graph.output(graph.call_function(torch.neg, (graph.placeholder("x"),)))
    >>> torch.fx.GraphModule({}, graph)(torch.ones(2))
    tensor([-1., -1.])
    """

    _graph: Graph
    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Each module has a class of its own, for its own ``forward``.
        base = next(kind for kind in cls.__mro__ if kind.__name__ != "GraphModuleImpl")
        base = next(kind for kind in cls.__mro__ if "_is_generated" not in vars(kind))
        kind = type("GraphModuleImpl", (base,), {"_is_generated": True, "__module__": __name__})
        return super().__new__(kind)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets: list[Any] = [
            node.target for node in graph.nodes if node.op in ("get_attr", "call_module")
        ]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                members = (root.named_children(), root.named_buffers(), root.named_parameters())
                targets = [name for name, _ in itertools.chain(*members)] + targets
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            missing = [node for node in graph.nodes if node.target in targets]
            for node in missing:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda target: target.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        # A tracer that is defined in a function cannot be named in a file.
        tracer = graph._tracer_cls
        is_named = tracer is not None and "<locals>" not in tracer.__qualname__
        self._tracer_cls = tracer if is_named else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for name in _HOOKS:
            setattr(self, name, [])
        self.shape_env: Any = None

    @property
    def graph(self) -> Graph:
        """The graph; to set another one makes new code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def code(self) -> str:
        """The code of ``forward``."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated!")
        return self._code

    @compatibility(is_backward_compatible=True)
    def recompile(self) -> PythonCode:
        """Make the code of the graph as it is now, and of modules of graphs that are children."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        code = self._graph.python_code("self")
        self._code = code.src
        self._lineno_map, self._prologue_start = code._lineno_map, code._prologue_start
        kind: Any = type(self)
        kind.forward = function_of_source(
            code.src, code.globals, codegen._func_name, self._graph._co_fields
        )
        if "_wrapped_call" not in vars(kind):
            kind._wrapped_call = _WrappedCall(kind, vars(kind).get("__call__"))
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        kind.__call__ = call_wrapped
        return code

    # -------------------------------------------------------------------------------- submodules

    @compatibility(is_backward_compatible=True)
    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path, above which modules are made; False where something else is."""
        *names, last = target.split(".")
        module: Module = self
        for name in names:
            if getattr(module, name, None) is None:
                setattr(module, name, Module())
            module = getattr(module, name)
            if not isinstance(module, Module):
                return False
        module.add_module(last, m)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path; False where there is none."""
        parent, _, name = target.rpartition(".")
        module = _get_attr(self, parent) if parent and _has_attr(self, parent) else self
        if parent and module is self or not isinstance(module, Module):
            return False
        if not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph neither calls nor reads anything of."""
        used: set[str] = {""}
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            names = node.target.split(".")
            used.update([".".join(names[: i + 1]) for i in range(len(names))])
            if node.op == "call_module" and _has_attr(self, node.target):
                inner = self.get_submodule(node.target).named_modules(prefix=node.target)
                used.update([name for name, _ in inner])
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # ------------------------------------------------------------------------------------- copies

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {**self.__dict__}
        code = self.recompile()
        del attributes["_graph"]
        return reduce_graph_module, (attributes, _import_block(code.globals))

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        root = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(copied, root, root.__dict__["_graph"])
        for name in _COPIED:
            if name in self.__dict__:
                setattr(copied, name, copy.deepcopy(self.__dict__[name], memo))
        copied.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(copied, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(copied)
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = getattr(self, "meta", {})
        return copied

    @compatibility(is_backward_compatible=False)
    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write a package that has the module as a class, with files of its state."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines = ["import torch", *[each.imported for each in STANDARD.values()]]
        lines += ["from torch.nn import *"]
        lines += [f"class {module_name}(torch.nn.Module):", "    def __init__(self):"]
        body = ["super().__init__()"]
        in_files = []
        for name, child in self.named_children():
            written = repr(child)
            if type(child).__name__ not in _WRITTEN:
                save(child, folder / f"{name}.pt")
                in_files.append(name)
                one_line = written.replace("\r", " ").replace("\n", " ")
                path = folder / f"{name}.pt"
                written = f"torch.load(r'{path}', weights_only=False) # {one_line}"
                body.append(f"self.{name} = {written}")
            else:
                body.append(f"self.{name} = {written}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                empty = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
                body.append(f"self.register_buffer('{name}', {empty})")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                empty = f"torch.empty({list(parameter.shape)}, dtype={parameter.dtype})"
                body.append(f"self.{name} = torch.nn.Parameter({empty})")
        body.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        lines += [f"        {line}" for line in body]
        text = "\n".join(lines) + "\n" + _addindent(self.code, 4) + "\n"
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *")
        if in_files:
            warnings.warn(
                "Was not able to save the following children modules as reprs -saved as pickled "
                f"files instead: {in_files}",
                stacklevel=level_outside(),
            )

    # ----------------------------------------------------------------------------------- printing

    @compatibility(is_backward_compatible=False)
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code as that of a class, with what is noted of its values; printed, too, if asked.

        Modules of graphs that are children follow it. `fast_sympy_print` changes nothing: there
        are no symbolic sizes here.
        """
        options: dict[str, Any] = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "additional_meta": additional_meta,
        }
        text = _readable(self, self._get_name(), expanded_def, options)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    # -------------------------------------------------------------------------------------- hooks

    def _replicate_for_data_parallel(self) -> GraphModule:
        copied = self.__copy__()
        object.__setattr__(copied, "_is_replica", True)
        return copied

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """A block in which ``f(old=node, new=name, user=node)`` sees replacements and new names."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _add_hooks(kind: str, hooks: str) -> None:
    """Give graph modules methods that register hooks of a kind in a list, and take them away."""

    def register(self: GraphModule, f: Callable[..., Any]) -> None:
        getattr(self, hooks).append(_checked_hook(f))

    def unregister(self: GraphModule, f: Callable[..., Any]) -> None:
        getattr(self, hooks).remove(f)

    setattr(GraphModule, f"_register_{kind}_hook", register)
    setattr(GraphModule, f"_unregister_{kind}_hook", unregister)


for _kind, _list in zip(("replace_node", "create_node", "erase_node", "deepcopy"), _HOOKS):
    _add_hooks(_kind, _list)


def _checked_hook(f: Any) -> Any:
    if not callable(f):
        raise AssertionError(f"a hook must be a callable, got {type(f)}")
    return f


def _readable(module: Any, name: str, expanded_def: bool, options: dict[str, Any]) -> str:
    code = module.graph.python_code("self", verbose=True, expanded_def=expanded_def, **options)
    text = _addindent(f"class {name}(torch.nn.Module):\n" + code.src.lstrip("\n"), 4)
    children = [
        _readable(child, child_name, False, options)
        for child_name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    return text + _addindent("\n".join(["", *children]), 4)
