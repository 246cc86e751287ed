"""The README's second screen, played: what is typed there is typed, and the program says what stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.hosts.hook_agent import HookedAgent
from toolmem.hosts.note_command import command_line

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
BLOCK = next(block for block in re.findall(r"```text\n(.*?)```", README, re.DOTALL) if "\ntoolmem  Kept: " in block)
BROKEN = re.compile(r"(?m)(?<=\S)\n {9}(?=\S)")  # a line that goes on in the next one
LINES = [(line[:9].strip(), line[9:]) for line in BROKEN.sub(" ", BLOCK).splitlines() if line.strip()]


def said(who: str) -> list[str]:
    return [text for speaker, text in LINES if speaker == who]


def test_the_second_screen_is_what_the_program_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "work" / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.delenv("TOOLMEM_GUARD", raising=False)
    gemini = HookedAgent("gemini", home, project)  # it shows its user what hooks say, and cannot ask them
    demand, taken_back, accepted = said("you")
    (command,) = said("agent")

    def noted(note: dict[str, object], *option: str) -> str:
        line = " ".join([command_line(), *option])
        return gemini.speaks.notice(gemini.asks(f"{line} <<'TOOLMEM'\n{json.dumps(note)}\nTOOLMEM"))

    def example(line: str) -> list[dict[str, object]]:
        return [{"tool": gemini.speaks.shell, "arguments": {"command": line}}]

    stops, passes = re.findall(r"`(git [^`]+)`", said("toolmem")[0])
    quote = demand.partition(".")[0]
    gemini.says(demand)
    kept = noted(
        {
            "quote": quote,
            "effect": "deny",
            "lasting": "always",
            "tools": [gemini.speaks.shell],
            "when": [{"command": "^git commit", "word": "--no-verify|-n"}],
            "stops": example(stops),
            "passes": example(passes),
        }
    )
    gemini.session = "s2"
    denied = gemini.speaks.denial(gemini.asks(command))
    gemini.says(taken_back)
    proposed = noted({"quote": taken_back, "lifted": quote}, "--lift")
    assert [alike(each) for each in (kept, denied, proposed)] == [alike(f"toolmem: {each}") for each in said("toolmem")]
    code = re.findall(r"`lift (\w{4})`", proposed)[0]
    gemini.says(re.sub(r"\w{4}$", code, accepted))
    assert not gemini.stopped(gemini.asks(command))


def alike(text: str) -> str:
    """But for the day, and the code of the proposal."""
    return re.sub(r"lift \w{4}\b", "lift CODE", re.sub(r"\d{4}-\d\d-\d\d", "DAY", text))
