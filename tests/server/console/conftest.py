"""A console over a small memory, asked in this process; and a Chromium for a real one."""

import os
import re

import pytest
from console_site import TOKEN, Missing, open_chromium, sign_in, start, stop
from starlette.testclient import TestClient

from toolmem import ToolMem
from toolmem.rules.changes import Actor
from toolmem.server.access import Access
from toolmem.server.http import application

ROOT = "http://127.0.0.1:8002"


class Browser:
    """Opens pages and sends their forms, with the cookies and the token against forged forms."""

    def __init__(self, memory, token="", code=""):
        app = application(memory, Access(token), code)
        self.client = TestClient(app, base_url=ROOT, follow_redirects=True)

    def open(self, page, **query):
        answer = self.client.get(f"/w/default/{page}", params=query)
        assert answer.status_code == 200, answer.text
        is_page = answer.headers["content-type"].startswith("text/html")
        return re.sub(r"\s+", " ", answer.text) if is_page else answer.text

    def fields(self, rule_id=""):
        """The hidden fields of the forms on a rule's page, or of one on which a rule is written."""
        written = {"tool_name": "t", "rule": "x"}
        page = self.open("rule", id=rule_id) if rule_id else self.open("draft", **written)
        return dict(re.findall(r'name="(csrf|seen)" value="(\w+)"', page))

    def send(self, do, **form):
        """Send a form of a rule's page, or of one on which a rule is written."""
        data = {**self.fields(form.get("id", "")), "do": do, **form}
        return self.client.post("/w/default/rule", data=data)

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
    """Makes browsers, each of a service of its own, where nobody signed in."""
    return lambda **secrets: Browser(memory, **secrets)


@pytest.fixture
def browser(browse):
    """A browser whose user signed in with the code of the terminal."""
    made = browse(code="from-the-terminal")
    assert made.sign_in("from-the-terminal").status_code == 200
    return made


@pytest.fixture
def user_rule(memory):
    """A rule that the user typed, in a store that a hook has marked guarded."""
    user = memory.acting_as(Actor("user", "typed", session="talk"))
    more = {"effect": "deny", "when": [{"target": "user3@"}], "source": "user_explicit"}
    rule = user.tool_rule_put("send_email", "Never email user3", **more)
    memory.services.store().put(".store", ".store", "guarded", {})
    return rule


@pytest.fixture(scope="module")
def chromium():
    """A real browser. CI fails without one."""
    try:
        with open_chromium() as opened:
            yield opened
    except Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture
def visit(chromium):
    """Signs in at a service whose token is TOKEN; returns the page. `more`: of its context."""
    opened = []

    def begin(url, width=1400, scheme="light", **more):
        size = {"width": width, "height": 900}
        opened.append(chromium.new_context(viewport=size, color_scheme=scheme, **more))
        page = opened[-1].new_page()
        sign_in(page, url)
        return page

    yield begin
    for context in opened:
        context.close()


@pytest.fixture
def serve_store():
    """Starts a service over a store."""
    running = []

    def begin(path):
        url, process = start(path.parent, token=TOKEN, store=path)
        running.append(process)
        return url

    yield begin
    for process in running:
        stop(process)
