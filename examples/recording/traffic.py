"""Four weeks of traffic: how many conversations a day brings, when they begin, which agent and which scenario."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from examples.recording.agents import AGENTS, Agent, Story, Talk
from examples.recording.scenarios import database, desk, folder, library, office, web
from examples.recording.world import DAYS, FIRST_DAY

Scenario = Callable[[Talk], Story]

# How often each scenario comes up, relative to the others.
SCENARIOS: dict[Scenario, float] = {
    database.revenue_by_category: 1.6,
    database.customers_of_city: 1.6,
    database.order_status_counts: 1.4,
    database.order_listing: 1.3,
    database.low_stock: 1.4,
    database.best_customers: 1.2,
    database.suppliers_by_rating: 0.9,
    database.error_log_lines: 1.0,
    database.read_during_import: 0.6,
    folder.count_in_log: 2.0,
    folder.sum_of_sales: 1.4,
    folder.read_handbook: 2.8,
    folder.read_some_lines: 1.4,
    folder.read_whole: 2.6,
    folder.read_binary: 0.8,
    folder.write_note: 3.0,
    folder.follow_log: 0.7,
    folder.value_of_config: 1.2,
    folder.copy_report: 1.0,
    folder.compare_months: 0.8,
    web.list_products: 2.6,
    web.product_details: 1.6,
    web.many_product_details: 1.8,
    web.orders_of_status: 2.4,
    web.place_order: 1.4,
    web.stock_of_category: 1.4,
    web.export_report: 2.2,
    web.legacy_feed: 0.5,
    web.weather_for_trip: 8.5,
    office.book_meeting: 3.6,
    office.book_free_slot: 2.6,
    office.mail_colleague: 3.2,
    office.mail_report: 2.4,
    office.mail_many: 1.5,
    desk.price_with_discount: 2.2,
    desk.compound_growth: 4.5,
    desk.average_of_numbers: 1.2,
    desk.exchange_money: 5.0,
    desk.json_to_csv: 2.8,
    desk.csv_to_json: 2.0,
    desk.translate_sentence: 5.5,
    library.find_document: 6.5,
    library.browse_category: 2.0,
    library.search_then_note: 1.2,
}
_HOURS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22)
_HOUR_WEIGHTS = (1, 3, 7, 9, 8, 4, 5, 8, 9, 7, 5, 2, 1, 1)


@dataclass(frozen=True, slots=True)
class Planned:
    """One conversation of the plan."""

    identifier: str  # "day03-c07"
    start: datetime
    agent: Agent
    scenarios: tuple[Scenario, ...]


def plan(seed: int) -> Iterator[Planned]:
    """All conversations, in order of time; a working day brings three times as many as a day of the weekend."""
    rng = random.Random(f"{seed}/traffic")
    beginnings: list[tuple[str, datetime, Agent, int]] = []
    for offset in range(DAYS):
        day = FIRST_DAY + timedelta(days=offset)
        count = rng.randrange(18, 26) if day.weekday() < 5 else rng.randrange(4, 8)
        starts = sorted(
            ((_start(day, agent, rng), agent) for agent in rng.choices(AGENTS, k=count)), key=lambda pair: pair[0]
        )
        beginnings += [
            (f"day{offset + 1:02d}-c{number:02d}", start, agent, 2 if rng.random() < 0.25 else 1)
            for number, (start, agent) in enumerate(starts, start=1)
        ]
    deck = iter(_deck(sum(tasks for *_, tasks in beginnings), rng))
    for identifier, start, agent, tasks in beginnings:
        yield Planned(identifier, start, agent, tuple(next(deck) for _ in range(tasks)))


def _start(day: datetime, agent: Agent, rng: random.Random) -> datetime:
    """Some time of the day where the agent's users are."""
    local = timedelta(hours=rng.choices(_HOURS, weights=_HOUR_WEIGHTS)[0], seconds=rng.randrange(3600))
    return day + local - timedelta(hours=agent.utc_offset)


def _deck(size: int, rng: random.Random) -> list[Scenario]:
    """`size` scenarios or a few more, each as often as its weight says, shuffled: chance leaves none out."""
    share = size / sum(SCENARIOS.values())
    deck = [scenario for scenario, weight in SCENARIOS.items() for _ in range(math.ceil(weight * share))]
    rng.shuffle(deck)
    return deck
