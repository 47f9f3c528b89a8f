"""Rows of indexing: reading, writing in place, gather and scatter."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import (
    ALL,
    WIDE,
    OpInfo,
    async_error,
    booleans,
    constant,
    error,
    forward_sample,
    int64,
    integer_valued,
    integers,
    literal,
    sample,
    subgradient_sample,
    tensor,
)

ANY = ("float64", "float32", "bfloat16", "int64", "bool")
SOME_DTYPES = ("float64", "float32", "int64")
MASK = literal([[True, False, True, False], [False, False, True, True],
    [True, False, False, False]], dtype="bool", requires_grad=False)
NONE = literal([False, False, False], dtype="bool", requires_grad=False)
ROWS = literal([True, False, True], dtype="bool", requires_grad=False)
s_ = slice
# Keys for a tensor of shape (3, 4).
KEYS = {"int": [0, -1, 2], "slice": [s_(1, None), s_(None, None, 2), s_(-2, None), s_(5, 9),
    s_(None), s_(2, 1)], "tuple": [(0, 1), (0, s_(1, 3)), (s_(None), 2),
    (s_(None, None, 2), s_(1, None, 2)), ()],
    "ellipsis": [..., (..., 0), (0, ...), (..., s_(1, 3)), (1, ..., 2)],
    "none": [None, (None, 0), (0, None), (s_(None), None, s_(1, 2)), (None, ..., None),
    (..., None)], "bool": [MASK, NONE, ROWS, (ROWS, 1), (ROWS, s_(1, 3)),
    (s_(None), literal([True, False, False, True], dtype="bool")),
    (0, literal([True, False, False, True], dtype="bool"))], "scalarbool": [True, False, (True, 0)],
    "advanced": [int64([0, 2, 2]), int64([[0, 1], [2, -1]]), int64(1), [0, 2], ([0, 2], [1, 3]),
    (int64([0, 1]), int64([1, 3])), int64([])],
    "broadcast": [(int64([[0], [2]]), int64([1, 3])), (int64([0, 2]), int64(1)),
    (int64([0, 1, 1, 0]), int64([2, 3, 3, 2]))],
    "mixed": [(int64([0, 2]), s_(1, 3)), (s_(None), int64([3, 0, 0])),
    (s_(1, None), int64([[1, 2]])), (1, int64([0, 3])), (int64([0, 1]), 2), (..., int64([1, 1])),
    (int64([0, 2]), None), (None, int64([0, 2])), ([0, 1], s_(None, None, 2))],}
DEEP = [(s_(None), int64([0, 2]), int64([1, 3])), (int64([0, 1]), s_(None), int64([1, 3])),
    (0, s_(None), int64([1, 1])), (int64([0, 1]), 1, s_(None)), (..., int64([0, 1]), s_(1, 3)),
    (int64([[0], [1]]), s_(0, 2), int64([1, 3, 0])), (s_(None), MASK), (1, MASK),
    (s_(None), 0, int64([1, 2])), (int64([0, 1]), None, int64([1, 2]))]
BAD = [error(tensor(), s_(None, None, 0)), error(tensor(), (s_(None, None, 0),)),
    error(tensor(0, 2), [0]), error(tensor(2, 3), (2, s_(None, None, 0))),
    error(tensor(2, 0, 0), (0, s_(None), int64([1]))), error(tensor(3, 4), 3),
    error(tensor(3, 4), (0, 4)), error(tensor(3, 4), (0, 0, 0)), error(tensor(), 0),
    async_error(tensor(3, 4), int64([3])), error(tensor(3, 4), 1.5), error(tensor(3, 4), "a"),
    error(tensor(3, 4), booleans(4)), error(tensor(3, 4), booleans(3, 3)),
    error(tensor(3, 4), (int64([0, 1]), int64([0, 1, 2]))),
    error(tensor(3, 4), literal([1.0, 2.0])), error(tensor(3), s_(None, None, 0))]
BASIC = ("int", "slice", "tuple", "ellipsis", "none")


def samples(keys, *values, shape=(3, 4), kind=sample):
    """A sample per key."""
    return [kind(tensor(*shape), key_of(key), *values) for key in keys]


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


def with_inplace_variant(name, *more, call=None, **options):
    """A row of a function that has an in-place twin."""
    return OpInfo(name, *more, call=call, inplace_variant=name.split(".")[0] + "_", **options)


READING = [
    *(OpInfo(f"getitem.{kind}", *samples(keys), call=read, dtypes=ANY,
        is_view=kind in BASIC) for kind, keys in KEYS.items()),
    OpInfo("getitem.deep", *samples(DEEP, shape=(2, 3, 4)), sample(tensor(2, 3, 4, 2),
        key_of((s_(None), int64([0, 1]), s_(1, 3), int64([1, 0])))), call=read, dtypes=WIDE,
        check_third_order=True),
    OpInfo("getitem.errors", sample(tensor(3, 4), key_of(0)), call=read,
        errors=[e._replace(args=(e.args[0], key_of(e.args[1]))) for e in BAD]),
    OpInfo("getitem.number", sample(tensor(3), key_of(0)), sample(tensor(), key_of(())),
        sample(tensor(), key_of(None)), sample(tensor(), key_of(...)), sample(tensor(1), key_of(0)),
        call=read, dtypes=ALL),
    OpInfo("getitem.uint8", sample(tensor(3), key_of(literal([1, 0, 1], dtype="uint8"))),
        sample(tensor(3), key_of(literal([0, 2], dtype="int32"))), call=read, dtypes=WIDE),
    OpInfo("getitem.empty", sample(tensor(0, 3), key_of(s_(None))),
        sample(tensor(0, 3), key_of(int64([]))), sample(tensor(3), key_of(NONE)),
        sample(tensor(0), key_of(booleans(0))), call=read, dtypes=WIDE),
]

WRITING = [
    *(OpInfo(f"setitem.{kind}", *samples(keys, 2), *samples(keys, tensor(),
        kind=subgradient_sample if kind in ("advanced", "broadcast", "mixed") else sample),
        call=write, dtypes=ANY) for kind, keys in KEYS.items()),
    OpInfo("setitem.broadcast_value", sample(tensor(3, 4), key_of(s_(0, 2)), tensor(4)),
        sample(tensor(3, 4), key_of((s_(None), 1)), tensor(3)),
        sample(tensor(3, 4), key_of(0), tensor(1, 4)),
        sample(tensor(3, 4), key_of(MASK), tensor(5)),
        sample(tensor(3, 4), key_of(int64([0, 2])), tensor(2, 4)),
        sample(tensor(3, 4), key_of((int64([0, 2]), s_(1, 3))), tensor(2)),
        sample(tensor(3, 4), key_of(...), tensor(3, 1)),
        sample(tensor(3, 4), key_of(ROWS), tensor(4)),
        sample(tensor(3, 4), key_of(1), constant(4, dtype="int64")),
        sample(tensor(3, 4), key_of((None, 0)), tensor(1, 4)), call=write, dtypes=ANY,
        errors=[error(tensor(3, 4), key_of(0), tensor(5)),
        error(tensor(3, 4), key_of(MASK), tensor(6)), error(tensor(3, 4), key_of(4), 1.0),
        error(tensor(3, 4), key_of(0), "x"),
        error(tensor(3, 4), key_of(int64([0, 1])), tensor(3, 4)),
        error(tensor(3, 4), key_of(0), tensor(2, 4))]),
    *(OpInfo(f"iadd_item.{kind}", *samples(KEYS[kind], 2), *samples(KEYS[kind][:2], tensor()),
        call=add_to, dtypes=SOME_DTYPES) for kind in ("int", "slice", "tuple", "bool")),
    OpInfo("iadd_item.advanced", sample(tensor(3, 4), key_of(int64([0, 2])), tensor(4)),
        sample(tensor(3, 4), key_of((int64([0, 1]), int64([1, 3]))), 2), call=add_to, dtypes=WIDE),
    OpInfo("setitem.chain", sample(tensor(3, 4), tensor(4)), sample(tensor(3, 4), tensor()),
        dtypes=WIDE, call=lambda torch, x, y: add_to(torch, write(torch, x * 2, (0,), y * y),
        ((slice(None), 1),), 3) * x),
    OpInfo("setitem.view", sample(tensor(3, 4), tensor(4)), dtypes=WIDE,
        call=lambda torch, x, y: _through_view(x.clone(), y)),
]


def _through_view(x, y):
    """A write through a view of a view shows in the base and its gradient."""
    rows = x[1:]
    rows.t()[2:4].t()[1] = y[:2]
    rows[0].mul_(3)
    return x * x


INDEX_FUNCTIONS = [
    OpInfo("gather", sample(tensor(3, 4), 1, integers(3, 2, high=4)),
        sample(tensor(3, 4), 0, integers(2, 4, high=3)),
        sample(tensor(2, 3, 4), -1, integers(1, 2, 5, high=4)),
        sample(tensor(5), 0, integers(7, high=5)),
        sample(tensor(3, 4), dim=1, index=integers(3, 2)),
        sample(tensor(3, 4), 1, int64([[], [], []])), sample(tensor(), 0, int64(0)), dtypes=ANY,
        check_third_order=True, errors=[async_error(tensor(3, 4), 1, int64([[4]])),
        error(tensor(3, 4), 1, int64([0])), error(tensor(3, 4), 2, int64([[0]])),
        error(tensor(3, 4), 1, literal([[0.0]])), error(tensor(3, 4), 1, integers(4, 2)),
        error(tensor(3, 4), 1, int64([[-1]]))]),
    with_inplace_variant("scatter", sample(tensor(3, 4), 1, int64([[0], [2], [1]]), tensor(3, 1)),
        sample(tensor(3, 4), 0, int64([[2, 1, 0, 1]]), tensor(1, 4)),
        sample(tensor(3, 4), 1, int64([[0, 3], [1, 2]]), constant(3, 5)),
        sample(tensor(3, 4), 1, int64([[0, 3], [1, 2]]), 2.5),
        sample(tensor(3, 4), 1, index=int64([[0], [2]]), src=tensor(2, 1)),
        sample(tensor(5), 0, int64([4, 2]), value=1.0), dtypes=SOME_DTYPES,
        skip_undefined_behavior=("resized",),
        # PyTorch refuses the gradient of a src larger than the index
        errors=[async_error(tensor(3, 4), 1, int64([[4]]), tensor(1, 1)),
        error(tensor(3, 4), 1, int64([[0, 1]]), tensor(1, 1)),
        error(tensor(3, 4), 1, int64([0]), tensor(1)),
        error(tensor(3), 0, int64([0]), constant(1, dtype="int64")),
        error(tensor(3, 4), 1, int64([[0]]), tensor())]),
    *(OpInfo(f"scatter.reduce_{how}",
        sample(tensor(3, 4), 1, integers(3, 4, high=4), constant(3, 4), reduce=how), dtypes=WIDE,
        supports_autograd=False) for how in ("add", "multiply")),
    with_inplace_variant("scatter_add",
        sample(tensor(3, 4), 1, integers(3, 5, high=4), tensor(3, 5)),
        sample(tensor(3, 4), 0, integers(2, 3), constant(4, 4)),
        sample(tensor(5), 0, integers(7, high=5), tensor(7)),
        sample(tensor(3, 4), dim=1, index=integers(3, 2), src=tensor(3, 2)), dtypes=SOME_DTYPES,
        errors=[async_error(tensor(3, 4), 1, int64([[4]]), tensor(1, 1)),
        error(tensor(3, 4), 1, integers(4, 2), tensor(4, 2))]),
    *(OpInfo(f"scatter_reduce.{how}",
        sample(tensor(3, 4), 1, integers(3, 5, high=4), tensor(3, 5), how),
        sample(tensor(3, 4), 0, integers(2, 4), tensor(2, 4), reduce=how, include_self=False),
        dtypes=WIDE, torch_grad_orders=1 if how in ("prod", "amax", "amin") else 3,
        errors=[error(tensor(3), 0, int64([0]), tensor(1), "other")],
        inplace_variant="scatter_reduce_") for how in ("sum", "mean", "amax", "amin", "prod")),
    OpInfo("index_select", sample(tensor(3, 4), 0, int64([0, 2, 2])),
        sample(tensor(3, 4), 1, int64([3])), sample(tensor(3, 4), -1, int64([])),
        sample(tensor(5), 0, integers(3)), sample(tensor(3, 4), dim=0, index=int64([1])),
        sample(tensor(3, 4), 0, literal([1, 0], dtype="int32")), dtypes=ANY,
        errors=[async_error(tensor(3, 4), 0, int64([3])), error(tensor(3, 4), 2, int64([0])),
        error(tensor(3, 4), 0, int64([[0]])), error(tensor(3, 4), 0, literal([0.0])),
        error(tensor(0, 3), 0, int64([0]))]),
    with_inplace_variant("index_add", sample(tensor(3, 4), 0, int64([0, 2, 2]), tensor(3, 4)),
        sample(tensor(3, 4), 1, int64([1]), tensor(3, 1), alpha=2),
        sample(tensor(5), 0, integers(7, high=5), tensor(7)),
        forward_sample(tensor(3, 0), 0, int64([4]), tensor(1, 0)), dtypes=SOME_DTYPES,
        errors=[async_error(tensor(3, 4), 0, int64([3]), tensor(1, 4)),
        error(tensor(3, 4), 0, int64([0]), tensor(2, 4)),
        error(tensor(3, 4), 0, int64([0]), tensor(1, 3)), error(tensor(3), 0, int64([0]), tensor()),
        error(tensor(3), 0, int64([0]), 1.0), async_error(tensor(3), 0, int64([4]), tensor(1))]),
    with_inplace_variant("index_copy", sample(tensor(3, 4), 0, int64([2, 0]), tensor(2, 4)),
        sample(tensor(3, 4), 1, int64([1]), tensor(3, 1)), dtypes=SOME_DTYPES,
        errors=[async_error(tensor(3, 4), 0, int64([3]), tensor(1, 4)),
        error(tensor(3, 4), 0, int64([0]), tensor(2, 4)),
        error(tensor(2, 3, 4), 0, int64([0]), constant(2, 4, dtype="float64")),
        error(tensor(3), 0, int64([0, 1]), tensor()), error(tensor(3), 0, int64([0]), 1.0)]),
    with_inplace_variant("index_fill", sample(tensor(3, 4), 0, int64([2, 0]), 3),
        sample(tensor(3, 4), 1, int64([1, 1]), tensor()), dtypes=SOME_DTYPES,
        errors=[async_error(tensor(3, 4), 0, int64([3]), 1.0),
        error(tensor(3, 4), 2, int64([0]), 1.0), error(tensor(0, 4), 0, int64([0]), 1.0)]),
    with_inplace_variant("index_put", sample(tensor(3, 4), (int64([0, 2]),), tensor(2, 4)),
        sample(tensor(3, 4), (int64([0, 2]), int64([1, 3])), tensor(2)),
        sample(tensor(3, 4), (int64([0, 0]), int64([1, 1])), tensor(2), accumulate=True),
        sample(tensor(3, 4), (int64([0, 2, 0]),), tensor(4), True),
        sample(tensor(3, 4), (MASK,), tensor()), dtypes=SOME_DTYPES,
        errors=[async_error(tensor(3, 4), (int64([3]),), tensor(4)),
        error(tensor(3, 4), (int64([0]),), tensor(5))]),
    with_inplace_variant("masked_fill", sample(tensor(3, 4), booleans(3, 4), 2),
        sample(tensor(3, 4), booleans(4), -1.5), sample(tensor(3, 4), booleans(3, 1), tensor()),
        sample(tensor(), booleans(), 1), dtypes=("float64", "float32", "float16", "bfloat16"),
        errors=[error(tensor(3, 4), tensor(3, 4), 1.0), error(tensor(3, 4), booleans(3), 1.0),
        error(tensor(3, 4), booleans(3, 4), tensor(2))]),
    OpInfo("masked_fill.int", sample(tensor(3, 4), booleans(3, 4), 2),
        sample(tensor(3, 4), booleans(4), True), dtypes=("int64", "bool"), supports_autograd=False,
        inplace_variant="masked_fill_"),
    OpInfo("masked_select", sample(tensor(3, 4), MASK), sample(tensor(3, 4), booleans(4)),
        sample(tensor(4), MASK), sample(tensor(3), NONE), dtypes=ANY,
        errors=[error(tensor(3, 4), tensor(3, 4)), error(tensor(3, 4), booleans(3))]),
    with_inplace_variant("masked_scatter", sample(tensor(3, 4), MASK, tensor(6)),
        sample(tensor(3, 4), MASK, tensor(3, 4)), dtypes=SOME_DTYPES,
        errors=[error(tensor(3, 4), MASK, tensor(2)),
        error(tensor(3, 4), MASK, constant(9, dtype="int64")), error(tensor(3, 4), MASK, 1.0)]),
    OpInfo("take", sample(tensor(3, 4), integers(5, high=12)),
        sample(tensor(3, 4), int64([[0, -1], [11, 0]])), dtypes=ANY,
        errors=[async_error(tensor(3), int64([3])), error(tensor(3), literal([0.0]))]),
    with_inplace_variant("put", sample(tensor(3, 4), int64([0, 5]), tensor(2)),
        sample(tensor(3, 4), int64([0, 0]), tensor(2), accumulate=True), dtypes=WIDE),
    OpInfo("take_along_dim", sample(tensor(3, 4), integers(3, 2, high=4), 1),
        sample(tensor(3, 4), integers(1, 4, high=3), dim=0),
        sample(tensor(3, 4), integers(5, high=12)),
        sample(tensor(3, 4), int64([[-1, 4], [9, 0], [3, 70]]), 1), dtypes=WIDE,
        errors=[error(tensor(3, 4), integers(3), 1), error(tensor(5), int64([-1])),
        error(tensor(0), int64([0]), 0)]),
    OpInfo("nonzero", sample(tensor(3, 4)), sample(tensor(5)), sample(tensor()),
        sample(tensor(0, 3)), dtypes=ANY, domain=integer_valued(-1, 2), supports_autograd=False),
    OpInfo("nonzero.tuple", sample(tensor(3, 4), as_tuple=True),
        sample(tensor(2, 2, 2), as_tuple=True), supports_autograd=False),
    OpInfo("argwhere", sample(tensor(3, 4)), supports_autograd=False),
    OpInfo("where.one", sample(booleans(3, 4)), sample(booleans(5)),
        call=lambda torch, x: torch.where(x), supports_autograd=False),
    *(OpInfo(f"{name}_scatter", *more, dtypes=WIDE) for name,
        *more in (("select", sample(tensor(3, 4), tensor(4), 0, 1)),
        ("slice", sample(tensor(3, 4), tensor(3, 2), 1, 0, 4, 2)),
        ("diagonal", sample(tensor(3, 4), tensor(3))))),
    OpInfo("Tensor.fill_diagonal_", sample(tensor(3, 3), 2.5), sample(tensor(4, 3), 1),
        call=lambda torch, x, v: x.clone().fill_diagonal_(v), dtypes=WIDE),
    *(OpInfo(f"Tensor.{name}_", sample(tensor(3, 4), *args),
        call=lambda torch, x, *args, name=name: getattr(x * 1, name + "_")(*args), dtypes=WIDE)
        for name, *args in (("fill", 2.5), ("zero",), ("copy", tensor(4)))),
    OpInfo("Tensor.copy_.cast", sample(tensor(3, 4), constant(4, dtype="int64")),
        sample(tensor(3), constant(3, dtype="float64")),
        call=lambda torch, x, y: x.clone().copy_(y), dtypes=SOME_DTYPES,
        errors=[error(tensor(3), tensor(4))]),
]

OPS = READING + WRITING + INDEX_FUNCTIONS
