"""Wrappers that have the parameters of what they wrap, so that calls pack and unpack nothing.

A wrapper ``(*args, **kwargs)`` builds a tuple and a dictionary only to take them apart again, which
ops on small tensors feel. Those made here are compiled from a template, at their first call: most
of the functions that are wrapped are never called by a program. Wrappers of a wrapper become one
function, whose text has theirs one inside the other: a public function that checks its arguments,
casts under autocast and writes into ``out=`` is one frame above the function that it wraps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.templates import deferred, define, fill, originals

#: A function -> those that do the same under other names, see `twin`.
twins: dict[Any, list[Any]] = {}


class Missing:
    """The class of `MISSING`, the default that stands for an argument that was not given."""


MISSING = Missing()


class Parameters(NamedTuple):
    """The names of a function's parameters, and their defaults as Python keeps them."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    defaults: tuple = ()
    keyword_defaults: dict[str, Any] = {}  # noqa: RUF012  never written
    open: bool = False  # whether other arguments are let through: `rest` and `more`

    def and_keyword(self, name: str, default: Any) -> Parameters:
        """These, and one more by keyword alone."""
        keyword_defaults = {**self.keyword_defaults, name: default}
        return self._replace(keywords=(*self.keywords, name), keyword_defaults=keyword_defaults)

    def opened(self) -> Parameters:
        """These, and any others: what is asked for may have come under another name."""
        required = len(self.positional) - len(self.defaults)
        return self._replace(defaults=(MISSING,) * required + self.defaults, open=True)

    def all_defaults(self) -> dict[str, Any]:
        """The defaults by the names of their parameters."""
        return dict(zip(reversed(self.positional), reversed(self.defaults))) | self.keyword_defaults

    def given(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Of arguments for all parameters those that a call must name, not being defaults."""
        defaults = self.all_defaults()
        named = {k: v for k, v in kwargs.items() if k not in defaults or v is not defaults[k]}
        if Missing in map(type, args) or not named.keys() <= {*self.keywords}:
            pairs = zip(self.positional, args, strict=False)
            by_name = {k: v for k, v in pairs if k not in defaults or v is not defaults[k]}
            return args[len(self.positional) :], by_name | named
        count = len(args)
        if count == len(self.positional):
            while count and args[count - 1] is defaults.get(self.positional[count - 1], Missing):
                count -= 1
        return args[:count], named


_WRAPPER = """
def {name}({parameters}):
    {body}
"""


class _Forwarder:
    """What a wrapper is made of at its first call."""

    __slots__ = ("body", "change", "function", "names")

    def __init__(self, function: Any, body: Any, names: Any, change: Any) -> None:
        self.function = function
        self.body = body
        self.names = names
        self.change = change

    def parameters(self) -> Parameters:
        """Those of the wrapper."""
        own = parameters_of(self.function)
        return own if self.change is None else self.change(own)

    def compile(self) -> tuple[Any, dict[str, Any]]:
        """A function that does what the wrapper does, and the names that it uses."""
        name, parameters = self.function.__name__, self.parameters()
        body, names, modules = self.text(parameters)
        if not names.keys().isdisjoint((*parameters.positional, *parameters.keywords)):
            raise ValueError(f"{name} has a parameter that its wrapper uses")
        head = [f"{word}=None" for word in parameters.positional]
        head += ["*rest"] if parameters.open else ["*"] * bool(parameters.keywords)
        head += [f"{word}=None" for word in parameters.keywords] + ["**more"] * parameters.open
        text = fill(_WRAPPER, name=name, parameters=", ".join(head), body=body)
        compiled = define(name, text, ", ".join(modules), {})
        compiled.__defaults__ = parameters.defaults
        compiled.__kwdefaults__ = parameters.keyword_defaults
        return compiled, names

    def text(self, parameters: Parameters) -> tuple[str, dict[str, Any], list[str]]:
        """What a wrapper with these parameters does, the names that are used, and whose text it is.

        The latter are the modules that have made it and the wrappers inside of it.
        """
        function, own = self.function, parameters_of(self.function)
        positional, keywords = parameters.positional, parameters.keywords
        rest, more = (["*rest"], ["**more"]) if parameters.open else ([], [])
        names = self.names(parameters)
        inner, modules = None, []
        if "__forwarder__" in function.__globals__:
            inner, inner_names, modules = function.__globals__["__forwarder__"].text(own)
        if inner is None or not names.keys().isdisjoint(inner_names):
            call = [*positional, *[f"{word}={word}" for word in own.keywords]]
            call += [*rest, *more] if own.open else []
            inner = f"return function({', '.join(call)})"
            inner_names, modules = {"function": function, "MISSING": MISSING}, []
        defaults = zip(positional, parameters.defaults)  # of an open one, which has all of them
        required = [word for word, value in defaults if value is MISSING]
        body = fill(
            self.body if isinstance(self.body, str) else self.body(),
            missing=" or ".join([f"{word} is MISSING" for word in required]),
            args=f"({''.join([f'{word}, ' for word in (*positional, *rest)])})",
            kwargs=f"{{{', '.join([*[f'{word!r}: {word}' for word in own.keywords], *more])}}}",
            types=f"({''.join([f'{word}.__class__, ' for word in (*positional, *keywords)])})",
            inner=inner,
        )
        return body, names | inner_names, [self.names.__module__, *modules]


def has_parameters(function: Any) -> bool:
    """Whether each argument of a function has a parameter, which may be given by name."""
    if "__forwarder__" in function.__globals__:
        return has_parameters(function.__globals__["__forwarder__"].function)
    code = originals.get(function, function).__code__
    return not (code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) or code.co_posonlyargcount)


def parameters_of(function: Any) -> Parameters:
    """A function's own parameters."""
    if "__forwarder__" in function.__globals__:
        forwarder: _Forwarder = function.__globals__["__forwarder__"]
        return forwarder.parameters()
    function = originals.get(function, function)
    code = function.__code__
    count, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    return Parameters(
        code.co_varnames[:count],
        code.co_varnames[count:total],
        function.__defaults__ or (),
        function.__kwdefaults__ or {},
        bool(code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)),
    )


