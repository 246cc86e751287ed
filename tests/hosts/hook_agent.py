"""An agent that runs our hook as its own program would, in this process or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hosts.host_payloads import PAYLOADS, as_bytes
from toolmem.engine import StoreFile
from toolmem.hosts.hook_process import answered
from toolmem.hosts.receipts import Receipts
from toolmem.light_models import ToolMemoryRule
from toolmem.readers.weight import at_once


@dataclass
class HookedAgent:
    """One agent in one project. `home` holds the state folder too."""

    host: str
    home: Path
    project: Path
    session: str = "s1"
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    number: int = 0

    @property
    def speaks(self) -> Any:
        return PAYLOADS[self.host]

    def send(self, raw: bytes | Mapping[str, Any], *options: str) -> dict[str, Any]:
        """In this process; the answer, {} for nothing."""
        text = raw if isinstance(raw, bytes) else as_bytes(raw)
        given = {**os.environ, **self.speaks.environment, **self.environment}
        told = answered([self.host, *self.options, *options], io.BytesIO(text), given)
        return dict(json.loads(told)) if told else {}

    def send_to_process(self, raw: bytes | Mapping[str, Any], *options: str) -> subprocess.CompletedProcess[bytes]:
        text = raw if isinstance(raw, bytes) else as_bytes(raw)
        own = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-P", "-m", "toolmem.hosts", self.host, *self.options, *options]
        environment = {**own, **self.speaks.environment, **self.environment}
        return subprocess.run(command, input=text, capture_output=True, env=environment, cwd=self.project, check=False)

    # -- events

    @property
    def place(self) -> tuple[str, str]:
        return self.session, str(self.project)

    def start(self, origin: str = "startup") -> dict[str, Any]:
        return self.send(self.speaks.start(*self.place, origin))

    def says(self, text: str) -> dict[str, Any]:
        self.number += 1
        return self.send(self.speaks.prompt(*self.place, text, self.number))

    def asks(self, command: str) -> dict[str, Any]:
        """The answer before a call."""
        self.number += 1
        return self.send(self.speaks.before(*self.place, command, self.number))

    def runs(self, command: str, output: str = "fine", *, error: str = "") -> dict[str, Any]:
        """A call from its beginning to its end; the answer before it."""
        answer = self.asks(command)
        if error:
            self.send(self.speaks.failed(*self.place, command, self.number, error))
        else:
            self.send(self.speaks.worked(*self.place, command, self.number, output))
        return answer

    # -- what became of it

    def stopped(self, answer: Mapping[str, Any]) -> str:
        """Why a call does not run without somebody's word; "" where it runs."""
        return str(self.speaks.denial(answer) or self.speaks.question(answer))

    @property
    def receipts(self) -> Receipts:
        return Receipts()

    @property
    def users_store(self) -> Path:
        return self.home / ".toolmem" / "memory.db"

    def rules(self, store: Path | None = None) -> list[str]:
        """The sentences that hold."""
        return [rule.rule for rule in self.whole_rules(store)]

    def whole_rules(self, store: Path | None = None) -> list[ToolMemoryRule]:
        """Those that hold."""
        from toolmem.rules.rule_store import RuleStore

        with StoreFile(store or self.users_store) as opened:
            return at_once(RuleStore(opened.protocol, "default", clock=opened.clock).all_rules())[0]

    def calls(self, store: Path | None = None) -> list[dict[str, Any]]:
        """What was recorded, in the order in which it came."""
        from toolmem import ToolMem

        with ToolMem(str(store or self.users_store)) as memory:
            return [call.model_dump(mode="json") for call in memory.calls()]

    @property
    def log(self) -> str:
        file = self.home / "state" / "toolmem" / "hooks.log"
        return file.read_text() if file.exists() else ""
