"""Deciding about rules on a page, and who may."""

import pytest

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
    browser = browse(code="from-the-terminal")
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


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(browser):
    cookie = browser.client.get("/w/default/").headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()


@pytest.mark.parametrize(
    ("form", "headers"),
    [({}, {}), ({"csrf": "0"}, {}), (None, {"Origin": "http://127.0.0.1:9999"})],
)
def test_a_form_of_another_page_changes_nothing(browser, memory, form, headers):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    if form is None:  # a true token, sent by the page of another port
        page = browser.open("rule", id=rule.id)
        form = {"csrf": page.split('name="csrf" value="')[1].split('"')[0]}
    data = {"do": "delete", "id": rule.id, **form}
    answer = browser.client.post("/w/default/rule", data=data, headers=headers)
    assert answer.status_code == 403
    assert memory.tool_rule_list("send_email") != []


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1.evil.com"])
def test_without_a_token_only_this_machine_is_let_in(browser, host):
    assert browser.client.get("/w/default/", headers={"Host": host}).status_code == 403


def test_signing_in_leads_to_pages_of_the_console_alone(browse):
    browser = browse(code="c")
    browser.client.follow_redirects = False
    data = {"secret": "c", "then": "//evil.com/w/"}
    assert browser.client.post("/sign-in", data=data).headers["location"] == "/"
    assert browser.client.get("/").headers["location"] == "/w/default/"


def test_the_operations_of_the_service_answer_as_before(browser):
    body = {"workspace_id": "default"}
    assert browser.client.post("/tools", json=body).json()[0]["tool_name"] == "send_email"
    assert browser.client.get("/health").json()["status"] == "ok"
    assert browser.client.get("/nothing").status_code in (404, 405)
