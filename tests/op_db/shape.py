"""Rows of functions that only move elements: views, joins, splits, flips, padding."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import ALL, COMPLEX, FLOATS, WIDE, C, E, Forward, Kink, N, Name, Op, S, T, V

ANY = ("float64", "float32", "float16", "bfloat16", "int64", "bool")
FEW = ("float64", "float32", "int64")


def moving(name, *samples, dtypes=ANY, **options):
    """A row of a function whose result shares no memory."""
    return Op(name, *samples, dtypes=dtypes, **options)


def view(name, *samples, dtypes=ANY, **options):
    """A row of a function whose result is a view of its input."""
    return Op(name, *samples, dtypes=dtypes, view=True, **options)


def method(name, *samples, of=None, variant="", **options):
    """A row of a view that is only a method."""
    row = f"Tensor.{name}{variant}"
    call = lambda torch, x, *args, **kw: getattr(x, name)(*args, **kw)
    return view(row, *samples, call=call, **options)


VIEWS = [
    method("view", S(T(3, 4), 12), S(T(3, 4), 2, -1), S(T(3, 4), (2, 6)), S(T(3, 4), [4, 3]),
        S(T(), 1), S(T(0, 3), 3, 0), S(T(1), ()), S(T(2, 3, 4), 6, 4),
        errors=[E(T(3, 4), 5), E(T(3, 4), -1, -1), E(T(3, 4), 7, -1), E(T(3, 4), -2, 6)]),
    Op("Tensor.view.strided", S(T(3, 4), 1, 4, 3), S(T(3, 4), 4, 3), S(T(3, 4), 4, 3, 1, 1),
        view=True, call=lambda torch, x, *shape: x.t().view(*shape),
        errors=[E(T(3, 4), 12), E(T(3, 4), 2, 6)]),
    method("view_as", S(T(3, 4), C(2, 6)), errors=[E(T(3, 4), T(5))]),
    Op("Tensor.view.dtype", S(V([1.0, -2.0], dtype="float32"), Name("int32")),
        S(V([[1.0, 2.0]], dtype="float64"), Name("int64")), S(V([[1.0, 2.0]], dtype="float64"),
        Name("float32")), S(V([1, 2], dtype="int64"), Name("uint8")),
        S(V([[1.0, 2.0]], dtype="float64"), int), S(V([1, 2], dtype="int64"), float),
        call=lambda torch, x, dtype: x.view(dtype), grad=False, dtypes=("float32",), layout=False),
    view("reshape", S(T(3, 4), (12,)), S(T(3, 4), (2, -1)), S(T(3, 4), [4, 3]), S(T(), (1, 1)),
        S(T(0, 3), (3, 0)), S(T(3, 4), (-1,)), errors=[E(T(3, 4), (5,)), E(T(3, 4), (-1, -1))]),
    method("reshape", S(T(3, 4), 12), S(T(3, 4), 2, -1), S(T(3, 4), (4, 3))),
    method("reshape_as", S(T(3, 4), C(2, 6))),
    Op("reshape.strided", S(T(3, 4), (12,)), S(T(2, 3, 4), (6, 4)), dtypes=ANY,
        call=lambda torch, x, s: torch.reshape(x.transpose(0, 1), s)),
    view("permute", S(T(2, 3, 4), (2, 0, 1)), S(T(2, 3), (-1, 0)), S(T(2, 3, 4), (0, 1, 2)),
        S(T(), ()), order3=True, errors=[E(T(2, 3), (0,)), E(T(2, 3), (0, 0)), E(T(2, 3), (0, 2))]),
    method("permute", S(T(2, 3, 4), 2, 0, 1), S(T(2, 3, 4), (1, 0, 2))),
    *(view(name, S(T(2, 3), 0, 1), S(T(2, 3, 4), -1, 0), S(T(), 0, 0), S(T(2, 3), 1, 1),
        errors=[E(T(2, 3), 0, 2)]) for name in ("transpose", "swapaxes", "swapdims")),
    view("t", S(T(2, 3)), S(T(3)), S(T()), errors=[E(T(2, 3, 4))]),
    *(view(f"Tensor.{name}", S(T(2, 3)), S(T(2, 3, 4)) if name[0] == "m" else S(T(4, 3)),
        call=lambda torch, x, name=name: getattr(x, name), dtypes=FEW)
        for name in ("T", "mT", "H", "mH")),
    *(view(name, S(T(2, 3, 4), 0, 2), S(T(2, 3, 4), (0, 1), (-1, -2)), S(T(2, 3, 4), -1, 0),
        errors=[E(T(2, 3), 0, 2), E(T(2, 3), (0, 1), (0,))]) for name in ("movedim", "moveaxis")),
    view("squeeze", S(T(1, 3, 1)), S(T(1, 3, 1), 0), S(T(1, 3, 1), -1), S(T(1, 3, 1), 1),
        S(T(1, 3, 1), (0, 2)), S(T()), S(T(1, 1)), errors=[E(T(2, 3), 2)]),
    view("unsqueeze", S(T(2, 3), 0), S(T(2, 3), -1), S(T(2, 3), 2), S(T(), 0), S(T(2, 3), dim=1),
        errors=[E(T(2, 3), 3), E(T(2, 3), -4)]),
    method("expand", S(T(3, 1), 3, 4), S(T(3, 1), -1, 4), S(T(3), 2, 3), S(T(), 2, 3),
        S(T(3, 1), (2, 3, 4)), S(T(1, 3), 0, 3), errors=[E(T(3), 4), E(T(3), -1, 3),
        E(T(2, 3), 3)]),
    method("expand_as", S(T(3, 1), C(2, 3, 4)), errors=[E(T(3), T(4))]),
    view("broadcast_to", S(T(3, 1), (3, 4)), S(T(), (2,)), S(T(4), (2, 3, 4)),
        errors=[E(T(3), (4,))]),
    view("flatten", S(T(2, 3, 4)), S(T(2, 3, 4), 1), S(T(2, 3, 4), 0, 1),
        S(T(2, 3, 4), start_dim=-2), S(T()), S(T(5)), errors=[E(T(2, 3), 1, 0), E(T(2, 3), 0, 2)]),
    view("unflatten", S(T(2, 6), 1, (2, 3)), S(T(6), 0, (-1, 2)), S(T(2, 6), -1, [3, 2]),
        errors=[E(T(2, 6), 1, (4, 2)), E(T(2, 6), 2, (1,))]),
    view("ravel", S(T(2, 3)), S(T())),
    view("narrow", S(T(5, 3), 0, 1, 3), S(T(5, 3), 1, 0, 0), S(T(5, 3), -1, 1, 2),
        S(T(5), 0, -3, 2), errors=[E(T(5), 0, 3, 3), E(T(5), 1, 0, 1), E(T(5), 0, 0, -1)]),
    view("select", S(T(3, 4), 0, 1), S(T(3, 4), 1, -1), S(T(3, 4), -1, 0),
        errors=[E(T(3, 4), 0, 3), E(T(3, 4), 2, 0), E(T(), 0, 0)]),
    view("as_strided", S(T(12), (3, 4), (4, 1)), S(T(12), (5, 3), (2, 1)),
        S(T(12), (2, 2), (3, 1), 2), S(T(5), (3, 3), (1, 1)), layout=False,
        errors=[E(T(3), (2, 2), (2, 2))]),
    method("unfold", S(T(7), 0, 3, 2), S(T(3, 5), 1, 2, 1), S(T(4, 3), 0, 4, 1),
        S(T(3, 6), -1, 2, 3), errors=[E(T(3), 0, 4, 1)]),
    view("diagonal", S(T(3, 4)), S(T(3, 4), 1), S(T(3, 4), offset=-1), S(T(2, 3, 4), 0, 1, 2),
        S(T(2, 3, 3), dim1=0, dim2=-1), S(T(3, 3), 5), errors=[E(T(3)), E(T(3, 4), 0, 1, 1),
        E(T(3, 4), 0, 0, 2)]),
    *(view(f"atleast_{n}d", S(T()), S(T(3)), S(T(2, 3)), S(T(2, 3, 2, 2))) for n in (1, 2, 3)),
    Op("atleast_2d.list", S([T(), T(3)]), call=lambda torch, xs: torch.atleast_2d(*xs),
        dtypes=WIDE),
    view("unbind", S(T(3, 4)), S(T(3, 4), 1), S(T(2, 3, 4), dim=-1), errors=[E(T()), E(T(3), 1)]),
    view("split", S(T(7, 2), 3), S(T(7, 2), [2, 5]), S(T(3, 4), 2, 1),
        S(T(3, 4), split_size_or_sections=(1, 3), dim=-1), S(T(0, 2), 3),
        errors=[E(T(7), [2, 3]), E(T(7), -1), E(T(7), 2, 1)]),
    view("chunk", S(T(7, 2), 3), S(T(4), 2), S(T(3, 4), 2, 1), S(T(3), 5),
        S(T(3, 4), chunks=2, dim=-1), errors=[E(T(3), 0), E(T(3), 2, 1)]),
    view("tensor_split", S(T(7, 2), 3), S(T(7), (2, 4)), S(T(3, 4), 2, 1), S(T(3, 4), (1,), dim=-1),
        errors=[E(T(3), 0)]),
    view("hsplit", S(T(3, 4), 2), S(T(4), 2), S(T(3, 4), (1, 3)), dtypes=WIDE),
    view("vsplit", S(T(4, 3), 2), dtypes=WIDE),
    view("dsplit", S(T(2, 3, 4), 2), dtypes=WIDE),
    Op("broadcast_tensors", S([T(3, 1), T(4)]), S([T(), T(2, 3)]), S([T(3)]),
        call=lambda torch, xs: torch.broadcast_tensors(*xs), dtypes=ANY, errors=[E([T(3), T(4)])]),
    method("contiguous", S(T(3, 4))), method("detach", S(T(3, 4)), grad=False),
    method("view", S(T(2, 2), 4), variant=".complex", dtypes=COMPLEX, grad=False),
    Op("Tensor.contiguous.strided", S(T(3, 4)), S(T(2, 1, 3)),
        call=lambda torch, x: x.transpose(0, 1).contiguous(), dtypes=FLOATS),
]

JOINS = [
    moving("cat", S([T(2, 3), T(1, 3)]), S([T(2, 3), T(2, 1), T(2, 2)], 1),
        S([T(2, 3), T(2, 3)], dim=-1), S([T(3)]), S([T(0), T(2, 3)]),
        S([T(2), C(2, dtype="int64")]), S((T(3), T(2))), S([T(2, 3), T(1, 3)], axis=0), out=False,
        errors=[E([T(2, 3), T(2, 2)]), E([]), E([T(2), T(2, 2)]), E([T()]), E(T(3)),
        E([T(2), T(2)], 1), E([T(2), 1])], order3=True),
    *(moving(name, S([T(2, 3), T(1, 3)]), S([T(2, 3), T(2, 1)], 1), dtypes=WIDE)
        for name in ("concat", "concatenate")),
    moving("stack", S([T(2, 3), T(2, 3)]), S([T(2, 3), T(2, 3)], 1), S([T(2), T(2)], dim=-1),
        S([T(), T(), T()]), S([T(2), C(2, dtype="int64")]), errors=[E([T(2), T(3)]), E([]),
        E([T(2), T(2)], 2)]),
    *(moving(name, S([T(2, 3), T(2, 3)]), S([T(3), T(3)]), S([T(), T()]),
        S([T(2, 2, 2), T(2, 2, 2)])) for name in ("hstack", "vstack", "dstack")),
    moving("column_stack", S([T(3), T(3, 2)]), dtypes=WIDE),
    moving("row_stack", S([T(3), T(2, 3)]), dtypes=WIDE),
    moving("block_diag", S(T(2, 3), T(1, 1), T(2)),
        S(T(2, 3), C(dtype="float64"), C(2, dtype="float16")), dtypes=WIDE),
    moving("cartesian_prod", S(T(2), T(3)), S(T(2)), dtypes=WIDE),
    moving("combinations", S(T(4), 2), S(T(3), with_replacement=True), dtypes=WIDE),
    Op("meshgrid", S(T(3), T(4), indexing="ij"), S(T(3), T(4), indexing="xy"),
        S(T(2), T(), indexing="ij"), S([T(2), T(3)], indexing="ij"),
        S(T(2), T(3), T(2), indexing="xy"), dtypes=FEW, errors=[E(T(2), T(3), indexing="other"),
        E(T(2, 2), T(3), indexing="ij")]),
]

REPEATS = [
    Op("Tensor.repeat", S(T(2, 3), 2, 1), S(T(3), 2, 2), S(T(3), (3,)), S(T(), 2), S(T(2), 0),
        call=lambda torch, x, *args: x.repeat(*args), dtypes=ANY,
        errors=[E(T(2, 3), 2), E(T(2), -1)]),
    moving("tile", S(T(2, 3), (2,)), S(T(3), (2, 2)), S(T(2, 3), (1, 2)), S(T(), (3,))),
    moving("repeat_interleave", S(T(3), 2), S(T(2, 3), 2, 1), S(T(2, 3), N(2, low=1, high=4),
        dim=0), S(T(3), N(3, high=4)), S(T(2, 3), 2), accidents=("zero_dim",),
        errors=[E(T(3), -1), E(T(3), N(2)), E(T(3), 2, 1)]),
    moving("flip", S(T(3, 4), (0,)), S(T(3, 4), (0, 1)), S(T(3, 4), [-1]), S(T(3, 4), dims=()),
        errors=[E(T(3), (1,)), E(T(3, 4), (0, 0))]),
    moving("fliplr", S(T(3, 4)), errors=[E(T(3))]),
    moving("flipud", S(T(3, 4)), S(T(3)), errors=[E(T())]),
    moving("roll", S(T(5), 2), S(T(3, 4), 1, 0), S(T(3, 4), (1, -1), (0, 1)), S(T(3, 4), -5),
        S(T(3, 4), shifts=7, dims=1), errors=[E(T(3), (1, 2), (0,)), E(T(3), 1, 1)]),
    moving("rot90", S(T(3, 4)), S(T(3, 4), 2), S(T(3, 4), -1, (1, 0)), S(T(2, 3, 4), 1, [1, 2]),
        S(T(3, 4), 4), errors=[E(T(3)), E(T(3, 4), 1, (0, 0))]),
    moving("diag", S(T(3)), S(T(3), 1), S(T(3, 4)), S(T(3, 4), -1), S(T(3, 4), diagonal=2),
        errors=[E(T()), E(T(2, 2, 2))]),
    moving("diag_embed", S(T(3)), S(T(2, 3), 1), S(T(2, 3), offset=-1, dim1=0, dim2=2), dtypes=FEW),
    moving("diagflat", S(T(3)), S(T(2, 2), 1), dtypes=FEW),
    *(moving(name, S(T(3, 4)), S(T(3, 4), 1), S(T(2, 3, 3), diagonal=-1), S(T(4, 3), 9),
        inplace=name + "_", errors=[E(T(3))], accidents=("expanded",))
        for name in ("tril", "triu")),
    Op("Tensor.to.dtype", *[S(T(2, 3), Name(d)) for d in ("float64", "float32", "float16", "int64",
        "bool")], S(T(2), dtype=Name("float64")), call=lambda torch, x, *args, **kw: x.to(*args,
        **kw), dtypes=ALL, grad=False),
    Op("Tensor.to.other", S(T(2, 3), C(1, dtype="float64")), Kink(T(2, 3), C(1, dtype="float32")),
        call=lambda torch, x, y: x.to(y), dtypes=WIDE),
    *(Op(f"Tensor.{name}", Kink(T(2, 3)), call=lambda torch, x, name=name: getattr(x, name)(),
        dtypes=ALL, grad=name in ("float", "double"), same=True)
        for name in ("float", "double", "half", "bfloat16", "int", "long", "short", "bool")),
    Op("Tensor.type_as", S(T(2, 3), C(1, dtype="float64")), call=lambda torch, x, y: x.type_as(y),
        dtypes=FEW),
    moving("clone", S(T(2, 3)), S(T())),
]

PADS = [
    Op("F.pad", S(T(3, 4), (1, 2)), S(T(3, 4), (1, 0, 2, 1)), S(T(3, 4), (1, 1), value=2.5),
        S(T(3, 4), (-1, 2)), S(T(2, 3), [0, 0, -1, 1]), S(T(3, 4), (1, 1), "constant", 3),
        S(T(0, 3), (1, 1)), dtypes=ANY, errors=[E(T(3), (1,)), E(T(3), (1, 1, 1, 1)),
        E(T(3), (-2, -2)), E(T(3), (1, 1), mode="other")]),
    *(Op(f"F.pad.{mode}", S(T(2, 5), (1, 2), mode=mode), S(T(2, 3, 5), (2, 1), mode=mode),
        S(T(2, 3, 4, 5), (1, 2, 2, 1), mode=mode), S(T(2, 4, 5), (1, 0, 0, 2), mode),
        S(T(1, 2, 3, 4, 5), (1, 2, 0, 1, 1, 1), mode=mode), S(T(2, 5), (-1, 2), mode=mode),
        S(T(2, 5), (2, -2), mode=mode), S(T(2, 5), (-2, -1), mode=mode),
        S(T(2, 4, 5), (-2, 3, 1, -1), mode=mode), S(T(2, 3, 4, 5), (3, -1, 0, 2, -1, 1), mode),
        dtypes=("float64", "float32"),
        errors=[E(T(2, 3), (4, 4, 4, 4, 4), mode=mode)] + ([E(T(1, 2, 3), (4, 1), mode=mode)]
        if mode != "replicate" else []) + ([E(T(1, 2, 3), (-3, 0), mode=mode),
        E(T(1, 2, 3, 3), (-4, 0, 0, 0), mode=mode)] if mode != "circular" else []))
        for mode in ("reflect", "replicate", "circular")),
    Op("F.pad.of_nothing", *[Forward(T(1, 2, 3, 3), (-3, 0, 0, 0), mode=mode)
        for mode in ("reflect", "replicate")], dtypes=WIDE),
    Op("F.pixel_shuffle", S(T(2, 8, 3, 3), 2), S(T(4, 2, 3), 2), dtypes=WIDE,
        errors=[E(T(1, 3, 2, 2), 2)], accidents=("gradient",)),  # PyTorch refuses those
    Op("F.pixel_unshuffle", S(T(2, 2, 4, 6), 2), dtypes=WIDE, errors=[E(T(1, 3, 3, 2), 2)],
        accidents=("gradient",)),
    Op("F.channel_shuffle", S(T(2, 6, 2, 2), 3), dtypes=WIDE, accidents=("gradient",)),
]

INPLACE_VIEWS = [
    *(Op(f"Tensor.{name}_", S(T(1, 3, 2), *args), dtypes=FEW, layout=False,
        call=lambda torch, x, *args, name=name: getattr(x * 1, name + "_")(*args) * 2) for name,
        *args in (("squeeze",), ("unsqueeze", 1), ("transpose", 0, 2), ("swapaxes", 1, 2))),
    Op("Tensor.t_", S(T(3, 2)), call=lambda torch, x: (x * 1).t_() * 2, dtypes=FEW, layout=False),
    Op("Tensor.resize_", S(T(2, 3), (3, 2)), S(T(2, 3), (2, 2)), dtypes=FEW, grad=False,
        layout=False, call=lambda torch, x, shape: torch.clone(x).resize_(shape)),
]

SHAPES = [
    *(Op(f"Tensor.{name}", S(T(2, 3, 4)), S(T()), call=lambda torch, x, name=name: getattr(x,
        name)(), dtypes=WIDE, grad=False, layout=False) for name in ("size", "dim", "numel",
        "nelement", "ndimension", "element_size", "is_contiguous", "stride", "storage_offset",
        "is_floating_point", "tolist")),
    Op("Tensor.size.dim", S(T(2, 3), 0), S(T(2, 3), -1), call=lambda torch, x, d: x.size(d),
        dtypes=WIDE, grad=False, errors=[E(T(2, 3), 2)]),
    *(Op(f"Tensor.{name}", S(T(2, 3)), call=lambda torch, x, name=name: getattr(x, name),
        dtypes=WIDE, grad=False) for name in ("shape", "ndim", "is_leaf", "requires_grad",
        "itemsize", "nbytes")),
    Op("numel", S(T(2, 3)), grad=False),
    Op("broadcast_shapes", S((2, 1), (3,)), S(2, (3, 1)), grad=False, errors=[E((2,), (3,))],
        layout=False),
    Op("is_tensor", S(T(2)), S(3), grad=False),
    Op("Tensor.item", S(T()), S(T(1, 1)), call=lambda torch, x: x.item(), grad=False, layout=False,
        dtypes=("float64", "int64", "bool"), errors=[E(T(2)), E(T(0))]),
]

OPS = VIEWS + JOINS + REPEATS + PADS + INPLACE_VIEWS + SHAPES
