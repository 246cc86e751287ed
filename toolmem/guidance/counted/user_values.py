"""Values that are the user's own: whom, how much, which one, when. An agent must not trade them for others that worked.

A parameter holds such values where a word of its name says so (`amount`, `recipient`, `order_id`, `rate_date`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from toolmem.guidance.counted import values

_WORDS = frozenset(
    {
        *("amount", "price", "total", "sum", "cost", "fee", "budget", "quantity", "qty", "currency", "balance"),
        *("recipient", "receiver", "payee", "to", "cc", "bcc", "sender", "email", "mail", "phone", "mobile", "address"),
        *("attendee", "participant", "contact", "customer", "client", "user", "username", "person", "passenger"),
        *("id", "uuid", "guid", "number", "account", "iban", "card", "order", "booking", "reservation", "invoice"),
        *("zip", "zipcode", "postcode", "street", "surname", "firstname", "lastname", "passport"),
        *("date", "day", "month", "year", "time", "datetime", "when", "deadline", "due", "birthday", "dob"),
    }
)
_CHINESE = (
    *("金额", "数量", "价格", "收件人", "收款人", "客户", "用户", "姓名", "日期", "时间", "编号", "账号", "订单"),
    *("地址", "电话", "邮箱", "身份证"),
)
_OF_PERSONS = frozenset({"first", "last", "full", "given", "family", "middle"})  # names
_PLACES = frozenset({"page", "line", "row", "column", "port", "version"})  # their number is nobody's
_NAME_WORD = re.compile(r"[A-Za-z]+")
_RUN = re.compile(r"[^\W\d_]+|\d+")


def named_as_own(path: str) -> bool:
    """Whether a word of the parameter's own name says so."""
    words = [word.lower() for word in _NAME_WORD.findall(values.spaced(path.rpartition(".")[2]))]
    known = {*words, *(word.removesuffix("s") for word in words if len(word) > 2)}
    chinese = any(word in path for word in _CHINESE)  # without blanks between words
    own = chinese or bool(known & _WORDS) or ("name" in known and bool(known & _OF_PERSONS))
    return own and not known & _PLACES


def same_in_another_form(before: Any, after: Any) -> bool:
    """Whether two values say the same, written otherwise: '09/03/2026' and '2026-03-09', "4,156.88" and 4156.88."""
    a, b = (values.canonical(side) if isinstance(side, dict | list) else str(side) for side in (before, after))
    return _joined(a) == _joined(b) or sorted(_runs(a)) == sorted(_runs(b))


def _joined(text: str) -> str:
    return "".join(_RUN.findall(text.lower()))


def _runs(text: str) -> Iterable[str]:
    return [run.lstrip("0") or "0" if run.isdigit() else run for run in _RUN.findall(text.lower())]
