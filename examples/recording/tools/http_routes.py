"""What the HTTP API answers, route by route. Knows nothing of sockets."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from examples.recording.tools.shop import STATUSES, Shop

SLOW_SECONDS = 0.2  # what the export really takes
MAX_PAGE_SIZE = 100
_FORECAST_DAYS = 10
_WEATHER_CITIES = (
    "Lisbon",
    "Porto",
    "Ghent",
    "Graz",
    "Lyon",
    "Oslo",
    "Bergen",
    "Turin",
    "Suzhou",
    "Chengdu",
    "Beijing",
)
_NOT_FOUND_PAGE = "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer. `body`: an object is sent as JSON, a string as HTML."""

    status: int
    body: dict[str, Any] | str
    delay: float = 0.0  # seconds, really slept
    hang_up: bool = False  # close the connection without a word


def _error(status: int, code: str, message: str) -> Reply:
    return Reply(status, {"error": {"code": code, "message": message}})


@dataclass
class ShopRoutes:
    """The shop's routes. Orders that were posted stay."""

    shop: Shop
    placed: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
        item = re.fullmatch(r"/v1/products/([^/]+)", path)
        if item is not None:
            return self._product(method, item[1])
        known = {
            "/v1/products": self._products,
            "/v1/orders": self._orders,
            "/v1/stock": self._stock,
            "/v1/reports/export": self._export,
            "/v1/legacy/feed": self._legacy,
        }.get(path)
        if known is None:
            return Reply(404, _NOT_FOUND_PAGE)
        return known(method, query, body)

    def _product(self, method: str, identifier: str) -> Reply:
        if method != "GET":
            return _error(405, "method_not_allowed", f"{method} is not allowed here")
        product = self.shop.product(int(identifier)) if identifier.isdigit() else None
        if product is None:
            return _error(404, "not_found", f"no product {identifier}")
        return Reply(200, product)

    def _products(self, method: str, query: dict[str, str], body: Any) -> Reply:
        page = _page(query)
        if isinstance(page, Reply):
            return page
        category = query.get("category")
        rows = [row for row in self.shop.products if category in (None, row[2])]
        items = [{"id": row[0], "title": row[1], "unit_price": row[3], "stock": row[4]} for row in rows]
        return Reply(200, {"total": len(items), "items": items[page[0] : page[1]]})

    def _orders(self, method: str, query: dict[str, str], body: Any) -> Reply:
        if method == "POST":
            return self._place(body)
        page = _page(query)
        if isinstance(page, Reply):
            return page
        status = query.get("status")
        if status is not None and status not in STATUSES:
            # The shop's old half answers 200 whatever happened.
            return Reply(200, {"ok": False, "error": f"unknown status '{status}'", "allowed": list(STATUSES)})
        rows = [row for row in self.shop.orders if status in (None, row[3])]
        items = [{"id": row[0], "placed_on": row[2], "status": row[3], "city": row[4]} for row in rows]
        return Reply(200, {"ok": True, "total": len(items), "items": items[page[0] : page[1]]})

    def _place(self, body: Any) -> Reply:
        if not isinstance(body, dict):
            return _error(400, "bad_request", "a JSON body is required")
        missing = [name for name in ("product_id", "quantity", "customer_email") if name not in body]
        if missing:
            return _error(400, "missing_field", f"required: {', '.join(missing)}")
        if not isinstance(body["quantity"], int) or not 1 <= body["quantity"] <= 20:
            return _error(422, "invalid_field", "quantity must be an integer from 1 to 20")
        product = self.shop.product(body["product_id"])
        if product is None:
            return _error(404, "not_found", f"no product {body['product_id']}")
        if body["quantity"] > product["stock"]:
            return _error(409, "out_of_stock", f"only {product['stock']} of product {product['id']} left")
        order = {"order_id": 20001 + len(self.placed), "status": "open", **body}
        self.placed.append(order)
        return Reply(201, order)

    def _stock(self, method: str, query: dict[str, str], body: Any) -> Reply:
        category = query.get("category", "")
        rows = [row for row in self.shop.products if row[2] == category]
        if not rows:
            return Reply(200, {"ok": False, "error": f"category '{category}' does not exist"})
        return Reply(200, {"ok": True, "category": category, "pieces": sum(row[4] for row in rows)})

    def _export(self, method: str, query: dict[str, str], body: Any) -> Reply:
        months = query.get("month", "2026-02")
        lines = [row for row in self.shop.orders if row[2].startswith(months)]
        return Reply(200, {"month": months, "orders": len(lines), "ids": [row[0] for row in lines]}, delay=SLOW_SECONDS)

    def _legacy(self, method: str, query: dict[str, str], body: Any) -> Reply:
        return Reply(0, "", hang_up=True)


def _page(query: dict[str, str]) -> tuple[int, int] | Reply:
    """Positions of the page's first item and of the one after its last, or what is wrong."""
    if "page_size" not in query:
        return _error(400, "missing_parameter", "page_size is required")
    if not query["page_size"].isdigit() or not 1 <= int(query["page_size"]) <= MAX_PAGE_SIZE:
        return _error(422, "out_of_range", f"page_size must be between 1 and {MAX_PAGE_SIZE}")
    page = query.get("page", "1")
    if not page.isdigit() or int(page) < 1:
        return _error(422, "out_of_range", "page must be 1 or more")
    size = int(query["page_size"])
    return (int(page) - 1) * size, int(page) * size


def weather(query: dict[str, str], today: date, *, strict_units: bool) -> Reply:
    """The forecast service. Every answer has status 200; what is wrong stands in the body.

    `strict_units`: since its change the service takes metric and imperial only; before, celsius and fahrenheit too.
    """
    city, units = query.get("city", ""), query.get("units", "metric")
    if city not in _WEATHER_CITIES:
        return Reply(200, {"cod": "404", "message": f"city not found: {city}"})
    allowed = ("metric", "imperial") if strict_units else ("metric", "imperial", "celsius", "fahrenheit")
    if units not in allowed:
        return Reply(200, {"cod": "400", "message": f"units '{units}' no longer supported, use metric or imperial"})
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", query.get("date", "")) is None:
        return Reply(200, {"cod": "400", "message": f"wrong date: '{query.get('date', '')}', expected YYYY-MM-DD"})
    try:
        day = date.fromisoformat(query["date"])
    except ValueError:
        return Reply(200, {"cod": "400", "message": f"wrong date: '{query['date']}' is not in the calendar"})
    if not today <= day <= today + timedelta(days=_FORECAST_DAYS):
        return Reply(200, {"cod": "416", "message": f"date out of range: forecasts reach {_FORECAST_DAYS} days"})
    number = int(hashlib.sha256(f"{city} {day}".encode()).hexdigest()[:8], 16)
    celsius = number % 24 - 2
    imperial = units in ("imperial", "fahrenheit")
    return Reply(
        200,
        {
            "cod": "200",
            "city": city,
            "date": day.isoformat(),
            "sky": ("clear", "clouds", "light rain", "rain", "fog")[number // 24 % 5],
            "temperature": round(celsius * 9 / 5 + 32) if imperial else celsius,
            "units": units,
            "wind_kmh": number // 120 % 40,
            "warning": "storm, risk of failed deliveries" if number // 120 % 40 > 36 else None,
        },
    )
