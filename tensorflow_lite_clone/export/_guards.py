"""What an exported program expects of its arguments, checked when it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone.export._expressions import COMPARISONS, Expression
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor


class Expected(NamedTuple):
    """An argument: how messages call it, its sizes if it is a tensor, else its value."""

    name: str
    sizes: tuple[Expression, ...] | None
    value: Any = None


class ValueRanges(NamedTuple):
    """The sizes that a dimension may have, both ends included."""

    lower: Any
    upper: Any

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {self.upper}]"


class GuardsFn(Module):
    """Raises AssertionError for arguments that the program was not exported for."""

    _is_impure = True  # for passes over the graph: the call stays though it gives nothing

    def __init__(
        self,
        inputs: Sequence[Expected],
        ranges: Mapping[str, ValueRanges],
        guards: Sequence[tuple[Expression, str, Expression]],
    ) -> None:
        super().__init__()
        self.inputs, self.ranges, self.guards = list(inputs), dict(ranges), list(guards)

    def forward(self, *args: Any) -> None:
        """Compare the arguments with what is expected of them."""
        sizes: dict[str, int] = {}
        names: dict[str, str] = {}
        derived = []
        for each, value in zip(self.inputs, args):
            if each.sizes is None:
                expect(type(value) is type(each.value) and value == each.value,
                       f"{each.name} == {each.value!r}")  # fmt: skip
                continue
            if not isinstance(value, Tensor):
                raise AssertionError(f"Guard failed: isinstance({each.name}, torch.Tensor)")
            expect(value.ndim == len(each.sizes), f"{each.name}.dim() == {len(each.sizes)}")
            for dim, size in enumerate(each.sizes):
                source, found = f"{each.name}.size()[{dim}]", int(value.shape[dim])
                number = size.number
                if number is not None:
                    expect(found == number, f"{source} == {number}")
                elif str(size) not in self.ranges or str(size) in sizes:
                    derived.append((size, source, found))
                else:
                    sizes[str(size)], names[str(size)] = found, source
                    self._check_range(str(size), source, found)
        for size, source, found in derived:
            self._check_derived(size, source, found, sizes, names)
        for left, sign, right in self.guards:
            if left.symbols | right.symbols <= sizes.keys():
                holds = COMPARISONS[sign](left.value(sizes), right.value(sizes))
                expect(holds, f"{_written(left, names)} {sign} {_written(right, names)}")

    def _check_range(self, name: str, source: str, found: int) -> None:
        lower, upper = self.ranges[name]
        expect(found <= upper, f"{source} <= {upper}")
        if lower > 2:  # sizes of 0 and 1 are let through, as by PyTorch
            expect(found >= lower, f"{source} >= {lower}")

    def _check_derived(
        self, size: Expression, source: str, found: int, sizes: dict, names: dict
    ) -> None:
        missing = [*(size.symbols - sizes.keys())]
        if missing:  # the symbol follows from this size
            (symbol,) = missing
            factor = size.terms[(symbol,)]
            offset = size.terms.get((), 0)
            sizes[symbol], rest = divmod(found - offset, factor)
            names[symbol] = f"(({source} - {offset}) // {factor})" if offset else (
                f"({source} // {factor})"
            )  # fmt: skip
            expect(not rest, f"({source} - {offset}) % {factor} == 0")
            return
        expect(found == size.value(sizes), f"{_written(size, names)} == {source}")


def _written(expression: Expression, names: Mapping[str, str]) -> str:
    return re.sub(r"\b[su]\d+\b", lambda match: names.get(match[0], match[0]), str(expression))


def expect(holds: bool, guard: str) -> None:
    """AssertionError, in PyTorch's words, unless a guard holds."""
    if not holds:
        raise AssertionError(f"Guard failed: {guard}")
