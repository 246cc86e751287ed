"""Deciding about rules on a page."""

from toolmem import ToolMem
from toolmem.rules.changes import Actor


def test_a_rule_is_withdrawn_and_restored_with_its_text(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    assert "Withdrawn" in browser.send("withdraw", id=rule.id).text
    assert memory.tool_rule_list("send_email") == []
    assert rule.rule in browser.open("rules", state="ended")
    browser.send("restore", id=rule.id)
    assert [each.rule for each in memory.tool_rule_list("send_email")] == ["Never email Bob"]


def test_a_page_tells_what_was_done_only_where_it_was_done(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    page = browser.send("withdraw", id=rule.id)
    assert "Withdrawn" in page.text and "Withdrawn" in browser.client.get(page.url).text
    told = str(page.url).partition("/w/")[2]  # in a link that somebody else wrote
    assert "Withdrawn" not in browser.another().client.get(f"/w/{told}").text
    assert "Deleted" not in browser.open("rules", told="delete")
    browser.send("restore", id=rule.id)
    assert "Withdrawn: " not in browser.client.get(page.url).text


def test_a_rule_that_an_agent_asks_for_is_approved_after_a_look_at_its_replay(browser, memory):
    agent = memory.acting_as(Actor("agent", session="talk", name="claude"))
    more = {"effect": "deny", "when": [{"target": "user[12]@"}]}
    rule = agent.tool_rule_put("send_email", "Never email user1 and user2", **more)
    trial = memory.tool_rule_try(id=rule.id)
    assert (trial.calls, len(trial.stopped), trial.worked) == (12, 2, 2)
    assert "<b>2</b> of the newest 12 calls" in browser.open("rule", id=rule.id, replay=1)
    assert memory.tool_rule_list("send_email") == []
    browser.send("approve", id=rule.id)
    assert memory.check_tool_call("send_email", {"to": "user1@example.com"}).action == "deny"


def test_a_rejected_request_leaves_the_rule_as_it_is(browser, memory, user_rule):
    memory.acting_as(Actor("agent")).tool_rule_delete("send_email", user_rule.id)
    assert "A change is requested" in browser.open("rule", id=user_rule.id)
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
    assert "as if there were none" in browser.open("rule", id=rule.id, replay=1)


def test_what_was_changed_since_it_was_shown_is_not_approved(browser, memory, user_rule):
    agent = memory.acting_as(Actor("agent", name="claude"))
    agent.tool_rule_put("send_email", user_rule.rule, id=user_rule.id, priority="critical")
    shown = browser.fields(user_rule.id)
    agent.tool_rule_delete("send_email", user_rule.id)
    data = {"do": "approve", "id": user_rule.id, **shown}
    answer = browser.client.post("/w/default/rule", data=data)
    assert answer.status_code == 409 and "was changed since" in answer.text
    assert [each.id for each in memory.tool_rule_list("send_email")] == [user_rule.id]
    assert "Lifted" in browser.send("approve", id=user_rule.id).text
    assert memory.tool_rule_list("send_email") == []


def test_of_two_people_who_decide_at_once_the_second_is_told_to_read_again(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    shown = [browser.fields(rule.id) for _ in range(2)]
    first, second = (
        browser.client.post("/w/default/rule", data={"do": "withdraw", "id": rule.id, **each})
        for each in shown
    )
    assert first.status_code == 200
    assert second.status_code == 409 and "The rule as it is now" in second.text


def test_a_new_rule_never_replaces_one_that_somebody_made_meanwhile(browser, memory):
    form = {"tool_name": "send_email", "rule": "Never email Bob", "effect": "remind"}
    memory.tool_rule_put("send_email", "Never email Bob", effect="deny", when=[{"target": "bob"}])
    answer = browser.send("save", **form)
    assert answer.status_code == 409 and "this rule was made since" in answer.text
    (rule,) = memory.tool_rule_list("send_email")
    assert rule.effect == "deny"
    browser.send("withdraw", id=rule.id)
    assert "Saved: it holds now" in browser.send("save", **form).text


def test_a_rule_that_the_user_withdrew_is_restored_as_it_was(browse, memory, user_rule):
    user = memory.acting_as(Actor("user", "terminal"))
    user.tool_rule_review(user_rule.id, "withdraw")
    more = {"effect": "remind", "when": []}
    memory.tool_rule_put("send_email", user_rule.rule, id=user_rule.id, **more)
    memory.tool_rule_put("send_email", "Email user3 whenever you like", id=user_rule.id)
    assert not memory.tool_rule_delete("send_email", user_rule.id)
    browser = browse(token="secret-token")
    browser.sign_in("secret-token")
    assert "The change waits" in browser.send("delete", id=user_rule.id).text
    memory.capture_rules(user_rule.rule, tools=["send_email"], conversation_id="s")
    assert memory.tool_rule_list("send_email")  # said again, it holds again
    user.tool_rule_review(user_rule.id, "withdraw")
    rule = user.tool_rule_review(user_rule.id, "restore")
    assert (rule.rule, rule.effect, rule.when) == ("Never email user3", "deny", user_rule.when)
    assert [each.id for each in memory.tool_rule_list("send_email")] == [rule.id]


def test_what_nobody_saw_the_user_type_is_not_said_to_be_theirs(browser, memory, user_rule):
    memory.capture_rules("Never email eve@x.org", tools=["send_email"], conversation_id="s")
    page = browser.open("rules", state="waiting")
    assert "a program requests this rule" in page and "you asks" not in page
    (waiting,) = memory.tool_rules(state="waiting")
    assert not waiting.rule.is_users
    browser.send("approve", id=waiting.rule.id)
    assert all(rule.is_users for rule in memory.tool_rule_list("send_email"))


def test_what_is_done_is_not_said_to_wait_because_something_else_is_asked_for(
    browser, memory, user_rule
):
    agent = memory.acting_as(Actor("agent", name="claude"))
    agent.tool_rule_put("send_email", user_rule.rule, id=user_rule.id, priority="critical")
    assert "Withdrawn" in browser.send("withdraw", id=user_rule.id).text
    assert memory.tool_rule_list("send_email") == []


def test_a_rule_on_hours_is_tried_in_the_time_zone_of_the_user(tmp_path):
    night = [{"clock": {"from": "00:00", "to": "01:00"}}]
    with ToolMem(tmp_path / "zone.db", overrides=["time_zone=Asia/Tokyo"]) as memory:
        times = ("2026-01-01T15:30:00+00:00", "2026-01-01T00:30:00+00:00")  # the first: 00:30 there
        call = {"tool_name": "deploy", "input": {}, "output": "ok"}
        memory.add([{**call, "create_time": time} for time in times])
        rule = memory.tool_rule_put("deploy", "Never at night", effect="deny", when=night)
        trial = memory.tool_rule_try(id=rule.id)
        assert [each.create_time.hour for each in trial.stopped] == [15]
