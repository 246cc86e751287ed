"""The file of rules that a team keeps: what is read, refused, written and compared."""

from __future__ import annotations

import os

import pytest

from toolmem.errors import RequestError
from toolmem.formats.files import MAX_BYTES, read_reviewed
from toolmem.rules.team_file import (
    compare,
    exported,
    read_team_file,
    write_team_file,
)

FIELDS = {
    "id": "a",
    "tool": "'@shell'",
    "rule": "Never push",
    "effect": "deny",
    "when": "[{command: ^git push}]",
}


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
        (of(entry(efect="deny")), "line 2 (rule a)", "efect: there is no such field"),
        (of(entry(said="{by: user}")), "line 2 (rule a)", "said: there is no such field"),
        ("rules: []\nversion: 1\n", "line 1", "and nothing else"),
        (of(entry(), entry(rule="other")), "line 3 (rule a)", "id: stands in line 2 too"),
        (of(entry(when=None)), "line 2 (rule a)", "when: a rule to deny without it"),
        (of(entry(effect="ask", when="[]")), "line 2 (rule a)", "stops nothing"),
        (of(entry(unless="[{always: true}]")), "line 2 (rule a)", "when[0]: no call can meet it"),
        (of(entry(when="[{command: 'rm $HOME'}]")), "line 2 (rule a)", "no call can meet it"),
        (of(entry(when="[{arg: {name: n, over: 9, under: 5}}]")), "line 2 (rule a)", "'n' is not"),
        (of(entry(when="[{comand: x}]")), "line 2 (rule a)", "when[0]: Object contains unknown"),
        (of(entry(when="[{command: '('}]")), "line 2 (rule a)", "missing )"),
        (of(entry(tool="'@shel'")), "line 2 (rule a)", "tool: no such class"),
        (of(entry(effect="block")), "line 2 (rule a)", "expected deny, ask or remind"),
        (of(entry(rule="12")), "line 2 (rule a)", "in quotes"),
        (of(entry(expires_at="2027-01-01")), "line 2 (rule a)", "a time with its zone"),
        (of(entry(id=None)), "line 2", "missing required field `id`"),
        (of("- {id: a, id: b}\n"), "line 2", "id: stands twice"),
        (of(*(entry(id=f"r{n}") for n in range(1_001))), "t.yaml", "at most 1,000"),
        ("a: &a [x]\nrules: [*a, *a]\n", "line 1", "an anchor or alias"),
        (of(entry(rule="!!python/object:os.system x")), "line 2", "a tag (!)"),
        (of(entry(when="[" * 60 + "]" * 60)), "line 2", "more than 12 lists"),
        ("rules: " + "[" * 400_000, "line 1", "nest"),
        (of(entry()) + "---\n" + of(entry()), "line 3", "a second document"),
        (of(entry(rule="caf\xe9")).encode("latin-1"), "line 2", "not UTF-8"),
        (of("- {id: [\n"), "line", "not YAML"),
        (of(entry(rule="'Never \u202epush'")), "line 2", r"U+202E in `- {id: a, tool: '@shell', r"),
        (of(entry(rule='"Never \\u202epush"')), "line 2", r"`Never \u202epush`"),
        (of(entry(rule='"a\\e[31m"')), "line 2", r"`a\x1b[31m`"),
        (of("<<<<<<< HEAD\r\n", entry()), "line 2", "a merge conflict"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_one_line_with_its_place(text, place, problem):
    with pytest.raises(RequestError) as raised:
        read(text)
    told = str(raised.value)
    assert told.startswith("t.yaml") and place in told and problem in told
    assert told.isprintable() and len(told) < 400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "rules: []\n",
        of(entry()).replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + of(entry()).encode(),
        of(entry(), entry(id="b")),
        of(entry(rule="'⚠️ 不要推送 👨‍👩‍👧'")),
        of(entry(rule="'12'"), entry(id="no", rule="no")),
        of(entry(rule="'keep <<<<<<< and a & b *c* !d # out'")),
        of(entry(when="[{command: 'rm \\$HOME'}, {command: '(?:^|;)git$'}, {word: '[^$]'}]")),
        of(entry(unless="[{command: ^git push, word: dev}]")),
        of(entry(when="[{arg: {name: n, over: 5, under: 9.5}}, {text: '1e5'}, {text: 'true'}]")),
        of(entry(effect="remind", when=None)),
        of(entry(expires_at="'2020-01-01T00:00:00Z'")),
        of("- id: a\n  tool: t\n  rule: |\n    Never\n    push\n  effect: remind\n"),
    ],
)
def test_what_was_read_is_written_so_that_it_reads_the_same(text):
    file = read(text)
    again = read(write_team_file(file))
    assert sorted(again.entries, key=lambda each: each.id) == file.entries
    assert write_team_file(again) == write_team_file(file)


