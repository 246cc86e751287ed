"""The world of one recording: the clock, and everything that the tools work on."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from examples.recording.clock import ScriptedClock
from examples.recording.tools.calculator import Calculator
from examples.recording.tools.calendar import CreateEvent, FindSlots, TeamCalendar
from examples.recording.tools.convert import ConvertData
from examples.recording.tools.corpus import build_corpus
from examples.recording.tools.currency import ConvertCurrency
from examples.recording.tools.files import ReadFile, WriteFile
from examples.recording.tools.http_client import GetWeather, HttpRequest
from examples.recording.tools.http_routes import ShopRoutes
from examples.recording.tools.http_server import ApiServer
from examples.recording.tools.outbox import SendEmail
from examples.recording.tools.scratch import fill_scratch
from examples.recording.tools.search import SearchDocuments
from examples.recording.tools.shell import Shell, make_toolbox
from examples.recording.tools.shop import Shop, build_shop
from examples.recording.tools.sql import Database, SqlQuery
from examples.recording.tools.tool import Tool
from examples.recording.tools.translate import TranslateText

FIRST_DAY = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
DAYS = 28
_API_OUTAGE = (16, 17)  # days from the first, on which two of three API requests fail
_RATES_OUTAGE = (8, 9)
_WEATHER_CHANGE = 14  # the forecast service stops taking "celsius" on this day
TOOL_TYPES: tuple[type[Tool], ...] = (
    *(SqlQuery, Shell, ReadFile, WriteFile, HttpRequest, GetWeather, ConvertData, Calculator),
    *(ConvertCurrency, CreateEvent, FindSlots, SendEmail, SearchDocuments, TranslateText),
)


@dataclass
class World:
    """What exists while a recording is made. `conversation` is the one that is going on."""

    clock: ScriptedClock
    shop: Shop
    database: Database
    calendar: TeamCalendar
    tools: dict[str, Tool]
    conversation: str = ""
    facts: dict[str, int] = field(default_factory=dict)  # counters that scenarios share, e.g. of files written


@contextmanager
def open_world(seed: int) -> Iterator[World]:
    """Build the world in a temporary folder, and take it down again."""

    def rng(part: str) -> random.Random:
        return random.Random(f"{seed}/{part}")

    def days(offsets: tuple[int, ...]) -> frozenset[date]:
        return frozenset((FIRST_DAY + timedelta(days=offset)).date() for offset in offsets)

    clock = ScriptedClock(FIRST_DAY)
    shop = build_shop(rng("shop"))
    with tempfile.TemporaryDirectory() as base:
        home = Path(base).resolve()
        scratch, outbox, toolbox = home / "scratch", home / "outbox", home / "bin"
        outbox.mkdir()
        make_toolbox(toolbox)
        fill_scratch(scratch, rng("scratch"))
        database = Database(home / "shop.db", shop)
        server = ApiServer(
            ShopRoutes(shop),
            clock,
            outage_days=days(_API_OUTAGE),
            weather_changes_on=(FIRST_DAY + timedelta(days=_WEATHER_CHANGE)).date(),
        )
        server.start()
        calendar = TeamCalendar.with_usual_events(clock, DAYS + 14, rng("calendar"))
        try:
            world = World(clock, shop, database, calendar, {})
            tools: tuple[Tool, ...] = (
                SqlQuery(database),
                Shell(scratch, toolbox),
                ReadFile(scratch),
                WriteFile(scratch),
                HttpRequest(server.port, lambda: world.conversation),
                GetWeather(server.port),
                ConvertData(),
                Calculator(),
                ConvertCurrency(clock, days(_RATES_OUTAGE)),
                CreateEvent(calendar),
                FindSlots(calendar),
                SendEmail(scratch, outbox, clock),
                SearchDocuments(build_corpus(rng("corpus"))),
                TranslateText(),
            )
            world.tools.update((tool.name, tool) for tool in tools)
            yield world
        finally:
            server.close()
            database.close()
