"""A console over a small memory, asked in this process; and a Chromium for a real one."""

import re

import pytest
from console_site import TOKEN, sign_in, start, stop
from starlette.testclient import TestClient

from toolmem import ToolMem
from toolmem.rules.changes import Actor
from toolmem.server.access import Access
from toolmem.server.http import application

ROOT = "http://127.0.0.1:8002"


class FakeTerminal:
    """Keeps what is printed; the test answers."""

    def __init__(self):
        self.codes, self.told, self.words, self.answer = [], [], "", None

    def show_link(self, code, told=""):
        self.codes.append(code)
        self.told.append(told)

    def ask(self, words, answered):
        self.words, self.answer = words, answered


class Tab(TestClient):
    """`key`: of the visit, which its forms name in their address."""

    key = ""

    def request(self, method, url, **more):
        if self.key and method == "POST" and str(url).startswith(("/w/", "/sign-out")):
            url = f"/v/{self.key}{url}"
        return super().request(method, url, **more)


class Browser:
    """Opens pages and sends their forms, with the cookies and the token against forged forms."""

    def __init__(self, app, terminal):
        self.app, self.terminal = app, terminal
        self.client = Tab(app, base_url=ROOT, follow_redirects=True)

    def another(self):
        """Another browser at the same service."""
        return Browser(self.app, self.terminal)

    def open(self, page, **query):
        visit = f"/v/{self.client.key}" if self.client.key else ""
        answer = self.client.get(f"{visit}/w/default/{page}", params=query)
        assert answer.status_code == 200, answer.text
        is_page = answer.headers["content-type"].startswith("text/html")
        text = answer.text.replace(visit, "")
        return re.sub(r"\s+", " ", text) if is_page else text

    def fields(self, rule_id=""):
        """The hidden fields of the forms on a rule's page, or of one on which a rule is written."""
        written = {"tool_name": "t", "rule": "x"}
        page = self.open("rule", id=rule_id) if rule_id else self.open("draft", **written)
        return dict(re.findall(r'name="(csrf|seen)" value="(\w+)"', page))

    def send(self, do, **form):
        """Send a form of a rule's page, or of one on which a rule is written."""
        data = {**self.fields(form.get("id", "")), "do": do, **form}
        return self.client.post("/w/default/rule", data=data)

    def begin(self, secret="", **form):
        """Send the form to sign in, by default with the code that the terminal printed last."""
        data = {"secret": secret or self.terminal.codes[-1], "form": "f0", **form}
        return self.client.post("/sign-in", data=data)

    def sign_in(self, secret="", is_let_in=True):
        """Sign in; where the terminal asks, it is answered."""
        answer = self.begin(secret)
        if "wait" in answer.url.query.decode():
            self.terminal.answer(is_let_in)
        return self.go_on(answer)

    def go_on(self, page):
        """Load the page again that waits for the terminal."""
        answer = self.client.get(page.url) if "wait" in page.url.query.decode() else page
        if found := re.search("/v/([^/]+)/", answer.url.path):
            self.client.key = found[1]
        return answer


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

    def make(token="", has_terminal=True, read_only=False):
        terminal = FakeTerminal() if has_terminal else None
        app = application(memory, Access(token), terminal, read_only=read_only)
        return Browser(app, terminal)

    return make


@pytest.fixture
def browser(browse):
    """A browser whose user signed in from the terminal."""
    made = browse()
    assert made.sign_in().status_code == 200
    return made


@pytest.fixture
def user_rule(memory):
    """A rule that the user typed, in a store that a hook has marked guarded."""
    user = memory.acting_as(Actor("user", "typed", session="talk"))
    more = {"effect": "deny", "when": [{"target": "user3@"}], "source": "user_explicit"}
    rule = user.tool_rule_put("send_email", "Never email user3", **more)
    memory.services.store().put(".store", ".store", "guarded", {})
    return rule


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
