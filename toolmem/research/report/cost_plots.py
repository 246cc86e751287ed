"""The figures of the cost report: tokens spent and avoided, and calls that wait for their guidance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from toolmem.config.extras import need_pandas
from toolmem.pages.numbers import count
from toolmem.readers.plain_text import counted
from toolmem.research.report import style
from toolmem.research.report.charge_sums import ESTIMATE, cost_frame
from toolmem.research.report.charges import JUDGING, SUMMARIZING, CostReport
from toolmem.research.report.staleness import Waiting
from toolmem.research.report.style import Chart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_ROWS = 30  # tools in one figure: those with most tokens; the tables have all
MOST_LINES = 4  # tools of a staleness figure, one colour each
DAY = 86400  # matplotlib counts the days since 1970
LINE_COLOURS = ((style.BLUE, "-"), (style.VERMILION, (0, (5, 1.5))), (style.ORANGE, (0, (2, 1))), (style.SKY, "-."))

_COLOURS = {"judging": style.SKY, "summarizing": style.BLUE, "avoided": style.GREY}


def spending_chart(report: CostReport, by: str = "tool", *, zone: tzinfo | None = None) -> Chart | None:
    """Tokens (input and output) of judging, summarizing and what was avoided, a bar per tool, policy, run or day.

    Estimates of unseen replies are in the bars. None where nothing was spent or avoided.
    """
    tokens = token_frame(report, by, zone=zone)
    if tokens.empty or not tokens.to_numpy().any():
        return None
    ordered = tokens if by in ("day", "run") else tokens.loc[tokens.sum(axis=1).sort_values(ascending=False).index]
    ordered = ordered.head(MOST_ROWS) if by not in ("day", "run") else ordered.tail(MOST_ROWS)
    estimated = any(c.output_tokens and c.output_by == "estimate" for c in report.charges)

    def draw(axes: Axes) -> None:
        style.bare_rows(axes, style.labels(map(str, ordered.index)))
        ends = style.stacked(axes, range(len(ordered)), _parts(ordered), across=True)
        axes.set_xlim(0, float(ends.max()) * 1.02)
        axes.set_xlabel("tokens, input and output" + (", unseen replies estimated" if estimated else ""))
        style.whole_numbers(axes.xaxis)
        spent = (ordered["judging"] + ordered["summarizing"]).to_numpy(dtype=float)
        style.right_column(axes, [f"{ESTIMATE if estimated else ''}{count(value)}" for value in spent], "spent")
        style.legend_above(axes)

    return style.chart(
        draw, style.row_height(len(ordered)), f"Tokens spent and avoided, by {by}, {counted(len(ordered), 'row')}"
    )


def days_chart(report: CostReport, *, zone: tzinfo | None = None) -> Chart | None:
    """Tokens (input and output) per day, a bar per day from the first to the last; None where there are none."""
    need_pandas()
    import pandas as pd

    tokens = token_frame(report, "day", zone=zone)
    if tokens.empty or not tokens.to_numpy().any():
        return None
    days = pd.date_range(tokens.index.min(), tokens.index.max(), freq="D")
    tokens = tokens.reindex(days.strftime("%Y-%m-%d"), fill_value=0)

    def draw(axes: Axes) -> None:
        style.stacked(axes, range(len(tokens)), _parts(tokens), size=0.82)
        places = range(0, len(days), max(1, -(-len(days) // 9)))
        axes.set_xticks(list(places), [f"{days[place]:%d %b}" for place in places])
        axes.set_xlim(-0.8, len(days) - 0.2)
        axes.set_xlabel(f"day in {days[0]:%Y}" if days[0].year == days[-1].year else "day")
        axes.set_ylabel("tokens per day, input and output")
        axes.grid(axis="y")
        style.whole_numbers(axes.yaxis)
        style.legend_above(axes)

    return style.chart(draw, 3.2, f"Tokens spent and avoided on {counted(len(days), 'day')}")


def _parts(tokens: pd.DataFrame) -> list[tuple[str, Any, str]]:
    return [(name, tokens[name].to_numpy(dtype=float), colour) for name, colour in _COLOURS.items()]


def token_frame(report: CostReport, by: str, *, zone: tzinfo | None = None) -> pd.DataFrame:
    """Tokens (input and output) per value of `by` (index): judging, summarizing, avoided."""
    need_pandas()
    import pandas as pd

    frame = cost_frame(report, [by, "kind"], zone=zone)
    spent = frame["input_tokens"] + frame["output_tokens"]
    avoided = frame["avoided_input_tokens"] + frame["avoided_output_tokens"]
    parts = {
        "judging": spent.where(frame["kind"] == JUDGING, 0),
        "summarizing": spent.where(frame["kind"] == SUMMARIZING, 0),
        "avoided": avoided,
    }
    return pd.DataFrame(parts).groupby(frame[by].replace("", "(not known)")).sum()


def staleness_chart(
    series: Mapping[str, Sequence[Waiting]], time_zone: str = "UTC", *, most_lines: int = MOST_LINES
) -> Chart | None:
    """Calls that the guidance does not hold yet, over time: a line per name, those with most waiting calls.

    `series`: `by_tool` of what `waiting` answers, or one tool under several policies. None where nothing happened.
    """
    most = {name: max(max(e.before, e.after) for e in happened) for name, happened in series.items() if happened}
    if not most:
        return None
    names = sorted(most, key=lambda name: (-most[name], name))[: min(most_lines, len(LINE_COLOURS))]

    def draw(axes: Axes) -> None:
        for name, label, look in zip(names, style.labels(names), LINE_COLOURS, strict=False):
            times, heights = _steps(series[name])
            colour, dashes = look
            axes.plot(times, heights, color=colour, linestyle=dashes, linewidth=1.5, label=label)
        _clock(axes, time_zone)
        axes.set_ylim(0, max(most[names[0]], 1) * 1.05)
        axes.set_ylabel("calls not in the guidance yet")
        years = sorted({each.time.astimezone(ZoneInfo(time_zone)).year for name in names for each in series[name]})
        axes.set_xlabel(f"time ({time_zone}), {'–'.join(str(year) for year in dict.fromkeys((years[0], years[-1])))}")
        axes.grid(axis="y")
        style.whole_numbers(axes.yaxis)
        style.legend_above(axes)

    return style.chart(
        draw, 3.2, f"Calls not in the guidance yet, {counted(len(names), 'line')}, at most {most[names[0]]}"
    )


def by_tool(happened: Sequence[Waiting]) -> dict[str, list[Waiting]]:
    """What happened to each tool."""
    found: dict[str, list[Waiting]] = {}
    for each in happened:
        found.setdefault(each.tool, []).append(each)
    return found


def _steps(happened: Sequence[Waiting]) -> tuple[list[float], list[int]]:
    """Times (days since 1970) and heights of a line that changes at events alone."""
    times: list[float] = []
    heights: list[int] = []
    height = 0
    for each in happened:
        times += [each.time.timestamp() / DAY] * 3
        heights += [height, each.before, each.after]
        height = each.after
    return times, heights


def _clock(axes: Axes, time_zone: str) -> None:
    from matplotlib import dates

    untyped: Any = dates  # its classes carry no types
    zone = ZoneInfo(time_zone)
    locator = untyped.AutoDateLocator(maxticks=8, tz=zone)
    axes.xaxis_date(zone)
    axes.xaxis.set_major_locator(locator)
    # of years, months, days, hours, minutes and seconds, and where the larger unit changes; zeros that end all of the
    # fractions are left out
    formats = ["%Y", "%b %Y", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S.%f"]
    changes = ["", "%Y", "%d %b", "%d %b", "%H:%M", "%H:%M"]
    axes.xaxis.set_major_formatter(
        untyped.ConciseDateFormatter(locator, tz=zone, formats=formats, zero_formats=changes, show_offset=False)
    )
