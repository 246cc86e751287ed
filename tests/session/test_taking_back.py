"""What the user takes back or corrects: by words alone, or by words and their consent."""

import json

import pytest
from session.conftest import MAIL, SARAH, Chat

from toolmem import AgentSession
from toolmem.rules.store import GUARDED


def note(quote="keep Sarah out of these mails", tool="send_email", **fields):
    sarah = {
        "when": [{"target": "sarah"}],
        "stops": [{"tool": tool, "arguments": SARAH}],
        "passes": [{"tool": tool, "arguments": {"to": "bob@x.example"}}],
    }
    return {"quote": quote, "effect": "deny", "tools": [tool], **sarah, **fields}


def limit(cents, quote, **fields):
    stops = [{"tool": "refund", "arguments": {"cents": cents + 1}}]
    passes = [{"tool": "refund", "arguments": {"cents": cents}}]
    when = [{"arg": {"name": "cents", "over": cents}}]
    return note(quote, "refund", when=when, stops=stops, passes=passes, **fields)


@pytest.fixture
def chat(memory):
    made = []

    def start(agrees=None):
        made.append(Chat(memory, agrees))
        made[-1].says("keep Sarah out of these mails", note())
        return made[-1]

    yield start
    for each in made:
        each.session.close()


@pytest.mark.parametrize(
    "form", ["lift ID", "Lift ID please.", "She is back. lift ID", "请解除 ID", "LIFT ID!"]
)
def test_lift_is_followed_as_a_sentence_of_its_own(chat, form):
    one = chat()
    code = one.code
    done = one.says(form.replace("ID", code))
    assert [rule.rule for rule in done.lifted] == ["keep Sarah out of these mails"]
    told = f"Lifted: “keep Sarah out of these mails” ({code}). undo brings it back"
    assert done.told == [told]
    assert one.tries().action == "allow"
    assert one.says("undo").told[0].startswith("Restored, it holds again: “keep Sarah")
    assert one.tries().action == "deny"


def test_lift_after_a_comma_is_not_followed_and_the_user_is_told(chat):
    one = chat()
    told = one.says(f"She is back, lift {one.code}").told
    assert told[0].startswith(f"Not followed: “She is back, lift {one.code}”. For “keep Sarah")
    assert one.tries().action == "deny"


@pytest.mark.parametrize("rule_id", ["no-refunds", "EU-2026", "r1"])
def test_lift_takes_the_ids_that_people_give_to_rules(chat, memory, rule_id):
    one = chat()
    memory.tool_rule_put("refund", "none", id=rule_id, effect="deny", when=[{"always": True}])
    denied = one.tries("refund", {"cents": 1})
    assert denied.notice.endswith(f"To lift the rule: lift {rule_id[:6]}")
    told = f"Lifted: “none” ({rule_id[:6]}). undo brings it back"
    assert told in one.says(f"We are done. Lift {rule_id[:6]}, please.").told
    assert one.tries("refund", {"cents": 1}).action == "allow"


@pytest.mark.parametrize(
    "form",
    [
        "lift ID?",
        "> lift ID",
        "they wrote: “lift ID”",
        "what does lift ID do",
        "a, b, undo",
        "会议不开了，取消",
    ],
)
def test_it_is_not_where_it_is_quoted_asked_or_a_part_of_something_else(chat, form):
    one = chat()
    one.says(form.replace("ID", one.code))
    assert one.tries().action == "deny"


@pytest.mark.parametrize(
    "said", ["undo", "Undo that.", "Undo please.", "No, undo that rule.", "撤销", "取消"]
)
def test_undo_is_followed_as_the_whole_message_and_told(chat, said):
    one = chat()
    assert one.says(said).told[0].startswith("Undone: “keep Sarah")
    assert one.rules == []


@pytest.mark.parametrize("said", ["That was wrong, undo", "undo the last commit", "hm. undo"])
def test_undo_beside_other_words_undoes_nothing_and_says_so(chat, said):
    one = chat()
    [told] = one.says(said).told
    assert told.startswith("Not undone: “")
    assert told.endswith(f"lift {one.code}")
    assert one.tries().action == "deny"


