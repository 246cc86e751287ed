"""The environment of templates, with filters for texts of calls, figures and times.

Text of calls is escaped, cut, on one line, and without invisible characters.
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
    """Make a Jinja environment. The `templates` of `package` come before the shared ones.

    `texts`: translations by their English text; None: pages are in English.
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
    translations = texts or {}

    def gettext(text: str) -> str:
        return translations.get(text, text)

    def ngettext(one: str, more: str, count: int) -> str:
        return translations.get(more) or (one if count == 1 else more)

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
    """The arguments of a call on one line: `name: value, name: value`."""
    if not isinstance(given, dict):
        return plain(dumped(given), MAX_TEXT)
    parts = [f"{name}: {dumped(value)[: 2 * MAX_TEXT]}" for name, value in list(given.items())[:20]]
    return plain(", ".join(parts), MAX_TEXT)


def recorded(call: str) -> str:
    """The arguments in a `Decision.call`, which is JSON that may be cut, on one line."""
    try:
        return arguments(json.loads(call))
    except (ValueError, RecursionError):
        return plain(call, MAX_TEXT)


def dumped(value: Any) -> str:
    """A value as JSON; a string as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def number(value: float | None) -> str:
    """A number with three digits such as `0.123`, or whole such as `1,235`; "-" for unknown."""
    if value is None:
        return "-"
    if isinstance(value, int) or value >= 999.5:
        return f"{round(value):,}"
    return "<0.001" if 0 < value < 0.001 else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """A duration such as `2.5 s` or `310 ms`; "-" for unknown."""
    if value is None:
        return "-"
    if value >= 1:
        return f"{number(value)} s"
    return f"{number(1000 * value)} ms" if value >= 1e-4 else "<0.1 ms"


def ago(gettext: GetText, moment: datetime) -> str:
    """The time since or until a moment, such as `3 h ago`; beyond 30 days the moment's date."""
    elapsed = (datetime.now(UTC) - moment).total_seconds()
    distance = abs(elapsed)
    if distance > 30 * 86_400:
        return f"{moment:%Y-%m-%d}"
    size, unit = next((each for each in UNITS if distance >= each[0]), UNITS[-1])
    time = f"{int(distance // size)} {gettext(unit)}"
    return gettext(PAST if elapsed >= 0 else FUTURE) % time


def spark(failed: Sequence[bool]) -> str:
    """An SVG path of up to 20 bars, oldest first: the share that failed of each group of calls."""
    size = max(1, math.ceil(len(failed) / SPARK_BARS))
    groups = [failed[i : i + size] for i in range(0, len(failed), size)]
    shares = [sum(each) / len(each) for each in groups]
    return "".join(f"M{4 * i + 2} 16V{15 - 14 * share:.0f}" for i, share in enumerate(shares))
