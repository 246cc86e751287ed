"""What the pages of rules and decisions say, what their forms save, and their lists as CSV."""

import codecs
import csv
import html
import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from toolmem import ToolMem
from toolmem.rules.changes import ONLY_ASKS, Actor
from toolmem.server.console import tables
from toolmem.server.console.changes import change
from toolmem.server.console.rule_views import decision, draft, rule, rules

WORDS = "The thing with user3 is settled."
USER = Actor("user", "typed", session="talk")


def saved_fields(page):
    """The fields that the button which saves a draft posts."""
    form = page.partition('<form class="acts"')[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return {name: html.unescape(value) for name, value in found}


def save(browser, **query):
    """Look at a draft, then press its button."""
    fields = saved_fields(browser.open("draft", **query))
    assert fields
    return browser.client.post("/w/default/rule", data={**fields, "do": "save"})


@pytest.fixture
def question(memory, user_rule):
    """The rule of the user, who then typed what may take it back."""
    memory.acting_as(Actor("agent", "typed", WORDS)).tool_rule_delete("send_email", user_rule.id)
    return user_rule


def test_what_the_user_typed_is_put_as_a_question_and_not_as_the_wish_of_an_agent(
    browser, question
):
    page = browser.open("rule", id=question.id)
    assert f"“{WORDS}”<" in page and "Let it through and lift the rule?" in page
    assert "is asked for" not in page and "an agent" not in page
    assert ", conversation <a" in page and "session" not in page
    assert "It would let through <b>1</b> of the newest 12 calls" in page
    assert page.index("It would let through") < page.index("Yes, lift it")


@pytest.mark.parametrize(
    ("answer", "told", "action"), [("approve", "Lifted", "allow"), ("reject", "Kept", "deny")]
)
def test_the_answer_to_a_question_is_one_click(browser, memory, question, answer, told, action):
    assert told in browser.send(answer, id=question.id).text
    assert memory.check_tool_call("send_email", {"to": "user3@example.com"}).action == action
    assert memory.tool_rules(state="waiting") == []


def test_a_loosening_shows_what_it_would_let_through_before_it_is_approved(
    browser, memory, user_rule
):
    agent = memory.acting_as(Actor("agent", words="user3 agreed", name="claude"))
    when = [{"target": "user3@other"}]
    agent.tool_rule_put("send_email", user_rule.rule, id=user_rule.id, when=when)
    page = browser.open("rule", id=user_rule.id)
    shown = ["it loosens the rule", "user3@other", "user3 agreed", "It would let through <b>1</b>"]
    places = [page.index(each) for each in [*shown, ">Approve<"]]
    assert places == sorted(places)
    browser.send("approve", id=user_rule.id)
    assert memory.check_tool_call("send_email", {"to": "user3@example.com"}).action == "allow"


def test_rules_say_how_many_calls_they_stopped_and_when_last(browser, memory, user_rule):
    for _ in range(3):
        memory.check_tool_call("send_email", {"to": "user3@example.com"})
    ((row,), counts) = [rules(memory, {})[name] for name in ("rows", "counts")]
    assert row.stopped == 3 and row.last_stopped is not None
    assert counts == {"holds": 1, "waiting": 0, "ended": 0}
    assert "3 calls,<br> last" in browser.open("rules")
    assert "3 calls stopped or asked about" in browser.open("rule", id=user_rule.id)


def test_a_decision_that_was_wrong_is_marked_and_changes_nothing_by_itself(
    browser, memory, user_rule
):
    found = memory.check_tool_call("send_email", {"to": "user3@example.com"})

    def send(do):
        data = {**browser.fields(user_rule.id), "do": do, "id": found.id}
        return browser.client.post("/w/default/decision", data=data)

    assert "changes nothing by itself" in browser.open("decision", id=found.id)
    answer = send("wrong")
    assert answer.url.path.endswith("/draft") and "Kept with the decision" in answer.text
    assert decision(memory, {"id": found.id})["decision"].is_wrong
    assert "Marked as wrong" in browser.open("decision", id=found.id)
    assert [each.id for each in memory.tool_rule_list("send_email")] == [user_rule.id]
    send("right")
    assert not decision(memory, {"id": found.id})["decision"].is_wrong


def test_a_reminder_becomes_a_rule_in_other_words_and_keeps_its_sentence(browser, memory):
    user = memory.acting_as(USER)
    said = user.tool_rule_put("send_email", "Be nice to the fourth customer", effect="remind")
    assert "Say it in other words" in browser.open("rule", id=said.id)
    save(browser, **{**as_query(memory, said), "words": "Never email user4@example.com"})
    (after,) = memory.tool_rule_list("send_email")
    assert (after.id, after.rule, after.effect) == (said.id, said.rule, "deny")
    assert memory.check_tool_call("send_email", {"to": "user4@example.com"}).action == "deny"


def as_query(memory, found):
    """The query that the form of a rule sends, as it is shown first."""
    return {**draft(memory, {"id": found.id})["given"], "id": found.id}


def test_a_weakened_ban_that_is_said_in_other_words_stops_calls_and_is_weak_no_more(
    browser, memory
):
    more = {"effect": "ask", "when": [{"target": "user"}], "tags": [ONLY_ASKS, "mail"]}
    said = memory.acting_as(USER).tool_rule_put("send_email", "Never mail the fourth", **more)
    assert "It only asks" in browser.open("rule", id=said.id)
    save(browser, **{**as_query(memory, said), "words": "Never email user4@example.com"})
    (after,) = memory.tool_rule_list("send_email")
    assert (after.effect, after.tags, after.rule) == ("deny", ["mail"], said.rule)


def test_words_that_are_not_understood_save_nothing(browser, memory):
    said = memory.tool_rule_put("send_email", "Be nice", effect="remind")
    page = browser.open("draft", **{**as_query(memory, said), "words": "Be very nice to them"})
    assert "were not understood" in page and saved_fields(page) == {}


def test_what_is_shown_is_what_is_saved_and_conditions_can_be_emptied(browser, memory, user_rule):
    given = {**as_query(memory, user_rule), "unless": '[{"text": "urgent"}]'}
    save(browser, **given)
    (after,) = memory.tool_rule_list("send_email")
    assert after.unless == [{"text": "urgent"}]
    save(browser, **{**as_query(memory, after), "unless": ""})
    assert memory.tool_rule_list("send_email")[0].unless == []
    page = browser.open("draft", **{**as_query(memory, after), "when": ""})
    assert "Write its conditions" in page and saved_fields(page) == {}


def test_an_end_is_read_in_the_time_zone_of_the_user_and_can_be_taken_away(tmp_path):
    with ToolMem(tmp_path / "zone.db", overrides=["time_zone=Asia/Tokyo"]) as memory:
        given = {"tool_name": "deploy", "rule": "Never deploy prod", "priority": "critical"}
        ends = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}T09:00"
        shown = draft(memory, {**given, "expires_at": ends})
        assert shown["zone"] == "Asia/Tokyo" and shown["saved"]["expires_at"] == ends
        change(memory, {**shown["saved"], "do": "save"}, USER)
        (kept,) = memory.tool_rule_list("deploy")
        assert kept.expires_at.astimezone(UTC).hour == 0
        assert draft(memory, {"id": kept.id})["given"]["expires_at"] == ends
        form = {**as_query(memory, kept), "expires_at": "", "do": "save"}
        change(memory, {**form, "seen": draft(memory, {"id": kept.id})["seen"]}, USER)
        assert memory.tool_rule_list("deploy")[0].expires_at is None


