"""What two exported programs, PyTorch's and this package's, have in common."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import torch as oracle

import tensorflow_lite_clone as torch
from tests.export.programs import PROGRAMS


def ours(name: str) -> Any:
    """The program here, with PyTorch's parameters and buffers."""
    program = PROGRAMS[name](torch)
    state = oracle_program(name)[0].module.state_dict()
    program.module.load_state_dict({key: converted(x) for key, x in state.items()})
    return program


@functools.cache
def our_program(name: str) -> tuple[Any, Any]:
    """A program here, and what its export gives."""
    program = ours(name)
    return program, exported(torch, program)


@functools.cache
def our_decomposed(name: str) -> Any:
    """The decomposed export of a program here."""
    return our_program(name)[1].run_decompositions()


def converted(value: Any) -> Any:
    """A tensor of PyTorch as one of this package."""
    return torch.from_numpy(value.detach().numpy().copy())


@functools.cache
def oracle_program(name: str) -> tuple[Any, Any]:
    """A program in PyTorch, and what its export gives, which is slow."""
    oracle.manual_seed(0)
    program = PROGRAMS[name](oracle)
    return program, exported(oracle, program)


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
