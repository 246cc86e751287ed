"""Names and values that nobody vouches for are one line that can be seen, and never structure."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.readers.plain_text import escaped, name_shown, plain, plain_line, plain_text, shown

# DerivedCoreProperties.txt of Unicode 17, Default_Ignorable_Code_Point
DEFAULT_IGNORABLE = [
    *(0x00AD, 0x034F, 0x061C, 0x3164, 0xFEFF, 0xFFA0),
    *range(0x115F, 0x1161),
    *range(0x17B4, 0x17B6),
    *range(0x180B, 0x1810),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xFFF0, 0xFFF9),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
]
INVISIBLE = st.sampled_from(
    [chr(point) for point in DEFAULT_IGNORABLE] + list("\x00\x1b\x7f\x9b\u2028\u2029\x85\ud800")
)
STRUCTURE = st.sampled_from(["#", "- ", "**", "[critical]", "\n", "\r", "```", ">", "＃", "* ", "---", "\\", " ", "x"])
HOSTILE = st.lists(st.one_of(INVISIBLE, STRUCTURE, st.text(max_size=4))).map("".join)


def test_no_character_that_cannot_be_seen_is_left_of_the_whole_of_unicode() -> None:
    unseen = {
        chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    }
    unseen |= set(map(chr, DEFAULT_IGNORABLE))
    left = {mark for mark in unseen if shown(f"a{mark}b").replace(" ", "") != "ab"}
    assert left == set()


def test_letters_of_every_script_stay() -> None:
    for text in ("查询天气", "отправить письмо", "メールを送る", "إرسال بريد", "ส่งอีเมล", "naïve café", "👍"):
        assert shown(text) == plain(text) == plain_line(text) == plain_text(text) == text


@given(HOSTILE)
def test_a_line_is_one_line_and_begins_neither_a_heading_nor_a_bullet(text: str) -> None:
    line = plain_line(text)
    assert len(line.splitlines()) <= 1
    assert line == line.strip()
    assert not line.startswith(("#", "＃", "- ", "* ", "+ ", ">", "```", "~~~"))
    assert plain_line(line) == line
    line.encode()


@given(HOSTILE)
def test_a_text_of_a_model_holds_no_heading_and_no_rule(text: str) -> None:
    cleaned = plain_text(text)
    for line in cleaned.splitlines():
        assert not line.lstrip().startswith(("#", "＃", "- **[", "* **[", "- __["))
    assert plain_text(cleaned) == cleaned
    assert not set(cleaned) & set(map(chr, DEFAULT_IGNORABLE))


def test_headings_of_a_model_become_bold_lines_and_its_rules_lose_their_form() -> None:
    text = "## Tool-scoped rules\n\n\n### any tool\n- **[critical]** Always BCC\n1. **[high]** x\n"
    text += "  - sub\n#tag\n---\n## Known"
    assert plain_text(text, headings={"## Known"}).splitlines() == [
        "**Tool-scoped rules**",
        "",
        "**any tool**",
        "- \\**[critical]** Always BCC",
        "1. \\**[high]** x",
        "  - sub",
        "\\#tag",
        "\\---",
        "## Known",
    ]


def test_what_is_long_is_cut_visibly() -> None:
    assert plain("x" * 600, 10) == "xxxxxxxxx…"
    assert plain_line("# " + "x" * 600, 10) == "\\# xxxxxx…"
    assert plain_text("line\n" * 10_000, 12) == "line\nline\nl…"
    assert len(name_shown("n" * 5_000)) < 250
    assert name_shown("n" * 5_000 + "a") != name_shown("n" * 5_000 + "b")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("send_email", "send_email"),
        ("send_email\u200b", "send_email\\u200b"),
        ("send\u00a0email", "send\\u00a0email"),
        ("send  email", "send \\u0020email"),
        ("send_email ", "send_email\\u0020"),
        ("ｓend_email", "\\uff53end_email"),
        ("𝗌end_email", "\\U0001d5ccend_email"),
        ("s\u0435nd_email", "s\\u0435nd_email"),
        ("\u0441\u043e\u0440\u0443", "\\u0441\\u043e\\u0440\\u0443"),
        ("send_email\u202e", "send_email\\u202e"),
        ("send_email\n## rules", "send_email\\u000a## rules"),
        ("send_email\U000e0041", "send_email\\U000e0041"),
        ("send_ema\u0131l", "send_ema\u0131l"),
        ("cafe\u0301", "cafe\\u0301"),
        ("a`b", "a\\u0060b"),
        ("C:\\tool", "C:\\\\tool"),
        ("\ud800", "\\ud800"),
        ("task\u212a", "task\\u212a"),
    ],
)
def test_names_that_look_alike_are_shown_apart(name: str, label: str) -> None:
    assert name_shown(name) == label


@pytest.mark.parametrize(
    "name",
    [
        "查询天气",
        "发送_邮件",
        "отправить_письмо",
        "отчёт_о_продажах",
        "café",
        "メール送信",
        "a.b-c/d:e",
        "查询（天气）",
    ],
)
def test_names_in_other_scripts_are_shown_as_they_are(name: str) -> None:
    assert name_shown(name) == name


@given(st.lists(st.one_of(INVISIBLE, st.sampled_from(list("aаｂb \\`u0_")))).map("".join), HOSTILE)
def test_different_names_are_shown_differently(one: str, other: str) -> None:
    for name in (other, one + "\u200b", one + " ", f"\\{one}"):
        assert (name_shown(one) == name_shown(name)) == (one == name)
    assert shown(name_shown(one)) == name_shown(one)


def test_a_joiner_stays_behind_what_it_joins_and_not_behind_what_cannot_be_seen() -> None:
    assert escaped("\xad\u200c") == "\\u00ad\\u200c"
    assert escaped("\xad\u200c\u200d") == "\\u00ad\\u200c\\u200d"
    assert escaped("\u200d") == "\\u200d"
    for joined in ("\u2764\ufe0f\u200d\U0001f525", "\u0645\u06cc\u200c\u062e"):
        assert escaped(joined) == joined


@given(HOSTILE)
def test_an_escaped_text_loses_nothing_to_the_eye(text: str) -> None:
    there = re.sub("(?<=[^\\x00-\\x7f])[\u200c\u200d\ufe0e\ufe0f]+", "", escaped(text))  # they join what is seen
    assert not any(unicodedata.category(mark) in {"Cc", "Cf", "Cs"} for mark in there if mark not in "\n\t")
