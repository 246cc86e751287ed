"""What the pages of the console show."""

import csv
import html
import re

import pytest
from starlette.testclient import TestClient

from toolmem import ToolMem
from toolmem.errors import StoreUnavailable
from toolmem.pages.html import number, seconds
from toolmem.rules.changes import Actor
from toolmem.server.access import Access
from toolmem.server.console.call_views import calls, find_calls
from toolmem.server.console.paging import PAGE
from toolmem.server.console.tables import csv_of
from toolmem.server.console.tool_views import changed_inputs, tools
from toolmem.server.console.views import VIEWS
from toolmem.server.http import application

FIELDS = r'<input type="hidden"[^>]*>|<input name="tool_name"[^>]*>|<textarea.*?</textarea>'
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202eevil"


def test_home_names_the_tool_to_fix_first_and_why(browser):
    page = browser.open("")
    assert "Fix these tools first" in page and "4 of 12 calls" in page
    assert "mailbox full" in page


def test_a_line_of_a_card_opens_its_calls(browser, memory):
    lines = memory.services.store().records("default")[0].guidance.lines
    index = next(i for i, line in enumerate(lines) if line.kind == "failure")
    found = find_calls(memory, {"of": "send_email", "line": str(index)})
    assert {each.id for each in found} == set(lines[index].call_ids)
    assert f"line={index}" in browser.open("tool", name="send_email")


@pytest.mark.parametrize("page", ["", "tool?name=send_email", "calls", "calls?outcome=failed"])
def test_every_call_that_is_listed_can_be_opened(browser, page):
    text = browser.client.get(f"/w/default/{page}").text
    found = re.findall(r'href="(/w/default/call\?[^"]+)"', text)
    assert found or page == ""
    for address in found:
        answer = browser.client.get(html.unescape(address))
        assert answer.status_code == 200
        assert "mailbox full" in answer.text or "sent" in answer.text


def test_a_call_that_left_the_window_can_still_be_opened(browser, memory):
    memory.add([{"tool_name": "t", "id": str(n), "output": "x"} for n in range(130)])
    assert memory.services.store().records("default", ["t"])[0].first_seq > 1
    page = browser.open("call", tool="t", id="0")
    assert ">Newer</a>" in page and ">Older</a>" not in page


def test_calls_are_found_by_text_outcome_and_conversation(memory):
    def ids(**query):
        return [each.id for each in find_calls(memory, query)]

    assert ids(q="USER7@") == ["c7"]
    assert ids(q="100%") == []  # no wildcard
    assert ids(outcome="failed", conversation="talk") == ["c0", "c3", "c6", "c9"]
    assert ids(conversation="other") == []


def test_older_calls_follow_without_gap_or_repetition(memory):
    memory.add([{"tool_name": "t", "id": str(n), "output": "x"} for n in range(2 * PAGE + 7)])
    seen, before = [], ""
    while before is not None:
        page = calls(memory, {"tool": "t", "before": str(before)})
        seen += [each.id for each in page["found"]]
        before = page["more"]
    assert seen == [str(n) for n in reversed(range(2 * PAGE + 7))]


@pytest.mark.parametrize("outcome", ["", "failed", "worked"])
def test_the_csv_of_a_list_holds_the_calls_that_older_leads_to(memory, outcome):
    call = {"tool_name": "http_request", "output": "x"}
    memory.add([{**call, "id": f"c{n}", "success": n % 7 > 0} for n in range(700)])
    memory.add([{"tool_name": "other", "output": "x", "success": False}])
    query = {"tool": "http_request", "outcome": outcome}
    seen, before = [], ""
    while before is not None:
        page = calls(memory, {**query, "before": str(before)})
        seen += [each.id for each in page["found"]]
        before = page["more"]
    rows = list(csv.DictReader(csv_of("calls", memory, query).splitlines()))
    assert [row["id"] for row in rows] == seen[::-1]
    assert len(rows) == {"": 700, "failed": 100, "worked": 600}[outcome]


LISTS = [
    {},
    {"tool": "@shell"},
    {"conversation": "talk"},
    {"outcome": "lost"},
    {"q": "mailbox"},
    {"tool": "send_email", "line": "0"},
]


@pytest.mark.parametrize("query", LISTS)
def test_a_call_leads_to_its_neighbours_in_the_list_from_which_it_was_opened(memory, query):
    more = [{"tool_name": "@shell", "id": f"c{n}", "output": "x", "success": n > 1} for n in (1, 2)]
    memory.add(more)  # with ids that are known of another tool
    page = calls(memory, query)
    shown = [(each.tool_name, each.id) for each in page["found"]]
    assert shown and page["more"] is None
    for side, expected in (("older", shown), ("newer", shown[::-1])):
        steps = [expected[0]]
        for tool, call_id in steps:
            at = {"tool": tool, "id": call_id, **page["listed"]}
            beside = VIEWS["call"](memory, at)[side]
            steps += [(beside.tool_name, beside.id)] if beside else []
        assert steps == expected


