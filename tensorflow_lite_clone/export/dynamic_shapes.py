"""Which dimensions of the arguments are dynamic, as ``torch.export.dynamic_shapes``."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from tensorflow_lite_clone.export._arguments import Leaf, bound_arguments, leaves_of
from tensorflow_lite_clone.export._errors import UserError, violated
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._sizes import Symbol, int_oo
from tensorflow_lite_clone.fx.experimental.symbolic_shapes import ConstraintViolationError
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_map

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "Dim",
    "ShapesCollection",
    "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]


class _DimHint:
    """What shall become of a dimension that has no name."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        bounds = [f", {k}={v}" for k, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({self.type}{''.join(bounds)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DimHint) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Dim:
    """A dynamic dimension: its name, and the sizes that it may have.

    Dimensions of one name have one size; ``2 * dim + 1`` is a dimension whose size follows from
    another's. ``Dim.AUTO`` lets the program decide, ``Dim.DYNAMIC`` must not be fixed by it,
    ``Dim.STATIC`` is fixed. AssertionError for a name that is no identifier or an empty range.

    >>> batch = torch.export.Dim("batch", min=2, max=64)
    >>> program = torch.export.export(
    ...     torch.nn.Linear(2, 3), (torch.ones(4, 2),), dynamic_shapes={"input": {0: batch}}
    ... )
    >>> program.module()(torch.ones(7, 2)).shape
    torch.Size([7, 3])
    """

    AUTO: ClassVar[_DimHint] = _DimHint("AUTO")
    DYNAMIC: ClassVar[_DimHint] = _DimHint("DYNAMIC")
    STATIC: ClassVar[_DimHint] = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        least = 0 if min is None else min
        most = int_oo if max is None else max
        if not most > least:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min: int = least
        self.max: float = most

    @property
    def _line(self) -> tuple[Dim, int, int]:
        """The dimension that the size follows from, with a factor and an offset."""
        return self, 1, 0

    def __mul__(self, other: Any) -> Dim:
        return self._derived(other, other, 0)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Dim:
        return self._derived(other, 1, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        return self._derived(other, 1, -other if isinstance(other, int) else other)

    def __rsub__(self, other: Any) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. Only increasing linear operations with integer "
            "coefficients are supported."
        )

    def _derived(self, other: Any, factor: Any, offset: Any) -> Dim:
        if type(other) is not int or factor <= 0:
            raise NotImplementedError(
                f"Attempted to combine {self.__name__} with {other}, where an integer was expected "
                "(and a positive one as a factor). Only increasing linear operations with integer "
                "coefficients are supported."
            )
        root, own_factor, own_offset = self._line
        return _DerivedDim(root, own_factor * factor, own_offset * factor + offset)

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


class _DerivedDim(Dim):
    """A dimension whose size is a line in another's."""

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        self.root, self._factor, self._offset = root, factor, offset
        name = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        if offset:
            name += f" {'+' if offset > 0 else '-'} {abs(offset)}"
        self.__name__ = name
        self.min = root.min * factor + offset
        self.max = root.max if root.max == math.inf else root.max * factor + offset

    @property
    def _line(self) -> tuple[Dim, int, int]:
        return self.root, self._factor, self._offset


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several `Dim` with one range.

    >>> batch, length = torch.export.dims("batch", "length", max=128)
    """
    return tuple([Dim(name, min=min, max=max) for name in names])


#: The older name of a relation between dimensions.
Constraint = Any


class ShapesCollection:
    """Dynamic shapes by tensor, for arguments that are deep trees.

    >>> x = torch.ones(4, 2)
    >>> shapes = torch.export.ShapesCollection()
    >>> shapes[x] = {0: torch.export.Dim.DYNAMIC}
    >>> shapes.dynamic_shapes(torch.nn.Linear(2, 3), (x,))
    {'input': {0: DimHint(DYNAMIC)}}
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._kept: list[Any] = []  # that no other object gets their numbers

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, (Tensor, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        known = self._shapes.get(id(t))
        if known is not None and known != shape:
            raise AssertionError(f"Shapes assigned to tensor do not match: {known}, {shape}")
        self._shapes[id(t)] = shape
        self._kept.append(t)

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: Any = None) -> dict[str, Any]:
        """What `export` takes, for these arguments; ValueError for tensors that are not theirs."""
        found: set[int] = set()

        def shape(leaf: Any) -> Any:
            found.add(id(leaf))
            return self._shapes.get(id(leaf))

        arguments = bound_arguments(m, args, kwargs or {})
        result = {name: tree_map(shape, value) for name, value in arguments.items()}
        if missing := self._shapes.keys() - found:
            raise ValueError(f"{len(missing)} tensors with shapes were not found in the arguments")
        return result


