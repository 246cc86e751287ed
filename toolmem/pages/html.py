"""The environment of templates, and how they show texts of calls, figures and times.

Text of calls is escaped, on one line, cut, and without invisible characters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from toolmem.text.display import counted, marked, plain, shown_name

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_NAME = 80  # characters of a tool's name
MAX_TEXT = 300  # characters of another text
SPARK_BARS = 20
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
PAST = "%s ago"
FUTURE = "in %s"
UNKNOWN = "unknown"
GetText = Callable[[str], str]


def environment(package: str, texts: Mapping[str, str] | None = None) -> Environment:
    """`package`: its folder `templates` comes before the shared one.

    `texts`: those of another language, by the English ones; None: pages are in English.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("toolmem.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.i18n"],
    )
    texts = texts or {}

    def gettext(text: str) -> str:
        return texts.get(text, text)

    def ngettext(one: str, more: str, count: int) -> str:
        return texts.get(more) or (one if count == 1 else more)

    install: Any = made
    install.install_gettext_callables(gettext, ngettext, newstyle=True)
    made.policies["ext.i18n.trimmed"] = True
    made.filters.update(
        name=lambda text: shown_name(text, MAX_NAME),
        text=lambda text, limit=MAX_TEXT: plain(text, limit),
        arguments=arguments,
        recorded=recorded,
        json=dumped,
        whole=lambda value: marked(dumped(value)),
        percent=lambda share: gettext(UNKNOWN) if share is None else f"{100 * share:.1f} %",
        number=number,
        counted=counted,
        seconds=seconds,
        ago=partial(ago, gettext),
        spark=spark,
    )
    return made


def arguments(given: Any) -> str:
    """The arguments of a call on one line: `name: value` of each."""
    if not isinstance(given, dict):
        return plain(dumped(given), MAX_TEXT)
    parts = [f"{name}: {dumped(value)[: 2 * MAX_TEXT]}" for name, value in list(given.items())[:20]]
    return plain(", ".join(parts), MAX_TEXT)


def recorded(call: str) -> str:
    """The arguments of a decision's call, which were kept as JSON and may have been cut."""
    try:
        return arguments(json.loads(call))
    except (ValueError, RecursionError):
        return plain(call, MAX_TEXT)


def dumped(value: Any) -> str:
    """A value as JSON; a text as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def number(value: float | None) -> str:
    """Short, with a comma at thousands; "-" for unknown."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return "<0.001" if 0 < value < 0.001 else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """A duration, in milliseconds below one second."""
    if value is None:
        return "-"
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms" if value >= 1e-4 else "<0.1 ms"


def ago(gettext: GetText, moment: datetime) -> str:
    """How long ago, in the largest unit; days become a date after a month."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    if abs(seconds) > 30 * 86_400:
        return f"{moment:%Y-%m-%d}"
    size, unit = next((each for each in UNITS if abs(seconds) >= each[0]), UNITS[-1])
    time = f"{int(abs(seconds) // size)} {gettext(unit)}"
    return gettext(PAST if seconds >= 0 else FUTURE) % time


def spark(failed: Sequence[bool]) -> str:
    """An SVG path: for each of 20 stretches, oldest first, a bar as high as its share failed."""
    size = max(1, math.ceil(len(failed) / SPARK_BARS))
    stretches = [failed[i : i + size] for i in range(0, len(failed), size)]
    shares = [sum(each) / len(each) for each in stretches]
    return "".join(f"M{4 * i + 2} 16V{15 - 14 * share:.0f}" for i, share in enumerate(shares))
