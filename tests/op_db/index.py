"""Rows of indexing: reading, writing in place, gather and scatter."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import ALL, V64, WIDE, B, C, E, Forward, Kink, N, Op, S, T, Told, V, whole

ANY = ("float64", "float32", "bfloat16", "int64", "bool")
FEW = ("float64", "float32", "int64")
MASK = V([[True, False, True, False], [False, False, True, True], [True, False, False, False]],
    dtype="bool", grad=False)
NONE = V([False, False, False], dtype="bool", grad=False)
ROWS = V([True, False, True], dtype="bool", grad=False)
s_ = slice
# Keys for a tensor of shape (3, 4).
KEYS = {"int": [0, -1, 2], "slice": [s_(1, None), s_(None, None, 2), s_(-2, None), s_(5, 9),
    s_(None), s_(2, 1)], "tuple": [(0, 1), (0, s_(1, 3)), (s_(None), 2),
    (s_(None, None, 2), s_(1, None, 2)), ()], "ellipsis": [..., (..., 0), (0, ...), (..., s_(1, 3)),
    (1, ..., 2)], "none": [None, (None, 0), (0, None), (s_(None), None, s_(1, 2)),
    (None, ..., None), (..., None)], "bool": [MASK, NONE, ROWS, (ROWS, 1), (ROWS, s_(1, 3)),
    (s_(None), V([True, False, False, True], dtype="bool")), (0,
    V([True, False, False, True], dtype="bool"))], "scalarbool": [True, False, (True, 0)],
    "advanced": [V64([0, 2, 2]), V64([[0, 1], [2, -1]]), V64(1), [0, 2], ([0, 2], [1, 3]),
    (V64([0, 1]), V64([1, 3])), V64([])], "broadcast": [(V64([[0], [2]]), V64([1, 3])),
    (V64([0, 2]), V64(1)), (V64([0, 1, 1, 0]), V64([2, 3, 3, 2]))],
    "mixed": [(V64([0, 2]), s_(1, 3)), (s_(None), V64([3, 0, 0])), (s_(1, None), V64([[1, 2]])),
    (1, V64([0, 3])), (V64([0, 1]), 2), (..., V64([1, 1])), (V64([0, 2]), None),
    (None, V64([0, 2])), ([0, 1], s_(None, None, 2))],}
DEEP = [(s_(None), V64([0, 2]), V64([1, 3])), (V64([0, 1]), s_(None), V64([1, 3])),
    (0, s_(None), V64([1, 1])), (V64([0, 1]), 1, s_(None)), (..., V64([0, 1]), s_(1, 3)),
    (V64([[0], [1]]), s_(0, 2), V64([1, 3, 0])), (s_(None), MASK), (1, MASK),
    (s_(None), 0, V64([1, 2])), (V64([0, 1]), None, V64([1, 2]))]
BAD = [E(T(), s_(None, None, 0)), E(T(), (s_(None, None, 0),)), E(T(0, 2), [0]),
    E(T(2, 3), (2, s_(None, None, 0))), E(T(2, 0, 0), (0, s_(None), V64([1]))),
    E(T(3, 4), 3), E(T(3, 4), (0, 4)), E(T(3, 4), (0, 0, 0)), E(T(), 0),
    Told(T(3, 4), V64([3])), E(T(3, 4), 1.5), E(T(3, 4), "a"), E(T(3, 4), B(4)),
    E(T(3, 4), B(3, 3)),
    E(T(3, 4), (V64([0, 1]), V64([0, 1, 2]))), E(T(3, 4), V([1.0, 2.0])),
    E(T(3), s_(None, None, 0))]
BASIC = ("int", "slice", "tuple", "ellipsis", "none")


def samples(keys, *values, shape=(3, 4), kind=S):
    """A sample per key."""
    return [kind(T(*shape), key_of(key), *values) for key in keys]


def key_of(key):
    """A key, kept apart from the arguments around it."""
    return (key,)


def read(torch, x, key):
    return x[key[0]]


def write(torch, x, key, value):
    x = x.clone()
    x[key[0]] = value
    return x


def add_to(torch, x, key, value):
    x = x.clone()
    x[key[0]] += value
    return x


def written(name, *more, call=None, **options):
    """A row of a function that has an in-place twin."""
    return Op(name, *more, call=call, inplace=name.split(".")[0] + "_", **options)


READING = [
    *(Op(f"getitem.{kind}", *samples(keys), call=read, dtypes=ANY, view=kind in BASIC) for kind,
        keys in KEYS.items()),
    Op("getitem.deep", *samples(DEEP, shape=(2, 3, 4)), S(T(2, 3, 4, 2),
        key_of((s_(None), V64([0, 1]), s_(1, 3), V64([1, 0])))), call=read, dtypes=WIDE,
        order3=True),
    Op("getitem.errors", S(T(3, 4), key_of(0)), call=read, errors=[e._replace(args=(e.args[0],
        key_of(e.args[1]))) for e in BAD]),
    Op("getitem.number", S(T(3), key_of(0)), S(T(), key_of(())), S(T(), key_of(None)),
        S(T(), key_of(...)), S(T(1), key_of(0)), call=read, dtypes=ALL),
    Op("getitem.uint8", S(T(3), key_of(V([1, 0, 1], dtype="uint8"))),
        S(T(3), key_of(V([0, 2], dtype="int32"))), call=read, dtypes=WIDE),
    Op("getitem.empty", S(T(0, 3), key_of(s_(None))), S(T(0, 3), key_of(V64([]))),
        S(T(3), key_of(NONE)), S(T(0), key_of(B(0))), call=read, dtypes=WIDE),
]

WRITING = [
    *(Op(f"setitem.{kind}", *samples(keys, 2), *samples(keys, T(), kind=Kink
        if kind in ("advanced", "broadcast", "mixed") else S), call=write, dtypes=ANY) for kind,
        keys in KEYS.items()),
    Op("setitem.broadcast_value", S(T(3, 4), key_of(s_(0, 2)), T(4)),
        S(T(3, 4), key_of((s_(None), 1)), T(3)), S(T(3, 4), key_of(0), T(1, 4)),
        S(T(3, 4), key_of(MASK), T(5)), S(T(3, 4), key_of(V64([0, 2])), T(2, 4)),
        S(T(3, 4), key_of((V64([0, 2]), s_(1, 3))), T(2)), S(T(3, 4), key_of(...), T(3, 1)),
        S(T(3, 4), key_of(ROWS), T(4)), S(T(3, 4), key_of(1), C(4, dtype="int64")),
        S(T(3, 4), key_of((None, 0)), T(1, 4)), call=write, dtypes=ANY,
        errors=[E(T(3, 4), key_of(0), T(5)), E(T(3, 4), key_of(MASK), T(6)),
        E(T(3, 4), key_of(4), 1.0), E(T(3, 4), key_of(0), "x"),
        E(T(3, 4), key_of(V64([0, 1])), T(3, 4)), E(T(3, 4), key_of(0), T(2, 4))]),
    *(Op(f"iadd_item.{kind}", *samples(KEYS[kind], 2), *samples(KEYS[kind][:2], T()), call=add_to,
        dtypes=FEW) for kind in ("int", "slice", "tuple", "bool")),
    Op("iadd_item.advanced", S(T(3, 4), key_of(V64([0, 2])), T(4)),
        S(T(3, 4), key_of((V64([0, 1]), V64([1, 3]))), 2), call=add_to, dtypes=WIDE),
    Op("setitem.chain", S(T(3, 4), T(4)), S(T(3, 4), T()), dtypes=WIDE,
        call=lambda torch, x, y: add_to(torch, write(torch, x * 2, (0,), y * y),
        ((slice(None), 1),), 3) * x),
    Op("setitem.view", S(T(3, 4), T(4)), dtypes=WIDE,
        call=lambda torch, x, y: _through_view(x.clone(), y)),
]


def _through_view(x, y):
    """A write through a view of a view shows in the base and its gradient."""
    rows = x[1:]
    rows.t()[2:4].t()[1] = y[:2]
    rows[0].mul_(3)
    return x * x


INDEX_FUNCTIONS = [
    Op("gather", S(T(3, 4), 1, N(3, 2, high=4)), S(T(3, 4), 0, N(2, 4, high=3)),
        S(T(2, 3, 4), -1, N(1, 2, 5, high=4)), S(T(5), 0, N(7, high=5)),
        S(T(3, 4), dim=1, index=N(3, 2)), S(T(3, 4), 1, V64([[], [], []])), S(T(), 0, V64(0)),
        dtypes=ANY, order3=True, errors=[Told(T(3, 4), 1, V64([[4]])), E(T(3, 4), 1, V64([0])),
        E(T(3, 4), 2, V64([[0]])), E(T(3, 4), 1, V([[0.0]])), E(T(3, 4), 1, N(4, 2)),
        E(T(3, 4), 1, V64([[-1]]))]),
    written("scatter", S(T(3, 4), 1, V64([[0], [2], [1]]), T(3, 1)),
        S(T(3, 4), 0, V64([[2, 1, 0, 1]]), T(1, 4)), S(T(3, 4), 1, V64([[0, 3], [1, 2]]), C(3, 5)),
        S(T(3, 4), 1, V64([[0, 3], [1, 2]]), 2.5), S(T(3, 4), 1, index=V64([[0], [2]]),
        src=T(2, 1)), S(T(5), 0, V64([4, 2]), value=1.0), dtypes=FEW,
        accidents=("resized",),  # PyTorch refuses the gradient of a src larger than the index
        errors=[Told(T(3, 4), 1, V64([[4]]), T(1, 1)), E(T(3, 4), 1, V64([[0, 1]]), T(1, 1)),
        E(T(3, 4), 1, V64([0]), T(1)), E(T(3), 0, V64([0]), C(1, dtype="int64")),
        E(T(3, 4), 1, V64([[0]]), T())]),
    *(Op(f"scatter.reduce_{how}", S(T(3, 4), 1, N(3, 4, high=4), C(3, 4), reduce=how), dtypes=WIDE,
        grad=False) for how in ("add", "multiply")),
    written("scatter_add", S(T(3, 4), 1, N(3, 5, high=4), T(3, 5)), S(T(3, 4), 0, N(2, 3), C(4, 4)),
        S(T(5), 0, N(7, high=5), T(7)), S(T(3, 4), dim=1, index=N(3, 2), src=T(3, 2)), dtypes=FEW,
        errors=[Told(T(3, 4), 1, V64([[4]]), T(1, 1)), E(T(3, 4), 1, N(4, 2), T(4, 2))]),
    *(Op(f"scatter_reduce.{how}", S(T(3, 4), 1, N(3, 5, high=4), T(3, 5), how),
        S(T(3, 4), 0, N(2, 4), T(2, 4), reduce=how, include_self=False), dtypes=WIDE,
        torch_orders=1 if how in ("prod", "amax", "amin") else 3,
        errors=[E(T(3), 0, V64([0]), T(1), "other")], inplace="scatter_reduce_")
        for how in ("sum", "mean", "amax", "amin", "prod")),
    Op("index_select", S(T(3, 4), 0, V64([0, 2, 2])), S(T(3, 4), 1, V64([3])),
        S(T(3, 4), -1, V64([])), S(T(5), 0, N(3)), S(T(3, 4), dim=0, index=V64([1])),
        S(T(3, 4), 0, V([1, 0], dtype="int32")), dtypes=ANY,
        errors=[Told(T(3, 4), 0, V64([3])), E(T(3, 4), 2, V64([0])), E(T(3, 4), 0, V64([[0]])),
        E(T(3, 4), 0, V([0.0])), E(T(0, 3), 0, V64([0]))]),
    written("index_add", S(T(3, 4), 0, V64([0, 2, 2]), T(3, 4)),
        S(T(3, 4), 1, V64([1]), T(3, 1), alpha=2), S(T(5), 0, N(7, high=5), T(7)),
        Forward(T(3, 0), 0, V64([4]), T(1, 0)), dtypes=FEW,
        errors=[Told(T(3, 4), 0, V64([3]), T(1, 4)), E(T(3, 4), 0, V64([0]), T(2, 4)),
        E(T(3, 4), 0, V64([0]), T(1, 3)), E(T(3), 0, V64([0]), T()), E(T(3), 0, V64([0]), 1.0),
        Told(T(3), 0, V64([4]), T(1))]),
    written("index_copy", S(T(3, 4), 0, V64([2, 0]), T(2, 4)), S(T(3, 4), 1, V64([1]), T(3, 1)),
        dtypes=FEW, errors=[Told(T(3, 4), 0, V64([3]), T(1, 4)),
        E(T(3, 4), 0, V64([0]), T(2, 4)), E(T(2, 3, 4), 0, V64([0]), C(2, 4, dtype="float64")),
        E(T(3), 0, V64([0, 1]), T()), E(T(3), 0, V64([0]), 1.0)]),
    written("index_fill", S(T(3, 4), 0, V64([2, 0]), 3), S(T(3, 4), 1, V64([1, 1]), T()),
        dtypes=FEW, errors=[Told(T(3, 4), 0, V64([3]), 1.0),
        E(T(3, 4), 2, V64([0]), 1.0), E(T(0, 4), 0, V64([0]), 1.0)]),
    written("index_put", S(T(3, 4), (V64([0, 2]),), T(2, 4)), S(T(3, 4), (V64([0, 2]), V64([1, 3])),
        T(2)), S(T(3, 4), (V64([0, 0]), V64([1, 1])), T(2), accumulate=True),
        S(T(3, 4), (V64([0, 2, 0]),), T(4), True), S(T(3, 4), (MASK,), T()), dtypes=FEW,
        errors=[Told(T(3, 4), (V64([3]),), T(4)), E(T(3, 4), (V64([0]),), T(5))]),
    written("masked_fill", S(T(3, 4), B(3, 4), 2), S(T(3, 4), B(4), -1.5), S(T(3, 4), B(3, 1), T()),
        S(T(), B(), 1), dtypes=("float64", "float32", "float16", "bfloat16"),
        errors=[E(T(3, 4), T(3, 4), 1.0), E(T(3, 4), B(3), 1.0), E(T(3, 4), B(3, 4), T(2))]),
    Op("masked_fill.int", S(T(3, 4), B(3, 4), 2), S(T(3, 4), B(4), True), dtypes=("int64", "bool"),
        grad=False, inplace="masked_fill_"),
    Op("masked_select", S(T(3, 4), MASK), S(T(3, 4), B(4)), S(T(4), MASK), S(T(3), NONE),
        dtypes=ANY, errors=[E(T(3, 4), T(3, 4)), E(T(3, 4), B(3))]),
    written("masked_scatter", S(T(3, 4), MASK, T(6)), S(T(3, 4), MASK, T(3, 4)), dtypes=FEW,
        errors=[E(T(3, 4), MASK, T(2)), E(T(3, 4), MASK, C(9, dtype="int64")),
        E(T(3, 4), MASK, 1.0)]),
    Op("take", S(T(3, 4), N(5, high=12)), S(T(3, 4), V64([[0, -1], [11, 0]])), dtypes=ANY,
        errors=[Told(T(3), V64([3])), E(T(3), V([0.0]))]),
    written("put", S(T(3, 4), V64([0, 5]), T(2)), S(T(3, 4), V64([0, 0]), T(2), accumulate=True),
        dtypes=WIDE),
    Op("take_along_dim", S(T(3, 4), N(3, 2, high=4), 1), S(T(3, 4), N(1, 4, high=3), dim=0),
        S(T(3, 4), N(5, high=12)), S(T(3, 4), V64([[-1, 4], [9, 0], [3, 70]]), 1), dtypes=WIDE,
        errors=[E(T(3, 4), N(3), 1), E(T(5), V64([-1])), E(T(0), V64([0]), 0)]),
    Op("nonzero", S(T(3, 4)), S(T(5)), S(T()), S(T(0, 3)), dtypes=ANY, of=whole(-1, 2), grad=False),
    Op("nonzero.tuple", S(T(3, 4), as_tuple=True), S(T(2, 2, 2), as_tuple=True), grad=False),
    Op("argwhere", S(T(3, 4)), grad=False),
    Op("where.one", S(B(3, 4)), S(B(5)), call=lambda torch, x: torch.where(x), grad=False),
    *(Op(f"{name}_scatter", *more, dtypes=WIDE) for name, *more in (("select",
        S(T(3, 4), T(4), 0, 1)), ("slice", S(T(3, 4), T(3, 2), 1, 0, 4, 2)),
        ("diagonal", S(T(3, 4), T(3))))),
    Op("Tensor.fill_diagonal_", S(T(3, 3), 2.5), S(T(4, 3), 1),
        call=lambda torch, x, v: x.clone().fill_diagonal_(v), dtypes=WIDE),
    *(Op(f"Tensor.{name}_", S(T(3, 4), *args),
        call=lambda torch, x, *args, name=name: getattr(x * 1, name + "_")(*args), dtypes=WIDE)
        for name, *args in (("fill", 2.5), ("zero",), ("copy", T(4)))),
    Op("Tensor.copy_.cast", S(T(3, 4), C(4, dtype="int64")), S(T(3), C(3, dtype="float64")),
        call=lambda torch, x, y: x.clone().copy_(y), dtypes=FEW, errors=[E(T(3), T(4))]),
]

OPS = READING + WRITING + INDEX_FUNCTIONS
