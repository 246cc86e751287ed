"""Every code block of the documentation holds: commands parse, configurations load, JSON and Python can be read.

Cells (`{code-cell}`) are not looked at here: `make docs` executes them. The blocks of real-models.md are run by
`test_real_models_page`.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml

from toolmem.cli.commands import app, arrange
from toolmem.config.extras import missing
from toolmem.config.settings import Settings
from toolmem.errors import ConfigError
from toolmem.flow.configure import configure
from toolmem.operations.table import described_flows

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if not {"_build", "notebooks"} & set(p.relative_to(DOCS).parts)]
BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^`\n]*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
EXECUTED = ("{code-cell}",)
SHELLS = ("console", "sh", "bash")
PLAIN = ("text", "{toctree}", "{figure}", "{image}", "{note}")  # signatures, outputs, directives
OTHER_PROGRAMS = {
    "make",
    "export",
    "echo",
    "curl",
    "pip",
    "python",
    "docker",
    "cat",
    "source",
    "cd",
    "claude",
    "python3",
    "mkdir",
    "kill",
    ".",
}


class Block(NamedTuple):
    page: str
    line: int
    kind: str
    body: str


def blocks() -> Iterator[Block]:
    for path in [*PAGES, ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            head, body = found["kind"].strip(), found["body"]
            if head.startswith("{code-block}"):
                head = head.removeprefix("{code-block}").strip()
                body = re.sub(r"\A(:[^\n]*\n)*\n?", "", body)
            kind = head.split()[0] if head else ""
            yield Block(path.relative_to(ROOT).as_posix(), text.count("\n", 0, found.start()) + 1, kind, body)


BLOCKS = list(blocks())


LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)\)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_have_a_text_and_lead_to_files_of_the_checkout(page):
    for found in LINK.finditer(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        target = found["target"].partition("#")[0]
        assert found["text"].strip(), f"{found[0]}: a code forge shows nothing for it"
        assert "://" in target or not target or (page.parent / target).is_file(), found[0]


def of_kind(*kinds: str) -> Any:
    chosen = [block for block in BLOCKS if block.kind in kinds]
    return pytest.mark.parametrize("block", chosen, ids=lambda block: f"{block.page}:{block.line}")


def commands(block: Block) -> Iterator[str]:
    """What is typed: in a console the lines behind `$`. A backslash and an open quote go on in the next line."""
    typed = ""
    for line in re.sub(r"\\\n\s*", " ", block.body).splitlines():
        if not typed and block.kind == "console" and not line.startswith("$ "):
            continue
        typed += line.removeprefix("$ ") + "\n"
        if typed.count("'") % 2 == 0 and not typed.isspace():
            yield typed
            typed = ""


def programs(command: str) -> Iterator[list[str]]:
    """The words of each program of a pipeline; comments and redirections are left out."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    skipped = False
    for word in lexer:
        if set(word) <= set("|;&"):
            yield words
            words = []
        elif set(word) <= set("<>&"):
            skipped = True
        elif skipped:
            skipped = False
        else:
            words.append(word)
    yield words


def check_command(words: list[str]) -> None:
    """Raises where the command line's own parser would not take it."""
    group = typer.main.get_command(app)
    options, waiting = [], [group]
    while waiting:
        command = waiting.pop()
        options += [name for p in command.params for name in (*p.opts, *p.secondary_opts)]
        waiting += getattr(command, "commands", {}).values()
    command, rest = group, arrange(words, options)
    while getattr(command, "commands", {}):
        if rest[:1] == ["--version"]:
            return
        assert rest, f"a command is missing; there are {sorted(command.commands)}"
        assert rest[0] in command.commands, f"no command {rest[0]!r}; there are {sorted(command.commands)}"
        command, rest = command.commands[rest[0]], rest[1:]
    if rest not in (["--help"], ["-h"]):
        command.make_context(command.name, rest, resilient_parsing=False)


@of_kind(*SHELLS)
def test_a_command_of_the_documentation_exists_and_its_options_parse(block):
    known = 0
    for command in commands(block):
        for words in programs(command):
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if not words:
                continue
            program = words[0].removeprefix(".venv/bin/")
            if program == "toolmem":
                check_command(words[1:])
            elif program == "make":
                targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
                assert words[1] in targets
            else:
                assert program in OTHER_PROGRAMS | {"grep", "head", "tail", "tr", "sort"}, command
            known += 1
    assert known


@pytest.mark.parametrize(
    "wrong",
    ["toolmem evaluat", "toolmem evaluate --inputs x", "toolmem store copy --from", "toolmem evaluate --limit many"],
)
def test_a_command_that_does_not_exist_is_seen(wrong):
    with pytest.raises(Exception, match=r"no command|No such option|requires an argument|valid"):
        check_command(shlex.split(wrong)[1:])


@of_kind("yaml")
def test_a_configuration_of_the_documentation_loads(block, tmp_path):
    body = yaml.safe_load(block.body)
    assert isinstance(body, dict)
    if set(body) & set(Settings.model_fields):
        path = tmp_path / "page.yaml"
        path.write_text(block.body, encoding="utf-8")
        if "backend: fastembed" in block.body and missing("fastembed"):
            pytest.skip("fastembed is not installed")
        configure([path], (), described=described_flows())


def test_a_wrong_configuration_is_seen(tmp_path):
    path = tmp_path / "page.yaml"
    path.write_text("op: {summary_tool_memory_op: {params: {recent_calls: 3}}}", encoding="utf-8")
    with pytest.raises(ConfigError, match="recent_calls"):
        configure([path], (), described=described_flows())


def test_json_of_the_documentation_is_json():
    for block in BLOCKS:
        if block.kind in ("json", "jsonl"):
            parts = block.body.splitlines() if block.kind == "jsonl" else [block.body]
            assert all(is_json(part) for part in parts), f"{block.page}:{block.line}"


def is_json(text: str) -> bool:
    try:
        return json.loads(text) is not None
    except ValueError:
        return False


@of_kind("toml")
def test_toml_of_the_documentation_is_toml(block):
    assert tomllib.loads(block.body)


@of_kind("ini")
def test_ini_of_the_documentation_has_sections(block):
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment]
    read.read_string(block.body)
    assert read.sections()


def test_python_of_the_documentation_compiles():
    for block in BLOCKS:
        if block.kind == "python":
            compile(block.body, f"{block.page}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_every_kind_of_block_is_looked_at():
    looked_at = {*SHELLS, *PLAIN, *EXECUTED, "yaml", "json", "jsonl", "toml", "ini", "python"}
    unknown = {f"{block.page}:{block.line} {block.kind!r}" for block in BLOCKS if block.kind not in looked_at}
    assert unknown == set()


def test_every_name_that_the_reference_imports_can_be_had():
    reference = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    lines = re.findall(r"^from toolmem.*$", reference, re.MULTILINE)
    assert len(lines) > 60
    exec("\n".join(lines), {})
