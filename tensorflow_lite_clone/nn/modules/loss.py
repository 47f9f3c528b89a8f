"""Losses as modules: they keep the options of the functions behind them."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor


class _Loss(Module):
    """A function of the inputs and of options that are attributes; tensors become buffers."""

    function: ClassVar[Any]
    options: ClassVar[dict[str, Any]] = {}
    weights: ClassVar[tuple[str, ...]] = ()  # options that are tensors, given first
    legacy: ClassVar[bool] = True  # takes size_average and reduce before reduction

    reduction: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        order = self.order()
        if len(args) > len(order):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes at most {len(order)} arguments but "
                f"{len(args)} were given"
            )
        values = dict(zip(order, args))
        for name, value in kwargs.items():
            if name not in order or name in values:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            values[name] = value
        for name in self.weights:
            self.register_buffer(name, values.get(name))
        for name, default in self.options.items():
            setattr(self, name, values.get(name, default))
        self.reduction = _reduction(
            values.get("size_average"), values.get("reduce"), values.get("reduction", "mean")
        )

    @classmethod
    def order(cls) -> tuple[str, ...]:
        """The constructor's arguments in torch's order."""
        old = ("size_average", "reduce") if cls.legacy else ()
        return (*cls.weights, *cls.options, *old, "reduction")

    def forward(self, *inputs: Tensor) -> Tensor:
        given = {name: getattr(self, name) for name in (*self.weights, *self.options)}
        return type(self).function(*inputs, **given, reduction=self.reduction)


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """What the deprecated arguments say, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _loss(
    name: str,
    function: Any,
    options: dict[str, Any] | None = None,
    weights: tuple[str, ...] = (),
    order: tuple[str, ...] | None = None,
    legacy: bool = True,
) -> Any:
    body: dict[str, Any] = {
        "function": staticmethod(function),
        "options": options or {},
        "weights": weights,
        "legacy": legacy,
        "__doc__": f"`functional.{function.__name__}` as a module.",
        "__module__": "tensorflow_lite_clone.nn.modules",
    }
    if order is not None:
        body["order"] = classmethod(lambda cls: order)
    return type(name, (_Loss,), body)


_OLD = ("size_average", "reduce")

L1Loss = _loss("L1Loss", F.l1_loss)
MSELoss = _loss("MSELoss", F.mse_loss)
HuberLoss = _loss(
    "HuberLoss", F.huber_loss, {"delta": 1.0}, order=("reduction", "delta"), legacy=False
)
SmoothL1Loss = _loss(
    "SmoothL1Loss", F.smooth_l1_loss, {"beta": 1.0}, order=(*_OLD, "reduction", "beta")
)
BCELoss = _loss("BCELoss", F.binary_cross_entropy, weights=("weight",))
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss",
    F.binary_cross_entropy_with_logits,
    weights=("weight", "pos_weight"),
    order=("weight", *_OLD, "reduction", "pos_weight"),
)
CrossEntropyLoss = _loss(
    "CrossEntropyLoss",
    F.cross_entropy,
    {"ignore_index": -100, "label_smoothing": 0.0},
    ("weight",),
    ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
)
NLLLoss = _loss(
    "NLLLoss",
    F.nll_loss,
    {"ignore_index": -100},
    ("weight",),
    ("weight", "size_average", "ignore_index", "reduce", "reduction"),
)
KLDivLoss = _loss(
    "KLDivLoss", F.kl_div, {"log_target": False}, order=(*_OLD, "reduction", "log_target")
)
PoissonNLLLoss = _loss(
    "PoissonNLLLoss",
    F.poisson_nll_loss,
    {"log_input": True, "full": False, "eps": 1e-8},
    order=("log_input", "full", "size_average", "eps", "reduce", "reduction"),
)
GaussianNLLLoss = _loss(
    "GaussianNLLLoss",
    F.gaussian_nll_loss,
    {"full": False, "eps": 1e-6},
    order=("full", "eps", "reduction"),
    legacy=False,
)
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss, {"margin": 1.0})
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, {"margin": 0.0})
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, {"margin": 0.0})
TripletMarginLoss = _loss(
    "TripletMarginLoss",
    F.triplet_margin_loss,
    {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False},
)
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss)
MultiLabelSoftMarginLoss = _loss(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, weights=("weight",)
)
MultiMarginLoss = _loss(
    "MultiMarginLoss",
    F.multi_margin_loss,
    {"p": 1, "margin": 1.0},
    ("weight",),
    ("p", "margin", "weight", *_OLD, "reduction"),
)
