"""What hooks remember between their processes, and that no state of the file stops an agent."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from toolmem.hosts import receipts_file
from toolmem.hosts.events import call_id_of
from toolmem.hosts.receipts import Receipts, SaidHere


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "hooks.db"


def test_the_second_that_is_told_of_an_event_is_not_the_first(file: Path) -> None:
    one, other = Receipts(file), Receipts(file)
    assert one.begin("claude-code", "s1", "before_call", "toolu_1")
    assert not other.begin("copilot", "s1", "before_call", "toolu_1")
    assert other.begin("claude-code", "s2", "before_call", "toolu_1")
    assert other.begin("claude-code", "s1", "after_call", "toolu_1")


def test_an_event_that_comes_again_later_is_another_one_where_its_key_says_nothing(file: Path) -> None:
    receipts = Receipts(file)
    assert receipts.begin("gemini", "s1", "prompt", "continue", within=60)
    assert not receipts.begin("gemini", "s1", "prompt", "continue", within=60)
    assert receipts.begin("gemini", "s1", "prompt", "continue", within=-1)


def test_a_prompt_is_another_one_where_anything_was_told_of_since(file: Path) -> None:
    receipts = Receipts(file)

    def is_new(key: str, event: str = "prompt", session: str = "s1") -> bool:
        return receipts.begin("gemini", session, event, key, within=60)

    assert is_new("a" * 64)
    assert is_new(f"{'a' * 64} in /other/store")  # the same, told to an install on another store
    assert is_new("b" * 64, session="s2")
    assert not is_new("a" * 64)
    assert is_new("b" * 64)
    assert is_new("a" * 64)
    assert is_new(f"{'a' * 64} in /other/store")
    assert not is_new(f"{'a' * 64} in /other/store")
    assert is_new("", "turn_end")
    assert not is_new("", "turn_end")
    assert is_new("a" * 64)
    assert is_new("", "turn_end")


def test_a_receipt_says_how_its_event_ended(file: Path) -> None:
    receipts = Receipts(file)
    receipts.begin("codex", "s1", "before_call", "c1")
    receipts.begin("codex", "s1", "before_call", "c2")
    receipts.end("s1", "before_call", "c1", action="deny", note={"id": "d1"})
    done, under_way = Receipts(file).of_session("s1")
    assert (done.key, done.action, done.host) == ("c1", "deny", "codex")
    assert done.ended is not None
    assert done.ended >= done.began
    assert under_way.ended is None
    assert receipts.note_of("s1", "before_call", "c1") == {"id": "d1"}
    assert receipts.note_of("s1", "before_call", "c2") is None
    assert receipts.counts(session="s1") == {("before_call", "deny"): 1, ("before_call", ""): 1}
    assert receipts.counts(host="gemini") == {}


def test_a_session_remembers_where_it_began_and_what_holds_in_it_alone(file: Path) -> None:
    receipts = Receipts(file)
    receipts.note_session("s1", host="codex", cwd="/a")
    receipts.note_session("s1", host="codex", cwd="/a/b", transcript="/t.jsonl")
    known = Receipts(file).session("s1")
    assert known is not None
    assert (known.cwd, known.transcript, known.turns) == ("/a", "/t.jsonl", 0)
    assert receipts.new_turn("s1") == 1
    assert receipts.new_turn("s1") == 2
    assert receipts.new_turn("nobody") is None
    receipts.set_demands("s1", [SaidHere(1, "Bash", "do not push yet")])
    assert Receipts(file).demands("s1") == [SaidHere(1, "Bash", "do not push yet")]
    receipts.set_demands("s1", [])
    assert receipts.demands("s1") == []
    receipts.session_ended("s1")
    assert Receipts(file).sessions(host="codex")[0].ended is not None


def test_installs_are_noted_and_taken_back(file: Path) -> None:
    receipts = Receipts(file)
    receipts.install_added("codex", "project", "/p", command=["py", "-m"], files=["/p/.codex/hooks.json"])
    receipts.install_added("codex", "project", "/p", command=["py3"], files=[])
    receipts.install_added("gemini", "user", "", command=["py"])
    assert [(each.host, each.command) for each in receipts.installs()] == [("codex", ("py3",)), ("gemini", ("py",))]
    receipts.install_removed("codex", "project", "/p")
    assert [each.host for each in receipts.installs()] == ["gemini"]


def test_the_file_is_the_users_alone_and_a_link_in_its_place_is_not_followed(file: Path, tmp_path: Path) -> None:
    Receipts(file).begin("codex", "s1", "prompt", "k")
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    linked, elsewhere = tmp_path / "linked.db", tmp_path / "elsewhere.db"
    linked.symlink_to(elsewhere)
    assert Receipts(linked).begin("codex", "s1", "prompt", "k")
    assert not elsewhere.exists()


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_put_aside_and_a_new_one_begun(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    assert Receipts(file).begin("codex", "s1", "prompt", "k")
    assert not Receipts(file).begin("codex", "s1", "prompt", "k")
    assert Path(f"{file}.damaged").read_bytes() == content


def test_a_file_of_ours_without_its_tables_is_damaged_too(file: Path) -> None:
    Receipts(file).begin("codex", "s1", "prompt", "k")
    db = apsw.Connection(str(file))
    db.execute("DROP TABLE receipts")
    db.close()
    assert Receipts(file).begin("codex", "s1", "prompt", "k")
    assert not Receipts(file).begin("codex", "s1", "prompt", "k")


def test_a_file_of_a_newer_version_is_left_as_it_is(file: Path) -> None:
    Receipts(file).begin("codex", "s1", "prompt", "k")
    db = apsw.Connection(str(file))
    db.execute("PRAGMA user_version = 99")
    db.close()
    receipts = Receipts(file)
    assert receipts.begin("codex", "s1", "prompt", "k")
    assert "99" in receipts.trouble
    assert not Path(f"{file}.damaged").exists()


def test_a_locked_file_stops_nothing(file: Path) -> None:
    Receipts(file).begin("codex", "s1", "prompt", "k")
    db = apsw.Connection(str(file))
    db.execute("BEGIN EXCLUSIVE")
    receipts = Receipts(file, busy_timeout=0.01)
    assert receipts.begin("codex", "s1", "prompt", "k")
    assert receipts.trouble.startswith("BusyError")
    receipts.end("s1", "prompt", "k")
    assert receipts.demands("s1") == []
    db.execute("ROLLBACK")
    assert not receipts.begin("codex", "s1", "prompt", "k")


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    receipts = Receipts(tmp_path / "file" / "hooks.db")
    assert receipts.begin("codex", "s1", "prompt", "k")
    assert receipts.note_session("s1", cwd="/a").cwd == "/a"
    assert receipts.session("s1") is None
    assert receipts.new_turn("s1") is None


def test_names_of_any_length_and_characters_are_kept_apart(file: Path) -> None:
    receipts = Receipts(file)
    for key in ("a" * 10_000, "a" * 10_001, "\ud800", "\ud801", "x\0y", "x\0z", ""):
        assert receipts.begin("codex", "s\0\udfff", "prompt", key)
        assert not receipts.begin("codex", "s\0\udfff", "prompt", key)
    assert len(receipts.of_session("s\0\udfff")) == 7
    assert receipts.note_session("s", cwd="/\udcff").session == "s"


def test_old_rows_go(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts_file, "_MOST", {"receipts": 10, "sessions": 2, "demands": 3})
    monkeypatch.setattr(receipts_file, "LOOK_EVERY", 4)
    kept = Receipts(file)
    for number in range(40):
        kept.note_session(f"s{number}", cwd="/a")
        kept.set_demands(f"s{number}", [SaidHere(1, "t", "r")])
        kept.begin("codex", f"s{number}", "prompt", "k")
    assert len(kept.sessions()) <= 2
    assert sum(kept.counts().values()) <= 10
    assert len([number for number in range(40) if kept.demands(f"s{number}")]) <= 3
    assert kept.session("s39") is not None


def test_of_several_processes_at_once_one_is_the_first_also_in_a_new_file(file: Path) -> None:
    code = (
        "import sys; from toolmem.hosts.receipts import Receipts\n"
        "receipts = Receipts(sys.argv[1], busy_timeout=10)\n"
        "print(sum(receipts.begin('codex', 's', 'prompt', str(n)) for n in range(50)))"
    )
    run = [sys.executable, "-c", code, str(file)]
    started = [subprocess.Popen(run, stdout=subprocess.PIPE) for _ in range(4)]
    assert sum(int(each.communicate()[0]) for each in started) == 50


def test_a_call_has_the_id_of_the_model_and_a_short_one_that_of_its_session() -> None:
    assert call_id_of("s1", "toolu_01AB") == "toolu_01AB"
    assert call_id_of("s1", "call_7") == "s1/call_7"
    assert call_id_of("", "call_7") == "call_7"
    assert call_id_of("s1", "") == ""
