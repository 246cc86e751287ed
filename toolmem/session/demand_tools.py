"""The two tools by which the model of a session notes what its user demands, and takes it back.

tools = [*my_schemas, *session.tools("openai")]
...
if name in ("note_demand", "lift_demand"):
result = await session.call_tool(name, arguments)
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from toolmem.config.nearest_names import hint
from toolmem.demands.quotes import standing_of
from toolmem.errors import NoteRefused, RequestError
from toolmem.late_dataclasses import replace
from toolmem.models import ToolSchema
from toolmem.operations.agent_tools import agent_operations, input_schema
from toolmem.ops.asked_notes import AskedNotes, quote_of, without_secrets
from toolmem.ops.note_demand import as_metadata, kept_calls
from toolmem.rules.evidence import typed_here
from toolmem.rules.lifted_demands import answer_call, rule_meant
from toolmem.rules.noted_demands import DemandContext, NotedDemand
from toolmem.rules.rule_store import RuleStore
from toolmem.rules.turns import Turn

if TYPE_CHECKING:
    from toolmem.app import ToolMemApp
    from toolmem.flow.op import Node

ToolForm = Literal["openai", "anthropic", "mcp"]
NAMES = ("note_demand", "lift_demand")
MOST_HEARD = 500  # messages of the user that a quote is looked for in


def demand_tools(form: ToolForm = "openai") -> list[dict[str, Any]]:
    """The schemas of both tools, as a model's API takes them. Raises RequestError for another form."""
    known = agent_operations()
    declared = [(name, known[name].agent, input_schema(known[name])) for name in NAMES]
    match form:
        case "openai":
            return [
                {"type": "function", "function": {"name": name, "description": told.description, "parameters": schema}}
                for name, told, schema in declared
                if told is not None
            ]
        case "anthropic" | "mcp":
            key = "input_schema" if form == "anthropic" else "inputSchema"
            return [
                {"name": name, "description": told.description, key: schema}
                for name, told, schema in declared
                if told is not None
            ]
    raise RequestError(f"form: expected openai, anthropic or mcp, got {form!r}", field="form")


class DemandTools:
    """What a session answers to the two tools: it knows what its user said.

    `guest`: the demands of this user bind in this session alone. `heard`: messages of the user so far. `hears_words`:
    a message of theirs such as `lift k7qm` is followed.
    """

    def __init__(
        self,
        rules: RuleStore,
        workspace: str,
        session_id: str,
        *,
        guest: str = "",
        heard: Iterable[str] = (),
        hears_words: bool = False,
    ) -> None:
        self._hears_words = hears_words
        self._rules = rules
        self._workspace = workspace  # of the calls
        self._session = session_id
        self._guest = guest
        self._heard: deque[str] = deque(heard, maxlen=MOST_HEARD)
        self._noted: tuple[int, tuple[str, ...]] = (0, ())  # the newest turn with notes that were kept; their quotes

    def user_said(self, message: str) -> None:
        """A message of the user; the same one told twice in a row is one."""
        if message and (not self._heard or self._heard[-1] != message):
            self._heard.append(message)

    async def call(
        self, name: str, arguments: Mapping[str, Any] | str, tools: Sequence[str | ToolSchema], turn: int
    ) -> str:
        """The tool's result as JSON. Raises RequestError for a name that is none of both, StoreError."""
        if name not in NAMES:
            raise RequestError(f"name: no tool of the session is called {name!r} ({hint(name, NAMES)})", field="name")
        noted = await self._answer(name, _read(arguments), tools, turn, "agent")
        return json.dumps({"told": str(noted), **_for_model(noted)}, ensure_ascii=False)

    async def noted_by_model(self, app: ToolMemApp, asking: Node | None, turn: Turn) -> AskedNotes:
        """What the configured model notes of a message, where the agent's own noted nothing.

        `asking`: AskForDemandsOp, bound; None where no model is configured for it.
        """
        if asking is None or self.noted_in(turn):
            return AskedNotes()
        spoken = without_secrets(turn)
        self.user_said(spoken.user_message)

        async def answer(name: str, given: Any) -> NotedDemand:
            return await self._answer(name, given, spoken.tools, spoken.number or 0, "rules.capture: model")

        given = {"workspace_id": self._workspace, "spoken": spoken, "answered_by": answer}
        found: AskedNotes = (await app.run_bound(asking, "", given)).context["asked_notes"]
        return found

    async def _answer(
        self, name: str, given: Any, tools: Sequence[str | ToolSchema], turn: int, noted_by: str
    ) -> NotedDemand:
        if self._guest and isinstance(given, Mapping):
            given = {**given, "lasting": "session"}
        kept = await kept_calls(self._rules.store, self._workspace) if name == "note_demand" else []
        context = DemandContext(
            list(self._heard),
            tools,
            self._session,
            turn,
            noted_by=noted_by,
            kept=kept,
            hears_words=self._hears_words and not self._guest,
        )
        rules = self._rules
        if self._guest and name == "lift_demand" and not await self._is_guests(given):
            context = replace(context, heard=None)  # what a guest says takes back no demand of another
        elif name == "lift_demand":  # words of long ago take nothing back that was said since
            fresh = [each for each in list(self._heard)[-1:] if standing_of(quote_of(given), [each], str) == "said"]
            context = replace(context, fresh=fresh)
            rules = rules.as_told_by(typed_here(fresh[0], self._session)) if fresh else rules
        noted = await answer_call(rules, name, given, context)
        if noted.outcome == "kept":
            self._noted = (turn, (*self._noted_in(turn), quote_of(given)))
        return noted

    async def _is_guests(self, given: Any) -> bool:
        """Whether the demand that a lift names was made in this session."""
        lifted = str(given.get("lifted") or "") if isinstance(given, Mapping) else ""
        try:
            meant = rule_meant(lifted, (await self._rules.all_rules())[0])
        except NoteRefused:
            return True  # and none is lifted
        return all(rule.said is not None and rule.said.session == self._session for rule in meant)

    def noted_in(self, turn: Turn) -> tuple[str, ...]:
        """What of this turn's message was noted, or taken back, and is kept."""
        return self._noted_in(turn.number or 0)

    def _noted_in(self, turn: int) -> tuple[str, ...]:
        return self._noted[1] if self._noted[0] == turn else ()


def _read(arguments: Mapping[str, Any] | str) -> Any:
    """As a model gave them; what is no JSON is refused as a note."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _for_model(noted: NotedDemand) -> dict[str, Any]:
    told = as_metadata(noted)
    return {name: told[name] for name in ("outcome", "why", "problems") if name in told}
