"""The console in a real browser: what a person does there, and what no page may do."""

import re

import httpx
import pytest
from console_site import EVIL, fill, look
from console_site.terminal import ASKED, LINK, ServeInTerminal

from toolmem import ToolMem
from toolmem.rules.changes import Actor
from toolmem.testing.faults import Fault
from toolmem.testing.model_server import ModelServer

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
SIZES = pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1400, "dark")])
MAILS = [
    {"tool_name": "send_email", "input": {"to": f"{name}@x.org"}, "output": "ok", "success": True}
    for name in ("ann", "bob", "eve")
]


class Person:
    """Signs in with the terminal's link, in a browser without JavaScript."""

    def __init__(self, chromium, terminal, width, scheme):
        self.terminal, size = terminal, {"width": width, "height": 900}
        more = {"color_scheme": scheme, "java_script_enabled": False}
        self.context = chromium.new_context(viewport=size, **more)
        self.page = self.context.new_page()
        link = terminal.wait_for(LINK)[1]
        self.url = link.partition("/sign-in")[0]
        self.page.goto(link)
        self.press("Sign in")
        words = terminal.wait_for(ASKED)[1]
        assert self.page.get_by_role("heading").inner_text() == words
        terminal.press("y\n")
        self.page.get_by_text("You decide here").wait_for()

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()

    def follow(self, name, **more):
        self.page.get_by_role("link", name=name, **more).first.click()

    def sees(self, text):
        return re.search(text, self.page.locator("main").inner_text()) is not None

    def asks(self, name, **body):
        given = {"workspace_id": "default", **body}
        answer = httpx.post(f"{self.url}/operations/{name}", json=given, trust_env=False)
        return answer.raise_for_status().json()

    def decided(self, name):
        call = {"tool_name": "send_email", "input": {"to": f"{name}@x.org"}}
        answer = self.asks("check_tool_call", **call, conversation_id="c")
        return answer["metadata"]["decision"]["action"]


@pytest.fixture
def signs_in(chromium, tmp_path):
    """Starts `toolmem serve` in a terminal of its own, over the store m.db, and signs in to it."""
    running = []

    def begin(width=1400, scheme="light", *options):
        terminal = ServeInTerminal(tmp_path, *options)
        running.append(terminal)
        running.append(Person(chromium, terminal, width, scheme))
        return running[-1]

    yield begin
    for each in reversed(running):
        each.context.close() if isinstance(each, Person) else each.close()


@pytest.fixture
def memory(tmp_path):
    """A store that a hook guards, with a demand that the user typed and three recorded calls."""
    with ToolMem(tmp_path / "m.db") as made:
        made.add(MAILS)
        made.summarize()
        user = made.acting_as(Actor("user", "typed", session="c"))
        assert user.capture_rules("Never email eve@x.org", tools=["send_email"]).kept
        made.services.store().put(".store", ".store", "guarded", {})
        yield made


@SIZES
def test_a_demand_is_seen_as_a_stopped_call_looked_at_withdrawn_and_restored(
    signs_in, memory, width, scheme
):
    person = signs_in(width, scheme)
    assert person.decided("eve") == "deny"
    person.follow("Home")
    assert person.sees("1\\s+call stopped or asked about today") and person.sees(
        "Never email eve@x.org"
    )
    person.follow("send_email to: eve@x.org")
    assert person.sees("eve@x.org")
    person.follow("Never email eve@x.org")
    person.press("Withdraw")
    assert person.sees("Withdrawn") and person.decided("eve") == "allow"
    person.press("Restore")
    assert person.sees("Restored") and person.decided("eve") == "deny"


@SIZES
def test_a_loosening_that_waits_is_tried_on_recorded_calls_and_approved_with_one_click(
    signs_in, memory, width, scheme
):
    (rule,) = memory.tool_rule_list("send_email")
    agent = memory.acting_as(Actor("agent", "", "Eve is fine now", "c", "claude"))
    agent.tool_rule_put("send_email", rule.rule, id=rule.id, effect="remind")
    person = signs_in(width, scheme)
    assert person.decided("eve") == "deny"
    person.follow("Home")
    person.follow(rule.rule)
    assert person.sees("It would let through 1 of the newest 3 calls")
    assert person.sees("Eve is fine now")
    person.press("Approve")
    assert person.sees("Approved") and person.decided("eve") == "allow"
    assert memory.rules.requests() == []


@SIZES
def test_a_draft_is_read_tried_and_kept(signs_in, memory, width, scheme):
    person = signs_in(width, scheme)
    person.follow("Rules")
    person.follow("Write a rule")
    person.page.get_by_label("Tool, or a class").fill("send_email")
    person.page.get_by_label("The rule, as you would say it").fill("Never email bob@x.org")
    person.press("Show what it does")
    assert person.sees("It would have stopped 1 of the newest 3 calls; 1 of them worked")
    assert person.decided("bob") == "allow"
    person.press("Save: it holds at once")
    assert person.sees("Saved: it holds now") and person.decided("bob") == "deny"
    made = [each for each in memory.tool_rule_list("send_email") if "bob" in each.rule]
    assert made[0].is_users


def test_an_evaluation_that_failed_is_retried_from_home(signs_in, tmp_path):
    with ModelServer([Fault("garbage", times=100)]) as model:
        ask = "llm.default.params."
        options = [
            "llm.default.backend=openai_compatible",
            "llm.default.model_name=any",
            f"{ask}base_url={model.openai_url}",
            f"{ask}api_key=k",
            f"{ask}max_retries=0",
        ]
        person = signs_in(1400, "light", *options)
        person.asks("add", tool_call_results=MAILS[:2])
        person.follow("Home")
        assert person.sees("2 kept calls have no verdict")
        model.faults.clear()
        person.press("Judge again")
        for _ in range(100):
            person.follow("Home")
            if not person.sees("Being judged again since"):
                break
            person.page.wait_for_timeout(100)
        assert person.sees("0 kept calls have no verdict")
        assert person.sees("Judged 2 of 2 kept calls again")


def test_every_page_is_accessible_and_fits_the_screen(visit, serve_store, tmp_path):
    pages = fill(tmp_path / "m.db", "send_email")
    url = serve_store(tmp_path / "m.db")
    assert look(visit(url, bypass_csp=True), url, pages, axe=True) == []


def test_pages_do_nothing_that_their_own_policy_forbids(visit, serve_store, tmp_path):
    pages = fill(tmp_path / "m.db", "send_email")
    url = serve_store(tmp_path / "m.db")
    page, told = visit(url), []
    page.on("console", lambda message: told.append(message.text))
    assert look(page, url, pages) == []
    assert [each for each in told if "(Not Found)" not in each] == []


def test_no_text_of_a_call_or_rule_runs_draws_or_widens_a_page(visit, serve_store, tmp_path):
    """Even if a browser knew no policy."""
    pages = fill(tmp_path / "m.db", *EVIL, size=1_000_000)
    url = serve_store(tmp_path / "m.db")
    assert look(visit(url, bypass_csp=True), url, pages) == []