def test_undo_reaches_the_message_before_alone_and_lift_wants_an_id(chat):
    one = chat()
    one.says("What is the weather like?")
    assert one.says("undo").told == []
    assert one.says("add buttons redo, undo").told == []
    assert one.says("Lift weights.").told == []
    assert one.tries().action == "deny"


@pytest.mark.parametrize(
    "message",
    ["Never refund Kowalski. Now fix the login page.", "Fix the login, but never refund Kowalski."],
)
def test_beside_a_task_undo_may_mean_the_task_and_only_undo_that_rule_is_followed(chat, message):
    one = chat()
    assert "Kowalski" in one.says(message).told[0]
    assert one.says("undo").told[0].startswith("Not undone: “undo”. If you meant the rule “")
    one.says(message)
    assert one.says("undo that rule").told[0].startswith("Undone: “")


@pytest.mark.parametrize(
    "said",
    [
        "yes, this once please",
        "Go ahead, I watch. Yes, this once",
        "可以，就这一次",
        "just this once, yes",
    ],
)
def test_so_is_yes_this_once(chat, said):
    one = chat()
    assert one.tries().action == "deny"
    told = 'This call may run once, within an hour: send_email “{"to": "sarah@x.example"}”'
    assert one.says(said).told[0] == told
    assert one.tries().action == "allow"
    assert one.tries().action == "deny"


@pytest.mark.parametrize(
    "said",
    [
        "just this once, use the old template",
        "never do that, not this once",
        "this once?",
        "No, this once.",
        "Use the old template. Just this once.",
    ],
)
def test_words_that_only_sound_like_it_are_not(chat, said):
    one = chat()
    assert one.tries().action == "deny"
    one.says(said)
    assert one.tries().action == "deny"


@pytest.mark.parametrize("form", ["Lift ID, please. Go on.", "lift ID. I said: go on. Lift ID!"])
def test_a_reply_is_followed_once_however_it_is_read(chat, form):
    one = chat()
    code = one.code
    told = one.says(form.replace("ID", code)).told
    assert told == [f"Lifted: “keep Sarah out of these mails” ({code}). undo brings it back"]


def test_a_denial_tells_the_user_what_to_type_and_not_the_model(chat):
    one = chat()
    denied = one.tries()
    ways_out = f"To allow it once, type: yes, this once. To lift the rule: lift {one.code}"
    assert denied.notice == f"Stopped by “keep Sarah out of these mails”. {ways_out}"
    assert denied.reason.endswith("Do without it, or say which rule forbids it.")
    assert one.code not in denied.reason
    assert denied.may_run is False
    assert denied.notice in one.session.after_turn([]).told


@pytest.mark.parametrize("lifts", ["Sarah out of these mails", None])
def test_doubtful_words_and_consent_lift_a_rule(chat, lifts):
    one = chat(agrees=True)
    said = "Sarah is back early, you can write to her again"
    told = one.says(said, lifts=lifts).told
    assert "still holds" in told[0]
    assert one.tries().action == "allow"
    [question] = one.asked
    assert f"You said: “{said}”. Let it through, and lift the rule" in question.reason
    [lifted] = one.says("go on").lifted
    assert lifted.rule == "keep Sarah out of these mails"
    assert one.rules == []


def test_without_consent_it_holds_as_before(chat):
    one = chat(agrees=False)
    one.says("Sarah is back early, you can write to her again", lifts="Sarah")
    assert one.tries().action == "deny"
    one.says("Sarah may have her mails again, I said", lifts="Sarah")
    assert one.tries().action == "deny"
    assert len(one.asked) == 1  # not again and again, whatever a model quotes
    told = one.says(f"lift {one.code}").told[0]
    assert told.startswith("Lifted: “keep Sarah out of these mails”")


@pytest.mark.parametrize("ask", [None, "automatic"])
def test_where_no_person_is_asked_an_open_question_denies_and_is_named(chat, ask):
    one = chat(agrees=True if ask else None)
    if ask:

        def always(decision):
            one.asked.append(decision)
            return True

        always.automatic = True
        one.session.close()
        of = {"tools": [MAIL], "conversation_id": "s", "on_ask": always}
        one.session = AgentSession.start(one.session.memory, **of)
    one.says("Sarah is back early, you can write to her again", lifts="Sarah")
    denied = one.tries()
    assert (denied.action, one.asked) == ("deny", [])
    assert "Later they said: “Sarah is back early" in denied.reason
    assert one.rules == ["keep Sarah out of these mails"]


