"""Which form of attention may be used, as ``torch.nn.attention``.

The form follows from the inputs here, and all compute the same: the choice is kept, and has no
other effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tensorflow_lite_clone.backends.cuda import SDPBackend, allowed_attention, only_attention


@contextmanager
def sdpa_kernel(
    backends: Iterable[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict]:
    """Context, or decorator, in which `scaled_dot_product_attention` may take these forms.

    Raises AssertionError unless given an `SDPBackend` or a list of them.
    """
    if not isinstance(backends, (SDPBackend, list)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    with only_attention({backends} if isinstance(backends, SDPBackend) else set(backends)):
        yield {}


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    return allowed_attention()


__all__ = ["SDPBackend", "sdpa_kernel"]
