"""Anomaly detection: where was the operation recorded whose gradient failed or became NaN?"""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.trace import Observer


class _State:
    enabled = False
    check_nan = True


class _Visiting(threading.local):
    node: Any = None  # whose gradients are being computed in this thread


_visiting = _Visiting()


@public("torch")
def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return _State.enabled


@public("torch")
def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection, when on, looks for NaN."""
    return _State.check_nan


def _remember(node: Any) -> None:
    node.metadata["traceback_"] = traceback.format_stack()[:-2]
    if _visiting.node is not None:
        node.metadata["parent_"] = _visiting.node


def _switch(enabled: bool, check_nan: bool) -> None:
    if enabled and not _State.enabled:
        _detection.__enter__()
    if not enabled and _State.enabled:
        _detection.__exit__()
    _State.enabled = enabled
    _State.check_nan = check_nan


def _inspect(node: Any, call: Callable[[list], Any], grads: list) -> Any:
    """A hook around each node's gradients."""
    outer, _visiting.node = _visiting.node, node
    try:
        results = call(grads)
    except Exception:
        _warn(node)
        raise
    finally:
        _visiting.node = outer
    if _State.check_nan:
        _check(node, results)
    return results


class _Detection(Observer):
    on_node = staticmethod(_remember)
    around_gradient = staticmethod(_inspect)


_detection = _Detection()


def _check(node: Any, results: Any) -> None:
    for position, g in enumerate(results):
        if g is None:
            continue
        if isinstance(g, Tensor):
            g = (g._values() if g.is_sparse else g)._storage.array
        backend = node.backend
        if backend.has_values and bool(backend.number(backend.F.any(backend.F.not_equal(g, g)))):
            _warn(node)
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {position}th output."
            )


def _warn(node: Any) -> None:
    what = "Traceback of forward call that caused the error:"
    message = f"Error detected in {node.name()}. "
    while node is not None:
        lines = node.metadata.get("traceback_")
        if lines is None:
            message += (
                "No forward pass information available. Enable detect anomaly during forward pass "
                "for more information."
            )
        else:
            message += f"{what}\n{''.join(lines)}"
        warnings.warn(message, stacklevel=level_outside())
        node = node.metadata.get("parent_")
        if node is not None:
            message = f"\n\nPrevious calculation was induced by {node.name()}. "
            what = "Traceback of forward call that induced the previous calculation:"


class set_detect_anomaly:
    """Switch anomaly detection on or off; as a context manager, restore it at the end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._previous = _State.enabled, _State.check_nan
        _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _switch(*self._previous)


class detect_anomaly:
    """Context manager: name the forward line of a gradient that fails or becomes NaN."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._previous = _State.enabled, _State.check_nan  # the object may be entered twice
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=level_outside(),
        )

    def __enter__(self) -> None:
        _switch(True, self._check_nan)

    def __exit__(self, *exception: object) -> None:
        _switch(*self._previous)
