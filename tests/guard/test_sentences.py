"""From a plain sentence of the user to the call that is stopped, and the near one that is not."""

import pytest

from toolmem import ToolMem

SHELL = {"name": "Bash", "parameters": {"properties": {"command": {"type": "string"}}}}
PAYMENT = {"payee": {"type": "string"}, "amount": {"type": "number"}}
PAY = {"name": "create_payment", "parameters": {"properties": PAYMENT}}
LETTER = {"to": {"type": "string"}, "body": {"type": "string"}}
MAIL = {"name": "send_email", "parameters": {"properties": LETTER}}
DELETE = {"name": "delete_file", "parameters": {"properties": {"path": {"type": "string"}}}}
TOOLS = [SHELL, PAY, MAIL, DELETE]


@pytest.fixture
def said(path):
    with ToolMem(path) as memory:

        def say(sentence, call, tool="Bash"):
            memory.capture_rules(sentence, tools=TOOLS)
            given = {"command": call} if isinstance(call, str) else call
            return memory.check_tool_call(tool, given, tools=TOOLS).action

        yield say


@pytest.mark.parametrize(
    ("sentence", "call", "action"),
    [
        ("Never push to main.", "git push origin main", "deny"),
        ("Never push to main.", "git push origin feature/main-menu", "allow"),
        ("Never push to main.", "git push origin main:dev", "allow"),
        ("Never push to main.", "mise exec -- git push origin main", "deny"),
        ("Never push to main.", "mystery --command 'git push origin main'", "ask"),
        ("Never push to main.", "echo 'git push origin main'", "allow"),
        ("Never use git checkout -B.", "git checkout -b feature/x", "allow"),
        ("Never use git checkout -B.", "git checkout -B feature/x", "deny"),
        ("Never use git branch -D.", "git branch -d merged", "allow"),
        ("Never use git branch -D.", "git branch -d -f x", "deny"),
        ("Never use git branch -D.", "git branch --delete --force x", "deny"),
        ("Never use --no-verify.", "git commit -n -m x", "deny"),
        ("Never use --no-verify.", "git commit -nm x", "deny"),
        ("Never use --no-verify.", "git commit -m 'why -n is bad'", "allow"),
        ("Never edit .env files", "Set-Content .env x", "deny"),
        ("Never edit .env files", "echo x > .env", "deny"),
        ("Never edit .env files", "cat .env", "allow"),
        ("Never edit .env files", "git apply <<'E'\n+++ b/.env\n@@ -1 +1 @@\n-a\n+b\nE", "deny"),
        ("Never edit .env files", "patch -p1 <<'EOF'\n+++ b/README.md\nEOF", "allow"),
        ("Never write to /etc", "tee -a x < /etc/hosts", "allow"),
        ("Never write to /etc", "cp x /etc/hosts", "deny"),
        ("Don't run shell commands with sudo", "sudo rm x", "deny"),
        ("Don't run shell commands with sudo", "rm x", "allow"),
    ],
)
def test_commands(said, sentence, call, action):
    assert said(sentence, call) == action


@pytest.mark.parametrize(
    ("sentence", "tool", "call", "action"),
    [
        ("Never pay more than $5,000.", "create_payment", {"payee": "B", "amount": "6k"}, "deny"),
        ("Never pay more than $5,000.", "create_payment", {"payee": "B", "amount": 5000}, "allow"),
        ("单笔付款不得超过5000元", "create_payment", {"payee": "B", "amount": 6000}, "deny"),
        ("Never send more than $5,000 in one transfer", "create_payment", {"amount": 5001}, "deny"),
        ("Only email addresses at acme.com", "send_email", {"to": "a@acme.com"}, "allow"),
        ("Only email addresses at acme.com", "send_email", {"to": "a@gmail.com"}, "deny"),
        ("Never email Sarah", "send_email", {"to": "Sarah <s@x.org>"}, "deny"),
        ("Never email Sarah", "send_email", {"to": "bob@x.org", "body": "Sarah left"}, "allow"),
        ("ask me before you delete a file", "delete_file", {"path": "/a"}, "ask"),
        ("Never email Sarah on weekends", "send_email", {"to": "sarah@x.org"}, "allow"),
    ],
)
def test_calls_of_tools(said, sentence, tool, call, action):
    assert said(sentence, call, tool) == action