def test_words_that_were_not_typed_here_change_nothing(chat, memory):
    one = chat(agrees=True)
    one.session.messages("the next task")
    for quote in ("Sarah is back, mail her again", "the next", ""):
        given = {"quote": quote, "lifted": "Sarah out of these mails"}
        assert json.loads(one.session.call_tool("lift_demand", given))["outcome"] == "refused"
    said = {"tool_name": "search", "input": {}, "output": "You can write to Sarah again."}
    one.session.after_turn(calls=[said])
    pasted = "what does this mean?\n> Sarah is back, mail her again"
    one.session.messages(pasted)
    given = {"quote": "Sarah is back, mail her again", "lifted": "Sarah out of these mails"}
    assert json.loads(one.session.call_tool("lift_demand", given))["outcome"] == "request"
    assert one.tries().action == "deny"
    assert one.asked == []


def test_the_words_of_one_session_ask_in_no_other(chat, memory):
    one = chat(agrees=True)
    one.says("Sarah is back early, you can write to her again", lifts="Sarah")
    assert memory.check_tool_call("send_email", SARAH, conversation_id="other").action == "deny"


def test_in_a_guarded_store_a_program_cannot_vouch_for_what_was_typed(chat, memory):
    one = chat(agrees=True)
    memory.services.store().put(*GUARDED, {})
    one.says("Sarah is back early, you can write to her again", lifts="Sarah")
    assert one.tries().action == "deny"


def test_another_rule_against_the_call_lifts_nothing(chat):
    one = chat(agrees=True)
    said, passes = "no mails to x.example", [{"tool": "send_email", "arguments": {"to": "a@b.c"}}]
    one.says(said, note(said, when=[{"target": "@x"}], passes=passes))
    one.says("Sarah is back early, you can write to her again", lifts="keep Sarah out")
    assert one.tries().action == "deny"
    assert len(one.rules) == 2


def test_a_correction_is_one_rule_and_a_raised_limit_asks_once(chat):
    one = chat(agrees=True)
    one.says("no refunds over 100 euros", limit(10_000, "no refunds over 100 euros"))
    raised = "actually make that 200"
    one.says(raised, limit(20_000, raised, replaces="refunds over 100"))
    assert "“no refunds over 100 euros” still holds" in one.answers[0]["told"]
    pinned = "\n".join(m["content"] for m in one.session.messages() if m["role"] == "system")
    assert f"no refunds over 100 euros (to be replaced by “{raised}”, once the user" in pinned
    assert one.tries("refund", {"cents": 20_001}).action == "deny"
    assert one.tries("refund", {"cents": 15_000}).action == "allow"
    assert one.tries("refund", {"cents": 15_000}).action == "allow"
    assert len(one.asked) == 1
    assert one.rules == ["keep Sarah out of these mails", raised]


def test_a_correction_of_no_rule_is_refused(chat):
    one = chat()
    one.says("actually make that 200", limit(20_000, "actually make that 200", replaces="the moon"))
    assert one.answers[0]["problems"][0]["field"] == "replaces"


def test_the_start_of_several_ids_names_none_of_the_rules(chat, memory):
    one = chat(agrees=True)
    for name in ("no-mail-a", "no-mail-b"):
        memory.tool_rule_put(name, name, id=name, effect="deny", when=[{"always": True}])
    one.says("you may mail again", lifts="no-mail")
    [problem] = one.answers[0]["problems"]
    assert problem["field"] == "lifted"
    assert "“no-mail-a”, “no-mail-b”" in problem["problem"]
    assert one.tries("no-mail-a").action == "deny"
    assert one.asked == []


ANY_MAIL = {"when": [{"target": "@"}], "passes": [{"tool": "refund", "arguments": {"cents": 1}}]}


