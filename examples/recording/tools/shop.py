"""The shop that the database and the HTTP API know: generated customers, products, orders. All names are made up."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

CITIES = {
    "Lisbon": "Portugal",
    "Porto": "Portugal",
    "Ghent": "Belgium",
    "Graz": "Austria",
    "Lyon": "France",
    "Oslo": "Norway",
    "Bergen": "Norway",
    "Turin": "Italy",
    "Suzhou": "China",
    "Chengdu": "China",
}
CATEGORIES = ("tents", "packs", "boots", "stoves", "lamps")
STATUSES = ("open", "paid", "shipped", "returned", "cancelled")
_FIRST = ("Mira", "Tomas", "Ines", "Jonas", "Lea", "Pavel", "Nora", "Silvio", "Anouk", "Erik", "Wei", "Lan")
_LAST = ("Solberg", "Keller", "Moura", "Brandt", "Vidal", "Novak", "Hagen", "Ricci", "Claes", "Lund", "Zhou", "Lin")
_WORDS = {
    "tents": ("Ridge", "Fjell", "Dune", "Harbor"),
    "packs": ("Trail", "Summit", "Metro", "Canyon"),
    "boots": ("Granite", "Moor", "Pine", "Scree"),
    "stoves": ("Ember", "Kettle", "Spark", "Coal"),
    "lamps": ("Beacon", "Firefly", "Comet", "Wick"),
}
_LOG_LINES = (
    ("INFO", "nightly import finished, 0 errors"),
    ("WARN", "stock of product {n} below 10"),
    ("ERROR", "payment timeout on order {n}"),
    ("ERROR", "invalid card number, order {n} refused"),
    ("INFO", "price list {n} published"),
    ("ERROR", "label printer not found, parcel {n} waits"),
)


@dataclass(frozen=True, slots=True)
class Shop:
    """Rows of the shop's tables, each in the order of its columns."""

    customers: list[tuple[int, str, str, str, str, str]]  # id, full_name, email, city, country, signup_date
    products: list[tuple[int, str, str, float, int]]  # id, title, category, unit_price, stock
    orders: list[tuple[int, int, str, str, str]]  # id, customer_id, placed_on, status, ship_city
    order_lines: list[tuple[int, int, int, float]]  # order_id, product_id, quantity, unit_price
    suppliers: list[tuple[int, str, str, float]]  # id, company, country, rating
    error_log: list[tuple[int, str, str, str]]  # id, logged_at, level, message

    def product(self, product_id: int) -> dict[str, Any] | None:
        """One product as the HTTP API shows it."""
        for row in self.products:
            if row[0] == product_id:
                return dict(zip(("id", "title", "category", "unit_price", "stock"), row, strict=True))
        return None


def build_shop(rng: random.Random) -> Shop:
    """The same shop for the same `rng`."""
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    rng.shuffle(names)
    customers = []
    for number, name in enumerate(names[:70], start=1):
        city = rng.choice(list(CITIES))
        signup = date(2024, 1, 1) + timedelta(days=rng.randrange(700))
        email = name.lower().replace(" ", ".") + f"{number}@example.net"
        customers.append((number, name, email, city, CITIES[city], signup.isoformat()))
    products = _products(rng)
    orders, lines = _orders(rng, products)
    suppliers = [
        (number, company, country, round(rng.uniform(2.5, 5.0), 1))
        for number, (company, country) in enumerate(
            (
                ("Nordkap Textiles", "Norway"),
                ("Alva Metalworks", "Portugal"),
                ("Rietveld Leather", "Belgium"),
                ("Jiangnan Lamps", "China"),
                ("Monte Rosa Gear", "Italy"),
                ("Loire Cordage", "France"),
            ),
            start=1,
        )
    ]
    log = []
    for number in range(1, 61):
        level, message = rng.choice(_LOG_LINES)
        moment = date(2026, 2, 1) + timedelta(days=number // 3)
        logged_at = f"{moment.isoformat()} {rng.randrange(24):02d}:{rng.randrange(60):02d}"
        log.append((number, logged_at, level, message.format(n=rng.randrange(100, 999))))
    return Shop(customers, products, orders, lines, suppliers, log)


def _products(rng: random.Random) -> list[tuple[int, str, str, float, int]]:
    products: list[tuple[int, str, str, float, int]] = []
    for category in CATEGORIES:
        for word in _WORDS[category]:
            for size in ("S", "L"):
                title = f"{word} {category[:-1].title()} {size}"
                products.append(
                    (len(products) + 1, title, category, rng.randrange(900, 32000) / 100, rng.randrange(90))
                )
    return products


def _orders(
    rng: random.Random, products: list[tuple[int, str, str, float, int]]
) -> tuple[list[tuple[int, int, str, str, str]], list[tuple[int, int, int, float]]]:
    orders: list[tuple[int, int, str, str, str]] = []
    lines: list[tuple[int, int, int, float]] = []
    day = date(2025, 9, 1)
    for number in range(10001, 10261):
        day += timedelta(days=rng.choice((0, 0, 1, 1, 1)))
        status = rng.choices(STATUSES, weights=(2, 3, 8, 1, 1))[0]
        orders.append((number, rng.randrange(1, 71), day.isoformat(), status, rng.choice(list(CITIES))))
        bought = rng.sample(products, rng.randrange(1, 4))
        lines += [(number, product[0], rng.randrange(1, 5), product[3]) for product in bought]
    return orders, lines
