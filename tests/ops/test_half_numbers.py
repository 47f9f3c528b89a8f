"""Half floats and numbers: what is calculated in float32, and where it is rounded, as in PyTorch.

The tensors have a multiple of 64 elements: PyTorch rounds the last ones of others more often, which
its vectors do not hold.
"""

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

HALVES = ["bfloat16", "float16"]
NUMBERS = [0.1, 1 / 3, 3.0, 1e-3, -0.7]


def _scalar(t, c):
    return t.tensor(c, dtype=t.float32)


def _written(change):
    def form(t, x, y, z, c):
        x = x.clone()
        change(t, x, y, c)
        return x

    return form


def _gradient(function):
    def form(t, x, y, z, c):
        x = x.clone().requires_grad_()
        function(t, x, y, z, c).backward(y)
        return x.grad

    return form


def _compiled(t, x, y, z, c):
    step = t.compile(lambda x: (x * c + y) / 3.3) if t is tlc else lambda x: (x * c + y) / 3.3
    for _ in range(3):
        result = step(x)
    return result


FORMS = {
    "x * c": lambda t, x, y, z, c: x * c,
    "c * x": lambda t, x, y, z, c: c * x,
    "x / c": lambda t, x, y, z, c: x / c,
    "c / x": lambda t, x, y, z, c: c / x,
    "x // c": lambda t, x, y, z, c: x // c,
    "x % c": lambda t, x, y, z, c: x % c,
    "x + c": lambda t, x, y, z, c: x + c,
    "c - x": lambda t, x, y, z, c: c - x,
    "x < c": lambda t, x, y, z, c: x < c,
    "x *= c": _written(lambda t, x, y, c: x.mul_(c)),
    "x /= c": _written(lambda t, x, y, c: x.div_(c)),
    "x //= c": _written(lambda t, x, y, c: x.floor_divide_(c)),
    "mul, 0-dim": lambda t, x, y, z, c: t.mul(x, _scalar(t, c)),
    "mul, 0-dim first": lambda t, x, y, z, c: t.mul(_scalar(t, c), x),
    "mul_, 0-dim": _written(lambda t, x, y, c: x.mul_(_scalar(t, c))),
    "mul, out": lambda t, x, y, z, c: t.mul(x, c, out=t.empty_like(x)),
    "mul of 0-dim": lambda t, x, y, z, c: x[7] * c,
    "mul, one column": lambda t, x, y, z, c: x.reshape(64, 3).T * c,
    "div, 0-dim": lambda t, x, y, z, c: t.div(x, _scalar(t, c)),
    "div, trunc": lambda t, x, y, z, c: t.div(x, c, rounding_mode="trunc"),
    "div_, floor": _written(lambda t, x, y, c: x.div_(c, rounding_mode="floor")),
    "add, alpha": lambda t, x, y, z, c: t.add(x, y, alpha=c),
    "add, alpha, 0-dim": lambda t, x, y, z, c: t.add(x, _scalar(t, 0.3), alpha=c),
    "add, alpha, number": lambda t, x, y, z, c: t.add(x, 0.3, alpha=c),
    "sub, alpha, out": lambda t, x, y, z, c: t.sub(x, y, alpha=c, out=t.empty_like(x)),
    "sub_, alpha": _written(lambda t, x, y, c: x.sub_(y, alpha=c)),
    "rsub, alpha": lambda t, x, y, z, c: t.rsub(x, y, alpha=c),
    "addcmul": lambda t, x, y, z, c: t.addcmul(x, y, z, value=c),
    "addcdiv": lambda t, x, y, z, c: t.addcdiv(x, y, z, value=c),
    "clamp": lambda t, x, y, z, c: x.clamp(-abs(c), abs(c)),
    "hardshrink": lambda t, x, y, z, c: t.nn.functional.hardshrink(x, c),
    "leaky_relu": lambda t, x, y, z, c: t.nn.functional.leaky_relu(x, c),
    "_foreach_mul": lambda t, x, y, z, c: t._foreach_mul([x, y], c)[0],
    "_foreach_add": lambda t, x, y, z, c: t._foreach_add([x], [y], alpha=c)[0],
    "compiled": _compiled,
    "vmap": lambda t, x, y, z, c: t.func.vmap(lambda row: row * c)(x.reshape(3, 64)),
    "gradient of x * c": _gradient(lambda t, x, y, z, c: x * c),
    "gradient of c * x, 0-dim": _gradient(lambda t, x, y, z, c: _scalar(t, c) * x),
    "gradient of x / c": _gradient(lambda t, x, y, z, c: x / c),
    "gradient of c / x": _gradient(lambda t, x, y, z, c: c / x),
    "gradient of mul_": _gradient(lambda t, x, y, z, c: (x * 1).mul_(c)),
    "gradient of lerp": _gradient(lambda t, x, y, z, c: x.lerp(z, c)),
    "gradient of addcmul": _gradient(lambda t, x, y, z, c: z.addcmul(x, y, value=c)),
    "gradient of addcdiv, above": _gradient(lambda t, x, y, z, c: z.addcdiv(x, y, value=c)),
    "gradient of addcdiv, below": _gradient(lambda t, x, y, z, c: z.addcdiv(y, x, value=c)),
    "gradient of leaky_relu": _gradient(lambda t, x, y, z, c: t.nn.functional.leaky_relu(x, c)),
}
#: Forms with functions that NumPy and PyTorch round otherwise in the last bit of float32.
NEARLY = {
    "x ** c": lambda t, x, y, z, c: x.abs() ** c,
    "x **= c": _written(lambda t, x, y, c: x.abs_().pow_(c)),
    "xlogy": lambda t, x, y, z, c: t.xlogy(x, abs(c)),
    "elu": lambda t, x, y, z, c: t.nn.functional.elu(x, c),
    "gradient of x ** c": _gradient(lambda t, x, y, z, c: x.abs() ** c),
    "gradient of elu": _gradient(lambda t, x, y, z, c: t.nn.functional.elu(x, abs(c))),
    "gradient of softplus": _gradient(lambda t, x, y, z, c: t.nn.functional.softplus(x, abs(c))),
    "gradient of silu": _gradient(lambda t, x, y, z, c: t.nn.functional.silu(x)),
    "gradient of tanh": _gradient(lambda t, x, y, z, c: x.tanh()),
    "gradient of softmax": _gradient(lambda t, x, y, z, c: x.softmax(0)),
}


