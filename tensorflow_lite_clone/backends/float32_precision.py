"""How precisely products of float32 are calculated, asked for in general and in particular.

PyTorch has a word for everything, one for each library, and one for each of its operations. What
says "none" is as the next more general word says. Only those of CUDA's products and convolutions
have an effect here.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.flags import flags

_EVERYTHING = "generic", "all"
#: The words of each library; another one, said in general, is "none" to it.
_KNOWN = {
    "generic": ("none", "ieee", "tf32", "bf16"),
    "cuda": ("none", "ieee", "tf32"),
    "mkldnn": ("none", "ieee", "tf32", "bf16"),
}
#: Until they are set, and where nothing is said in general.
_DEFAULTS = {("cuda", "conv"): "tf32", ("cuda", "rnn"): "tf32"}
_words: dict[tuple[str, str], str] = {}


def get(backend: str, operation: str) -> str:
    """The word that is in force: "none", "ieee", "tf32" or "bf16"."""
    for place in ((backend, operation), (backend, "all"), _EVERYTHING):
        word = _words.get(place, "none")
        if word != "none":
            return word if word in _KNOWN[backend] else "none"
    place = backend, operation
    return "none" if place in _words else _DEFAULTS.get(place, "none")


def put(backend: str, operation: str, word: str) -> None:
    """Say a word; RuntimeError for one that is none, or that the library does not know."""
    if not isinstance(word, str):
        raise TypeError(f"fp32_precision must be str, not {type(word).__name__}")
    if word not in _KNOWN["generic"]:
        raise RuntimeError(f"Unknown precision: {word}")
    if word not in _KNOWN[backend]:
        raise RuntimeError(f"backend '{backend}' does not support precision '{word}'")
    _words[backend, operation] = word
    flags.cudnn_allow_tf32 = get("cuda", "conv") == "tf32"
    flags.matmul_allow_tf32 = get("cuda", "matmul") == "tf32"
    if flags.matmul_allow_tf32 is (flags.float32_matmul_precision == "highest"):
        flags.float32_matmul_precision = "high" if flags.matmul_allow_tf32 else "highest"


def put_matmul(precision: str) -> None:
    """What `set_float32_matmul_precision` says; RuntimeError for an unknown name."""
    words = {"highest": "ieee", "high": "tf32", "medium": "bf16"}
    if precision not in words:
        raise RuntimeError(f"{precision} is none of {', '.join(words)} as a precision of products")
    put("cuda", "matmul", "ieee" if precision == "highest" else "tf32")
    put("mkldnn", "matmul", words[precision])
    flags.float32_matmul_precision = precision


def of(backend: str, operation: str) -> Any:
    """A property with the word of an operation."""
    return property(
        lambda self: get(backend, operation),
        lambda self, word: put(backend, operation, word),
        doc='"none" (as said in general), "ieee", "tf32", or for mkldnn "bf16".',
    )


class Operation:
    """An operation of a library, which has nothing but its word."""

    __slots__ = ("_backend", "_operation")

    def __init__(self, backend: str, operation: str) -> None:
        self._backend, self._operation = backend, operation

    @property
    def fp32_precision(self) -> str:
        """The word that is in force."""
        return get(self._backend, self._operation)

    @fp32_precision.setter
    def fp32_precision(self, word: str) -> None:
        put(self._backend, self._operation, word)
