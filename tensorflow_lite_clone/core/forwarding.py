"""Wrappers that have the parameters of what they wrap, so that calls pack and unpack nothing.

A wrapper ``(*args, **kwargs)`` builds a tuple and a dictionary only to take them apart again, which
ops on small tensors feel. Those made here are compiled from a text, at their first call: most of
the functions that are wrapped are never called by a program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary


class Parameters(NamedTuple):
    """The names of a function's parameters, and their defaults as Python keeps them."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    defaults: tuple = ()
    keyword_defaults: dict[str, Any] = {}  # noqa: RUF012  never written
    more: bool = False  # whether it takes other keywords too

    def and_keyword(self, name: str, default: Any) -> Parameters:
        """These, and one more by keyword alone."""
        keyword_defaults = {**self.keyword_defaults, name: default}
        return self._replace(keywords=(*self.keywords, name), keyword_defaults=keyword_defaults)

    def under_other_names(self, missing: Any) -> Parameters:
        """These, of which those without a default may be given as other keywords."""
        required = len(self.positional) - len(self.defaults)
        return self._replace(defaults=(missing,) * required + self.defaults, more=True)

    def given(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Of arguments for all parameters those that a call must name, not being defaults."""
        required = len(self.positional) - len(self.defaults)
        count = len(args)
        while count > required and args[count - 1] is self.defaults[count - 1 - required]:
            count -= 1
        defaults = self.keyword_defaults
        named = {k: v for k, v in kwargs.items() if k not in defaults or v is not defaults[k]}
        return args[:count], named


#: Those of the functions that `forwarder` made.
_parameters: WeakKeyDictionary[Any, Parameters] = WeakKeyDictionary()


def parameters_of(function: Any) -> Parameters | None:
    """A function's own parameters; None where it takes any number of arguments."""
    if function in _parameters:
        return _parameters[function]
    code = function.__code__
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) or code.co_posonlyargcount:
        return None
    count, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    return Parameters(
        code.co_varnames[:count],
        code.co_varnames[count:total],
        function.__defaults__ or (),
        function.__kwdefaults__ or {},
    )


def forwarder(function: Any, body: str, parameters: Parameters, **names: Any) -> Callable[..., Any]:
    """A function with these parameters and a body that calls ``function({call})``.

    In the body ``{call}`` is all of `function`'s parameters as arguments, ``{args}`` a tuple of
    those by position, ``{kwargs}`` a dictionary of those by keyword, ``{types}`` a tuple of the
    types of all; it may use `names`. `parameters` may have other keywords than `function`, or take
    any as `more`.
    """
    own = parameters_of(function) or parameters
    scope = {"__name__": __name__, "function": function, **names}

    def begin(*args: Any, **kwargs: Any) -> Any:
        wrapper.__defaults__ = parameters.defaults
        wrapper.__kwdefaults__ = parameters.keyword_defaults
        wrapper.__code__ = _code(function.__name__, body, parameters, own)
        return wrapper(*args, **kwargs)

    scope["begin"] = begin
    if scope.keys() & {*parameters.positional, *parameters.keywords}:
        raise ValueError(f"a parameter of {function.__name__} is called as what its wrapper uses")
    wrapper = FunctionType(_begin.__code__, scope, function.__name__)
    functools.update_wrapper(wrapper, function)
    _parameters[wrapper] = parameters
    return wrapper


def _begin(*args: Any, **kwargs: Any) -> Any:
    # The name is of a forwarder's scope.
    return begin(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def _code(name: str, body: str, parameters: Parameters, own: Parameters) -> Any:
    """The code of a forwarder to a function whose parameters are its `own`."""
    positional, keywords = parameters.positional, parameters.keywords
    head = ", ".join(
        [
            *[f"{word}=None" for word in positional],
            *(["*"] if keywords else []),
            *[f"{word}=None" for word in keywords],
            *(["**more"] if parameters.more else []),
        ]
    )
    rest = ["**more"] if parameters.more else []
    text = body.format(
        call=", ".join(
            [*positional, *[f"{word}={word}" for word in own.keywords], *(rest if own.more else [])]
        ),
        args=f"({''.join([f'{word}, ' for word in positional])})",
        kwargs=f"{{{', '.join([f'{word!r}: {word}' for word in own.keywords] + rest)}}}",
        types=f"({''.join([f'{word}.__class__, ' for word in (*positional, *keywords)])})",
    )
    scope: dict[str, Any] = {}
    exec(compile(f"def made({head}):\n{text}", f"<arguments of {name}>", "exec"), scope)
    return scope["made"].__code__.replace(co_name=name, co_qualname=name)
