"""Programs that make modules of graphs and run them, for either library; see `programs`."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import pickle
from typing import Any

from tests.fx.programs import defined, error, model, numbers, texts


def graph_modules(lib: Any) -> list[Any]:
    fx, nn = lib.fx, lib.nn
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_module("a.b", (x,))
    graph.output(graph.call_function(lib.add, (y, graph.get_attr("c"))))
    made = fx.GraphModule({"a.b": nn.ReLU(), "c": lib.ones(2)}, graph, "Made")
    seen = [type(made).__name__, repr(made), sorted(made.state_dict()), numbers(made(lib.ones(2)))]
    seen += [error(fx.GraphModule, {}, graph), error(fx.GraphModule, 3, graph)[0]]
    seen += [
        made.add_submodule("x.y", nn.Tanh()), made.add_submodule("c.y", nn.Tanh()),
        [name for name, _ in made.named_modules()], made.delete_submodule("x.y"),
        made.delete_submodule("no.y"), made.delete_submodule("c"),
    ]  # fmt: skip
    made.delete_all_unused_submodules()
    seen.append([name for name, _ in made.named_modules()])
    copied, pickled = copy.deepcopy(made), pickle.loads(pickle.dumps(made))
    for each in (copied, pickled, copy.copy(made)):
        seen += [each.code == made.code, str(each.graph), numbers(each(lib.ones(2)))]
    return seen


def pickled_modules(lib: Any) -> list[Any]:
    traced = lib.fx.symbolic_trace(model(lib))
    loaded = pickle.loads(pickle.dumps(traced))
    x = lib.ones(3, 4)
    return [
        loaded.code == traced.code, [str(node) for node in loaded.graph.nodes],
        numbers(loaded(x)) == numbers(traced(x)), sorted(loaded.state_dict()), loaded.training,
        traced.__reduce__()[1][1],
    ]  # fmt: skip


def hooks(lib: Any) -> list[Any]:
    traced = lib.fx.symbolic_trace(lambda x: lib.relu(x))
    seen: list[Any] = []
    traced._register_create_node_hook(lambda node: seen.append(("made", str(node))))
    traced._register_erase_node_hook(lambda node: seen.append(("erased", str(node))))
    relu = traced.graph.find_nodes(op="call_function", target=lib.relu)[0]
    with traced._set_replace_hook(lambda old, new, user: seen.append((str(old), new, str(user)))):
        with traced.graph.inserting_after(relu):
            neg = traced.graph.call_function(lib.neg, relu.args)
        relu.replace_all_uses_with(neg)
        traced.graph.erase_node(relu)
        neg.name = "other"
    return seen


# ----------------------------------------------------------------------------------------- running


def interpreters(lib: Any) -> list[Any]:
    fx = lib.fx

    class Swap(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(lib.neg if target is lib.relu else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("exp" if target == "log" else target, args, kwargs)

    traced = fx.symbolic_trace(lambda x, n=2, *rest: lib.relu(x * n).log() + rest[0])
    one = lib.ones(2)
    runner = fx.Interpreter(traced, garbage_collect_values=False)
    seen = [numbers(Swap(traced).run(one, 3, one)), numbers(runner.run(one, 2, one))]
    seen += [[*map(str, runner.env)], [*map(str, Swap(traced).env)]]
    values = [one, 2, [one]]
    seen += [numbers(runner.boxed_run(values)), values, error(runner.boxed_run, [one])]
    x = next(iter(traced.graph.nodes))
    seen += [numbers(runner.run(7, one, initial_env={x: one * 2}))]
    traced = fx.symbolic_trace(lambda x: lib.mm(x, x))
    return [*seen, "While executing %mm : " in error(fx.Interpreter(traced).run, one)[1]]


def transformers(lib: Any) -> list[Any]:
    fx = lib.fx

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(lib.tanh if target is lib.relu else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                return lib.exp(args[0]) + 1
            return super().call_method(target, args, kwargs)

    traced = fx.symbolic_trace(lambda x, y=3: lib.relu(x).neg() * y)
    made = fx.symbolic_trace(model(lib))
    return [*texts(Swap(traced).transform()), *texts(fx.Transformer(made).transform())]


def normalized(lib: Any) -> list[Any]:
    traced = lib.fx.symbolic_trace(lib.nn.Sequential(lib.nn.Linear(2, 2)))
    node = traced.graph.find_nodes(op="call_module")[0]
    seen = [str(node.normalized_arguments(traced, normalize_to_only_use_kwargs=True))]

    def f(x, y=2, *, z=3):
        return x

    graph = lib.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(f, (x,), {"z": 1})
    return [*seen, str(node.normalized_arguments(traced)), node.is_impure(), x.is_impure()]


def readable(lib: Any) -> list[Any]:
    class Recording(lib.fx.Tracer):
        record_stack_traces = True

    made = lib.nn.Sequential(lib.nn.ReLU())
    traced = lib.fx.GraphModule(made, Recording().trace(made), "Made")
    for node in traced.graph.nodes:
        node.meta["val"] = lib.ones(2, 3)
        node.meta["note"] = node.name
    options = {"print_output": False, "include_stride": True, "include_device": True}
    text = traced.print_readable(**options, colored=True)
    plain = lib.fx.symbolic_trace(model(lib))
    plain.add_submodule("more", traced)
    return [
        "class Made(torch.nn.Module):" in text, "\033[31mf32" in text,
        plain.print_readable(print_output=False).count("class "),
        lib.fx.symbolic_trace(made).print_readable(print_output=False),
        traced.graph.find_nodes(op="call_module")[0].format_node(include_tensor_metadata=True),
    ]  # fmt: skip


def errors_in_code(lib: Any) -> list[Any]:
    traced = lib.fx.symbolic_trace(lambda x, y: lib.relu(x) + y * 2)
    inner = lib.fx.symbolic_trace(lib.nn.Sequential(lib.nn.Linear(2, 2)))
    seen: list[Any] = []
    for module, args in ((traced, (lib.ones(2), lib.ones(3))), (inner, (lib.ones(3),))):
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            seen.append(error(module, *args)[0])
        seen.append(shown.getvalue().partition("Call using")[2].splitlines())
    return seen


def tracers_written_anew(lib: Any) -> list[Any]:
    """As torch_geometric's, which has its own `Tracer.trace`."""
    parts = importlib.import_module(f"{lib.__name__}.fx._symbolic_trace")

    class Whole(lib.fx.Tracer):
        def is_leaf_module(self, *given: Any) -> bool:
            return True

        def trace(self, root: Any, concrete_args: Any = None) -> Any:
            self.root, function = root, type(root).forward
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.graph, self.tensor_attrs, cache = lib.fx.Graph(), {}, {}
            assert isinstance(function, parts.FunctionType)
            assert not isinstance(root, parts.ScriptObject)
            names = function.__globals__
            function, args = self.create_args_for_root(function, True, concrete_args)

            @parts.functools.wraps(parts._orig_module_getattr)
            def get(module: Any, name: str) -> Any:
                return self.getattr(name, parts._orig_module_getattr(module, name), cache)

            @parts.functools.wraps(parts._orig_module_call)
            def call(module: Any, *args: Any) -> Any:
                return self.call_module(
                    module, lambda *given: parts._orig_module_call(module, *given), args, {}
                )

            with parts._Patcher() as patcher:
                patcher.patch_method(lib.nn.Module, "__getattr__", get, deduplicate=False)
                patcher.patch_method(lib.nn.Module, "__call__", call, deduplicate=False)
                parts._patch_wrapped_functions(patcher)
                parts._autowrap_check(patcher, names, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(function(*args)),), {})
            self.submodule_paths = None
            return self.graph

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = lib.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return lib.relu(self.layer(x)) + self.layer.weight

    net = Net()
    traced = lib.fx.GraphModule(net, Whole().trace(net))
    x = lib.ones(2, 2)
    return [str(traced.graph), numbers(traced(x)) == numbers(net(x))]


PROGRAMS = defined(globals())
