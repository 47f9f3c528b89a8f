"""What modules inside a model give, while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn

__all__ = ["create_feature_extractor"]

Nodes = Mapping[str, str] | Sequence[str]


def create_feature_extractor(
    model: nn.Module,
    return_nodes: Nodes | None = None,
    train_return_nodes: Nodes | None = None,
    eval_return_nodes: Nodes | None = None,
    tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> nn.Module:
    """A module that returns outputs of a model's modules, as a dictionary.

    The nodes are qualified names of modules (`"layer1.0.conv2"`), or a mapping of these to names in
    the result; those for training and evaluation may differ. A module that runs several times
    gives its first output. The parameters are shared with the model, which runs to its end each
    time; it is not traced, so the last three arguments are accepted and change nothing. Raises
    ValueError unless either `return_nodes` or the other two are given, or for an unknown name.
    """
    both = train_return_nodes is not None and eval_return_nodes is not None
    either = train_return_nodes is not None or eval_return_nodes is not None
    if both != either or both == (return_nodes is not None):
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, "
            "should be specified"
        )
    train, evaluation = (
        _named(model, nodes)
        for nodes in (
            return_nodes if train_return_nodes is None else train_return_nodes,
            return_nodes if eval_return_nodes is None else eval_return_nodes,
        )
    )
    return _Extractor(model, train, evaluation).train(model.training)


def _named(model: nn.Module, nodes: Any) -> dict[str, str]:
    """The nodes as a mapping, all of them names of modules."""
    names = dict(nodes) if isinstance(nodes, Mapping) else {name: name for name in nodes}
    for name in names:
        if name not in dict(model.named_modules()):
            raise ValueError(f"node: '{name}' is not present in model: it is no module of it")
    return names


class _Extractor(nn.Module):
    """Has the model's children, parameters and buffers under their names, and so its state."""

    def __init__(self, model: nn.Module, train: dict[str, str], evaluation: dict[str, str]) -> None:
        super().__init__()
        for name, parameter in model.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        for name, buffer in model.named_buffers(recurse=False):
            self.register_buffer(name, buffer)
        for name, child in model.named_children():
            self.add_module(name, child)
        # Not as a child, which would name everything twice.
        self.__dict__["model"] = model
        self.train_nodes = train
        self.evaluation_nodes = evaluation

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        nodes = self.train_nodes if self.training else self.evaluation_nodes
        found: dict[str, Any] = {}

        def keep(name: str) -> Any:
            def hook(module: nn.Module, inputs: Any, output: Any) -> None:
                found.setdefault(name, output)

            return hook

        model: nn.Module = self.__dict__["model"]
        model.training = self.training
        handles = [model.get_submodule(name).register_forward_hook(keep(name)) for name in nodes]
        try:
            model(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()
        return {new: found[name] for name, new in nodes.items()}
