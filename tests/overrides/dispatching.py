"""Modes and tensors with ``__torch_dispatch__`` as programs write them, for either library."""

from __future__ import annotations

import importlib
from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import interception
from tensorflow_lite_clone.python_dispatch import calls


def module(lib: Any, name: str) -> Any:
    return importlib.import_module(f"{lib.__name__}.{name}")


def names(lib: Any) -> Any:
    """A mode that writes down the names of operations."""

    class Names(module(lib, "utils._python_dispatch").TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    return Names()


def flops(lib: Any) -> Any:
    """A mode that counts what products and convolutions cost, by a table of operations."""
    aten = lib.ops.aten

    def convolved(x, w, out, transposed=False):
        return 2 * prod(w) * x[0] * prod((x if transposed else out)[2:])

    def backward(args, out):
        g, x, w = [each.shape for each in args[:3]]
        transposed, (wants_x, wants_w, _) = args[7], args[10]
        total = convolved(g, w, x, not transposed) if wants_x else 0
        return total + (convolved(x, w, g, transposed) if wants_w else 0)

    table = {
        aten.mm.default: lambda args, out: 2 * prod(args[0].shape) * args[1].shape[1],
        aten.addmm.default: lambda args, out: 2 * prod(args[1].shape) * args[2].shape[1],
        aten.bmm.default: lambda args, out: 2 * prod(args[0].shape) * args[1].shape[2],
        aten.convolution.default: lambda args, out: convolved(
            args[0].shape, args[1].shape, out.shape, args[6]
        ),
        aten.convolution_backward.default: backward,
    }

    class Flops(module(lib, "utils._python_dispatch").TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.counts: dict[str, int] = {}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if func in table:
                name = func.overloadpacket.__name__
                self.counts[name] = self.counts.get(name, 0) + table[func](args, out)
            return out

    return Flops()


def two_tensor(lib: Any, log: list[str] | None = None) -> Any:
    """A tensor that is two tensors, for each of which everything is done."""
    tree, dispatch = module(lib, "utils._pytree"), module(lib, "utils._python_dispatch")

    class Two(lib.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return lib.Tensor._make_wrapper_subclass(
                cls, a.size(), strides=a.stride(), dtype=a.dtype, device=a.device,
                requires_grad=a.requires_grad,
            )  # fmt: skip

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __repr__(self):
            return f"Two({self.a}, {self.b})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if log is not None:
                log.append(str(func))

            def part(name):
                pick = lambda x: getattr(x, name) if isinstance(x, Two) else x
                result = func(*tree.tree_map(pick, args), **tree.tree_map(pick, kwargs or {}))
                return tree.tree_flatten(result)

            (first, spec), (second, _) = part("a"), part("b")
            pairs = [
                cls(x, y) if isinstance(x, lib.Tensor) else x
                for x, y in zip(first, second, strict=True)
            ]
            out = tree.tree_unflatten(pairs, spec)
            return dispatch.return_and_correct_aliasing(func, args, kwargs, out)

    return Two


def quantized(lib: Any) -> Any:
    """int8 weights with a scale per row, of which products take the floats."""
    tree, dispatch = module(lib, "utils._pytree"), module(lib, "utils._python_dispatch")
    aten = lib.ops.aten

    class Quantized(lib.Tensor):
        @staticmethod
        def __new__(cls, data, scale):
            return lib.Tensor._make_wrapper_subclass(
                cls, data.shape, strides=data.stride(), dtype=scale.dtype, device=data.device
            )

        def __init__(self, data, scale):
            self.data_int8, self.scale = data, scale

        @classmethod
        def of(cls, x):
            scale = x.abs().amax(dim=-1, keepdim=True) / 127
            return cls((x / scale).round().clamp(-128, 127).to(lib.int8), scale)

        def dequantize(self):
            return self.data_int8.to(self.dtype) * self.scale

        def set(self, x):
            other = x if isinstance(x, Quantized) else Quantized.of(x)
            self.data_int8.copy_(other.data_int8)
            self.scale.copy_(other.scale)
            return self

        def __tensor_flatten__(self):
            return ["data_int8", "scale"], None

        @classmethod
        def __tensor_unflatten__(cls, parts, context, size, stride):
            return cls(parts["data_int8"], parts["scale"])

        __torch_function__ = lib._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            kwargs = kwargs or {}
            if func in (aten.detach.default, aten.clone.default):
                out = cls(func(args[0].data_int8), func(args[0].scale))
                return dispatch.return_and_correct_aliasing(func, args, kwargs, out)
            if func is aten.copy_.default:
                return args[0].set(args[1])
            if func is aten.add_.Tensor:
                return args[0].set(args[0].dequantize().add(args[1], **kwargs))
            if func is aten.addcdiv_.default:
                return args[0].set(args[0].dequantize().addcdiv(*args[1:], **kwargs))
            plain = lambda x: x.dequantize() if isinstance(x, cls) else x
            return func(*tree.tree_map(plain, args), **tree.tree_map(plain, kwargs))

    return Quantized


def forget_classes() -> None:
    """Let what comes after be a program without classes that have `__torch_dispatch__`."""
    if interpreters.dispatch.lowers:
        type(mode).dispatching = 0
        interpreters.dispatch.lowers = False
        interception.around_intercepted.clear()
        interception.release()
        calls.unwatch()
