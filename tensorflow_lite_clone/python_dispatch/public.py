"""Functions of ``torch.nn.functional`` that have other arguments, or another name, in aten.

One table says which operation a function is and where its arguments come from. It is read both
ways: operations run by the public functions, and a program that is exported shows its calls of
these as the operations. A function that has aten's name and arguments needs no row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.forwarding import inner_parameters
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.python_dispatch import schemas

#: How losses are reduced, by aten's numbers.
REDUCTIONS = ("none", "mean", "sum")


class Row(NamedTuple):
    """A public function and its operation.

    `names` are aten's names of arguments with the public ones, where these differ, `fixed` are
    those that no public function has, with what exported programs show. `public_only` are arguments
    of the public function that the operation is a case of. `runs` says that the function runs the
    operation; that of an activation is run as it is.
    """

    function: str
    operation: str
    names: dict[str, str] = {}  # noqa: RUF012  never written
    fixed: dict[str, Any] = {}  # noqa: RUF012
    public_only: dict[str, Any] = {}  # noqa: RUF012
    runs: bool = True

    def from_public(self, *args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        """The operation that a call of the public function is, and its arguments by name."""
        positional, _, defaults, named, _ = inner_parameters(EXPORTS["functional"][self.function])
        given: dict[str, Any] = dict(zip(reversed(positional), reversed(defaults)))
        given.update(named, **dict(zip(positional, args)), **kwargs)
        if given.get("size_average") is not None or given.get("reduce") is not None:
            given["reduction"] = _older_reduction(given["size_average"], given["reduce"])
        found = dict(self.fixed)
        for name in _arguments(self.operation):
            own = self._own(name, positional)
            if own in given and name not in found:
                found[name] = _CONVERSIONS.get(name, _SAME)[0](given[own])
        operation = self.operation + "_with_indices" * bool(given.get("return_indices"))
        return operation + "_" * bool(given.get("inplace")), found

    def to_public(self, *args: Any, **kwargs: Any) -> Any:
        """What the operation gives, by the public function."""
        function = EXPORTS["functional"][self.function]
        parameters = inner_parameters(function).positional
        given = {**dict(zip(_arguments(self.operation), args)), **kwargs}
        found = {
            self._own(name, parameters): _CONVERSIONS.get(name, _SAME)[1](value)
            for name, value in given.items()
            if name not in self.fixed
        }
        return function(**found, **self.public_only)

    def _own(self, name: str, parameters: tuple[str, ...]) -> str:
        """The public name of an argument of aten's; what it is about stands first in both."""
        return self.names.get(name, parameters[0] if name == "self" else name)


@cache
def _arguments(operation: str) -> tuple[str, ...]:
    return tuple([each.name for each in schemas.overloads(operation)[0][1]])


def _older_reduction(size_average: bool | None, reduce: bool | None) -> str:
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def _choice(*words: str) -> tuple[Callable[[str], int], Callable[[int], str]]:
    return words.index, words.__getitem__


_SAME: Any = (lambda value: value, lambda value: value)
#: Argument of aten's -> its value from the public one, and back.
_CONVERSIONS: dict[str, Any] = {
    "reduction": _choice(*REDUCTIONS),
    "interpolation_mode": _choice("bilinear", "nearest", "bicubic"),
    "padding_mode": _choice("zeros", "border", "reflection"),
    "align_corners": (bool, bool),
    "stride": (lambda value: [] if value is None else value, lambda value: value or None),
}
_NO_CUDNN = {"cudnn_enabled": False}

#: Functions whose operations have twins in place.
DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout")
_ROWS = [
    *[
        Row(name, name, runs=False)
        for name in "relu relu6 silu mish hardswish hardsigmoid selu elu celu leaky_relu hardtanh "
        "threshold".split()
    ],
    *[
        Row(f"dropout{dims}d", "feature_dropout", {"train": "training"}, runs=False)
        for dims in (1, 2, 3)
    ],
    Row("layer_norm", "layer_norm", fixed={"cudnn_enable": False}),
    *[Row(name, name, fixed=_NO_CUDNN) for name in ("group_norm", "batch_norm", "instance_norm")],
    *[Row(name, name, {"train": "training"}) for name in DROPOUTS],
    *[Row(name, name) for dims in (1, 2, 3) for name in (f"avg_pool{dims}d", f"max_pool{dims}d")],
    Row("cross_entropy", "cross_entropy_loss"),
    Row("nll_loss", "nll_loss_nd"),
    *[
        Row(name, name)
        for name in "binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss "
        "smooth_l1_loss huber_loss kl_div".split()
    ],
    Row("unfold", "im2col"),
    Row("fold", "col2im"),
    Row("grid_sample", "grid_sampler", {"interpolation_mode": "mode"}),
    Row("affine_grid", "affine_grid_generator"),
    Row("logsigmoid", "log_sigmoid"),
]
BY_FUNCTION = {row.function: row for row in _ROWS}
#: Operation -> the row of the function that runs it.
BY_OPERATION = {row.operation: row for row in _ROWS if row.runs} | {
    f"{kind}{dims}d{more}": Row(
        f"{kind}{dims}d", f"{kind}{dims}d{more}", public_only={"return_indices": True}
    )
    for kind, more in (("adaptive_max_pool", ""), ("max_pool", "_with_indices"))
    for dims in (1, 2, 3)
}
#: Mode of `interpolate` and number of dimensions of pixels -> the operation, whose overload is vec.
RESAMPLE = {
    **{("nearest", dims): f"upsample_nearest{dims}d" for dims in (1, 2, 3)},
    **{("nearest-exact", dims): f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)},
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("bicubic", 2): "upsample_bicubic2d",
    ("trilinear", 3): "upsample_trilinear3d",
}
