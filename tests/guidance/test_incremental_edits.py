"""Edits of guidance: what a reply asks for is done as a whole, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import ReplyUnreadable
from toolmem.guidance.writer_reply import (
    MAX_CHARACTERS,
    Edit,
    apply_edits,
    lines_of,
    numbered,
    parse_edits,
    read_edits_block,
)

OLD = "## Common issues\n- 3 of 9 calls timed out.\n\n- `limit` above 100 fails.\n## Best practices\n- Give `region`."

LINE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)


@st.composite
def guidance_and_edits(draw: st.DrawFn) -> tuple[list[str], list[Edit]]:
    """A guidance and edits that can be made to it: each line is changed once at most."""
    lines = draw(st.lists(LINE.map(str.strip), min_size=1, max_size=8))
    numbers = draw(st.lists(st.integers(1, len(lines)), unique=True, max_size=len(lines)))
    edits = [Edit(number, draw(st.none() | LINE.map(str.strip))) for number in numbers]
    places = draw(st.lists(st.none() | st.integers(0, len(lines)), max_size=4))
    edits += [Edit(place, draw(LINE.map(str.strip)), added=True) for place in places]
    return lines, draw(st.permutations(edits))


def rendered(edit: Edit) -> str:
    """The edit in the grammar."""
    if edit.text is None:
        return f"-{edit.line}"
    place = "" if edit.line is None else edit.line
    return f"+{place}: {edit.text}" if edit.added else f"{place}: {edit.text}"


def plainly(lines: list[str], edits: list[Edit]) -> list[str]:
    """The same by another road: from the last line upwards, so that numbers stay valid."""
    result = list(lines)
    added = [edit for edit in edits if edit.added]
    for place in range(len(lines), -1, -1):
        texts = [e.text for e in added if (len(lines) if e.line is None else e.line) == place]
        result[place:place] = [text for text in texts if text is not None]
        for edit in edits:
            if not edit.added and edit.line == place:
                result[place - 1 : place] = [] if edit.text is None else [edit.text]
    return result


def test_lines_are_changed_deleted_and_added_by_their_number():
    reply = "2: - 4 of 19 calls timed out.\n-3\n+5: - Ask for 50 rows at most.\n+: - New."
    assert apply_edits(OLD, parse_edits(reply)) == (
        "## Common issues\n- 4 of 19 calls timed out.\n## Best practices\n- Give `region`.\n- Ask for 50 rows at most."
        "\n- New."
    )


def test_a_prompt_shows_each_line_that_holds_something_with_its_number():
    assert numbered(OLD).splitlines()[:3] == [
        "1: ## Common issues",
        "2: - 3 of 9 calls timed out.",
        "3: - `limit` above 100 fails.",
    ]


@pytest.mark.parametrize("reply", ["no change", "No change.", "\n  NO CHANGE \n"])
def test_no_change_leaves_the_text_as_it_was(reply: str):
    assert apply_edits(OLD, parse_edits(reply)) == OLD


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("", "no edit"),
        ("7: there is none", "no line 7"),
        ("-7", "no line 7"),
        ("+9: behind nothing", "no line 9"),
        ("0: no such line", "no line 0"),
        ("2: one\n2: other", "contradict"),
        ("2: one\n-2", "contradict"),
        ("2:", "holds no text"),
        ("+:  ", "holds no text"),
        ("Here are the edits:\n2: one", "is no edit"),
        ("no change\n2: one", "is no edit"),
        ("-1\n-2\n-3\n-4\n-5", "nothing"),
        ("+: " + "x" * MAX_CHARACTERS, "grow"),
        ("\n".join(["+: x"] * 201), "201 edits"),
    ],
)
def test_edits_that_cannot_be_made_are_refused_as_a_whole(reply: str, told: str):
    with pytest.raises(ReplyUnreadable, match=told):
        apply_edits(OLD, parse_edits(reply))


@given(guidance_and_edits())
def test_what_is_rendered_is_read_back_and_done_as_said(given_: tuple[list[str], list[Edit]]):
    lines, edits = given_
    read = parse_edits("\n".join(map(rendered, edits)) or "no change")
    assert read == edits
    expected = plainly(lines, edits)
    text = "\n".join(lines)
    if expected:
        assert lines_of(apply_edits(text, read)) == lines_of("\n".join(expected))
    else:
        with pytest.raises(ReplyUnreadable):
            apply_edits(text, read)


REPLY = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["```txt", "```", "```python", "3: x", "-1", "+2: y", "no change", "<think>", "</think>", "", "-"]
        )
    ).map("\n".join),
)


@given(REPLY, st.text())
def test_every_reply_is_either_done_or_unreadable(reply: str, text: str):
    try:
        after = apply_edits(text, parse_edits(read_edits_block(reply)))
    except ReplyUnreadable:
        return
    assert after == text or (after.strip() and len(after) <= MAX_CHARACTERS)


@pytest.mark.parametrize(
    ("reply", "block"),
    [
        ("```txt\n3: x\n```", "3: x"),
        ("Sure.\n```\n-1\n```\nDone.", "-1"),
        ("<think>\n```txt\n9: no\n```\n</think>\n```text\n3: x\n```", "3: x"),
        ("no change", "no change"),
        ("```txt\n3: write ```SELECT``` in one line\n```", "3: write ```SELECT``` in one line"),
    ],
)
def test_the_block_of_a_reply_is_found(reply: str, block: str):
    assert read_edits_block(reply) == block


@pytest.mark.parametrize(
    "reply", ["```txt\n3: x", "```python\n3: x\n```", "```txt\n3: x\n```\n```txt\n-1\n```", "```txt\n3: x\n```sql\n```"]
)
def test_half_a_block_or_two_of_them_are_not_read(reply: str):
    with pytest.raises(ReplyUnreadable):
        read_edits_block(reply)
