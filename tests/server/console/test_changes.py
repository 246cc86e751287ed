"""Deciding about rules on a page, and who may."""

import html
import re

import pytest

from toolmem import ToolMem
from toolmem.rules.changes import Actor
from toolmem.server.console.rule_views import replay


def test_a_rule_is_withdrawn_and_restored_with_its_text(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    assert "Withdrawn" in browser.send("withdraw", id=rule.id).text
    assert memory.tool_rule_list("send_email") == []
    assert rule.rule in browser.open("rules", state="ended")
    browser.send("restore", id=rule.id)
    assert [each.rule for each in memory.tool_rule_list("send_email")] == ["Never email Bob"]


def test_a_rule_that_an_agent_asks_for_is_approved_after_a_look_at_its_replay(browser, memory):
    agent = memory.acting_as(Actor("agent", session="talk", name="claude"))
    more = {"effect": "deny", "when": [{"target": "user[12]@"}]}
    rule = agent.tool_rule_put("send_email", "Never email user1 and user2", **more)
    trial = replay(memory, rule)
    assert (trial.calls, len(trial.stopped), trial.worked) == (12, 2, 2)
    assert "<b>2</b> of the newest 12 calls" in browser.open("rule", id=rule.id, replay=1)
    assert memory.tool_rule_list("send_email") == []
    browser.send("approve", id=rule.id)
    assert memory.check_tool_call("send_email", {"to": "user1@example.com"}).action == "deny"


def test_a_rejected_request_leaves_the_rule_as_it_is(browser, memory, user_rule):
    memory.acting_as(Actor("agent")).tool_rule_delete("send_email", user_rule.id)
    assert "A change is asked for" in browser.open("rule", id=user_rule.id)
    browser.send("reject", id=user_rule.id)
    assert memory.rules.requests() == []
    assert [each.id for each in memory.tool_rule_list("send_email")] == [user_rule.id]


def test_a_sentence_is_shown_as_it_is_understood_before_it_is_saved(browser, memory):
    given = {"tool_name": "send_email", "rule": "Never email user4@example.com"}
    page = browser.open("draft", **given)
    assert "<b>1</b> of the newest 12 calls" in page
    assert memory.tool_rule_list("send_email") == []
    browser.send("save", **given, priority="critical")
    (rule,) = memory.tool_rule_list("send_email")
    assert rule.is_checked and rule.is_users and rule.source == "user_explicit"


def test_a_draft_of_a_rule_that_is_known_leads_to_it(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    page = browser.open("draft", tool_name="send_email", rule="never email bob.")
    assert "You have this rule already" in page and rule.id in page
    assert "You have" not in browser.open("draft", id=rule.id)


def test_a_trial_says_that_earlier_calls_are_not_known_to_it(browser, memory):
    more = {"effect": "deny", "when": [{"more_than": {"calls": 2, "per": "day"}}]}
    rule = memory.tool_rule_put("send_email", "At most two a day", **more)
    assert "earlier calls were not tried" in browser.open("rule", id=rule.id, replay=1)


def test_without_the_code_of_the_terminal_what_loosens_waits(browse, memory, user_rule):
    browser = browse(token="secret-token", code="from-the-terminal")
    browser.sign_in("secret-token")
    assert "the change waits" in browser.send("withdraw", id=user_rule.id).text
    assert memory.tool_rule_list("send_email") != []
    assert browser.sign_in("wrong").status_code == 403
    browser.sign_in("from-the-terminal")
    browser.send("withdraw", id=user_rule.id)
    assert memory.tool_rule_list("send_email") == []
    (rule,) = memory.rules.every_rule()
    assert (rule.changes[-1].evidence, rule.changes[-1].words) == ("terminal", "console: withdraw")


def test_the_code_works_once(browse):
    first, code = browse(code="once"), "once"
    assert first.sign_in(code).status_code == 200
    first.client.cookies.clear()
    assert first.sign_in(code).status_code == 403


def test_a_token_hides_every_page_until_it_is_given(browse):
    browser = browse(token="secret-token")
    assert "Sign in" in browser.client.get("/w/default/tools").text
    assert browser.client.post("/w/default/rule", data={"do": "delete"}).url.path == "/sign-in"
    assert browser.client.get("/w/default/call.txt?tool=send_email&id=c1").url.path == "/sign-in"
    browser.sign_in("secret-token")
    assert "send_email" in browser.open("tools")
    assert browser.client.post("/tools", json={"workspace_id": "default"}).status_code == 401


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(browse):
    cookie = browse().client.get("/w/default/").headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"csrf": ""}, {}),
        ({"csrf": "0"}, {}),
        ({}, {"Origin": "http://127.0.0.1:9999"}),
        ({}, {"Origin": "http://["}),
        ({}, {"Origin": "null"}),
    ],
)
def test_a_form_of_another_page_changes_nothing(browser, memory, form, headers):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    data = {"do": "delete", "id": rule.id, **browser.fields(rule.id), **form}
    answer = browser.client.post("/w/default/rule", data=data, headers=headers)
    assert answer.status_code == 403
    assert memory.tool_rule_list("send_email") != []


