"""The page on real models: its commands run, and its outputs are what comes.

Console blocks: lines that begin with `$ ` are commands of one shell session, what follows is their output (stdout and
stderr as a pipe gets them). A plain `toolmem` command runs in this process, which is quicker, anything else in a shell.
Python blocks are run, a text block behind one is its output. A code block with a caption is a file. In an output,
`...` stands for anything, and a line of `...` for any number of lines; spaces and the rules of tables do not count, nor
do the lines that tell how far a step is after some seconds: whether they come depends on how busy the machine is.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from toolmem.cli import main
from toolmem.flow import progress
from toolmem.flow.report import Event

PAGE = Path(__file__).resolve().parents[2] / "docs" / "real-models.md"
PORT = "8765"  # on the page
PLAIN = re.compile(r"toolmem (?P<arguments>[^|;>]*)(?P<code>; echo \"exit code \$\?\")?")
HOW_FAR = re.compile(r".+: [\d,]+ of [\d,]+ .+ after \d+ s")
BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    kind: str  # "console", "python", or "file"
    source: str  # a command, a program, or a text
    expected: str | None = None  # None: not shown
    name: str = ""  # of a file


def examples(page: str) -> Iterator[Example]:
    blocks = [(found["kind"].strip(), found["body"]) for found in BLOCK.finditer(page)]
    for number, (kind, body) in enumerate(blocks):
        if kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield Example("console", command, output)
        elif kind == "python":
            shown = number + 1 < len(blocks) and blocks[number + 1][0] == "text"
            yield Example("python", body, blocks[number + 1][1] if shown else None)
        elif kind.startswith("{code-block}") and ":caption:" in body:
            head, _, text = body.partition("\n\n")
            yield Example("file", text, name=head.removeprefix(":caption:").strip())


def lines(text: str) -> list[str]:
    """Without spaces that only align, empty lines, the rules of tables, and how far a step was after some seconds."""
    flat = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in flat if line.strip("─ ") and not HOW_FAR.fullmatch(line)]


def as_pattern(expected: str) -> re.Pattern[str]:
    parts = [
        r"(?:[^\n]*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n"
        for line in lines(expected)
    ]
    return re.compile("".join(parts))


class Session:
    """A shell's folder and environment, and the one server that the page has running at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "COLUMNS": "200"}
        self.server: subprocess.Popen[str] | None = None

    def run(self, example: Example) -> str:
        """What it prints, with the page's port."""
        source = example.source.replace(PORT, self.port)
        if example.kind == "file":
            (self.folder / example.name).write_text(source, encoding="utf-8")
            return ""
        if example.kind == "python":
            return self._output([sys.executable, "-c", source])
        if source.startswith("export "):
            name, _, value = source.removeprefix("export ").partition("=")
            self.env[name] = value
            return ""
        if source.startswith("toolmem testing serve"):
            return self._serve(source)
        plain = PLAIN.fullmatch(source)
        return self._output(["bash", "-c", source]) if plain is None else self._main(plain)

    def _main(self, command: re.Match[str]) -> str:
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
            for name, value in self.env.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            with pytest.raises(SystemExit) as left:
                main(shlex.split(command["arguments"]))
        code = f"exit code {left.value.code or 0}\n" if command["code"] else ""
        return (printed.getvalue() + code).replace(self.port, PORT)

    def _output(self, command: list[str]) -> str:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return ran.stdout.replace(self.port, PORT)

    def _serve(self, command: str) -> str:
        self.stop()
        self.server = subprocess.Popen(
            command.split(),
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.server.stdout is not None
        return "".join(self.server.stdout.readline() for _ in range(2)).replace(self.port, PORT)

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=300)
            self.server = None


@pytest.fixture
def session(tmp_path):
    session = Session(tmp_path)
    yield session
    session.stop()


@pytest.mark.slow
def test_every_example_of_the_page_gives_what_the_page_shows(session):
    ran = 0
    for example in examples(PAGE.read_text(encoding="utf-8")):
        output = session.run(example)
        if example.expected is not None:
            got = "".join(line + "\n" for line in lines(output))
            assert as_pattern(example.expected).fullmatch(got), (
                f"{example.source}\n--- shown\n{example.expected}\n--- got\n{got}"
            )
            ran += 1
    assert ran >= 18


def test_a_machine_so_busy_that_a_step_tells_how_far_it_is_changes_nothing_on_the_page():
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(told):
        patch.setattr(progress, "QUIET", 0.0)
        with progress.ProgressLine() as line:
            line.phase("judge and store")
            line(Event("progress", "flow", done=30, total=1176, message="calls"))
    assert "30 of 1,176" in told.getvalue()
    assert lines(told.getvalue()) == ["judge and store ..."]


def test_the_page_says_that_nothing_was_made_with_a_paid_model():
    assert "No figure on\nthis page was made with a paid model" in PAGE.read_text(encoding="utf-8")
