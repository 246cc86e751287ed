"""The pages speak English, and Chinese where the browser prefers it."""

import html
import json
import re
from importlib.resources import files

import pytest
from sentences import long_sentences, sentences

from toolmem.pages.html import FUTURE, PAST, UNITS, UNKNOWN, environment
from toolmem.server.console.app import preferred_language
from toolmem.server.console.changes import NOTICES
from toolmem.text.display import zone_name

CHINESE = "zh-CN,zh;q=0.9,en;q=0.8"
PAGES = """
home tools tool?name=send_email calls calls?tool=send_email&outcome=lost calls?q=none
calls?conversation=talk call?tool=send_email&id=c3 call?tool=send_email&id=c4&of=send_email
rules rules?state=waiting rules?state=ended draft draft?tool_name=send_email&rule=x
draft?id={rule} rule?id={rule} rule?id={asked} rule?id={asked}&call=user4&replay=1
decisions decisions?tool=send_email decision?id={decision} search?q=email nope
"""
# Formats, names of fields and of classes, which stand as they are; `code` is any code.
NAMES = "code csv example.com json mail shell token toolmem unless when wilson write"


@pytest.fixture
def pages(memory, user_rule, browse):
    """Reads every page, by its address, in a language; signed in, or not."""
    asked = memory.tool_rule_put("send_email", "Never email user4", priority="critical")
    memory.tool_rule_put("send_email", "x", id=user_rule.id, effect="remind")
    memory.check_tool_call("send_email", {"to": "user3@example.com"}, conversation_id="talk")
    ids = {"rule": user_rule.id, "asked": asked.id, "decision": memory.decisions()[0].id}

    def read(language="", *, signs_in=True):
        browser = browse()
        if signs_in:
            browser.sign_in()
        client = browser.client
        root = f"/v/{client.key}/w/default/" if signs_in else "/w/default/"
        headers = {"Accept-Language": language} if language else {}
        found = {"sign-in": client.get("/sign-in", headers=headers)}
        for page in PAGES.split():
            address = root + ("" if page == "home" else page.format(**ids))
            found[page] = client.get(address, headers=headers)
        return {page: answer.text for page, answer in found.items()}

    return read


def test_every_text_of_the_pages_is_short_and_has_a_chinese_one_with_the_same_values():
    texts = {*NOTICES.values(), PAST, FUTURE, UNKNOWN, *(unit for _, unit in UNITS)}
    console = files("toolmem.server.console").joinpath("templates")
    shared = files("toolmem.pages").joinpath("templates/parts.html.j2")
    templates = [each for each in console.iterdir() if each.name.endswith(".j2")]
    extract = environment("toolmem.server.console").extract_translations
    for template in [*templates, shared]:
        for _, _, found in extract(template.read_text("utf-8"), ("_", "gettext", "ngettext")):
            several = [found] if isinstance(found, str) else found or []
            texts |= set([each for each in several if each][-1:])  # the plural of two
    chinese = json.loads(console.joinpath("zh.json").read_text("utf-8"))
    assert set(chinese) == texts
    for english, text in chinese.items():
        assert not long_sentences(re.sub(r"%\(\w+\)s", "1", english))
        values = r"%\(\w+\)s|%s|%%|</?\w+"
        assert sorted(re.findall(values, english)) == sorted(re.findall(values, text)), english


@pytest.mark.parametrize("signs_in", [True, False])
def test_a_chinese_page_has_no_english_word(memory, pages, signs_in):
    zone = zone_name(memory.rules.zone, memory.rules.local_time())
    for page, text in pages(CHINESE, signs_in=signs_in).items():
        assert '<html lang="zh-Hans">' in text
        text = text.replace("send_email", "").replace(zone, "")
        labels = re.findall(r'(?:aria-label|placeholder|title)="([^"]*)"', text)
        words = set(re.findall("[a-z]{2,}", " ".join([*sentences(text), *labels]).lower()))
        assert not words - set(re.findall(r"\w+", NAMES)), page


@pytest.mark.parametrize("signs_in", [True, False])
def test_no_sentence_of_a_page_is_long(pages, signs_in):
    for page, text in pages(signs_in=signs_in).items():
        assert '<html lang="en">' in text
        assert not long_sentences(text), page


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh", "zh"),
        ("zh-TW", "zh"),
        ("ZH-hans-CN;q=0.9, en;q=0.8", "zh"),
        ("en-US,en;q=0.9,zh-CN;q=0.8", "en"),
        ("de, zh ; q=0.5, en;q=0.4", "zh"),
        ("zh;q=0", "en"),
        ("zh;q=much, *", "en"),
        ("zha, fr", "en"),
    ],
)
def test_the_language_is_the_one_that_the_browser_prefers(accepted, language):
    assert preferred_language(accepted) == language


def test_what_a_page_says_of_a_change_is_in_the_language_of_its_reader(browser, user_rule):
    told = html.unescape(browser.send("withdraw", id=user_rule.id).text)
    browser.client.headers["Accept-Language"] = "zh"
    answer = browser.send("restore", id=user_rule.id)
    assert NOTICES["withdraw"] in told and "已恢复，重新生效。" in answer.text
    assert answer.headers["vary"] == "Accept-Language"
