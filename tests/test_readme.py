"""What the README shows can be done."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")


def test_its_examples_run_and_print_what_they_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for example in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "deny toolmem: not run. The user said on" in printed
    assert "Never email Sarah at sarah@example.com" in printed
    assert 'failed: {"day": "3 May"}: "day must be YYYY-MM-DD"' in printed
    assert 'worked: {"day": "2027-05-03"}' in printed


def test_its_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    assert set(re.findall(r"make ([\w-]+)", README)) <= targets
    assert {"evaluate", "test", "test-all", "lint", "bench", "ci"} <= targets
