"""Programs with ``__torch_function__`` under both libraries: what they see, and what comes out."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.overrides.kinds import described, kept, tagged

LIBRARIES = (tlc, torch)


def name_of(value: Any) -> str:
    return type(value).__name__


class Diagonal:
    """A diagonal matrix, no tensor, for which some functions have forms of their own."""

    handled: dict[Any, Any]
    tensor: Any

    def __init__(self, size: int, value: float) -> None:
        self.size, self.value = size, value

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        known = all(issubclass(kind, (cls, cls.tensor)) for kind in types)
        if func not in cls.handled or not known:
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


def diagonal(lib: Any) -> Any:
    class Own(Diagonal):
        handled: dict[Any, Any] = {}  # noqa: RUF012
        tensor = lib.Tensor

    def dense(value: Any) -> Any:
        return value.value * lib.eye(value.size) if isinstance(value, Own) else value

    Own.handled[lib.mean] = lambda x: x.value / x.size
    Own.handled[lib.add] = lambda x, y: (dense(x) + dense(y)).tolist()
    Own.handled[lib.stack] = lambda values, dim=0: len(values)
    Own.handled[lib.nn.functional.relu] = lambda x, inplace=False: Own(x.size, max(x.value, 0))
    return Own


def duck_types(lib: Any) -> Any:
    own = diagonal(lib)
    x = own(2, -3.0)
    relu = lib.nn.functional.relu(x).value
    results = [lib.mean(x), lib.add(x, lib.ones(2, 2)), lib.add(x, x), lib.stack([x, x]), relu]
    for call in (lambda: lib.mul(x, 2), lambda: lib.ones(1) * x, lambda: lib.cat([x, x])):
        with pytest.raises(TypeError) as error:
            call()
        results.append(str(error.value).partition("\n")[0].replace("Own", "Diagonal"))
    return [str(result).partition("<class")[0] for result in results]


def what_is_seen(lib: Any) -> Any:
    seen: list[Any] = []

    class Logging(lib.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if func is not lib.Tensor.dim:  # of which PyTorch asks before it iterates
                name = func.__name__.removeprefix("special_").removeprefix("fft_")
                name = {"__rdiv__": "__rtruediv__"}.get(name, name)  # two names of one method
                seen.append((name, [kind.__name__ for kind in types], len(args)))
            return super().__torch_function__(func, types, args, kwargs)

    x = lib.arange(4.0).as_subclass(Logging)
    y = lib.ones(4)
    _ = x + 1, 1 + x, 1 - x, x - y, y - x, x * 2, x / y, 1 / x, x // 2, x % 2, x**2, 2**x, -x
    _ = x @ y, x < 1, x == y, abs(x), (x > 1) & (y > 1), x[0], x[y > 1], len(x), bool(x[0] > 1)
    x[0] = 3
    x += 1
    _ = lib.sum(x, dim=0), x.sum(0, keepdim=True), lib.stack([x, y], dim=0), x.view(2, 2).T
    _ = x.shape, x.grad, x.requires_grad, x.dtype, x.device, x.is_leaf, x.ndim, x.data
    x.requires_grad = True
    _ = lib.nn.functional.softmax(x, dim=0), lib.linalg.norm(x), lib.fft.fft(x), repr(x)
    _ = (
        lib.special.erf(x),
        float(x.detach().sum()),
        x.detach().numpy(),
        x.tolist(),
        x.to(lib.float64),
    )
    list(x)
    x.sum().backward()
    return seen


def mixed_classes(lib: Any) -> Any:
    kind, other = kept(lib), kept(lib)

    class Narrow(kind):
        pass

    x = lib.ones(2)
    first, narrow, foreign = (x.as_subclass(each) for each in (kind, Narrow, other))
    results = [
        name_of(value)
        for value in (
            *(first + narrow, narrow + first, first + x, x + narrow),
            *(lib.stack([x, first, narrow]), lib.where(x > 0, first, x)),
        )
    ]
    refusals = (
        lambda: first + foreign,
        lambda: lib.add(first, foreign),
        lambda: lib.nn.functional.mse_loss(first, foreign),
    )
    for call in refusals:
        with pytest.raises(TypeError) as error:
            call()
        results.append(str(error.value).partition("<class")[0])
    return results


def in_place_and_out(lib: Any) -> Any:
    kind = kept(lib)
    x, y = lib.ones(2), lib.ones(2).as_subclass(kind)
    plain = x
    plain += y
    own = y
    own += x
    own[0] = x[1]
    out = lib.empty(2)
    written = lib.add(y, x, out=out)
    return [
        *(name_of(value) for value in (plain, own, written, x.add_(y), y.mul_(2))),
        own is y,
        out.tolist(),
    ]


def attributes(lib: Any) -> Any:
    kind = tagged(lib)
    kind.__qualname__ = f"Tagged_{lib.__name__}"
    kind.__module__ = __name__
    globals()[kind.__qualname__] = kind  # where pickling finds it
    x = kind([1.0, 2.0], tag="b")
    file = io.BytesIO()
    lib.save(x, file)
    file.seek(0)
    loaded = lib.load(file, weights_only=False)
    copies = copy.copy(x), pickle.loads(pickle.dumps(x)), loaded
    return described([*copies, x.clone(), x[0], x + 1]), loaded.tolist()


def gradients(lib: Any) -> Any:
    kind = kept(lib)
    leaf = lib.tensor([1.0, 2.0], requires_grad=True)
    branch = leaf.as_subclass(kind)
    (branch * 3).sum().backward()
    own = lib.tensor([1.0, 2.0]).as_subclass(kind).requires_grad_()
    (own**2).sum().backward()
    (g,) = lib.autograd.grad((own**3).sum(), own, create_graph=True)
    with lib.no_grad():
        quiet = own * 2
    return (
        [name_of(value) for value in (leaf.grad, own.grad, g, quiet)],
        [branch.is_leaf, own.is_leaf, g.requires_grad, quiet.requires_grad],
        [leaf.grad.tolist(), own.grad.tolist()],
    )


def parameters(lib: Any) -> Any:
    nn, kind = lib.nn, kept(lib)

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(lib.ones(2).as_subclass(kind))
            self.linear = nn.Linear(2, 1, bias=False)

        def forward(self, x: Any) -> Any:
            return self.linear(x * self.weight)

    lib.manual_seed(0)
    module = Scale()
    optimizer = lib.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = module(lib.ones(3, 2)).square().sum()
        loss.backward()
        optimizer.step()
    double = Scale().double()
    weight = module.weight
    return (
        [name_of(value) for value in (weight, loss, weight.grad, double.weight)],
        [isinstance(weight, nn.Parameter), isinstance(lib.ones(1).as_subclass(kind), nn.Parameter)],
        [name for name, _ in module.named_parameters()],
        [round(value, 4) for value in weight.detach().tolist()],
        repr(nn.Parameter(lib.ones(2).as_subclass(kind))),
        {name: name_of(value) for name, value in module.state_dict().items()},
    )


def disabled(lib: Any) -> Any:
    x = lib.ones(1).as_subclass(kept(lib))
    with lib._C.DisableTorchFunctionSubclass():
        inside = name_of(x + 1), lib.overrides.has_torch_function((x,))
        with lib._C.DisableTorchFunction():
            nested = name_of(x + 1)
    return inside, nested, name_of(x + 1), lib.overrides.has_torch_function((x,))


def collated(lib: Any) -> Any:
    kind = kept(lib)
    rows = [(lib.ones(2).as_subclass(kind) * i, i) for i in range(4)]
    loader = lib.utils.data.DataLoader(rows, batch_size=2)
    return [(name_of(x), x.tolist(), y.tolist()) for x, y in loader]


def autocast(lib: Any) -> Any:
    x = lib.ones(2, 2).as_subclass(kept(lib))
    with lib.autocast("cpu", dtype=lib.bfloat16):
        product = x @ x
        return name_of(product), str(product.dtype), name_of(lib.nn.functional.linear(x, x))


def in_modules(lib: Any) -> Any:
    nn = lib.nn
    x = lib.ones(1, 2, 4, 4).as_subclass(kept(lib))
    modules = (
        *(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.LSTM(4, 2), nn.LayerNorm(4), nn.GELU(), nn.Dropout(), nn.Linear(4, 2)),
    )
    return [described(module(x[0] if isinstance(module, nn.LSTM) else x)) for module in modules]


def constructed(lib: Any) -> Any:
    kind = kept(lib)
    x = lib.ones(2)
    made = lib.Tensor._make_subclass(kind, x, True)
    return [
        [name_of(value) for value in (kind([1, 2]), kind(2, 3), kind(x), made, made.data)],
        [made.requires_grad, made.is_leaf],
        [name_of(lib.tensor([1.0]).as_subclass(kind).as_subclass(lib.Tensor))],
        [repr(x.as_subclass(kind)), f"{x.as_subclass(kind).sum():}"],
    ]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_copies_have_what_is_in_slots(lib: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"__slots__": ("label", "unset"), "__module__": __name__}
    kind = type(lib.Tensor)("Slotted", (lib.Tensor,), body)
    monkeypatch.setitem(globals(), "Slotted", kind)  # where pickle finds it
    x = lib.ones(2).as_subclass(kind)
    x.label, x.other = [1], 2
    file = io.BytesIO()
    lib.save(x, file)
    file.seek(0)
    twins = [copy.copy(x), pickle.loads(pickle.dumps(x)), lib.load(file, weights_only=False)]
    if lib is tlc:  # PyTorch wants a `new_empty` of the class
        twins.append(copy.deepcopy(x))
    for twin in twins:
        assert type(twin) is kind and twin.label == [1] and not hasattr(twin, "unset")
        assert vars(twin) == {"other": 2}


PROGRAMS = {
    function.__name__: function
    for function in (
        *(duck_types, what_is_seen, mixed_classes, in_place_and_out, attributes, gradients),
        *(parameters, disabled, collated, autocast, in_modules, constructed),
    )
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    ours, theirs = (PROGRAMS[name](lib) for lib in LIBRARIES)
    assert ours == theirs


def test_a_parameter_that_overrides_is_asked_once():
    """Its parent's ``__torch_function__`` runs the function without asking it again."""

    def found(torch: Any) -> list[Any]:
        class Packed(torch.nn.Parameter):  # type: ignore[misc, name-defined]
            asked = 0

            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None
            ) -> Any:
                cls.asked += 1
                return super().__torch_function__(func, types, args, kwargs or {})

        packed = Packed(torch.ones(2))
        Packed.asked = 0
        packed.data = torch.zeros(3)
        return [Packed.asked, name_of(packed + 1), Packed.asked, packed.tolist()]

    assert found(tlc) == found(torch)
