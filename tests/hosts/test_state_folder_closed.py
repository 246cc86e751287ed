"""A state folder that its user cannot use any more: the agent goes on, rules bind, and it is told once a session."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.host_payloads import PAYLOADS, as_bytes
from toolmem.hosts.host import HOSTS, host_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes the rights of root away as Linux does")
PUSH = "git push origin main"
_OVERRIDES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: by these root may read everything
_PR_CAPBSET_DROP = 24


def _without_rights() -> None:
    for each in _OVERRIDES:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, each, 0, 0, 0)


class Project:
    """One agent's hooks, each a process that may read no more than a user may."""

    def __init__(self, folder: Path, host: str) -> None:
        self.home, self.host, self.speaks = folder, host, PAYLOADS[host]
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        self.state = folder / "state" / "toolmem"
        self.environment = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PATH": "/usr/bin:/bin"}

    def run(self, *words: str, given: bytes = b"") -> str:
        command = [sys.executable, "-P", "-m", *words]
        ran = subprocess.run(
            command,
            input=given,
            capture_output=True,
            env={**self.environment, "TMPDIR": str(self.home)},
            cwd=self.project,
            check=False,
            preexec_fn=_without_rights,
        )
        assert b"Traceback" not in ran.stderr
        return ran.stdout.decode() + (ran.stderr.decode() if words[0] == "toolmem" else "")

    def send(self, payload: dict[str, Any]) -> dict[str, Any]:
        told = self.run("toolmem.hosts", self.host, given=as_bytes(payload))
        return dict(json.loads(told)) if told else {}

    def asks(self, command: str, number: int, session: str = "s1") -> dict[str, Any]:
        return self.send(self.speaks.before(session, str(self.project), command, number))

    def says(self, text: str, number: int, session: str = "s1") -> dict[str, Any]:
        return self.send(self.speaks.prompt(session, str(self.project), text, number))


@pytest.fixture(params=HOSTS)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path, request.param)
    yield made
    made.state.chmod(0o700)


def test_the_agent_goes_on_rules_bind_and_the_user_is_told_once(project: Project) -> None:
    project.says("never push to main", 1)
    project.state.chmod(0)
    denials = [project.asks(PUSH, 2), project.asks(PUSH, 3)]
    assert all("never push to main" in project.speaks.denial(each) for each in denials)
    project.send(project.speaks.worked("s1", str(project.project), "ls", 4, "a.txt"))
    answers = [*denials, project.asks("ls", 5), project.says("Go on.", 6), project.says("And on.", 7)]
    assert not project.speaks.denial(answers[2])
    told = [each for each in answers if "cannot be used" in json.dumps(each)]
    assert len(told) == bool(host_of(project.host).notices_at)
    if told:
        assert "cannot be used" in json.dumps(project.says("Hello.", 8, "s2")), "once for each session"


def test_doctor_and_status_tell_it(tmp_path: Path) -> None:
    project = Project(tmp_path, "claude-code")
    project.run("toolmem", "hook", "install", "claude-code", "--project", str(project.project))
    project.state.chmod(0)
    try:
        for command in ("doctor", "status"):
            told = project.run("toolmem", "hook", command, "claude-code", "--project", str(project.project))
            assert f"the state folder {project.state} cannot be used" in " ".join(told.split())
    finally:
        project.state.chmod(0o700)
