"""Trees of containers with values at the leaves, as ``torch.utils._pytree``.

Tuples, lists, dictionaries, named tuples and results, `OrderedDict`, `defaultdict`, `deque` and the
classes given to `register_pytree_node` are nodes; everything else, None included, is a leaf.
"""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tensorflow_lite_clone._bind import names_of
from tensorflow_lite_clone.core.shape import Size

Context = Any
PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How a kind of container comes apart and together."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list, Any]]
    unflatten_fn: Callable[[Iterable, Any], Any]


class MappingKey(NamedTuple):
    """The place of a child in a dictionary."""

    key: Any


class SequenceKey(NamedTuple):
    """The place of a child among others in order."""

    idx: int


class _SerializeNodeDef(NamedTuple):
    """How a kind of container is called in files, and how its contexts are written and read."""

    type: Any
    serialized_type_name: str | None
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


def _dict_flatten(tree: Any) -> tuple[list, Any]:
    return list(tree.values()), list(tree)


def _dict_flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """For the argument `flatten_with_keys_fn` of kinds of dictionaries."""
    return [(MappingKey(key), value) for key, value in tree.items()], list(tree)


def _from_defaultdict(tree: Any) -> tuple[list, Any]:
    return list(tree.values()), [tree.default_factory, list(tree)]


def _to_defaultdict(values: Iterable, context: Any) -> Any:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _dumpable_defaultdict(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _loaded_defaultdict(context: dict[str, Any]) -> list:
    module = importlib.import_module(context["default_factory_module"])
    return [getattr(module, context["default_factory_name"]), context["dict_context"]]


#: Container type -> how it is taken apart; named tuples stand under `namedtuple`.
SUPPORTED_NODES: dict[Any, NodeDef] = {}
#: Container type -> how it is written to files, and the types by their names there.
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list, Any]],
    unflatten_fn: Callable[[Iterable, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Make instances of `cls` nodes: ``flatten_fn(x)`` gives children and a context.

    ``unflatten_fn(children, context)`` puts them together. `treespec_dumps` writes the class as
    `serialized_type_name`, and contexts as JSON of what the functions between make of them. Raises
    ValueError for a class that is registered.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, serialized_type_name, to_dumpable_context, from_dumpable_context
    )
    if serialized_type_name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


#: Older names, under which other packages use them.
_register_pytree_node = register_pytree_node


def _dict_unflatten(values: Iterable, context: Any) -> dict:
    return dict(zip(context, values, strict=True))


for _type, _flatten, _unflatten in (
    (tuple, lambda x: (list(x), None), lambda values, context: tuple(values)),
    (list, lambda x: (list(x), None), lambda values, context: list(values)),
    (dict, _dict_flatten, _dict_unflatten),
    (OrderedDict, _dict_flatten, lambda values, keys: OrderedDict(zip(keys, values, strict=True))),
    (deque, lambda x: (list(x), x.maxlen), lambda values, length: deque(values, length)),
):
    register_pytree_node(
        _type,
        _flatten,
        _unflatten,
        serialized_type_name=f"{_type.__module__}.{_type.__name__}",
    )
register_pytree_node(
    defaultdict,
    _from_defaultdict,
    _to_defaultdict,
    serialized_type_name="collections.defaultdict",
    to_dumpable_context=_dumpable_defaultdict,
    from_dumpable_context=_loaded_defaultdict,
)
register_pytree_node(
    namedtuple,  # type: ignore[arg-type]
    lambda x: (list(x), type(x)),
    lambda values, kind: kind(*values),
)
register_pytree_node(Size, lambda x: (list(x), None), lambda values, context: tuple(values))
for _type in names_of("return_types").values():
    register_pytree_node(_type, lambda x: (list(x), None), lambda values, _, t=_type: t(values))  # type: ignore[misc]


def _kind_of(tree: Any) -> Any:
    kind = type(tree)
    if kind not in SUPPORTED_NODES and isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return namedtuple
    return kind


class TreeSpec:
    """The shape of a tree: node type, context and the specs of its children; ``*`` is a leaf."""

    __slots__ = ("_children", "context", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = children
        self.num_nodes: int = 1 + sum([child.num_nodes for child in children])
        self.num_leaves: int = sum([child.num_leaves for child in children]) if type else 1

    @property
    def num_children(self) -> int:
        """How many children the root has."""
        return len(self._children)

    def children(self) -> list[TreeSpec]:
        """The specs of the root's children."""
        return list(self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The older form of `children`; transformers' exporters read it."""
        return self._children

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether the tree is a single leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable) -> Any:
        """The tree of this shape with these leaves; see `tree_unflatten`."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list:
        """The parts of `tree` at this spec's leaves; ValueError where the shapes differ."""
        if self.type is None:
            return [tree]
        kind = _kind_of(tree)
        if kind is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if kind in (dict, OrderedDict, defaultdict):
            keys = self.context if kind is not defaultdict else self.context[1]
            missing, extra = {*keys} - {*tree}, {*tree} - {*keys}
            if missing or extra:
                message = "Node keys mismatch"
                message += f"; missing key(s): {missing}" if missing else ""
                message += f"; extra key(s): {extra}" if extra else ""
                raise ValueError(message + ".")
            children = [tree[key] for key in keys]
        elif len(children) != len(self._children):
            raise ValueError(
                f"Node arity mismatch; expected {len(self._children)}, but got {len(children)}."
            )
        elif context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        parts: list = []
        for spec, child in zip(self._children, children, strict=True):
            parts += spec.flatten_up_to(child)
        return parts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, len(self._children), self.num_leaves))

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        gap = ",\n" + " " * (indent + 2)
        children = gap.join([child._text(indent + 2) for child in self._children])
        return f"TreeSpec({self.type.__name__}, {self.context!r}, [{children}])"

    def __repr__(self) -> str:
        return self._text(0)