@pytest.mark.parametrize("ends", ["2020-01-01T00:00", "soon", "0001-01-01T00:00", "9" * 40])
def test_an_end_that_is_past_or_no_time_is_refused(browser, memory, ends):
    page = browser.open("draft", tool_name="t", rule="Never x", expires_at=ends)
    assert 'role="alert"' in page and saved_fields(page) == {}
    form = {"tool_name": "t", "rule": "Never x", "expires_at": ends}
    assert browser.send("save", **form).status_code == 422
    assert memory.tool_rules() == []


def test_an_end_that_is_not_touched_stays_to_the_second(browser, memory):
    ends = datetime.now(UTC) + timedelta(days=3, seconds=17)
    said = memory.tool_rule_put("send_email", "Never email Bob", expires_at=ends)
    save(browser, **{**as_query(memory, said), "priority": "critical"})
    (after,) = memory.tool_rule_list("send_email")
    assert (after.priority, after.expires_at) == ("critical", said.expires_at)


def rows_of(browser, name, **query):
    answer = browser.client.get(f"/w/default/{name}.csv", params=query)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    text = answer.content.decode("utf-8-sig")  # a spreadsheet knows the encoding by its mark
    assert answer.content.startswith(codecs.BOM_UTF8)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_list_as_csv_is_whole_follows_its_filter_and_holds_no_formula(browser, memory):
    for number in range(70):
        memory.tool_rule_put("send_email", f"=Never email nobody{number}")
    rule = memory.tool_rule_put("@shell", "Never push", effect="deny", when=[{"command": "push"}])
    assert len(rows_of(browser, "rules")) == 71
    (row,) = rows_of(browser, "rules", effect="deny")
    assert (row["id"], row["when"], row["state"]) == (rule.id, '[{"command": "push"}]', "holds")
    assert all(each["rule"][0] == "'" for each in rows_of(browser, "rules", q="nobody"))
    assert 'rules.csv?effect=deny"' in browser.open("rules", effect="deny")
    memory.check_tool_call("bash", {"command": "git push"})
    (row,) = rows_of(browser, "decisions", action="deny")
    assert row["tool_name"] == "bash" and row["action"] == "deny"
    assert rows_of(browser, "decisions", action="ask") == []


