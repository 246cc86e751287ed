"""What each step of the scenario came to, kept for the page `docs/how-to/hosts/last-report.md`."""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

REPORT = Path(__file__).with_name("last_report.json")
BESIDE = Path(__file__).with_name("last_report_beside.json")


@dataclass
class StepReport:
    """Of one program. A step that fails does not keep the later ones from being tried; `failures` holds them all."""

    program: str
    version: str
    served: str  # the newest version that npm had then
    cannot: dict[str, str]  # step -> why it was not tried, and what was tried instead
    steps: dict[str, str] = field(default_factory=dict)  # step -> passed, failed, or why it was not tried
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step; what it raises is noted. A step that the program cannot do is not judged."""
        try:
            yield
            self.steps[name] = "passed"
        except Exception as error:
            if name in self.cannot:
                self.steps[name] = f"not possible: {self.cannot[name]}"
                return
            self.steps[name] = "failed"
            self.failures.append(f"{name}: {type(error).__name__}: {error}")

    def write(self, name: str, path: Path = REPORT) -> None:
        """Into the file of the last run of every program, in place of this one's. `name`: of its edition."""
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        told = {"program": self.program, "version": self.version, "served": self.served, "steps": self.steps}
        if self.served == self.version:
            kept.pop(f"{name}-newest", None)
        kept[name] = {**told, "date": datetime.date.today().isoformat(), "python": platform.python_version()}
        path.write_text(json.dumps(dict(sorted(kept.items())), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_beside(outcomes: dict[str, str], path: Path = BESIDE) -> None:
    """What the tests beside the scenario came to: the sentence of each, and its outcome."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    kept |= outcomes
    path.write_text(json.dumps(dict(sorted(kept.items())), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
