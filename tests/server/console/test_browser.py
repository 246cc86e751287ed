"""The console in a real browser, without JavaScript, at two widths and in both schemes.

Needs `pip install playwright` and a Chromium, else it is skipped; with axe-core's file in
TOOLMEM_AXE each page is also checked for accessibility.
"""

import os
import shutil
from pathlib import Path

import httpx
import pytest

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("TOOLMEM_CHROMIUM") or shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium")]
TOKEN = "token-of-the-test"
SIZES = [(400, "light"), (1400, "dark")]
PAGES = ("", "tools", "calls", "rules", "decisions", "draft", "tool?name=mail")


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def site(serve):
    """A service with a token, whose memory has calls and a rule that stopped one."""
    url, _ = serve(token=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}"}

    def ask(name, **body):
        given, address = {"workspace_id": "default", **body}, f"{url}/operations/{name}"
        return httpx.post(address, json=given, headers=bearer, trust_env=False).json()

    calls = [
        {"tool_name": "mail", "input": {"to": f"u{n}@x.org"}, "output": "ok", "success": n > 0}
        for n in range(4)
    ]
    ask("add", tool_call_results=calls)
    ask("capture_rules", user_message="Never email eve@x.org", tools=["send_email"])
    asked = {"tool_name": "send_email", "input": {"to": "eve@x.org"}, "conversation_id": "c"}

    def decided():
        return ask("check_tool_call", **asked)["metadata"]["decision"]["action"]

    assert decided() == "deny"
    return url, decided


def sign_in(page, url):
    page.goto(url)
    page.get_by_label("The configured token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("You decide, by token").wait_for()
    return page.url


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_stopped_call_leads_to_its_rule_which_is_withdrawn_and_restored(
    chromium, site, width, scheme
):
    url, decide = site
    page = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=False
    ).new_page()
    sign_in(page, url)
    page.get_by_role("link", name="Decisions", exact=True).click()
    page.locator(".rows a").first.click()
    page.get_by_role("link", name="Never email eve@x.org").click()
    page.get_by_role("button", name="Withdraw").click()
    assert "Withdrawn" in page.get_by_role("status").inner_text()
    assert decide() == "allow"
    page.get_by_role("button", name="Restore").click()
    assert decide() == "deny"


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_no_page_is_wider_than_the_screen_and_axe_finds_nothing(chromium, site, width, scheme):
    axe = Path(os.environ.get("TOOLMEM_AXE", "/none"))
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    root = sign_in(page, site[0])
    for name in PAGES:
        page.goto(f"{root}{name}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        if axe.is_file():
            page.evaluate(axe.read_text())
            found = page.evaluate("axe.run(document)")
            assert [each["id"] for each in found["violations"]] == [], name
