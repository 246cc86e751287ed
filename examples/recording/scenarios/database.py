"""Questions to the shop's database, and the SQL mistakes that agents make: wrong tables, columns, dialects, dates."""

from __future__ import annotations

from examples.recording.agents import Slip, Step, Story, Talk
from examples.recording.tools.shop import CATEGORIES, CITIES, STATUSES

LIST_TABLES = Step("sql_query", {"query": "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"})
_MONTHS = ("2025-10", "2025-11", "2025-12", "2026-01", "2026-02")


def _columns(table: str) -> Step:
    return Step("sql_query", {"query": f"PRAGMA table_info({table})"})


def _wrong_name(query: str) -> Slip:
    return Slip("wrong_parameter_name", {"sql": query}, weight=0.5)


def revenue_by_category(talk: Talk) -> Story:
    month = talk.pick(_MONTHS)
    talk.ask(f"What did we sell in {month}, by category?", f"{month} 各品类的销售额是多少？")
    select = "SELECT p.category, ROUND(SUM(l.quantity * l.unit_price), 2) AS revenue FROM"
    joins = "JOIN products p ON p.product_id = l.product_id JOIN orders o ON o.order_id = l.order_id"
    right = (
        f"{select} order_lines l {joins} WHERE o.placed_on LIKE '{month}%' GROUP BY p.category ORDER BY revenue DESC"
    )
    year, number = month.split("-")
    american = f"o.placed_on BETWEEN '{number}/01/{year}' AND '{number}/31/{year}'"
    guess = talk.pick(("order_items", "orderlines", "sales"))
    yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("unknown_table", {"query": right.replace("order_lines l", f"{guess} l")}, (LIST_TABLES,), weight=2.5),
            Slip("unknown_column", {"query": right.replace("o.placed_on", "o.order_date")}, (_columns("orders"),), 2),
            Slip(
                "other_sql_dialect", {"query": right.replace("o.placed_on LIKE", "DATE_FORMAT(o.placed_on, '%Y-%m') =")}
            ),
            Slip("syntax_error", {"query": right.replace(" GROUP BY", " GROUP")}, weight=1.2),
            Slip("date_format", {"query": right.replace(f"o.placed_on LIKE '{month}%'", american)}),
            _wrong_name(right),
        ),
        risk=1.1,
    )


def customers_of_city(talk: Talk) -> Story:
    city = talk.pick(list(CITIES))
    talk.ask(
        f"Who are our customers in {city}? I need names and mail addresses.",
        f"我们在 {city} 有哪些客户？请给出姓名和邮箱。",
    )
    right = f"SELECT full_name, email FROM customers WHERE city = '{city}' ORDER BY full_name"
    guess = talk.pick(("clients", "users", "customer"))
    yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("unknown_table", {"query": right.replace("customers", guess)}, (LIST_TABLES,), 2),
            Slip("unknown_column", {"query": right.replace("full_name", "name")}, (_columns("customers"),), 2),
            Slip("wrong_case_value", {"query": right.replace(city, city.lower())}, weight=2),
            Slip("syntax_error", {"query": right.replace(f"'{city}'", f"'{city}")}, weight=0.8),
            _wrong_name(right),
        ),
    )


def order_status_counts(talk: Talk) -> Story:
    status = talk.pick(STATUSES)
    talk.ask(f"How many orders are {status}?", f"状态为 {status} 的订单有多少？")
    right = f"SELECT COUNT(*) AS orders FROM orders WHERE status = '{status}'"
    yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("other_sql_dialect", {"query": "SHOW TABLES"}, (LIST_TABLES,), 2),
            Slip("other_sql_dialect", {"query": "DESCRIBE orders"}, (_columns("orders"),)),
            Slip("unknown_column", {"query": right.replace("status =", "state =")}, (_columns("orders"),)),
            Slip(
                "wrong_case_value",
                {"query": right.replace("COUNT(*) AS orders", "order_id").replace(status, status.title())},
            ),
        ),
    )


def order_listing(talk: Talk) -> Story:
    city, low = talk.pick(list(CITIES)), talk.pick(("2025-11-01", "2025-12-15", "2026-01-10"))
    talk.ask(f"List all orders placed since {low}, newest first.", f"列出 {low} 以来的全部订单，最新的在前。")
    if talk.chance(0.4):
        talk.ask(f"List the orders that went to {city} since {low}.", f"列出 {low} 以来寄往 {city} 的订单。")
        right = f"SELECT * FROM orders WHERE ship_city = '{city}' AND placed_on >= '{low}' ORDER BY placed_on DESC"
    else:
        right = f"SELECT * FROM orders WHERE placed_on >= '{low}' ORDER BY placed_on DESC"
    rows = talk.pick((60, 120, 150, 200))
    yield from talk.attempt(
        "sql_query",
        {"query": right, "max_rows": rows},
        (
            Slip("out_of_range", {"query": right, "max_rows": talk.pick((500, 1000, 0))}, weight=2),
            Slip("wrong_type", {"query": right, "max_rows": talk.pick(("all", "100"))}),
            Slip("wrong_parameter_name", {"query": right, "limit": rows}),
            Slip("unknown_column", {"query": right.replace("placed_on", "created_at")}, (_columns("orders"),)),
        ),
        risk=1.2,
    )


