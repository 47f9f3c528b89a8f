"""A model of a few small layers, written once for both libraries."""

from __future__ import annotations


def layers(lib):
    """Two small layers and a model over them, as classes of `lib`."""

    class Scale(lib.nn.Module):
        def __init__(self, size, bias=True):
            super().__init__()
            self.size = size
            self.weight = lib.nn.Parameter(lib.arange(float(size)))
            if bias:
                self.bias = lib.nn.Parameter(lib.ones(size))
            else:
                self.register_parameter("bias", None)

        def forward(self, x):
            y = x * self.weight
            return y if self.bias is None else y + self.bias

        def extra_repr(self):
            return f"size={self.size}"

    class Mean(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", lib.zeros(2))
            self.register_buffer("steps", lib.tensor(0), persistent=False)
            self.register_buffer("nothing", None)

        def forward(self, x):
            if self.training:
                self.steps = self.steps + 1
                self.mean = (self.mean + x.detach()) / 2
            return x - self.mean

    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Scale(2)
            self.norm = Mean()
            self.rest = lib.nn.Sequential(Scale(2, bias=False), lib.nn.Sequential(Scale(2)))
            self.tied = self.first
            self.gain = lib.nn.Parameter(lib.ones(1))
            self.absent = None

        def forward(self, x):
            return self.rest(self.norm(self.first(x))) * self.gain

    return Scale, Mean, Model


def scale(lib, *args):
    return layers(lib)[0](*args)


def mean(lib):
    return layers(lib)[1]()


def model(lib):
    return layers(lib)[2]()


def everything(m):
    return (
        dict(m.named_parameters()),
        dict(m.named_buffers()),
        dict(m.named_children()),
        m.state_dict(),
        repr(m),
    )
