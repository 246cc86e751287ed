"""One turn of an agent: the user's message, the calls that followed, and the rules made of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from toolmem.errors import RequestError
from toolmem.models.calls import IMPORT_ID, IMPORT_RUNS
from toolmem.models.protocols import Store
from toolmem.models.rules import ToolMemoryRule
from toolmem.models.tools import ToolSchema
from toolmem.rules.identity import folded_name
from toolmem.text.display import plain, shown_name
from toolmem.text.forms import short_key

log = logging.getLogger("toolmem.operator")
_GUEST = "guest:"
MAX_PENDING = 2_000  # logged calls among which an import's uncounted batch of 1,000 is
Speaker = Annotated[
    str | None, "Who the user is: owner, or guest:ID. The default is the setting session.speaker."
]


class ToolUse(Struct, kw_only=True):
    """One tool call of a turn."""

    name: Annotated[str, Meta(pattern=r"\S")]
    arguments: Any = None
    success: bool | None = None  # the tool reported no error; None = unknown
    output_summary: str = ""
    duration_ms: Annotated[float, Meta(ge=0)] | None = None  # wall clock


class Turn(Struct, kw_only=True):
    """The user's message and the calls that followed.

    `tools`: all tools of the agent, if known. `stopped_by`: ids of the rules that stopped calls
    just before the message.
    """

    user_message: str = ""
    tool_calls: list[ToolUse] = []
    conversation_id: str = ""
    number: int | None = None  # of the turn in its conversation
    tools: list[ToolSchema] = []
    is_guests: bool = False  # a guest typed it: it binds in this session alone, and lifts nothing
    stopped_by: list[str] = []
    held: str = ""  # an earlier message that the user now wants to be kept

    @property
    def ran(self) -> list[str]:
        """Return the names of the tools that ran, in order, each once whatever its casing."""
        names: dict[str, str] = {}
        for call in self.tool_calls:
            names.setdefault(folded_name(call.name), call.name.strip())
        return list(names.values())

    @property
    def mark(self) -> str:
        """Return a key of the turn, the same when it is replayed; "" without a conversation."""
        if not self.conversation_id:
            return ""
        content = f"{self.user_message}\0{self.ran}" if self.number is None else str(self.number)
        return short_key(self.conversation_id, content)


class Captured(Struct):
    """The rules that a turn made or lifted, and messages about them."""

    kept: list[ToolMemoryRule] = []
    lifted: list[ToolMemoryRule] = []
    told: list[str] = []  # messages for the user, one line each

    def add(self, other: Captured) -> None:
        self.kept += other.kept
        self.lifted += other.lifted
        self.told += other.told

    def without_repeats(self) -> Captured:
        """Return a copy in which each rule and message occurs once."""
        kept = {rule.id: rule for rule in self.kept}
        lifted = {rule.id: rule for rule in self.lifted}
        told = dict.fromkeys(line for line in self.told if line)
        newest: dict[str, str] = {}  # where a sentence was kept twice, its last message
        for line in told:
            is_kept = line.startswith("Kept") and "” (" in line
            newest[line.partition("” (")[0] if is_kept else line] = line
        return Captured(list(kept.values()), list(lifted.values()), list(newest.values()))


def read_turn(given: Any) -> Turn:
    """Read a turn from JSON. Raises RequestError, which names the wrong part."""
    if not isinstance(given, Mapping) or not {"user_message", "tool_calls"} & given.keys():
        raise RequestError("user_message: expected an object with user_message, tool_calls or both")
    tools = [{"name": t} if isinstance(t, str) else t for t in given.get("tools") or []]
    try:
        return msgspec.convert({**given, "tools": tools}, Turn)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise RequestError(f"{place.strip('.`') or 'turn'}: {what[:1].lower()}{what[1:]}") from None


def tools_called_here(store: Store, workspace: str) -> list[str]:
    """Name the tools that have calls which were not imported. A demand may mean these tools."""
    records = store.records(workspace, guidance=False)  # read first: an import may add calls
    names = {each.tool_name: each.counters.calls for each in records}
    imported = Counter[str]()
    for record in store.list_records(workspace, IMPORT_RUNS):
        run = record.read(dict[str, Any])
        for name, figures in run.get("tools", {}).items():
            imported[name] += figures.get("calls", 0)
        if (pending := run.get("pending")) is not None:  # a batch that is not counted yet
            logged = store.call_log(workspace, after=pending, limit=MAX_PENDING)
            calls = (each.call for each in logged)
            imported.update(c.tool_name for c in calls if c.metadata.get(IMPORT_ID) == record.key)
    return [name for name in names if name not in imported or names[name] > imported[name]]


def is_guest(speaker: str | None, setting: str) -> bool:
    """Whether `speaker` or, if it is None, `setting` names a guest. Raises RequestError."""
    given = speaker or setting
    if given == "owner":
        return False
    if given == "guest" or (given.startswith(_GUEST) and given.removeprefix(_GUEST).strip()):
        return True
    raise RequestError(f"speaker: expected owner or guest:ID, got {speaker!r}", "speaker")


def tell_operator(session: str, told: Iterable[str]) -> None:
    """Log messages about the rules that a guest caused; guests do not see these messages."""
    for line in filter(None, told):
        log.warning("guest in session %s: %s", shown_name(session, 80), plain(line, 500))
