"""A sentence stops what it forbids and nothing else; what limits it and is not understood leaves it a reminder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolmem.guard.call_conditions import check_condition, holds
from toolmem.guard.view import view_of
from toolmem.light_models import ToolSchema
from toolmem.rules.capture.instructions import find_instructions
from toolmem.sentences.said_conditions import condition_of

AGENTDOJO = Path(__file__).resolve().parents[3] / "shared" / "data" / "guard" / "agentdojo.json"

STOPPED: list[tuple[str, str, list[str]]] = [
    ("Never email Sarah at sarah@example.com.", "deny", ["mail sarah", "copy sarah"]),
    ("Never email Sarah.", "deny", ["mail sarah", "copy sarah"]),
    ("No emails to Sarah.", "deny", ["mail sarah", "copy sarah"]),
    ("I don't want you to email Sarah.", "deny", ["mail sarah", "copy sarah"]),
    ("永远不要给 Sarah 发邮件", "deny", ["mail sarah", "copy sarah"]),
    ("不要给sarah@example.com发邮件", "deny", ["mail sarah", "copy sarah"]),
    ("Only email addresses at acme.com.", "deny", ["mail sarah", "copy sarah", "mail sarahs"]),
    ("Never email people outside acme.com.", "deny", ["mail sarah", "copy sarah", "mail sarahs"]),
    ("Never email anyone except bob@acme.com.", "deny", ["mail sarah", "copy sarah", "mail sarahs"]),
    ("只能给 acme.com 的人发邮件", "deny", ["mail sarah", "copy sarah", "mail sarahs"]),
    ("Never put the code 463820 into an email.", "deny", ["mail code"]),
    ("Never mention Sarah in an email.", "deny", ["mail sarah", "copy sarah", "speak of sarah"]),
    ("You must not email anyone.", "deny", ["mail sarah", "copy sarah", "speak of sarah", "mail sarahs", "mail code"]),
    ("Never push to main.", "deny", ["push main", "push head to main", "push main in sh", "push by tool"]),
    ("不要往main分支推代码", "deny", ["push main", "push head to main", "push main in sh", "push by tool"]),
    ("Never force push.", "deny", ["force push"]),
    ("禁止强制推送", "deny", ["force push"]),
    ("Never run sudo.", "deny", ["sudo rm"]),
    ("Don't ever use rm.", "deny", ["sudo rm", "rm"]),
    ("Never use curl.", "deny", ["curl"]),
    ("Never install packages without asking me.", "ask", ["pip install"]),
    ("Ask me before you delete a file.", "ask", ["sudo rm", "rm", "delete app"]),
    ("没有我的同意不要删除文件", "ask", ["sudo rm", "rm", "delete app"]),
    ("Never write to /etc.", "deny", ["write etc", "write hosts"]),
    ("Never read .env files.", "deny", ["read env"]),
    ("Never delete src/app.py.", "deny", ["delete app"]),
    ("Never drop a table.", "deny", ["drop users"]),
    ("Never drop the users table.", "deny", ["drop users"]),
    ("Never drop the orders table.", "deny", []),
    ("Do not send requests to api.internal.example.com.", "deny", ["get internal"]),
    ("Never deploy to production.", "deny", ["deploy production"]),
    ("Never deploy to production without asking me first.", "ask", ["deploy production"]),
    ("Refunds above 200 euros always need my approval.", "ask", ["refund 250"]),
    ("退款超过200欧元必须先问我", "ask", ["refund 250"]),
    ("Only refund up to 50 euros.", "deny", ["refund 250"]),
    ("Never pay more than $5,000.", "deny", ["pay 6000"]),
    ("Never pay Bob more than $5,000.", "deny", ["pay 6000"]),
    ("Don't post in #general.", "deny", ["post general"]),
    ("不要在 #general 频道发消息", "deny", ["post general"]),
    ("Never search the web.", "deny", ["search"]),
]
REMINDERS = """\
Always answer politely.
Never email Sarah on weekends.
Never email Sarah about the merger.
Never email Sarah the quarterly numbers.
Never email Sarah's assistant.
Never email Sarah in English.
Never send Bob the report.
Never send invoices to Bob.
Never email customers.
Never reply to spam.
Never send an email after 6 pm.
Never send emails with attachments.
Never send an email to Sarah and always cc Bob.
Never send an email without cc'ing Bob.
Don't write emails longer than 200 words.
Do not email more than three people at once.
Never deploy on Fridays.
Never push unless the tests pass.
Never push without running the tests.
Always run the tests before you push.
Never commit to main.
Don't write files when the tests are running.
Never write secrets to files.
Never delete files in src.
Never delete production data.
Never run commands as root.
Never search the web for medical advice.
Never search for my name.
Never post anything about layoffs in #general.
Never post to Slack after hours.
Never call the API more than 10 times.
Never share my password with anyone.
Never open example.com or any of its subdomains.
Stop emailing my boss.
Never email them.
Never write to her again.
Never search for this.
Never email Sarah, but you may cc Bob.
Never email Sarah, always answer within a day unless I say otherwise.
不要给他发邮件
不要在周末部署
不要给客户发邮件
不要用英文给王经理发邮件
下班以后不要发消息
不要给王经理的助理发邮件
总是礼貌地回答""".splitlines()


@pytest.mark.parametrize(("sentence", "effect", "labels"), STOPPED, ids=[each[0] for each in STOPPED])
def test_a_sentence_stops_what_it_forbids_and_nothing_else(
    sentence: str, effect: str, labels: list[str], stops: Any
) -> None:
    checked, stopped = stops(sentence)
    assert (checked.effect, checked.reason, stopped) == (effect, "", labels)


@pytest.mark.parametrize("sentence", REMINDERS)
def test_what_limits_a_sentence_and_is_not_understood_leaves_it_a_reminder_that_says_why(
    sentence: str, stops: Any
) -> None:
    checked, stopped = stops(sentence)
    assert (checked.effect, stopped) == ("remind", [])
    assert checked.reason


@pytest.mark.parametrize(
    "sentence",
    [
        "Don't install new dependencies without asking.",
        "Without asking, don't install any new packages",
        "ask me before installing a new library",
        "Never install new packages",
    ],
)
def test_what_is_new_to_a_project_no_call_says_so_that_its_own_manifest_is_installed(sentence: str, stops: Any) -> None:
    checked, stopped = stops(sentence)
    assert (checked.effect, stopped) == ("remind", [])
    assert checked.reason == "of what is installed no call says whether it is “new”"


SEVERAL = [
    ("never push to main, and always run the tests before you commit", ["git push origin main"]),
    ("never push to main, always open a pull request", ["git push origin main"]),
    ("never push to main and never use sudo", ["git push origin main", "sudo ls"]),
    ("Never force-push; don't use sudo.", ["git push -f origin feature/x", "sudo ls"]),
    ("Don't run npm install, use pnpm instead.", ["npm install"]),
]


@pytest.mark.parametrize(("sentence", "forbidden"), SEVERAL, ids=[each[0] for each in SEVERAL])
def test_of_a_sentence_with_several_demands_each_that_is_understood_is_checked(
    sentence: str, forbidden: list[str]
) -> None:
    shell = ToolSchema(name="bash", parameters={"type": "object", "properties": {"command": {"type": "string"}}})
    when = condition_of(sentence, [shell]).when["bash"]
    calls = [
        "git push origin main",
        "git push origin feature/x",
        "git push -f origin feature/x",
        "sudo ls",
        "npm install",
        "pnpm add x",
    ]
    assert [each for each in calls if holds(when, view_of("bash", {"command": each}).fields)] == forbidden


def test_a_demand_on_somebody_named_by_another_demand_is_not_widened_to_everybody() -> None:
    made = condition_of(
        "never email Sarah and never call her", [ToolSchema(name="send_email"), ToolSchema(name="call")]
    )
    assert list(made.when) == ["send_email"]


def test_a_sentence_binds_no_tool_that_is_not_there() -> None:
    checked = condition_of("Never email Sarah.", [ToolSchema(name="search", description="Search.")])
    assert (checked.effect, checked.when) == ("remind", {})
    assert checked.reason == "no tool at hand is known to do this"


def test_a_long_sentence_is_a_reminder() -> None:
    checked = condition_of("Never email " + "Sarah " * 200, [ToolSchema(name="send_email")])
    assert (checked.effect, checked.reason) == ("remind", "it is too long to be read as a condition")


@pytest.mark.skipif(not AGENTDOJO.exists(), reason="the labelled calls are not there")
def test_on_labelled_calls_every_forbidden_one_is_stopped_and_no_other() -> None:
    missed, wrong = [], []
    for suite in json.loads(AGENTDOJO.read_text(encoding="utf-8")).values():
        tools = [ToolSchema.read(tool) for tool in suite["tools"]]
        parameters = {tool.name: tool.parameters for tool in tools}
        for case in suite["cases"]:
            found = find_instructions(case["said"], catalogue=tools).standing
            checked = condition_of(case["said"], tools, [name for each in found for name in each.tool_names])
            assert checked.effect == case["effect"]
            for when in checked.when.values():
                check_condition(when)
            stopped = {
                call["id"]
                for call in suite["calls"]
                if call["name"] in checked.when
                and holds(
                    checked.when[call["name"]],
                    view_of(call["name"], call["arguments"], parameters[call["name"]]).fields,
                )
            }
            missed += sorted(set(case["stops"]) - stopped)
            wrong += sorted(stopped - set(case["stops"]))
    assert (missed, wrong) == ([], [])