def test_a_tool_has_the_same_figures_on_its_page_as_csv_and_in_python(browser, memory, call):
    judged = {"score": 0.0, "execution_failed": False, "evaluation_status": "ok"}
    late = call("send_email", id="late", success=True, **judged)
    memory.services.store().append_calls("default", [late], 100)
    (tool,), (row,) = memory.tools(), rows_of(browser, "tools")
    figures = (tool.window.calls, tool.failed, tool.no_use)
    assert figures == (13, 4, 1)
    assert figures == tuple(int(row[name]) for name in ("calls", "failures", "no_use"))
    page = browser.open("tool", name="send_email")
    assert ">4</a></b>" in page and ">1</a></b> <span>of no use" in page


def test_a_csv_that_was_cut_says_so(browser, memory, monkeypatch):
    monkeypatch.setattr(tables, "TABLES", {"rules": tables.Table(["rule.id"], rules_twice, 1)})
    memory.tool_rule_put("t", "Never x")
    text = tables.csv_of("rules", memory, {})
    assert text.splitlines()[-1] == "There may be more than these 1: filter the list."


def test_calls_with_long_texts_are_cut_before_they_fill_the_memory_and_the_csv_says_so(
    memory, monkeypatch
):
    monkeypatch.setattr(tables, "CALLS_AT_ONCE", 2)
    memory.add([{"tool_name": "a", "output": "the newest"}])
    lines = tables.csv_of("calls", memory, {}).splitlines()
    assert len(lines) == 1 + len(memory.calls()) and lines[-1].startswith("a,")
    monkeypatch.setattr(tables, "MAX_TEXT", 1)
    lines = tables.csv_of("calls", memory, {}).splitlines()
    assert len(lines) == 4 and "There may be more than these 2:" in lines[-1]


def rules_twice(memory, query):
    return memory.tool_rules() * 2


