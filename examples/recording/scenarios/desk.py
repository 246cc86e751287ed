"""Small desk work: sums, currencies, conversions, translations."""

from __future__ import annotations

import json
from datetime import date, timedelta

from examples.recording.agents import Slip, Story, Talk
from examples.recording.tools.currency import RATES
from examples.recording.tools.translate import MAX_CHARACTERS

_SENTENCES = {
    "en": (
        "good morning, the order is late",
        "the tent is broken, please",
        "the meeting is closed today",
        "thank you, the lamp is ready",
    ),
    "de": ("guten Morgen, die Bestellung ist fertig", "das Lager ist geschlossen", "der Fehler wurde behoben, danke"),
    "zh": ("早上好，订单迟到了", "帐篷坏了", "错误修好了，谢谢", "仓库今天关闭了"),
}


def price_with_discount(talk: Talk) -> Story:
    price, percent, count = talk.rng.randrange(1200, 90000) / 100, talk.pick((5, 10, 15, 20)), talk.rng.randrange(2, 40)
    talk.ask(
        f"{count} pieces at {price} EUR with {percent}% off: how much?",
        f"{count} 件，每件 {price} 欧元，打折 {percent}%，一共多少？",
    )
    right = f"{count} * {price} * (1 - {percent}/100)"
    yield from talk.attempt(
        "calculator",
        {"expression": right},
        (
            Slip("percent_sign", {"expression": f"{count} * {price} - {percent}%"}, weight=3.5),
            Slip("currency_sign", {"expression": f"{count} * €{price} * (1 - {percent}/100)"}),
            Slip("letter_for_times", {"expression": f"{count} x {price} x (1 - {percent}/100)"}, weight=1.5),
            Slip("unbalanced_parenthesis", {"expression": right.removesuffix(")")}),
            Slip("wrong_parameter_name", {"expr": right}),
        ),
    )


def compound_growth(talk: Talk) -> Story:
    amount, rate, years = talk.rng.randrange(10, 90) * 1000, talk.pick((2, 3, 4.5, 6)), talk.rng.randrange(3, 15)
    talk.ask(
        f"What do {amount} EUR become in {years} years at {rate} percent?",
        f"{amount} 欧元年利率 {rate}%，{years} 年后是多少？",
    )
    yield from talk.attempt(
        "calculator",
        {"expression": f"{amount} * (1 + {rate}/100) ** {years}"},
        (
            Slip("caret_for_power", {"expression": f"{amount} * (1 + {rate}/100)^{years}"}, weight=7),
            Slip("thousands_separator", {"expression": f"{amount:,} * (1 + {rate}/100) ** {years}"}, weight=1.5),
            Slip("unknown_function", {"expression": f"{amount} * pow(1 + {rate}/100, {years})"}, weight=1.5),
        ),
        risk=1.2,
    )


def average_of_numbers(talk: Talk) -> Story:
    numbers = [str(talk.rng.randrange(10, 900)) for _ in range(talk.pick((3, 4, 5)))]
    talk.ask(f"The mean of {', '.join(numbers)}?", f"{'、'.join(numbers)} 的平均数是多少？")
    yield from talk.attempt(
        "calculator",
        {"expression": f"round(({' + '.join(numbers)}) / {len(numbers)}, 2)"},
        (
            Slip("unknown_function", {"expression": f"mean({', '.join(numbers)})"}, weight=2),
            Slip("unknown_function", {"expression": f"sum([{', '.join(numbers)}]) / {len(numbers)}"}),
            Slip("division_by_zero", {"expression": f"({' + '.join(numbers)}) / 0"}, weight=0.7),
            Slip("wrong_type", {"expression": int(numbers[0])}, weight=0.6),
        ),
    )


def exchange_money(talk: Talk) -> Story:
    source, target = talk.rng.sample(list(RATES), 2)
    amount = talk.rng.randrange(100, 500000) / 100
    talk.ask(f"How much is {amount} {source} in {target}?", f"{amount} {source} 等于多少 {target}？")
    right: dict[str, object] = {"amount": amount, "from_currency": source, "to_currency": target}
    last_year = f"{date(2025, 3, 1) + timedelta(days=talk.rng.randrange(200)):%m/%d/%Y}"
    friday = date(2026, 2, 27) - timedelta(days=7 * talk.rng.randrange(8))
    symbols = {"EUR": "€", "USD": "$", "GBP": "£", "CNY": "人民币", "JPY": "yen", "NOK": "krone", "CHF": "franc"}
    dated = talk.chance(0.35)
    slips = [
        Slip("not_in_enum", {**right, "from_currency": symbols[source]}, weight=3.5),
        Slip("not_in_enum", {**right, "to_currency": target.lower()}),
        Slip("wrong_type", {**right, "amount": f"{amount:,}"}, weight=1.5),
        Slip("out_of_range", {**right, "amount": -amount}, weight=0.6),
        Slip("wrong_parameter_name", {"amount": amount, "from": source, "to": target}, weight=1.2),
    ]
    if dated:
        talk.ask(
            f"What was {amount} {source} worth in {target} around {friday}?",
            f"{friday} 前后 {amount} {source} 值多少 {target}？",
        )
        right = {**right, "rate_date": friday.isoformat()}
        slips += [
            Slip("not_a_banking_day", {**right, "rate_date": (friday + timedelta(days=1)).isoformat()}, weight=3),
            Slip("date_format", {**right, "rate_date": last_year}, weight=2),
        ]
    yield from talk.attempt("convert_currency", right, slips)