def test_only_an_input_that_worked_before_counts_as_broken(memory):
    flags = [("a", True), ("a", False), ("b", False), ("c", False), ("c", True)]
    for n, (q, worked) in enumerate(flags):
        call = {"tool_name": "t", "input": {"q": q}, "output": "x", "id": str(n)}
        memory.add([{**call, "success": worked}])
    ((name, count, call),) = changed_inputs(memory.calls(["t"])[::-1])
    assert (name, count, call.input) == ("t", 1, {"q": "a"})


def test_a_page_holds_fifty_tools_however_many_there_are(memory):
    memory.add([{"tool_name": f"tool{n:03}", "output": "x"} for n in range(120)])
    page = tools(memory, {"from": "50", "sort": "name"})
    assert (len(page["rows"]), page["total"], page["next"], page["previous"]) == (50, 121, 100, 0)


def test_a_stopped_call_shows_its_arguments_and_its_rule(browser, memory, user_rule):
    memory.check_tool_call("send_email", {"to": "user3@example.com", "password": "hunter2hunter2"})
    (decision,) = memory.decisions()
    assert "user3@example.com" in decision.call and "hunter2" not in decision.call
    page = browser.open("decision", id=decision.id)
    assert "user3@example.com" in page and user_rule.rule in page
    assert "user3@example.com" in browser.open("rule", id=user_rule.id)


@pytest.mark.parametrize("tool", ["@shell", "__unscoped__"])
def test_a_class_of_tools_has_no_page_and_no_link(browser, memory, tool):
    rule = memory.tool_rule_put(tool, "Never use sudo")
    for page in (browser.open("rules"), browser.open("rule", id=rule.id)):
        assert "Never use sudo" in page
        assert "/tool?name=" not in page


def test_text_of_calls_and_rules_is_text_on_every_page(browser, memory):
    call = {"input": {EVIL: EVIL}, "output": EVIL, "context": EVIL, "success": False}
    memory.add([{"tool_name": EVIL, **call, "metadata": {"session_id": EVIL}}])
    memory.summarize()
    more = {"effect": "deny", "when": [{"text": "alert"}], "tags": [EVIL]}
    user = memory.acting_as(Actor("user", "typed", EVIL, EVIL, EVIL))
    rule = user.tool_rule_put(EVIL, f"Never {EVIL}", **more)
    decision = memory.check_tool_call(EVIL, {"x": EVIL}, conversation_id=EVIL)
    (logged,) = memory.services.store().call_log("default", tool_names=EVIL)
    asked = dict.fromkeys(("name", "tool", "q", "conversation", "rule"), EVIL)
    asked["id"] = logged.call.id
    for name in VIEWS:
        given = {"rule": {"id": rule.id, "call": EVIL, "replay": "1"}, "draft": {**asked, "id": ""}}
        query = given.get(name, {"id": decision.id} if name == "decision" else asked)
        page = browser.open(name, **query)
        seen = re.sub(FIELDS, "", page, flags=re.DOTALL)  # what a form sends again stays as it is
        assert "<img" not in page and "<script>" not in page and "\u202e" not in seen, name
        assert html.escape("<script>") in page or name in ("calls", "search", "tools", "rules")


@pytest.mark.parametrize("page", ["", *filter(None, VIEWS)])
def test_every_page_answers_whatever_its_query_holds(browser, page):
    names = ("page", "name", "tool", "id", "q", "from", "before", "line", "sort", "effect", "rule")
    more = ("state", "kind", "call", "replay", "when", "unless", "priority", "tool_name", "self")
    for value in ("1", "-1", "9" * 30, "[", '{"a": ', "\0", "\u202e", "x" * 3_000, "%ff"):
        query = dict.fromkeys((*names, *more), value)
        answer = browser.client.get(f"/w/default/{page}", params=query)
        assert answer.status_code in (200, 404, 422), (value, answer.text)
        assert "default-src" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("effect", "explode"),
        ("priority", "most"),
        ("when", '{"a": 1}'),
        ("when", '[{"nonsense": 1}]'),
        ("unless", "5"),
        ("when", "no JSON"),
    ],
)
def test_a_draft_that_is_no_rule_says_what_is_wrong(browser, field, value):
    given = {"tool_name": "t", "rule": "Never x", field: value}
    assert 'role="alert"' in browser.open("draft", **given)


