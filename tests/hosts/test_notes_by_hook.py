"""A model notes what its user demands by one shell command, and the hook verifies and keeps it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.hook_agent import HookedAgent
from tests.hosts.host_payloads import PAYLOADS
from toolmem.demands.contract import contract, short_contract
from toolmem.guard.alternatives import TESTS
from toolmem.hosts import hook_process
from toolmem.hosts.host import host_of
from toolmem.hosts.kept_prompts import PromptsFile
from toolmem.hosts.note_command import command_line
from toolmem.providers.tokenizer import QwenTokenizer

SAID = "--no-verify is cheating. The hooks are there for a reason"
FORBIDDEN = "cd app && git commit --no-verify -am wip"


def note_of(shell: Any, **changed: Any) -> dict[str, Any]:
    """As the model of an agent with this shell writes it."""
    return {
        "quote": SAID,
        "effect": "deny",
        "lasting": "always",
        "tools": [shell.shell],
        "when": [{"tool": f"^{shell.shell}$", "command": r"^git (commit|push|merge)\b", "word": "--no-verify"}],
        "stops": [{"tool": shell.shell, "arguments": shell.arguments("git commit --no-verify -m x")}],
        "passes": [{"tool": shell.shell, "arguments": shell.arguments("git commit -m wip")}],
        **changed,
    }


def command_of(note: Any, line: str = "", end: str = "TOOLMEM") -> str:
    text = note if isinstance(note, str) else json.dumps(note, ensure_ascii=False)
    return f"{line or command_line()} <<'{end}'\n{text}\n{end}\n"


class Noting(HookedAgent):
    """An agent whose model notes demands."""

    def note(self, line: str = "", **changed: Any) -> str:
        """How a note is answered: kept, proposed, refused; "" where the command is like every other."""
        return self.noted(command_of(note_of(self.speaks, **changed), line))

    def lift(self, quote: str, lifted: str) -> str:
        note = {"quote": quote, "lifted": lifted}
        return self.noted(command_of(note, f"{command_line()} --lift"))

    def noted(self, command: str) -> str:
        answer = self.asks(command)
        if self.is_approved(answer):
            self.send(self.speaks.worked(*self.place, command, self.number, json.dumps(self.printed)))
        return self.outcome(answer)

    def outcome(self, answer: Mapping[str, Any]) -> str:
        told = self.speaks.denial(answer) or answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", "")
        if not told:
            return ""
        if self.is_approved(answer):
            return str(self.printed["outcome"])
        assert told.startswith("toolmem: ")
        return str(told.removeprefix("toolmem: ").partition(".")[0])

    def is_approved(self, answer: Mapping[str, Any]) -> bool:
        return answer.get("hookSpecificOutput", {}).get("permissionDecision") == "allow"

    @property
    def printed(self) -> dict[str, Any]:
        """What the program prints of the newest note."""
        file = PromptsFile()
        ((text,),) = file._rows("SELECT outcome FROM outcomes ORDER BY number DESC LIMIT 1")
        file.close()
        return dict(json.loads(text))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, project = tmp_path / "home", tmp_path / "home" / "work" / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for name in ("TOOLMEM_GUARD", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(params=sorted(PAYLOADS))
def agent(request: pytest.FixtureRequest, folder: Path) -> Noting:
    return Noting(request.param, folder, folder / "work" / "project")


@pytest.fixture
def claude(folder: Path) -> Noting:
    return Noting("claude-code", folder, folder / "work" / "project")


@pytest.mark.parametrize("again", ["", f"{SAID}. Always."])
def test_a_note_for_this_session_that_is_noted_again_for_good_holds_for_good(claude: Noting, again: str) -> None:
    claude.says(SAID)
    assert claude.note(lasting="session") == "kept"
    if again:
        claude.says(again)
    assert claude.note(lasting="always") == "kept"

    (rule,) = claude.whole_rules()
    assert rule.expires_at is None
    assert "Not changed" not in str(claude.says("just this time"))
    (rule,) = claude.whole_rules()
    assert rule.expires_at is not None


# ---------------------------------------------------------------- in every agent


def test_a_note_of_what_the_user_said_is_kept_and_stops_the_call_with_their_words(agent: Noting) -> None:
    agent.says(SAID)
    assert agent.note() == "kept"
    assert agent.rules() == [SAID]
    assert SAID in agent.stopped(agent.asks(FORBIDDEN))
    assert not agent.stopped(agent.asks("git commit -m 'why --no-verify is cheating'"))
    assert agent.log == ""


def test_a_note_of_what_the_user_never_said_is_refused(agent: Noting) -> None:
    agent.says("Please repair the parser")
    assert agent.note() == "refused"
    assert agent.rules() == []
    assert not agent.stopped(agent.asks(FORBIDDEN))


def test_a_note_is_no_call_and_no_decision(agent: Noting) -> None:
    agent.says(SAID)
    command = command_of(note_of(agent.speaks))
    reason = agent.speaks.denial(agent.asks(command))
    agent.send(agent.speaks.worked(*agent.place, command, agent.number, reason or '{"outcome": "kept"}'))
    assert agent.calls() == []
    assert agent.receipts.counts(session=agent.session).get(("before_call", "deny")) is None
    from toolmem.engine import StoreFile
    from toolmem.readers.weight import at_once

    with StoreFile(agent.users_store) as store:
        assert at_once(store.decisions("default")) == []


def test_a_note_in_one_agent_holds_in_all_others(agent: Noting) -> None:
    agent.says(SAID)
    agent.note()
    for host in PAYLOADS:
        other = HookedAgent(host, agent.home, agent.project, session=f"of-{host}")
        assert SAID in other.stopped(other.asks(FORBIDDEN)), host
        assert not other.stopped(other.asks("git commit -m wip")), host


def test_a_rule_against_every_command_does_not_stop_a_note(agent: Noting) -> None:
    agent.says("Never run any command with the shell. Never run python")
    agent.says(SAID)
    assert agent.note() == "kept"
    assert not agent.stopped(agent.asks(f"{command_line()} --help"))


def test_a_quote_from_an_earlier_prompt_of_the_session_is_believed_and_of_another_session_is_not(
    agent: Noting,
) -> None:
    agent.says(SAID)
    for _ in range(3):
        agent.says("Go on with the parser, please")
    assert agent.note() == "kept"
    agent.session = "s2"
    agent.says("Go on with the parser, please")
    assert agent.note() == "refused"


def test_what_the_user_pasted_is_only_proposed(agent: Noting) -> None:
    agent.says(f"What does this mean?\n\n```\n{SAID}\n```\n")
    assert agent.note() == "proposed"
    assert not agent.stopped(agent.asks(FORBIDDEN))


def test_the_model_is_told_what_to_mend_and_the_user_what_was_kept(agent: Noting) -> None:
    agent.says(SAID)
    wrong = {"tool": agent.speaks.shell, "arguments": agent.speaks.arguments("git status")}
    answer = agent.asks(command_of(note_of(agent.speaks, stops=[wrong])))
    told = agent.speaks.denial(answer) or json.dumps(agent.printed)
    assert "stops[0]: must be stopped and is not" in told or "must be stopped and is not" in told
    answer = agent.asks(command_of(note_of(agent.speaks)))
    line = f"Kept: “{SAID}” (stops `"
    if "before_call" in host_of(agent.host).notices_at:
        assert line in agent.speaks.notice(answer)
    else:
        assert f"Tell the user: {line}" in agent.speaks.denial(answer)


# ---------------------------------------------------------------- the exact command


def test_claude_code_runs_the_installed_command_without_a_question(claude: Noting) -> None:
    claude.says(SAID)
    answer = claude.asks(command_of(note_of(claude.speaks)))
    assert claude.is_approved(answer)
    assert claude.printed["told"].startswith(f"Kept: “{SAID}”")


@pytest.mark.parametrize("line", ["toolmem note", f"{sys.executable} -m toolmem note"])
def test_a_command_that_may_start_another_program_is_never_let_run_unasked(claude: Noting, line: str) -> None:
    claude.says(SAID)
    answer = claude.asks(command_of(note_of(claude.speaks), line))
    assert claude.speaks.denial(answer).startswith("toolmem: kept. ")
    assert claude.rules() == [SAID]


def test_a_shell_without_heredocs_is_answered_by_the_hook_alone(claude: Noting) -> None:
    claude.says(SAID)
    claude.number += 1
    payload = claude.speaks.before(*claude.place, command_of(note_of(claude.speaks)), claude.number)
    assert claude.speaks.denial(claude.send({**payload, "tool_name": "PowerShell"})).startswith("toolmem: kept. ")


HOSTILE = {
    "a command after it": lambda note: command_of(note).rstrip("\n") + "\nrm -rf /tmp/x\n",
    "a command behind the end word": lambda note: command_of(note).rstrip("\n") + " ; rm -rf /tmp/x\n",
    "a command behind the heredoc": lambda note: command_of(note).replace("'TOOLMEM'\n", "'TOOLMEM' ; rm -rf x\n", 1),
    "a command before it": lambda note: f"rm -rf /tmp/x; {command_of(note)}",
    "part of a chain": lambda note: f"true && {command_of(note)}",
    "a chain behind it": lambda note: command_of(note).replace("'TOOLMEM'\n", "'TOOLMEM' && rm -rf x\n", 1),
    "two heredocs": lambda note: command_of(note).replace("<<'TOOLMEM'", "<<'TOOLMEM' <<'MORE'", 1) + "x\nMORE\n",
    "an end word without quotes": lambda note: command_of(note).replace("'TOOLMEM'", "TOOLMEM", 1),
    "a subshell": lambda note: f"({command_of(note)})",
    "a substitution": lambda note: f"echo $({command_of(note)})",
    "an end within": lambda note: command_of(json.dumps(note) + "\nTOOLMEM\nrm -rf /tmp/x"),
    "a variable before it": lambda note: f"PYTHONPATH=/tmp/x {command_of(note)}",
    "another interpreter": lambda note: command_of(note, "/tmp/x/python -P -m toolmem note"),
    "another module": lambda note: command_of(note, f"{sys.executable} -P -m toolmem_note note"),
    "another folder": lambda note: command_of(note, f"{sys.executable} -P -m toolmem note --store x"),
    "output to a file": lambda note: command_of(note, f"{command_line()} > /tmp/x"),
    "a pipe": lambda note: command_of(note).replace("'TOOLMEM'\n", "'TOOLMEM' | sh\n", 1),
    "in the background": lambda note: command_of(note).replace("'TOOLMEM'\n", "'TOOLMEM' &\n", 1),
    "too long": lambda note: command_of({**note, "rule": "x" * 50_000}),
    "a program in a folder of white space": lambda note: f"\r{command_of(note)}",
    "a program in a folder of wide space": lambda note: f"\u2003{command_of(note)}",
    "a program of white space behind it": lambda note: f"{command_of(note)}\u00a0\n",
    "an end that a shell makes": lambda note: command_of(json.dumps(note) + "\nTOOL\0MEM\nrm -rf /tmp/x"),
    "an end that a terminal makes": lambda note: command_of(json.dumps(note) + "\rTOOLMEM\rrm -rf /tmp/x"),
    "no end": lambda note: command_of(note).removesuffix("TOOLMEM\n"),
}


@pytest.mark.parametrize("hostile", list(HOSTILE), ids=str)
def test_anything_else_than_the_exact_command_is_a_command_like_every_other(claude: Noting, hostile: str) -> None:
    claude.says(SAID)
    answer = claude.asks(HOSTILE[hostile](note_of(claude.speaks)))
    assert not claude.is_approved(answer)
    assert "toolmem: kept" not in str(answer)
    assert claude.rules() == []


def test_a_rule_stops_a_command_that_only_contains_a_note(claude: Noting) -> None:
    claude.says("never push to main")
    assert claude.stopped(claude.asks(command_of(note_of(claude.speaks)) + "git push origin main"))


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"quote": 5}', '{"a": ' * 5000, '{"quote": "x"} {"quote": "y"}', ""])
def test_what_is_no_note_is_refused_with_the_reason(claude: Noting, text: str) -> None:
    claude.says(SAID)
    assert claude.outcome(claude.asks(command_of(text))) == "refused"
    assert claude.printed["problems"]
    assert claude.rules() == []


def test_a_note_whose_fields_are_of_any_kind_is_refused_or_kept_and_never_breaks_the_hook(claude: Noting) -> None:
    claude.says(SAID)
    whole = note_of(claude.speaks)
    for field in whole:
        for value in (5, None, True, [], {}, [5], [None], {"tool": []}, [{"tool": 5}], "x" * 3000, "\ud800", [[]]):
            assert claude.note(**{field: value}) in ("kept", "proposed", "refused"), (field, value)
    assert claude.log == ""


# ---------------------------------------------------------------- refused three times, taken back


def test_a_quote_whose_condition_is_refused_three_times_is_kept_as_a_reminder(claude: Noting) -> None:
    claude.says(SAID)
    wrong = [{"tool": "Bash", "arguments": {"command": "git status"}}]
    assert [claude.note(stops=wrong) for _ in range(3)] == ["refused", "refused", "kept"]
    assert "it only reminds" in claude.printed["why"]
    assert claude.rules() == [SAID]
    assert not claude.stopped(claude.asks(FORBIDDEN))


def test_words_that_were_never_said_become_no_reminder_however_often_they_are_noted(claude: Noting) -> None:
    claude.says("Please repair the parser")
    assert {claude.note() for _ in range(5)} == {"refused"}
    assert claude.rules() == []


OFF = "Hands off the main branch when you push"


def note_off(agent: Noting) -> str:
    push = {"tool": agent.speaks.shell, "arguments": agent.speaks.arguments("git push origin main")}
    near = {"tool": agent.speaks.shell, "arguments": agent.speaks.arguments("git push origin dev")}
    return agent.note(quote=OFF, when=[{"command": r"^git push\b.*\bmain\b"}], stops=[push], passes=[near])


def test_a_rule_that_was_noted_is_lifted_by_the_users_own_sentence_and_by_no_quote_of_the_demand(
    agent: Noting,
) -> None:
    agent.says(OFF)
    assert note_off(agent) == "kept"
    assert agent.lift("Hands off the main branch", "main branch") == "proposed"
    assert agent.stopped(agent.asks("git push origin main"))
    agent.says("forget the rule about the main branch")
    assert not agent.stopped(agent.asks("git push origin main"))


def test_an_old_sentence_takes_nothing_back_that_was_said_after_it(agent: Noting) -> None:
    agent.says(OFF)
    note_off(agent)
    agent.says("forget the rule about the main branch")
    assert agent.rules() == []
    agent.says(OFF)
    assert note_off(agent) == "kept"
    assert agent.lift("forget the rule about the main branch", "main branch") == "proposed"
    assert agent.stopped(agent.asks("git push origin main"))


def test_a_lift_that_the_user_did_not_say_for_sure_is_proposed_and_accepted_by_its_code(claude: Noting) -> None:
    claude.says(SAID)
    claude.note()
    claude.says("Let me think about the hooks again tomorrow")
    assert claude.lift("Let me think about the hooks again", "no-verify") == "proposed"
    assert claude.stopped(claude.asks(FORBIDDEN))
    told = claude.says("Go on, please")
    said = claude.speaks.context(told) + claude.speaks.notice(told)
    assert f"An agent (Claude Code) asks to lift “{SAID}”" in said
    code = said.partition("`lift ")[2][:4]
    assert code
    claude.says(f"lift {code}")
    assert not claude.stopped(claude.asks(FORBIDDEN))


def test_a_lift_that_is_accepted_lifts_the_whole_demand_and_is_asked_for_no_more(claude: Noting) -> None:
    said = "vendor/ is off limits, forever"
    claude.says(said)
    edit = {"tool": "Edit", "arguments": {"file_path": "vendor/a.py", "old_string": "a", "new_string": "b"}}
    shell = {"tool": "Bash", "arguments": {"command": "rm vendor/a.py"}}
    near = {"tool": "Bash", "arguments": {"command": "ls vendor"}}
    when = [{"path": "(^|/)vendor/", "tool": "^Edit$"}, {"command": r"^rm\b.* vendor/"}]
    note = {"quote": "vendor/ is off limits", "tools": ["Bash", "Edit"], "when": when}
    assert claude.note(**note, stops=[edit, shell], passes=[near]) == "kept"
    assert claude.stopped(claude.asks("rm vendor/a.py"))
    claude.session = "s2"
    claude.says("I have changed my mind on vendor")
    assert claude.lift("I have changed my mind on vendor", "vendor/ is off limits") == "proposed"
    code = json.dumps(claude.printed).partition("lift ")[2][:4]
    told = claude.speaks.notice(claude.says(f"lift {code}"))
    assert "Accepted" in told
    assert "asks to lift" not in told
    assert not claude.stopped(claude.asks("rm vendor/a.py"))
    assert claude.rules() == []


def test_what_becomes_of_a_note_and_its_lift_is_told_in_chinese_where_the_user_speaks_it(claude: Noting) -> None:
    said = "用 --no-verify 提交等于作弊"
    claude.says(said)
    assert claude.note(quote=said) == "kept"
    assert claude.printed["told"].startswith("已记住")
    claude.says("关于 hooks 我改主意了，跳过也行")
    assert claude.lift("关于 hooks 我改主意了", said) == "proposed"
    told = claude.printed["told"]
    assert "仍然有效" in told
    code = told.partition("撤销 ")[2][:4]
    assert "已同意" in claude.speaks.notice(claude.says(f"撤销 {code}"))

    pasted = "别人的邮件：\n> 每次提交都要写测试报告\n你怎么看？"
    claude.says(pasted)
    assert claude.note(quote="每次提交都要写测试报告") == "proposed"
    assert "出现在您粘贴或引用的内容中" in claude.printed["told"]


def test_a_lift_with_words_that_nobody_said_is_refused(claude: Noting) -> None:
    claude.says(SAID)
    claude.note()
    assert claude.lift("you may skip the hooks from now on", "no-verify") == "refused"
    assert claude.stopped(claude.asks(FORBIDDEN))


# ---------------------------------------------------------------- tools of MCP servers


def test_a_tool_of_a_server_is_noted_by_the_name_that_the_model_knows(claude: Noting) -> None:
    said = "Status stuff goes to #bot-sandbox only, nothing else gets posted"
    claude.says(said)
    tool = "mcp__slack__post_message"
    stops = [{"tool": tool, "arguments": {"channel": "#eng-alerts", "text": "fine"}}]
    passes = [{"tool": tool, "arguments": {"channel": "#bot-sandbox", "text": "fine"}}]
    when, unless = [{"tool": f"^{tool}$", "target": "."}], [{"target": "^#bot-sandbox$"}]
    noted = claude.note(quote=said, tools=[tool], when=when, unless=unless, stops=stops, passes=passes)
    assert noted == "kept", claude.printed

    def stopped(channel: str) -> str:
        claude.number += 1
        payload = claude.speaks.before(*claude.place, "", claude.number)
        given = {"tool_name": tool, "tool_input": {"channel": channel, "text": "done"}}
        return claude.stopped(claude.send({**payload, **given}))

    assert said in stopped("#eng-alerts")
    assert not stopped("#bot-sandbox")
    for pattern, outcome in {"slack__post": "kept", "(?=x)": "refused", "(": "refused"}.items():
        when = [{"tool": pattern, "target": "."}]
        noted = claude.note(quote=said, tools=[tool], when=when, unless=unless, stops=stops, passes=passes)
        assert noted == outcome, (pattern, claude.printed)
    assert claude.log == ""


@pytest.mark.parametrize(
    ("host", "tool", "kept"),
    [
        ("claude-code", "mcp__mail__send_email", "send_email"),
        ("codex", "mcp__mail__send_email", "send_email"),
        ("copilot", "mail-send_email", "send_email"),
        ("gemini", "mcp_mail_send_email", "send_email"),
        ("cline", "mail__send_email", "send_email"),
        ("goose", "mail__send_email", "send_email"),
        ("cursor", "MCP:send_email", "send_email"),
        ("opencode", "mail_send_email", "send_email"),
    ],
)
def test_each_agents_name_of_a_servers_tool_is_the_one_that_its_calls_are_kept_by(
    host: str, tool: str, kept: str
) -> None:
    assert host_of(host).kept_name(tool, ["send_email", "email"]) == kept
    own = PAYLOADS[host].shell
    assert host_of(host).kept_name(own, ["send_email"]) == own


# ---------------------------------------------------------------- the program


def run_note(agent: Noting, note: Any, *options: str) -> tuple[int, dict[str, Any]]:
    own = {"HOME": str(agent.home), "XDG_STATE_HOME": str(agent.home / "state"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-P", "-m", "toolmem", "note", *options]
    environment = {**own, "PYTHONPATH": os.pathsep.join(sys.path)}
    text = json.dumps(note).encode()
    ran = subprocess.run(command, input=text, capture_output=True, cwd=agent.project, env=environment, check=False)
    return ran.returncode, dict(json.loads(ran.stdout))


def test_the_program_prints_what_the_hook_decided(claude: Noting) -> None:
    claude.says(SAID)
    claude.note()
    code, told = run_note(claude, note_of(claude.speaks))
    assert (code, told["outcome"]) == (0, "kept")
    assert told["told"].startswith(f"Kept: “{SAID}”")
    claude.note(quote="you never said this to me")
    code, told = run_note(claude, note_of(claude.speaks, quote="you never said this to me"))
    assert (code, told["outcome"]) == (2, "refused")
    assert told["problems"][0]["field"] == "quote"


def test_the_program_without_a_hook_makes_a_proposal_that_binds_nothing(claude: Noting) -> None:
    code, told = run_note(claude, note_of(claude.speaks))
    assert (code, told["outcome"]) == (1, "proposed")
    assert not claude.stopped(claude.asks(FORBIDDEN))
    code, told = run_note(claude, {"quote": "push again", "lifted": "no-verify"}, "--lift")
    assert (code, told["outcome"]) == (2, "refused")


def test_the_whole_contract_stands_behind_help_in_the_words_of_the_command(claude: Noting) -> None:
    command = [sys.executable, "-P", "-m", "toolmem", "note", "--help"]
    ran = subprocess.run(command, capture_output=True, env=dict(os.environ), check=True, text=True)
    assert contract(f"run `{command_line()}`") in ran.stdout
    assert "note_demand" not in ran.stdout
    assert "Exit code: 0 kept, 1 proposed, 2 refused" in ran.stdout


def test_the_examples_of_the_help_work_as_they_are_printed(claude: Noting) -> None:
    command = [sys.executable, "-P", "-m", "toolmem", "note", "--help"]
    ran = subprocess.run(command, capture_output=True, env=dict(os.environ), check=True, text=True)
    notes, lifts = re.findall(r"^\S.*<<'TOOLMEM'\n(?:.*\n)*?TOOLMEM\n", ran.stdout, re.MULTILINE)
    claude.says("Please never push to main")
    assert claude.noted(notes) == "kept"
    assert claude.stopped(claude.asks("git push origin main"))
    assert not claude.stopped(claude.asks("git push origin feature/main-menu"))
    claude.says("you can push to main again")
    assert claude.noted(lifts) in ("kept", "proposed"), "as sure as the offline reader is of these words"
    assert "never push to main" in claude.printed["told"]


# ---------------------------------------------------------------- how a model learns of it


def test_a_session_begins_with_how_to_note_a_demand(agent: Noting) -> None:
    context = agent.speaks.context(agent.start())
    if agent.host == "goose":  # no text of a hook reaches its model
        assert context == ""
        return
    assert f"{command_line()} <<'TOOLMEM'" in context
    shell = json.dumps({"tools": [agent.speaks.shell]})[1:-1]
    assert shell in context
    path = max(QwenTokenizer().count(command_line()) - 20, 0)  # of an interpreter that lies deep
    assert QwenTokenizer().count(context) <= 300 + path, "all of toolmem's context without rules and failures"
    agent.says("Hands off the main branch when you push")
    note = context.partition("'TOOLMEM'\n")[2].partition("\nTOOLMEM")[0]
    note = note.replace("their exact words", "Hands off the main branch when you push")
    note = note.replace('"deny" | "ask" | "remind"', '"deny"').replace('"always" | "session"', '"always"')
    assert agent.noted(command_of(note)) == "kept", "the example as it stands"
    assert agent.stopped(agent.asks("git push origin HEAD:main"))
    assert not agent.stopped(agent.asks("git push origin feature/main-menu"))


def test_the_model_is_told_of_every_test_and_where_the_rest_stands() -> None:
    told = short_contract(command_line(), "Bash")
    after = told.partition("TOOLMEM\n\n")[2]
    assert [name for name in (*TESTS, "when", "unless") if not re.search(rf"\b{name}\b", after)] == []
    assert after.endswith("Whole contract: `note --help`.")


def test_all_that_toolmem_says_as_a_session_begins_is_short(claude: Noting) -> None:
    sentences = [f"Never push to the branch release/{number} of this repository, please" for number in range(80)]
    sentences += [f"绝不要推送到 release/{number} 这个分支，也不要删除它" for number in range(80)]
    for at in range(0, 160, 20):
        claude.says("\n".join(sentences[at : at + 20]))
    assert len(claude.rules()) > 30
    context = claude.speaks.context(claude.start())
    assert "release/" in context
    assert QwenTokenizer().count(context) <= 1500


def test_many_demands_of_one_session_leave_what_is_said_short(claude: Noting) -> None:
    sentences = [f"For today, don't push to the branch release/{number} of this repository" for number in range(80)]
    for at in range(0, 80, 20):
        claude.says("\n".join(sentences[at : at + 20]))
    context = claude.speaks.context(claude.start("compact"))
    assert "release/79" in context
    assert "Earlier ones are not repeated here" in context
    assert QwenTokenizer().count(context) <= 1500


def test_how_to_note_stands_there_again_after_a_compaction_and_not_in_a_subagent(
    claude: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "note --help" in claude.speaks.context(claude.start("compact"))
    payload = {**claude.speaks.start(*claude.place), "hook_event_name": "SubagentStart", "agent_id": "a1"}
    assert "note --help" not in claude.speaks.context(claude.send(payload))


def test_where_a_session_is_told_anew_with_each_prompt_it_is_said_once(
    agent: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_process, "SAME_MOMENT", 0.0)
    first, second = (agent.speaks.context(agent.start(origin)) for origin in ("startup", "resume"))
    assert ("note --help" in second) == ("note --help" in first and agent.host != "cline")


def test_who_wants_nothing_captured_has_nothing_noted(claude: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLMEM_LEARNING_TOOL_MEMORY_CAPTURE_ENABLED", "false")
    assert claude.start() == {}
    claude.says(SAID)
    assert claude.note() == "refused"
    assert claude.rules() == []


# ---------------------------------------------------------------- what is kept of prompts


def test_a_secret_in_a_prompt_is_not_kept_and_the_demand_beside_it_is_noted(claude: Noting) -> None:
    secret = "ghp_" + "a8Kx2LmQ9rT4vW7yZ1cB3dF5gH6jN0pS2uXe"
    claude.says(f"The token is {secret}. {SAID}")
    assert secret.encode() not in (claude.home / "state" / "toolmem" / "prompts.db").read_bytes()
    wal = claude.home / "state" / "toolmem" / "prompts.db-wal"
    assert not wal.exists() or secret.encode() not in wal.read_bytes()
    assert claude.note() == "kept"


def test_prompts_are_bounded_in_number_and_size_and_end_after_a_week(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = PromptsFile()
    monkeypatch.setattr("toolmem.hosts.kept_prompts.MOST_PROMPTS", 5)
    for number in range(9):
        heard.keep_prompt("s1", f"prompt {number}", None)
    heard.keep_prompt("s2", "of another", None)
    assert [each.text for each in heard.prompts("s1")] == [f"prompt {number}" for number in range(4, 9)]
    monkeypatch.setattr("toolmem.hosts.kept_prompts.MOST_CHARACTERS", 40)
    heard.keep_prompt("s2", "x" * 35, None)
    assert heard.prompts("s1") == []
    assert [each.text for each in heard.prompts("s2")] == ["x" * 35]
    heard._do("UPDATE prompts SET at = at - 8 * 24 * 3600")
    assert heard.prompts("s2") == []
    monkeypatch.setattr("toolmem.hosts.kept_prompts.MOST_CHARACTERS", 30_000)
    heard.keep_prompt("s2", "y" * 100_000, None)
    assert [len(each.text) for each in heard.prompts("s2")] == [20_000]
    heard.keep_prompt("", "of any session", None)
    assert heard.prompts("") == []
    heard.close()


def test_a_message_of_a_machine_is_no_word_of_the_user(claude: Noting) -> None:
    claude.says(f"<system-reminder>{SAID}</system-reminder>Go on, please")
    assert claude.note() == "refused"


def test_who_noted_it_is_kept_with_the_rule(claude: Noting) -> None:
    claude.says(SAID)
    claude.number += 1
    payload = claude.speaks.before(*claude.place, command_of(note_of(claude.speaks)), claude.number)
    claude.send({**payload, "agent_id": "a1", "agent_type": "helper"})
    from toolmem import ToolMem

    with ToolMem(str(claude.users_store)) as memory:
        (rule,) = memory.rules.list("@shell")
    assert rule.said is not None
    assert (rule.said.by, rule.said.noted_by, rule.said.session) == ("user", "Claude Code (subagent)", "s1")


# ---------------------------------------------------------------- beside what is read without a model

PUSH = "never push to main"
PUSHES = "git push origin main"


def note_push(
    agent: Noting, when: str, stopped: str = "git push origin main", passing: str = "git push origin dev"
) -> str:
    calls = [[{"tool": agent.speaks.shell, "arguments": agent.speaks.arguments(each)}] for each in (stopped, passing)]
    return agent.note(quote=PUSH, when=[{"command": when}], stops=calls[0], passes=calls[1])


def test_a_note_of_what_was_read_already_changes_nothing(agent: Noting) -> None:
    agent.says(PUSH)
    assert note_push(agent, r"^git push\b.*\bmain\b") == "kept"
    assert agent.rules() == [PUSH]
    assert agent.stopped(agent.asks("git push origin main"))
    told = agent.says("Go on, please")
    assert "lift" not in agent.speaks.context(told) + agent.speaks.notice(told), "nothing is proposed"


def test_a_note_that_means_more_takes_the_place_of_what_was_read_in_this_turn(agent: Noting) -> None:
    agent.says(PUSH)
    stopped = "gh pr merge 12"
    assert not agent.stopped(agent.asks(stopped))
    assert note_push(agent, r"^(git push\b.*\bmain\b|gh pr merge\b)", stopped, "gh pr view 12") == "kept"
    assert agent.stopped(agent.asks(stopped))
    assert agent.stopped(agent.asks("git push origin main"))
    assert agent.rules() == [PUSH]


def test_a_note_never_narrows_what_was_said_in_an_earlier_turn(agent: Noting) -> None:
    agent.says(PUSH)
    agent.says("Go on, please")
    assert note_push(agent, r"^git push origin main\b") == "proposed"
    assert agent.stopped(agent.asks("git push --force origin main"))
