"""What a user sees of a long run in a terminal, and after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from toolmem.testing.model_script import Script
from toolmem.testing.model_server import ModelServer

CALLS = 30


@pytest.fixture
def server():
    with ModelServer(Script()) as server:
        yield server


def paid(server: ModelServer, interval: float = 0.2) -> list[str]:
    return [
        "llm.default.backend=dashscope",
        "llm.default.model_name=qwen-plus",
        f"llm.default.params.base_url={server.dashscope_url}",
        "llm.default.params.api_key=any-text",
        f"op.parse_tool_call_result_op.params.evaluation_sleep_interval={interval}",
    ]


def request_in(folder: Path) -> str:
    records = [{"tool_name": "search", "input": {"q": f"{n}"}, "output": "[]"} for n in range(CALLS)]
    (folder / "request.json").write_text(json.dumps({"workspace_id": "team", "tool_call_results": records}))
    return "request.json"


class Terminal:
    """A pseudo-terminal as stderr of a command."""

    def __init__(self, arguments: list[str], cwd: Path) -> None:
        self.screen = ""
        self._ours, theirs = os.openpty()
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "toolmem", *arguments]
        self.process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=theirs, env=env)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._ours, 4096)
            except OSError:  # the other end is closed
                return
            if not piece:
                return
            self.screen += piece.decode("utf-8", "replace")

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.screen and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert text in self.screen, self.screen[-2000:]

    def end(self) -> str:
        stdout, _ = self.process.communicate(timeout=300)
        self._reader.join(timeout=10)
        os.close(self._ours)
        return str(stdout.decode())


def test_a_long_run_shows_how_far_it_is_on_a_terminal(server, tmp_path):
    terminal = Terminal(
        ["run", "add_tool_call_result", "--request", request_in(tmp_path), *paid(server, 0.1)], tmp_path
    )
    terminal.wait_for("parse_tool_call_result_op")
    terminal.wait_for(f"/{CALLS}")
    response = json.loads(terminal.end())
    assert terminal.process.returncode == 0
    assert response["metadata"]["evaluation"]["evaluated"] == CALLS


def test_ctrl_c_ends_a_run_at_once_says_so_and_no_further_request_is_made(server, tmp_path):
    terminal = Terminal(["run", "add_tool_call_result", "--request", request_in(tmp_path), *paid(server)], tmp_path)
    terminal.wait_for(f"1/{CALLS}")
    made = len(server.requests)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == ""
    assert terminal.process.returncode == 130
    assert "interrupted: what was acknowledged is stored" in terminal.screen
    assert "Traceback" not in terminal.screen
    assert len(server.requests) <= made + 2 < CALLS


def test_ctrl_c_before_anything_is_stored_says_so_too(tmp_path):
    records = [{"tool_name": "search", "input": {"n": n}, "output": "line\n" * 2000} for n in range(4000)]
    (tmp_path / "request.json").write_text(json.dumps({"workspace_id": "team", "tool_call_results": records}))
    terminal = Terminal(["run", "add_tool_call_result", "--request", "request.json"], tmp_path)
    terminal.wait_for("parse_tool_call_result_op")
    terminal.process.send_signal(signal.SIGINT)
    terminal.end()
    assert terminal.process.returncode == 130
    assert "interrupted: what was acknowledged is stored" in terminal.screen


@pytest.mark.slow
def test_the_report_of_an_evaluation_is_not_mixed_with_its_progress(tmp_path):
    terminal = Terminal(["evaluate", "--limit", "40"], tmp_path)
    printed = terminal.end()
    assert terminal.process.returncode == 0
    assert "Report:" in printed
    assert "the report ━" in terminal.screen  # the stage that lasts; others may be over before they are painted
    assert "━" not in printed


IMPORTS_INTERRUPTED = """
import os, signal, sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
from toolmem.cli import main
main(["--version"])
"""


def test_an_interrupt_while_the_program_is_still_loading_leaves_no_traceback(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTS_INTERRUPTED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr.startswith("interrupted")
    assert "Traceback" not in ran.stderr
