"""The real programs, from `hook install` to `hook uninstall`, with a rule that is said once and a call that fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts_live.agent_driver import AgentDriver
from tests.hosts_live.editions import DRIVERS, Edition, editions, served
from tests.hosts_live.step_report import StepReport
from toolmem.testing.agent_server import AgentRequest, AgentServer, AskedCall, ToolAnswer
from toolmem.testing.agent_turns import Script

RULE = "never push to main"
MANY = 200
AT_ONCE = 10

pytestmark = pytest.mark.hosts


@pytest.fixture(params=editions(*DRIVERS), ids=lambda edition: edition.name)
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.param


@pytest.fixture
def agent(edition: Edition, tmp_path: Path) -> Iterator[AgentDriver]:
    yield from started(edition, tmp_path)


def started(edition: Edition, folder: Path) -> Iterator[AgentDriver]:
    """The agent, ready to be installed into; its model runs as long as the test."""
    made, programs = edition
    if not (programs / made.program).exists():
        pytest.skip(f"{made.title}: {programs / made.program} is not there; `make test-hosts` installs it")
    with AgentServer(is_aside=lambda asked: driver.is_aside(asked)) as server:
        driver: AgentDriver = made(server, folder, programs)
        driver.prepare()
        yield driver


def repository(agent: AgentDriver) -> None:
    """The project: `main` pushed to a bare remote beside it, one commit ahead; `feature/x` likewise."""
    agent.git("init", "--quiet", "--initial-branch=main")
    agent.git("config", "user.name", "Tester")
    agent.git("config", "user.email", "tester@example.com")
    agent.git("config", "push.default", "current")
    agent.git("init", "--quiet", "--bare", "--initial-branch=main", "../remote.git")
    agent.git("remote", "add", "origin", "../remote.git")
    (agent.project / ".gitignore").write_text("*\n!.gitignore\n")
    agent.git("add", ".")
    agent.git("commit", "--quiet", "-m", "first")
    agent.git("push", "--quiet", "origin", "main")
    commit(agent, "second")
    agent.git("branch", "feature/x")
    agent.git("branch", "feature/y")


def commit(agent: AgentDriver, message: str) -> None:
    agent.git("commit", "--quiet", "--allow-empty", "-m", message)


def pushed(agent: AgentDriver, branch: str) -> str:
    """The commit on the remote's branch; "" where it has none."""
    return agent.git("ls-remote", "origin", f"refs/heads/{branch}").partition("\t")[0]


def asked(agent: AgentDriver, prompt: str, *calls: AskedCall | Script, session: str = "") -> list[ToolAnswer]:
    """The results, as the model was sent them, of calls that it asks for one after the other."""
    before = len(agent.server.requests)
    agent.server.drop_turns()  # of a step that failed
    agent.server.then(*calls, "That is all.")
    agent.prompt(prompt, session=session)
    assert agent.server.turns_left == 0, "the agent ended before the script"
    requests = agent.server.requests[before:]
    wanted = [call for request in requests if request.turn for call in request.turn.calls]
    answers = [requests[-1].answer_to(call.id) for call in wanted]
    assert None not in answers, f"a call has no result: {wanted}"
    return [answer for answer in answers if answer]


def stopped(answer: ToolAnswer, reason: str) -> None:
    """The call did not run, and the model reads why."""
    assert reason in answer.text.lower(), answer.text


def told(request: AgentRequest) -> bool:
    """Does toolmem tell of the rule in this request? The user's own message does not count."""
    said = [text for text in request.texts if RULE in text.lower()]
    return any(text.strip().lower().rstrip(".") != RULE for text in said)


def test_what_the_user_says_once_binds_in_the_program_itself(agent: AgentDriver, edition: Edition):
    report = StepReport(agent.title, agent.version(), served(agent.package), agent.cannot)
    repository(agent)
    before = agent.settings.read_bytes() if agent.settings else b""
    with report.step("installed"):
        agent.toolmem("hook", "install", agent.host, *agent.install_arguments())
        agent.after_install()
    hostile_folder(agent)
    rule_survives(agent, report)
    pushes(agent, report)
    failed_calls(agent, report)
    receipts(agent, report)
    with report.step("nothing of the project was imported"):
        assert not (agent.project / "imported").exists()
    with report.step("uninstalled, the settings as they were to the byte"):
        agent.toolmem("hook", "uninstall", agent.host, *agent.install_arguments())
        assert (agent.settings.read_bytes() if agent.settings else b"") == before
    report.write(edition.name)
    assert not report.failures, "\n\n".join(report.failures)


def hostile_folder(agent: AgentDriver) -> None:
    """Modules in the project that toolmem, Python or the store would load, were they looked for there."""
    imported = agent.project / "imported"
    text = f"open({str(imported)!r}, 'a').write(__name__)\n"
    for name in ("json", "apsw", "sitecustomize", "usercustomize", "sqlite3"):
        (agent.project / f"{name}.py").write_text(text)
    (agent.project / "toolmem").mkdir()
    (agent.project / "toolmem" / "__init__.py").write_text(text)


