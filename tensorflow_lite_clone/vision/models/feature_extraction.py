"""Values from inside a model, by the names of the nodes of its graph."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from tensorflow_lite_clone import fx, nn
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.fx.graph_module import _copy_attr
from tensorflow_lite_clone.vision import ops

__all__ = ["create_feature_extractor", "get_graph_node_names"]

Nodes = Mapping[str, str] | Sequence[str]


class LeafModuleAwareTracer(fx.Tracer):
    """A tracer that enters no module of the classes `leaf_modules` either."""

    def __init__(self, *args: Any, leaf_modules: Sequence[type] = (), **kwargs: Any) -> None:
        self.leaf_modules = tuple(leaf_modules)
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        is_leaf = super().is_leaf_module(m, module_qualified_name)
        return is_leaf or isinstance(m, self.leaf_modules)


class NodePathTracer(LeafModuleAwareTracer):
    """A tracer that names nodes by the modules in which they are: ``layer1.0.relu_1``.

    What comes several times in a module has numbers from the second time on.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.current_module_qualname = ""
        self.node_to_qualname: dict[fx.Node, str] = {}

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        before, path = self.current_module_qualname, self.path_of_module(m)
        self.current_module_qualname = path
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.current_module_qualname = before

    def create_proxy(self, *args: Any, **kwargs: Any) -> fx.Proxy:
        proxy = super().create_proxy(*args, **kwargs)
        self.node_to_qualname[proxy.node] = self._qualname(proxy.node)
        return proxy

    def _qualname(self, node: fx.Node) -> str:
        name = self.current_module_qualname
        if node.op != "call_module":
            name += f".{node}" if name else str(node)
        name = re.sub(r"(?<=.)_[0-9]+$", "", name)  # the number that it has in the whole graph
        form = re.compile(re.escape(name) + r"(?:_([0-9]+))?")
        for other in reversed(self.node_to_qualname.values()):
            match = form.fullmatch(other)
            if match:
                return f"{name}_{int(match.group(1) or 0) + 1}"
        return name


class DualGraphModule(fx.GraphModule):
    """A module with a graph for training and one for evaluation."""

    def __init__(
        self,
        root: nn.Module,
        train_graph: fx.Graph,
        eval_graph: fx.Graph,
        class_name: str = "GraphModule",
    ) -> None:
        super().__init__(root, train_graph, class_name)
        for node in eval_graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, node.target)
        self.train_graph = train_graph
        self.eval_graph = eval_graph
        self.train(root.training)

    def train(self, mode: bool = True) -> Self:
        """Set the mode, and the graph for it."""
        self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)

    def _deepcopy_init(self) -> Callable[..., None]:
        def init(copied: Any, root: Any, graph: fx.Graph) -> None:
            DualGraphModule.__init__(
                copied, root, root.train_graph, root.eval_graph, type(self).__name__
            )

        return init


def _traced(
    model: nn.Module, tracer_kwargs: dict[str, Any] | None, concrete_args: dict[str, Any] | None
) -> tuple[NodePathTracer, NodePathTracer]:
    """Tracers that have traced a model for training and for evaluation."""
    options = dict(tracer_kwargs or {})
    classes = [
        value
        for value in vars(ops).values()
        if isinstance(value, type) and issubclass(value, nn.Module)
    ]
    options["autowrap_modules"] = (*options.get("autowrap_modules", ()), math, ops)
    options["leaf_modules"] = [*options.get("leaf_modules", ()), *classes]
    was_training = model.training
    tracers = NodePathTracer(**options), NodePathTracer(**options)
    for tracer, mode in zip(tracers, (True, False)):
        tracer.trace(model.train(mode), concrete_args)
    model.train(was_training)
    return tracers


def _warn_of_differences(train: NodePathTracer, evaluation: NodePathTracer) -> None:
    of_training = [*train.node_to_qualname.values()]
    of_evaluation = [*evaluation.node_to_qualname.values()]
    if of_training == of_evaluation:
        return
    message = "The nodes obtained by tracing the model in train mode are different to those "
    message += "obtained in eval mode. "
    for names, others, modes in (
        (of_evaluation, of_training, ("eval", "train")),
        (of_training, of_evaluation, ("train", "eval")),
    ):
        rest = iter(others)
        if all([name in rest for name in names]):
            message = (
                f"NOTE: The nodes obtained by tracing the model in {modes[0]} mode are a "
                f"subsequence of those obtained in {modes[1]} mode. "
            )
            break
    warnings.warn(
        message + "When choosing nodes for feature extraction, you may need to specify output "
        "nodes for train and eval mode separately.",
        stacklevel=level_outside(),
    )


def get_graph_node_names(
    model: nn.Module,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:
    """The names of a model's nodes in training and in evaluation, in the order in which they run.

    `tracer_kwargs` go to the tracer: `leaf_modules`, classes of modules not to enter, and what
    `fx.Tracer` takes; `concrete_args` are arguments that are no tensors. A warning says where the
    names differ, unless `suppress_diff_warning`.
    """
    tracers = _traced(model, tracer_kwargs, concrete_args)
    if not suppress_diff_warning:
        _warn_of_differences(*tracers)
    train, evaluation = [[*tracer.node_to_qualname.values()] for tracer in tracers]
    return train, evaluation


def create_feature_extractor(
    model: nn.Module,
    return_nodes: Nodes | None = None,
    train_return_nodes: Nodes | None = None,
    eval_return_nodes: Nodes | None = None,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> nn.Module:
    """A module that returns values from inside a model, as a dictionary.

    The nodes are names of `get_graph_node_names`, or beginnings of them, for which the last such
    node is meant (`"layer1"`); or a mapping of these to names in the result. Those for training and
    evaluation may differ. The module shares what it needs of the model, and computes no more. The
    other arguments are those of `get_graph_node_names`. ValueError unless either `return_nodes` or
    the other two are given, or for an unknown name.
    """
    both = train_return_nodes is not None and eval_return_nodes is not None
    either = train_return_nodes is not None or eval_return_nodes is not None
    if both != either or both == (return_nodes is not None):
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, "
            "should be specified"
        )
    tracers = _traced(model, tracer_kwargs, concrete_args)
    chosen = (train_return_nodes, eval_return_nodes) if both else (return_nodes, return_nodes)
    if not suppress_diff_warning:
        _warn_of_differences(*tracers)
    for tracer, nodes in zip(tracers, chosen):
        _return(tracer, nodes)
    train, evaluation = [tracer.graph for tracer in tracers]
    return DualGraphModule(model, train, evaluation, type(model).__name__)


def _return(tracer: NodePathTracer, nodes: Any) -> None:
    """Let a tracer's graph return nodes, and compute nothing else."""
    names = dict(nodes) if isinstance(nodes, Mapping) else {name: name for name in nodes}
    found: dict[str, fx.Node] = {}
    for node, name in tracer.node_to_qualname.items():
        for requested in names:
            if f"{name}.".startswith(f"{requested}."):
                found[requested] = node
    for requested in names:
        if requested not in found:
            raise ValueError(
                f"node: '{requested}' is not present in model. Hint: use `get_graph_node_names` to "
                "make sure the `return_nodes` you specified are present. It may even be that you "
                "need to specify `train_return_nodes` and `eval_return_nodes` separately."
            )
    graph = tracer.graph
    graph.erase_node(graph.output_node())
    graph.output({names[name]: found[name] for name in sorted(found, key=found.__getitem__)})
    graph.owning_module = tracer.root  # which says what its modules do
    graph.eliminate_dead_code()
