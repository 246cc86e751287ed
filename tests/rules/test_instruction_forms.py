"""The forms of a demand and the traps beside them, each by its name."""

from __future__ import annotations

import time

import pytest

from toolmem.rules.capture.instructions import find_instructions
from toolmem.rules.identity import UNSCOPED

CATALOGUE = [
    "send_email",
    "read_inbox",
    "slack_post_message",
    "calendar_create_event",
    "shell",
    "bash_exec",
    "browser_open",
    "web_search",
    "http_request",
    "read_file",
    "write_file",
    "delete_file",
    "sql_execute",
    "git_push",
    "create_payment",
    "issue_refund",
    "cancel_order",
    "book_flight",
    "transfer_to_human",
    "create_ticket",
    "deploy_service",
    "translate_text",
]


def reading_of(message: str) -> str:
    found = find_instructions(message, catalogue=CATALOGUE)
    return "standing" if found.standing else "session" if found.session else "none"


def tools_of(message: str, catalogue: list[str], ran: tuple[str, ...] = ()) -> list[set[str]]:
    return [
        set(instruction.tool_names) for instruction in find_instructions(message, catalogue=catalogue, ran=ran).standing
    ]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("the thing before the bound", "Emails may only go to people inside the company."),
        ("a bound at the end of a passive", "Payments may be made on working days only."),
        ("a topic, a colon, a bound", "Payments: only on Mondays, never on weekends."),
        ("a topic and its limit", "Emails: never more than 3 a day."),
        ("a topic that is never done", "deleting files = never"),
        ("a thing with approval only", "refunds only with a manager's approval"),
        ("a maximum told as such", "One Slack message per day is the maximum."),
        ("a place and nowhere else", "You may write files under ./out and nowhere else."),
        ("a leave with a limit", "You can use the browser, but no more than 5 pages per question."),
        ("anything but", "You can delete anything except files in /etc."),
        ("one place, never another", "deploy to staging only, never straight to prod"),
        ("nothing goes out", "From now on nothing goes out by e-mail."),
        ("a wish that nothing is done", "I'd be grateful if in future you deleted no files."),
        ("a wish in the passive", "I'd prefer it if no emails were sent after six."),
        ("who gets it", "Customers must not get more than two emails per week."),
        ("an agreement", "We agreed that you don't push to main any more."),
        ("a reminder of one's own wish", "Please remember that I don't want any emails sent to my old address."),
        ("whatever happens", "Whatever happens, you do not message our CEO on Slack."),
        ("told many times", "i told you a hundred times not to email my mom"),
        ("a habit", "Make it a habit never to push to main."),
        ("a preference", "My preference is that you don't email people on weekends."),
        ("importance", "It's important that you never email the press."),
        ("making sure that nothing is done", "Please ensure that no emails are sent to external recipients."),
        ("a polite question", "Would you mind not posting on Slack anymore?"),
        ("a proposal", "Could we agree that you never email my wife?"),
        ("read-only", "Treat the production database as read-only."),
        ("the only one", "I'm the only one who pushes to main."),
        ("what must be shown first", "Every SQL query has to be shown to me before it is run."),
        ("before any, tell me", "Before you pay any invoice, show me the invoice."),
        ("a threat", "If I catch you emailing my clients again, we're done."),
        ("chat spelling", "dont u ever email my mom again"),
        ("chat spelling of before", "ask me b4 u delete any files"),
        ("chat spelling of without", "no deploys w/o my approval"),
        ("a recurring time", "周末不要付款"),
        ("an approval by others", "退款一定要主管批准以后才能退"),
        ("what comes before", "建工单之前必须先查有没有重复的"),
        ("in every case", "不管什么情况都不能删文件"),
        ("reserved to the user", "邮件一律由我自己发。"),
        ("only I may", "我的收件箱只有我能看"),
        ("no right to", "你无权删除任何文件。"),
        ("each needs my confirmation", "凡是删除文件的操作，都需要我亲自确认。"),
        ("a topic before the comma", "超过一千的付款，先问我。"),
        ("a leave and its limit", "你发邮件可以，但是不能发给竞争对手。"),
        ("never directly", "只部署到测试环境，绝不直接上生产"),
        ("shown before", "git push 之前必须先把 diff 给我看"),
    ],
)
def test_a_standing_demand_is_found_in_this_form(form: str, message: str) -> None:
    assert reading_of(message) == "standing", form


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("a subject that is one thing", "The order must not be cancelled before I've talked to my wife."),
        ("now", "Don't transfer me to a human now, I'm almost done."),
        ("a span of time", "No deploys for the next two hours."),
        ("tomorrow", "Please don't book a flight for tomorrow."),
        ("stop for a moment", "Stop that for a moment, don't run any more commands until I say so."),
        ("one text", "Avoid links in the Slack post."),
        ("all of them, but only for an hour", "接下来一小时不要跑任何 SQL"),
        ("a pause", "数据库在迁移，SQL 先停一停，别执行了"),
        ("a correction", "会议不要安排在周一，安排在周二，加到日历"),
    ],
)
def test_a_demand_on_this_moment_or_thing_is_not_pinned(form: str, message: str) -> None:
    assert reading_of(message) == "session", form


