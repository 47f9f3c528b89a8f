"""Numbers that may change between the replays of a captured step.

A replay launches kernels with the arguments they were captured with, and runs no Python. A number
that Python would read anew at every step, such as a learning rate under a schedule, is therefore
read through `dynamic_scalar`: while a step is captured it is a `DynamicScalar`, which has a place
on the device (its `device_value`) that is filled anew before every replay.

    lr = dynamic_scalar(lambda: float(group["lr"]))

Kernels that can take a number from the device use the device value; every other formula uses the
number as the float it is, and thereby freezes it, which `consumed` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class DynamicScalar(float):
    """What `read` returned when it was made, and a place on the device with what it returns now.

    The device value is a zero-dim float32 array on the device; on the CPU it is a list of Python
    floats and a place in it, which programs read. `consumed` says whether anyone took it (or a
    function of the number, see `map`); a number that is not consumed is in the captured step as a
    constant, if at all, and the step has to be captured again when ``read()`` is no longer equal to
    it.
    """

    __slots__ = ("_device_value", "consumed", "read")

    _device_value: Any
    consumed: bool
    read: Callable[[], float]

    def __new__(cls, read: Callable[[], float], device_value: Any) -> DynamicScalar:
        number = float.__new__(cls, read())
        number.read = read
        number._device_value = device_value
        number.consumed = False
        return number

    @property
    def device_value(self) -> Any:
        """The zero-dim float32 array; taking it promises to read the number from there alone."""
        self.consumed = True
        return self._device_value

    def map(self, function: Callable[[float], float]) -> float:
        """``function`` of this number, dynamic as well: rounded to float32 after it is computed."""
        self.consumed = True
        read = self.read
        return dynamic_scalar(lambda: function(read()))

    def __reduce__(self) -> Any:
        return float, (float(self),)  # copies and pickles are plain numbers


class Recorder:
    """What `dynamic_scalar` asks while a step is captured; made by the code that captures."""

    def number(self, read: Callable[[], float]) -> float:
        """A new scalar with a place of its own on the device that holds ``read()``.

        It is filled already (kernels of warm-up steps read it), and again before every replay. The
        recorder keeps the number, to fill its device value and to look at `consumed`. In a thread
        that captures nothing it is a plain number.
        """
        raise NotImplementedError


#: The recorder of the step that is being captured, or None: assign it to start and end.
recorder: Recorder | None = None


def dynamic_scalar(read: Callable[[], float]) -> float:
    """``read()``; while a step is captured as a `DynamicScalar`.

    `read` is called again before every replay: it must read host values only.
    """
    if recorder is None:
        return read()
    return recorder.number(read)
