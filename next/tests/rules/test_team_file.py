"""A team's file: stable bytes, each block by itself, and nothing lifted by being dropped."""

import pytest

from toolmem.errors import RequestError
from toolmem.models.rules import Said
from toolmem.rules.changes import Actor
from toolmem.rules.team_file import differences, export, import_changes, read_team_file

USER = Actor("user")
WHEN = [{"command": "^git push", "word": "main"}]


@pytest.fixture
def filled(put):
    put(tool="@shell", rule="Never push to main", priority="critical", effect="deny", when=WHEN)
    put(rule="Never email Bob: “x”\u202e", priority="high", said=Said("user"))
    put(rule="Tool failed 2 times", source="post_turn")


@pytest.fixture
def changes(rules, clock):
    def of(text):
        given = text if isinstance(text, bytes) else text.encode()
        file = read_team_file(given, "team.yaml")
        found = differences(file, rules.all_rules().rules, clock.now())
        return file, found

    return of


def test_the_same_rules_give_the_same_bytes_and_hide_nothing(rules, filled, clock):
    text = export(rules.all_rules().rules, clock.now())
    assert export(rules.all_rules().rules[::-1], clock.now()) == text
    assert '  - {"command": "^git push", "word": "main"}\n' in text
    assert "\\U0000202e" in text and "\u202e" not in text
    assert "Tool failed" not in text


def test_a_file_comes_back_as_it_was(rules, filled, changes, clock):
    text = export(rules.all_rules().rules, clock.now())
    file, found = changes(text)
    assert (len(file.rules), file.problems, found) == (2, [], [])
    for rule in rules.all_rules().rules:
        rules.delete(rule, USER)
    _, found = changes(text.replace("\n", "\r\n"))
    assert [change.kind for change in found] == ["added", "added"]
    assert import_changes(rules, found, USER) == 2
    assert export(rules.all_rules().rules, clock.now()) == text


def test_what_a_file_drops_or_narrows_goes_on_holding(rules, changes):
    block = (
        '- tool: "@shell"\n  rule: "Never push"\n  effect: deny\n  when: [{"command": "^git"}]\n'
    )
    other = '- tool: t\n  rule: "Be kind"\n'
    import_changes(rules, changes(block + other)[1], USER)
    narrowed = block.replace("^git", "^git push")
    _, found = changes(narrowed)
    assert [(each.kind, each.restricts) for each in found] == [
        ("narrowed", False),
        ("dropped", False),
    ]
    assert import_changes(rules, found, USER) == 0
    assert rules.list_rules("@shell")[0].when == [{"command": "^git"}]
    assert len(rules.list_rules("t")) == 1


def test_one_bad_block_takes_no_other_with_it(changes):
    text = (
        "# head\n"
        "- tool: a\n  rule: one\n"
        "- tool: b\n  rule: two\n  when: [{command: '('}]\n  effect: deny\n"
        "- tool: c\n  colour: red\n  rule: three\n"
        "- tool: [\n"
        "- tool: a\n  rule: ONE.\n"
        "- tool: d\n  rule: four\n"
    )
    file, found = changes(text)
    assert [change.text for change in found] == ["one", "four"]
    assert [problem.partition(":")[0] for problem in file.problems] == [
        "team.yaml, line 4",
        "team.yaml, line 8",
        "team.yaml, line 11",
        "team.yaml, line 12",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- tool: a\n<<<<<<< HEAD\n  rule: x\n", "line 2: git left a conflict"),
        (b"\xff\xfe", "no UTF-8"),
        (b"x" * 1_000_001, "longer than 1,000,000"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(changes, text, told):
    with pytest.raises(RequestError, match=told):
        changes(text)
