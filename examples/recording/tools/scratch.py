"""The scratch folder in which file and shell tools work: generated logs, tables and notes."""

from __future__ import annotations

import json
import random
from pathlib import Path

from examples.recording.tools.shop import CITIES

SHOWN_AS = "/scratch"  # the folder's name in every recorded output, wherever it really is

_EVENTS = (
    ("INFO", "checkout order {n} accepted"),
    ("INFO", "cache warmed in {k} ms"),
    ("INFO", "job mail-digest done, {k} messages, 0 failed"),
    ("WARN", "slow query on order_lines, {k} ms"),
    ("ERROR", "payment gateway timed out after 30 s, order {n}"),
    ("ERROR", "label printer not found, parcel {n} queued"),
    ("INFO", "user session {n} closed"),
)
_HANDBOOK = {
    "travel": (
        "# Travel",
        "Book trains up to 600 km, flights beyond.",
        "Hotels: at most 140 EUR per night, breakfast included.",
        "Ask for approval ten working days ahead.",
        "Errors in a booking are corrected by the travel desk, not by the traveller.",
    ),
    "expenses": (
        "# Expenses",
        "Hand in receipts within 30 days.",
        "Meals: 28 EUR per day, no receipt needed below 10 EUR.",
        "Invalid receipts are sent back with a note.",
    ),
    "onboarding": (
        "# Onboarding",
        "Day 1: laptop, badge, mailbox.",
        "Day 2: tour of the warehouse.",
        "Week 2: first delivery shift with a mentor.",
    ),
    "security": (
        "# Security",
        "Passwords live in the vault, never in a file.",
        "Report a lost badge within one hour.",
        "Access denied? Ask the owner of the folder, do not share accounts.",
    ),
}
_NOTES_ZH = """# 会议纪要

一、三月起帐篷促销，折扣为九折。
二、成都仓库缺货：灯具、炉具。
三、林兰负责联系供应商。
四、下次会议：三月二十日。
"""


def fill_scratch(folder: Path, rng: random.Random) -> None:
    """Write the folder's files; the same ones for the same `rng`."""
    for name in ("logs", "data", "docs/handbook", "reports", "images", "archive"):
        (folder / name).mkdir(parents=True)
    _write(folder / "logs/app.log", "".join(_log_line(rng, second) for second in range(140)))
    _write(folder / "logs/worker.log", "".join(_log_line(rng, second) for second in range(45)))
    for month in ("2025_12", "2026_01", "2026_02"):
        _write(folder / f"data/sales_{month}.csv", _sales(rng, month))
    _write(folder / "data/config.json", json.dumps({"currency": "EUR", "retries": 3, "mail": {"port": 2525}}, indent=2))
    _write(folder / "data/colleagues.csv", "name,mailbox\nMira Solberg,mira.solberg\nWei Zhou,wei.zhou\n")
    for topic, lines in _HANDBOOK.items():
        _write(folder / f"docs/handbook/{topic}.md", "\n\n".join(lines) + "\n")
    _write(folder / "docs/会议纪要.md", _NOTES_ZH)
    _write(folder / "docs/release_notes.md", _release_notes(rng))
    for quarter in ("q3", "q4"):
        total = rng.randrange(40000, 90000)
        _write(folder / f"reports/{quarter}_2025.txt", f"Quarter {quarter}, revenue {total} EUR\nReturns: 3 %\n")
    (folder / "reports/q4_2025.pdf").write_bytes(b"%PDF-1.4\n\xff\xfe\x00\x01 scripted, no real document\n")
    (folder / "images/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _log_line(rng: random.Random, second: int) -> str:
    level, message = rng.choice(_EVENTS)
    moment = f"2026-02-27T08:{second // 2:02d}:{rng.randrange(60):02d}Z"
    return f"{moment} {level} {message.format(n=rng.randrange(10001, 10261), k=rng.randrange(20, 900))}\n"


def _sales(rng: random.Random, month: str) -> str:
    lines = ["day,city,category,units,revenue"]
    for day in range(1, 29):
        for category in ("tents", "boots"):
            city = rng.choice(list(CITIES))
            units = rng.randrange(1, 9)
            lines.append(
                f"{month.replace('_', '-')}-{day:02d},{city},{category},{units},{units * rng.randrange(20, 90)}"
            )
    return "\n".join(lines) + "\n"


def _release_notes(rng: random.Random) -> str:
    parts = ["# Release notes"]
    for minor in range(45, 0, -1):
        parts.append(f"## 2.{minor}\n")
        parts += [
            f"- {verb} the {thing} ({rng.randrange(100, 999)})"
            for verb, thing in zip(
                rng.sample(("Faster", "Removed", "Fixed error handling in", "New filter for", "Renamed"), 3),
                rng.sample(("order list", "label printer", "stock page", "mail digest", "search box"), 3),
                strict=True,
            )
        ]
    return "\n".join(parts) + "\n"
