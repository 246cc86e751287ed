"""Who may read the console and who may change rules on it."""

import html
import re
from urllib.parse import urlencode

import pytest

from toolmem.server.console import visitors

SIGNED_IN = "You decide here"


def is_signed_in(browser):
    return SIGNED_IN in browser.open("")


def posts(page):
    """Where the forms of a page lead that change something."""
    return re.findall(r'method="post" action="([^"]+)"', page)


def test_the_terminal_lets_in_the_browser_that_shows_its_words(browse):
    browser = browse()
    page = browser.begin()
    assert f"<h1>{browser.terminal.words}</h1>" in page.text and page.headers["refresh"] == "2"
    assert len(browser.terminal.words.split()) == 2
    assert not is_signed_in(browser)
    browser.terminal.answer(True)
    assert str(browser.go_on(page).url).endswith("/w/default/")
    assert is_signed_in(browser) and not is_signed_in(browser.another())


def test_a_browser_that_the_terminal_refuses_is_told_so_and_may_try_the_next_link(browse):
    browser = browse()
    assert "did not let this browser in" in browser.sign_in(is_let_in=False).text
    assert not is_signed_in(browser)
    browser.sign_in()
    assert is_signed_in(browser)


def test_a_code_that_is_used_a_second_time_ends_all_visits(browse):
    browser = browse()
    browser.sign_in()
    used, other = browser.terminal.codes[0], browser.another()
    answer = other.client.post("/sign-in", data={"secret": used, "form": "another"})
    assert answer.status_code == 403 and "all visits are ended" in answer.text
    assert browser.terminal.told[-1] == visitors.USED_TWICE
    assert not is_signed_in(browser)
    browser.sign_in()
    assert is_signed_in(browser)


def test_a_code_that_is_used_while_the_terminal_asks_lets_nobody_in(browse):
    browser = browse()
    page = browser.begin()
    for _ in range(2):
        assert browser.another().client.post("/sign-in", data={"secret": browser.terminal.codes[0]})
    browser.terminal.answer(True)
    assert "wait" in str(browser.go_on(page).url)
    assert not is_signed_in(browser)


def test_the_form_to_sign_in_may_be_sent_twice(browse):
    browser = browse()
    browser.begin()
    code, words = browser.terminal.codes[-1], browser.terminal.words
    again = browser.another()  # whose first answer did not arrive
    page = again.begin(code)
    assert words in page.text
    browser.terminal.answer(True)
    again.go_on(page)
    assert is_signed_in(again)


def test_what_a_browser_remembers_of_signing_in_lets_nobody_else_in(browse):
    browser = browse()
    page = browser.begin(form="hidden")
    assert "wait" in str(page.url) and "hidden" not in str(page.url)


def test_an_api_client_that_signs_in_again_and_again_ends_no_visit_of_the_terminal(browse):
    browser = browse(token="secret-token")
    browser.sign_in()
    for _ in range(visitors.MAX_VISITS + 1):
        browser.another().begin("secret-token")
    assert is_signed_in(browser)


def test_a_wrong_code_ends_nothing(browse):
    browser = browse()
    browser.sign_in()
    for secret in ("wrong", "", "\ud800".encode("utf-8", "surrogatepass"), "x" * 9_000):
        assert browser.another().client.post("/sign-in", data={"secret": secret}).status_code in (
            403,
            400,
        )
    assert is_signed_in(browser)


def test_words_are_shown_only_to_the_page_that_sent_the_code(browse):
    browser = browse()
    browser.begin()
    for query in ("", "?code=x", "?wait=", "?wait=f1"):
        assert browser.terminal.words not in browser.client.get(f"/sign-in{query}").text