def test_the_page_of_a_call_shows_no_text_raw_and_the_file_shows_it_all(browser, memory):
    text = '{"a": 1, "a": 2, "b": "\u202e"}' + " word" * 6_000
    memory.add([{"tool_name": "t", "id": "1", "output": text}])
    for query in ({}, {"whole": "1"}):
        page = browser.open("call", tool="t", id="1", **query)
        assert "\u202e" not in page and "the whole as a file" in page and len(page) < 40_000
    assert browser.open("call.txt", tool="t", id="1") == text


def test_a_call_stands_among_its_neighbours_in_the_conversation(browser, memory):
    talk = {"metadata": {"conversation_id": "long"}, "output": "x", "tool_name": "t"}
    memory.add([{**talk, "id": f"n{number}-"} for number in range(100)])
    page = browser.open("call", tool="t", id="n40-")
    shown = set(re.findall(r"id=(n\d+-)", page))
    assert {"n25-", "n41-", "n55-"} <= shown and not {"n24-", "n56-", "n99-"} & shown


def test_a_call_of_which_nothing_is_known_did_not_work(memory):
    memory.add([{"tool_name": "t", "input": {"q": "a"}, "output": "x", "id": "1"}])
    memory.add([{"tool_name": "t", "input": {"q": "a"}, "output": "y", "success": False}])
    found = memory.calls(["t"])[::-1]
    for each in found:
        each.score = each.execution_failed = None
    assert changed_inputs(found) == []
    found[1].success = True
    assert [(name, count) for name, count, _ in changed_inputs(found)] == [("t", 1)]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("git push origin main", "would be stopped"),
        ('{"command": "git push"}', "would be stopped"),
        ("true", "would be let through"),
        ('{"command": "git pu', "are no JSON"),
    ],
)
def test_a_call_is_tried_against_a_rule(browser, memory, call, answer):
    more = {"effect": "deny", "when": [{"command": "^git push"}]}
    rule = memory.tool_rule_put("@shell", "Never push", **more)
    assert answer in browser.open("rule", id=rule.id, call=call)


def test_a_store_that_fails_and_a_name_that_is_no_workspace_are_told_on_a_page(
    browser, memory, caplog
):
    answer = browser.client.get("/w/.../tools")
    assert answer.status_code == 422 and "expected up to 128 letters" in answer.text

    def fails(*given, **more):
        raise StoreUnavailable("the disk is gone")

    memory.services.store().workspaces = fails
    answer = browser.client.get("/w/default/tools")
    assert answer.status_code == 200
    memory.services.store().records = fails
    answer = browser.client.get(f"/v/{browser.client.key}/w/default/tools")
    assert answer.status_code == 503 and "the disk is gone" in answer.text
    assert "/w/default/tools" in caplog.text and browser.client.key not in caplog.text


def test_pages_allow_no_script_but_their_own(browser):
    answer = browser.client.get("/w/default/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert " style=" not in answer.text and "onclick" not in answer.text


@pytest.mark.parametrize("page", ["tool?name=none", "call?tool=none&id=1", "rule?id=1"])
def test_what_is_not_there_is_a_page_with_404(browser, page):
    answer = browser.client.get(f"/w/default/{page}")
    assert answer.status_code == 404 and "That did not work" in answer.text


@pytest.mark.parametrize("page", ["", "tools", "calls.csv", "call.txt", "rule", "retry"])
def test_a_workspace_that_the_store_lacks_is_a_page_with_404(browser, memory, page):
    answer = browser.client.get(f"/w/nowhere/{page}")
    assert answer.status_code == 404
    if page in ("rule", "retry"):
        data = {**browser.fields(), "do": "save", "tool_name": "t", "rule": "Never"}
        answer = browser.client.post(f"/w/nowhere/{page}", data=data)
        assert answer.status_code == 404 and memory.services.store().workspaces() == ["default"]
    if page != "retry":
        assert "The store has no workspace" in answer.text


def test_an_empty_memory_has_pages_too(tmp_path):
    with ToolMem(tmp_path / "none.db") as memory:
        client = TestClient(application(memory, Access()), base_url="http://127.0.0.1")
        for name in ("", "tools", "calls", "rules", "decisions", "search", "draft"):
            assert client.get(f"/w/default/{name}").status_code == 200


@pytest.mark.parametrize(
    ("value", "as_number", "as_time"),
    [(12345.6, "12,346", "12,346 s"), (999.7, "1,000", "1,000 s"), (0.25, "0.25", "250 ms")],
)
def test_figures_and_times_over_a_thousand_are_whole_numbers(value, as_number, as_time):
    assert (number(value), seconds(value)) == (as_number, as_time)