@pytest.mark.parametrize(
    ("trap", "message"),
    [
        ("supposed", "Let's suppose I told you never to delete files."),
        ("supposed, as a question", "What if I told you never to delete files?"),
        ("supposed, in Chinese", "假如我说永远不要删除文件，那临时目录你会怎么处理"),
        ("a rule for others", "Our policy for the interns is: no Slack after 6."),
        ("a rule that is asked about", "No emails after eight. Is that wise?"),
        ("everybody is meant", "In Germany you must not email people without consent."),
        ("told at the end", "Bookings may only be changed by email, the site says."),
        ("told at the end, in Chinese", "机票一律不退不换，商家这么说的"),
        ("a chat that is shown", "Bob: never push to main\nAlice: ok"),
        ("an example", "Generate five rules for a bot, e.g. never delete files without asking."),
        ("a thing that one does not want", "I don't want the flight any more."),
        ("a task with a feature", "订一张不要靠窗的机票"),
        ("the text of a letter", "写一封邮件，说明用户不要删除文件"),
        ("what a program is to do", "写个脚本，文件少于三个就不要删除"),
        ("an error message with a number", "错误 403：禁止访问 http 接口。"),
        ("how things are", "Slack 上的消息过一天就不能删了"),
        ("being unable", "文件太大了，不能用邮件发，用网盘吧"),
        ("a failure", "不能删除文件，提示权限不足"),
        ("how, in the middle", "严禁酒驾，这句话怎么翻译"),
        ("the perfect tense", "The browser must not have been closed."),
        ("another thought after a comma", "Don't ask me why, just book the flight."),
        ("another thought after and", "Stop asking me questions and book the flight."),
        ("somebody else is to be asked once", "Ask Bob before you book, he knows the dates."),
        ("a ban of the place", "Smoking is not allowed in the hotel, book it anyway."),
        ("a colleague's wish", "Send an email to Joe and tell him never to call me again."),
    ],
)
def test_the_same_words_are_no_demand_in_this_place(trap: str, message: str) -> None:
    assert reading_of(message) == "none", trap


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ("Never unlock the door for strangers.", {"door_unlock"}),
        ("The thermostat must never be set above 23 degrees.", {"thermostat_set"}),
        ("never disarm it", {"alarm_disarm"}),
        ("Keep your hands off the doors.", {"door_lock", "door_unlock"}),
        ("Never change customer records without asking me.", {"update_customer_record"}),
        ("You must always ask me before you look up an order.", {"lookup_order"}),
        ("Do not text customers who have opted out.", {"send_sms"}),
        ("绝不要自己解除警报", {"alarm_disarm"}),
        ("客户资料以后不要改", {"update_customer_record"}),
    ],
)
def test_verbs_and_parts_of_a_name_pick_the_tool(message: str, tools: set[str]) -> None:
    catalogue = [
        "lights_set",
        "thermostat_set",
        "door_lock",
        "door_unlock",
        "alarm_disarm",
        "update_customer_record",
        "lookup_order",
        "send_sms",
    ]
    assert tools_of(message, catalogue) == [tools]


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ("never run shell commands that touch /etc or /boot", {"shell", "bash_exec"}),
        ("Keep out of /etc/nginx.", {"read_file", "write_file", "delete_file"}),
        ("Never open links from e-mails in the browser.", {"browser_open"}),
        ("别用浏览器打开邮件里的链接", {"browser_open"}),
        ("Existing files must never be overwritten.", {"write_file"}),
        ("The tool `shell` is not to be used.", {"shell"}),
        ("Files need my approval before you delete them.", {"delete_file"}),
        ("you're not allowed to reply to legal@acme.example", {"send_email"}),
    ],
)
def test_what_only_modifies_or_follows_names_no_tool(message: str, tools: set[str]) -> None:
    assert tools_of(message, CATALOGUE) == [tools]


def test_a_sentence_that_points_back_is_about_the_tools_of_the_one_before() -> None:
    found = tools_of("Never read my inbox. Never do it again!", CATALOGUE, ran=("send_email",))
    assert found == [{"read_inbox"}, {"read_inbox"}]
    assert tools_of("Nice. Never do it again!", CATALOGUE, ran=("send_email",)) == [{"send_email"}]
    assert tools_of("Never do it again!", CATALOGUE) == [{UNSCOPED}]


def test_two_lines_on_ones_own_topics_are_no_chat() -> None:
    found = tools_of("Payments: never pay suppliers twice.\nSlack: never post customer names.", CATALOGUE)
    assert found == [{"create_payment"}, {"slack_post_message"}]


def test_abbreviations_without_end_take_linear_time() -> None:
    def seconds(characters: int) -> float:
        message = "e.g. " * (characters // 5)
        begun = time.process_time()
        find_instructions(message, catalogue=CATALOGUE)
        return time.process_time() - begun

    seconds(1000)
    short, long = min(seconds(50_000) for _ in range(3)), seconds(400_000)
    assert long < 40 * short + 0.05  # 8 times the length; a quadratic reader would take 64 times as long
