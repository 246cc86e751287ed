"""The report in a real browser: tables are sorted, cards are found, and no foreign script runs."""

import json

import pytest
from console_site.pages import violations

from toolmem.research.evaluation import evaluate
from toolmem.research.report import write_page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
HOSTILE = (
    "\"'></script></code></title><img src=x onerror=alert(1)>{{7*7}}{% raw %}\u202e\x1b[31m${1}"
)


@pytest.fixture
def open_page(chromium, tmp_path):
    """Opens the report of a recording; `page.alerts` holds what a script of the recording says."""
    contexts = []

    def opened(*records, **context):
        path = tmp_path / "calls.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
        contexts.append(chromium.new_context(**context))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.alerts = []
        page.on("dialog", lambda dialog: (page.alerts.append(dialog.message), dialog.dismiss()))
        page.goto(write_page(evaluate(path), tmp_path).as_uri())
        return page

    yield opened
    for each in contexts:
        each.close()


def failing(tool, error, count, **more):
    """Calls of a tool: `count` that failed with an error, and two that worked."""
    call = {"tool_name": tool, "input": {"q": "x"}, **more}
    return [*[call | {"output": f"Error: {error}"}] * count, *[call | {"output": "ok"}] * 2]


RECORDS = [
    *failing("mail", "the mailbox is full", 12, time_cost=0.5),
    *failing("search", "no such index", 3, time_cost=2.0),
    *failing("Shell", "permission denied", 4),
]


def test_a_table_is_sorted_by_its_heads_numbers_as_numbers_and_the_unknown_last(open_page):
    page = open_page(*RECORDS)
    table = page.get_by_role("region", name="Table of tools")

    def tools_by(name, keyboard=False):
        head = table.get_by_role("columnheader", name=name, exact=True)
        button = head.get_by_role("button")
        button.press("Enter") if keyboard else button.click()
        tools = [each.split()[0] for each in table.locator("tbody tr").all_inner_texts()]
        return head.get_attribute("aria-sort"), tools

    assert tools_by("failed") == ("descending", ["mail", "Shell", "search"])
    assert tools_by("failed", keyboard=True) == ("ascending", ["search", "Shell", "mail"])
    assert tools_by("tool") == ("ascending", ["mail", "search", "Shell"])
    assert tools_by("time: median, 95 %") == ("descending", ["search", "mail", "Shell"])
    assert tools_by("time: median, 95 %") == ("ascending", ["mail", "search", "Shell"])
    assert table.locator("[aria-sort]").count() == 1


def test_cards_are_found_by_name_and_text_as_one_types_and_a_link_leads_to_a_hidden_one(open_page):
    page = open_page(*RECORDS)
    cards, field = page.locator("details:visible"), page.get_by_role("searchbox")
    assert cards.count() == 3
    field.press_sequentially("DENIED permission")
    assert (cards.count(), page.get_by_role("status").inner_text()) == (1, "1 of 3")
    assert "Shell" in cards.inner_text()
    page.locator(".first .head").get_by_role("link", name="search").click()
    assert cards.count() == 2
    assert "no such index" in cards.nth(0).inner_text() + cards.nth(1).inner_text()
    field.fill("")
    assert cards.count() == 3


def test_without_a_script_all_cards_stand_there_and_nothing_asks_for_a_click(open_page):
    page = open_page(*RECORDS, java_script_enabled=False)
    assert page.locator("details:visible").count() == 3
    assert page.locator("button:visible, input:visible").count() == 0


def test_the_report_is_accessible_at_both_widths_and_in_both_schemes(open_page):
    page = open_page(*RECORDS, bypass_csp=True)
    for width in (400, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page, f"{width} {scheme}") == []


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1400, "light")])
def test_a_hostile_recording_runs_no_script_and_makes_the_page_no_wider(open_page, width, scheme):
    calls = failing(HOSTILE, HOSTILE, 2) + failing("W" * 100, "V" * 1_000_000, 2, success=True)
    calls += failing("short", "W" * 300, 3, context=f"Never {HOSTILE}")
    calls.append({"tool_name": HOSTILE, "time_cost": HOSTILE})
    screen = {"width": width, "height": 900}
    page = open_page(*calls, viewport=screen, color_scheme=scheme, bypass_csp=True)
    for button in page.locator("th button:visible").all():
        button.click()
    page.get_by_role("searchbox").fill(HOSTILE)
    page.get_by_role("searchbox").fill("")
    assert page.alerts == []
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert not {"\u202e", "\x1b"} & set(page.content())