class LeafSpec(TreeSpec):
    """The spec of a single leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


def _get_node_type(tree: Any) -> Any:
    """The kind of node that a value is: its type, or `namedtuple`."""
    return _kind_of(tree)


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """The leaves of a tree from left to right, and its shape.

    Where ``is_leaf(node)`` is true, the node is a leaf.
    """
    leaves: list = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(tree: Any, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    kind = _kind_of(tree)
    definition = SUPPORTED_NODES.get(kind)
    if definition is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LeafSpec()
    children, context = definition.flatten_fn(tree)
    specs = [_flatten_into(child, leaves, is_leaf) for child in children]
    return TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of a shape with these leaves; ValueError when their number is wrong."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers "
            f"to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _build(iter(values), treespec)


def _build(leaves: Iterator, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec._children]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator:
    """The leaves one by one."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """The leaves from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """The tree of ``func(leaf, ...)``; `rests` must have the tree's shape at least."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[spec.flatten_up_to(rest) for rest in rests]]
    return _build(iter([func(*values) for values in zip(*columns, strict=True)]), spec)


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map` for the side effects: gives back the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types_or_pred: Any,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """`tree_map` over the leaves of these types (or for which the predicate holds)."""
    chosen = _chooser(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def _chooser(given: Any) -> Callable[[Any], bool]:
    if isinstance(given, (type, tuple)) or not callable(given):
        return lambda leaf: isinstance(leaf, given)
    return given


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


class _Star:
    """Prints as a leaf does in a drawing of a tree."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape as the containers would print, with ``*`` for leaves."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON, which `treespec_loads` reads: a leaf has no type.

    Raises TypeError for what is no spec or has a context that JSON cannot write, ValueError for
    another `protocol` than 1, NotImplementedError for classes that were registered without a name.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    _expect_protocol(1 if protocol is None else protocol)
    return json.dumps((1, _schema_of(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that `treespec_dumps` wrote.

    Raises ValueError for another version, NotImplementedError for classes that are not registered.
    """
    protocol, schema = json.loads(serialized)
    _expect_protocol(protocol)
    return _loaded(schema)


def _expect_protocol(protocol: int) -> None:
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")


def _schema_of(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    _, name, to_dumpable, _ = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if to_dumpable is not None:
        context = to_dumpable(spec.context)
    else:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register "
                "a custom serializer using _register_pytree_node."
            ) from error
    return {"type": name, "context": context, "children_spec": [*map(_schema_of, spec._children)]}


def _loaded(schema: dict[str, Any]) -> TreeSpec:
    name, context = schema["type"], schema["context"]
    if name is None:
        return LeafSpec()
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    from_dumpable = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context or json.loads
    return TreeSpec(kind, from_dumpable(context), [*map(_loaded, schema["children_spec"])])


def broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list | None:
    """One entry of `tree` per leaf of `treespec`, of which `tree` is a prefix; else None."""
    if (
        treespec.type is None
        or _kind_of(tree) not in SUPPORTED_NODES
        or (is_leaf is not None and is_leaf(tree))
    ):
        flat = _kind_of(tree) not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree))
        return [tree] * treespec.num_leaves if flat else None
    kind = _kind_of(tree)
    if kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result: list = []
    for child, spec in zip(children, treespec._children, strict=True):
        part = broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        result += part
    return result
