"""Text that a user only shows makes no rule; what the user says beside it does."""

from pathlib import Path

import pytest

from toolmem.rules.reader import demands
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
