"""What two exported programs, PyTorch's and this package's, have in common."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch as oracle

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.utils import _pytree


def both(make: Any) -> tuple[Any, Any]:
    """The program in PyTorch and here, with the same parameters and buffers."""
    oracle.manual_seed(0)
    theirs, ours = make(oracle), make(torch)
    state = theirs.module.state_dict()
    ours.module.load_state_dict({name: converted(x) for name, x in state.items()})
    return theirs, ours


def converted(value: Any) -> Any:
    """A tensor of PyTorch as one of this package."""
    return torch.from_numpy(value.detach().numpy().copy())


def exported(library: Any, program: Any) -> Any:
    """What a library's export gives."""
    return library.export.export(
        program.module, program.args, program.kwargs or None, dynamic_shapes=program.dynamic
    )


def calls(graph: Any) -> list[str]:
    """The nodes of a graph as text, but for the numbers of nodes that are sizes."""
    lines = []
    for node in graph.nodes:
        name = getattr(node.target, "__name__", node.target)
        target = str(node.target) if "aten" in str(node.target) else str(name)
        text = f"{node.op} {node.name} {target} {node.args} {dict(node.kwargs)}"
        text = re.sub(r"sym_size_int(_\d+)?", "sym_size_int", text)
        text = re.sub(r"(\d\.\d{6})\d+", r"\1", text)
        lines.append(text)
    return lines


def arrays(values: Any) -> list[Any]:
    """Results as arrays and numbers, whatever they are nested in."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [array for value in values for array in arrays(value)]
    return [values.detach().numpy() if hasattr(values, "detach") else values]


def assert_close(found: Any, expected: Any) -> None:
    """Results of both libraries have the same structure and numbers."""
    ours, theirs = arrays(found), arrays(expected)
    assert len(ours) == len(theirs)
    for one, two in zip(ours, theirs):
        if two is None or isinstance(two, str):
            assert one == two
        else:
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def leaves(value: Any) -> list[Any]:
    """The leaves of a tree of this package's tensors."""
    return _pytree.tree_leaves(value)
