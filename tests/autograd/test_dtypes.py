"""Gradients across dtypes: casts, half precision, complex numbers."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import attempt, same


def vector(lib, *values, dtype=None, grad=True):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=grad)


# -- dtypes ----------------------------------------------------------------------------------------


def test_casts():
    def script(lib):
        x = vector(lib, dtype=lib.float64)
        y = x.float() * x.half().double()
        y.sum().backward()
        z = vector(lib)
        (z.double() + vector(lib, dtype=lib.float64)).sum().backward()
        return x.grad, z.grad

    same(script)


@parameterized.expand([("float16",), ("bfloat16",)])
def test_half_precision(name):
    def script(lib):
        x = vector(lib, 0.5, 1.5, -2.0, dtype=getattr(lib, name))
        w = lib.tensor(2.0, requires_grad=True)
        y = (x * x).sum() + (x * w).sum() + x.exp().mean()
        y.backward()
        return y, x.grad, w.grad

    same(script, rtol=1e-2)


def test_mixed_dtypes():
    def script(lib):
        x = vector(lib, dtype=lib.float32)
        y = vector(lib, dtype=lib.float64)
        z = lib.tensor([1 + 1j, 2, 3j], requires_grad=True)
        n = lib.tensor([1, 2, 3])
        (x * y * n).sum().backward()
        (x * z).abs().sum().backward()
        return x.grad, y.grad, z.grad

    same(script)


def test_gradient_of_another_dtype():
    def script(lib):
        x = vector(lib)
        y = x * 2
        y.backward(lib.ones(3, dtype=lib.float64))
        return x.grad

    same(script)


# -- complex numbers -------------------------------------------------------------------------------


@parameterized.expand(
    [
        ("modulus", lambda lib, z: z.abs().sum()),
        ("squared modulus", lambda lib, z: (z * z.conj()).real.sum()),
        ("holomorphic", lambda lib, z: (z * z).real.sum()),
        ("imaginary part", lambda lib, z: (z**3).imag.sum()),
        ("exponential", lambda lib, z: z.exp().abs().sum()),
        ("angle", lambda lib, z: z.angle().sum()),
        ("quotient", lambda lib, z: (z / (1 + z * 2j)).real.sum()),
        ("real times complex", lambda lib, z: (z.real * z).abs().sum()),
        ("view as real", lambda lib, z: (lib.view_as_real(z) ** 2).sum()),
        ("dot", lambda lib, z: (z @ z.conj()).real),
        ("sqrt", lambda lib, z: z.sqrt().real.sum()),
        ("log", lambda lib, z: z.log().imag.sum()),
        ("sgn", lambda lib, z: z.sgn().real.sum()),
        ("in place", lambda lib, z: (z * 1).mul_(1j).add_(z).abs().sum()),
    ]
)
def test_wirtinger(name, f):
    def script(lib):
        z = lib.tensor([1 + 2j, -0.5 + 0.3j, 2 - 1j], dtype=lib.complex128, requires_grad=True)
        (g,) = lib.autograd.grad(f(lib, z), z, create_graph=True)
        (h,) = lib.autograd.grad((g * (2 + 1j)).real.sum(), z, allow_unused=True)
        return g, h

    same(script, atol=1e-12)


def test_real_inputs_of_complex_functions():
    def script(lib):
        x = vector(lib, dtype=lib.float64)
        y = (lib.complex(x, x * x) * (1 + 2j)).abs().sum()
        w = vector(lib, dtype=lib.float64)
        z = (w * (1 + 2j)) ** 2
        z.backward(lib.tensor([1j, 1, 2 - 1j], dtype=lib.complex128))
        return lib.autograd.grad(y, x), w.grad

    same(script)


def test_complex_gradients_of_complex_outputs():
    def script(lib):
        z = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        y = z * (2 + 3j)
        y.backward(lib.tensor([1 + 0j, 1j]))
        x = vector(lib)
        return z.grad, attempt(lambda: (x * 1).backward(lib.tensor([1j, 1j, 1j])))

    same(script)