def _found(form, dtype):
    """What a form gives for all numbers, by both libraries."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 192)) * 2
    z = rng.uniform(0.1, 1, 192)
    found = []
    for library in (torch, tlc):
        tensors = [library.tensor(array).to(getattr(library, dtype)) for array in (x, y, z)]
        results = [form(library, *tensors, c) for c in NUMBERS]
        found.append((str(results[0].dtype), np.stack([r.detach().double() for r in results])))
    return found


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_results_are_the_same_bits(form, dtype):
    (kind, expected), (own_kind, result) = _found(form, dtype)
    assert kind == own_kind
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("form", NEARLY.values(), ids=NEARLY)
def test_nearly_all_results_are_the_same_bits(form, dtype):
    (kind, expected), (own_kind, result) = _found(form, dtype)
    assert kind == own_kind
    assert (result != expected).mean() < 0.01


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "weight_decay": 0.01}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.01}),
        ("AdamW", {"lr": 0.1, "amsgrad": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
        ("RMSprop", {"lr": 0.1}),
        ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.3, "weight_decay": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ],
)
def test_parameters_after_steps(name, options, dtype):
    rng = np.random.default_rng(0)
    weight, *grads = rng.normal(size=(4, 192))
    found = []
    for library in (torch, tlc):
        half = getattr(library, dtype)
        param = library.tensor(weight).to(half).requires_grad_()
        optimizer = getattr(library.optim, name)([param], **options)
        for grad in grads:
            param.grad = library.tensor(grad).to(half)
            optimizer.step()
        found.append(param.detach().double().numpy())
    np.testing.assert_array_equal(found[1], found[0])


def test_the_graph_and_modes_have_one_operation():
    seen = []

    class Mode(tlc.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), *args[1:]))
            return func(*args, **(kwargs or {}))

    x = tlc.ones(3, dtype=tlc.bfloat16)
    with Mode():
        x = x * 0.1
        x.mul_(0.1)
    assert seen == [("aten.mul.Tensor", 0.1), ("aten.mul_.Tensor", 0.1)]
    assert (x.requires_grad_() * 0.1).grad_fn.name() == "MulBackward0"


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: x**70000.0,
        lambda t, x: t.clamp(x, max=65519.9),
        lambda t, x: t.add(x, x, alpha=70000.0),
        lambda t, x: t.nn.functional.hardtanh(x, 0, 70000.0),
    ],
)
def test_parameters_that_float16_does_not_hold(call):
    messages = []
    for library in (torch, tlc):
        with pytest.raises(RuntimeError) as caught:
            call(library, library.ones(3, dtype=library.float16))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
