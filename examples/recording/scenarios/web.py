"""Requests to the shop's HTTP API and to the forecast service: paging, limits, time-outs, errors under status 200."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from examples.recording.agents import Slip, Step, Story, Talk
from examples.recording.tools.shop import CATEGORIES, STATUSES

_CITIES_ZH = {
    "Suzhou": "苏州",
    "Chengdu": "成都",
    "Beijing": "北京",
    "Lisbon": "里斯本",
    "Oslo": "奥斯陆",
    "Lyon": "里昂",
}


def _get(path: str, **query: Any) -> dict[str, Any]:
    return {"path": path, "query": query} if query else {"path": path}


def list_products(talk: Talk) -> Story:
    category, size = talk.pick(CATEGORIES), talk.pick((5, 10, 20, 50, 100))
    talk.ask(f"Show me {size} products of the category {category}.", f"列出 {category} 类的 {size} 个商品。")
    yield from talk.attempt(
        "http_request",
        _get("/v1/products", category=category, page_size=size),
        (
            Slip("missing_page_size", _get("/v1/products", category=category), weight=5),
            Slip(
                "out_of_range", _get("/v1/products", category=category, page_size=talk.pick((200, 500, 1000))), weight=2
            ),
            Slip("out_of_range", _get("/v1/products", category=category, page_size=size, page=0)),
            Slip("wrong_path", _get("/products", category=category, page_size=size), weight=1.2),
            Slip("full_address", _get("https://shop.example.com/v1/products", page_size=size)),
            Slip("wrong_parameter_name", {"url": "/v1/products", "params": {"page_size": size}}),
        ),
        risk=1.2,
    )


def product_details(talk: Talk) -> Story:
    number = talk.rng.randrange(1, 41)
    talk.ask(f"What does product {number} cost?", f"商品 {number} 多少钱？")
    yield from talk.attempt(
        "http_request",
        _get(f"/v1/products/{number}"),
        (
            Slip("unknown_identifier", _get(f"/v1/products/P-{number:03d}"), weight=1.5),
            Slip("unknown_identifier", _get(f"/v1/products/{number + 900}")),
            Slip("wrong_path", _get(f"/v1/product/{number}")),
            Slip("wrong_method", {**_get(f"/v1/products/{number}"), "method": "POST"}, weight=0.7),
        ),
    )


def many_product_details(talk: Talk) -> Story:
    """One request per product without a pause: the fifth one within a minute is refused."""
    count = talk.pick((5, 6, 7))
    talk.ask(f"Compare the prices of {count} products one by one.", f"逐个比较 {count} 个商品的价格。")
    talk.hurried = True
    for number in talk.rng.sample(range(1, 41), count):
        answer = yield from talk.insist(Step("http_request", _get(f"/v1/products/{number}")))
        if answer.failed:
            return


def orders_of_status(talk: Talk) -> Story:
    status, size = talk.pick(STATUSES), talk.pick((5, 10, 25))
    talk.ask(f"Give me {size} {status} orders from the API.", f"从接口取 {size} 个 {status} 状态的订单。")
    wrong = {"open": "pending", "paid": "done", "shipped": "sent", "returned": "refunded", "cancelled": "canceled"}[
        status
    ]
    yield from talk.attempt(
        "http_request",
        _get("/v1/orders", status=status, page_size=size),
        (
            Slip("unknown_status", _get("/v1/orders", status=wrong, page_size=size), weight=3),
            Slip("missing_page_size", _get("/v1/orders", status=status), weight=2),
            Slip("page_too_far", _get("/v1/orders", status=status, page_size=size, page=400)),
            Slip("wrong_type", {"path": "/v1/orders", "query": f"status={status}&page_size={size}"}),
        ),
        risk=1.2,
    )


def place_order(talk: Talk) -> Story:
    number, quantity = talk.rng.randrange(1, 41), talk.pick((1, 2, 3))
    talk.ask(f"Order {quantity} pieces of product {number} for me.", f"帮我订购 {quantity} 件商品 {number}。")
    body = {"product_id": number, "quantity": quantity, "customer_email": "mira.solberg@example.net"}
    post = {"method": "POST", "path": "/v1/orders"}
    yield from talk.attempt(
        "http_request",
        {**post, "body": body},
        (
            Slip("missing_field", {**post, "body": {"product_id": number, "quantity": quantity}}, weight=2),
            Slip("wrong_type", {**post, "body": {**body, "quantity": str(quantity)}}),
            Slip("out_of_range", {**post, "body": {**body, "quantity": 500}}),
            Slip("missing_body", post),
            Slip("wrong_method", {"method": "PUT", "path": f"/v1/products/{number}", "body": body}, weight=0.6),
        ),
    )


def stock_of_category(talk: Talk) -> Story:
    category = talk.pick(CATEGORIES)
    talk.ask(f"How many {category} are in stock altogether?", f"{category} 一共还有多少库存？")
    yield from talk.attempt(
        "http_request",
        _get("/v1/stock", category=category),
        (
            Slip("unknown_identifier", _get("/v1/stock", category=category[:-1]), weight=2),
            Slip("missing_field", _get("/v1/stock")),
        ),
    )


def export_report(talk: Talk) -> Story:
    """The export takes its time: a short time-out fails every time, a long one never."""
    month = talk.pick(("2025-10", "2025-11", "2025-12", "2026-01", "2026-02"))
    talk.ask(f"Export the orders of {month}.", f"导出 {month} 的订单。")
    hasty = {**_get("/v1/reports/export", month=month), "timeout_ms": talk.pick((20, 30, 50))}
    slip = Slip("timeout_too_short", hasty)
    yield from talk.attempt("http_request", {**hasty, "timeout_ms": talk.pick((3000, 5000))}, (slip,), risk=1.9)


def legacy_feed(talk: Talk) -> Story:
    talk.ask("Fetch the old product feed.", "取一下旧的商品数据。")
    step = Step("http_request", _get("/v1/legacy/feed"))
    answer = yield step
    if answer.failed and talk.chance(0.3 + talk.agent.stubbornness):
        yield step
    yield from talk.attempt("http_request", _get("/v1/products", page_size=20))


def weather_for_trip(talk: Talk) -> Story:
    city = talk.pick(list(_CITIES_ZH))
    ahead = talk.rng.randrange(0, 9)
    day = talk.world.clock.now().date() + timedelta(days=ahead)
    talk.ask(
        f"What will the weather be in {city} in {ahead} days?" if ahead else f"How is the weather in {city} today?",
        f"{_CITIES_ZH[city]} {ahead} 天后天气怎么样？" if ahead else f"{_CITIES_ZH[city]} 今天天气如何？",
    )
    right = {"city": city, "date": day.isoformat(), "units": "metric"}
    # Agents have "celsius" in their habits; it works until the service changes.
    if talk.chance(0.55):
        celsius = {**right, "units": "celsius"}
        answer = yield Step("get_weather", celsius)
        if not answer.failed:
            return
        if talk.chance(talk.agent.stubbornness):
            yield Step("get_weather", celsius)
    european = day.strftime("%d/%m/%Y")
    local_name = Slip(
        "name_not_english", {**right, "city": _CITIES_ZH[city]}, weight=4 if talk.agent.language == "zh" else 0.1
    )
    yield from talk.attempt(
        "get_weather",
        right,
        (
            local_name,
            Slip("date_format", {**right, "date": european}, weight=5),
            Slip("date_format", {**right, "date": "tomorrow"}),
            Slip("out_of_range", {**right, "date": (day + timedelta(days=20)).isoformat()}),
            Slip("unknown_city", {**right, "city": city + ", " + city[:2].upper()}),
            Slip("missing_parameter", {"city": city}),
            Slip("wrong_parameter_name", {"location": city, "date": day.isoformat()}, weight=0.8),
        ),
    )