def test_who_did_not_sign_in_sees_no_form_and_changes_nothing(browse, memory):
    browser, rule = browse(code="c"), memory.tool_rule_put("send_email", "Never email Bob")
    pages = [browser.open("rule", id=rule.id), browser.open("draft", id=rule.id)]
    pages.append(browser.open("draft", tool_name="send_email", rule="Never email Eve"))
    for page in pages:
        assert 'method="post"' not in page and "Sign in to" in page
    for do in ("withdraw", "delete", "save", "approve", "reject"):
        data = {"do": do, "id": rule.id, "tool_name": "send_email", "rule": "Never email Eve"}
        answer = browser.client.post("/w/default/rule", data=data)
        assert answer.status_code == 403 and "sign in first" in answer.text
    assert [each.rule for each in memory.tool_rule_list("send_email")] == ["Never email Bob"]


def test_what_was_changed_since_it_was_shown_is_not_approved(browser, memory, user_rule):
    agent = memory.acting_as(Actor("agent", name="claude"))
    agent.tool_rule_put("send_email", user_rule.rule, id=user_rule.id, priority="critical")
    shown = browser.fields(user_rule.id)
    agent.tool_rule_delete("send_email", user_rule.id)
    data = {"do": "approve", "id": user_rule.id, **shown}
    answer = browser.client.post("/w/default/rule", data=data)
    assert answer.status_code == 409 and "was changed since" in answer.text
    assert [each.id for each in memory.tool_rule_list("send_email")] == [user_rule.id]
    assert "what was asked for is done" in browser.send("approve", id=user_rule.id).text
    assert memory.tool_rule_list("send_email") == []


def test_what_is_done_is_not_said_to_wait_because_something_else_is_asked_for(
    browser, memory, user_rule
):
    agent = memory.acting_as(Actor("agent", name="claude"))
    agent.tool_rule_put("send_email", user_rule.rule, id=user_rule.id, priority="critical")
    assert "Withdrawn" in browser.send("withdraw", id=user_rule.id).text
    assert memory.tool_rule_list("send_email") == []


def test_a_signature_that_a_page_shows_signs_in_nobody(browse):
    browser = browse(code="c")
    browser.sign_in("c")
    cookie, csrf = browser.client.cookies["toolmem_visit"], browser.fields()["csrf"]
    for forged in (f"csrf.{cookie}.{csrf}", f"form.{cookie}.{csrf}", f"{cookie}.{csrf}", "a.b", ""):
        answer = browser.client.get("/w/default/", headers={"Cookie": f"toolmem_visit={forged}"})
        assert answer.status_code == 200 and "you, from the terminal" not in answer.text


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1.evil.com"])
def test_without_a_token_only_this_machine_is_let_in(browser, host):
    assert browser.client.get("/w/default/", headers={"Host": host}).status_code == 403


def test_signing_in_leads_to_pages_of_the_console_alone(browse):
    for then in ("//evil.com/w/", "https://evil.com", "\\\\evil.com", "", "/w"):
        browser = browse(code="c")
        browser.client.follow_redirects = False
        data = {"secret": "c", "then": then}
        assert browser.client.post("/sign-in", data=data).headers["location"] == "/"
    assert browser.client.get("/").headers["location"] == "/w/default/"


def test_signing_in_leads_to_the_page_that_was_asked_for(browse):
    browser = browse(token="secret-token")
    asked = "/w/default/call?tool=send_email&id=c3"
    page = browser.client.get(asked).text
    then = html.unescape(re.search(r'name="then" value="([^"]*)"', page)[1])
    answer = browser.client.post("/sign-in", data={"secret": "secret-token", "then": then})
    assert str(answer.url).endswith(asked) and "mailbox full" in answer.text


def test_the_page_to_sign_in_tells_a_stranger_nothing(browse, memory):
    memory.workspace("project-x").add([{"tool_name": "t", "output": "x"}])
    page = browse(token="secret-token").client.get("/w/default/").text
    assert "Sign in" in page and "project-x" not in page and 'href="/w/' not in page
    assert "These pages only read" in browse().client.get("/sign-in").text


def test_a_rule_on_hours_is_tried_in_the_time_zone_of_the_user(tmp_path):
    night = [{"clock": {"from": "00:00", "to": "01:00"}}]
    with ToolMem(tmp_path / "zone.db", overrides=["time_zone=Asia/Tokyo"]) as memory:
        times = ("2026-01-01T15:30:00+00:00", "2026-01-01T00:30:00+00:00")  # the first: 00:30 there
        call = {"tool_name": "deploy", "input": {}, "output": "ok"}
        memory.add([{**call, "create_time": time} for time in times])
        rule = memory.tool_rule_put("deploy", "Never at night", effect="deny", when=night)
        trial = replay(memory, rule)
        assert [each.create_time.hour for each in trial.stopped] == [15]
