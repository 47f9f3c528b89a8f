"""SwiGLU, x sigmoid(x) w: an op with its gradient for every device, and kernels for CUDA."""

from pathlib import Path

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.table import override
from tensorflow_lite_clone.kernels import Kernel

FILE = Path(__file__).with_name("swiglu.cu")
FORWARD = Kernel(FILE, "swiglu_forward", params=("T",))
BACKWARD = Kernel(FILE, "swiglu_backward", params=("T",))


class Swiglu(Op):
    def forward(F, x, w):
        return x * F.sigmoid(x) * w

    def backward(F, g, x, w):
        return F.swiglu_backward(g, x, w)


@composite
def swiglu_backward(F, g, x, w):
    s = F.sigmoid(x)
    return g * w * s * (1 + x * (1 - s)), g * x * s


def swiglu(x, w):
    """x sigmoid(x) w, for tensors of one dtype; they are broadcast."""
    return apply(Swiglu, x, w)


def launch(F, kernel, inputs, outputs):
    shape, dtype, size = inputs[0].shape, inputs[0].dtype, inputs[0].size
    for a in inputs:
        if a.shape != shape or a.dtype != dtype or not a.flags.c_contiguous or not size:
            return NotImplemented  # the formulas above run
    out = [F.empty_like(inputs[0]) for _ in range(outputs)]
    kernel[dtype](min(-(-size // 256), 65535), 256, *inputs, size, *out)
    return tuple(out) if outputs > 1 else out[0]


override("swiglu", "cupy")(lambda F, *inputs: launch(F, FORWARD, inputs, 1))
override("swiglu_backward", "cupy")(lambda F, *inputs: launch(F, BACKWARD, inputs, 2))