def test_a_visit_may_change_until_15_minutes_after_its_last_change(browser, memory, monkeypatch):
    rule, now = memory.tool_rule_put("send_email", "Never email Bob"), visitors.time()
    monkeypatch.setattr(visitors, "time", lambda: now + 14 * 60)
    browser.send("withdraw", id=rule.id)
    monkeypatch.setattr(visitors, "time", lambda: now + 28 * 60)
    assert "Restored" in browser.send("restore", id=rule.id).text
    shown = browser.fields(rule.id)
    monkeypatch.setattr(visitors, "time", lambda: now + 44 * 60)
    late = browser.client.post("/w/default/rule", data={"do": "delete", "id": rule.id, **shown})
    assert late.status_code == 403 and "too long ago" in late.text
    assert memory.tool_rule_list("send_email") != []
    page = browser.open("rule", id=rule.id)
    assert "Sign in again to decide" in page and posts(page) == ["/sign-out"]
    browser.sign_in()
    assert is_signed_in(browser)


def test_a_form_that_is_sent_twice_is_followed_once(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    form = {"do": "withdraw", "id": rule.id, **browser.fields(rule.id)}
    answers = [browser.client.post("/w/default/rule", data=form) for _ in range(2)]
    assert answers[0].url == answers[1].url and "Withdrawn" in answers[1].text
    assert [each.what for each in memory.rules.every_rule()[0].changes] == ["withdrawn"]
    assert "Restored" in browser.send("restore", id=rule.id).text
    assert "Withdrawn" in browser.send("withdraw", id=rule.id).text
    assert memory.tool_rule_list("send_email") == []


def test_who_signs_out_changes_nothing_any_more(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    shown = browser.fields(rule.id)
    assert browser.client.post("/sign-out", data={"csrf": "0"}).status_code == 403
    cookies = dict(browser.client.cookies)
    assert cookies
    browser.client.post("/sign-out", data={"csrf": shown["csrf"]})
    browser.client.cookies.update(cookies)  # kept by somebody else
    assert not is_signed_in(browser)
    form = {"do": "delete", "id": rule.id, **shown}
    assert browser.client.post("/w/default/rule", data=form).status_code == 403
    assert memory.tool_rule_list("send_email") != []


def test_a_form_that_arrives_after_its_visit_was_ended_changes_nothing(browser, memory):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    shown = browser.fields(rule.id)

    def slow():
        yield urlencode({"do": "withdraw", "id": rule.id, **shown}).encode()
        browser.client.post("/sign-out", data={"csrf": shown["csrf"]})

    assert browser.client.post("/w/default/rule", content=slow()).status_code == 403
    assert memory.tool_rule_list("send_email") != []


def test_a_cookie_that_a_server_on_another_port_was_sent_changes_nothing(browser, memory):
    rule, thief = memory.tool_rule_put("send_email", "Never email Bob"), browser.another()
    thief.client.cookies.update(browser.client.cookies)
    for page in ("/", "/sign-in", f"/w/default/rule?id={rule.id}", "/none", "/v/x/w/default/"):
        text = thief.client.get(page, headers={"Accept": "text/html"}).text
        assert posts(text) in ([], ["/sign-in"]) and browser.client.key not in text
    for key in ("", "x"):
        thief.client.key = key
        form = {"do": "delete", "id": rule.id, **browser.fields(rule.id)}
        assert thief.client.post("/w/default/rule", data=form).status_code == 403
    assert memory.tool_rule_list("send_email") != [] and is_signed_in(browser)


def test_with_the_token_alone_what_loosens_waits(browse, memory, user_rule):
    browser = browse(token="secret-token")
    browser.sign_in("secret-token")
    assert "The change waits" in browser.send("withdraw", id=user_rule.id).text
    assert memory.tool_rule_list("send_email") != []
    assert browser.sign_in("wrong").status_code == 403
    browser.sign_in()
    browser.send("withdraw", id=user_rule.id)
    assert memory.tool_rule_list("send_email") == []
    (rule,) = memory.rules.every_rule()
    assert (rule.changes[-1].evidence, rule.changes[-1].words) == ("terminal", "console: withdraw")


def test_who_gave_the_token_reads_on_when_the_minutes_are_over(browse, memory, monkeypatch):
    browser = browse(token="secret-token")
    browser.sign_in("secret-token")
    now = visitors.time()
    monkeypatch.setattr(visitors, "time", lambda: now + 3_600)
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    assert rule.rule in browser.open("rules")
    assert posts(browser.open("rule", id=rule.id)) == ["/sign-out"]


def test_a_token_hides_every_page_until_it_is_given(browse):
    browser = browse(token="secret-token", has_terminal=False)
    assert "Sign in" in browser.client.get("/w/default/tools").text
    assert browser.client.post("/w/default/rule", data={"do": "delete"}).status_code == 403
    assert browser.client.get("/w/default/call.txt?tool=send_email&id=c1").url.path == "/sign-in"
    browser.sign_in("secret-token")
    assert "send_email" in browser.open("tools")
    assert browser.client.post("/tools", json={"workspace_id": "default"}).status_code == 401


def test_who_only_reads_has_no_cookie_and_who_signs_in_one_out_of_reach(browse):
    browser = browse()
    for page in ("/w/default/", "/sign-in?code=x", "/none"):
        assert "set-cookie" not in browser.client.get(page).headers
    browser.client.follow_redirects = False
    cookie = browser.begin().headers["set-cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    assert "max-age" not in cookie.lower()  # it ends with the browser


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"csrf": ""}, {}),
        ({"csrf": "0"}, {}),
        ({"csrf": "é"}, {}),
        ({}, {"Origin": "http://127.0.0.1:9999"}),
        ({}, {"Origin": "http://["}),
        ({}, {"Origin": "null"}),
        ({}, {"Sec-Fetch-Site": "same-site"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_a_form_of_another_page_changes_nothing(browser, memory, form, headers):
    rule = memory.tool_rule_put("send_email", "Never email Bob")
    data = {"do": "delete", "id": rule.id, **browser.fields(rule.id), **form}
    answer = browser.client.post("/w/default/rule", data=data, headers=headers)
    assert answer.status_code == 403
    assert memory.tool_rule_list("send_email") != []


def test_who_did_not_sign_in_sees_no_form_and_changes_nothing(browse, memory):
    browser, rule = browse(), memory.tool_rule_put("send_email", "Never email Bob")
    pages = [browser.open("rule", id=rule.id), browser.open("draft", id=rule.id)]
    pages.append(browser.open("draft", tool_name="send_email", rule="Never email Eve"))
    for page in pages:
        assert posts(page) == [] and "Sign in to" in page
    for do in ("withdraw", "delete", "save", "approve", "reject"):
        data = {"do": do, "id": rule.id, "tool_name": "send_email", "rule": "Never email Eve"}
        for path in ("rule", "draft", "", "none/at/all"):
            answer = browser.client.post(f"/w/default/{path}", data=data)
            assert answer.status_code == 403 and "Sign in first" in answer.text
    assert [each.rule for each in memory.tool_rule_list("send_email")] == ["Never email Bob"]


def test_what_a_page_shows_signs_in_nobody(browser):
    ((name, cookie),) = browser.client.cookies.items()
    csrf = browser.open("draft", tool_name="t", rule="x").partition('name="csrf" value="')[2][:96]
    for forged in (csrf, csrf[32:], cookie[:-1], "a.b", ""):
        answer = browser.another().client.get("/w/default/", headers={"Cookie": f"{name}={forged}"})
        assert answer.status_code == 200 and SIGNED_IN not in answer.text


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1.evil.com"])
def test_without_a_token_only_this_machine_is_let_in(browser, memory, host):
    memory.workspace("project-x").add([{"tool_name": "t", "output": "x"}])
    for page in ("/w/default/", "/sign-in", "/none"):
        answer = browser.client.get(page, headers={"Host": host, "Accept": "text/html"})
        assert answer.status_code == 403 and "project-x" not in answer.text


def test_signing_in_leads_to_pages_of_the_console_alone(browse):
    browser = browse(token="secret-token")
    browser.client.follow_redirects = False
    for then in ("//evil.com/w/", "https://evil.com", "\\\\evil.com", "", "/w"):
        location = browser.begin("secret-token", then=then).headers["location"]
        assert re.fullmatch(r"/v/[\w-]+/", location)
    assert browser.client.get("/").headers["location"] == "/w/default/"


def test_signing_in_leads_to_the_page_that_was_asked_for(browse):
    browser = browse(token="secret-token")
    asked = "/w/default/call?tool=send_email&id=c3"
    page = browser.client.get(asked).text
    then = html.unescape(re.search(r'name="then" value="([^"]*)"', page)[1])
    answer = browser.client.post("/sign-in", data={"secret": "secret-token", "then": then})
    assert str(answer.url).endswith(asked) and "mailbox full" in answer.text


def test_the_page_to_sign_in_tells_a_stranger_nothing(browse, memory):
    memory.workspace("project-x").add([{"tool_name": "t", "output": "x"}])
    client = browse(token="secret-token").client
    pages = [client.get(path).text for path in ("/w/default/", "/sign-in?wait=x", "/none")]
    pages.append(client.post("/w/default/rule").text)
    for page in pages:
        assert "project-x" not in page and 'href="/w/' not in page
    assert "These pages are read-only" in browse(has_terminal=False).client.get("/sign-in").text


def test_a_console_that_only_reads_takes_no_code_and_follows_no_form(browse, memory):
    browser = browse(token="secret-token", read_only=True)
    assert browser.terminal.codes == []
    browser.sign_in("secret-token")
    page = browser.open("draft", tool_name="t", rule="Never x")
    assert posts(page) == ["/sign-out"] and "Read-only" in page
    form = {"csrf": page.partition('name="csrf" value="')[2][:96], "do": "save"}
    answer = browser.client.post("/w/default/rule", data={**form, "tool_name": "t", "rule": "x"})
    assert answer.status_code == 403 and "read-only" in answer.text
    assert memory.tool_rule_list("t") == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"csrf=" + b"x" * (64 << 10), 413),
        (b"csrf=\xff", 400),
        (b"csrf=%ff%fe", 400),
        (b"&".join([b"a=1"] * 10_000), 400),
        (b'{"csrf": 1}', 403),
    ],
)
@pytest.mark.parametrize("path", ["/w/default/rule", "/sign-in", "/sign-out"])
def test_a_body_that_is_no_form_is_refused_on_a_page(browser, path, body, status):
    answer = browser.client.post(path, content=body)
    assert answer.status_code == status
    assert "<h1>" in answer.text and "Traceback" not in answer.text


@pytest.mark.parametrize("path", ["/none", "/a/b", "/w/default/none", "/tools"])
def test_an_address_that_a_person_typed_wrong_is_a_page(browse, path):
    client = browse().client
    answer = client.get(path, headers={"Accept": "text/html,*/*"})
    assert answer.status_code == 404 and "There is no such page" in answer.text
    assert client.get("/openapi.json", headers={"Accept": "text/html"}).json()["paths"]
    if not path.startswith("/w/"):
        assert "error" in client.get(path).json()


def test_who_signs_in_from_a_page_comes_back_to_it_and_may_paste_the_whole_link(browse):
    browser = browse()
    page = browser.open("draft", tool_name="t", rule="Never x")
    leads = html.unescape(re.search(r'href="(/sign-in\?then=[^"]+)"', page)[1])
    then = re.search(r'name="then" value="([^"]*)"', browser.client.get(leads).text)[1]
    link = f"http://127.0.0.1:8002/sign-in?code={browser.terminal.codes[-1]}"
    waiting = browser.begin(link, then=html.unescape(then))
    browser.terminal.answer(True)
    assert browser.go_on(waiting).url.path.endswith("/w/default/draft")
