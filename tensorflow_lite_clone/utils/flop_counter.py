"""Counting multiplications and additions, as ``torch.utils.flop_counter``.

Ops have names here where PyTorch has ``torch.ops.aten.mm``: counts are kept by names such as
"linear" and "conv", and "linear_backward" is the gradient of the former. Which ops count, and how
much, their classes say (`Op.cost`); complex numbers count as real ones do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import Any, Self
from weakref import WeakKeyDictionary

from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from tensorflow_lite_clone.trace import Observer
from tensorflow_lite_clone.utils._op_costs import get_shape, is_recorded, known_of

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = Callable[..., int]


def _real(shape: Any) -> Any:
    return MetaArray(shape, float32) if isinstance(shape, tuple) else shape


def _of_shapes(formula: Any) -> Formula:
    """A formula of `dispatch.costs` with the signature of those that are registered here."""

    def flops(*shapes: Any, out_shape: Any = None, needs: Any = None, **parameters: Any) -> int:
        return int(formula(needs or out_shape, *map(_real, shapes), **parameters))

    return flops


def _of_products() -> dict[str, Formula]:
    """The formulas of products, by the names of ops and of their gradients."""
    found = {}
    for op in TABLE.values():
        if is_op(op) and op.cost.product:
            for name, formula in zip((op.name, f"{op.name}_backward"), op.cost):
                if formula is not None:
                    found[name] = _of_shapes(formula)
    return found


#: The formulas of the package's ops, and those that are registered.
flop_registry: dict[str, Formula] = _of_products()

_GLOBAL = "Global"
_NOWHERE = frozenset([_GLOBAL])
suffixes = ["", "K", "M", "B", "T"]


def _name_of(target: Any) -> str:
    """The name of an op that is given by name or by its class; ValueError for anything else."""
    if is_op(target):
        return target.name
    if isinstance(target, str):
        return target
    raise ValueError(
        "register_flop_formula(targets): expected each target to be the name of an op (such as "
        f"'conv' or 'conv_backward') or an op, got {target} which is of type {type(target)}"
    )


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Decorator of a function that says what an op, or each of a list of ops, costs.

    It is called as ``formula(*shapes, out_shape=shape, **parameters)``; with `get_raw` as
    ``formula(*arrays, out_val=array, **parameters)``. For a target that ends in "_backward" it is
    ``formula(g_shape, *shapes, needs=(...), **parameters)``, where `needs` says which inputs'
    gradients are computed. Raises ValueError for what is no name of an op, and RuntimeError for
    one that has a formula.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        names = [_name_of(t) for t in (targets if isinstance(targets, list | tuple) else [targets])]
        for name in names:
            if name in flop_registry:
                raise RuntimeError(f"duplicate registrations for {name}")
        if get_raw:
            formula._get_raw = True  # type: ignore[attr-defined]
        flop_registry.update(dict.fromkeys(names, formula))
        return formula

    return register


# -- PyTorch's formulas and words, which code in the wild imports ----------------------------------


def mm_flop(
    a_shape: tuple, b_shape: tuple, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """What the product of two matrices, or two batches of as many, costs."""
    return 2 * prod(a_shape) * b_shape[-1]


bmm_flop = mm_flop


def addmm_flop(
    self_shape: tuple, a_shape: tuple, b_shape: tuple, out_shape: Any = None, **kwargs: Any
) -> int:
    """What a product that is added to something costs: the product."""
    return mm_flop(a_shape, b_shape)


baddbmm_flop = addmm_flop


def conv_flop_count(
    x_shape: list[int], w_shape: list[int], out_shape: list[int], transposed: bool = False
) -> int:
    """What a convolution costs, from the shapes of input, weight and result (n, c, *space)."""
    formula = costs.conv_transpose_flops if transposed else costs.conv_flops
    return _of_shapes(formula)(tuple(x_shape), tuple(w_shape), out_shape=tuple(out_shape))


def sdpa_flop_count(query_shape: tuple, key_shape: tuple, value_shape: tuple) -> int:
    """What scaled dot-product attention costs: q (..., H, L, E), k (..., S, E), v (..., S, Ev)."""
    return _of_shapes(costs.attention_flops)(query_shape, key_shape, value_shape)


def sdpa_flop(
    query_shape: tuple,
    key_shape: tuple,
    value_shape: tuple,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """`sdpa_flop_count` with the signature of a formula."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape: tuple, query_shape: tuple, key_shape: tuple, value_shape: tuple
) -> int:
    """What the gradients of attention cost, which computes the scores again."""
    shapes = grad_out_shape, query_shape, key_shape, value_shape
    formula = _of_shapes(costs.attention_gradient_flops)
    return formula(*shapes, needs=(True, True, True, False))


def get_suffix_str(number: int) -> str:
    """The thousands that a number is best told in."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in the thousands of a suffix."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A share in percent."""
    return f"{100 * num / denom:.2f}%" if denom else "0%"


class _Location:
    """In which modules the program is: their names, as PyTorch gives them, and "Global"."""

    def __init__(self) -> None:
        self.names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self.walked: WeakKeyDictionary[Module, bool] = WeakKeyDictionary()
        self.restart()

    def restart(self) -> None:
        """Be outside of all modules; the names stay."""
        self.here = _NOWHERE
        self.entered: list[tuple[Module, frozenset[str]]] = []  # with the location before

    def name(self, module: Module) -> str:
        """A module's path below the first that was seen; that one is called by its class."""
        name = self.names.setdefault(module, type(module).__name__)
        if module not in self.walked:
            self.walked[module] = True
            for child_name, child in module.named_children():
                self.names[child] = f"{name}.{child_name}"
                self.name(child)
        return name

    def enter(self, module: Module) -> None:
        """A module is called."""
        self.entered.append((module, self.here))
        self.here |= {self.name(module)}

    def leave(self, module: Module) -> None:
        """The call of a module is over."""
        # a module may have been entered before this began, or left by a BaseException
        if any(m is module for m, _ in self.entered):
            left = None
            while left is not module:
                left, self.here = self.entered.pop()


