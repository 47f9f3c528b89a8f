"""Building blocks of networks, as ``torch.nn``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.nn import (
    attention,
    common_types,
    functional,
    grad,
    init,
    modules,
    parallel,
    utils,
)
from tensorflow_lite_clone.nn.modules import *  # noqa: F403
from tensorflow_lite_clone.nn.parallel import DataParallel
from tensorflow_lite_clone.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

mount_compat(__path__, __name__)  # noqa: F405

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "utils",
    *modules.__all__,  # type: ignore[attr-defined]
]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments for `torch.empty` and the like among a module's keyword arguments.

    Those are `device`, `dtype` and `memory_format`, and all that the dictionary `factory_kwargs`
    holds. TypeError for other names, and for what is there twice.
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - known - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in known & kwargs.keys():
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    return result