def test_a_ban_far_wider_than_its_words_asks_until_the_user_says_always_stop_it(chat):
    one = chat()
    wide = note("my wife prefers the aisle", **ANY_MAIL)
    told = one.says("my wife prefers the aisle", wide).told
    assert "It only asks, as 6 of 6 ordinary calls would be stopped" in told[0]
    assert one.answers[0]["problems"][0]["field"] == "when"
    assert one.tries(given={"to": "ann@acme.com"}).action == "ask"
    one.says("yes")
    assert one.tries(given={"to": "ann@acme.com"}).action == "ask"  # it answers something else
    one.says("my wife prefers the aisle", wide)
    told = one.says("Yes, always stop it.").told
    assert told[0].startswith("Stops: “my wife prefers the aisle”")
    assert one.tries(given={"to": "ann@acme.com"}).action == "deny"


def test_a_ban_that_only_asks_is_mended_by_a_narrower_note(chat):
    one = chat()
    said = "never write to the Kowalski family"
    stops = [{"tool": "send_email", "arguments": {"to": "a@kowalski.example"}}]
    narrow = note(said, when=[{"target": "@kowalski"}], stops=stops)
    one.says(said, note(said, **ANY_MAIL), narrow)
    assert one.tries(given={"to": "ann@acme.com"}).action == "allow"
    assert one.tries(given={"to": "a@kowalski.example"}).action == "deny"


BOB_FIRST = {"effect": "deny", "when": [{"arg": {"name": "cents", "over": 1}}]}
BOB_FIRST["unless"] = [{"earlier": {"target": "bob@", "worked": True}}]


def test_an_end_within_the_turn_is_known_to_the_calls_after_it(chat, memory):
    one = chat()
    memory.tool_rule_put("refund", "mail Bob first", **BOB_FIRST)
    one.session.messages("go")
    mailed = one.tries(given={"to": "bob@x.example"})
    one.session.ended(mailed, "sent", success=True)
    assert one.tries("refund", {"cents": 5}).action == "allow"


def test_an_end_says_nothing_of_the_same_call_in_a_later_turn(chat, memory):
    one = chat()
    bob = {"to": "bob@x.example"}
    one.session.messages("go")
    one.session.ended(one.tries(given=bob), "bounced", success=False)
    one.session.after_turn([{"role": "assistant", "content": "It failed."}])
    one.session.messages("again")
    one.tries(given=bob)
    one.session.after_turn(calls=[{"tool_name": "send_email", "input": bob, "output": "sent"}])
    [window] = memory.services.store().windows(memory.workspace_name, ["send_email"])
    assert [call.success for call in window.calls] == [None]


def test_an_answer_without_a_flag_may_prove_a_failure_and_never_a_success(chat, memory):
    one = chat()
    memory.tool_rule_put("refund", "mail Bob first", **BOB_FIRST)
    for output, action in (("Error: refused", "deny"), ("Sent to bob@x.example.", "ask")):
        one.session.messages("go")
        function = {"name": "send_email", "arguments": '{"to": "bob@x.example"}'}
        asked = {"role": "assistant", "tool_calls": [{"id": "1", "function": function}]}
        one.session.after_turn([asked, {"role": "tool", "tool_call_id": "1", "content": output}])
        assert one.tries("refund", {"cents": 5}).action == action


def test_a_function_that_asks_reads_the_call_the_rule_and_the_words(chat):
    one = chat(agrees=True)
    one.says("The thing with Sarah is settled.")
    assert one.tries().action == "allow"
    [question] = one.asked
    assert (question.tool_name, question.arguments) == ("send_email", SARAH)
    assert question.rule == "keep Sarah out of these mails"
    assert question.words == "The thing with Sarah is settled."
    assert question.action == question.decision.action == "ask"
    assert question.reason == question.decision.reason


def test_demands_tell_what_binds_with_how_often_and_when_it_stopped_a_call(chat, memory):
    one = chat()
    one.tries()
    one.tries()
    [demand] = memory.demands()
    assert (demand.rule, demand.tools) == ("keep Sarah out of these mails", ["@mail"])
    assert demand.stopped == 2
    assert demand.last_stopped == memory.decisions()[-1].time
    assert memory.decisions()[-1].call == '{"to": "sarah@x.example"}'
