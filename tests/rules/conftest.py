import pytest

from toolmem.models.tools import ToolSchema
from toolmem.rules.capture import ToolMemoryCaptureHook
from toolmem.rules.store import RuleInput


@pytest.fixture
def hook(rules):
    return ToolMemoryCaptureHook(rules, enabled=True)


@pytest.fixture
def put(rules):
    def make(tool="send_email", rule="Never email Bob", **fields):
        return rules.put_rule(RuleInput(tool_name=tool, rule=rule, **fields))

    return make


@pytest.fixture
def mail_tools():
    properties = {"to": {"type": "string"}, "body": {"type": "string"}}
    return [
        ToolSchema("send_email", "Send an e-mail", {"type": "object", "properties": properties}),
        ToolSchema("shell"),
    ]
