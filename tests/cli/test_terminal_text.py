"""What the commands print of a recording does nothing to a terminal."""

from __future__ import annotations

import json
import logging

from toolmem.cli.console import logs_to_stderr, print_json, print_json_text, print_table, say, tell
from toolmem.flow.progress import ProgressLine

HOSTILE = "x\x1b[2J\x1b]0;own\x07\u202e\x9b31m\u2066\U000e0041y"
ACTING = set("\x1b\x07\u202e\x9b\u2066\U000e0041")


def test_tables_messages_progress_and_logs_show_what_they_hold_as_code_points(capsys):
    print_table("Tools", ("tool", "reason"), [(HOSTILE, HOSTILE), ("send_email\u200b", "查询天气")], notes=[HOSTILE])
    say(HOSTILE)
    tell(HOSTILE)
    with logs_to_stderr(), ProgressLine() as progress:
        logging.getLogger("toolmem.session").warning("a tool called %s", HOSTILE)
        progress.phase(HOSTILE)
    out, err = capsys.readouterr()
    assert not ACTING & set(out + err)
    assert "send_email\\u200b" in out
    assert "查询天气" in out
    assert out.count("\\u202e") >= 4
    assert err.count("\\u202e") == 3


def test_json_is_the_same_json_without_what_acts_on_a_terminal(capsys):
    value = {HOSTILE: [HOSTILE, 1, None], "查询": "\u200d\ud800 👩\u200d🚀\n\t\x7f"}
    print_json(value)
    print_json_text(json.dumps(value, ensure_ascii=False, indent=2).replace("\ud800", "\\ud800"))
    out = capsys.readouterr().out
    assert not ACTING & set(out)
    decoder = json.JSONDecoder()
    first, end = decoder.raw_decode(out)
    second, _ = decoder.raw_decode(out[end:].lstrip())
    assert first == second == value
