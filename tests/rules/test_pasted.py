"""Text that a user only shows makes no rule; what the user says beside it does."""

from pathlib import Path

import pytest

from toolmem.rules.reader.demands import demands, unkept
from toolmem.text.forms import word_set

HERE = Path(__file__).parent
TOOLS = sorted(
    word_set(
        "send_email read_inbox slack_post_message calendar_create_event shell web_search "
        "delete_file write_file sql_execute git_push create_payment issue_refund create_ticket"
    )
)
DEMANDS = {"en": "Never push to main.", "zh": "永远不要推送到 main 分支。"}


def texts(lang: str) -> list[str]:
    """Texts that users paste, with what they say around them; § stands for the demand."""
    parts = (HERE / f"pasted_{lang}.txt").read_text(encoding="utf-8").split("@@ ")[1:]
    return [part.split("\n", 1)[1].removesuffix("\n") for part in parts]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_of_fifty_pasted_texts_at_most_one_becomes_a_rule(lang):
    found = texts(lang)
    taken = [t for t in found if demands(t.replace("§", DEMANDS[lang]), ["send_email"], TOOLS)]
    assert len(found) > 300
    assert len(taken) <= 0.02 * len(found), taken


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_users_own_demand_is_seen_beside_a_task(lang):
    lines = (HERE / f"own_{lang}.txt").read_text(encoding="utf-8").splitlines()
    words = DEMANDS[lang].rstrip(".。")
    messages = [line.replace("\\n", "\n").replace("§", DEMANDS[lang]) for line in lines]
    missed = [
        message
        for message in messages
        if not any(words in found.sentence for found in demands(message, ["send_email"], TOOLS))
    ]
    assert len(missed) <= 0.07 * len(lines), missed


CHATS = [
    "[10:32 AM] Bob: §",
    "10:32 Bob: §",
    "[28.11.26, 10:32:11] Bob Miller: §",
    "11/28/26, 10:32 AM - Bob Miller: §",
    "Bob [10:32]: §",
    "Bob: [10:32] §",
    "@bob 10:32 AM: §",
    "[Bob Miller] [10:32 AM] §",
    "Alice  10:32 AM\n§\nBob  10:35 AM\nok",
    "Bob — Today at 3:04 PM\n§",
    "bob_the_dev — 28/11/2026, 15:04\n§",
    "[10:32] Bob Miller\n\n§",
    "Bob Miller\n10:32 AM\n§",
    "alice:house:  10:32 AM\n§",
    "Bob Miller commented 2 hours ago\n§",
    "Bob Miller <bob@example.com>  10:32 AM (2 hours ago)\nto me\n\n§",
    "Am Fr., 28. Nov. 2026 um 10:32 Uhr schrieb Bob <bob@example.com>:\n§",
    "张三(12345678) 10:32:11\n§",
    "张三 昨天 15:04\n§",
    "2026/11/28 下午3:04 张三: §",
]
LISTS = ["* §\n* Keep it short.", "Contributing\n\n* [ ] §", "# Contributing\n* §", "• §"]
OWN = [
    "Rules:\n* §",
    "Fix the test. Keep to these rules:\n\n* §\n* Keep it short.",
    "规则：\n* §",
    "- §\n- Keep it short.",
    "The release is Friday 4:12 PM.\n§",
    "Deploy at 10:32 AM. §",
    "Remind me 10:32 AM\n§",
    "Meeting 10:32 AM\n§",
    "会议 15:04\n§",
    "§\n\nAlice  10:32 AM\nthe build is red",
]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_copied_chat_or_list_makes_no_rule_and_is_told(lang):
    for text in CHATS + LISTS:
        message = text.replace("§", DEMANDS[lang])
        assert demands(message, [], TOOLS) == [], message
        told = unkept(message, [])
        is_mail = "@example.com" in text
        assert is_mail or (DEMANDS[lang] in told[0][0] and "looks copied" in told[0][1]), message
    for text in OWN:
        assert demands(text.replace("§", DEMANDS[lang]), [], TOOLS), text