def rule_survives(agent: AgentDriver, report: StepReport) -> None:
    """The sentence is kept, and is before the model after a compaction and in a new session."""
    session = ""
    with report.step("the user's sentence is kept"):
        agent.server.then("Understood.")
        session = agent.prompt("Never push to main.")
        kept = agent.toolmem("rules", "list").stdout
        assert RULE in kept.lower(), kept
    with report.step("the rule is before the model after a compaction"):
        asked(agent, "What is here?", agent.shell("ls"), session=session)
        agent.compact(session)
        asked(agent, "And now?", agent.shell("pwd"), session=session)
        assert told(agent.server.turns[-1])
    with report.step("the rule is before the model in a new session"):
        before = len(agent.server.turns)
        asked(agent, "Which files are here?", agent.shell("ls -a"))
        assert told(agent.server.turns[before])


def pushes(agent: AgentDriver, report: StepReport) -> None:
    """The rule at the command line, and its end."""
    with report.step("`git push origin main` is stopped with the user's sentence"):
        there = pushed(agent, "main")
        (answer,) = asked(agent, "Publish it.", agent.shell("git push origin main"))
        stopped(answer, RULE)
        assert pushed(agent, "main") == there
    with report.step("`git push origin feature/x` runs"):
        asked(agent, "Publish the branch.", agent.shell("git push origin feature/x"))
        assert pushed(agent, "feature/x") == agent.git("rev-parse", "feature/x")
    with report.step("bare `git push` is stopped on main"):
        there = pushed(agent, "main")
        (answer,) = asked(agent, "Publish what is checked out.", agent.shell("git push"))
        stopped(answer, RULE)
        assert pushed(agent, "main") == there
    with report.step("bare `git push` runs on another branch"):
        agent.git("checkout", "--quiet", "feature/y")
        try:
            asked(agent, "Publish this one.", agent.shell("git push"))
            assert pushed(agent, "feature/y") == agent.git("rev-parse", "feature/y")
        finally:
            agent.git("checkout", "--quiet", "main")
    with report.step("lifted by the user's word"):
        asked(agent, "You can push to main again.", agent.shell("git push origin main"))
        assert pushed(agent, "main") == agent.git("rev-parse", "main")


def failed_calls(agent: AgentDriver, report: StepReport) -> None:
    """What failed is not tried again unchanged, except on purpose; it is once something has changed."""
    read = agent.shell("cat missing.txt")
    reason = "missing.txt"
    with report.step("a call that failed is stopped when it is repeated unchanged"):
        first, again, forced, last = asked(agent, "Read missing.txt.", read, read, read, read)
        assert "no such file" in first.text.lower(), first.text
        assert not ran(again), again.text
        assert reason in again.text.lower(), again.text
    with report.step("... runs when it is sent once more"):
        assert ran(forced), forced.text
    with report.step("... and having failed again is stopped"):
        assert not ran(last), last.text
    with report.step("... until something changes"):
        written = agent.shell("echo there > missing.txt")
        _, answer = asked(agent, "Write it, then read it.", written, read)
        assert "there" in answer.text, answer.text


def ran(answer: ToolAnswer) -> bool:
    """Did `cat` itself speak? What stopped it quotes it at most within a sentence of its own."""
    spoken = (
        r"(?:^|\\n)(?:Output: )?cat: missing\.txt: No such file or directory\s*(?:$|\\n)"  # \n in JSON is two letters
    )
    return re.search(spoken, answer.text, re.M) is not None


def receipts(agent: AgentDriver, report: StepReport) -> None:
    """None of many calls is missed, and `doctor` says so."""
    with report.step(f"{MANY} calls: {MANY} receipts"):
        numbers = [list(range(start, start + AT_ONCE)) for start in range(0, MANY, AT_ONCE)]
        turns = [[agent.shell(f"echo {number}") for number in group] for group in numbers]
        agent.server.drop_turns()
        agent.server.then(*turns, "That is all.")
        before = calls_seen(agent)
        session = agent.prompt("Count to two hundred.")
        assert calls_seen(agent) - before == MANY
        found = json.loads(agent.toolmem("hook", "doctor", agent.host, "--json", check=False).stdout)
        seen = [each["seen"] for each in found if session in each["seen"]]
        assert not agent.recorded or any(f"{MANY} calls, {MANY} receipts" in each for each in seen), found
    with report.step("`doctor` finds nothing wrong"):
        agent.toolmem("hook", "doctor", agent.host)


def calls_seen(agent: AgentDriver) -> int:
    """The receipts of calls, before they run, in this home."""
    return int(json.loads(agent.toolmem("hook", "status", agent.host, "--json").stdout)["calls"])
