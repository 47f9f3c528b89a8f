"""What modules were made with, noted on the nodes that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.nn import AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Linear, MaxPool2d, ReLU
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """The name as it is."""
    return name


#: Class -> newest version of its state that is known, its attributes, their names in a version.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    kind: (version, names.split(), default_matching)
    for kind, version, names in (
        (Linear, 1, "weight bias"),
        (Conv2d, 1, "weight bias kernel_size stride padding dilation groups padding_mode"),
        (BatchNorm2d, 2, "weight bias running_mean running_var eps"),
        (AdaptiveAvgPool2d, 1, ""),
        (MaxPool2d, 1, "kernel_size stride padding dilation return_indices ceil_mode"),
        (ReLU, 1, "inplace"),
    )
}


def extract_attrs_for_lowering(mod: Module) -> dict[str, Any]:
    """The attributes of a module that are listed for its class, and the class's name.

    RuntimeError for a class that is not listed, or one with a newer version.
    """
    kind = type(mod)
    name = f"{kind.__module__.replace(__package__.partition('.')[0], 'torch', 1)}.{kind.__name__}"
    if kind not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet: please add it")
    version, attributes, matching = module_fetch_book[kind]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {name} version {mod._version}, please "
            "upgrade the module_fetch_book"
        )
    found = {attribute: getattr(mod, matching(attribute, mod._version)) for attribute in attributes}
    return {"name": name, **found}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Note the attributes of called modules as ``node.attrs_for_lowering``, inside of them too."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            called = modules[node.target]
            if isinstance(called, GraphModule):
                lift_lowering_attrs_to_nodes(called)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(called)
