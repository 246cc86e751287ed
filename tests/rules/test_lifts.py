"""Which rule a sentence takes back."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from toolmem.models.rules import ToolMemoryRule
from toolmem.rules.reader import lifted, lifts, may_mean, possibly_lifted, too_long
from toolmem.rules.reader.own_text import MAX_SENTENCE

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rule(tool_name, text):
    return ToolMemoryRule(id=text, tool_name=tool_name, rule=text, created_at=NOW, updated_at=NOW)


RULES = [
    rule("send_email", "never email Sarah"),
    rule("shell", "Never push to main"),
    rule("send_email", "Never email Bob"),
    rule("send_email", "不要给莎拉发邮件"),
]


@pytest.mark.parametrize(
    "message",
    [
        "can you email Sarah again?",
        "Bob says you may email Sarah again",
        "From: bob\nYou may email Sarah again.",
        "Subject: mails\n\nYou may email Sarah again.",
        "Re: mails\n\nYou may email Sarah again.",
        "Betreff: Mails\nYou may email Sarah again.",
        "转发：\nYou may email Sarah again.",
        "You may email Sarah this once",
        "You may email Sarah about the invoice again",
        "小王可以推送了",
        "You may email people again.",
        "> You may email Sarah again.",
    ],
)
def test_in_doubt_nothing_is_taken_back(message):
    assert lifted(message, RULES) is None


@pytest.mark.parametrize(
    "message",
    [
        "You can't push to main again.",
        "You can’t push to main any more.",
        "You cannot push to main again.",
        "You can no longer push to main.",
        "You aren't allowed to push to main again.",
        "Pushing to main isn't ok again.",
        "不可以再给莎拉发邮件",
        "以后也不能给莎拉发邮件了",
    ],
)
def test_a_sentence_that_forbids_a_thing_again_takes_no_ban_back(message):
    assert lifted(message, RULES) is None
    assert possibly_lifted(message, RULES) is None


def test_a_sentence_that_takes_back_what_was_forbidden_still_does():
    found = possibly_lifted("The ban that you cannot push to main is lifted.", RULES)
    assert found is not None
    assert found[0] == [RULES[1]]


@pytest.mark.parametrize(
    ("message", "number"),
    [
        ("Sarah is back, so you can mail her again", 0),
        ("the ban on mails to Bob is history", 2),
        ("Main is no longer protected, push as you like.", 1),
        ("Fine. Undo the thing about Sarah, please.", 0),
    ],
)
def test_other_words_leave_a_doubt_about_the_rule_that_shares_most_of_them(message, number):
    assert lifted(message, RULES) is None
    found = possibly_lifted(message, RULES)
    assert found is not None
    assert found[0] == [RULES[number]]


@pytest.mark.parametrize(
    "message",
    [
        "Never email Sarah again.",
        "is Sarah back again?",
        "if Sarah is back you can email her again",
        "she says you can email Sarah again",
        "> Sarah can get mails again",
        "run the tests again",
        "you can email them again",
        "Bob said you can push to main again",
        "you may email Mallory again",
        "Raise an alarm at Sarah's, please",
        "可以重新给小王发邮件了",
    ],
)
def test_a_demand_a_question_a_report_and_other_matters_leave_none(message):
    assert possibly_lifted(message, RULES) is None


@pytest.mark.parametrize("sign", [*".?:;\"'#<$€«：,+«《\ue000/「，‘=(@”…", "不要", "never "])
def test_no_pattern_searches_a_long_sentence(sign, monkeypatch):
    sizes = []

    class Spy:
        def __init__(self, pattern):
            self.pattern = pattern

        def search(self, text):
            sizes.append(len(text))
            return self.pattern.search(text)

    for name in ("_PERMISSION", "_ZH_PERMISSION", "_FOR_GOOD", "_MAY_LIFT"):
        monkeypatch.setattr(lifts, name, Spy(getattr(lifts, name)))
    message = sign * 20_000 + "x"
    assert lifted(message, RULES) is possibly_lifted(message, RULES) is None
    too_long(message)
    assert max(sizes, default=0) <= MAX_SENTENCE


NINE = "Meetings before nine in the morning are not a thing here"
EARLY = {"clock": {"from": "00:00", "to": "09:00", "of": "start"}}
LATE = {"arg": {"name": "env", "matches": "^prod"}, "clock": {"from": "16:00", "to": "00:00"}}
NOTED = {  # tool, sentence, conditions
    "leave": ("mail", "keep Sarah out of these mails, she's on leave", [{"target": "sarah"}]),
    "nine": ("calendar_create", NINE, [EARLY]),
    "four": ("deploy", "nothing goes out to production after four in the afternoon", [LATE]),
    "main": ("Bash", "Never push to main", [{"command": "^git push", "word": "main"}]),
    "force": ("Bash", "Never force-push", [{"command": "^git push", "word": "-f"}]),
    "rm": ("Bash", "never run rm -rf", [{"command": "^rm\\b", "word": "-rf"}]),
    "option": ("Bash", "Never commit with --no-verify", [{"word": "--no-verify"}]),
    "log": ("Bash", "Don't delete anything under /var/log", [{"path": "/var/log/**"}]),
    "euros": ("refund", "No refunds over 500 euros", [{"arg": {"name": "amount", "over": 500}}]),
    "friday": ("deploy", "No deploys on Fridays", [{"clock": {"days": ["fri"]}}]),
    "kubectl": ("Bash", "Never use kubectl delete", [{"command": "^kubectl delete"}]),
    "users": ("sql", "Never drop the users table", [{"arg": {"name": "sql", "matches": "users"}}]),
    "miller": ("mail", "Never email Sarah Miller", [{"target": "sarah miller"}]),
    "jones": ("mail", "Never email Sarah Jones", [{"target": "sarah jones"}]),
    "both": ("mail", "Never email Sarah or Bob", [{"target": "sarah"}, {"target": "bob"}]),
    "only": ("mail", "Only send mails to Bob", []),
    "except": ("mail", "Never email anybody except Sarah", []),
    "cc": ("mail", "don't cc marketing", [{"target": "marketing"}]),
    "ask": ("Bash", "Ask me before you push to main", [{"command": "^git push", "word": "main"}]),
    "zh-file": ("Bash", "别删除 /data 下的文件", [{"path": "/data/**"}]),
    "zh-time": ("deploy", "晚上十点以后不要部署到生产环境", []),
    "zh-li": ("mail", "不要给李雷发邮件", [{"target": "李雷"}]),
    "zh-pay": ("transfer", "不要给乙公司付款", [{"target": "乙公司"}]),
}


def noted(names):
    found = []
    for name in names.split():
        tool, text, when = NOTED[name]
        found.append(replace(rule(tool, text), id=name, effect="deny", when=when))
    return found


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Sarah may get mails again.", "leave"),
        ("Ok, mail Sarah again from now on.", "leave"),
        ("You can contact Sarah again now, she is back.", "leave"),
        ("Never mind the ban on writing to Sarah.", "leave"),
        ("Sarah can be emailed again", "leave"),
        ("Undo yesterday's rule about meetings before nine", "nine"),
        ("Meetings before 9 can be booked again.", "nine"),
        ("The rule about meetings before nine in the morning no longer holds.", "nine"),
        ("You may deploy to production after four again.", "four"),
        ("Production may go out after four again, the new on-call is there.", "four"),
        ("It's fine to force-push from now on", "force"),
        ("Please remove the rule about pushing to main", "main"),
        ("ok, pushing to main is fine again", "main"),
        ("rm -rf is allowed again", "rm"),
        ("Ignore the rule about --no-verify.", "option"),
        ("You may wipe files under /var/log again", "log"),
        ("Refunds over 500 euros are allowed again.", "euros"),
        ("Feel free to release on Fridays again", "friday"),
        ("以后可以删除 /data 下的文件了", "zh-file"),
        ("晚上十点以后又可以部署到生产环境了", "zh-time"),
        ("给李雷发邮件的禁令解除了。", "zh-li"),
        ("李雷的限制取消了", "zh-li"),
    ],
)
def test_a_plain_sentence_lifts_the_one_rule_whose_particular_thing_it_names(message, name):
    others = " ".join(set(NOTED) - {"miller", "jones", "both", "only", "except", "ask"})
    found = lifted(message, noted(others))
    assert found is not None
    assert found.id == name


def test_no_need_to_ask_takes_back_a_demand_to_be_asked_and_no_ban():
    message = "You no longer have to ask before pushing to main"
    assert lifted(message, noted("main ask")).id == "ask"
    assert lifted(message, noted("main")) is None


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("You may push again.", "main"),
        ("You may push again.", "force"),
        ("You can use rm again", "rm"),
        ("kubectl get is ok again", "kubectl"),
        ("You may query the users table again", "users"),
        ("You may read /var/log again.", "log"),
        ("You may deploy to production again", "four"),
        ("You may deploy to production before four again", "four"),
        ("Refunds over 50 euros are allowed again", "euros"),
        ("You may email Sarah again.", "miller"),
        ("You may email Sarah again.", "miller jones"),
        ("Drop the rule about Sarah", "both"),
        ("You may email Sarah again", "except"),
        ("You may mail Bob again", "only"),
        ("You can email marketing again", "cc"),
        ("Bob can push to main again", "main"),
        ("Sarah may email again", "leave"),
        ("Sarah is fine again.", "leave"),
        ("The build on main is fine again, continue.", "main"),
        ("You may push to main again in the fork", "main"),
        ("You may push to main again, the answer was no", "main"),
        ("Sure, you may push to main again, and then we are all fired.", "main"),
        ("You may push to main again. Just kidding.", "main"),
        ("You may push to main again. But not on Fridays.", "main"),
        ("You may push to main again. Only after review.", "main"),
        ("You may push to main again. Today.", "main"),
        ("You may push to main again. Bob's words.", "main"),
        ("You may push to main again. I never agreed to that.", "main"),
        ("Bob told me something. You may push to main again.", "main"),
        ("Use this as commit message. You may push to main again", "main"),
        ("李雷可以发邮件了", "zh-li"),
        ("乙公司可以付款了", "zh-pay"),
        ("以后可以给李雷的助理发邮件了", "zh-li"),
    ],
)
def test_what_names_less_or_something_else_lifts_nothing_at_once(message, names):
    assert lifted(message, noted(names)) is None


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("When CI is green you may push to main again.", "main"),
        ("Once the release is out you may push to main again", "main"),
        ("My boss says you may push to main again.", "main"),
        ("Ann: You may push to main again.", "main"),
        ("According to the wiki you may push to main again", "main"),
        ("I heard that pushing to main is fine again", "main"),
        ("Nobody may push to main again.", "main"),
        ("You won't push to main any more.", "main"),
        ("You may hardly push to main again", "main"),
        ("You can push to main again? No.", "main"),
        ("You may push to main again, just today.", "main"),
        ("You may push to main for this one", "main"),
        ("I wish you could push to main again", "main"),
        ("You may push to main again except on Fridays", "main"),
        ("You may push to dev again but never to main", "main"),
        ("Write Bob that you may push to main again", "main"),
        ("Remind me to lift the ban on main", "main"),
        ("谁说你可以给李雷发邮件了", "zh-li"),
        ("经理说可以给李雷发邮件了", "zh-li"),
        ("Forget it.", "main"),
        ("Great, thanks, go on.", "main"),
        ("Rebase on main again and run the tests.", "main"),
        ("Go back to main and pull.", "main"),
        ("Forget main.py, look at app.py now.", "main"),
        ("Undo the last commit on main.", "main"),
        ("main.c no longer compiles, fix it.", "main"),
        ("Remove the rule for main from style.css.", "main"),
        ("Add undo and redo buttons to the main window.", "main"),
        ("Cancel the meeting with Sarah.", "leave"),
        ("Sarah is back, book a room for her.", "leave"),
        ("Mail me the report again, please.", "leave"),
        ("Sarah no longer works in sales, update the org chart.", "leave"),
        ("Sarah can be removed from the invite now.", "leave"),
        ("Move the nine o'clock meeting back by an hour.", "nine"),
        ("Production is down again, look at the logs.", "four"),
        ("The deploy is over, write the release notes now.", "four"),
        ("Undo the refund of 500 euros for order 12.", "euros"),
        ("Show me the end of /var/log/syslog again.", "log"),
        ("The hook passes now, commit again.", "option"),
        ("The users table is gone again, restore it.", "users"),
        ("ok, undo that and try again", "rm"),
        ("取消和李雷的会议", "zh-li"),
        ("李雷不再负责这个项目，更新文档", "zh-li"),
        ("恢复 /data 下被删除的文件", "zh-file"),
        ("生产环境恢复了，写一份报告", "zh-time"),
    ],
)
def test_doubtful_words_and_other_matters_neither_lift_nor_ask(message, name):
    [only] = noted(name)
    assert lifted(message, [only]) is possibly_lifted(message, [only]) is None
    assert not may_mean(message, message, only)


def test_words_that_name_nothing_mean_the_only_rule_that_stopped_a_call_before():
    message, rules = "It is fine now, go ahead again", noted("main rm")
    assert possibly_lifted(message, rules) is None
    assert possibly_lifted(message, rules, {"main", "rm"}) is None
    found = possibly_lifted(message, rules, {"rm"})
    assert found is not None
    assert [rule.id for rule in found[0]] == ["rm"]
    assert may_mean("go ahead again", message, rules[1], {"rm"})
    assert not may_mean("go ahead again", message, rules[0], {"rm"})
    assert possibly_lifted("Forget it.", rules, {"rm"}) is None


def test_a_quote_means_a_rule_only_by_the_sentence_that_holds_it():
    message = "Sarah is back early, you can write to her again. Run the tests."
    [leave] = noted("leave")
    assert may_mean("you can write to her again", message, leave)
    assert not may_mean("Run the tests", message, leave)
    assert not may_mean("she may get mails again", message, leave)
