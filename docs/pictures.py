"""Take the pictures of the console, in `docs/images/`, with a real Chromium: `make pictures`.

    python docs/pictures.py

The store holds the packaged sample as if its last call had ended two hours ago, what a user
demanded two days ago, and what was stopped since.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from console_site import TOKEN, open_chromium, sign_in, start, stop  # noqa: E402
from PIL import Image  # noqa: E402

from toolmem import ToolMem  # noqa: E402
from toolmem.formats.recording import read_recording  # noqa: E402
from toolmem.models.calls import ToolCallResult  # noqa: E402
from toolmem.research.evaluation import sample  # noqa: E402
from toolmem.rules.changes import Actor  # noqa: E402
from toolmem.testing.clock import TestClock  # noqa: E402

HEIGHT = 1_050  # pixels of a page, at most
NOW = datetime.now(UTC)
DEMANDS = (
    ("http_request", "Ask me before you POST to /v1/orders"),
    ("shell", "Never push to main"),
    ("send_email", "Only email people at example.com"),
    ("shell", "Ask me before you use cp"),
)
PLANNED = (
    ("shell", {"command": "git push origin main"}),
    ("http_request", {"method": "POST", "path": "/v1/orders", "body": {"product_id": 15}}),
    ("send_email", {"to": ["press@paper.org"], "subject": "Figures", "body": "Attached."}),
    ("shell", {"command": "cp reports/q4_2025.txt archive/"}),
    ("shell", {"command": "npm test && git push origin main"}),
    ("http_request", {"method": "POST", "path": "/v1/orders", "body": {"product_id": 39}}),
    ("shell", {"command": "git push --force origin main"}),
)
REQUESTS = (("sql_query", "Always add LIMIT to a SELECT"),)
LOOSENED = "Only email people at example.com"
TOOL = "read_file"


class Clock(TestClock):
    """Starts where it is told to."""

    def __init__(self, begin: datetime) -> None:
        super().__init__()
        self.begin = begin

    def now(self) -> datetime:
        return self.begin + timedelta(seconds=self._passed)


def is_shown(call: ToolCallResult) -> bool:
    """Whether a call failed that any machine has the letters for."""
    return call.tool_name == TOOL and call.success is False and call.context.isascii()


def fill(path: Path) -> dict[str, str]:
    """Returns the addresses by picture."""
    files, _ = sample()
    clock = Clock(NOW - timedelta(days=2))
    with ToolMem(path, clock=clock) as memory:
        calls = read_recording(files, NOW).calls
        shift = NOW - timedelta(hours=2) - max(each.create_time for each in calls)
        for each in calls:
            each.create_time += shift
        memory.add(calls)
        memory.summarize()
        user = memory.acting_as(Actor("user", "typed", session="morning"))
        words = "The press list is outside of example.com."
        agent = memory.acting_as(Actor("agent", "", words, "morning", "claude-code"))
        rules = [user.tool_rule_put(tool, demand) for tool, demand in DEMANDS]
        clock.advance(45 * 3600)
        for tool, given in PLANNED:
            decision = memory.check_tool_call(tool, given, conversation_id="morning")
            assert decision.action in ("deny", "ask"), decision
            clock.advance(300)
        for tool, demand in REQUESTS:
            agent.tool_rule_put(tool, demand)
        memory.services.store().put(".store", ".store", "guarded", {})
        loosened = next(rule for rule in rules if rule.rule == LOOSENED)
        agent.tool_rule_put(loosened.tool_name, LOOSENED, id=loosened.id, effect="remind")
        failed = next(each for each in reversed(calls) if is_shown(each))
    return {
        "console": "",
        "console-tool": f"tool?name={TOOL}",
        "console-rule": f"rule?{urlencode({'id': loosened.id, 'replay': 1})}",
        "console-call": f"call?{urlencode({'tool': TOOL, 'id': failed.id})}",
    }


def take(browser: Any, url: str, name: str, address: str) -> None:
    """Take a picture of a page: 1,400 pixels wide and light, but for two."""
    width = 400 if name == "console-call" else 1400
    scheme = "dark" if name == "console-tool" else "light"
    size = {"width": width, "height": HEIGHT}
    page = browser.new_page(viewport=size, color_scheme=scheme, locale="en-US")
    page.goto(f"{sign_in(page, url)}/w/default/{address}")
    taken = Image.open(BytesIO(page.screenshot())).convert("RGB")
    path = ROOT / "docs" / "images" / f"{name}.png"
    # The default method loses colours that are rare, such as those of the bars.
    taken.quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="toolmem-pictures-") as name:
        os.environ.update(HOME=name, XDG_STATE_HOME=f"{name}/state")
        store = Path(name) / "memory.db"
        addresses = fill(store)
        url, process = start(store.parent, token=TOKEN, store=store)
        try:
            with open_chromium() as browser:
                for picture, address in addresses.items():
                    take(browser, url, picture, address)
        finally:
            stop(process)


if __name__ == "__main__":
    main()
