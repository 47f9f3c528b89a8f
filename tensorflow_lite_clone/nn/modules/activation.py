"""Activations as modules."""

from __future__ import annotations

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.stateless import Stateless, required, stateless
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.ops.create import empty
from tensorflow_lite_clone.tensor import Tensor

_INPLACE = {"inplace": False}

ReLU = stateless("ReLU", F.relu, _INPLACE)
ReLU6 = stateless("ReLU6", F.relu6, _INPLACE)
Sigmoid = stateless("Sigmoid", F.sigmoid, {})
Tanh = stateless("Tanh", F.tanh, {})
GELU = stateless("GELU", F.gelu, {"approximate": "none"})
SiLU = stateless("SiLU", F.silu, _INPLACE)
Mish = stateless("Mish", F.mish, _INPLACE)
ELU = stateless("ELU", F.elu, {"alpha": 1.0, "inplace": False})
CELU = stateless("CELU", F.celu, {"alpha": 1.0, "inplace": False})
SELU = stateless("SELU", F.selu, _INPLACE)
GLU = stateless("GLU", F.glu, {"dim": -1})
LeakyReLU = stateless("LeakyReLU", F.leaky_relu, {"negative_slope": 0.01, "inplace": False})
Hardtanh = stateless("Hardtanh", F.hardtanh, {"min_val": -1.0, "max_val": 1.0, "inplace": False})
Hardsigmoid = stateless("Hardsigmoid", F.hardsigmoid, _INPLACE, shown=())
Hardswish = stateless("Hardswish", F.hardswish, _INPLACE, shown=())
LogSigmoid = stateless("LogSigmoid", F.logsigmoid, {})
Softplus = stateless("Softplus", F.softplus, {"beta": 1.0, "threshold": 20.0})
Softsign = stateless("Softsign", F.softsign, {})
Tanhshrink = stateless("Tanhshrink", F.tanhshrink, {})
Threshold = stateless(
    "Threshold", F.threshold, {"threshold": required, "value": required, "inplace": False}
)


class _OneNumber(Stateless):
    """Shows its one argument as a bare number."""

    def extra_repr(self) -> str:
        (name,) = self.arguments
        return str(getattr(self, name))


Hardshrink = stateless("Hardshrink", F.hardshrink, {"lambd": 0.5}, base=_OneNumber)
Softshrink = stateless("Softshrink", F.softshrink, {"lambd": 0.5}, base=_OneNumber)


class _OverDim(Stateless):
    """A softmax over `dim`; torch's legacy choice of a dimension when it is None."""

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.dim)


Softmax = stateless("Softmax", F.softmax, {"dim": None}, base=_OverDim)
LogSoftmax = stateless("LogSoftmax", F.log_softmax, {"dim": None}, shown=("dim",), base=_OverDim)
Softmin = stateless("Softmin", F.softmin, {"dim": None}, base=_OverDim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class PReLU(Module):
    """max(0, x) + w min(0, x) with a learned slope w, one or one per channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to its initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Leaky ReLU whose slope is drawn from [lower, upper] in training and their mean otherwise."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"lower={self.lower}, upper={self.upper}{inplace}"
