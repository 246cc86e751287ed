"""A console over a small memory, asked in this process."""

import re

import pytest
from starlette.testclient import TestClient

from toolmem import ToolMem
from toolmem.rules.changes import Actor
from toolmem.server.access import Access
from toolmem.server.http import application

ROOT = "http://127.0.0.1:8002"


class Browser:
    """Opens pages and sends their forms, with the cookies and the token against forged forms."""

    def __init__(self, memory, token="", code=""):
        self.memory = memory
        app = application(memory, Access(token), code)
        self.client = TestClient(app, base_url=ROOT, follow_redirects=True)

    def open(self, page, **query):
        answer = self.client.get(f"/w/default/{page}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.text

    def send(self, do, **form):
        """Send a form of the page of rules."""
        csrf = re.search(r'name="csrf" value="(\w+)"', self.open("draft", tool_name="t", rule="x"))
        return self.client.post("/w/default/rule", data={"csrf": csrf[1], "do": do, **form})

    def sign_in(self, secret):
        return self.client.post("/sign-in", data={"secret": secret})


@pytest.fixture
def memory(tmp_path):
    with ToolMem(tmp_path / "memory.db") as made:
        calls = [
            {
                "tool_name": "send_email",
                "id": f"c{number}",
                "input": {"to": f"user{number}@example.com"},
                "output": "error: mailbox full" if number % 3 == 0 else "sent",
                "success": number % 3 != 0,
                "metadata": {"conversation_id": "talk"},
            }
            for number in range(12)
        ]
        made.add(calls)
        made.summarize()
        yield made


@pytest.fixture
def browse(memory):
    """Makes browsers, of a service of their own."""
    return lambda **secrets: Browser(memory, **secrets)


@pytest.fixture
def browser(browse):
    return browse()


@pytest.fixture
def user_rule(memory):
    """A rule that the user typed, in a store that a hook has marked guarded."""
    user = memory.acting_as(Actor("user", "typed", session="talk"))
    more = {"effect": "deny", "when": [{"target": "user3@"}], "source": "user_explicit"}
    rule = user.tool_rule_put("send_email", "Never email user3", **more)
    memory.services.store().put(".store", ".store", "guarded", {})
    return rule
