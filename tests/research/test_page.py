"""The report page: words of calls stay text, nothing is loaded, and it stays bounded."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from sentences import long_sentences

from toolmem.research.backtest import LaterRepairs
from toolmem.research.evaluation import evaluate, sample
from toolmem.research.report import MAX_TOOLS, page

HOSTILE = "</script></code><img src=x onerror=alert(1)><svg onload=alert(2)>\x1b[31m\u202e"
STRUCTURE = {"html", "head", "meta", "title", "style", "body", "header", "section", "div", "span"}
TEXT = {"h1", "h2", "p", "strong", "code", "ul", "li", "dl", "dt", "dd", "details", "summary"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "path", "ol", "a", "main"}
SEARCH = {"label", "input", "output", "script"}


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def page_of(tmp_path, *records):
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return page(evaluate(path))


@pytest.fixture
def hostile(tmp_path):
    call = {"tool_name": HOSTILE, "input": {HOSTILE: HOSTILE}, "output": f"Error: {HOSTILE}"}
    good = {**call, "output": f'{{"rows": ["{HOSTILE[:40]}"]}}', "success": True}
    bad, silent = {"tool_name": HOSTILE, "time_cost": -1}, {**call, "success": True}
    return page_of(tmp_path, call, call, silent, good, bad)


def test_words_of_calls_stay_text(hostile):
    found = Page(hostile)
    assert found.tags <= STRUCTURE | TEXT | TABLES | SEARCH
    assert hostile.count("<script") == 1
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "onerror=alert(1)" in found.text
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile


def test_flag_and_answer_are_both_told_where_they_differ_with_such_calls_to_look_at(tmp_path):
    empty = {"tool_name": "search", "input": {"q": "x"}, "output": "[]", "success": True}
    wrong = {**empty, "output": "Error: no index"}
    text = " ".join(Page(page_of(tmp_path, empty, wrong)).text.split())
    assert "50.0 % of 2 calls of 1 tool worked. The 95 % interval is 9.5 % to 90.5 % (s" in text
    assert "By the recorded flags 100.0 % did. Flag and answer differ on 1 call (50.0 %)" in text
    assert "1 failed, 1 of them silently. 1 worked, but was of no use." in text
    assert "1 search success Failed by its output" in text  # row, tool, flag, and the judge


def test_a_link_of_a_page_leads_to_a_part_of_it():
    path, schemas = sample()
    found = evaluate(path, tools=schemas)

    def links_and_parts():
        attributes = Page(page(found)).attributes
        links = {value[1:] for name, value in attributes if name == "href"}
        return links, {value for name, value in attributes if name == "id"}

    links, parts = links_and_parts()
    assert links and links <= parts
    for each in found.tools:
        each.guidance = None
    assert links_and_parts() == ({"disputed"}, {"disputed"})


def test_a_page_loads_nothing_from_outside():
    path, schemas = sample()
    text = page(evaluate(path, tools=schemas))
    found = Page(text)
    links = {"src", "href", "xlink:href", "srcset", "data", "action"}
    linked = [value for name, value in found.attributes if name in links]
    assert not [each for each in linked if not each.startswith("#")]
    assert "url(" not in found.text
    assert "@import" not in found.text


def test_only_the_script_of_the_page_runs_and_it_writes_no_html():
    path, schemas = sample()
    text = page(evaluate(path, tools=schemas))
    script = re.search(r"<script>(.+)</script>", text, re.DOTALL)[1]
    given = b64encode(sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r"default-src 'none';[^\"]+", text)
    assert f"script-src 'sha256-{given}';" in policy
    assert not re.search(r"HTML|document\.write|eval|Function\(", script)


def test_no_sentence_of_the_page_is_long_whatever_became_of_the_evaluation():
    assert long_sentences(f"<p>A <b>word</b> {'more ' * 14}</p><p>One</p>")
    path, schemas = sample()
    labels = {row: row % 3 > 0 for row in range(40)}
    found = evaluate(path, tools=schemas, labels=labels, by="agent")
    assert long_sentences(page(found)) == []
    found.stopped, found.duplicates, found.failed_evaluations = "the budget is reached", 1, [3]
    few = {"calls": 5000, "with_conversation": 1000, "conversations": 1}
    for repairs in (LaterRepairs(calls=5000, with_conversation=0), LaterRepairs(**few)):
        found.later_repairs = repairs
        assert long_sentences(page(found)) == []
    found.calls = []
    assert long_sentences(page(found)) == []


def test_what_fails_stands_before_how_it_was_judged():
    path, schemas = sample()
    text = Page(page(evaluate(path, tools=schemas))).text
    order = ["65.8 %", "80.7 %", "Which tools fail", "Why, and what", "second summary", "Judge"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "then worked:" in text


def test_a_page_stays_bounded_and_counts_what_it_leaves_out(tmp_path):
    records = [
        {"tool_name": f"tool_{n}", "input": {"q": "x" * 5_000}, "output": "Error: " + "y" * 5_000}
        for n in range(MAX_TOOLS + 25)
    ]
    text = page_of(tmp_path, *records)
    assert len(text) < 3_000_000
    assert {"25 more tools: see tools.csv.", "25 more cards: see lines.csv."} <= {
        " ".join(each.split()) for each in re.findall(r"25 more[^.]+\.csv\.", Page(text).text)
    }