class AdditionalInputs:
    """More examples: the dimensions in which they differ are dynamic.

    >>> more = torch.export.AdditionalInputs()
    >>> more.add((torch.ones(6, 2),))
    >>> program = torch.export.export(
    ...     torch.nn.Linear(2, 3), (torch.ones(4, 2),), dynamic_shapes=more
    ... )
    >>> more.verify(program)
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict[str, Any]]] = []

    def add(self, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Add arguments of the program."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: Any = None) -> dict[str, Any]:
        """What `export` takes, for these arguments and those added."""
        examples = [(args, kwargs or {}), *self._examples]
        trees = [bound_arguments(m, *each) for each in examples]
        flat = [leaves_of(tree) for tree in trees]
        if any([len(each) != len(flat[0]) for each in flat]):
            raise ValueError("the additional inputs are not of the structure of the arguments")
        columns = iter(zip(*[[leaf.value for leaf in each] for each in flat]))

        def shape(leaf: Any) -> Any:
            values = next(columns)
            if isinstance(leaf, Tensor):
                sizes = zip(*[value.shape for value in values])
                return tuple([Dim.DYNAMIC if len({*size}) > 1 else None for size in sizes])
            if any([value != leaf for value in values]):
                return Dim.DYNAMIC
            return None

        return {name: tree_map(shape, value) for name, value in trees[0].items()}

    def verify(self, ep: Any) -> None:
        """Run the program on all examples: it raises where it does not hold for one."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Dynamic shapes with what the message of an error suggests: ranges, sizes, equal dimensions.

    >>> batch = torch.export.Dim("batch")
    >>> fixes = "Suggested fixes:\\n  batch = Dim('batch', max=6)"
    >>> torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes(
    ...     fixes, {"x": {0: batch}}
    ... )
    {'x': {0: Dim('batch', min=0, max=6)}}
    """
    known: dict[str, Any] = {}
    for line in msg.partition("Suggested fixes:")[2].splitlines():
        match = re.fullmatch(r"\s*(\w+) = (.+)", line)
        if match is None:
            continue
        name, text = match.groups()
        bounds = {k: int(v) for k, v in re.findall(r"(min|max)=(\d+)", text)}
        derived = re.fullmatch(r"(?:(\d+)\*)?([A-Za-z_]\w*)", text)
        if text.startswith("Dim("):
            known[name] = Dim(name, **bounds)
        elif text.isdigit():
            known[name] = int(text)
        elif derived is not None:
            factor, root = derived.groups()
            dim = known.setdefault(root, Dim(root))
            known[name] = dim * int(factor) if factor else dim

    def refined(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: refined(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([refined(each) for each in value])
        if isinstance(value, Dim):
            root, factor, offset = value._line
            new = known.get(root.__name__, root)
            return new if value is root else new * factor + offset
        return value

    return refined(dynamic_shapes)


# -- what `export` reads of them -------------------------------------------------------------------


class Owner(NamedTuple):
    """A symbol's dimension: a `Dim`, or a hint; where it is first, and the example's size."""

    dim: Any
    source: str
    hint: int

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.dim.__name__ if isinstance(self.dim, Dim) else self.source


class Plan:
    """The sizes of all arguments: numbers, or expressions of symbols."""

    def __init__(self, arguments: Mapping[str, Any], shapes: Any) -> None:
        self.leaves = leaves_of(arguments)
        self.sizes: dict[int, list[Expression]] = {}
        self.owners: dict[str, Owner] = {}
        self._named: dict[str, str] = {}
        specs = _specs(arguments, shapes)
        self._name_roots(specs)
        for number, (leaf, spec) in enumerate(zip(self.leaves, specs)):
            if isinstance(leaf.value, Tensor):
                self.sizes[number] = list(self._read(leaf, spec))

    def _read(self, leaf: Leaf, spec: Any) -> Iterator[Expression]:
        for dim, size in enumerate(leaf.value.shape):
            wish = None
            if isinstance(spec, Mapping):
                wish = spec.get(dim, spec.get(dim - leaf.value.ndim))
            elif spec is not None:
                wish = spec[dim]
            yield self._size(leaf, dim, int(size), wish)

    def _name_roots(self, specs: Sequence[Any]) -> None:
        """Name symbols by the last places of their dimensions, not of what follows from these."""
        places: dict[str, tuple[str, Dim, int]] = {}
        for leaf, spec in zip(self.leaves, specs):
            if isinstance(leaf.value, Tensor) and spec is not None:
                for dim, size in enumerate(leaf.value.shape):
                    wish = spec.get(dim) if isinstance(spec, Mapping) else spec[dim]
                    if type(wish) is Dim and size > 1:
                        places[wish.__name__] = f"{leaf.source}.size()[{dim}]", wish, int(size)
        for name, place in places.items():
            self._named[name] = self._symbol(*place)

    def _size(self, leaf: Leaf, dim: int, size: int, wish: Any) -> Expression:
        source = f"{leaf.source}.size()[{dim}]"
        if wish is None or wish == Dim.STATIC:
            return Expression.of(size)
        if isinstance(wish, int):
            if wish != size:
                raise ConstraintViolationError(
                    f"Static shape constraint of {wish} does not match input size of {size}, for "
                    f"{source}"
                )
            return Expression.of(size)
        if isinstance(wish, _DimHint):
            if size in (0, 1):
                if wish.type == "DYNAMIC":
                    raise violated(
                        source,
                        f"  - You marked {source} as dynamic but your code specialized it to be a "
                        f"constant ({size}). Replace Dim.DYNAMIC with either Dim.STATIC or "
                        "Dim.AUTO.",
                    )
                return Expression.of(size)
            return Expression.of(self._symbol(source, wish, size))
        if not isinstance(wish, Dim):
            raise UserError(
                f"Unexpected dimension {wish} in the dynamic shape of {leaf.source} (expected an "
                "int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
            )
        root, factor, offset = wish._line
        hint, rest = divmod(size - offset, factor)
        if rest or not root.min <= hint <= root.max:
            raise ConstraintViolationError(f"{size} not in range [{wish.min}, {wish.max}]")
        if root.__name__ not in self._named:
            self._named[root.__name__] = self._symbol(source, root, hint)
        name = self._named[root.__name__]
        if self.owners[name].hint != hint:
            raise ConstraintViolationError(
                f"{source} is {size}, but {wish.__name__} is that of a "
                f"{root.__name__} of {self.owners[name].hint} elsewhere"
            )
        if hint in (0, 1) and factor == 1 and not offset:
            raise violated(
                root.__name__,
                f"  - You marked {root.__name__} as dynamic but your code specialized it to be a "
                f"constant ({hint}).",
                [f"  {root.__name__} = {hint}"],
            )
        return Expression.of(name) * Expression.of(factor) + Expression.of(offset)

    def _symbol(self, source: str, dim: Any, hint: int) -> str:
        number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100  # as PyTorch names it
        while f"s{number}" in self.owners:
            number += 1
        self.owners[f"s{number}"] = Owner(dim, source, hint)
        return f"s{number}"

    def symbols(self) -> list[Symbol]:
        """The symbols that are left, with their ranges."""
        used = {name for sizes in self.sizes.values() for size in sizes for name in size.symbols}
        found = []
        for name, owner in self.owners.items():
            if name in used:
                is_auto = isinstance(owner.dim, _DimHint)
                least = owner.dim.min if owner.dim.min is not None else 2 if is_auto else 0
                most = owner.dim.max if owner.dim.max is not None else int_oo
                found.append(Symbol(name, owner.hint, least, most))
        return found

    def is_auto(self, symbol: str) -> bool:
        """Whether the program decides about a symbol."""
        return isinstance(self.owners[symbol].dim, _DimHint) and (
            self.owners[symbol].dim.type == "AUTO"
        )

    def substitute(self, symbol: str, value: Expression) -> None:
        """Let a symbol be something else in all sizes."""
        for sizes in self.sizes.values():
            sizes[:] = [_substituted(size, symbol, value) for size in sizes]


def _substituted(size: Expression, symbol: str, value: Expression) -> Expression:
    result = Expression.of(0)
    for product, number in size.terms.items():
        term = Expression.of(number)
        for factor in product:
            term *= value if factor == symbol else Expression({(factor,): 1})
        result += term
    return result


def _specs(arguments: Mapping[str, Any], shapes: Any) -> Sequence[Any]:
    """What is said about each leaf of the arguments."""
    if not shapes:
        return [None] * len(leaves_of(arguments))
    if isinstance(shapes, Mapping):
        if set(shapes) - set(arguments):
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {[*arguments]} of `inputs`, but here they are {[*shapes]}. Alternatively, "
                "you could also ignore arg names entirely and specify `dynamic_shapes` as a "
                "list/tuple matching `inputs`."
            )
        parts = {name: shapes.get(name) for name in arguments}
    else:
        if not isinstance(shapes, (list, tuple)):
            raise UserError(f"`dynamic_shapes` must be a dict, list or tuple, not {shapes!r}")
        if len(shapes) != len(arguments):
            raise UserError(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                f"`inputs` has {len(arguments)} elements, but `dynamic_shapes` has {len(shapes)} "
                "elements"
            )
        parts = dict(zip(arguments, shapes))
    found: list[Any] = []
    for name, value in arguments.items():
        _match(value, parts[name], f"`dynamic_shapes['{name}']`", found)
    return found


def _match(tree: Any, spec: Any, place: str, found: list[Any]) -> None:
    if spec is None:
        found += [None] * len(leaves_of({"": tree}))
    elif isinstance(tree, Tensor):
        if not isinstance(spec, (Mapping, list, tuple)):
            raise UserError(
                f"Unexpected input tensor shape {spec} specified at {place} (expected either a "
                "list/tuple of dimensions, or a dict mapping indices to dimensions, where each "
                "dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
            )
        if not isinstance(spec, Mapping) and len(spec) != tree.ndim:
            raise UserError(
                f"Expected dynamic shape spec {spec} specified at {place} to have the same length "
                f"as the actual tensor shape {tuple(tree.shape)} (expected {tree.ndim}, but got "
                f"{len(spec)} instead)"
            )
        if isinstance(spec, Mapping):
            for dim in spec:
                if not -tree.ndim <= dim < tree.ndim:
                    raise IndexError(f"{place} names dimension {dim} of a tensor of {tree.ndim}")
        found.append(spec)
    else:
        leaves = leaves_of({"": tree}, deep=False)
        if len(leaves) == 1 and leaves[0].value is tree:
            found.append(None)
            return
        entries = spec.values() if isinstance(spec, Mapping) else list(spec)
        if len(leaves) == 1 and len(entries) == 1 and not isinstance(spec, (Mapping, list, tuple)):
            entries = [spec]
        if isinstance(spec, Mapping) and isinstance(tree, Mapping):
            entries = [spec.get(key) for key in tree]
        if len(entries) != len(leaves):
            raise UserError(
                f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                f"`inputs` has {len(leaves)} elements, but {place} has {len(entries)} elements"
            )
        for leaf, entry in zip(leaves, entries):
            _match(leaf.value, entry, f"{place}{leaf.source[4:]}", found)
