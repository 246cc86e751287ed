"""What a writer's reply may look like, and when it is unreadable."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import ReplyUnreadable
from toolmem.guidance.writer_reply import read_guidance

guidances = (
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=200)
    .filter(lambda text: "```" not in text and "think" not in text.lower())
    .map(lambda text: text.strip("` \n") if text.endswith("`") or text.startswith("`") else text)
    .map(str.strip)
    .filter(bool)
)


@pytest.mark.parametrize(
    "wrapping",
    [
        "{}",
        "\n\n{}\n",
        "```txt\n{}\n```",
        "```txt\n{}",
        "```TXT\n{}\n```\n",
        "```text\n{}\n```",
        "```\n{}\n```",
        "Here is the guidance:\n```txt\n{}\n```\nI hope it helps.",
        "<think>\nA ```txt\ndraft\n``` maybe\n</think>\n```txt\n{}\n```",
        "<think>draft</think>{}",
        "thoughts without a start</think>\n{}",
        "```txt\n```\nonce more\n```txt\n{}\n```",
        "```json\n{{}}\n```\n```txt\n{}\n```",
    ],
)
@given(guidance=guidances)
def test_guidance_reads_back_whatever_stands_around_it(wrapping, guidance):
    assert read_guidance(wrapping.format(guidance)) == guidance


def test_a_block_of_code_inside_the_guidance_stays():
    inside = "Ask like this:\n```sql\nSELECT 1\n```\nand never without a table."
    assert read_guidance(f"Sure.\n```txt\n{inside}\n```\nBye.") == inside


def test_a_fence_on_one_line_is_read():
    assert read_guidance("```txt Use short queries.```") == "Use short queries."


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<think>only thoughts, and then cut", "empty"),
        ("<think>thoughts</think>\n ", "empty"),
        ("```txt\n \n```", "txt block is empty"),
        ('```json\n{"guidance": "x"}\n```', "another kind (json)"),
        ("Guidance:\n```markdown\n# Use\n```", "another kind (markdown)"),
        ("```python\nprint()", "another kind (python)"),
    ],
)
def test_empty_replies_and_other_fences_are_unreadable(reply, problem):
    with pytest.raises(ReplyUnreadable) as caught:
        read_guidance(reply)
    assert problem in str(caught.value)
    assert caught.value.reply == reply


@given(st.lists(st.sampled_from(["```", "```txt", "```json", "\n", "x", " ", "<think>", "</think>"])).map("".join))
def test_no_text_raises_anything_but_reply_unreadable(text):
    try:
        guidance = read_guidance(text)
    except ReplyUnreadable:
        return
    assert guidance.strip()


@pytest.mark.parametrize("unit", ["```", "```txt\n", "\n```a", "<think>", "</think>", "` "])
def test_a_megabyte_of_garbage_takes_linear_time(unit):
    started = time.process_time()
    with contextlib.suppress(ReplyUnreadable):
        read_guidance((unit * 1_000_000)[:1_000_000])
    assert time.process_time() - started < 3