class FlopCounterMode(Observer):
    """Context that counts floating-point operations, of everything and by module and op.

    Forward and backward passes of this thread count, 2 for a multiplication and its addition, of
    products of matrices, convolutions and attention, and of the ops that `custom_mapping` (name of
    an op to a formula, see `register_flop_formula`) or `register_flop_formula` names. Modules need
    not be named: `mods` is accepted with a warning. At the end, a table of modules down to `depth`
    is printed if `display`. What replays of a captured graph do is not seen.
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it",
                stacklevel=level_outside(),
            )
        self.flop_counts: dict[str, dict[str, int]] = {_GLOBAL: {}}
        self.depth, self.display = depth, display
        own = {_name_of(target): formula for target, formula in (custom_mapping or {}).items()}
        self.flop_registry: dict[str, Formula] = {**_of_products(), **flop_registry, **own}
        self._location = _Location()
        self._homes: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()  # of nodes

    # -- what was counted ---------------------------------------------------------------------

    def get_total_flops(self) -> int:
        """The number of all operations."""
        return sum(self.flop_counts[_GLOBAL].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """The numbers by the path of the module ("Global": all) and by the name of the op.

        What runs in a module counts in the modules around it, too.
        """
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The numbers as text, of modules down to `depth` (that of the constructor), and shares."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        rows = [("Module", "FLOP", "% Total")]

        def add(indent: str, name: str, flops: int) -> None:
            count = convert_num_with_suffix(flops, suffix) if suffix else str(flops)
            rows.append((indent + name, count, convert_to_percent_str(flops, total)))

        paths = [path for path in sorted(self.flop_counts) if path != _GLOBAL]
        paths = [path for path in paths if depth is None or path.count(".") < depth]
        if not any([sum(self.flop_counts[path].values()) == total for path in paths]) or not total:
            paths.insert(0, _GLOBAL)
        for path in paths:
            indent = "  " * (path.count(".") + (path != _GLOBAL == paths[0]))
            add(indent, path, sum(self.flop_counts[path].values()))
            for name, flops in self.flop_counts[path].items():
                add(indent, f" - {name}", flops)
        name_width, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([f"{name:<{name_width}}", *[f"{c:>{w}}" for c, w in zip(rest, widths)]])
            for name, *rest in rows
        ]
        lines.insert(1, "  ".join(["-" * width for width in (name_width, *widths)]))
        return "\n".join(lines)

    # -- counting -----------------------------------------------------------------------------

    def registrations(self) -> list[Any]:
        """Follow calls of modules."""
        return [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def __enter__(self) -> Self:
        super().__enter__()
        self.flop_counts = {_GLOBAL: {}}
        self._location.restart()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.display:
            print(self.get_table(self.depth))

    def _enter(self, module: Module, args: Any) -> None:
        if self.is_here():
            self._location.enter(module)

    def _leave(self, module: Module, args: Any, output: Any) -> None:
        if self.is_here():
            self._location.leave(module)

    def _count(self, name: str, flops: int, backend: Any) -> None:
        while backend.batched:  # under vmap shapes are those of one sample
            flops *= backend.size
            backend = backend.base
        for path in self._location.here:
            counts = self.flop_counts.setdefault(path, {})
            counts[name] = counts.get(name, 0) + flops

    def on_op(self, op: Any, backend: Any, arrays: tuple, parameters: Any, result: Any) -> None:
        """Count what an op costs, if it has a formula."""
        formula = self.flop_registry.get(op.name)
        if formula is None or not self.is_here():
            return
        if hasattr(formula, "_get_raw"):
            flops = formula(*arrays, out_val=result, **parameters)
        else:
            flops = formula(*map(get_shape, arrays), out_shape=get_shape(result), **parameters)
        self._count(op.name, flops, backend)

    def on_node(self, node: Any) -> None:
        """Remember in which modules a node of the graph was made."""
        if self.is_here() and self._location.here is not _NOWHERE:
            self._homes[node] = self._location.here

    def around_gradient(self, node: Any, call: Callable[[Any], Any], grads: Any) -> Any:
        """Count a node's gradient where its forward was.

        If the pass is recorded, what the gradient's formula calls is counted instead, and so is
        what a user's function calls, and what a checkpoint computes again.
        """
        if not self.is_here():
            return call(grads)
        location, outside = self._location, self._location.here
        location.here = self._homes.get(node, _NOWHERE)
        try:
            results = call(grads)
            self._count_gradient(node, tuple([result is not None for result in results]))
        finally:
            location.here = outside
        return results

    def _count_gradient(self, node: Any, needs: tuple[bool, ...]) -> None:
        op = getattr(node, "op", None)
        if op is None or is_recorded():
            return
        name = f"{op.name}_backward"
        formula = self.flop_registry.get(name)
        if formula is not None:
            shapes = map(get_shape, known_of(node))
            flops = formula(*shapes, needs=needs, **node.parameters)
            if flops:
                self._count(name, flops, node.backend)
