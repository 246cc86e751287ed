"""The file of rules that a team keeps: what is read, refused, written and compared."""

from __future__ import annotations

import pytest

from toolmem.errors import RequestError
from toolmem.rules.changes import Actor
from toolmem.rules.team_file import compare, entry_of, read_team_file, write_team_file

FIELDS = {"id": "a", "tool": "'@shell'", "rule": "Never push", "effect": "deny"}
FIELDS["when"] = "[{command: ^git push}]"


def entry(**changed):
    fields = {**FIELDS, **changed}.items()
    return "- {" + ", ".join(f"{name}: {value}" for name, value in fields if value) + "}\n"


def read(text):
    data = text if isinstance(text, bytes) else text.encode()
    return read_team_file(data, "t.yaml")


def of(*entries):
    return "rules:\n" + "".join(entries)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        (of(entry(efect="deny")), "line 2", "unknown field 'efect'"),
        (of(entry(said="{by: user}")), "line 2", "unknown field 'said'"),
        ("rules: []\nversion: 1\n", "t.yaml", "unknown field 'version'"),
        ("- a\n", "t.yaml", "Expected 'object'"),
        ("rules:\n", "t.yaml", "$.rules"),
        (of(entry(), entry(rule="other")), "line 3", "id: another entry has 'a', too"),
        (of(entry(when=None)), "line 2", "required field 'when'"),
        (of(entry(effect="ask", when="[]")), "line 2", "$.when"),
        (of(entry(when="[{comand: x}]")), "line 2", "unknown field 'comand'"),
        (of(entry(when="[{command: '('}]")), "line 2", "missing )"),
        (of(entry(unless="[{always: 1}]")), "line 2", "unless"),
        (of(entry(effect="remind")), "line 2", "$.effect"),
        (of(entry(rule="12")), "line 2", "$.rule"),
        (of(entry(rule="''")), "line 2", "rule is required"),
        (of(entry(expires_at="2027-01-01")), "line 2", "$.expires_at"),
        (of(entry(id=None)), "line 2", "required field 'id'"),
        (of(*(entry(id=f"r{n}") for n in range(1_001))), "t.yaml", "<= 1000"),
        (of("- &a {id: a}\n"), "line 2", "stands in quotes"),
        ("a: &a [x]\nrules: [*a, *a]\n", "line 1", "stands in quotes"),
        (of(entry(rule="!!python/object:os.system x")), "line 2", "stands in quotes"),
        (of(entry(rule="!!str 12")), "line 2", "stands in quotes"),
        (of(entry(when="[" * 600 + "]" * 600)), "line 2", "nesting"),
        ("rules: " + "[" * 400_000, "line 1", "nesting"),
        (of(entry()) + "---\n" + of(entry()), "line 3", "another document"),
        (of(entry(rule="caf\xe9")).encode("latin-1"), "t.yaml", "utf-8"),
        (of(entry(rule='"\\ud800"')), "line 2", ""),
        (of(entry(rule="9" * 5_000)), "t.yaml", "digits"),
        (of("- {id: [\n"), "line", "expected"),
        (of("<<<<<<< HEAD\r\n", entry(), "=======\n"), "line", "no merge conflict"),
        ("#" * 1_000_001, "t.yaml", "larger than 1,000,000 bytes"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_one_sentence_with_its_place(text, place, problem):
    with pytest.raises(RequestError) as raised:
        read(text)
    told = str(raised.value)
    assert told.startswith("t.yaml") and place in told and problem in told
    assert "; write `rules:`" in told and told.isprintable() and len(told) < 500


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "rules: []\n",
        of(entry()).replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + of(entry()).encode(),
        of(entry(), entry(id="b")),
        of(entry(rule="'⚠️ 不要推送'")),
        of(entry(rule="'12'"), entry(id="no", rule="no")),
        of(entry(rule="'keep <<<<<<< and a & b *c* !d # out'")),
        of(entry(when="[{arg: {name: n, over: 5, under: 9.5}}, {text: '1e5'}, {text: 'true'}]")),
        of(entry(expires_at="'2020-01-01T00:00:00Z'")),
        of("- id: a\n  tool: t\n  rule: |\n    No\n    push\n  effect: ask\n  when: [{word: x}]\n"),
    ],
)
def test_what_was_read_is_written_so_that_it_reads_the_same(text):
    entries, comments = read(text)
    written = write_team_file(entries, comments)
    again = read(written)
    assert again[0] == entries
    assert write_team_file(*again) == written


def test_comments_stay_at_the_head_and_above_an_entry():
    text = (
        "# head\n\n# of it\nrules:\n# about b\n\n# more on b\n- id: b\n  tool: '@shell'\n"
        "  rule: 'Never # push'\n  effect: deny\n  when:\n  - text: |\n      # no comment\n"
        "      # at all\n  # about a\n"
        "- {id: a, tool: '@shell', rule: No, effect: ask, when: [{word: x}]}"
    )
    written = write_team_file(*read(text))
    assert written.startswith("# head\n# of it\nrules:\n\n# about a\n- id: a\n")
    assert "\n# about b\n# more on b\n- id: b\n" in written and "\n# no comment" not in written
    assert write_team_file(*read(written)) == written


def test_an_entry_is_compared_with_the_rule_that_holds(rules, put):
    def kinds(*entries):
        return [each.kind for each in compare(read(of(*entries))[0], rules)]

    assert kinds(entry()) == ["new"]
    for each in compare(read(of(entry()))[0], rules):
        assert each.apply(rules, None).is_team
    more = "[{command: ^git push}, {command: ^git tag}]"
    assert kinds(entry()) == ["same"]
    assert kinds(entry(when=more)) == ["stricter"]
    assert kinds(entry(effect="ask")) == ["looser"]
    assert kinds(entry(when="[{command: ^git}]")) == ["looser"]  # nobody can say it is wider
    assert kinds(entry(id="other")) == ["new", "missing"]
    assert [each.kind for each in compare([], rules)] == ["missing"]
    put(rule="No condition", priority="high")
    own = put(effect="deny", when=[{"always": True}])
    assert kinds(entry()) == ["same", "missing"]
    assert entry_of(own).id == own.id


def test_a_request_that_rewords_a_rule_can_be_accepted(rules, put):
    rule = put(rule="Never push", effect="deny", when=[{"command": "^git push"}])
    asked = rules.change(rule, Actor("agent"), rule="Push on Fridays")
    assert asked.rule == "Never push"
    assert rules.accept(asked, Actor("user", "typed")).rule == "Push on Fridays"
