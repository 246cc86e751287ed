"""What a sentence becomes is told in plain words, and is never wider than what was said."""

from __future__ import annotations

from typing import Any

import pytest

from toolmem.guard.call_conditions import check_condition, holds
from toolmem.guard.condition_words import in_words
from toolmem.guard.view import view_of
from toolmem.light_models import ToolSchema
from toolmem.sentences.said_conditions import condition_of


def tool(name: str, description: str, **parameters: str) -> ToolSchema:
    kinds = {"amount": "number"}
    declared = {key: {"type": kinds.get(key, "string"), "description": text} for key, text in parameters.items()}
    return ToolSchema(name=name, description=description, parameters={"type": "object", "properties": declared})


TOOLS = [
    tool("send_email", "Send an e-mail.", to="Address of the recipient", subject="Subject", body="Text"),
    tool("bash", "Run a command in the shell.", command="The command"),
    tool("write_file", "Write text to a file.", path="Path of the file", content="Text"),
    tool("delete_file", "Delete a file.", path="Path of the file"),
    tool("transfer_money", "Transfer money to an account.", recipient="Account", amount="Amount in dollars"),
    tool("slack_post", "Post a message to a Slack channel", channel="Channel", text="Text"),
    tool("run_sql", "Run an SQL query", query="SQL"),
    tool("book_flight", "Book a flight", origin="From", destination="To", date="Date"),
    tool("create_event", "Create a calendar event", title="Title", participants="E-mail addresses", start="Start"),
]
MAIN = "a command `git push` with `main` or one that only the shell knows"
TOLD: list[tuple[str, dict[str, str]]] = [
    ("Never email Sarah at sarah@x.com.", {"send_email": "a target that names `sarah` or a target `sarah@x.com`"}),
    ("never email sarah", {"send_email": "a target that names `sarah`"}),
    ("Only email addresses at acme.com.", {"send_email": "a target other than at `acme.com`"}),
    ("Never put the code 463820 into an email.", {"send_email": "a value that names `463820`"}),
    ("Never send more than $5,000 in one transfer.", {"transfer_money": "`amount` over 5,000"}),
    ("Never push to main.", {"bash": MAIN}),
    ("Never force-push to main.", {"bash": MAIN.replace("push` with", "push` with force with")}),
    ("Never rebase.", {"bash": "a command `git rebase`"}),
    ("不要推送到 main 分支", {"bash": MAIN}),
    ("不要推 main", {"bash": MAIN}),
    ("Never run rm -rf.", {"bash": "a command `rm` with `-r` with `-f`"}),
    ("Never run `rm -rf /`.", {"bash": "a command `rm` with `-r` with `-f` with `/`"}),
    ("不要用 rm -rf", {"bash": "a command `rm` with `-r` with `-f`"}),
    ("Never run git reset --hard.", {"bash": "a command `git` with `reset` with `--hard`"}),
    ("Never use pip install.", {"bash": "a command `pip` with `install`"}),
    ("Never use curl or wget.", {"bash": "a command `curl` or a command `wget`"}),
    ("Never run commands.", {"bash": "every call"}),
    ("Never use run_sql.", {"run_sql": "every call"}),
    ("不要调用 send_email", {"send_email": "every call"}),
    ("Don't drop the users table.", {"run_sql": "a statement `drop table` and the table `users`"}),
    ("Never delete from the users table.", {"run_sql": "a statement `delete` or `truncate` and the table `users`"}),
    ("Never query the users table.", {"run_sql": "a statement `select` and the table `users`"}),
    (
        "Don't change the users table.",
        {
            "run_sql": "a statement `alter table` or `delete` or `drop table` or `insert` or `replace` or "
            "`truncate` or `update` and the table `users`"
        },
    ),
    ("不要在邮件里提到 Sarah", {"send_email": "a value that names `sarah`"}),
    (
        "Never mention Sarah in emails to Bob.",
        {"send_email": "a target that names `bob` and a value that names `sarah`"},
    ),
    ("不要在给 Bob 的邮件里提到 Sarah", {"send_email": "a target that names `bob` and a value that names `sarah`"}),
    ("Only post in #general.", {"slack_post": "a target other than `general`"}),
]
NOT_WIDER: list[tuple[str, set[str]]] = [
    ("Never buy anything.", set()),  # sending money is near to it, and is not what was said
    ("Never pay anyone.", {"transfer_money"}),
    ("Never contact anyone.", {"send_email"}),
    ("Never write anything.", {"write_file"}),
    ("不要付钱给任何人", {"transfer_money"}),
    ("Never schedule meetings before 9am.", set()),
    ("永远不要给公司以外的人发邮件", set()),
    ("Never email attachments.", set()),
    ("Never use curl in scripts.", set()),
    ("Never buy more than 100 shares.", set()),  # a count, not an amount
    ("Never book for more than 4 nights.", set()),
    ("Never reply all.", set()),
    ("不要给王磊发邮件了，他的邮箱是 wanglei@x.cn", set()),  # the address would be left out
]


@pytest.mark.parametrize(("sentence", "told"), TOLD)
def test_a_person_reads_in_plain_words_what_a_sentence_is_checked_as(sentence: str, told: dict[str, str]) -> None:
    assert {name: in_words(when) for name, when in condition_of(sentence, TOOLS).when.items()} == told


@pytest.mark.parametrize(("sentence", "bound"), NOT_WIDER)
def test_a_sentence_binds_only_tools_that_do_what_it_speaks_of(sentence: str, bound: set[str]) -> None:
    assert set(condition_of(sentence, TOOLS).when) == bound


def test_a_condition_of_another_shape_is_shown_as_it_is_written() -> None:
    own = {"type": "object", "required": ["tool_name"], "properties": {"tool_name": {"const": "x"}}}
    assert in_words(own).startswith('the condition {"type": "object"')
    assert in_words(None) == "nothing is checked"


OWN = [
    tool("git_push", "Push a branch.", remote="Remote", branch="Branch", force="Overwrite what is there"),
    tool("send_money", "Send money.", payee="Who gets it", amount="Amount", currency="Currency code"),
]


@pytest.mark.parametrize(
    ("sentence", "stopped", "passed"),
    [
        (
            "Never force-push to main.",
            {"branch": "main", "force": True},
            [{"branch": "main", "force": False}, {"branch": "main"}, {"branch": "dev", "force": True}],
        ),
        (
            "Never send more than 500 euros.",
            {"payee": "x", "amount": 600, "currency": "EUR"},
            [{"payee": "x", "amount": 600, "currency": "JPY"}, {"payee": "x", "amount": 400, "currency": "EUR"}],
        ),
        ("绝对不要给陈强转钱", {"payee": "陈强", "amount": 1}, [{"payee": "陈强生", "amount": 1}]),
    ],
)
def test_what_limits_a_demand_is_looked_for_in_the_parameter_that_says_it(
    sentence: str, stopped: dict[str, Any], passed: list[dict[str, Any]]
) -> None:
    ((name, when),) = condition_of(sentence, OWN).when.items()
    declared = next(each.parameters for each in OWN if each.name == name)
    assert holds(check_condition(when, "when"), view_of(name, stopped, declared).fields)
    assert not any(holds(when, view_of(name, each, declared).fields) for each in passed)


def test_a_table_that_is_truncated_is_not_one_that_is_dropped() -> None:
    (when,) = condition_of("Don't truncate the customers table.", TOOLS).when.values()
    assert in_words(when) == "a statement `delete` or `truncate` and the table `customers`"
