"""autograd.forward_ad against PyTorch's."""

from __future__ import annotations

import importlib

from parameterized import parameterized

from tests.autograd.against_torch import Failure, same


def forward_ad(lib):
    return importlib.import_module(f"{lib.__name__}.autograd.forward_ad")


def vector(lib, grad=False):
    return lib.tensor([0.3, 0.7, 1.2], dtype=lib.float64, requires_grad=grad)


PROGRAMS = [
    ("product", lambda lib, f, d, x: f.unpack_dual(d.sin() * d)),
    ("itself", lambda lib, f, d, x: f.unpack_dual(d)),
    ("no dual", lambda lib, f, d, x: f.unpack_dual(x * 2)),
    ("sum", lambda lib, f, d, x: f.unpack_dual(d.sum())),
    ("part", lambda lib, f, d, x: f.unpack_dual(lib.cat([d, x]))),
    ("two", lambda lib, f, d, x: f.unpack_dual(f.make_dual(x * 2, x) * d)),
    ("detached", lambda lib, f, d, x: f.unpack_dual(d.detach() * 2)),
    ("copied", lambda lib, f, d, x: f.unpack_dual(x.clone().copy_(d * 3))),
    ("written", lambda lib, f, d, x: f.unpack_dual(x.clone().mul_(d))),
    ("itself written", lambda lib, f, d, x: f.unpack_dual(d.mul_(2))),
    ("linear", lambda lib, f, d, x: f.unpack_dual(lib.nn.functional.linear(d, x.outer(x)))),
    ("loss", lambda lib, f, d, x: f.unpack_dual(
        lib.nn.functional.cross_entropy(d, lib.tensor(1)))),
    ("vmap", lambda lib, f, d, x: f.unpack_dual(lib.func.vmap(lambda a: a * d)(x))),
    ("name", lambda lib, f, d, x: type(f.unpack_dual(d)).__name__),
]  # fmt: skip


@parameterized.expand(PROGRAMS)
def test_program(name, program):
    def script(lib):
        f, x = forward_ad(lib), vector(lib)
        with f.dual_level() as level:
            dual = f.make_dual(x.clone(), x * x, level=level)
            return level, program(lib, f, dual, x)

    same(script, warned=False)


def test_gradient_of_a_tangent():
    def script(lib):
        f, x = forward_ad(lib), vector(lib, True)
        with f.dual_level():
            primal, tangent = f.unpack_dual(f.make_dual(x, vector(lib)) ** 3)
        return primal, tangent, lib.autograd.grad(tangent.sum(), x)

    same(script, warned=False)


def test_outside_of_a_level():
    same(lambda lib: forward_ad(lib).unpack_dual(vector(lib)))


def in_level(f, program):
    with f.dual_level():
        return program()


ERRORS = [
    ("no level", lambda f, x: f.make_dual(x, x)),
    ("exit", lambda f, x: f.exit_dual_level()),
    ("nested", lambda f, x: in_level(f, f.enter_dual_level)),
    ("shape", lambda f, x: in_level(f, lambda: f.make_dual(x, x[:2]))),
    ("primal dtype", lambda f, x: in_level(f, lambda: f.make_dual(x.long(), x))),
    ("tangent dtype", lambda f, x: in_level(f, lambda: f.make_dual(x, x.long()))),
    ("again", lambda f, x: in_level(f, lambda: f.make_dual(f.make_dual(x, x), x))),
]


@parameterized.expand(ERRORS)
def test_error(name, program):
    result = same(lambda lib: program(forward_ad(lib), vector(lib)))
    assert isinstance(result, Failure)
