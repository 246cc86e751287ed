"""A real `toolmem serve` in a terminal, browsers that sign in to it, and an agent beside them."""

import html
import re
import time

import httpx
import msgspec
import pytest
from console_site.terminal import ASKED, LINK, ServeInTerminal

from toolmem import ToolMem
from toolmem.operations.operation import OPERATIONS
from toolmem.server.console.views import VIEWS

pytest.importorskip("pty")


@pytest.fixture
def terminal(tmp_path):
    made = ServeInTerminal(tmp_path)
    yield made
    made.close()


class Visitor:
    """A browser that opens the link of the terminal and sends its form."""

    def __init__(self, link):
        self.root, self.code = link.partition("/sign-in")[0], link.partition("code=")[2]
        self.client = httpx.Client(base_url=self.root, follow_redirects=True, trust_env=False)
        form = re.search(r'name="form" value="(\w+)"', self.client.get(link).text)[1]
        self.page = self.client.post("/sign-in", data={"secret": self.code, "form": form})

    def words(self):
        return re.search("<h1>(.*?)</h1>", self.page.text)[1]

    def is_let_in(self):
        self.page = self.client.get(self.page.url)
        return "You decide here" in self.page.text


def test_a_person_signs_in_is_refused_and_ends_all_visits_in_a_real_terminal(terminal):
    visitor = Visitor(terminal.wait_for(LINK)[1])
    asked = terminal.wait_for(ASKED)[1]
    assert visitor.words() == asked and not visitor.is_let_in()
    terminal.press("y\n")
    terminal.wait_for(LINK, 2)
    assert visitor.is_let_in()
    terminal.press("y\n")  # before the next question: it does not answer it
    other = Visitor(terminal.wait_for(LINK, 2)[1])
    terminal.wait_for("Let the browser in", 2)
    time.sleep(0.5)
    assert not other.is_let_in() and visitor.is_let_in()
    terminal.press("n\n")
    terminal.wait_for(LINK, 3)
    assert not other.is_let_in() and "Not let in." in terminal.seen
    assert httpx.post(f"{visitor.root}/sign-in", data={"secret": visitor.code}).status_code == 403
    terminal.wait_for("all visits are ended")
    terminal.wait_for(LINK, 4)
    assert not visitor.is_let_in()


def test_ctrl_c_ends_the_server_while_it_asks(terminal):
    Visitor(terminal.wait_for(LINK)[1])
    terminal.wait_for("y/N")
    terminal.press("\x03")
    assert terminal.process.wait(timeout=30) == 0
    assert "Fatal" not in terminal.seen and "Traceback" not in terminal.seen


def test_a_server_that_only_reads_prints_no_link(tmp_path):
    terminal = ServeInTerminal(tmp_path, "--read-only")
    terminal.wait_for("Ctrl-C stops it")
    time.sleep(0.5)
    assert "sign-in" not in terminal.seen
    terminal.close()


@pytest.fixture
def rules(tmp_path):
    """Reads all rules of the store, in which one holds and one waits."""
    path = tmp_path / "m.db"
    with ToolMem(path) as memory:
        memory.add([{"tool_name": "send_email", "id": "c", "output": "x", "success": False}])
        memory.capture_rules("Never email eve@x.org", tools=["send_email"])
        memory.check_tool_call("send_email", {"to": "eve@x.org"})

    def read():
        with ToolMem(path) as memory:
            return msgspec.json.encode(memory.rules.every_rule())

    return read


def test_an_agent_with_a_shell_reads_the_console_and_changes_nothing(serve, rules):
    url, before = serve()[0], rules()
    assert b"eve@x.org" in before
    client = httpx.Client(base_url=url, follow_redirects=True, trust_env=False)
    pages, seen = ["/", "/sign-in", *(f"/w/default/{name}" for name in VIEWS)], {}
    pages.append("/w/default/draft?tool_name=t&rule=Never+x")
    while pages and len(seen) < 200:
        page = pages.pop()
        if page not in seen:
            seen[page] = client.get(page).text
            pages += map(html.unescape, re.findall(r'href="(/[^"]*)"', seen[page]))
    assert any("eve@x.org" in text for text in seen.values())
    ids = {
        html.unescape(each) for text in seen.values() for each in re.findall(r"id=([\w-]+)", text)
    }
    csrf = re.findall(r'name="csrf" value="(\w*)"', "".join(seen.values()))
    assert csrf == [] and len(ids) >= 2
    changes = ("approve", "reject", "withdraw", "restore", "delete", "save", "wrong")
    for do in changes:
        for each in ("", *ids):
            form = {"do": do, "id": each, "tool_name": "t", "rule": "Never x", "csrf": ""}
            for headers in ({}, {"Origin": url, "Sec-Fetch-Site": "same-origin"}):
                answer = client.post("/w/default/rule", data=form, headers=headers)
                assert answer.status_code == 403
            assert client.post("/w/default/rule", json=form).status_code == 403
    for name in VIEWS:
        assert client.post(f"/w/default/{name}", data={"do": "save"}).status_code == 403
    for secret in ("", "x", "0" * 16):
        assert client.post("/sign-in", data={"secret": secret}).status_code == 403
    assert rules() == before


def test_a_server_that_only_reads_refuses_what_changes_something(serve, rules):
    url, before = serve("--read-only")[0], rules()
    client = httpx.Client(base_url=url, trust_env=False)
    changing = [each for each in OPERATIONS.values() if not each.reads_only]
    flows = [each.flow for each in changing if each.flow]
    assert len(changing) > 10
    for name in ("vector_store", *flows, *(each.name for each in changing)):
        for path in (name, f"operations/{name}"):
            answer = client.post(f"/{path}", json={"workspace_id": "default"})
            assert answer.status_code in (403, 404) and "error" in answer.json(), name
        assert client.post(f"/{name}", json={"workspace_id": "default"}).status_code == 403
    for method in (each.rpc for each in changing if each.rpc):
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        assert "read-only" in client.post("/rpc", json=asked).json()["error"]["message"]
    asked = {"workspace_id": "default", "tool_name": "send_email"}
    listed = client.post("/tool_rule_list", json=asked)
    assert "eve@x.org" in listed.text
    found = client.post(
        "/retrieve_tool_memory", json={"workspace_id": "default", "tool_names": "t"}
    )
    assert found.status_code == 200
    assert rules() == before