def test_comments_stay_with_the_entry_below_or_around_them():
    file = read(
        "# head\n\nrules:  # all of them\n# about b\n"
        "- id: b  # agreed in #42\n  tool: '@shell'\n  # why\n  rule: 'Never # push'\n"
        "  effect: deny\n  when:\n  - command: ^git push\n\n"
        "# about a\n- id: a\n  tool: '@shell'\n  rule: |\n    # no comment\n"
        "  effect: remind\n# the end\n"
    )
    text = write_team_file(file)
    assert text.startswith("# head\n# all of them\nrules:\n\n# about a\n- id: a\n")
    assert "\n# about b\n# agreed in #42\n# why\n- id: b\n" in text
    assert text.endswith("\n# the end\n") and "\n# no comment" not in text
    assert write_team_file(read(text)) == text


def test_only_what_holds_for_good_is_exported_without_who_said_it(rules, put):
    lasting = put(effect="deny", when=[{"always": True}], priority="high")
    put(rule="This session only", session="secret-session", priority="high")
    put(rule="Recalled, not pinned")
    file, others = exported(rules.all_rules("secret-session").rules, read(of(entry())))
    text = write_team_file(file)
    assert [each.id for each in file.entries] == [lasting.id, "a"] and others[0].id == "a"
    assert "session" not in text and "user" not in text


def test_an_entry_is_compared_with_the_rule_that_holds(rules, clock):
    def kinds(*entries):
        found = compare(read(of(*entries)).entries, rules.all_rules().rules, clock.now())
        return [each.kind for each in found]

    assert kinds(entry()) == ["new"]
    for each in read(of(entry())).entries:
        rules.put_rule(each.as_input())
    more = "[{command: ^git push}, {command: ^git tag}]"
    assert kinds(entry()) == ["same"]
    assert kinds(entry(when=more)) == ["stricter"]
    assert kinds(entry(effect="ask")) == ["looser"]
    assert kinds(entry(when="[{command: ^git}]")) == ["looser"]  # nobody can say it is wider
    assert kinds(entry(id="other")) == ["same"]
    assert kinds(entry(id="b", rule="x", expires_at="'2020-01-01T00:00:00Z'")) == ["ended"]


def test_only_a_small_file_of_this_repository_is_read(tmp_path):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "big.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    (tmp_path / "out.yaml").write_text("rules: []")
    (root / "out.yaml").symlink_to(tmp_path / "out.yaml")
    (root / "in.yaml").write_text("rules: []")
    (root / "link.yaml").symlink_to(root / "in.yaml")
    os.mkfifo(root / "pipe.yaml")
    assert read_reviewed(root / "link.yaml") == b"rules: []"
    cases = {
        "big": "larger than",
        "out": "a link out of",
        "pipe": "a device or a pipe",
        "no": "No such",
    }
    for name, problem in cases.items():
        with pytest.raises(RequestError, match=problem):
            read_reviewed(root / f"{name}.yaml")
    with pytest.raises(RequestError, match="a folder"):
        read_reviewed(root)
