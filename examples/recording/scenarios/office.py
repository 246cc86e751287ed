"""Meetings and mail: dates in the wrong form, conflicts, missing attachments, too many recipients."""

from __future__ import annotations

import json
from collections.abc import Generator
from datetime import date, timedelta

from examples.recording.agents import Slip, Step, Story, Talk
from examples.recording.tools.outbox import DOMAIN, MAILBOXES
from examples.recording.tools.tool import Answer

_MEETINGS = (
    ("Price review", "价格评审"),
    ("Stock check", "库存盘点"),
    ("Photo shoot", "产品拍摄"),
    ("Supplier visit", "供应商来访"),
)


def _working_day(talk: Talk) -> date:
    day = talk.world.clock.now().date() + timedelta(days=talk.rng.randrange(1, 12))
    return day + timedelta(days=(7 - day.weekday()) if day.weekday() > 4 else 0)


def _addresses(talk: Talk, count: int) -> list[str]:
    return [f"{name}@{DOMAIN}" for name in talk.rng.sample(MAILBOXES, count)]


def book_meeting(talk: Talk) -> Story:
    """Book at a wished time; a conflict is repaired by asking for free slots."""
    day, hour = _working_day(talk), talk.rng.randrange(9, 17)
    english, chinese = talk.pick(_MEETINGS)
    title = chinese if talk.agent.language == "zh" else english
    minutes = talk.pick((30, 45, 60))
    talk.ask(
        f"Book '{title}' on {day:%A, %d %B} at {hour}:00, {minutes} minutes.",
        f"请在 {day.month} 月 {day.day} 日 {hour} 点安排“{title}”，{minutes} 分钟。",
    )
    attendees = _addresses(talk, 2)
    right = {
        "title": title,
        "start": f"{day}T{hour:02d}:00",
        "duration_minutes": minutes,
        "attendees": attendees,
    }
    answer = yield from talk.attempt(
        "calendar_create_event",
        right,
        (
            Slip("date_format", {**right, "start": day.strftime("%d/%m/%Y") + f" {hour:02d}:00"}, weight=6),
            Slip("date_format", {**right, "start": f"{day} {hour % 12 or 12}{'am' if hour < 12 else 'pm'}"}),
            Slip("wrong_type", {**right, "attendees": ", ".join(attendees)}, weight=1.5),
            Slip("wrong_type", {**right, "duration_minutes": f"{minutes} min"}),
            Slip("out_of_range", {**right, "duration_minutes": 480}),
            Slip("in_the_past", {**right, "start": f"{day - timedelta(days=30)}T{hour:02d}:00"}),
            Slip("outside_working_hours", {**right, "start": f"{day}T{talk.pick((7, 20))}:30".replace("T7", "T07")}),
            Slip("missing_parameter", {"title": title, "start": right["start"]}),
        ),
        risk=1.1,
    )
    if '"conflict"' not in answer.output:
        return
    if talk.chance(talk.agent.stubbornness):
        yield Step("calendar_create_event", right)
    for _ in range(3):
        slots = yield from _free_slots(talk, day, minutes)
        if slots:
            yield Step("calendar_create_event", {**right, "start": talk.pick(slots)})
            return
        day += timedelta(days=1 if day.weekday() < 4 else 3)


def _free_slots(talk: Talk, day: date, minutes: int) -> Generator[Step, Answer, list[str]]:
    right = {"date": day.isoformat(), "duration_minutes": minutes}
    answer = yield from talk.attempt(
        "calendar_find_slots",
        right,
        (Slip("date_format", {**right, "date": f"{day:%d/%m/%Y}"}), Slip("date_format", {**right, "date": "tomorrow"})),
        risk=0.15,
    )
    slots: list[str] = [] if answer.failed else json.loads(answer.output)["slots"]
    return slots


def book_free_slot(talk: Talk) -> Story:
    """The careful way: first look, then book."""
    day, minutes = _working_day(talk), talk.pick((30, 60, 90))
    talk.ask(
        f"Find us {minutes} minutes on {day:%A, %d %B} and book them.",
        f"{day.month} 月 {day.day} 日帮我们找 {minutes} 分钟并预定。",
    )
    slots = yield from _free_slots(talk, day, minutes)
    if slots:
        title = "项目讨论" if talk.agent.language == "zh" else "Project talk"
        right = {"title": title, "start": talk.pick(slots), "duration_minutes": minutes}
        yield from talk.attempt(
            "calendar_create_event",
            right,
            (Slip("wrong_parameter_name", {"title": title, "start_time": right["start"], "duration": minutes}),),
            risk=0.6,
        )


def mail_colleague(talk: Talk) -> Story:
    (address,) = _addresses(talk, 1)
    name = address.partition("@")[0]
    first = name.partition(".")[0].title()
    talk.ask(f"Tell {first} that the delivery is late.", f"告诉 {first} 货物要迟到了。")
    english = ("Delivery", f"Dear {first}, the delivery is two days late. Sorry for the trouble.")
    subject, body = ("发货", f"{first}，您好：货物将晚到两天，抱歉。") if talk.agent.language == "zh" else english
    right = {"to": [address], "subject": subject, "body": body}
    yield from talk.attempt(
        "send_email",
        right,
        (
            Slip("invalid_address", {**right, "to": [name]}, weight=2),
            Slip("invalid_address", {**right, "to": [first]}, weight=1.2),
            Slip("unknown_mailbox", {**right, "to": [f"{first.lower()}@{DOMAIN}"]}, weight=4),
            Slip("wrong_type", {**right, "to": address}, weight=2),
            Slip("missing_parameter", {"to": [address], "body": body}),
            Slip("empty_subject", {**right, "subject": ""}, weight=0.7),
        ),
    )


def mail_report(talk: Talk) -> Story:
    quarter = talk.pick(("q3", "q4"))
    (address,) = _addresses(talk, 1)
    talk.ask(f"Mail the {quarter} report to {address}.", f"把 {quarter} 的报告发给 {address}。")
    right = {
        "to": [address],
        "subject": f"Report {quarter}",
        "body": "Please find the report attached.",
        "attachments": [f"reports/{quarter}_2025.txt"],
    }
    look = Step("shell", {"command": "find . -name '*q[34]*' | sort"})
    yield from talk.attempt(
        "send_email",
        right,
        (
            Slip("wrong_path", {**right, "attachments": [f"{quarter}_report.pdf"]}, (look,), 3),
            Slip("wrong_path", {**right, "attachments": [f"{quarter}_2025.txt"]}, (look,), 2),
            Slip("wrong_parameter_name", {**{k: v for k, v in right.items() if k != "to"}, "recipient": address}),
            Slip("wrong_type", {**right, "attachments": f"reports/{quarter}_2025.txt"}),
        ),
        risk=1.2,
    )


def mail_many(talk: Talk) -> Story:
    count = talk.pick((6, 7, 8))
    addresses = _addresses(talk, count)
    talk.ask(f"Tell {count} colleagues that the warehouse is closed on Friday.", f"通知 {count} 位同事：周五仓库关闭。")
    mail = {"subject": "Warehouse closed", "body": "The warehouse is closed on Friday."}
    if talk.chance(0.35 + talk.agent.carelessness):
        step = Step("send_email", {"to": addresses, **mail}, "too_many_recipients")
        answer = yield step
        if answer.failed and talk.chance(talk.agent.stubbornness):
            yield step
    for part in (addresses[:4], addresses[4:]):
        yield Step("send_email", {"to": part, **mail})
