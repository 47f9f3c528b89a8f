"""Grad modes, leaves, `detach`, `requires_grad_`, `.data` and `.grad`."""

from __future__ import annotations

import inspect
import threading

from parameterized import parameterized

from tests.autograd.against_torch import attempt, same


def vector(lib, *values, dtype=None):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=True)


SWITCHES = [
    ("no_grad", lambda lib: lib.no_grad()),
    ("enable_grad", lambda lib: lib.enable_grad()),
    ("set_grad_enabled False", lambda lib: lib.set_grad_enabled(False)),
    ("set_grad_enabled True", lambda lib: lib.set_grad_enabled(True)),
    ("inference_mode", lambda lib: lib.inference_mode()),
    ("inference_mode False", lambda lib: lib.inference_mode(False)),
    ("autograd.no_grad", lambda lib: lib.autograd.no_grad()),
    ("grad_mode.no_grad", lambda lib: lib.autograd.grad_mode.no_grad()),
]


@parameterized.expand(SWITCHES)
def test_as_context_and_decorator(name, make):
    def script(lib):
        x = vector(lib)
        seen = []

        def note():
            seen.append((lib.is_grad_enabled(), lib.is_inference_mode_enabled()))
            seen.append((x * 2).requires_grad)

        with make(lib):
            note()
            with make(lib):
                note()
            note()
        note()
        with lib.no_grad():
            with make(lib):
                note()
            note()
        decorated = make(lib)(note)
        note()
        decorated()
        decorated()
        note()
        with lib.no_grad():
            decorated()
        return seen

    same(script)


@parameterized.expand(SWITCHES)
def test_on_generators(name, make):
    def script(lib):
        seen = []

        def numbers(count):
            """Numbers."""
            try:
                for i in range(count):
                    got = yield i, lib.is_grad_enabled()
                    seen.append((got, lib.is_grad_enabled()))
            except ValueError as error:
                seen.append((str(error), lib.is_grad_enabled()))
                yield "caught", lib.is_grad_enabled()
            finally:
                seen.append(("finally", lib.is_grad_enabled()))
            return "end"

        decorated = make(lib)(numbers)
        generator = decorated(3)
        seen.append((inspect.isgeneratorfunction(decorated), decorated.__doc__))
        seen.append(next(generator))
        seen.append(lib.is_grad_enabled())
        seen.append(generator.send("sent"))
        seen.append(generator.throw(ValueError("thrown")))
        seen.append(lib.is_grad_enabled())
        generator.close()
        seen.append(list(decorated(2)))

        def outer():
            result = yield from decorated(1)
            yield result

        seen.append(list(outer()))
        abandoned = decorated(3)
        next(abandoned)
        del abandoned
        seen.append(lib.is_grad_enabled())
        return seen

    same(script)


def test_without_parentheses():
    def script(lib):
        @lib.no_grad
        def f():
            return lib.is_grad_enabled()

        @lib.enable_grad
        def g():
            return lib.is_grad_enabled()

        @lib.inference_mode
        def h():
            return lib.is_grad_enabled(), lib.is_inference_mode_enabled()

        @lib.no_grad
        def generator():
            yield lib.is_grad_enabled()

        with lib.no_grad():
            nested = g()
        return f(), nested, h(), list(generator()), f.__name__

    same(script)


def test_on_methods_and_classes():
    def script(lib):
        class Model:
            @lib.no_grad()
            def method(self, y=1):
                return lib.is_grad_enabled(), y

            @classmethod
            @lib.no_grad()
            def of_class(cls):
                return lib.is_grad_enabled()

            @staticmethod
            @lib.no_grad()
            def of_none():
                return lib.is_grad_enabled()

            @property
            @lib.no_grad()
            def known(self):
                return lib.is_grad_enabled()

        model = Model()
        return model.method(y=3), Model.of_class(), model.of_none(), model.known

    same(script)


def test_on_a_class():
    def script(lib):
        class Thing:
            def __init__(self):
                self.mode = lib.is_grad_enabled()

            def later(self):
                return lib.is_grad_enabled()

        Decorated = lib.no_grad()(Thing)
        thing = Decorated()
        return thing.mode, thing.later()

    same(script, words=("Decorating classes is deprecated",))


def test_modes_end_with_errors():
    def script(lib):
        seen = []
        for make in (lib.no_grad, lib.inference_mode):
            try:
                with make():
                    raise ValueError
            except ValueError:
                seen.append((lib.is_grad_enabled(), lib.is_inference_mode_enabled()))

            @make()
            def fail():
                raise KeyError

            seen.append((attempt(fail), lib.is_grad_enabled()))
        return seen

    same(script)


def test_one_context_again():
    def script(lib):
        context = lib.no_grad()
        seen = []
        for _ in range(2):
            with context:
                seen.append(lib.is_grad_enabled())
            seen.append(lib.is_grad_enabled())
        return seen

    same(script)


def test_set_grad_enabled_as_a_function():
    def script(lib):
        seen = []
        lib.set_grad_enabled(False)
        seen.append(lib.is_grad_enabled())
        lib.set_grad_enabled(True)
        seen.append(lib.is_grad_enabled())
        switch = lib.set_grad_enabled(False)
        seen.append(lib.is_grad_enabled())
        with switch:
            seen.append(lib.is_grad_enabled())
        seen.append(lib.is_grad_enabled())
        return seen

    same(script)


def test_threads_have_modes_of_their_own():
    def script(lib):
        seen = []

        def work():
            seen.append(lib.is_grad_enabled())
            with lib.no_grad():
                seen.append(lib.is_grad_enabled())

        with lib.no_grad():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            seen.append(lib.is_grad_enabled())
        return seen

    same(script)


def test_lambdas_and_partials():
    def script(lib):
        import functools

        def f(a, b):
            return a, b, lib.is_grad_enabled()

        return lib.no_grad()(functools.partial(f, 1))(2), lib.no_grad()(lambda: f(3, 4))()

    same(script)


# -- inference mode --------------------------------------------------------------------------------


def test_inference_mode_records_nothing():
    def script(lib):
        x = vector(lib)
        with lib.inference_mode():
            y = x * 2
            z = y + 1
            inner = lib.ones(2, requires_grad=True)
            with lib.enable_grad():
                w = (x * 2).requires_grad
        return y, z.requires_grad, y.grad_fn, inner.requires_grad, w

    same(script)