def inner_parameters(function: Any) -> Parameters:
    """A function's own parameters, or those of what it wraps if it takes any."""
    while not has_parameters(function) and "__wrapped__" in function.__dict__:
        function = function.__dict__["__wrapped__"]
    return parameters_of(function)


def forwarder(
    function: Any,
    body: str | Callable[[], str],
    names: Callable[[Parameters], dict[str, Any]],
    change: Callable[[Parameters], Parameters] | None = None,
) -> Any:
    """A function with the parameters of another, and a body that is a template.

    `change` makes its parameters of the function's. In the body ``{inner}``, on a line of its own,
    stands for the call of the function with all of its parameters, or for the body of a function
    that is such a wrapper itself. ``{args}`` is a tuple of the parameters by position, ``{kwargs}``
    a dictionary of those by keyword, ``{types}`` a tuple of the types of all. `rest` and `more` are
    what an open wrapper lets through, ``{missing}`` says whether it lacks a required argument. What
    `names` gives has these names. A function may give the body, if that takes time to make. Raises
    ValueError at the first call where a parameter has one of the names.
    """
    state = _Forwarder(function, body, names, change)
    wrapper = deferred(function.__name__, state.compile, __name__=__name__, __forwarder__=state)
    return functools.update_wrapper(wrapper, function)


def twin(function: FunctionType, module: str, name: str) -> FunctionType:
    """Another function that does the same, as fast, called `name` in `module`.

    Its code is another object, by which frames tell whose they are.
    """
    copied = FunctionType(
        function.__code__.replace(co_name=name.rpartition(".")[2]),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__annotations__ = function.__annotations__
    copied.__doc__ = function.__doc__
    copied.__dict__.update(function.__dict__)
    copied.__module__, copied.__qualname__ = module, name
    copied.__name__ = name.rpartition(".")[2]
    if "__deferred__" in function.__globals__:
        function.__globals__["__deferred__"].functions.append((copied, copied.__code__))
    twins.setdefault(function, []).append(copied)
    return copied
