"""``torch._functorch.aot_autograd``: forward and backward passes as graphs of aten's operations."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.aot import (
    aot_function,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
)

__all__ = ["aot_function", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func"]