def _rows(talk: Talk) -> list[dict[str, object]]:
    names = ("Ridge Tent", "Moor Boot", "Ember Stove", "Wick Lamp", "Trail Pack", "山脊帐篷", "营地灯")
    return [
        {"title": name, "price": talk.rng.randrange(900, 20000) / 100, "stock": talk.rng.randrange(60)}
        for name in talk.rng.sample(names, talk.rng.randrange(2, 6))
    ]


def json_to_csv(talk: Talk) -> Story:
    rows = _rows(talk)
    data = json.dumps(rows, ensure_ascii=False)
    talk.ask("Make a table for the spreadsheet out of this list.", "把这个列表转成表格。")
    right = {"data": data, "sourceFormat": "json", "targetFormat": "csv"}
    nested = [{**row, "size": {"width": 40, "height": 60}} for row in rows]
    yield from talk.attempt(
        "convertData",
        right,
        (
            Slip("single_quotes", {**right, "data": str(rows)}, weight=6),
            Slip("nested_data", {**right, "data": json.dumps(nested, ensure_ascii=False)}, weight=4),
            Slip("one_object", {**right, "data": json.dumps(rows[0], ensure_ascii=False)}),
            Slip("cut_off", {**right, "data": data[: len(data) * 2 // 3]}),
            Slip("not_in_enum", {**right, "targetFormat": talk.pick(("xlsx", "excel", "CSV"))}, weight=1.5),
            Slip("wrong_parameter_name", {"data": data, "from": "json", "to": "csv"}, weight=1.5),
            Slip("wrong_type", {**right, "data": rows}, weight=1.5),
        ),
        risk=1.3,
    )


def csv_to_json(talk: Talk) -> Story:
    rows = _rows(talk)
    lines = ["title,price,stock", *(f"{row['title']},{row['price']},{row['stock']}" for row in rows)]
    right = {"data": "\n".join(lines), "sourceFormat": "csv", "targetFormat": "json"}
    talk.ask("Turn this table into JSON.", "把这个表格转成 JSON。")
    ragged = [*lines[:-1], lines[-1] + ",2,5"]
    semicolons = {**right, "data": "\n".join(lines).replace(",", ";")}
    if talk.chance(0.3):
        right = {**semicolons, "delimiter": ";"}
    yield from talk.attempt(
        "convertData",
        right,
        (
            Slip(
                "uneven_rows",
                {**right, "data": "\n".join(ragged).replace(",", str(right.get("delimiter", ",")))},
                weight=2,
            ),
            Slip("wrong_delimiter", semicolons, weight=4),
            Slip("wrong_delimiter", {**right, "delimiter": "semicolon"}),
            Slip("missing_parameter", {"data": right["data"], "targetFormat": "json"}),
            Slip("no_rows", {**right, "data": lines[0]}, weight=0.7),
        ),
        risk=1.2,
    )


def translate_sentence(talk: Talk) -> Story:
    source = talk.pick(("en", "de", "zh"))
    target = talk.pick([code for code in ("en", "de", "fr", "zh") if code != source])
    text = talk.pick(_SENTENCES[source])
    names = {"en": ("English", "英语"), "de": ("German", "德语"), "fr": ("French", "法语"), "zh": ("Chinese", "中文")}
    talk.ask(f"Translate into {names[target][0]}: {text}", f"翻译成{names[target][1]}：{text}")
    right = {"text": text, "source_language": source, "target_language": target}
    yield from talk.attempt(
        "translate_text",
        right,
        (
            Slip("unknown_language", {**right, "source_language": talk.pick(("auto", "auto", "unknown"))}, weight=5),
            Slip("unknown_language", {**right, "target_language": names[target][0]}, weight=2),
            Slip("text_too_long", {**right, "text": " ".join([text] * (MAX_CHARACTERS // len(text) + 1))}),
            Slip("swapped_languages", {**right, "source_language": target, "target_language": source}),
            Slip("missing_parameter", {"text": text, "target_language": target}, weight=1.5),
        ),
    )
