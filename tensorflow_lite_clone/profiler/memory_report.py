"""What memory was taken for: by source line, and over time as a picture.

Both read memory events, ``(time_us, device, delta_bytes, total_bytes, where)`` in the order of
time, as ``profile(profile_memory=True)`` has them in `memory_events()`. `where` is the line or the
op that took the memory, also in the event of its release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from tensorflow_lite_clone.profiler import _charts
from tensorflow_lite_clone.profiler._text import duration, size

_Event = tuple[float, int, int, str]  # one device's: microseconds, change, total, source
_EARLIER = "before the profile"
_OTHERS = "others"
_MOST_POINTS = 2000


class MemoryLine(NamedTuple):
    """What one source took on one device, in bytes: in all, given back, held at the peak."""

    where: str
    device: str
    allocated: int
    freed: int
    live_at_peak: int


def memory_by_line(profile_or_events: Any) -> list[MemoryLine]:
    """What each source took on each device; what held most at the device's peak comes first."""
    found = []
    by_device = _by_device(profile_or_events)
    for device, events in by_device.items():
        taken: dict[str, int] = {}
        freed: dict[str, int] = {}
        for _, delta, _total, where in events:
            counted = taken if delta > 0 else freed
            counted[where] = counted.get(where, 0) + abs(delta)
        peak = _at_peak(events)
        found += [
            MemoryLine(where, device, taken.get(where, 0), freed.get(where, 0), peak.get(where, 0))
            for where in dict.fromkeys([*taken, *freed])
        ]
    return sorted(found, key=lambda line: (-line.live_at_peak, -line.allocated, line.where))


def memory_timeline(profile_or_events: Any, path: str | os.PathLike, device: Any = None) -> None:
    """Draw the memory in use on a device over time, stacked by what took it; the peak is marked.

    The sources that hold most at the peak have a colour of their own. Without a `device` it is the
    one with the highest peak. The ending of `path` says how it is drawn (.png, .svg, .pdf).
    ValueError when there is nothing to draw. Needs matplotlib.
    """
    by_device = _by_device(profile_or_events)
    if not by_device:
        raise ValueError("there are no memory events: profile with profile_memory=True")
    if device is None:
        device = max(by_device, key=lambda name: max([event[2] for event in by_device[name]]))
    if str(device) not in by_device:
        raise ValueError(f"no memory events on {device}: there are some on {', '.join(by_device)}")
    events = by_device[str(device)]
    figure = _charts.new_figure(10, 6)
    _draw(figure, str(device), events)
    _charts.save(figure, path)


def _draw(figure: Any, device: str, events: list[_Event]) -> None:
    top = max(events, key=lambda event: event[2])
    peak = _at_peak(events)
    largest = sorted(peak, key=lambda where: -peak[where])[: len(_charts.COLORS)]
    times, layers = _layers(events, largest)
    largest.sort(key=lambda where: where != _EARLIER)  # what stays is at the bottom
    colors = dict(zip(largest, _charts.COLORS))
    names = {
        f"{_charts.ending(where, 64)}: {size(peak[where])}": colors[where] for where in largest
    }
    if any(layers[_OTHERS]):
        colors[_OTHERS] = names[_OTHERS] = _charts.GREY

    axes = figure.subplots()
    low = [0] * len(times)
    for where, color in colors.items():
        high = [a + b for a, b in zip(low, layers[where])]
        axes.fill_between(times, low, high, step="post", color=color, linewidth=0)
        low = high
    axes.plot(times, low, drawstyle="steps-post", color="black", linewidth=0.6)
    axes.axvline(top[0] / 1e3, color="#cc0000", linestyle="--", linewidth=1)
    axes.set_title(
        f"{device}: peak {size(top[2])} after {duration(top[0])}", fontsize=10, loc="left"
    )
    axes.set_ylim(0, 1.08 * max(top[2], 1))
    axes.set_xlim(times[0], max(times[-1], times[0] + 1e-3))
    axes.set_xlabel("milliseconds", fontsize=8)
    axes.yaxis.set_major_locator(_charts.byte_ticks(top[2]))
    axes.yaxis.set_major_formatter(lambda value, _: size(int(value)) if value else "0")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    _charts.legend(figure, names, columns=2)


def _by_device(profile_or_events: Any) -> dict[str, list[_Event]]:
    """The events of each device; what was in use before the first one is an event, too."""
    if hasattr(profile_or_events, "memory_events"):
        profile_or_events = profile_or_events.memory_events()
    found: dict[str, list[_Event]] = {}
    for time, device, delta, total, where in profile_or_events:
        events = found.setdefault(str(device), [])
        if not events and total != delta:
            events.append((time, total - delta, total - delta, _EARLIER))
        events.append((time, delta, total, where))
    return found


def _at_peak(events: Iterable[_Event]) -> dict[str, int]:
    """What each source held when most was in use."""
    active: dict[str, int] = {}
    peak: dict[str, int] = {}
    most = -1
    for _, delta, total, where in events:
        active[where] = active.get(where, 0) + delta
        if total > most:
            most, peak = total, dict(active)
    return peak


def _layers(events: list[_Event], sources: list[str]) -> tuple[list[float], dict[str, list[int]]]:
    """Milliseconds, and what each of `sources` and all others together hold then.

    Of many events those are taken at which most is in use among their neighbours.
    """
    stride = -(-len(events) // _MOST_POINTS)
    chosen = {
        max(range(start, min(start + stride, len(events))), key=lambda i: events[i][2])
        for start in range(0, len(events), stride)
    }
    chosen |= {0, len(events) - 1}
    active = dict.fromkeys(sources, 0)
    times: list[float] = []
    layers: dict[str, list[int]] = {where: [] for where in [*sources, _OTHERS]}
    for number, (time, delta, total, where) in enumerate(events):
        if where in active:
            active[where] += delta
        if number in chosen:
            times.append(time / 1e3)
            for source, amount in active.items():
                layers[source].append(max(amount, 0))
            layers[_OTHERS].append(max(total - sum(active.values()), 0))
    return times, layers