def low_stock(talk: Talk) -> Story:
    category, level = talk.pick(CATEGORIES), talk.pick((10, 15, 20, 40))
    talk.ask(f"Which {category} have fewer than {level} pieces left?", f"{category} 里哪些库存少于 {level} 件？")
    right = f"SELECT title, stock FROM products WHERE category = '{category}' AND stock < {level} ORDER BY stock"
    answer = yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("unknown_column", {"query": right.replace("title,", "name,")}, (_columns("products"),), 2),
            Slip("unknown_table", {"query": right.replace("products", "inventory")}, (LIST_TABLES,), 2),
            Slip("wrong_case_value", {"query": right.replace(f"'{category}'", f"'{category.title()}'")}, weight=2),
            Slip("syntax_error", {"query": right.replace("title, stock", "title stock,")}, weight=0.7),
        ),
    )
    if answer.useful and talk.chance(0.3):
        # The connection is read-only: no repair, and the user is told so.
        change = f"UPDATE products SET stock = stock + 20 WHERE category = '{category}' AND stock < {level}"
        step = Step("sql_query", {"query": change}, "write_to_read_only")
        refused = yield step
        if refused.failed and talk.chance(talk.agent.stubbornness * 2):
            yield step


def best_customers(talk: Talk) -> Story:
    count = talk.pick((3, 5, 10))
    talk.ask(f"Our {count} best customers by money spent?", f"消费最多的 {count} 位客户是谁？")
    right = (
        "SELECT c.customer_id, c.full_name, ROUND(SUM(l.quantity * l.unit_price), 2) AS spent FROM customers c "
        "JOIN orders o ON o.customer_id = c.customer_id JOIN order_lines l ON l.order_id = o.order_id "
        f"GROUP BY c.customer_id ORDER BY spent DESC LIMIT {count}"
    )
    answer = yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("ambiguous_column", {"query": right.replace("SELECT c.customer_id", "SELECT customer_id")}, weight=2),
            Slip("unknown_column", {"query": right.replace("l.unit_price", "l.price")}, (_columns("order_lines"),), 2),
            Slip("other_sql_dialect", {"query": right.replace("SELECT c", f"SELECT TOP {count} c")}),
            Slip("unknown_table", {"query": right.replace("order_lines", "order_items")}, (LIST_TABLES,)),
        ),
        risk=1.2,
    )
    if answer.failed:
        return
    cells = [line.split(" | ") for line in answer.output.splitlines()[1:-1]]
    amounts = [row[-1] for row in cells if len(row) == 3]
    yield from talk.attempt(
        "calculator",
        {"expression": " + ".join(amounts)},
        (Slip("currency_sign", {"expression": " + ".join("€" + amount for amount in amounts)}),),
    )


def suppliers_by_rating(talk: Talk) -> Story:
    low = talk.pick(("3.0", "3.5", "4.0", "4.9"))
    talk.ask(f"Which suppliers are rated {low} or better?", f"哪些供应商评分在 {low} 以上？")
    right = f"SELECT company, country, rating FROM suppliers WHERE rating >= {low} ORDER BY rating DESC"
    yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("unknown_table", {"query": right.replace("suppliers", "vendors")}, (LIST_TABLES,), 2),
            Slip("unknown_column", {"query": right.replace("company", "supplier_name")}, (_columns("suppliers"),)),
            Slip("missing_parameter", {"max_rows": 20}, weight=0.6),
        ),
    )


def error_log_lines(talk: Talk) -> Story:
    day = f"2026-02-{talk.rng.randrange(1, 21):02d}"
    talk.ask(f"Show me the errors that were logged on {day}.", f"给我看 {day} 的错误日志。")
    right = f"SELECT logged_at, message FROM error_log WHERE level = 'ERROR' AND logged_at LIKE '{day}%'"
    yield from talk.attempt(
        "sql_query",
        {"query": right},
        (
            Slip("unknown_table", {"query": right.replace("error_log", "logs")}, (LIST_TABLES,)),
            Slip("wrong_case_value", {"query": right.replace("'ERROR'", "'error'")}, weight=2),
            Slip("unknown_column", {"query": right.replace("level", "severity")}, (_columns("error_log"),)),
        ),
    )


def read_during_import(talk: Talk) -> Story:
    """The import holds a lock: whatever is asked, the database is locked until the import is over."""
    table = talk.pick(("orders", "products", "customers", "order_lines"))
    talk.ask(f"How many rows does {table} have right now?", f"{table} 表现在有多少行？")
    step = Step("sql_query", {"query": f"SELECT COUNT(*) AS n FROM {table}"})
    talk.world.database.lock()
    try:
        yield step
        for _ in range(2):
            if talk.chance(0.3 + talk.agent.stubbornness):
                yield step
    finally:
        talk.world.database.unlock()
    if not talk.chance(talk.agent.impatience * 2):
        yield Step("sql_query", step.arguments, wait=120.0)