def test_a_page_that_is_outdated_leads_back_to_its_rule(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    shown = browser.fields(rule.id)
    memory.tool_rule_put("send_email", "Never email Bob", priority="critical")
    for do in ("withdraw", "save"):
        data = {**shown, "do": do, "id": rule.id, "tool_name": "send_email", "rule": "Never mail"}
        answer = browser.client.post("/w/default/rule", data=data)
        assert answer.status_code == 409 and f'href="rule?id={rule.id}"' in answer.text
    assert memory.tool_rule_list("send_email")[0].rule == "Never email Bob"


def test_a_form_that_is_sent_without_what_was_seen_changes_nothing(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    assert browser.send("withdraw", id=rule.id, seen="").status_code == 409
    assert browser.send("delete", id=rule.id).status_code == 422  # it still holds
    assert browser.send("explode", id=rule.id).status_code == 422
    assert len(memory.tool_rule_list("send_email")) == 1


@pytest.mark.parametrize("asked", ["../../x", "x" * 1_000, "\0", "none"])
@pytest.mark.parametrize("do", ["withdraw", "approve", "delete", "save", "wrong"])
def test_what_is_gone_is_a_page_with_404(browser, asked, do):
    data = {**browser.fields(), "do": do, "id": asked, "seen": "x", "tool_name": "t", "rule": "x"}
    page = "decision" if do == "wrong" else "rule"
    answer = browser.client.post(f"/w/default/{page}", data=data)
    assert answer.status_code == 404 and "That did not work" in answer.text
    assert browser.client.get(f"/w/default/{page}", params={"id": asked}).status_code == 404


def test_rules_that_are_damaged_or_very_long_have_pages(browser, memory, user_rule):
    odd = {"effect": "deny", "when": [{"command": "x"}]}
    broken = memory.tool_rule_put("send_email", "Never break", **odd)
    long = memory.tool_rule_put("send_email", "Never email " + "a" * 1_900, tags=["b" * 60])
    store, rules = memory.services.store(), memory.rules
    for record in store.list_records("default", prefix="tool", key_prefix="rule"):
        if broken.id in record.key:
            value = bytes(record.value).replace(b'{"command":"x"}', b'{"nonsense":["(?<x>"]}')
            place = ("default", record.namespace, record.key)
    store.put(*place, json.loads(value))
    assert rules.every_rule()
    page = browser.open("rule", id=broken.id, replay=1, call="x")
    assert 'role="alert"' in page and "nonsense" in page
    for name in ("rules", "decisions", "search"):
        assert browser.open(name, q="Never")
    assert "Never email aaa" in browser.open("rule", id=long.id)
    answer = browser.client.get(
        "/w/default/draft", params={"tool_name": "t", "rule": "x " * 10_000}
    )
    assert answer.status_code in (200, 414, 422)
    assert browser.send("save", tool_name="t", rule="x" * 1_000_000).status_code == 413


def test_a_rule_of_one_session_can_be_withdrawn_and_not_edited(browser, memory):
    memory.acting_as(USER).capture_rules(
        "For this session, never email user5@example.com",
        conversation_id="talk",
        tools=["send_email"],
    )
    (row,) = memory.tool_rules()
    assert row.rule.session == "talk"
    page = browser.open("rule", id=row.rule.id)
    assert ">Withdraw<" in page and ">Edit<" not in page
    answer = browser.client.get("/w/default/draft", params={"id": row.rule.id})
    assert answer.status_code == 422 and "can only be withdrawn" in answer.text
    assert rule(memory, {"id": row.rule.id})["row"].state == "holds"


def test_a_sentence_that_is_edited_is_read_anew(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email bob@x.org")
    edited = {**as_query(memory, rule), "rule": "Never email eve@x.org"}
    assert "eve" in saved_fields(browser.open("draft", **edited))["when"]
    by_hand = {**edited, "when": '[{"text": "secret"}]'}
    assert saved_fields(browser.open("draft", **by_hand))["when"] == '[{"text": "secret"}]'


def test_home_names_the_sentence_that_stopped_a_call_even_if_it_was_edited_since(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email bob@x.org")
    memory.check_tool_call("send_email", {"to": "bob@x.org"}, conversation_id="c")
    memory.tool_rule_put("send_email", "Never email eve@x.org", id=rule.id)
    stopped = browser.open("").partition("Stopped today")[2].partition("</ul>")[0]
    assert "Never email bob@x.org" in stopped and "eve@" not in stopped
