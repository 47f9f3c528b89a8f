"""rearrange, functionalize and debug_unwrap against PyTorch's."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import Failure, raises, same


def cube(lib):
    return lib.arange(24.0).reshape(2, 3, 4)


PATTERNS = [
    ("a b c -> c (a b)", {}),
    ("a b c -> a b c 1", {}),
    ("a b (c d) -> a c (b d)", {"c": 2}),
    ("a ... -> ... a", {}),
    ("a b 1 -> a b", {}),
    ("... (c d) -> c d ...", {"d": 2}),
    ("a (b) c -> a () b c", {}),
    ("a b c -> (a b c)", {"a": 2}),
    ("a ... c -> a (...) c", {}),
    ("a ... -> (a ...)", {}),
    ("(a b) ... -> b ... a", {"a": 1}),
    ("(a) ... -> ... (a)", {}),
    ("time(height width)depth -> depth(height time)width", {"width": 3}),
]


@parameterized.expand(PATTERNS)
def test_pattern(pattern, sizes):
    def script(lib):
        x = cube(lib)[:, :, :1] if "1 ->" in pattern else cube(lib)
        return lib.func.rearrange(x, pattern, **sizes)

    assert not isinstance(same(script), Failure)


WRONG = [
    ("a b c -> a b", {}, "only on one side"),
    ("a b c -> a b c d", {}, "only on one side"),
    ("a b -> b a", {}, "Number of dimensions"),
    ("a b c d -> a b c d", {}, "Number of dimensions"),
    ("a b (c d) -> a b c d", {}, "two dimensions at once"),
    ("a b (c d) -> a b c d", {"c": 3}, "evenly"),
    ("a b c -> (a b c)", {"a": 5}, "do not match"),
    ("a b c -> a b c", {"z": 3}, "not found"),
    ("a a b -> b", {}, "duplicate dimension 'a'"),
    ("a b c", {}, "a single '->'"),
    ("a b c -> a -> b", {}, "a single '->'"),
    ("a b (c -> a b c", {}, "Imbalanced"),
    ("a b c) -> a b c", {}, "not balanced"),
    ("a ((b c) d) -> a", {}, "one-level"),
    ("a b 4 -> a b", {}, "unnamed axes"),
    ("a b c -> a (...) b c", {}, "in right side"),
    ("(...) c -> c", {}, "in the left side"),
    ("a b _c -> a b _c", {}, "Invalid axis identifier: _c"),
    ("a b c! -> a", {}, "Unknown character '!'"),
    ("... a ... -> a", {}, "only inside ellipsis"),
    ("a b . -> a b", {}, "only inside ellipsis"),
    ("a b (c d) -> a b c d", {"c": "2"}, "must be integers"),
]


@parameterized.expand(WRONG)
def test_wrong_pattern(pattern, sizes, word):
    raises(lambda lib: lib.func.rearrange(cube(lib), pattern, **sizes), word)


def test_list_and_gradient():
    def script(lib):
        x = lib.ones(2, 3, requires_grad=True)
        y = lib.func.rearrange([x, x * 2], "a b c -> b (a c)")
        (y * lib.arange(12.0).reshape(2, 6)).sum().backward()
        batched = lib.func.vmap(lambda x: lib.func.rearrange(x, "a b -> (b a)"))(cube(lib))
        return y, x.grad, batched

    same(script)


FUNCTIONS = [
    ("writes", lambda a: (a + 1).add_(2)),
    ("writes into the input", lambda a: a.mul_(2)),
    ("tree", lambda a: (a, {"k": a[0]})),
    ("number", lambda a: 3),
]


@parameterized.expand([
    (f"{name} {remove}", f, remove)
    for name, f in FUNCTIONS
    for remove in ("mutations", "mutations_and_views")
])  # fmt: skip
def test_functionalize(name, f, remove):
    def script(lib):
        x = lib.ones(3)
        return lib.func.functionalize(f, remove=remove)(x), x

    same(script)


def test_functionalize_something_else():
    raises(lambda lib: lib.func.functionalize(lambda a: a, remove="all")(lib.ones(2)),
           "received invalid argument for remove=all")  # fmt: skip


def test_debug_unwrap():
    def script(lib):
        seen = []

        def look(x):
            seen.append(lib.func.debug_unwrap(x))
            return x

        lib.func.vmap(look)(lib.ones(2, 3))
        lib.func.vmap(lib.func.vmap(look))(lib.ones(2, 3))
        return seen, lib.func.debug_unwrap(lib.ones(2))

    same(script)
