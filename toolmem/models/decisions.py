"""What the guard decided about a call before it ran."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from toolmem.models.calls import Moment

Action = Literal["allow", "advise", "ask", "deny"]


class DecisionSource(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that speaks for or against a call: a rule, or `k` of `n` earlier calls."""

    kind: Literal["rule", "repeat", "known_name", "schema", "self"]
    rule_id: str = ""
    lifts: bool = False  # the user's consent to the call also lifts the rule
    k: int = 0
    n: int = 0
    call_ids: tuple[str, ...] = ()


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a call may run, and why."""

    id: str
    time: Moment
    tool_name: str
    call: str = ""  # its arguments as JSON, masked, 500 characters; "" where nothing was found
    conversation_id: str = ""
    action: Action
    reason: str = ""  # what stands against the call, and what would be right
    advice: str = ""
    sources: tuple[DecisionSource, ...] = ()
    mode: Literal["shadow", "advise", "enforce"] = "enforce"
    outcome: str = ""  # what became of the call; "" until it is known
