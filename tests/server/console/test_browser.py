"""The console in a real browser, at two widths and in both schemes."""

import httpx
import pytest
from console_site import EVIL, TOKEN, fill, look

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def site(serve):
    """A service with a token, whose memory has a rule that stopped a call."""
    url, _ = serve(token=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}"}

    def ask(name, **body):
        given, address = {"workspace_id": "default", **body}, f"{url}/operations/{name}"
        return httpx.post(address, json=given, headers=bearer, trust_env=False).json()

    ask("capture_rules", user_message="Never email eve@x.org", tools=["send_email"])
    asked = {"tool_name": "send_email", "input": {"to": "eve@x.org"}, "conversation_id": "c"}

    def decided():
        return ask("check_tool_call", **asked)["metadata"]["decision"]["action"]

    assert decided() == "deny"
    return url, decided


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1400, "dark")])
def test_a_stopped_call_leads_to_its_rule_which_is_withdrawn_and_restored(
    visit, site, width, scheme
):
    url, decide = site
    page = visit(url, width, scheme, java_script_enabled=False)
    page.get_by_role("link", name="Decisions").click()
    page.locator(".rows a").first.click()
    page.get_by_role("link", name="Never email eve@x.org").click()
    page.get_by_role("button", name="Withdraw").click()
    assert "Withdrawn" in page.get_by_role("status").inner_text()
    assert decide() == "allow"
    page.get_by_role("button", name="Restore").click()
    assert decide() == "deny"


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
