"""Pictures of reports, drawn with matplotlib when somebody asks for one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.profiler._text import duration, size

if TYPE_CHECKING:
    from tensorflow_lite_clone.profiler._layer_report import LayerReport, LayerRow

#: Of kinds of modules or sources, the largest first.
COLORS = (
    "#4477aa", "#ee8866", "#44aa77", "#aa4499", "#ccaa33", "#66ccee", "#cc3344", "#777733",
    "#8866cc", "#bb8855",
)  # fmt: skip
#: Of all others; of what containers do themselves.
GREY, OWN = "#aaaaaa", "#555555"
_MOST_BARS = 100
_LIGHT = 0.45


def new_figure(width: float, height: float) -> Any:
    """A matplotlib figure that belongs to no window; ImportError says what to install."""
    try:
        from matplotlib.figure import Figure  # an optional extra
    except ImportError as error:
        raise ImportError("drawing charts needs matplotlib: pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: str | os.PathLike) -> None:
    """Write a figure; the file is whole or not there. ValueError for an unknown ending."""
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower() or "png"
    known = sorted(figure.canvas.get_supported_filetypes())
    if ending not in known:
        raise ValueError(f"cannot draw a chart as '.{ending}': expected one of {', '.join(known)}")
    with whole_file(path, "wb") as file:
        figure.savefig(file, format=ending, dpi=100)


def colors_of(totals: dict[str, float]) -> dict[str, str]:
    """A colour for each name, the largest total first, until there are none left."""
    ordered = sorted(totals, key=lambda name: -totals[name])
    return dict(zip(ordered, COLORS))


_Bar = tuple[str, str, float, float]  # name, kind, two figures


def layer_bars(report: LayerReport, path: str | os.PathLike, what: str) -> None:
    """`LayerReport.plot`."""
    if what not in ("time", "memory"):
        raise ValueError(f"plot(what=...) is 'time' or 'memory', not {what!r}")
    rows = [(row.name, _kind(row), *_values(row, what)) for row in report.rows]
    if what == "memory":
        rows = [row for row in rows if row[2] or row[3]]
    rows, others = _largest(rows, _MOST_BARS)
    totals: dict[str, float] = {}
    for _, kind, first, second in rows:
        totals[kind] = totals.get(kind, 0.0) + first + second
    own = totals.pop(_OWN, None)
    colors = colors_of(totals)
    if own is not None:
        colors[_OWN] = OWN
    if others:
        rows.append(others)
    if not {kind for _, kind, *_ in rows} <= colors.keys():
        colors["others"] = GREY

    figure = new_figure(10, 1.8 + 0.2 * len(rows))
    axes = figure.subplots()
    show: Any = duration if what == "time" else size
    widest = _draw_times(axes, rows, colors) if what == "time" else _draw_sizes(axes, rows, colors)
    axes.set_yticks(range(len(rows)), [ending(name, 44) for name, *_ in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)  # the first one on top
    axes.set_xlim(0, 1.12 * widest)
    axes.xaxis.set_major_formatter(lambda value, _: show(value) if value else "0")
    if what == "memory":
        axes.xaxis.set_major_locator(byte_ticks(widest))
    axes.tick_params(axis="x", labelsize=8, labeltop=len(rows) > 40)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(_title(report, what), fontsize=10, loc="left")
    legend(figure, colors, _tones(report, what))
    save(figure, path)


def _draw_times(axes: Any, rows: list[_Bar], colors: dict[str, str]) -> float:
    """A bar for forward, and one for backward after it; the longest of both together."""
    widest = max([first + second for *_, first, second in rows]) or 1.0
    for place, (_, kind, first, second) in enumerate(rows):
        axes.barh(place, first, color=colors.get(kind, GREY), height=0.8)
        axes.barh(place, second, left=first, color=colors.get(kind, GREY), alpha=_LIGHT, height=0.8)
        end = first + second + 0.008 * widest
        axes.text(end, place, duration(first + second), va="center", fontsize=7)
    return widest


def _draw_sizes(axes: Any, rows: list[_Bar], colors: dict[str, str]) -> float:
    """A bar for each of two sizes, of which one may be a part of the other; the longest."""
    widest = max([max(first, second) for *_, first, second in rows], default=0.0) or 1.0
    height = 0.4 if any([second for *_, second in rows]) else 0.8
    for place, (_, kind, first, second) in enumerate(rows):
        axes.barh(place - 0.4 + height / 2, first, color=colors.get(kind, GREY), height=height)
        axes.barh(place + 0.2, second, color=colors.get(kind, GREY), alpha=_LIGHT, height=0.4)
        sizes = [size(int(value)) for value in (first, second) if value]
        end = max(first, second) + 0.008 * widest
        axes.text(end, place, " / ".join(sizes), va="center", fontsize=7)
    return widest


_OWN = "between modules"


def _kind(row: LayerRow) -> str:
    return _OWN if row.role == "own" else row.type or row.name


def byte_ticks(most: float) -> Any:
    """A matplotlib locator of round numbers of bytes up to `most`."""
    from matplotlib.ticker import MultipleLocator  # an optional extra

    step = 1
    while most / step > 8:
        step *= 2
    return MultipleLocator(step)


def _values(row: LayerRow, what: str) -> tuple[float, float]:
    if what == "time":
        return row.forward.median, row.backward.median if row.backward else 0.0
    return float(row.memory), float(row.saved or 0)


def _largest(rows: list[_Bar], most: int) -> tuple[list[_Bar], _Bar | None]:
    """The largest rows, in the order they have, and one for what the others come to."""
    if len(rows) <= most:
        return rows, None
    order = sorted(range(len(rows)), key=lambda i: -(rows[i][2] + rows[i][3]))
    kept = set(order[: most - 1])
    small = [row for i, row in enumerate(rows) if i not in kept]
    name = f"{len(small)} smaller ones"
    others = (name, "others", sum([row[2] for row in small]), sum([row[3] for row in small]))
    return [row for i, row in enumerate(rows) if i in kept], others


def _title(report: LayerReport, what: str) -> str:
    total = report.total
    if what == "memory":
        parts = [f"outputs {size(total.memory)}"]
        if total.saved is not None:
            parts.append(f"saved for backward {size(total.saved)}")
    else:
        parts = [f"forward {duration(total.forward.median)}"]
        if total.backward is not None:
            parts.append(f"backward {duration(total.backward.median)}")
    return f"{report.model}: {', '.join(parts)}"


def _tones(report: LayerReport, what: str) -> tuple[str, ...]:
    if report.total.backward is None:
        return ()
    return ("forward", "backward") if what == "time" else ("given", "saved for backward")


def ending(text: str, length: int) -> str:
    """The last part of a long text."""
    return text if len(text) <= length else f"...{text[3 - length :]}"


def legend(
    figure: Any, colors: dict[str, str], tones: Iterable[str] = (), columns: int = 6
) -> None:
    """The meaning of colours, and of strong and light tones, above a picture."""
    from matplotlib.patches import Patch  # an optional extra

    handles = [Patch(color=color, label=name) for name, color in colors.items()]
    handles += [Patch(color="#333333", alpha=a, label=tone) for tone, a in zip(tones, (1, _LIGHT))]
    figure.legend(
        handles=handles,
        fontsize=8,
        loc="outside upper left",
        ncols=min(len(handles), columns),
        frameon=False,
    )
